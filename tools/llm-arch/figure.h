/* A graph as a person draws it: what comes before the layers, one of each kind of layer, what comes after. Nodes that only
 * move or scale a value are part of the node that they belong to. */
#ifndef TOOLS_FIGURE_H
#define TOOLS_FIGURE_H

#include <stdbool.h>

#include "ggl/backend.h"

#define FIGURE_LINES 5
#define FIGURE_INS   8

typedef enum figure_kind {
    FIGURE_PORT,      /* a value from outside the block, or one that leaves it */
    FIGURE_PRODUCT,   /* linear */
    FIGURE_ATTENTION, /* attend, cache */
    FIGURE_POSITION,  /* rope */
    FIGURE_ROW,       /* a composite over rows: norms, softmax */
    FIGURE_CURVE,     /* elementwise functions */
    FIGURE_PLUS,      /* arithmetic of two values */
    FIGURE_CHOICE,    /* pick, topk, rank */
    FIGURE_STATE,     /* what passes from token to token */
    FIGURE_MOVE       /* concat, repeat, .. */
} figure_kind;

typedef struct figure_node {
    figure_kind kind;
    const ggl_tensor *t; /* the last of the nodes it stands for; NULL: a port that leaves */
    char title[64], line[FIGURE_LINES][96], origin[64];
    int n_lines;
    int in[FIGURE_INS]; /* nodes of the block */
    char in_shape[FIGURE_INS][48];
    int n_in;
    bool by_body; /* the backend does not know the composite and runs its body */
} figure_node;

typedef struct figure_block {
    char title[160];
    figure_node *node; /* sources before their users */
    int n;
    int first_layer, n_layers; /* n_layers 0: no layer */
    uint64_t params;           /* of one */
    uint64_t digest;           /* of a layer; equal for those that are drawn alike */
} figure_block;

typedef struct figure {
    figure_block *block; /* before, each kind of layer, after */
    int n;
} figure;

/* b: whose composites are known. false: out of memory. */
bool figure_make(figure *f, const ggl_graph *g, int n_layer, const ggl_backend *b);
void figure_fini(figure *f);

#endif
