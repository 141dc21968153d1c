/* The gradient of a recurrence. Its body, and what the body keeps, is
 *
 *     y, s' = f(x, s)        for each element of the batch, where s is what the element before has kept
 *
 * One call computes the gradients. Its body runs in chunks (ggl_body.chunk). The nodes that run forward are those of the recurrence from
 * which s' is made. The nodes that run backward keep the gradient of s: they compute from it, from dy, x and s the gradients of x, which are
 * the call's result, and the gradient that they keep for the element before. So no more states exist at once than a chunk has
 * elements, and one for each chunk. */
#include "gradient_impl.h"

enum { MOST_STATES = 8 };

/* The states of a body, and what it keeps in each; NULL: nothing. */
typedef struct states {
    ggl_tensor *state[MOST_STATES], *kept[MOST_STATES];
    ggl_tensor *before[MOST_STATES]; /* its copy, which runs forward */
    ggl_tensor *later[MOST_STATES];  /* backward: the gradient of what is kept */
    int n;
} states;

/* Returns false if there are too many states, or if the body reads a weight that has a gradient. */
static bool find_states(grad_work *w, const ggl_tensor *t, states *s) {
    const ggl_body *b = t->body;
    for (int i = 0; i < b->n_node; i++) {
        ggl_tensor *x = b->node[i];
        for (int k = 0; k < x->n_src; k++)
            if (x->src[k] && ggl_is_leaf(x->src[k]) && ggl_grad_is_active(w, x->src[k]))
                return ggl_graph_fail(w->g, GGL_UNSUPPORTED,
                                      "the gradient of %s by the weight '%s', which it reads "
                                      "without getting it as "
                                      "an argument",
                                      ggl_node_text(t, (char[128]){0}, 128),
                                      x->src[k]->name) != NULL;
        if (x->op == GGL_OP_STATE && s->n == MOST_STATES)
            return ggl_graph_fail(w->g, GGL_LIMIT, "a recurrence with more than %d states",
                                  MOST_STATES) != NULL;
        if (x->op == GGL_OP_STATE)
            s->state[s->n++] = x;
        for (int k = 0; x->op == GGL_OP_KEEP && k < s->n; k++)
            if (s->state[k] == x->src[KEEP_STATE])
                s->kept[k] = x->src[KEEP_X];
    }
    return true;
}

/* Makes the nodes that run forward, and sets what is needed of the states. Returns false on error. */
static bool make_forward(grad_work *w, const ggl_tensor *t, states *s) {
    const bool ok = ggl_grad_copy_body(w, t->body, false);
    for (int k = 0; k < s->n && ok; k++) {
        s->before[k] = ggl_grad_copy_of(w, s->state[k]);
        if (!s->kept[k]) /* it remains what it was: zeros */
            (void)ggl_binary(w->g, GGL_OP_KEEP, s->before[k], s->before[k]);
        grad_note *note = ggl_grad_note(w, s->before[k]);
        if (note)
            note->active = note->is_kept = true;
    }
    if (w->g->body) /* the nodes that follow run backward */
        w->g->body->n_forward = w->g->body->nodes.n;
    for (int k = 0; k < s->n && ok; k++) {
        double num[GGL_MAX_DIMS];
        for (int d = 0; d < s->state[k]->n_dims; d++)
            num[d] = (double)s->state[k]->ne[d];
        s->later[k] = ggl_graph_op(w->g, GGL_OP_STATE, NULL, 0, num, s->state[k]->n_dims);
    }
    return ok;
}

/* Returns the gradient of t in a row, or zeros. */
static ggl_tensor *flat_gradient(grad_work *w, ggl_tensor *t) {
    const grad_note *note = ggl_grad_note(w, t);
    const double n = (double)ggl_count(t);
    const int64_t count = ggl_count(t);
    ggl_tensor *d = note && note->d ? ggl_grad_as_large(w, note->d, t) : NULL;
    return d ? ggl_grad_reshape(w, d, 1, &count)
             : grad_op1(w, GGL_OP_REPEAT, ggl_graph_number(w->g, 0), &n, 1);
}

/* Keeps the gradients of the states for the element before. */
static void keep_gradients(grad_work *w, const states *s) {
    for (int k = 0; k < s->n; k++) {
        ggl_tensor *d = flat_gradient(w, s->before[k]);
        ggl_tensor *src[2] = {
            s->later[k], d ? ggl_grad_reshape(w, d, s->state[k]->n_dims, s->state[k]->ne) : NULL};
        if (src[1])
            (void)ggl_graph_op(w->g, GGL_OP_KEEP, src, 2, NULL, 0);
    }
}

/* Differentiates the copies of the body's nodes, and returns the gradients of t's active sources, one after another. */
static ggl_tensor *backward_result(grad_work *w, ggl_tensor *t, const states *s,
                                   ggl_tensor *const *param, grad_visit_fn *visit,
                                   void (*activate)(grad_work *, const ggl_tensor *)) {
    const ggl_body *b = t->body;
    ggl_tensor *dy = param[t->n_src], *all = NULL;
    ggl_tensor **copy = ggl_calloc((size_t)b->n_node + 1, sizeof(ggl_tensor *));
    int n = 0;
    if (!copy || !ggl_grad_copy_body(w, b, true)) {
        ggl_free(copy);
        return NULL;
    }
    for (int i = 0; i < b->n_node; i++)
        if (b->node[i]->op != GGL_OP_KEEP && b->node[i]->op != GGL_OP_STATE)
            copy[n++] = ggl_grad_copy_of(w, b->node[i]);
    for (int i = 0; i < n; i++) {
        activate(w, copy[i]);
        grad_note *note = ggl_grad_note(w, copy[i]);
        if (note)
            note->is_kept = true;
    }
    ggl_grad_add(w, t, ggl_grad_copy_of(w, b->result), dy);
    for (int k = 0; k < s->n; k++)
        if (s->kept[k])
            ggl_grad_add(w, t, ggl_grad_copy_of(w, s->kept[k]), s->later[k]);
    visit(w, copy, n);
    ggl_free(copy);
    for (int k = 0; k < t->n_src; k++) {
        if (!ggl_grad_is_active(w, t->src[k]))
            continue;
        const double dim = 0;
        ggl_tensor *src[2] = {all, flat_gradient(w, param[k])};
        all = !all || !src[1] ? src[1] : ggl_graph_op(w->g, GGL_OP_CONCAT, src, 2, &dim, 1);
    }
    keep_gradients(w, s);
    return all;
}

void ggl_grad_recurrence(grad_work *w, ggl_tensor *t, ggl_tensor *dy, grad_visit_fn *visit,
                         void (*activate)(grad_work *, const ggl_tensor *)) {
    states s = {.n = 0};
    if (w->in_body) {
        ggl_graph_fail(w->g, GGL_UNSUPPORTED, "a recurrence within another one has no gradient");
        return;
    }
    if (!find_states(w, t, &s))
        return;
    ggl_tensor **param = ggl_grad_begin_body(w, t, &dy, 1);
    if (!param)
        return;
    ggl_tensor *own[2 * GRAD_MAX_SRC]; /* the body's list moves when it captures values */
    for (int k = 0; k < t->n_src + 1; k++)
        own[k] = param[k];
    if (w->g->body)
        w->g->body->chunk = w->chunk;
    w->in_body = true;
    ggl_tensor *all =
        make_forward(w, t, &s) ? backward_result(w, t, &s, own, visit, activate) : NULL;
    w->in_body = false;
    ggl_tensor *call = ggl_body_end(w->g, NULL, all, NULL, 0);
    if (!call)
        return;
    int64_t first = 0;
    for (int k = 0; k < t->n_src; k++)
        if (ggl_grad_is_active(w, t->src[k])) {
            const double num[] = {0, (double)first, (double)ggl_count(t->src[k])};
            ggl_tensor *d = grad_op1(w, GGL_OP_SPLIT, call, num, 3);
            first += ggl_count(t->src[k]);
            ggl_grad_add(w, t, t->src[k],
                         d ? ggl_grad_reshape(w, d, t->src[k]->n_dims, t->src[k]->ne) : NULL);
        }
}
