/* A program as the library's graph, through its public calls alone. */
#ifndef RANDOM_BUILD_H
#define RANDOM_BUILD_H

#include "ggl/graph.h"
#include "program.h"

typedef struct r_built {
    ggl_graph *g;
    void *data[R_MOST_NODES]; /* of weights */
} r_built;

/* GGL_OK; else what the library refuses, or where its shapes are not the program's. Freed in any
 * case by r_built_free. */
ggl_status r_build(r_built *b, const r_program *p, ggl_error *err);
void r_built_free(r_built *b);
/* The input's name; buf of 16. */
const char *r_input_name(int i, char *buf);
/* The library's operator for one of ours; GGL_OP_COUNT: it has none (BEGIN). */
ggl_op r_ggl_op(r_op op);

#endif
