/* Divides products among several backends that compute their parts at the same time: y = w x becomes the concatenation of
 * parts, each with some of the rows of w. A row's sum is computed by one backend, in the order in which one alone computes it, so no
 * bit changes.
 *
 * What follows stays in parts as long as each of its elements depends on one part: functions of single elements, such as a gate and what
 * it gates; norms, rotations and attention of heads, where each part has whole heads of keys and values, a cache of its own for them, and the
 * queries that read it. Of matrices that an index picks from a stack (experts), each part has some of the matrices, and computes what
 * is picked of these; the results are chosen by the index, not added.
 *
 *     const double share[] = {1, 1, 2};
 *     st = ggl_graph_divide(g, share, 3, GGL_LEAST_DIVIDED, GGL_DIVIDED_UNIT, &n, &err);  // a finished and folded graph, before ggl_sched_new
 *
 * Threads: as ggl/graph.h says. */
#ifndef GGL_DIVIDE_H
#define GGL_DIVIDE_H

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Between the name of a weight and the number of a part, from 0 on: "blk.0.ffn_up.weight#2". ggl_sched_params.place gets
 * these names. */
#define GGL_PART_MARK '#'
/* A smaller weight is not divided: its parts would take longer to reach than to compute. */
#define GGL_LEAST_DIVIDED ((size_t)1 << 18)
#define GGL_DIVIDED_UNIT  32 /* rows: whole groups of every backend's layout */

/* Divides the products of at least `least` bytes of weights (of a stack: of the matrices that are picked), in proportion to the shares,
 * in multiples of `unit` rows, of heads, or of matrices; a part may have none. Products whose matrix is computed stay whole, and so does attention with
 * fewer heads of keys than parts, or with a bias or relative positions. Sets *n to how many products were divided. GGL_NOMEM, GGL_LIMIT. */
GGL_NODISCARD ggl_status ggl_graph_divide(ggl_graph *g, const double *share, int n_parts,
                                          size_t least, int64_t unit, int *n, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
