/* Matrix products and rotations. */
#include <math.h>

#include "ggl/math.h"
#include "reference.h"

static int64_t clip(int64_t i, int64_t n) {
    return n == 1 ? 0 : i;
}

/* The matrix of w that serves (j, k) of the l-th of the batch: w's own, or the one that the index
 * picks. False: the index points outside of w. */
static bool matrix_at(const step_args *a, int64_t j, int64_t k, int64_t l, int64_t *b, int64_t *c) {
    const view *w = &a->src[1], *index = &a->src[3];
    *b = clip(j, w->ne[2]);
    *c = clip(ggl_is_batched(a->node->src[1]) ? l : k, w->ne[3]);
    if (index->data) {
        *b = (int64_t)ref_get(index, j, 0, 0, l);
        *c = 0;
    }
    return *b >= 0 && *b < w->ne[2];
}

static double product(const step_args *a, int64_t j, int64_t k, int64_t l) {
    const view *x = &a->src[0];
    double y = 0;
    for (int64_t e = 0; e < x->ne[0]; e++)
        y += a->row[e] * ref_get(x, e, j, k, l);
    return y;
}

/* y[i, j, k] = sum_e w[e, i, j, k] x[e, j, k] + bias[i, j, k]; with an index: w[e, i, index[j]].
 * Row by row of w, so that a row that serves several columns is decoded once for those that come
 * after each other. */
void ref_linear(const step_args *a) {
    const view *y = &a->dst, *bias = &a->src[2];
    for (int64_t i = 0; i < y->ne[0]; i++) {
        int64_t b, c, last_b = -1, last_c = -1;
        for (int64_t l = 0; l < y->ne[3]; l++)
            for (int64_t k = 0; k < y->ne[2]; k++)
                for (int64_t j = 0; j < y->ne[1]; j++) {
                    bool found = matrix_at(a, j, k, l, &b, &c);
                    if (found && (b != last_b || c != last_c))
                        ref_get_row(&a->src[1], i, last_b = b, last_c = c, a->row);
                    double sum = found ? product(a, j, k, l) : NAN;
                    if (bias->data)
                        sum += ref_get(bias, i, j, k, l);
                    ref_set(y, i, j, k, l, sum);
                }
    }
}

/* Pairs of a row turn by pos * f, and grow by mag; what lies beyond 2 r passes. */
void ref_rope(const step_args *a) {
    const view *x = &a->src[0], *f = &a->src[1], *pos = &a->src[2];
    int64_t r = f->ne[0];
    bool half = a->node->op == GGL_OP_ROPE_HALF;
    double mag = a->node->num[0];
    FOR_EACH(a->dst) {
        if (i >= 2 * r) {
            ref_set(&a->dst, i, j, k, l, ref_get(x, i, j, k, l));
            continue;
        }
        int64_t pair = half ? i % r : i / 2, first = half ? pair : 2 * pair,
                second = half ? pair + r : first + 1;
        double angle = ref_get(pos, 0, 0, 0, l) * ref_get(f, pair, 0, 0, 0);
        double c = ggl_cos(angle) * mag, s = ggl_sin(angle) * mag;
        double u = ref_get(x, first, j, k, l), v = ref_get(x, second, j, k, l);
        ref_set(&a->dst, i, j, k, l, i == first ? u * c - v * s : u * s + v * c);
    }
}
