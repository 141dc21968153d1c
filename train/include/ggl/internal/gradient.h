/* Gradients of graphs: docs/gradients.md. ggl_graph_grad adds nodes to a graph that is being built, so that a run computes
 * a value and how it changes with each number that it is made of.
 *
 *     ggl_tensor *w = ggl_graph_variable(g, "w", GGL_F32, 2, shape, data);
 *     ggl_tensor *loss = ..                                   // one number for each element of the batch
 *     ggl_tensor *dw;
 *     ggl_graph_grad(g, loss, &w, 1, NULL, &dw);              // [as w], one for all of the batch
 *     ggl_graph_assign(g, w, w - 0.1 * dw);                   // in words: a step down
 *
 * Threads: as ggl/graph.h says. */
#ifndef GGL_INTERNAL_GRADIENT_H
#define GGL_INTERNAL_GRADIENT_H

#include "ggl/internal/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ggl_grad_params {
    size_t size; /* sizeof(ggl_grad_params) */
    /* The most bytes that values may take which gradients need, for the largest batch. If they would take more, as many groups
     * as necessary, the first ones, keep only what other groups read and what their attention results in, and compute
     * the rest again. 0: all values, but those that cost next to nothing to compute again, such as norms and activations; 1: as few as
     * possible; SIZE_MAX: every value. */
    size_t keep;
    /* [n]: what the gradient of by[k] is added to, before a sum over the batch begins, not batched and of its shape: mostly a variable
     * to which it is assigned, so that it adds up over several runs. NULL, and NULL members: nothing. */
    ggl_tensor *const *into;
    /* [n]: a leaf with the numbers of by[k] in another type, such as a bf16 copy that products read: gradients by it are gradients by by[k].
     * NULL, and NULL members: there is none. */
    ggl_tensor *const *copy;
    /* Products with matrices that have no side shorter than GGL_GRAD_BF16_SIDE have their gradients in bf16 (ggl/ops.def). */
    bool bf16;
    /* For recurrences: how many elements of the batch have their states in memory at once (docs/gradients.md); 0: GGL_GRAD_CHUNK. No
     * gradient has other bits with another chunk. */
    int64_t chunk;
} ggl_grad_params;
/* A batch of 512 then has 48 states in memory at once: 32 of a chunk, and 16 with which chunks begin. Chunks of 23 would need the fewest, 46. */
enum { GGL_GRAD_CHUNK = 32 };
/* Of thinner matrices, rounding takes as long as bf16 saves. */
enum { GGL_GRAD_BF16_SIDE = 64 };

/* Adds the nodes that compute the gradient of the sum of all elements of `of`, over the batch, too, by each of the n tensors in
 * by[]: weights, variables, inputs, or computed values. Sets grad[k] to the gradient by by[k], which has its shape, and is batched
 * if it is; NULL: `of` does not depend on it. params NULL: defaults. To be called at the top level, when all nodes of `of` have been
 * made. Returns false on failure, with the graph's error set: GGL_UNSUPPORTED names the node that has no rule. */
bool ggl_graph_grad(ggl_graph *g, ggl_tensor *of, ggl_tensor *const *by, int n,
                    const ggl_grad_params *params, ggl_tensor **grad);

#ifdef __cplusplus
}
#endif
#endif
