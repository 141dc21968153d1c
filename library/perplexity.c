/* How well a model predicts a text. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/amounts.h"
#include "context.h"
#include "copies.h"
#include "ggl/backends.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "measure/scores.h"
#include "measure/text_chunks.h"
#include "measuring.h"

/* What a call of llm_perplexity needs. */
typedef struct measurement {
    llm_context *c;
    llm_perplexity_params p;
    text_chunks text; /* without tokens if the base or the caller has them */
    logits_reader base;
    logits_writer save;
    int64_t n_window, n_chunks;
    const int32_t *token;
    scores *scores;
    scores_rows
        *kept; /* [n_kept]: of windows that wait for those before them; NULL: there is one copy */
    size_t n_kept;
    window_progress share; /* of the windows that run */
} measurement;

static ggl_status check_perplexity(const measurement *m, const char *text, ggl_error *err) {
    const llm_perplexity_params *p = &m->p;
    if (p->base ? text || p->id || p->save : !text == !p->id)
        return ggl_fail(err, GGL_USAGE,
                        p->base ? "with base, which has a text, neither text nor save can be given"
                        : text  ? "a text and its tokens (id) cannot be given together"
                                : "llm_perplexity needs a text, or base");
    ggl_status st = llm_check_window(p->n_window, err);
    if (st == GGL_OK)
        st = llm_context_check_writes(m->c, false, err);
    if (st != GGL_OK)
        return st;
    if (p->n_chunks < 0)
        return ggl_fail(err, GGL_USAGE, "n_chunks must be 0 or more, but is %" PRId64, p->n_chunks);
    if (!m->c->tokenizer)
        return ggl_pass(err, &m->c->why_no_tokenizer);
    return GGL_OK;
}

static ggl_status check_window(const measurement *m, ggl_error *err) {
    if (m->n_window > llm_session_n_ctx(m->c->session))
        return ggl_fail(err, GGL_LIMIT,
                        "a window has %" PRId64 " tokens, but the context only %" PRId64,
                        m->n_window, llm_session_n_ctx(m->c->session));
    return GGL_OK;
}

static ggl_status open_base(measurement *m, ggl_error *err) {
    const int64_t n_vocab = llm_session_n_vocab(m->c->session);
    const ggl_status st = llm_logits_open(&m->base, m->p.base, err);
    if (st != GGL_OK)
        return st;
    const logits_head *h = &m->base.head;
    if (h->n_vocab != n_vocab)
        return ggl_fail(err, GGL_USAGE,
                        "%s has a vocabulary of %" PRId64 ", but the model's is %" PRId64,
                        m->p.base, h->n_vocab, n_vocab);
    if (m->p.n_window != 0 && m->p.n_window != h->n_ctx)
        return ggl_fail(err, GGL_USAGE, "n_window is %" PRId64 ", but %s was written with %" PRId64,
                        m->p.n_window, m->p.base, h->n_ctx);
    m->n_window = h->n_ctx;
    m->n_chunks = h->n_chunk;
    m->token = m->base.token;
    return GGL_OK;
}

/* Checks the caller's tokens. */
static ggl_status take_ids(measurement *m, ggl_error *err) {
    m->n_chunks = (int64_t)m->p.n_id / m->n_window;
    m->token = m->p.id;
    return llm_check_tokens(m->p.id, m->p.n_id, llm_session_n_vocab(m->c->session), err);
}

static ggl_status tokenize(measurement *m, const char *text, size_t n, ggl_error *err) {
    m->text.n_ctx = m->n_window;
    const ggl_status st =
        llm_text_chunks_take(&m->text, m->c->tokenizer, (ggl_str){text, n}, false, err);
    m->n_chunks = m->text.n_chunk;
    m->token = m->text.tokens.id;
    return st;
}

static ggl_status take_text(measurement *m, const char *text, size_t n, ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(m->c->session);
    m->n_window = m->p.n_window;
    if (m->n_window == 0)
        m->n_window = n_ctx < TEXT_CHUNK_SIZE ? n_ctx : TEXT_CHUNK_SIZE;
    const ggl_status st = text ? tokenize(m, text, n, err) : take_ids(m, err);
    const size_t n_tokens = text ? m->text.tokens.n : m->p.n_id;
    if (st == GGL_OK && m->n_chunks < 2)
        return ggl_fail(err, GGL_LIMIT,
                        "the text has %zu token%s; with windows of %" PRId64 " at least %" PRId64
                        " are needed",
                        n_tokens, llm_amount_s((int64_t)n_tokens), m->n_window, 2 * m->n_window);
    return st;
}

/* Tells how many tokens have run. */
static bool tell_tokens(void *ctx) {
    const measurement *m = ctx;
    return !m->p.progress ||
           m->p.progress(m->p.user, llm_window_tokens(&m->share, m->scores->chunk, m->n_window),
                         (size_t)(m->n_chunks * m->n_window));
}

static bool on_progress(void *ctx, int copy, double share) {
    measurement *m = ctx;
    llm_window_progress_set(&m->share, copy, share);
    return m->kept || tell_tokens(m);
}

static llm_perplexity_result result_of(const measurement *m) {
    const ppl_stats *s = &m->scores->stats;
    const mean ppl = llm_ppl_value(s), kld = llm_ppl_kld(s), top = llm_ppl_same_top(s);
    llm_perplexity_result r = {.size = sizeof r,
                               .n_window = m->n_window,
                               .n_chunks = m->scores->chunk,
                               .n_scored = (int64_t)s->n,
                               .nll = s->n > 0 ? s->nll / (double)s->n : 0,
                               .ppl = ppl.value,
                               .ppl_error = ppl.error};
    if (!m->p.base)
        return r;
    const struct {
        mean of;
        double *value, *error;
    } rows[] = {{kld, &r.kld, &r.kld_error},
                {top, &r.same_top, &r.same_top_error},
                {llm_ppl_base_value(s), &r.ppl_base, &r.ppl_base_error},
                {llm_ppl_log_ratio(s), &r.ln_ratio, &r.ln_ratio_error},
                {llm_ppl_ratio(s), &r.ratio, &r.ratio_error},
                {llm_ppl_difference(s), &r.difference, &r.difference_error},
                {llm_ppl_p_diff(s), &r.p_diff, &r.p_diff_error},
                {llm_ppl_p_rms(s), &r.p_rms, &r.p_rms_error}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].value = rows[i].of.value;
        *rows[i].error = rows[i].of.error;
    }
    r.correlation = llm_ppl_correlation(s);
    return r;
}

static int order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts x[n], and sets the quantiles of a result. */
static void take_quantiles(double *to, double *x, size_t n) {
    static const double fraction[LLM_N_QUANTILES] = {0,    0.001, 0.01, 0.05, 0.1,   0.25, 0.5,
                                                     0.75, 0.9,   0.95, 0.99, 0.999, 1};
    qsort(x, n, sizeof *x, order);
    for (int k = 0; k < LLM_N_QUANTILES; k++)
        to[k] = llm_ppl_quantile(x, n, fraction[k]);
}

/* Reports where the measurement is. False: it has to end. */
static bool tell_window(const measurement *m) {
    const llm_perplexity_result r = result_of(m);
    const int64_t n = m->scores->chunk;
    const llm_perplexity_window w = {
        .n_done = n, .n = m->n_chunks, .ppl = n > 0 ? m->scores->by_chunk[n - 1] : 0, .so_far = &r};
    return !m->p.each || m->p.each(m->p.user, &w);
}

/* Completes the file `save`. */
static ggl_status end_save(measurement *m, ggl_error *err) {
    return m->save.file ? llm_logits_end(&m->save, err) : GGL_OK;
}

static ggl_status run_window(void *ctx, int copy, size_t i, size_t place, ggl_error *err) {
    measurement *m = ctx;
    const ggl_status st = llm_scores_run(m->scores, copy, llm_copies_session(m->c, copy),
                                         (int64_t)i, m->kept ? &m->kept[place] : NULL, err);
    llm_window_progress_set(&m->share, copy, 1);
    return st;
}

static ggl_status take_window(void *ctx, size_t i, size_t place, ggl_error *err) {
    measurement *m = ctx;
    (void)i;
    llm_scores_add(m->scores, m->kept ? &m->kept[place] : NULL);
    llm_window_progress_taken(&m->share);
    if (!tell_window(m))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    return m->save.file && ggl_new_file_error(m->save.file) ? end_save(m, err) : GGL_OK;
}

static ggl_status run_windows(measurement *m, ggl_error *err) {
    const llm_perplexity_params *p = &m->p;
    const int most = llm_placement_params(m->c->placement)->n_threads, n = llm_copies_n(m->c);
    const size_t n_places = llm_window_places(n, p->save != NULL);
    const logits_head head = {m->n_window, llm_session_n_vocab(m->c->session), m->n_chunks};
    const scores_params sp = {
        .n_copies = n,
        .n_vocab = head.n_vocab,
        .token = m->token,
        .bos = m->text.bos,
        .n_ctx = m->n_window,
        .n_chunk = m->n_chunks,
        .n_threads = llm_share_threads(most > 0 ? most : ggl_backend_allowed_cpus(), n),
        .save = p->save ? &m->save : NULL,
        .base = p->base ? &m->base : NULL,
        .base_path = p->base,
        .progress = on_progress,
        .ctx = m};
    if (n > 1 && !(m->kept = ggl_calloc(n_places, sizeof *m->kept)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    m->n_kept = n > 1 ? n_places : 0;
    ggl_status st = llm_window_progress_init(&m->share, n, err);
    if (st == GGL_OK)
        st = llm_scores_new(&m->scores, &sp, err);
    if (st == GGL_OK && p->save)
        st = llm_logits_begin(&m->save, p->save, &head, m->token, err);
    if (st == GGL_OK && !tell_window(m))
        return ggl_fail(err, GGL_CANCELLED, "cancelled");
    if (st == GGL_OK)
        st = llm_copies_run(m->c,
                            &(llm_copies_work){.n = (size_t)m->n_chunks,
                                               .n_places = n_places,
                                               .run = run_window,
                                               .take = take_window,
                                               .progress = tell_tokens,
                                               .ctx = m},
                            err);
    return st == GGL_OK ? end_save(m, err) : st;
}

static ggl_status measure(measurement *m, const char *text, size_t n, ggl_error *err) {
    ggl_status st = check_perplexity(m, text, err);
    if (st == GGL_OK)
        st = llm_text_chunks_find_bos(&m->text, m->c->tokenizer, err);
    if (st == GGL_OK)
        st = m->p.base ? open_base(m, err) : take_text(m, text, n, err);
    if (st == GGL_OK)
        st = check_window(m, err);
    if (st == GGL_OK && m->p.n_chunks > 0 && m->p.n_chunks < m->n_chunks)
        m->n_chunks = m->p.n_chunks;
    if (st == GGL_OK)
        st = llm_context_take(m->c, err);
    if (st == GGL_OK)
        st = llm_context_clear(m->c, err);
    if (st != GGL_OK)
        return st;
    ggl_error own;
    st = run_windows(m, err);
    for (int k = 0; k < llm_copies_n(m->c); k++) {
        const ggl_status cleared = llm_session_clear(llm_copies_session(m->c, k), 0, &own);
        st = st == GGL_OK && cleared != GGL_OK ? ggl_pass(err, &own) : st;
    }
    return st;
}

ggl_status llm_perplexity(llm_context *c, const char *text, size_t n,
                          const llm_perplexity_params *params, llm_perplexity_result *result,
                          ggl_error *err) {
    measurement m = {.c = c, .p = {.size = sizeof m.p}, .text.bos = -1};
    llm_context_start(c);
    ggl_status st = GGL_READ_PARAMS(llm_perplexity_params, &m.p, params, err);
    if (st == GGL_OK)
        st = CHECK_RESULT(llm_perplexity_result, result, err);
    if (st == GGL_OK)
        st = measure(&m, text, n, err);
    if (st == GGL_OK) {
        llm_perplexity_result r = result_of(&m);
        if (m.p.base) {
            take_quantiles(r.kld_quantile, m.scores->kld, m.scores->stats.n);
            take_quantiles(r.p_diff_quantile, m.scores->p_diff, m.scores->stats.n);
        }
        st = GGL_WRITE_PARAMS(llm_perplexity_result, result, &r, err);
    }
    llm_scores_free(m.scores);
    for (size_t k = 0; k < m.n_kept; k++)
        llm_scores_rows_fini(&m.kept[k]);
    ggl_free(m.kept);
    llm_window_progress_fini(&m.share);
    llm_logits_abort(&m.save);
    llm_logits_close(&m.base);
    llm_text_chunks_fini(&m.text);
    return st;
}

ggl_status llm_perplexity_base(const char *path, llm_base_info *info, ggl_error *err) {
    logits_reader base;
    ggl_status st = CHECK_RESULT(llm_base_info, info, err);
    if (st == GGL_OK)
        st = llm_logits_open(&base, path, err);
    if (st != GGL_OK)
        return st;
    const llm_base_info of = {
        .n_window = base.head.n_ctx, .n_chunks = base.head.n_chunk, .n_vocab = base.head.n_vocab};
    llm_logits_close(&base);
    return GGL_WRITE_PARAMS(llm_base_info, info, &of, err);
}
