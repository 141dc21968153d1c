/* llm-bench make --like: the shape of a llama that is as wide as another model, and costs about as much. */
#ifndef TOOLS_BENCH_LIKE_H
#define TOOLS_BENCH_LIKE_H

#include "common/shapes.h"

/* Makes the shape of a llama with the width, layers, heads and vocabulary of the model at `path` (a GGUF file or a folder), whose
 * feed-forward parts are so wide that a token costs as many multiply-adds with weights. GGL_UNSUPPORTED: the model has no width or layers,
 * or writes no tokens; errors of opening it. */
GGL_NODISCARD ggl_status bench_shape_like(bench_shape *out, const char *path, ggl_error *err);

#endif
