/* Constants: what of a graph depends on no input is computed before the first run. */
#ifndef GGL_FOLD_H
#define GGL_FOLD_H

#include "ggl/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Computes, once, on `b` (in double: the reference backend), every node that depends on no input,
 * and replaces it by a constant. Call between ggl_graph_finish and ggl_sched_new. Constants used as
 * rope frequencies stay f64, others become f32. GGL_LIMIT: more than 64 MiB of constants, naming
 * the largest. */
GGL_API GGL_NODISCARD ggl_status ggl_graph_fold(ggl_graph *g, ggl_backend *b, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
