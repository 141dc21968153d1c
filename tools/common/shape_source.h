/* A shape (shapes.h) as the source of a descriptor's keys and tensors: a graph of a published
 * model without its file.
 *
 *     bench_shape_source s = {.shape = &shape, .wanted = GGL_F16};
 *     llm_arch_source source = bench_shape_source_of(&s);
 *     st = llm_arch_build(arch, &source, &params, graph, NULL, &err); // params.n_vocab: the shape's
 */
#ifndef TOOLS_SHAPE_SOURCE_H
#define TOOLS_SHAPE_SOURCE_H

#include "llm/internal/arch.h"
#include "shapes.h"

/* The shapes compiled into the tools, as the arguments `text, n` of shapes.h. */
extern const unsigned char bench_shapes_text[];
extern const size_t bench_shapes_text_size;
#define BENCH_SHAPES (const char *)bench_shapes_text, bench_shapes_text_size

typedef struct bench_shape_source {
    const bench_shape *shape;
    ggl_type wanted; /* of matrices */
    /* Called for each tensor that the descriptor asks for and the shape has; may be NULL. */
    void (*each)(void *ctx, const llm_arch_tensor *t);
    void *ctx;
} bench_shape_source;

/* Returns the source, which borrows *s. Its tensors have types but no data: a graph that is built
 * from it can be planned and drawn, not folded or run. */
llm_arch_source bench_shape_source_of(bench_shape_source *s);

#endif
