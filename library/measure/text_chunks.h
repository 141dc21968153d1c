/* A text as tokens, divided into chunks that a model sees one by one, as llama.cpp's tools divide it. If the
 * model begins texts with a token (BOS), each chunk has that in place of its first token. */
#ifndef LIBRARY_TEXT_CHUNKS_H
#define LIBRARY_TEXT_CHUNKS_H

#include "llm/internal/tokenizer.h"

typedef struct text_chunks {
    llm_tokens tokens; /* of the whole text */
    int32_t bos;       /* -1: the model puts none before a text */
    int64_t n_ctx;     /* tokens of a chunk */
    int64_t n_chunk;
} text_chunks;

enum { TEXT_CHUNK_SIZE = 512 }; /* where the model's context is not smaller */

/* Sets c->bos. */
ggl_status llm_text_chunks_find_bos(text_chunks *c, const llm_tokenizer *t, ggl_error *err);
/* Sets c->tokens to those of the text, less a newline at its end, and c->n_chunk; with `special`, names of special tokens
 * stand for these. */
ggl_status llm_text_chunks_take(text_chunks *c, const llm_tokenizer *t, ggl_str text, bool special,
                                ggl_error *err);
void llm_text_chunks_fini(text_chunks *c);

#endif
