/* The sequence of a context: logits and embeddings of tokens that the caller gives. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arrays.h"
#include "context.h"
#include "ggl/internal/alloc.h"
#include "llm/internal/logprobs.h"

/* --- who has the sequence --------------------------------------------------------------------- */

/* id may point into t->id, as llm_sequence gives it: the array can move when it grows. */
static bool append(llm_tokens *t, const int32_t *id, size_t n) {
    const uintptr_t offset = (uintptr_t)id - (uintptr_t)t->id;
    const bool is_own = t->id && offset < t->n * sizeof *id;
    if (!ggl_grow(&t->id, &t->cap, t->n + n, sizeof *id))
        return false;
    if (n > 0)
        memcpy(t->id + t->n, is_own ? t->id + offset / sizeof *id : id, n * sizeof *id);
    t->n += n;
    return true;
}

ggl_status llm_context_take(llm_context *c, ggl_error *err) {
    size_t n;
    llm_context_end(c);
    ggl_status st = llm_context_end_jobs(c, err);
    if (st != GGL_OK || c->is_own || !c->engine) /* without one, nobody else has written */
        return st;
    c->ids.n = 0;
    const int32_t *id = llm_sequence(c, &n);
    if (!append(&c->ids, id, n))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    c->is_own = true;
    return GGL_OK;
}

ggl_status llm_context_give(llm_context *c, ggl_error *err) {
    ggl_status st = llm_context_end_jobs(c, err);
    if (st != GGL_OK || !c->is_own)
        return st;
    const int64_t n_past = llm_session_n_past(c->session, 0);
    st = llm_engine_adopt(c->engine, 0, c->ids.id, (size_t)n_past, err);
    c->is_own = st != GGL_OK;
    return st;
}

ggl_status llm_context_clear(llm_context *c, ggl_error *err) {
    c->ids.n = 0;
    c->is_own = true;
    c->logits = NULL;
    return llm_session_clear(c->session, 0, err);
}

ggl_status llm_context_set(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    c->ids.n = 0;
    c->is_own = true;
    c->logits = NULL;
    if (append(&c->ids, id, n))
        return GGL_OK;
    (void)llm_context_clear(c, NULL);
    return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
}

ggl_status llm_context_run_prompt(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_keep_common(c, id, n, err);
    if (st != GGL_OK)
        return st;
    c->logits = NULL;
    if (!append(&c->ids, id + c->ids.n, n - c->ids.n))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    if (st == GGL_OK)
        st = llm_context_run(c, 1, err);
    if (st != GGL_OK)
        llm_context_recover(c);
    return st;
}

void llm_context_recover(llm_context *c) {
    const int64_t n = llm_session_n_past(c->session, 0);
    if (n >= 0 && (size_t)n <= c->ids.n && llm_session_cut(c->session, 0, n, NULL) == GGL_OK)
        c->ids.n = (size_t)n;
    else
        (void)llm_context_clear(c, NULL);
}

/* --- logits ----------------------------------------------------------------------------------- */

static void keep_row(void *ctx, int64_t i, const float *logits) {
    llm_context *c = ctx;
    const size_t n_vocab = (size_t)llm_session_n_vocab(c->session);
    (void)i;
    memcpy(c->rows + c->n_rows++ * n_vocab, logits, n_vocab * sizeof *logits);
}

ggl_status llm_context_run(llm_context *c, size_t n_rows, ggl_error *err) {
    const size_t n_past = (size_t)llm_session_n_past(c->session, 0), n = c->ids.n - n_past;
    const size_t n_vocab = (size_t)llm_session_n_vocab(c->session);
    size_t most;
    if (!ggl_size_mul(n_rows, n_vocab, &most) ||
        !ggl_grow(&c->rows, &c->cap_rows, most, sizeof *c->rows))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the logits of %zu tokens", n_rows);
    bool *want = ggl_calloc(n, sizeof *want);
    if (!want)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    for (size_t i = n - n_rows; i < n; i++)
        want[i] = true;
    c->n_rows = 0;
    const ggl_status st = llm_session_eval(
        c->session,
        &(llm_batch){
            .n = (int64_t)n, .token = c->ids.id + n_past, .want = want, .each = keep_row, .ctx = c},
        err);
    ggl_free(want);
    return st;
}

ggl_status llm_eval(llm_context *c, const int32_t *id, size_t n, bool all, const float **logits,
                    ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(c->session);
    if (logits)
        *logits = NULL;
    c->logits = NULL;
    atomic_store(&c->cancelled, false);
    if (n == 0)
        return ggl_fail(err, GGL_USAGE, "llm_eval needs at least one token");
    ggl_status st = llm_need_array("id", id, n, err);
    if (st == GGL_OK)
        st = llm_context_take(c, err);
    if (st != GGL_OK)
        return st;
    const size_t n_before = c->ids.n;
    if (n_before > (size_t)n_ctx || n > (size_t)n_ctx - n_before)
        return ggl_fail(err, GGL_LIMIT,
                        "the sequence has %zu tokens, and %zu more exceed the context of %" PRId64,
                        n_before, n, n_ctx);
    if (!append(&c->ids, id, n))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    st = llm_context_run(c, all ? n : 1, err);
    if (st == GGL_USAGE || st == GGL_LIMIT || st == GGL_NOMEM)
        c->ids.n = n_before; /* nothing was done */
    else if (st != GGL_OK)
        llm_context_recover(c);
    if (st != GGL_OK)
        return st;
    c->logits = c->rows + (c->n_rows - 1) * (size_t)llm_session_n_vocab(c->session);
    if (logits)
        *logits = c->rows;
    return GGL_OK;
}

const float *llm_logits(const llm_context *c) {
    return c->logits;
}

const int32_t *llm_sequence_read(const llm_context *c, size_t *n) {
    int64_t n_text;
    const int32_t *text = llm_session_text(c->session, 0, &n_text);
    *n = (size_t)n_text;
    return text;
}

const int32_t *llm_sequence(const llm_context *c, size_t *n) {
    int64_t n_held = (int64_t)c->ids.n;
    const int32_t *id =
        c->is_own || !c->engine ? c->ids.id : llm_engine_tokens(c->engine, 0, &n_held);
    static const int32_t none;
    *n = (size_t)n_held;
    return id ? id : &none;
}

ggl_status llm_truncate(llm_context *c, size_t n, ggl_error *err) {
    atomic_store(&c->cancelled, false);
    ggl_status st = llm_context_take(c, err);
    if (st != GGL_OK)
        return st;
    if (n > c->ids.n)
        return ggl_fail(err, GGL_USAGE, "the sequence has %zu tokens, so %zu cannot be kept",
                        c->ids.n, n);
    c->logits = NULL;
    if (n == 0)
        return llm_context_clear(c, err);
    if (n < (size_t)llm_session_n_past(c->session, 0) &&
        llm_session_cut(c->session, 0, (int64_t)n, NULL) != GGL_OK) {
        st = llm_session_clear(c->session, 0, err);
        c->ids.n = n;
        st = st == GGL_OK ? llm_context_run(c, 1, err) : st;
        if (st != GGL_OK)
            llm_context_recover(c);
    }
    c->ids.n = n < c->ids.n ? n : c->ids.n;
    return st;
}

/* --- scores ----------------------------------------------------------------------------------- */

/* A continuation, and where its scores are written to. */
typedef struct scores {
    const int32_t *id; /* [n]: the continuation */
    size_t first;      /* index of the first token that is run */
    size_t n_prompt;
    int32_t n_vocab;
    double *logprob;
    bool *greedy;
    bool *bad; /* set if a logit is NaN, or none is finite */
} scores;

static bool is_bad(const float *logits, int32_t n) {
    bool any = false;
    for (int32_t i = 0; i < n; i++) {
        if (isnan(logits[i]))
            return true;
        any = any || isfinite(logits[i]);
    }
    return !any;
}

static void score(void *ctx, int64_t i, const float *logits) {
    const scores *s = ctx;
    const size_t k = s->first + (size_t)i + 1 - s->n_prompt;
    llm_logprob chosen = {.id = s->id[k]}, top;
    *s->bad = *s->bad || is_bad(logits, s->n_vocab);
    (void)llm_logprobs(logits, s->n_vocab, &chosen, &top, 1);
    if (s->logprob)
        s->logprob[k] = chosen.logprob;
    if (s->greedy)
        s->greedy[k] = top.id == chosen.id;
}

ggl_status llm_context_keep_common(llm_context *c, const int32_t *id, size_t n_prompt,
                                   ggl_error *err) {
    const size_t n_past = (size_t)llm_session_n_past(c->session, 0);
    size_t n = 0;
    while (n < n_past && n + 1 < n_prompt && c->ids.id[n] == id[n])
        n++;
    c->ids.n = n;
    if (n == n_past)
        return GGL_OK;
    return n > 0 && llm_session_cut(c->session, 0, (int64_t)n, NULL) == GGL_OK
               ? GGL_OK
               : llm_context_clear(c, err);
}

/* Runs the tokens of c->ids that the slot does not have. */
static ggl_status run_scores(llm_context *c, scores *s, ggl_error *err) {
    s->first = (size_t)llm_session_n_past(c->session, 0);
    const size_t n = c->ids.n - s->first;
    bool *want = ggl_calloc(n, sizeof *want);
    if (!want)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    for (size_t i = s->n_prompt - 1 - s->first; i < n; i++)
        want[i] = true;
    const llm_batch b = {
        .n = (int64_t)n, .token = c->ids.id + s->first, .want = want, .each = score, .ctx = s};
    const ggl_status st = llm_session_eval(c->session, &b, err);
    ggl_free(want);
    return st;
}

ggl_status llm_context_check_writes(const llm_context *c, bool reads, ggl_error *err) {
    const llm_arch *a = llm_model_arch(c->model);
    if (!llm_arch_has_output(a, "logits"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model gives no logits: it makes vectors or scores of texts, and "
                        "does not write them");
    if (llm_arch_sees_all(a))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "each token of this model sees those after it, too, so none has a "
                        "probability after those before it: texts are written by diffusion "
                        "(llm-cli, llm_generate)");
    if (!reads && llm_arch_reads_text(a))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model reads a text and writes another, so a text alone cannot be "
                        "measured");
    return GGL_OK;
}

static ggl_status check_score(const llm_context *c, size_t n_prompt, const int32_t *id, size_t n,
                              ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(c->session), n_vocab = llm_session_n_vocab(c->session);
    if (n_prompt == 0 || n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "llm_score needs a prompt and a continuation of at least one token, but "
                        "they have %zu and %zu",
                        n_prompt, n);
    if (n_prompt > (size_t)n_ctx || n - 1 > (size_t)n_ctx - n_prompt)
        return ggl_fail(err, GGL_LIMIT,
                        "a prompt of %zu tokens and a continuation of %zu exceed the context of "
                        "%" PRId64,
                        n_prompt, n, n_ctx);
    for (size_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "token %zu of the continuation is %" PRId32 "; the vocabulary has "
                            "%" PRId64,
                            i, id[i], n_vocab);
    return GGL_OK;
}

/* all: the prompt and the n tokens of the continuation. */
static ggl_status score_tokens(llm_context *c, const llm_tokens *all, scores *s, ggl_error *err) {
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_keep_common(c, all->id, s->n_prompt, err);
    if (st != GGL_OK)
        return st;
    c->logits = NULL;
    if (!append(&c->ids, all->id + c->ids.n, all->n - 1 - c->ids.n))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", all->n);
    if (st == GGL_OK)
        st = run_scores(c, s, err);
    if (st != GGL_OK)
        llm_context_recover(c);
    return st;
}

ggl_status llm_score(llm_context *c, const int32_t *prompt, size_t n_prompt, const int32_t *id,
                     size_t n, double *logprob, bool *greedy, ggl_error *err) {
    llm_tokens all = {0}; /* a copy, as the arrays may be the sequence, which changes */
    bool bad = false;
    atomic_store(&c->cancelled, false);
    ggl_status st = llm_need_array("prompt", prompt, n_prompt, err);
    if (st == GGL_OK)
        st = llm_need_array("id", id, n, err);
    if (st == GGL_OK)
        st = llm_context_check_writes(c, true, err);
    if (st == GGL_OK)
        st = check_score(c, n_prompt, id, n, err);
    if (st == GGL_OK && (!append(&all, prompt, n_prompt) || !append(&all, id, n)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n_prompt + n);
    if (st == GGL_OK) {
        scores s = {.id = all.id + n_prompt,
                    .n_prompt = n_prompt,
                    .n_vocab = (int32_t)llm_session_n_vocab(c->session),
                    .logprob = logprob,
                    .greedy = greedy,
                    .bad = &bad};
        st = score_tokens(c, &all, &s, err);
        if (st == GGL_OK && bad)
            st = ggl_fail(err, GGL_FORMAT, "the model's logits are not finite");
    }
    llm_tokens_fini(&all);
    return st;
}
