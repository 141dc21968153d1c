/* The edges of a block in a picture, and the shapes of values beside them. */
#ifndef TOOLS_SVG_EDGES_H
#define TOOLS_SVG_EDGES_H

#include <stdio.h>

#include "svg_layout.h"

#define SVG_SHAPE_SIZE 11.0 /* of the font of shapes, whose class is "s" */

typedef struct edge_ends edge_ends;

typedef struct edge_label { /* the shape of an edge's value */
    int edge, rank;         /* rank: of the node that it leaves */
    double x, y, w;         /* of the text; x: its left end */
    bool shown;
} edge_label;

typedef struct svg_edges {
    const figure_block *block;
    const layout *layout;
    edge_ends *ends;   /* [layout->n_edges] */
    edge_label *label; /* [n_labels] */
    int n_labels;
    double left, right; /* how far labels stand out of the layout */
} svg_edges;

/* True if a node is drawn as a circle instead of a box. */
bool svg_is_circle(const figure_node *n);

/* Places edges and shapes, so that no two shapes overlap; the last ones that find no room are left
 * out. Borrows b and l. False: out of memory. Ends with svg_edges_fini in any case. */
bool svg_edges_make(svg_edges *e, const figure_block *b, const layout *l);
void svg_edges_fini(svg_edges *e);

void svg_edges_draw(FILE *out, const svg_edges *e);
void svg_edges_draw_shapes(FILE *out, const svg_edges *e);

#endif
