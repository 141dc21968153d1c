/* Makes nodes of the graph, with checks that the graph itself does not make. */
#include <stdio.h>

#include "compile.h"
#include "ggl/internal/graph.h"

bool llm_arch_graph_ok(arch_eval *ev, arch_place p) {
    ggl_error e;
    ggl_status s = ggl_graph_error(ev->g, &e);
    if (s != GGL_OK)
        llm_arch_error_hint(ev, s, p, NULL, "%s", e.msg);
    return s == GGL_OK;
}

/* True if t is a large product of values that depend on no token, or made of one. */
static bool is_large(const arch_eval *ev, const ggl_tensor *t) {
    bool large = ggl_is_large_product(t);
    for (int k = 0; k < t->n_src && !large && !ggl_is_batched(t); k++)
        large = t->src[k] && (size_t)t->src[k]->id < ev->cap_made && ev->made[t->src[k]->id].large;
    return large;
}

void llm_arch_note_made(arch_eval *ev, arch_place p, ggl_tensor *t) {
    if (!llm_arch_push(ev, &ev->made, &ev->cap_made, (size_t)t->id + 1, sizeof *ev->made))
        return;
    /* for a node made in the prelude, the place is the descriptor's call */
    ev->made[t->id] =
        (arch_made){.t = t, .place = llm_arch_users_place(ev, p), .large = is_large(ev, t)};
}

/* True for elementwise operators of several operands. */
static bool is_elementwise(ggl_op op) {
    return op >= GGL_OP_ADD && op <= GGL_OP_WHERE;
}

/* Refuses to repeat a dimension of 1 that has a name. Such a dimension (a number of heads, a
 * size) happens to be 1 in this model, so repeating it would hide a mistake. A 1 that is
 * written, or results from sum or amax, has no name. */
static bool check_ones(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src, int n_src) {
    char a[128], b[128];
    for (int i = 0; i < n_src; i++)
        for (int k = 0; k < n_src; k++)
            for (int d = 0; d < src[i]->n_dims && d < src[k]->n_dims; d++)
                if (src[i]->ne[d] == 1 && src[i]->dim_name[d] && src[k]->ne[d] > 1) {
                    llm_arch_error_hint(ev, GGL_SHAPE, p,
                                        "only a written 1 is broadcast: reshape(x, 1, ..)",
                                        "'%s' of %s and %s: %s just happens to be 1",
                                        ggl_op_get(op).name, ggl_shape_text(src[0], a, sizeof a),
                                        ggl_shape_text(src[1], b, sizeof b), src[i]->dim_name[d]);
                    return false;
                }
    return true;
}

/* Names the dimensions of 1, for check_ones. The builder names dimensions by their sizes, which
 * for 1 would be a guess. */
static void name_ones(ggl_tensor *t) {
    for (int d = 0; d < t->n_dims; d++) {
        if (t->ne[d] != 1 || t->dim_name[d])
            continue;
        if (t->op == GGL_OP_LINEAR && d == 0)
            t->dim_name[d] = t->src[1]->dim_name[1];
        else if (t->op == GGL_OP_PICK && d < t->src[0]->n_dims - 1)
            t->dim_name[d] = t->src[0]->dim_name[d];
        else if (t->op == GGL_OP_ATTEND)
            t->dim_name[d] = d ? t->src[0]->dim_name[d] : t->src[1]->src[1]->dim_name[d];
        else if (is_elementwise(t->op))
            for (int i = 0; i < t->n_src && !t->dim_name[d]; i++)
                t->dim_name[d] = d < t->src[i]->n_dims ? t->src[i]->dim_name[d] : NULL;
        else if (t->n_src > 0 && t->src[0]->ne[d] == 1 && t->op != GGL_OP_RESHAPE &&
                 t->op != GGL_OP_TRANSPOSE)
            t->dim_name[d] = t->src[0]->dim_name[d];
    }
}

/* Returns the weight at the end of a short chain of first sources, or NULL. */
static const ggl_tensor *large_weight(const ggl_tensor *t) {
    for (int depth = 0; t && depth<8; depth++, t = t->n_src> 0 ? t->src[0] : NULL)
        if (t->op == GGL_OP_WEIGHT)
            return t;
    return NULL;
}

/* Limits the size of values that depend on no token, which are computed once at load. False:
 * reported. */
static bool check_constant(arch_eval *ev, arch_place p, const ggl_tensor *t) {
    if (ggl_is_batched(t) || t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT ||
        t->op == GGL_OP_CACHE || t->op == GGL_OP_KEEP)
        return true;
    const double size = 4.0 * (double)ggl_count(t);
    const bool large = is_large(ev, t);
    const size_t most = large ? ARCH_MAX_PRODUCTS : ARCH_MAX_CONST;
    size_t *bytes = large ? &ev->product_bytes : &ev->const_bytes;
    if (size + (double)*bytes <= (double)most) {
        *bytes += (size_t)size;
        return true;
    }
    char shape[128];
    const ggl_tensor *w = NULL;
    for (int k = 0; k < t->n_src && !w; k++)
        w = large_weight(t->src[k]);
    if (w)
        llm_arch_error_hint(ev, GGL_LIMIT, p, NULL,
                            "arithmetic on the large weight %s %s: convert the file instead",
                            w->name, ggl_shape_text(w, shape, sizeof shape));
    else
        llm_arch_error_hint(ev, GGL_LIMIT, p, NULL,
                            "the constant %s: computed constants need more than %zu MiB",
                            ggl_shape_text(t, shape, sizeof shape), most >> 20);
    return false;
}

ggl_tensor *llm_arch_plain_node(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src,
                                int n_src, const double *num, int n_num) {
    if (is_elementwise(op) && !check_ones(ev, p, op, src, n_src))
        return NULL;
    if (ev->at != ev->origin) {
        char origin[2 * ARCH_MAX_NAME + 16];
        snprintf(origin, sizeof origin, "%.128s:%d", ev->at->place.text->name, ev->at->line);
        ggl_graph_set_origin(ev->g, origin);
        ev->origin = ev->at;
    }
    ggl_tensor *t = ggl_graph_op(ev->g, op, src, n_src, num, n_num);
    if (!llm_arch_graph_ok(ev, p) || !t || !check_constant(ev, p, t))
        return NULL;
    name_ones(t);
    llm_arch_note_made(ev, p, t);
    return llm_arch_note_rows(ev, p, t) ? t : NULL;
}

ggl_tensor *llm_arch_input(arch_eval *ev, arch_place p, const char *name, ggl_type type, int n_dims,
                           const int64_t *ne) {
    ggl_tensor *t = ggl_graph_find_input(ev->g, name);
    if (!t)
        t = ggl_graph_input(ev->g, name, type, n_dims, ne, true);
    return llm_arch_graph_ok(ev, p) ? t : NULL;
}
