/* A text as tokens, divided into chunks that a model sees one by one, as llama.cpp's tools divide it. If the
 * model begins texts with a token (BOS), each chunk has that in place of its first token. */
#ifndef TOOLS_TEXT_CHUNKS_H
#define TOOLS_TEXT_CHUNKS_H

#include "llm/internal/model.h"
#include "llm/internal/tokenizer.h"

typedef struct text_chunks {
    llm_tokens tokens; /* of the whole text */
    int32_t bos;       /* -1: the model puts none before a text */
    int64_t n_ctx;     /* tokens of a chunk */
    int64_t n_chunk;
} text_chunks;

enum { TEXT_CHUNK_SIZE = 512 }; /* where the model's context is not smaller */

/* Sets c->n_ctx: n_ctx, or, if it was not given, what fits the model. Prints notes. */
void text_chunks_choose(text_chunks *c, const char *tool, const llm_model *m, int64_t n_ctx,
                        bool given);
/* Sets c->bos. Returns -1, or an exit code after a message. */
int text_chunks_find_bos(text_chunks *c, const char *tool, const llm_tokenizer *t);
/* Reads the file `path` ("-": standard input), less a newline at its end, and sets c->tokens and c->n_chunk; with
 * `special`, names of special tokens stand for these. The text must have two chunks at least. Returns -1, or an
 * exit code after a message. */
int text_chunks_read(text_chunks *c, const char *tool, const llm_tokenizer *t, const char *path,
                     bool special);
/* Copies the n_ctx tokens of a chunk, with BOS, to `to`. */
void text_chunks_get(const text_chunks *c, int64_t chunk, int32_t *to);
void text_chunks_fini(text_chunks *c);

#endif
