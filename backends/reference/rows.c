/* Operators along a dimension: sums, maxima, ranks. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "reference.h"

typedef struct place {
    int64_t at[4];
} place;

static double get(const view *v, place p) {
    return ggl_ref_get(v, p.at[0], p.at[1], p.at[2], p.at[3]);
}

/* Sets dst to the sum, or the maximum, over dimension num[SUM_DIM] of x. */
static void reduce(const step_args *a, bool max) {
    const view *x = &a->src[0];
    int dim = (int)a->node->num[SUM_DIM];
    FOR_EACH(a->dst) {
        /* dst has size 1 along dim, even where the dimension is dropped */
        place p = {{i, j, k, l}};
        double y = max ? -INFINITY : 0;
        for (p.at[dim] = 0; p.at[dim] < x->ne[dim]; p.at[dim]++) {
            double v = get(x, p);
            y = !max ? y + v : isnan(y) || isnan(v) ? NAN : fmax(y, v);
        }
        ggl_ref_set(&a->dst, i, j, k, l, y);
    }
}

void ggl_ref_sum(const step_args *a) {
    reduce(a, false);
}

void ggl_ref_amax(const step_args *a) {
    reduce(a, true);
}

/* True if element b of a row ranks before element a: it is larger, or equal and earlier. NaN ranks
 * last. */
static bool before(const double *row, int64_t b, int64_t a) {
    if (isnan(row[a]) || isnan(row[b]))
        return isnan(row[a]) && (!isnan(row[b]) || b < a);
    return row[b] > row[a] || (row[b] == row[a] && b < a);
}

static int64_t rank_of(const double *row, int64_t n, int64_t i) {
    int64_t rank = 0;
    for (int64_t b = 0; b < n; b++)
        rank += before(row, b, i);
    return rank;
}

void ggl_ref_rank(const step_args *a) {
    FOR_EACH(a->dst) {
        if (i == 0)
            ggl_ref_get_row(&a->src[0], j, k, l, a->row);
        ggl_ref_set(&a->dst, i, j, k, l, (double)rank_of(a->row, a->dst.ne[0], i));
    }
}

void ggl_ref_topk(const step_args *a) {
    const view *x = &a->src[0];
    for (int64_t l = 0; l < a->dst.ne[3]; l++) {
        ggl_ref_get_row(x, 0, 0, l, a->row);
        for (int64_t i = 0; i < x->ne[0]; i++) {
            int64_t rank = rank_of(a->row, x->ne[0], i);
            if (rank < a->dst.ne[0])
                ggl_ref_set(&a->dst, rank, 0, 0, l, (double)i);
        }
    }
}

static uint64_t digits_of(const view *v, int64_t i, int64_t l) {
    float digit[GGL_N_DIGITS];
    for (int64_t k = 0; k < GGL_N_DIGITS; k++)
        digit[k] = (float)ggl_ref_get(v, k, i, 0, l);
    return ggl_from_digits(digit);
}

void ggl_ref_ngrams(const step_args *a) {
    const view *x = &a->src[NGRAMS_X];
    const int64_t each = a->dst.ne[0] / (x->ne[0] - 1), rows = (int64_t)a->node->num[NGRAMS_ROWS];
    for (int64_t l = 0; l < a->dst.ne[3]; l++)
        for (int64_t i = 0; i < a->dst.ne[0]; i++) {
            uint64_t hash = 0;
            for (int64_t j = 0; j < 2 + i / each; j++)
                hash ^= ggl_hashed_number((float)ggl_ref_get(x, j, 0, 0, l)) *
                        digits_of(&a->src[NGRAMS_BY], j, l);
            ggl_ref_set(&a->dst, i, 0, 0, l,
                        (double)ggl_hashed_index(hash, digits_of(&a->src[NGRAMS_INTO], i, l),
                                                 digits_of(&a->src[NGRAMS_FIRST], i, l), rows));
        }
}
