/* What a teacher says of texts, in a GGUF file: the likeliest tokens after each token, with their probabilities. It teaches without the model.
 *
 * Keys:    general.type = "probabilities"; probabilities.vocab_size; probabilities.vocabulary: a digest of the tokens;
 *          probabilities.temperature, at which they are; probabilities.teacher: a digest of its file
 * Tensors: sequence.digest i64 [n_seq], of the tokens of each sequence; sequence.first i64 [n_seq + 1], its first row
 *          token.id i32 [top, rows] and token.share f16 [top, rows]: after each token, the likeliest first */
#ifndef TRAIN_RECORDED_H
#define TRAIN_RECORDED_H

#include "ggl/gguf.h"
#include "llm/internal/tokenizer.h"

typedef struct train_recorded train_recorded;

/* True if the file at the path is one of probabilities. */
bool llm_train_is_recorded(const char *path);
/* Opens it, for a model with this tokenizer. temp: of the probabilities that it shall teach. GGL_USAGE: it has other tokens, or another temperature;
 * GGL_FORMAT: it is damaged; and as ggl_gguf_open. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_train_recorded_open(train_recorded **out, const char *path,
                                                 const llm_tokenizer *t, double temp,
                                                 ggl_error *err);
void llm_train_recorded_close(train_recorded *r);             /* NULL is fine */
int64_t llm_train_recorded_top(const train_recorded *r);      /* tokens after each token */
uint64_t llm_train_recorded_teacher(const train_recorded *r); /* train_recording.teacher */
int64_t llm_train_recorded_n_vocab(const train_recorded *r);
const ggl_gguf *llm_train_recorded_file(const train_recorded *r);
/* As train_parts.teach. The rest of the probability is spread evenly over the tokens that are not among the likeliest. GGL_NOT_FOUND: a sequence
 * is not in the file. */
GGL_NODISCARD ggl_status llm_train_recorded_teach(void *recorded, const int32_t *token,
                                                  const int64_t *length, int64_t n_seq,
                                                  float *share, ggl_error *err);
/* Fails as it would, without the probabilities. */
GGL_NODISCARD ggl_status llm_train_recorded_check(const train_recorded *r, const int32_t *token,
                                                  int64_t length, ggl_error *err);

/* What is to be recorded: sequences, whose tokens and probabilities are asked for one after the other. */
typedef struct train_recording {
    const llm_tokenizer *tokenizer;
    int64_t n_vocab, top; /* top: how many tokens after each */
    int64_t n_seq, longest;
    double temp;      /* at which `teach` gives them */
    uint64_t teacher; /* a digest of its file */
    int64_t (*length)(void *ctx, int64_t k);
    void (*get)(void *ctx, int64_t k, int32_t *token);
    /* As train_parts.teach, of sequence k. */
    ggl_status (*teach)(void *ctx, int64_t k, const int32_t *token, float *share, ggl_error *err);
    void *ctx;
} train_recording;
/* Writes the file. */
GGL_NODISCARD ggl_status llm_train_record(const train_recording *p, const char *path,
                                          ggl_error *err);

#endif
