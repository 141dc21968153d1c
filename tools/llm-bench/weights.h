/* Writes random weights as fast as a disk can take them: blocks of a small pool, encoded once
 * per type, in random order. The same seed and name give the same bytes on all machines of the
 * same byte order. */
#ifndef TOOLS_BENCH_WEIGHTS_H
#define TOOLS_BENCH_WEIGHTS_H

#include "ggl/internal/gguf.h"

typedef struct bench_weights bench_weights;

bench_weights *bench_weights_new(uint64_t seed); /* NULL: out of memory */
void bench_weights_free(bench_weights *w);       /* NULL: no effect */
/* Writes n elements, a whole number of blocks, from a normal distribution around `mean`.
 * GGL_NOMEM, or the sink's error. */
GGL_NODISCARD ggl_status bench_weights_write(bench_weights *w, const char *name, ggl_type type,
                                             int64_t n, double mean, double sigma,
                                             ggl_gguf_sink *to, ggl_error *err);

#endif
