#include "build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "weights.h"

ggl_op r_ggl_op(r_op op) {
    return ggl_op_find(r_op_name[op]);
}

const char *r_input_name(int i, char *buf) {
    snprintf(buf, 16, "in%d", i);
    return buf;
}

static ggl_type type_of(int type) {
    const ggl_type_info *t = ggl_type_find(w_types[type].name);
    return t ? t->type : GGL_TYPE_LIMIT;
}

static ggl_tensor *leaf(r_built *b, const r_node *t, int i) {
    char name[16];
    int64_t ne[4] = {t->ne[0], t->ne[1], t->ne[2], t->ne[3]};
    int n = r_count(t);
    r_input_name(i, name);
    if (t->position)
        return ggl_graph_find_input(b->g, "pos");
    if (t->op == R_INPUT)
        return ggl_graph_input(b->g, name, t->integer ? GGL_I32 : GGL_F32, t->n_dims, ne,
                               t->batched);
    double *v = calloc((size_t)n, sizeof *v);
    ggl_tensor *x = NULL;
    if (t->op == R_CONST) {
        for (int e = 0; e < n && v; e++)
            v[e] = r_const_value(t, e);
        x = v ? ggl_graph_const(b->g, t->n_dims, ne, v) : NULL;
    } else {
        const w_info *w = &w_types[t->type];
        b->data[i] =
            aligned_alloc(64, ((size_t)n / (size_t)w->block * (size_t)w->size + 63) / 64 * 64);
        if (v && b->data[i]) {
            w_make(t->type, t->salt, t->spread, n, b->data[i], v);
            x = ggl_graph_weight(b->g, name, type_of(t->type), t->n_dims, ne, b->data[i]);
        }
    }
    free(v);
    return x;
}

static ggl_tensor *apply(r_built *b, const r_node *t, ggl_tensor *const *at) {
    ggl_tensor *src[R_MOST_SRC];
    for (int k = 0; k < t->n_src; k++)
        src[k] = t->src[k] < 0 ? NULL : at[t->src[k]];
    return ggl_graph_op(b->g, r_ggl_op(t->op), src, t->n_src, t->num, t->n_num);
}

/* Whether the library has given the node the program's shape. */
static bool same_shape(const r_node *t, const ggl_tensor *x) {
    bool same = x->n_dims == t->n_dims && ggl_is_batched(x) == t->batched &&
                (x->type == GGL_I32) == t->integer;
    for (int d = 0; d < (t->batched ? 3 : 4); d++)
        same = same && x->ne[d] == t->ne[d];
    return same;
}

static ggl_status check(const r_built *b, const r_program *p, int i, const ggl_tensor *x,
                        ggl_error *err) {
    const r_node *t = &p->node[i];
    char text[256];
    if (!x) {
        ggl_status st = ggl_graph_error(b->g, err);
        return ggl_within(err, st == GGL_OK ? ggl_fail(err, GGL_NOMEM, "out of memory") : st, "t%d",
                          i);
    }
    if (t->op == R_CACHE || t->op == R_KEEP || same_shape(t, x))
        return GGL_OK;
    return ggl_fail(err, GGL_SHAPE, "t%d = %s: the library makes %s%s%s of it", i, r_op_name[t->op],
                    ggl_shape_text(x, text, sizeof text), ggl_is_batched(x) ? ", batched" : "",
                    x->type == GGL_I32 ? ", i32" : "");
}

static ggl_status nodes(r_built *b, const r_program *p, ggl_error *err) {
    ggl_tensor *at[R_MOST_NODES] = {NULL}, *src[R_MOST_SRC];
    ggl_status st = GGL_OK;
    for (int i = 0; i < p->n && st == GGL_OK; i++) {
        const r_node *t = &p->node[i];
        ggl_graph_set_group(b->g, t->group);
        if (t->op == R_BEGIN) {
            for (int k = 0; k < t->n_src; k++)
                src[k] = at[t->src[k]];
            ggl_tensor **param = ggl_body_begin(b->g, src, t->n_src);
            for (int k = 0; k < t->n_src && param; k++)
                at[i + 1 + k] = param[k];
            st = param ? GGL_OK : ggl_graph_error(b->g, err);
            continue;
        }
        if (t->op == R_CALL)
            at[i] = ggl_body_end(b->g, t->call, at[t->src[0]], t->num, t->n_num);
        else if (t->op != R_PARAM)
            at[i] = r_is_leaf(t) ? leaf(b, t, i) : apply(b, t, at);
        st = check(b, p, i, at[i], err);
    }
    for (int k = 0; k < p->n_outputs && st == GGL_OK; k++) {
        char name[16];
        snprintf(name, sizeof name, "out%d", k);
        if (!ggl_graph_output(b->g, name, at[p->output[k]]))
            st = ggl_graph_error(b->g, err);
    }
    return st;
}

ggl_status r_build(r_built *b, const r_program *p, ggl_error *err) {
    *b = (r_built){0};
    const ggl_graph_params params = {.size = sizeof params,
                                     .n_pos = p->n_pos,
                                     .n_batch = p->n_batch,
                                     .n_slots = p->n_slots,
                                     .type_k = type_of(p->type_k),
                                     .type_v = type_of(p->type_v)};
    b->g = ggl_graph_new(&params);
    if (!b->g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_graph_input(b->g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(b->g, "slot", GGL_I32, 0, NULL, true);
    ggl_status st = nodes(b, p, err);
    return st == GGL_OK ? ggl_graph_finish(b->g, err) : st;
}

void r_built_free(r_built *b) {
    ggl_graph_free(b->g);
    for (int i = 0; i < R_MOST_NODES; i++)
        free(b->data[i]);
}
