/* A meaningless vocabulary of a given size, with the keys that programs expect in a model file. */
#ifndef TOOLS_BENCH_VOCAB_H
#define TOOLS_BENCH_VOCAB_H

#include "common/shapes.h"
#include "ggl/internal/gguf.h"

/* Writes the tokenizer.ggml keys of the shape's kind, with bytes, control tokens, and made-up
 * pieces. GGL_USAGE: too few tokens for the bytes. */
GGL_NODISCARD ggl_status bench_vocab_put(ggl_gguf_writer *w, const bench_shape *s, ggl_error *err);

#endif
