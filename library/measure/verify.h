/* Checks that a backend computes a graph right. Runs every node on the backend and on the
 * reference, with the same inputs (those that the reference computed), so that an error shows only
 * at the node that makes it. Then runs the whole graph the usual way, which must give what its
 * nodes gave, one after the other.
 *
 * The allowed error of a node is found by disturbing the reference's inputs as much as a backend
 * may round them (f32 operations; activations to 8 bits for quantized weights, to bf16 for bf16
 * weights); the movement of the result is the unit. `departure` is in limits: a node departs if
 * it is above 1. */
#ifndef LIBRARY_VERIFY_H
#define LIBRARY_VERIFY_H

#include "ggl/sched.h"

/* Called before node `done` of n is compared, and with done = n before the whole run is. False: GGL_CANCELLED. */
typedef struct verify_watch {
    bool (*progress)(void *ctx, size_t done, size_t n);
    void *ctx;
} verify_watch;

typedef struct verify_node {
    const ggl_tensor *node;
    double departure;   /* 1: just at the limit */
    double error, unit; /* of the worst element: its error, and the unit it is measured by */
    double got, want;
    int64_t token, element; /* the worst element's place */
    const char *what;       /* "value", "keys", "values" (of a cache) */
} verify_node;

typedef struct verify_result {
    verify_node *at; /* in the graph's order */
    size_t n;
    int first;        /* index of the first that departs; -1: none */
    size_t n_refused; /* nodes that the backend refuses: not verified */
    /* largest difference of outputs between the whole graph and its nodes run one by one */
    double whole;
    /* largest difference of outputs between the nodes one by one and the reference */
    double rounding;
    double size; /* the largest output */
    bool whole_departs;
    const ggl_tensor *first_nan; /* the first node whose exact value has a NaN; NULL: none */
    /* the first node whose exact value has a NaN or +infinity; NULL: none. -infinity is what descriptors make of tokens to leave out. */
    const ggl_tensor *first_not_finite;
    /* how many numbers the outputs have, and how many of the exact ones are NaN, or +infinity */
    size_t n_outputs, n_nan_outputs, n_infinite_outputs;
} verify_result;

/* Verifies a finished and folded graph. The reference runs what the backend refuses. token[n] go
 * into slot 0; n is at most the graph's n_batch and n_pos. GGL_UNSUPPORTED: the reference lacks
 * a node, too. watch may be NULL. */
ggl_status llm_verify_graph(verify_result *out, ggl_graph *g, ggl_backend *b,
                            ggl_backend *reference, const int32_t *token, int n,
                            const verify_watch *watch, ggl_error *err);
void llm_verify_result_fini(verify_result *r);

#endif
