/* The parts of verify.c; private to them. */
#ifndef LIBRARY_VERIFY_IMPL_H
#define LIBRARY_VERIFY_IMPL_H

#include <float.h>

#include "node_run.h"
#include "verify.h"

#define VERIFY_EPS ((double)FLT_EPSILON)

typedef struct verify {
    const ggl_graph *g;
    node_map m;
    /* the reference; the backend with the reference's inputs; the backend with its own results
     * as inputs */
    node_device exact, fast, chain;
    /* the reference with the chain's inputs, for nodes that the backend refuses; open only if
     * there are any */
    node_device mirror;
    /* the reference with disturbed values; open only if the whole graph departs */
    node_device shaken;
    float **value;      /* [id]: what the reference computed */
    float *got, *probe; /* room for the largest value */
    float *moved;       /* the same: how far each element moved when the inputs were disturbed */
    double *unit;       /* [token] */
    uint64_t random;
    verify_result *out;
    size_t cap;
    ggl_error *err;
} verify;

/* --- verify_unit.c ---------------------------------------------------------------------------- */

typedef enum verify_rounding {
    VERIFY_EXACT,
    VERIFY_FLOAT,
    VERIFY_BF16,
    VERIFY_BYTES
} verify_rounding;

/* Returns how a backend may round the inputs of a node. */
verify_rounding llm_verify_rounding_of(const ggl_tensor *t);
/* Returns a number in [-1, 1), the same sequence on every machine. */
double llm_verify_noise(verify *v);
/* True if x is a computed f32 value, which can be disturbed. */
bool llm_verify_is_value(const verify *v, const ggl_tensor *x);
/* Sets unit[token] for a node: how far its result may be off, and moved[] to how far each element
 * moves. The inputs are disturbed n_probes times. */
ggl_status llm_verify_probe(verify *v, ggl_tensor *t, int n_probes);

/* --- verify_whole.c --------------------------------------------------------------------------- */

/* Runs the graph the usual way, and compares its outputs with those of the chain. */
ggl_status llm_verify_whole(verify *v, ggl_graph *g, const int32_t *token);

/* --- verify.c --------------------------------------------------------------------------------- */

/* Sets the inputs of a device, if it is open. */
ggl_status llm_verify_set_inputs(verify *v, node_device *d, const int32_t *token);

#endif
