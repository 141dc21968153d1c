/* Computes where the nodes and edges of a block are drawn. Nodes are put in ranks, sources above
 * users; an edge that passes a rank has a bend there. Within a rank, the order keeps crossings
 * few, and the places are near those of the neighbours. */
#ifndef TOOLS_DRAWING_LAYOUT_H
#define TOOLS_DRAWING_LAYOUT_H

#include "drawing.h"

#define LAYOUT_GAP_X 22.0 /* between nodes of a rank */
#define LAYOUT_GAP_Y 36.0 /* between ranks, with room for two rows of labels */

typedef struct layout_item { /* a node, or a bend of an edge */
    int rank, order;
    double x, y, w, h;  /* x: of the center; y: of the top */
    double sum, weight; /* of the places of its neighbours */
} layout_item;

typedef struct layout_edge {
    int from, to;      /* indices of nodes */
    int bend, n_bends; /* indices of its bends in `item` */
    bool strong;       /* drawn straight */
} layout_edge;

typedef struct layout {
    layout_item *item; /* the nodes of the block come first */
    layout_edge *edge;
    int n_items, n_edges, n_ranks;
    double w, h;
} layout;

/* Makes the layout of a block; size() gives the w and h of nodes. GGL_NOMEM. GGL_LIMIT: more than 100000
 * nodes and bends. After an error *l is empty. */
GGL_NODISCARD ggl_status layout_make(layout *l, const drawing *d, const drawing_block *b,
                                     void (*size)(const drawing_node *n, double *w, double *h),
                                     ggl_error *err);
void layout_fini(layout *l);

#endif
