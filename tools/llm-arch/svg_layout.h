/* Where the nodes and edges of a block are drawn. Nodes stand in ranks, sources above users; an edge that passes ranks has a
 * bend in each. Within a rank the order lessens crossings, and the places are those nearest to the neighbours'. */
#ifndef TOOLS_SVG_LAYOUT_H
#define TOOLS_SVG_LAYOUT_H

#include "figure.h"

typedef struct layout_item { /* a node, or a bend of an edge */
    int rank, order;
    double x, y, w, h; /* x: the middle; y: the top */
} layout_item;

typedef struct layout_edge {
    int from, to, which; /* nodes; which of to's inputs */
    int bend, n_bends;   /* items */
    bool stream;         /* of what layers add to: drawn straight */
} layout_edge;

typedef struct layout {
    layout_item *item; /* the block's nodes come first */
    layout_edge *edge;
    int n_items, n_edges, n_ranks;
    double w, h;
} layout;

/* w and h of the nodes are given by `size`. GGL_NOMEM; GGL_LIMIT: more than 100000 nodes and bends. On failure *l is empty. */
GGL_NODISCARD ggl_status layout_make(layout *l, const figure_block *b,
                                     void (*size)(const figure_node *n, double *w, double *h),
                                     ggl_error *err);
void layout_fini(layout *l);

#endif
