/* What graph.c, shape.c, fold.c and sched/sched.c share about a graph; not installed. */
#ifndef GGL_GRAPH_IMPL_H
#define GGL_GRAPH_IMPL_H

#include "ggl/alloc.h"
#include "ggl/graph.h"

typedef struct node_list {
    ggl_tensor **at;
    size_t n, cap;
} node_list;

/* A body that is being built. */
typedef struct open_body {
    node_list nodes, params, sources;
    bool recurrent;
    int scope; /* serial number */
    struct open_body *outer;
} open_body;

struct ggl_graph {
    ggl_graph_params params;
    ggl_arena arena; /* nodes, names, shapes, constants */
    ggl_error error; /* the first */
    node_list nodes, inputs, outputs;
    const ggl_tensor *pos, *slot; /* the inputs that operators are supplied with; NULL: none is */
    ggl_store **store;
    size_t n_stores, cap_stores;
    open_body *body; /* innermost; NULL at top level */
    int n_ids, n_scopes, group;
    const char *origin;
    bool finished, settled;
};

/* Fills y's n_dims and ne from op, src, num; y->type is set already. False: the graph has the
 * error. */
bool ggl_shape_infer(ggl_graph *g, ggl_tensor *y);

/* Sets the graph's first error; returns NULL. */
void *ggl_graph_fail(ggl_graph *g, ggl_status s, const char *fmt, ...) GGL_PRINTF(3, 4);

/* Sets view_of, dense and gather of a new node, whose sources and shape are known. */
void ggl_facts_init(ggl_tensor *t);

/* Sets `needed` and `computed` of all nodes, and the types of what is computed. */
void ggl_graph_mark(ggl_graph *g);

/* Fails if t, for the largest batch, has more than GGL_MAX_ELEMENTS elements. */
bool ggl_graph_bound(ggl_graph *g, const ggl_tensor *t);

/* Rounds constants to f32 where no double is wanted; once, by fold or the scheduler. */
ggl_status ggl_graph_settle(ggl_graph *g, ggl_error *err);

#endif
