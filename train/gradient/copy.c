/* Copies of nodes. */
#include "gradient_impl.h"

#include <string.h>

/* Makes a node like t of other sources; NULL on error. */
static ggl_tensor *like(grad_work *w, const ggl_tensor *t, ggl_tensor *const *src) {
    const int group = w->g->group;
    const char *origin = w->g->origin;
    w->g->group = t->group;
    w->g->origin = t->origin;
    const int n_src = t->op == GGL_OP_STATE ? 0 : t->op == GGL_OP_KEEP ? KEEP_SLOT : t->n_src;
    ggl_tensor *y = ggl_graph_op(w->g, t->op, src, n_src, t->num, t->n_num);
    w->g->group = group;
    w->g->origin = origin;
    return y;
}

/* Returns what stands for x, which a copied node reads: its copy, or a leaf itself. */
ggl_tensor *ggl_grad_copy_of(grad_work *w, ggl_tensor *x) {
    const grad_note *n = x && !ggl_is_leaf(x) ? ggl_grad_note(w, x) : NULL;
    return n && n->copy ? n->copy : x;
}

void ggl_grad_set_copy(grad_work *w, const ggl_tensor *t, ggl_tensor *copy) {
    grad_note *n = ggl_grad_note(w, t);
    if (n)
        n->copy = copy;
}

static ggl_tensor *copy_call(grad_work *w, const ggl_tensor *t, ggl_tensor *const *src);

/* Copies the nodes of a body, whose parameters have copies. Returns false on error. */
bool ggl_grad_copy_body(grad_work *w, const ggl_body *b, bool without_states) {
    for (int i = 0; i < b->n_node; i++) {
        const ggl_tensor *t = b->node[i];
        ggl_tensor *src[GRAD_MAX_SRC];
        if (without_states && (t->op == GGL_OP_KEEP || t->op == GGL_OP_STATE))
            continue;
        if (t->n_src > GRAD_MAX_SRC)
            return ggl_graph_fail(w->g, GGL_LIMIT, "%s has %d sources", ggl_op_get(t->op).name,
                                  t->n_src) != NULL;
        for (int k = 0; k < t->n_src; k++)
            src[k] = ggl_grad_copy_of(w, t->src[k]);
        ggl_tensor *y = t->op == GGL_OP_CALL ? copy_call(w, t, src) : like(w, t, src);
        if (!y)
            return false;
        ggl_grad_set_copy(w, t, y);
    }
    return true;
}

/* Makes a call like t of other sources. */
static ggl_tensor *copy_call(grad_work *w, const ggl_tensor *t, ggl_tensor *const *src) {
    ggl_tensor **param = ggl_body_begin(w->g, src, t->n_src);
    if (!param)
        return NULL;
    for (int k = 0; k < t->n_src; k++)
        ggl_grad_set_copy(w, t->body->param[k], param[k]);
    const bool ok = ggl_grad_copy_body(w, t->body, false);
    const int group = w->g->group;
    w->g->group = t->group;
    ggl_tensor *y = ggl_body_end(w->g, t->call, ok ? ggl_grad_copy_of(w, t->body->result) : NULL,
                                 t->num, t->n_num);
    w->g->group = group;
    return y;
}

ggl_tensor **ggl_grad_begin_body(grad_work *w, const ggl_tensor *call, ggl_tensor *const *more,
                                 int n_more) {
    ggl_tensor *src[2 * GRAD_MAX_SRC];
    if (call->n_src + n_more > 2 * GRAD_MAX_SRC)
        return ggl_graph_fail(w->g, GGL_LIMIT, "a recurrence has %d sources", call->n_src + n_more);
    for (int k = 0; k < call->n_src + n_more; k++)
        src[k] = k < call->n_src ? ggl_grad_value(w, call->src[k]) : more[k - call->n_src];
    ggl_tensor **param = ggl_body_begin(w->g, src, call->n_src + n_more);
    for (int k = 0; param && k < call->n_src + n_more; k++) {
        grad_note *n = ggl_grad_note(w, param[k]);
        if (n)
            n->is_kept = true;
        if (n && k < call->n_src) {
            n->active = ggl_grad_is_active(w, call->src[k]);
            ggl_grad_set_copy(w, call->body->param[k], param[k]);
        }
    }
    return param;
}

ggl_tensor *ggl_grad_inline(grad_work *w, const ggl_tensor *call) {
    for (int k = 0; k < call->n_src; k++)
        ggl_grad_set_copy(w, call->body->param[k], ggl_grad_value(w, call->src[k]));
    return ggl_grad_copy_body(w, call->body, false) ? ggl_grad_copy_of(w, call->body->result)
                                                    : NULL;
}

/* --- values that are computed again ----------------------------------------------------------- */

ggl_tensor *ggl_grad_value(grad_work *w, ggl_tensor *t) {
    grad_note *n = t && !ggl_is_leaf(t) ? ggl_grad_note(w, t) : NULL;
    const int group = t ? t->group + 1 : 0;
    if (!n ||
        !(n->is_light || (group >= 0 && group < w->n_groups && w->again[group] && !n->is_kept)))
        return t;
    if (n->again)
        return n->again;
    ggl_tensor *src[GRAD_MAX_SRC];
    if (t->n_src > GRAD_MAX_SRC)
        return ggl_graph_fail(w->g, GGL_LIMIT, "a call of %d sources cannot be computed again",
                              t->n_src);
    for (int k = 0; k < t->n_src; k++)
        src[k] = ggl_grad_value(w, t->src[k]);
    ggl_tensor *y = t->op == GGL_OP_CALL ? copy_call(w, t, src) : like(w, t, src);
    n = y ? ggl_grad_note(w, t) : NULL;
    grad_note *copy = n ? ggl_grad_note(w, y) : NULL;
    if (copy) {
        n = ggl_grad_note(w, t); /* the notes may have moved */
        n->again = y;
        copy->is_kept = true;
        copy->active = n->active;
        copy->original = t;
    }
    return y;
}
