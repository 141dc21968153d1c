#include "scores.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/work_share.h"
#include "ggl/internal/alloc.h"

enum { MOST_SIZE = 64 << 20 }; /* bytes of the rows that wait for scoring */

/* The results of one row of logits. */
typedef struct row_result {
    double nll;
    bool finite, base_ok;
    log_compared c;
} row_result;

/* Room for a chunk, and rows of logits that wait for scoring. */
struct scores_work {
    int32_t *token; /* [n_ctx] */
    bool *want;     /* [n_ctx] */
    int64_t n_vocab;
    float *row;         /* [max_rows][n_vocab] */
    uint16_t *code;     /* [max_rows][log_probs_size]; NULL: none are written or read */
    row_result *result; /* [max_rows] */
    int64_t max_rows, n_rows;
    int64_t first;    /* position in the chunk of row 0 */
    int64_t bad_row;  /* position of logits that are not finite; -1: none */
    int64_t bad_base; /* position of codes of the base that are not valid; -1: none */
};

/* --- memory ----------------------------------------------------------------------------------- */

static bool take_memory(scores *s) {
    scores_work *w = s->work;
    const scores_params *p = &s->p;
    const size_t n_ctx = (size_t)p->n_ctx, n_chunk = (size_t)p->n_chunk;
    const size_t n_scored = n_chunk * (size_t)llm_logits_scored(p->n_ctx);
    const int64_t rows = MOST_SIZE / (4 * w->n_vocab);
    w->max_rows = rows < 1 ? 1 : rows < SCORES_ROWS ? rows : SCORES_ROWS;
    const size_t max_rows = (size_t)w->max_rows, n_vocab = (size_t)w->n_vocab;
    w->token = ggl_calloc(n_ctx, sizeof *w->token);
    w->want = ggl_calloc(n_ctx, sizeof *w->want);
    w->row = ggl_calloc(max_rows * n_vocab, sizeof *w->row);
    w->result = ggl_calloc(max_rows, sizeof *w->result);
    s->running = ggl_calloc(n_chunk, sizeof *s->running);
    s->by_chunk = ggl_calloc(n_chunk, sizeof *s->by_chunk);
    if (p->save || p->base)
        w->code = ggl_calloc(max_rows * (size_t)llm_log_probs_size(w->n_vocab), sizeof *w->code);
    if (p->base) {
        s->kld = ggl_calloc(n_scored, sizeof *s->kld);
        s->p_diff = ggl_calloc(n_scored, sizeof *s->p_diff);
    }
    return w->token && w->want && w->row && w->result && s->running && s->by_chunk &&
           (w->code || !(p->save || p->base)) && ((s->kld && s->p_diff) || !p->base);
}

ggl_status llm_scores_new(scores **out, const scores_params *p, ggl_error *err) {
    scores *s = *out = ggl_calloc(1, sizeof *s);
    scores_work *w = s ? ggl_calloc(1, sizeof *w) : NULL;
    if (w) {
        *w = (scores_work){
            .n_vocab = llm_session_n_vocab(p->session), .bad_row = -1, .bad_base = -1};
        *s = (scores){.p = *p, .chunk = p->first_chunk, .work = w};
    }
    if (!w || !take_memory(s)) {
        llm_scores_free(s);
        *out = NULL;
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (int64_t i = p->n_ctx / 2; i + 1 < p->n_ctx; i++) /* the last predicts nothing */
        w->want[i] = !p->without;
    return GGL_OK;
}

void llm_scores_free(scores *s) {
    if (!s)
        return;
    if (s->work) {
        ggl_free(s->work->token);
        ggl_free(s->work->want);
        ggl_free(s->work->row);
        ggl_free(s->work->code);
        ggl_free(s->work->result);
    }
    ggl_free(s->work);
    ggl_free(s->kld);
    ggl_free(s->p_diff);
    ggl_free(s->running);
    ggl_free(s->by_chunk);
    ggl_free(s);
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Scores row k: its loss, and its codes or their comparison. */
static void score_row(void *ctx, size_t k, int thread) {
    (void)thread;
    scores *s = ctx;
    scores_work *w = s->work;
    const int64_t n = w->n_vocab, at = w->first + (int64_t)k;
    const float *logits = w->row + (int64_t)k * n;
    const int32_t next = w->token[at + 1];
    uint16_t *code = w->code ? w->code + (int64_t)k * llm_log_probs_size(n) : NULL;
    row_result *r = &w->result[k];
    const log_softmax l = llm_log_softmax_of(logits, n);
    *r = (row_result){.finite = l.finite, .base_ok = true};
    if (!l.finite)
        return;
    if (s->p.base) {
        r->base_ok = llm_logits_row(s->p.base, s->chunk, at - s->p.n_ctx / 2, code);
        if (r->base_ok)
            r->c = llm_log_compare(&l, logits, n, code, next);
        return;
    }
    r->nll = -llm_log_softmax_at(&l, logits, next);
    if (code)
        llm_log_probs_encode(&l, logits, n, code);
}

static void add_row(scores *s, const row_result *r, const uint16_t *code) {
    if (s->p.base) {
        s->kld[s->stats.n] = r->c.kld;
        s->p_diff[s->stats.n] = r->c.p_diff;
        llm_ppl_add_compared(&s->stats, &r->c);
        return;
    }
    llm_ppl_add(&s->stats, r->nll);
    if (code)
        llm_logits_put(s->p.save, code, llm_log_probs_size(s->work->n_vocab));
}

/* Scores the waiting rows with all threads, and adds the results in order. */
static void score_rows(scores *s) {
    scores_work *w = s->work;
    llm_work_share(s->p.n_threads, (size_t)w->n_rows, score_row, s);
    for (int64_t k = 0; k < w->n_rows; k++) {
        const row_result *r = &w->result[k];
        if (!r->finite && w->bad_row < 0)
            w->bad_row = w->first + k;
        if (!r->base_ok && w->bad_base < 0)
            w->bad_base = w->first + k;
        if (w->bad_row >= 0 || w->bad_base >= 0)
            break;
        add_row(s, r, w->code ? w->code + k * llm_log_probs_size(w->n_vocab) : NULL);
    }
    w->n_rows = 0;
}

static void on_logits(void *ctx, int64_t i, const float *logits) {
    scores *s = ctx;
    scores_work *w = s->work;
    if (w->n_rows == 0)
        w->first = i;
    memcpy(w->row + w->n_rows * w->n_vocab, logits, (size_t)w->n_vocab * sizeof *logits);
    if (++w->n_rows == w->max_rows)
        score_rows(s);
}

/* --- chunks ----------------------------------------------------------------------------------- */

static bool on_progress(void *ctx, int64_t done, int64_t n) {
    const scores *s = ctx;
    const double n_done = (double)(s->chunk - s->p.first_chunk) + (double)done / (double)n;
    return (!s->p.progress || s->p.progress(s->p.ctx, n_done)) && s->work->bad_row < 0 &&
           s->work->bad_base < 0;
}

static ggl_status run_chunk(scores *s, ggl_error *err) {
    const scores_params *p = &s->p;
    scores_work *w = s->work;
    memcpy(w->token, p->token + s->chunk * p->n_ctx, (size_t)p->n_ctx * sizeof *w->token);
    if (p->bos >= 0)
        w->token[0] = p->bos;
    const llm_batch b = {.n = p->runs_last ? p->n_ctx : p->n_ctx - 1,
                         .token = w->token,
                         .want = w->want,
                         .each = on_logits,
                         .progress = on_progress,
                         .ctx = s};
    ggl_status st = llm_session_clear(p->session, 0, err);
    if (st == GGL_OK)
        st = llm_session_eval(p->session, &b, err);
    if (st == GGL_OK)
        score_rows(s);
    return st;
}

ggl_status llm_scores_next(scores *s, ggl_error *err) {
    const scores_work *w = s->work;
    const ppl_stats before = s->stats;
    if (!on_progress(s, 0, 1)) /* a short chunk is one run, during which nothing is asked */
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    const ggl_status st = run_chunk(s, err);
    if (w->bad_row >= 0)
        return ggl_fail(err, GGL_FORMAT,
                        "chunk %" PRId64 ", token %" PRId64 ": the model's logits are not numbers",
                        s->chunk + 1, w->bad_row);
    if (w->bad_base >= 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: chunk %" PRId64 ", token %" PRId64
                        ": the log-probabilities are not of "
                        "probabilities that add up to 1; the file is damaged",
                        s->p.base_path, s->chunk + 1, w->bad_base);
    if (st != GGL_OK)
        return st;
    const size_t n = s->stats.n - before.n;
    s->running[s->chunk] = llm_ppl_value(&s->stats);
    s->by_chunk[s->chunk] = n > 0 ? exp((s->stats.nll - before.nll) / (double)n) : 0;
    s->chunk++;
    return GGL_OK;
}
