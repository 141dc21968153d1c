/* Measures how well a model predicts a text, in chunks that it sees one by one, as llama.cpp's perplexity tool does: the second half
 * of each chunk is scored. Can save the log-probabilities, or compare with saved ones of another model (logits_file.h).
 *
 *     const scores_params p = {.n_copies = 1, .n_vocab = n_vocab, .token = id, .bos = -1, .n_ctx = 512, .n_chunk = n / 512, .n_threads = 4};
 *     scores *s;
 *     st = llm_scores_new(&s, &p, &err);
 *     while (st == GGL_OK && s->chunk < p.n_chunk) {
 *         st = llm_scores_run(s, 0, session, s->chunk, NULL, &err);
 *         if (st == GGL_OK)
 *             llm_scores_add(s, NULL);
 *     }
 *     .. llm_ppl_value(&s->stats) ..
 *     llm_scores_free(s);
 *
 * Several copies of the model may run chunks at the same time: then each chunk's results are kept (scores_rows), and added in the
 * order of the text. So no digit depends on how many there are.
 *
 * Threads: llm_scores_run may run for several copies at once, and beside llm_scores_add, if it keeps its results. */
#ifndef LIBRARY_SCORES_H
#define LIBRARY_SCORES_H

#include "llm/internal/session.h"
#include "logits_file.h"
#include "ppl_stats.h"

enum { SCORES_ROWS = 64 }; /* rows of logits that a session for this computes at a time, at most */

/* All pointers are borrowed. */
typedef struct scores_params {
    int n_copies;                 /* of the model, at least 1 */
    int64_t n_vocab;              /* of the model */
    const int32_t *token;         /* [n_chunk * n_ctx] */
    int32_t bos;                  /* takes the place of each chunk's first token; -1: it stays */
    int64_t n_ctx;                /* of a chunk */
    int64_t first_chunk, n_chunk; /* the chunks first_chunk .. n_chunk - 1 are run */
    int n_threads;                /* that score rows, for each copy */
    bool without;        /* nothing is scored, and no logits are computed: the chunks only run */
    bool runs_last;      /* a chunk's last token runs, too; nothing needs its logits */
    logits_writer *save; /* NULL: none */
    const logits_reader *base; /* compares; not with `save`. NULL: none */
    const char *base_path;     /* for messages */
    /* Called while a chunk runs, in its thread, with the share of it that is done. False ends it with GGL_CANCELLED. NULL: none. */
    bool (*progress)(void *ctx, int copy, double share);
    void *ctx;
} scores_params;

typedef struct scores_work scores_work;

/* The results of a chunk that is not added yet. Zero it; it is used again for other chunks. */
typedef struct scores_rows {
    struct row_result *row;
    uint16_t *code; /* with `save`: the codes of all rows */
    size_t n, cap, cap_code;
    bool failed; /* out of memory */
} scores_rows;

typedef struct scores {
    scores_params p;
    int64_t chunk;           /* the next to be added */
    ppl_stats stats, before; /* before: the chunk that was begun last */
    double *kld, *p_diff;    /* [stats.n], if there is a base */
    mean *running;           /* [n_chunk]: the perplexity after each chunk */
    double *by_chunk;        /* [n_chunk]: of each chunk by itself */
    bool *want;              /* [n_ctx]: which tokens of a chunk are scored */
    scores_work *work;       /* [n_copies] */
} scores;

/* GGL_NOMEM. */
ggl_status llm_scores_new(scores **out, const scores_params *p, ggl_error *err);
void llm_scores_free(scores *s); /* NULL is fine */
/* Runs a chunk on a copy's session, whose slot 0 has room for n_ctx tokens, and keeps its results. to NULL: adds them at once, which is
 * for the next chunk. Statuses of llm_session_eval, and GGL_FORMAT: logits are not numbers, or the base is damaged; GGL_NOMEM. */
ggl_status llm_scores_run(scores *s, int copy, llm_session *session, int64_t chunk, scores_rows *to,
                          ggl_error *err);
/* Completes the next chunk with the results that were kept; NULL: they have been added. */
void llm_scores_add(scores *s, const scores_rows *from);
void llm_scores_rows_fini(scores_rows *r);

#endif
