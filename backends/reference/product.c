/* Matrix products and rotations. */
#include <math.h>

#include "ggl/internal/math.h"
#include "reference.h"

static int64_t shared_or_own(int64_t i, int64_t n) {
    return n == 1 ? 0 : i;
}

/* Sets (*b, *c) to the matrix of w for vector (j, k) of element l of the batch: the one at the same
 * place, or the one that the index picks. Returns false if the index is out of range. */
static bool matrix_at(const step_args *a, int64_t j, int64_t k, int64_t l, int64_t *b, int64_t *c) {
    const view *w = &a->src[LINEAR_W], *index = &a->src[LINEAR_INDEX];
    *b = shared_or_own(j, w->ne[2]);
    *c = shared_or_own(ggl_is_batched(a->node->src[LINEAR_W]) ? l : k, w->ne[3]);
    if (index->data) {
        *b = (int64_t)ggl_ref_get(index, j, 0, 0, l);
        *c = 0;
    }
    return *b >= 0 && *b < w->ne[2];
}

/* sum[r] = sum_e w[r, e] x[e]. Terms are added in order of e; the rows' sums are interleaved, which
 * is faster. */
static void products(const double *w, const double *x, int64_t n, int n_rows, double *sum) {
    for (int r = 0; r < n_rows; r++)
        sum[r] = 0;
    if (n_rows == REF_ROWS)
        for (int64_t e = 0; e < n; e++)
            for (int r = 0; r < REF_ROWS; r++)
                sum[r] += w[r * n + e] * x[e];
    else
        for (int r = 0; r < n_rows; r++)
            for (int64_t e = 0; e < n; e++)
                sum[r] += w[r * n + e] * x[e];
}

/* The same in f32, in a few sums that are added at the end, as backends with vectors do it. */
static void products_f32(const double *w, const double *x, int64_t n, int n_rows, double *sum) {
    enum { N_PARTS = 8 };
    for (int r = 0; r < n_rows; r++) {
        float part[N_PARTS] = {0};
        for (int64_t e = 0; e < n; e++)
            part[e % N_PARTS] += (float)(w[r * n + e] * x[e]);
        for (int k = 1; k < N_PARTS; k++)
            part[0] += part[k];
        sum[r] = part[0];
    }
}

/* Computes elements i .. i + n_rows - 1 of all vectors of y. */
static void linear_rows(const step_args *a, int64_t i, int n_rows) {
    const view *x = &a->src[LINEAR_X], *w = &a->src[LINEAR_W], *y = &a->dst,
               *bias = &a->src[LINEAR_BIAS];
    int64_t n = x->ne[0], b, c, last_b = -1, last_c = -1;
    double *column = a->row + REF_ROWS * n, sum[REF_ROWS];
    for (int64_t l = 0; l < y->ne[3]; l++)
        for (int64_t k = 0; k < y->ne[2]; k++)
            for (int64_t j = 0; j < y->ne[1]; j++) {
                bool found = matrix_at(a, j, k, l, &b, &c);
                for (int r = 0; r < n_rows && found && (b != last_b || c != last_c); r++)
                    ggl_ref_get_row(w, i + r, b, c, a->row + r * n);
                if (found) {
                    last_b = b, last_c = c;
                    ggl_ref_get_row(x, j, k, l, column);
                    (a->f32 ? products_f32 : products)(a->row, column, n, n_rows, sum);
                }
                for (int r = 0; r < n_rows; r++) {
                    double v = found ? sum[r] : NAN;
                    ggl_ref_set(y, i + r, j, k, l,
                                bias->data ? v + ggl_ref_get(bias, i + r, j, k, l) : v);
                }
            }
}

/* y[i, j, k] = sum_e w[e, i, j, k] x[e, j, k] + bias[i, j, k]; with an index: w[e, i, index[j]].
 * A few rows of w at a time, so that they are decoded once for consecutive columns. */
void ggl_ref_linear(const step_args *a) {
    int64_t n = a->dst.ne[0];
    for (int64_t i = 0; i < n; i += REF_ROWS)
        linear_rows(a, i, (int)(n - i < REF_ROWS ? n - i : REF_ROWS));
}

/* x[i, j, k] = sum_e w[i, e, j, k] dy[e, j, k]; with an index: w[i, e, index[j]]. */
void ggl_ref_linear_back(const step_args *a) {
    const view *dy = &a->src[LINEAR_BACK_DY], *w = &a->src[LINEAR_BACK_W], *x = &a->dst;
    int64_t n = x->ne[0], b, c;
    double *sum = a->row, *row = a->row + n;
    for (int64_t l = 0; l < x->ne[3]; l++)
        for (int64_t k = 0; k < x->ne[2]; k++)
            for (int64_t j = 0; j < x->ne[1]; j++) {
                const bool found = matrix_at(a, j, k, l, &b, &c);
                for (int64_t i = 0; i < n; i++)
                    sum[i] = found ? 0 : NAN;
                for (int64_t e = 0; e < w->ne[1] && found; e++) {
                    const double factor = ggl_ref_get(dy, e, j, k, l);
                    ggl_ref_get_row(w, e, b, c, row);
                    for (int64_t i = 0; i < n; i++)
                        sum[i] += row[i] * factor;
                }
                for (int64_t i = 0; i < n; i++)
                    ggl_ref_set(x, i, j, k, l, sum[i]);
            }
}

/* Returns the number of vectors along a dimension, of operands that may have one for all. */
static int64_t extent_of(const step_args *a, int dim) {
    int64_t n = 1;
    for (int k = 0; k < 3; k++) /* x, dy, i */
        if (a->src[k].data && (k < OUTER_SUM_I || dim == GGL_BATCH_DIM) && a->src[k].ne[dim] > n)
            n = a->src[k].ne[dim];
    return n;
}

/* y[i, j, m] = into[i, j, m] + the sum of x[i, c, k] dy[j, c, k] over the batch and all c, k whose matrix is m. */
void ggl_ref_outer_sum(const step_args *a) {
    const view *x = &a->src[OUTER_SUM_X], *dy = &a->src[OUTER_SUM_DY],
               *index = &a->src[OUTER_SUM_I], *into = &a->src[OUTER_SUM_INTO];
    const bool several = !isnan(a->node->num[OUTER_SUM_N]);
    const int64_t n = a->dst.ne[0], nc = extent_of(a, 1), nk = extent_of(a, 2),
                  nl = extent_of(a, 3);
    double *sum = a->row, *row = a->row + n;
    for (int64_t m = 0; m < a->dst.ne[2]; m++)
        for (int64_t j = 0; j < a->dst.ne[1]; j++) {
            for (int64_t i = 0; i < n; i++)
                sum[i] = into->data ? ggl_ref_get(into, i, j, m, 0) : 0;
            for (int64_t l = 0; l < nl; l++)
                for (int64_t k = 0; k < nk; k++)
                    for (int64_t c = 0; c < nc; c++) {
                        const int64_t matrix = index->data ? (int64_t)ggl_ref_get(index, c, 0, 0, l)
                                               : several   ? c
                                                           : 0;
                        if (matrix != m)
                            continue;
                        const double factor = ggl_ref_get(dy, j, c, k, l);
                        ggl_ref_get_row(x, c, k, l, row);
                        for (int64_t i = 0; i < n; i++)
                            sum[i] += row[i] * factor;
                    }
            for (int64_t i = 0; i < n; i++)
                ggl_ref_set(&a->dst, i, j, m, 0, sum[i]);
        }
}

/* Rotates each pair of a row by the angle pos * f and scales it by mag; copies elements from 2 r
 * on. */
void ggl_ref_rope(const step_args *a) {
    const view *x = &a->src[ROPE_HALF_X], *f = &a->src[ROPE_HALF_F], *pos = &a->src[ROPE_HALF_AT];
    int64_t r = f->ne[0];
    bool half = a->node->op == GGL_OP_ROPE_HALF;
    double mag = a->node->num[ROPE_HALF_MAG];
    FOR_EACH(a->dst) {
        if (i >= 2 * r) {
            ggl_ref_set(&a->dst, i, j, k, l, ggl_ref_get(x, i, j, k, l));
            continue;
        }
        int64_t pair = half ? i % r : i / 2, first = half ? pair : 2 * pair,
                second = half ? pair + r : first + 1;
        double angle = ggl_ref_get(pos, 0, 0, 0, l) * ggl_ref_get(f, pair, 0, 0, 0);
        double c = ggl_cos(angle) * mag, s = ggl_sin(angle) * mag;
        double u = ggl_ref_get(x, first, j, k, l), v = ggl_ref_get(x, second, j, k, l);
        ggl_ref_set(&a->dst, i, j, k, l, i == first ? u * c - v * s : u * s + v * c);
    }
}
