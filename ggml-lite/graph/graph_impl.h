/* The graph's private data, for the builder, folding and the scheduler; not installed. */
#ifndef GGL_GRAPH_IMPL_H
#define GGL_GRAPH_IMPL_H

#include "ggl/internal/alloc.h"
#include "ggl/graph.h"

typedef struct node_list {
    ggl_tensor **at;
    size_t n, cap;
} node_list;

/* A body that is being built. */
typedef struct open_body {
    node_list nodes, params, sources; /* params[i] stands for sources[i] */
    bool recurrent;
    int64_t chunk;    /* ggl_body.chunk */
    size_t n_forward; /* of the nodes; the others run backward. 0: none does */
    int scope;        /* number of the body, from 1 on */
    struct open_body *outer;
} open_body;

struct ggl_graph {
    ggl_graph_params params;
    ggl_arena arena; /* nodes, names, shapes, constants */
    ggl_error error; /* the first one */
    node_list nodes, inputs, outputs;
    /* inputs that operators read by themselves, for each kind of rows; NULL if none does */
    const ggl_tensor *pos[GGL_ROWS_COUNT], *slot[GGL_ROWS_COUNT], *end[GGL_ROWS_COUNT], *page;
    int64_t n_pages
        [GGL_ROWS_READ]; /* of stores of main rows, and of the stage's: see ggl_graph_n_pages */
    ggl_store **store;
    size_t n_stores, cap_stores;
    open_body *body; /* innermost; NULL at top level */
    int n_ids, n_scopes, group;
    const char *origin;
    bool finished, settled;
};

/* Checks the sources of the new node y and sets its n_dims and ne; op, type, src and num are set.
 * On failure sets the graph's error and returns false. */
bool ggl_shape_infer(ggl_graph *g, ggl_tensor *y);

/* Sets the graph's error unless there is one already; returns NULL. */
GGL_INTERNAL_API void *ggl_graph_fail(ggl_graph *g, ggl_status s, const char *fmt, ...)
    GGL_PRINTF(3, 4);

/* Returns why t cannot be an output, to follow its name in a message; NULL: it can. */
const char *ggl_output_fault(const ggl_tensor *t);

/* Sets view_of, dense and gather of a new node from its sources and shape. */
void ggl_facts_init(ggl_tensor *t);

/* Sets `needed`, `computed` and the type of all nodes. */
void ggl_graph_mark(ggl_graph *g);

/* Drops the stores that no needed node uses, sizes the others, and adds the input "page" if some
 * share pages. Returns false, and sets the graph's error, if they do not fit into memory. */
bool ggl_graph_size_stores(ggl_graph *g);

/* Returns false, and sets the graph's error, if t has more than GGL_MAX_ELEMENTS elements for the
 * largest batch. */
bool ggl_graph_bound(ggl_graph *g, const ggl_tensor *t);

#endif
