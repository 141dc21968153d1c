/* Operators that only move elements. */
#include <math.h>

#include "reference.h"

/* Copies the elements, in order, to another shape. */
void ggl_ref_copy(const step_args *a) {
    const view *x = &a->src[0];
    FOR_EACH(a->dst) {
        int64_t e = i + a->dst.ne[0] * (j + a->dst.ne[1] * k); /* within one of the batch */
        int64_t i0 = e % x->ne[0], i1 = e / x->ne[0] % x->ne[1], i2 = e / x->ne[0] / x->ne[1];
        ggl_ref_set(&a->dst, i, j, k, l, ggl_ref_get(x, i0, i1, i2, l));
    }
}

/* y[.., i] = t[.., index[i]]; NaN if the index is out of range. */
void ggl_ref_pick(const step_args *a) {
    const view *t = &a->src[PICK_T], *index = &a->src[PICK_I];
    int last = a->node->src[0]->n_dims - 1;
    FOR_EACH(a->dst) {
        int64_t at[4] = {i, j, k, t->ne[3] == 1 ? 0 : l};
        int64_t which = a->node->src[PICK_I]->n_dims == 0 ? 0 : at[last];
        double e = ggl_ref_get(index, which, 0, 0, l);
        bool inside = e >= 0 && e < (double)t->ne[last];
        at[last] = inside ? (int64_t)e : 0;
        ggl_ref_set(&a->dst, i, j, k, l, inside ? ggl_ref_get(t, at[0], at[1], at[2], at[3]) : NAN);
    }
}

void ggl_ref_concat(const step_args *a) {
    int dim = (int)a->node->num[CONCAT_DIM];
    int64_t n = a->src[0].ne[dim];
    FOR_EACH(a->dst) {
        int64_t at[4] = {i, j, k, l};
        const view *x = &a->src[at[dim] >= n];
        at[dim] -= at[dim] >= n ? n : 0;
        ggl_ref_set(&a->dst, i, j, k, l, ggl_ref_get(x, at[0], at[1], at[2], at[3]));
    }
}

void ggl_ref_repeat(const step_args *a) {
    FOR_EACH(a->dst)
    ggl_ref_set(&a->dst, i, j, k, l, ggl_ref_get(&a->src[0], i, j, k, l));
}

void ggl_ref_transpose(const step_args *a) {
    int p = (int)a->node->num[TRANSPOSE_A], q = (int)a->node->num[TRANSPOSE_B];
    FOR_EACH(a->dst) {
        int64_t at[4] = {i, j, k, l}, swap = at[p];
        at[p] = at[q];
        at[q] = swap;
        ggl_ref_set(&a->dst, i, j, k, l, ggl_ref_get(&a->src[0], at[0], at[1], at[2], at[3]));
    }
}

void ggl_ref_iota(const step_args *a) {
    FOR_EACH(a->dst)
    ggl_ref_set(&a->dst, i, j, k, l, (double)i);
}
