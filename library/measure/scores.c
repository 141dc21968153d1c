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

/* Room for a chunk that runs, and rows of logits that wait for scoring. */
struct scores_work {
    scores *s;
    int copy;
    int32_t *token;     /* [n_ctx] */
    float *row;         /* [max_rows][n_vocab] */
    uint16_t *code;     /* [max_rows][log_probs_size]; NULL: none are written or read */
    row_result *result; /* [max_rows] */
    int64_t max_rows, n_rows;
    int64_t chunk;
    int64_t first;    /* position in the chunk of row 0 */
    int64_t bad_row;  /* position of logits that are not finite; -1: none */
    int64_t bad_base; /* position of codes of the base that are not valid; -1: none */
    scores_rows *to;  /* NULL: rows are added at once */
};

/* --- memory ----------------------------------------------------------------------------------- */

static bool take_work(scores *s, scores_work *w, int copy) {
    const scores_params *p = &s->p;
    const int64_t rows = MOST_SIZE / (4 * p->n_vocab);
    *w = (scores_work){.s = s, .copy = copy};
    w->max_rows = rows < 1 ? 1 : rows < SCORES_ROWS ? rows : SCORES_ROWS;
    const size_t max_rows = (size_t)w->max_rows, n_vocab = (size_t)p->n_vocab;
    w->token = ggl_calloc((size_t)p->n_ctx, sizeof *w->token);
    w->row = ggl_calloc(max_rows * n_vocab, sizeof *w->row);
    w->result = ggl_calloc(max_rows, sizeof *w->result);
    if (p->save || p->base)
        w->code = ggl_calloc(max_rows * (size_t)llm_log_probs_size(p->n_vocab), sizeof *w->code);
    return w->token && w->row && w->result && (w->code || !(p->save || p->base));
}

static bool take_memory(scores *s) {
    const scores_params *p = &s->p;
    const size_t n_chunk = (size_t)p->n_chunk;
    const size_t n_scored = n_chunk * (size_t)llm_logits_scored(p->n_ctx);
    bool ok = true;
    s->work = ggl_calloc((size_t)p->n_copies, sizeof *s->work);
    for (int k = 0; k < p->n_copies && s->work && ok; k++)
        ok = take_work(s, &s->work[k], k);
    s->want = ggl_calloc((size_t)p->n_ctx, sizeof *s->want);
    s->running = ggl_calloc(n_chunk, sizeof *s->running);
    s->by_chunk = ggl_calloc(n_chunk, sizeof *s->by_chunk);
    if (p->base) {
        s->kld = ggl_calloc(n_scored, sizeof *s->kld);
        s->p_diff = ggl_calloc(n_scored, sizeof *s->p_diff);
    }
    return ok && s->work && s->want && s->running && s->by_chunk &&
           ((s->kld && s->p_diff) || !p->base);
}

ggl_status llm_scores_new(scores **out, const scores_params *p, ggl_error *err) {
    scores *s = *out = ggl_calloc(1, sizeof *s);
    if (s)
        *s = (scores){.p = *p, .chunk = p->first_chunk};
    if (!s || !take_memory(s)) {
        llm_scores_free(s);
        *out = NULL;
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    for (int64_t i = p->n_ctx / 2; i + 1 < p->n_ctx; i++) /* the last predicts nothing */
        s->want[i] = !p->without;
    return GGL_OK;
}

void llm_scores_free(scores *s) {
    if (!s)
        return;
    for (int k = 0; k < s->p.n_copies && s->work; k++) {
        scores_work *w = &s->work[k];
        ggl_free(w->token);
        ggl_free(w->row);
        ggl_free(w->code);
        ggl_free(w->result);
    }
    ggl_free(s->work);
    ggl_free(s->want);
    ggl_free(s->kld);
    ggl_free(s->p_diff);
    ggl_free(s->running);
    ggl_free(s->by_chunk);
    ggl_free(s);
}

void llm_scores_rows_fini(scores_rows *r) {
    ggl_free(r->row);
    ggl_free(r->code);
    *r = (scores_rows){0};
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Scores row k: its loss, and its codes or their comparison. */
static void score_row(void *ctx, size_t k, int thread) {
    (void)thread;
    const scores_work *w = ctx;
    const scores_params *p = &w->s->p;
    const int64_t n = p->n_vocab, at = w->first + (int64_t)k;
    const float *logits = w->row + (int64_t)k * n;
    const int32_t next = w->token[at + 1];
    uint16_t *code = w->code ? w->code + (int64_t)k * llm_log_probs_size(n) : NULL;
    row_result *r = &w->result[k];
    const log_softmax l = llm_log_softmax_of(logits, n);
    *r = (row_result){.finite = l.finite, .base_ok = true};
    if (!l.finite)
        return;
    if (p->base) {
        r->base_ok = llm_logits_row(p->base, w->chunk, at - p->n_ctx / 2, code);
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
    if (s->p.save)
        llm_logits_put(s->p.save, code, llm_log_probs_size(s->p.n_vocab));
}

/* Keeps n rows until those of the chunks before have been added. */
static void keep_rows(scores_work *w, int64_t n) {
    scores_rows *to = w->to;
    const size_t size = w->s->p.save ? (size_t)llm_log_probs_size(w->s->p.n_vocab) : 0;
    const size_t all = to->n + (size_t)n;
    to->failed = to->failed || !ggl_grow(&to->row, &to->cap, all, sizeof *to->row) ||
                 (size > 0 && !ggl_grow(&to->code, &to->cap_code, all * size, sizeof *to->code));
    if (to->failed)
        return;
    memcpy(to->row + to->n, w->result, (size_t)n * sizeof *to->row);
    if (size > 0)
        memcpy(to->code + to->n * size, w->code, (size_t)n * size * sizeof *to->code);
    to->n = all;
}

static void add_rows(scores *s, const row_result *row, const uint16_t *code, size_t n) {
    const size_t size = (size_t)llm_log_probs_size(s->p.n_vocab);
    for (size_t k = 0; k < n; k++)
        add_row(s, &row[k], s->p.save ? code + k * size : NULL);
}

/* Scores the waiting rows with all threads, and hands on the results in order, up to one that is wrong. */
static void score_rows(scores_work *w) {
    int64_t n = 0;
    llm_work_share(w->s->p.n_threads, (size_t)w->n_rows, score_row, w);
    for (; n < w->n_rows && w->bad_row < 0 && w->bad_base < 0; n++) {
        const row_result *r = &w->result[n];
        if (!r->finite)
            w->bad_row = w->first + n;
        if (!r->base_ok)
            w->bad_base = w->first + n;
        if (!r->finite || !r->base_ok)
            break;
    }
    if (w->to)
        keep_rows(w, n);
    else
        add_rows(w->s, w->result, w->code, (size_t)n);
    w->n_rows = 0;
}

static void on_logits(void *ctx, int64_t i, const float *logits) {
    scores_work *w = ctx;
    const int64_t n = w->s->p.n_vocab;
    if (w->n_rows == 0)
        w->first = i;
    memcpy(w->row + w->n_rows * n, logits, (size_t)n * sizeof *logits);
    if (++w->n_rows == w->max_rows)
        score_rows(w);
}

/* --- chunks ----------------------------------------------------------------------------------- */

static bool on_progress(void *ctx, int64_t done, int64_t n) {
    const scores_work *w = ctx;
    const scores_params *p = &w->s->p;
    return (!p->progress || p->progress(p->ctx, w->copy, (double)done / (double)n)) &&
           w->bad_row < 0 && w->bad_base < 0 && !(w->to && w->to->failed);
}

static ggl_status run_chunk(scores_work *w, llm_session *session, ggl_error *err) {
    const scores_params *p = &w->s->p;
    memcpy(w->token, p->token + w->chunk * p->n_ctx, (size_t)p->n_ctx * sizeof *w->token);
    if (p->bos >= 0)
        w->token[0] = p->bos;
    const llm_batch b = {.n = p->runs_last ? p->n_ctx : p->n_ctx - 1,
                         .token = w->token,
                         .want = w->s->want,
                         .each = on_logits,
                         .progress = on_progress,
                         .ctx = w};
    ggl_status st = llm_session_clear(session, 0, err);
    if (st == GGL_OK)
        st = llm_session_eval(session, &b, err);
    if (st == GGL_OK)
        score_rows(w);
    return st;
}

ggl_status llm_scores_run(scores *s, int copy, llm_session *session, int64_t chunk, scores_rows *to,
                          ggl_error *err) {
    scores_work *w = &s->work[copy];
    w->chunk = chunk;
    w->to = to;
    w->n_rows = 0;
    w->bad_row = w->bad_base = -1;
    if (to)
        *to = (scores_rows){
            .row = to->row, .code = to->code, .cap = to->cap, .cap_code = to->cap_code};
    else
        s->before = s->stats;
    if (!on_progress(w, 0, 1)) /* a short chunk is one run, during which nothing is asked */
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    const ggl_status st = run_chunk(w, session, err);
    if (w->bad_row >= 0)
        return ggl_fail(err, GGL_FORMAT,
                        "chunk %" PRId64 ", token %" PRId64 ": the model's logits are not numbers",
                        chunk + 1, w->bad_row);
    if (w->bad_base >= 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: chunk %" PRId64 ", token %" PRId64
                        ": the log-probabilities are not of "
                        "probabilities that add up to 1; the file is damaged",
                        s->p.base_path, chunk + 1, w->bad_base);
    return to && to->failed ? ggl_fail(err, GGL_NOMEM, "out of memory for the results of a chunk")
                            : st;
}

void llm_scores_add(scores *s, const scores_rows *from) {
    if (from) {
        s->before = s->stats;
        add_rows(s, from->row, from->code, from->n);
    }
    const size_t n = s->stats.n - s->before.n;
    s->running[s->chunk] = llm_ppl_value(&s->stats);
    s->by_chunk[s->chunk] = n > 0 ? exp((s->stats.nll - s->before.nll) / (double)n) : 0;
    s->chunk++;
}
