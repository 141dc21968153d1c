/* Is a graph computed as it should be? Every node is run on a backend and on the reference, with the same inputs (those that
 * the reference computed), so that an error shows where it is made and nowhere else. Then the whole graph is run as it always
 * is, and must give what its nodes gave, each fed by the one before.
 *
 * What a node may be off: inputs of the reference are disturbed as much as the arithmetic of a backend may round them (f32
 * operations; activations to 8 bits where weights are quantized, to bf16 where they are), and how far the result moves is the
 * unit. `departure` is in limits: a node departs where it is above 1. */
#ifndef TOOLS_VERIFY_H
#define TOOLS_VERIFY_H

#include "ggl/sched.h"

typedef struct verify_node {
    const ggl_tensor *node;
    double departure;   /* 1: at the limit */
    double error, unit; /* the worst element's, and what was expected of it */
    double got, want;
    int64_t token, element; /* where */
    const char *what;       /* "value", "keys", "values" (of a cache) */
} verify_node;

typedef struct verify_result {
    verify_node *at; /* in the graph's order */
    size_t n;
    int first;        /* index of the first that departs; -1: none */
    size_t n_refused; /* nodes that the backend does not have: not verified */
    /* the graph as a whole against its nodes one by one: largest difference of outputs */
    double whole;
    double rounding; /* the nodes one by one against the reference: largest difference of outputs */
    double size;     /* the largest output */
    bool whole_departs;
    const ggl_tensor *first_nan; /* the first node whose exact value has a NaN; NULL: none */
    /* numbers of the outputs, and how many of the exact ones are NaN */
    size_t n_outputs, n_nan_outputs;
} verify_result;

/* What the backend refuses runs on the reference. GGL_UNSUPPORTED: the reference does not have a node either.
 * token[n] go into slot 0; n is at most the graph's n_batch and n_pos. The graph is finished and folded. */
ggl_status verify_graph(verify_result *out, ggl_graph *g, ggl_backend *b, ggl_backend *reference,
                        const int32_t *token, int n, ggl_error *err);
void verify_result_fini(verify_result *r);

#endif
