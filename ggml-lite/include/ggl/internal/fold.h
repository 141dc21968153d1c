/* Constant folding: values that depend on no input are computed before the first run.
 *
 * Threads: as ggl/graph.h says. */
#ifndef GGL_FOLD_H
#define GGL_FOLD_H

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes every node that depends on no input, and replaces it by a constant. b is the backend
 * that computes them; the reference backend does so in double. Call once, between ggl_graph_finish
 * and ggl_sched_new. Rope frequencies stay f64, other constants become f32.
 *
 * products: computes large products (ggl_is_large_product), and what is made of them, in f32, as it does in a run; NULL: b does. The
 * rows that a model's matrices make of its table of relative positions are such products, which take the reference backend
 * seconds. Weights are read where they are, if the backend can, and not copied.
 *
 * GGL_USAGE: called at another time. GGL_UNSUPPORTED: a backend lacks an operator. GGL_LIMIT: more than 64 MiB of constants, or
 * 1 GiB of large products; the message names the largest. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status ggl_graph_fold_by(ggl_graph *g, ggl_backend *b,
                                                            ggl_backend *products, ggl_error *err);
/* The same, without a backend for products. */
GGL_NODISCARD ggl_status ggl_graph_fold(ggl_graph *g, ggl_backend *b, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
