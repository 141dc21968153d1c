/* llama.cpp's files of a model's log-probabilities over a text (its --kl-divergence-base), so that
 * each program can compare with what the other saved. Little-endian:
 *
 *     | "_logits_" | n_ctx: u32 | n_vocab: i32 | n_chunk: i32 | token[n_chunk * n_ctx]: i32 |
 *     | for each chunk, for each of its n_ctx - 1 - n_ctx / 2 positions: log_softmax.h's codes |
 *
 * A chunk has the text's tokens, even if the model was given BOS instead of the first. */
#ifndef LIBRARY_LOGITS_FILE_H
#define LIBRARY_LOGITS_FILE_H

#include <stdio.h>

#include <stdbool.h>

#include "ggl/internal/file.h"

typedef struct logits_head {
    int64_t n_ctx, n_vocab, n_chunk;
} logits_head;

int64_t llm_logits_scored(int64_t n_ctx); /* positions scored per chunk: n_ctx - 1 - n_ctx / 2 */

typedef struct logits_reader {
    logits_head head;
    int32_t *token;      /* [n_chunk][n_ctx] */
    const uint8_t *rows; /* unaligned */
    ggl_file_map map;    /* the file must not be truncated meanwhile */
} logits_reader;

/* Opens a file and checks its sizes and tokens. GGL_IO, GGL_FORMAT, GGL_NOMEM; the message
 * begins with the path. */
ggl_status llm_logits_open(logits_reader *r, const char *path, ggl_error *err);
void llm_logits_close(logits_reader *r);
/* Copies the codes of a chunk's k-th scored position to row[llm_log_probs_size(n_vocab)]. False:
 * they are not valid. */
bool llm_logits_row(const logits_reader *r, int64_t chunk, int64_t k, uint16_t *row);

/* Writes a file, which gets its name only when logits_end succeeds. */
typedef struct logits_writer {
    ggl_new_file *file; /* NULL: nothing is open */
} logits_writer;

/* Like ggl_new_file_open and ggl_new_file_commit. */
ggl_status llm_logits_begin(logits_writer *w, const char *path, const logits_head *h,
                            const int32_t *token, ggl_error *err);
void llm_logits_put(logits_writer *w, const uint16_t *row, int64_t n);
ggl_status llm_logits_end(logits_writer *w, ggl_error *err);
void llm_logits_abort(logits_writer *w); /* no effect after logits_end */

#endif
