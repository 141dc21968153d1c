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
 * and ggl_sched_new. Rope frequencies stay f64, other constants become f32. GGL_USAGE: called at
 * another time. GGL_UNSUPPORTED: b lacks an operator. GGL_LIMIT: more than 64 MiB of constants; the message names the largest. */
GGL_NODISCARD ggl_status ggl_graph_fold(ggl_graph *g, ggl_backend *b, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
