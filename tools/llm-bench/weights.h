/* Random weights as fast as a disk takes them: blocks of a modest pool, encoded once for each type,
 * in a random order. The same seed and name give the same bytes on every machine of this byte
 * order.
 */
#ifndef TOOLS_BENCH_WEIGHTS_H
#define TOOLS_BENCH_WEIGHTS_H

#include "ggl/gguf.h"

typedef struct bench_weights bench_weights;

bench_weights *bench_weights_new(uint64_t seed); /* NULL: out of memory */
void bench_weights_free(bench_weights *w);       /* NULL is fine */
/* n elements, a whole number of blocks, normal around `mean`. GGL_NOMEM, and what the sink says. */
GGL_NODISCARD ggl_status bench_weights_write(bench_weights *w, const char *name, ggl_type type,
                                             int64_t n, double mean, double sigma,
                                             ggl_gguf_sink *to, ggl_error *err);

#endif
