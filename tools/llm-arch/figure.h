/* A graph as a person would draw it: the part before the layers, one layer of each kind, the
 * part after them. Nodes that only move or scale a value are part of the node that they belong
 * to. */
#ifndef TOOLS_FIGURE_H
#define TOOLS_FIGURE_H

#include <stdbool.h>

#include "ggl/backend.h"

#define FIGURE_LINES 5
#define FIGURE_INS   8

typedef enum figure_kind {
    FIGURE_PORT,      /* a value that enters or leaves the block */
    FIGURE_PRODUCT,   /* linear */
    FIGURE_ATTENTION, /* attend, cache */
    FIGURE_POSITION,  /* rope */
    FIGURE_ROW,       /* a composite over rows: norms, softmax */
    FIGURE_CURVE,     /* elementwise functions */
    FIGURE_PLUS,      /* arithmetic on two values */
    FIGURE_CHOICE,    /* pick, topk, rank */
    FIGURE_STATE,     /* a recurrent composite */
    FIGURE_MOVE       /* concat, repeat, .. */
} figure_kind;

typedef struct figure_node {
    figure_kind kind;
    const ggl_tensor *t; /* the last node that it shows; NULL: a port where a value leaves */
    char title[64], line[FIGURE_LINES][96], origin[64];
    int n_lines;
    int in[FIGURE_INS]; /* indices of nodes in the block */
    char in_shape[FIGURE_INS][48];
    int n_in;
    bool by_body;             /* the backend does not know the composite, and runs its body */
    const ggl_tensor *passes; /* of a port between parts of one graph: the value that passes */
    char of_stage[64];        /* of a port between graphs: the stage whose rows pass */
} figure_node;

typedef struct figure_block {
    char title[160];
    figure_node *node; /* sources before their users */
    int n;
    int first_layer, n_layers; /* n_layers 0: not a layer */
    uint64_t params;           /* parameters of one layer */
    uint64_t digest;           /* of a layer; equal if layers are drawn alike */
} figure_block;

/* A value that passes from one part of a graph to another: of each layer, also of those that another one stands for. */
typedef struct figure_passed {
    const ggl_tensor *t;
    int block, node; /* the port that shows it */
} figure_passed;

typedef struct figure {
    char name[64];       /* of the part; empty: the graph is whole */
    figure_block *block; /* before, each kind of layer, after */
    int n;
    figure_passed *passed; /* [n_passed], by port and by the value's id */
    size_t n_passed, cap_passed;
} figure;

/* The most figures of a descriptor: each stage, the tokens, and what guesses. */
enum { FIGURE_MOST = 20 };

/* Makes the figure of a graph's main rows, or of those of the stage that tokens read. name: of the part, "" if there is no other. b: the
 * backend whose composites are marked. False: out of memory. The graph has to stay until the figure is drawn. */
bool figure_make(figure *f, const ggl_graph *g, bool of_stage, const char *name, int n_layer,
                 const ggl_backend *b);
void figure_fini(figure *f);
/* True if the graph has rows of a stage that its main rows read. */
bool figure_has_stage(const ggl_graph *g);

#endif
