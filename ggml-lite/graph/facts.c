/* Derives facts about the nodes of a graph, once: which are views of weights, which are gathers
 * that products do themselves, which an output needs, which a backend computes, and how many bytes
 * each has. Folding, placement, segments, programs and repacking rely on these facts. */
#include "ggl/internal/types.h"
#include "ggl/internal/graph.h"
#include "graph_impl.h"

/* --- when a node is made ---------------------------------------------------------------------- */

void ggl_facts_init(ggl_tensor *t) {
    const ggl_tensor *x = t->n_src > 0 ? t->src[0] : NULL;
    if (t->op == GGL_OP_WEIGHT) {
        t->view_of = t;
        t->dense = true;
    } else if (t->op == GGL_OP_SPLIT && x->view_of && !ggl_is_batched(t)) {
        t->view_of = x->view_of;
        t->dense = x->dense &&
                   t->num[SPLIT_DIM] == x->n_dims - 1; /* split along the outermost dimension */
    } else if (t->op == GGL_OP_RESHAPE && x->view_of && x->dense) {
        t->view_of = x->view_of;
        t->dense = true;
    } else if (t->op == GGL_OP_PICK) {
        t->gather = x->n_dims == 3 && !ggl_is_batched(x);
    }
}

bool ggl_graph_bound(ggl_graph *g, const ggl_tensor *t) {
    double n = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        n *= t->ne[d] == GGL_N ? (double)g->params.n_batch : (double)t->ne[d];
    if (n <= (double)GGL_MAX_ELEMENTS)
        return true;
    char shape[256];
    ggl_graph_fail(g, GGL_LIMIT, "%s%s%s has %.3g elements%s; at most 2^48 are allowed",
                   t->name ? t->name : ggl_op_get(t->op).name, t->n_dims ? " " : "",
                   t->n_dims ? ggl_shape_text(t, shape, sizeof shape) : "", n,
                   ggl_is_batched(t) ? " for the largest batch" : "");
    return false;
}

/* --- when the graph is finished --------------------------------------------------------------- */

/* Marks the sources of needed nodes as needed, and all of their bodies, which hold only what runs.
 * Goes from last to first, as sources precede the nodes that read them. */
static void mark_needed(ggl_tensor *const *node, size_t n) {
    for (size_t i = n; i-- > 0;) {
        ggl_tensor *t = node[i];
        if (!t->needed)
            continue;
        for (int k = 0; k < t->n_src; k++)
            if (t->src[k])
                t->src[k]->needed = true;
        if (!t->body)
            continue;
        ggl_body *b = t->body;
        b->result->needed = true;
        for (int k = 0; k < b->n_node; k++)
            b->node[k]->needed = true;
        mark_needed(b->node, (size_t)b->n_node);
    }
}

/* Sets the type of calls and of nodes that only move elements. A computed one is i32 if its source
 * (or body's result) is, else f32; but in a body, a part of a param has the param's type, because it may be read where it lies, in a
 * weight. A gather that is not computed has the type of its stack; an f64 constant counts as f32, because it is rounded before it
 * is read (settle.c). */
static void set_type(ggl_tensor *t, bool in_body) {
    bool part = t->op == GGL_OP_RESHAPE || t->op == GGL_OP_SPLIT,
         moved = part || t->op == GGL_OP_PICK;
    const ggl_tensor *from = t->body ? t->body->result : moved ? t->src[0] : NULL;
    if (from && t->computed && part && in_body && from->type != GGL_F64)
        t->type = from->type;
    else if (from && t->computed)
        t->type = from->type == GGL_I32 ? GGL_I32 : GGL_F32;
    else if (from && t->gather)
        t->type = from->type == GGL_F64 ? GGL_F32 : from->type;
}

/* Sets `computed` of the n nodes. A gather is computed if anything but a product reads it. */
static void mark_computed(ggl_tensor *const *node, size_t n) {
    for (size_t i = 0; i < n; i++)
        node[i]->computed =
            node[i]->needed && !ggl_is_leaf(node[i]) && !node[i]->view_of && !node[i]->gather;
    for (size_t i = 0; i < n; i++) {
        const ggl_tensor *t = node[i];
        for (int k = 0; t->needed && k < ggl_n_reads(t); k++) {
            ggl_tensor *x = ggl_read(t, k);
            if (x && x->gather)
                x->computed = true;
        }
    }
}

/* Sets the types of the n nodes, and `computed` and the types in their bodies. */
static void mark_bodies_and_types(ggl_tensor *const *node, size_t n, bool in_body) {
    for (size_t i = 0; i < n; i++) {
        ggl_body *b = node[i]->body;
        for (int k = 0; b && k < b->n_param; k++)
            b->param[k]->type = node[i]->src[k]->type;
        if (b) {
            bool result = b->result->gather && node[i]->needed;
            mark_computed(b->node, (size_t)b->n_node);
            b->result->computed |= result;
            mark_bodies_and_types(b->node, (size_t)b->n_node, true);
        }
        set_type(node[i], in_body);
    }
}

void ggl_graph_mark(ggl_graph *g) {
    for (size_t i = 0; i < g->nodes.n; i++)
        g->nodes.at[i]->needed = false;
    for (size_t i = 0; i < g->outputs.n; i++)
        g->outputs.at[i]->needed = true;
    for (size_t i = 0; i < g->nodes.n; i++)
        g->nodes.at[i]->needed |= g->nodes.at[i]->into != NULL;
    mark_needed(g->nodes.at, g->nodes.n);
    mark_computed(g->nodes.at, g->nodes.n);
    for (size_t i = 0; i < g->outputs.n; i++)
        g->outputs.at[i]->computed |= g->outputs.at[i]->gather;
    mark_bodies_and_types(g->nodes.at, g->nodes.n, false);
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns the gather that is the matrix of the product `node`; NULL if none. */
static const ggl_tensor *gathered_matrix(const ggl_tensor *node) {
    const ggl_tensor *w = ggl_is_product(node) ? node->src[LINEAR_W] : NULL;
    return w && w->gather ? w : NULL;
}

int ggl_n_reads(const ggl_tensor *node) {
    return gathered_matrix(node) ? 4 : node->n_src;
}

ggl_tensor *ggl_read(const ggl_tensor *node, int k) {
    const ggl_tensor *w = gathered_matrix(node);
    if (w && (k == 1 || k == 3))
        return w->src[k == 1 ? 0 : 1];
    return k < node->n_src ? node->src[k] : NULL;
}

bool ggl_extents_bytes(ggl_type type, const int64_t ne[GGL_MAX_DIMS], int64_t n, size_t *out) {
    bool fits = ggl_row_size_checked(type, ne[0], out);
    for (int d = 1; d < GGL_MAX_DIMS && fits; d++)
        fits = ggl_size_mul(*out, (uint64_t)(ne[d] == GGL_N ? n : ne[d]), out);
    return fits;
}

bool ggl_value_bytes(const ggl_tensor *t, int64_t n, size_t *out) {
    return ggl_extents_bytes(t->type, t->ne, n, out);
}

const char *ggl_output_fault(const ggl_tensor *t) {
    if (t->op == GGL_OP_CACHE || t->op == GGL_OP_KEEP)
        return "has no value: cache and keep only store one";
    if (t->into)
        return "is assigned to a variable, where it can be read";
    if (t->op == GGL_OP_WEIGHT || t->op == GGL_OP_CONST || t->view_of)
        return "is a weight, a part of one, or a constant: outputs are computed from a batched "
               "input";
    if (t->op == GGL_OP_INPUT)
        return "is an input, which nothing computes: ggl_unary(g, GGL_OP_CAST, t) is a computed "
               "copy";
    if (t->type == GGL_I32) /* other types become f32 once it is known what is computed */
        return "is of type i32, and outputs are f32: ggl_unary(g, GGL_OP_CAST, t) converts it";
    return NULL;
}
