/* Measures how well a model predicts a text, in chunks that it sees one by one, as llama.cpp's perplexity tool does: the second half
 * of each chunk is scored. Can save the log-probabilities, or compare with saved ones of another model (logits_file.h).
 *
 *     const scores_params p = {.session = session, .token = id, .bos = -1, .n_ctx = 512, .n_chunk = n / 512, .n_threads = 4};
 *     scores *s;
 *     st = llm_scores_new(&s, &p, &err);
 *     while (st == GGL_OK && s->chunk < p.n_chunk)
 *         st = llm_scores_next(s, &err);
 *     .. llm_ppl_value(&s->stats) ..
 *     llm_scores_free(s); */
#ifndef LIBRARY_SCORES_H
#define LIBRARY_SCORES_H

#include "llm/internal/session.h"
#include "logits_file.h"
#include "ppl_stats.h"

enum { SCORES_ROWS = 64 }; /* rows of logits that a session for this computes at a time, at most */

/* All pointers are borrowed. */
typedef struct scores_params {
    llm_session *session;         /* slot 0 has room for n_ctx tokens */
    const int32_t *token;         /* [n_chunk * n_ctx] */
    int32_t bos;                  /* takes the place of each chunk's first token; -1: it stays */
    int64_t n_ctx;                /* of a chunk */
    int64_t first_chunk, n_chunk; /* the chunks first_chunk .. n_chunk - 1 are run */
    int n_threads;                /* that score rows */
    bool without;        /* nothing is scored, and no logits are computed: the chunks only run */
    bool runs_last;      /* a chunk's last token runs, too; nothing needs its logits */
    logits_writer *save; /* NULL: none */
    const logits_reader *base; /* compares; not with `save`. NULL: none */
    const char *base_path;     /* for messages */
    /* Called while a chunk runs, with the chunks that are done. False ends it with GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx, double n_done);
    void *ctx;
} scores_params;

typedef struct scores_work scores_work;

typedef struct scores {
    scores_params p;
    int64_t chunk; /* the next */
    ppl_stats stats;
    double *kld, *p_diff; /* [stats.n], if there is a base */
    mean *running;        /* [n_chunk]: the perplexity after each chunk */
    double *by_chunk;     /* [n_chunk]: of each chunk by itself */
    scores_work *work;
} scores;

/* GGL_NOMEM. */
ggl_status llm_scores_new(scores **out, const scores_params *p, ggl_error *err);
void llm_scores_free(scores *s); /* NULL is fine */
/* Runs a chunk. Statuses of llm_session_eval, and GGL_FORMAT: logits are not numbers, or the base is damaged. */
ggl_status llm_scores_next(scores *s, ggl_error *err);

#endif
