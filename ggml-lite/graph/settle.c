/* Rounds constants to f32. They are computed as f64 and rounded once, at the end of folding or when
 * the graph is scheduled. Rope frequencies stay f64, because angles are computed in double. */
#include "ggl/internal/graph.h"
#include "graph_impl.h"

/* Returns the f32 copy of the f64 constant t, made on first use. NULL: out of memory. */
static ggl_tensor *as_f32(ggl_graph *g, ggl_tensor *t, ggl_tensor **twin) {
    if (twin[t->id])
        return twin[t->id];
    ggl_tensor *f = ggl_arena_alloc(&g->arena, 1, sizeof *f);
    size_t n = t->size / sizeof(double);
    float *data = ggl_arena_alloc(&g->arena, n, sizeof *data);
    if (!f || !data)
        return ggl_graph_fail(g, GGL_NOMEM, "out of memory for constants");
    for (size_t i = 0; i < n; i++)
        data[i] = (float)((const double *)t->data)[i];
    *f = *t;
    f->id = g->n_ids++;
    f->type = GGL_F32;
    f->data = data;
    f->size = n * sizeof *data;
    return twin[t->id] = f;
}

/* Makes the n nodes and their bodies read f32 copies of f64 constants. */
static void narrow(ggl_graph *g, ggl_tensor *const *node, size_t n, ggl_tensor **twin) {
    for (size_t i = 0; i < n; i++) {
        ggl_tensor *t = node[i];
        bool rope = t->op == GGL_OP_ROPE_HALF || t->op == GGL_OP_ROPE_PAIR;
        for (int k = 0; k < t->n_src && t->needed; k++)
            if (t->src[k] && t->src[k]->op == GGL_OP_CONST && t->src[k]->type == GGL_F64 &&
                !(rope && k == 1))
                t->src[k] = as_f32(g, t->src[k], twin);
        if (t->body && t->body->result->op == GGL_OP_CONST && t->body->result->type == GGL_F64)
            t->body->result = as_f32(g, t->body->result, twin);
        if (t->body)
            narrow(g, t->body->node, (size_t)t->body->n_node, twin);
        if (g->error.status != GGL_OK)
            return;
    }
}

ggl_status ggl_graph_settle(ggl_graph *g, ggl_error *err) {
    if (g->settled)
        return GGL_OK;
    ggl_tensor **twin =
        ggl_calloc((size_t)g->n_ids, sizeof *twin); /* f32 copies, by id of the f64 */
    if (!twin)
        return ggl_fail(err, GGL_NOMEM, "out of memory for constants");
    narrow(g, g->nodes.at, g->nodes.n, twin);
    ggl_free(twin);
    ggl_graph_mark(g); /* nodes that only move constants change their type, too */
    g->settled = true;
    return ggl_graph_error(g, err);
}
