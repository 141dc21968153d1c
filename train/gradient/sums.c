/* What is known of each tensor, and how gradients add up. */
#include "gradient_impl.h"

#include <math.h>

/* --- what is known ---------------------------------------------------------------------------- */

grad_note *ggl_grad_note(grad_work *w, const ggl_tensor *t) {
    if (!ggl_grow(&w->note, &w->cap_notes, (size_t)t->id + 1, sizeof *w->note)) {
        ggl_graph_fail(w->g, GGL_NOMEM, "out of memory for gradients");
        return NULL;
    }
    return &w->note[t->id];
}

bool ggl_grad_is_active(grad_work *w, const ggl_tensor *t) {
    const grad_note *n = t ? ggl_grad_note(w, t) : NULL;
    return n && n->active;
}

/* --- shapes ----------------------------------------------------------------------------------- */

ggl_tensor *ggl_grad_reshape(grad_work *w, ggl_tensor *x, int n_dims, const int64_t *ne) {
    double num[GGL_MAX_DIMS];
    bool same = x && x->n_dims == n_dims;
    for (int d = 0; d < n_dims; d++) {
        num[d] = (double)ne[d];
        same = same && x->ne[d] == ne[d];
    }
    return !x || same ? x : grad_op1(w, GGL_OP_RESHAPE, x, num, n_dims);
}

/* Returns x with as many dimensions as `like`; those that are dropped have the size 1. */
static ggl_tensor *with_dims_of(grad_work *w, ggl_tensor *x, const ggl_tensor *like) {
    int64_t ne[GGL_MAX_DIMS] = {1, 1, 1, 1};
    for (int d = 0; x && d < GGL_BATCH_DIM; d++)
        ne[d] = x->ne[d];
    return x ? ggl_grad_reshape(w, x, like->n_dims, ne) : NULL;
}

ggl_tensor *ggl_grad_as_large(grad_work *w, ggl_tensor *x, const ggl_tensor *like) {
    double num[GGL_MAX_DIMS];
    bool same = true;
    x = with_dims_of(w, x, like);
    for (int d = 0; x && d < like->n_dims; d++) {
        num[d] = (double)like->ne[d];
        same = same && x->ne[d] == like->ne[d];
    }
    return !x || same ? x : grad_op1(w, GGL_OP_REPEAT, x, num, like->n_dims);
}

/* --- adding ----------------------------------------------------------------------------------- */

ggl_tensor *ggl_grad_outer(grad_work *w, ggl_tensor *t, ggl_tensor *x, ggl_tensor *dy,
                           ggl_tensor *i, int64_t n, int n_dims, const int64_t *ne, bool bf16) {
    const double num[] = {[OUTER_SUM_N] = n > 0 ? (double)n : NAN, [OUTER_SUM_BF16] = bf16};
    grad_note *note = ggl_grad_note(w, t);
    if (note && note->original)
        note = ggl_grad_note(w, t = note->original);
    ggl_tensor *src[4] = {x, dy, i, note ? note->d : NULL};
    if (!note || !x || !dy)
        return NULL;
    if (src[3])
        src[3] = ggl_grad_reshape(w, ggl_grad_as_large(w, src[3], t), n_dims, ne);
    ggl_tensor *y = ggl_graph_op(w->g, GGL_OP_OUTER_SUM, src, 4, num, 2);
    y = y ? ggl_grad_reshape(w, y, t->n_dims, t->ne) : NULL;
    note = ggl_grad_note(w, t);
    if (note && y)
        note->d = y;
    return y;
}

void ggl_grad_add(grad_work *w, const ggl_tensor *reader, ggl_tensor *t, ggl_tensor *d) {
    if (!d || !ggl_grad_is_active(w, t))
        return;
    if (ggl_grad_note(w, t)->original)
        t = ggl_grad_note(w, t)->original;
    for (int k = d->n_dims - 1; k >= 0 && d; k--)
        if (t->ne[k] == 1 && d->ne[k] > 1) {
            const double dim = k;
            d = grad_op1(w, GGL_OP_SUM, d, &dim, 1);
        }
    if (d && ggl_is_batched(reader) && !ggl_is_batched(t) && !w->in_body) {
        const double one = 1;
        const int64_t n = ggl_count(t), ne[2] = {n, 1};
        d = ggl_grad_reshape(w, ggl_grad_as_large(w, d, t), 1, &n);
        ggl_grad_outer(w, t, d, ggl_graph_const(w->g, 1, ne + 1, &one), NULL, 0, 2, ne, false);
        return;
    }
    d = d ? with_dims_of(w, d, t) : NULL;
    grad_note *note = ggl_grad_note(w, t);
    if (!note || !d)
        return;
    ggl_tensor *sum = note->d ? ggl_binary(w->g, GGL_OP_ADD, note->d, d) : d;
    note = ggl_grad_note(w, t);
    if (note)
        note->d = sum;
}

void ggl_grad_add_part(grad_work *w, ggl_tensor *t, int dim, int64_t first, ggl_tensor *d) {
    grad_note *note = ggl_grad_note(w, t);
    if (note && note->original)
        note = ggl_grad_note(w, note->original);
    if (!d || !note || !note->active)
        return;
    grad_part *p = ggl_arena_alloc(&w->g->arena, 1, sizeof *p);
    if (!p) {
        ggl_graph_fail(w->g, GGL_NOMEM, "out of memory for gradients");
        return;
    }
    *p = (grad_part){note->parts, dim, first, d->ne[dim], d};
    note->parts = p;
}
