/* A vocabulary of a given size that says nothing: what programs want to see in a model file. */
#ifndef TOOLS_BENCH_VOCAB_H
#define TOOLS_BENCH_VOCAB_H

#include "shapes.h"

/* Puts the tokenizer.ggml keys of the shape's kind: bytes, control tokens, and made-up pieces.
 * GGL_USAGE: too few tokens for the bytes. */
GGL_NODISCARD ggl_status bench_vocab_put(ggl_gguf_writer *w, const bench_shape *s, ggl_error *err);

#endif
