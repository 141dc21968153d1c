/* Generators: one sequence in a slot, run when the next token is asked for. */
#include "llm/internal/generate.h"

#include <inttypes.h>
#include <string.h>

#include "common/least.h"
#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "sequence.h"

struct llm_generator {
    llm_generator_params p;
    seq q;
    int64_t n_prompt;
    /* The last batch: its tokens, and the logits of its last token and of each guess. */
    int32_t *batch;    /* [n_ctx]: tokens to run and guesses */
    int32_t *slots;    /* [n_ctx]: p.slot, for llm_batch */
    bool *want;        /* [n_ctx] */
    const float **row; /* [n_ahead_max + 1] */
    int64_t n_rows;
    const float *drawn_from;
    llm_generator_stats stats;
};

/* --- creation --------------------------------------------------------------------------------- */

static ggl_status init(llm_generator *g, const llm_generator_params *p, ggl_error *err) {
    g->p = *p;
    ggl_status st = llm_seq_init(&g->q, p->session, p->guesser, p->n_guess_max, err);
    if (st != GGL_OK)
        return st;
    g->q.slot = p->slot;
    g->q.sampler = p->sampler;
    g->q.shifts = p->shift;
    const size_t n = (size_t)g->q.n_ctx, n_rows = (size_t)g->q.n_ahead_max + 1;
    g->slots = ggl_calloc(n, sizeof *g->slots);
    for (size_t i = 0; g->slots && i < n; i++)
        g->slots[i] = p->slot;
    g->q.token = ggl_calloc(n + 1, sizeof *g->q.token); /* a full context and the token after it */
    g->batch = ggl_calloc(n, sizeof *g->batch);
    g->want = ggl_calloc(n, sizeof *g->want);
    g->row = ggl_calloc(n_rows, sizeof *g->row);
    if (!g->q.token || !g->slots || !g->batch || !g->want || !g->row)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a generator of %" PRId64 " tokens",
                        g->q.n_ctx);
    return llm_session_clear(p->session, p->slot, err);
}

ggl_status llm_generator_new(llm_generator **out, const llm_generator_params *params,
                             ggl_error *err) {
    llm_generator_params own = {.size = sizeof own};
    const llm_generator_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_generator_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    if (!p->session || !p->sampler || p->n_guess_max < 0 || p->n_keep < -1)
        return ggl_fail(err, GGL_USAGE,
                        "a generator needs a session and a sampler, n_guess_max of 0 or more, and "
                        "n_keep of -1 or more; n_guess_max is %" PRId64 " and n_keep %" PRId64,
                        p->n_guess_max, p->n_keep);
    llm_generator *g = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a generator");
    const ggl_status st = init(g, p, err);
    if (st != GGL_OK) {
        llm_generator_free(g);
        return st;
    }
    *out = g;
    return GGL_OK;
}

void llm_generator_free(llm_generator *g) {
    if (!g)
        return;
    llm_seq_fini(&g->q);
    ggl_free(g->q.token);
    ggl_free(g->slots);
    ggl_free(g->batch);
    ggl_free(g->want);
    ggl_free(g->row);
    ggl_free(g);
}

/* --- running ---------------------------------------------------------------------------------- */

typedef struct run_ctx {
    llm_generator *g;
    const llm_prompt *prompt; /* NULL, or whose `each` gets all logits */
} run_ctx;

static void on_logits(void *ctx, int64_t i, const float *logits) {
    const run_ctx *r = ctx;
    if (r->prompt)
        r->prompt->each(r->prompt->ctx, i, logits);
    else
        r->g->row[r->g->n_rows++] = logits;
}

static bool on_progress(void *ctx, int64_t n_done, int64_t n) {
    const run_ctx *r = ctx;
    return r->g->p.progress(r->g->p.ctx, n_done, n);
}

/* Runs what the slot lacks of the sequence, and the guesses after it. */
static ggl_status run(llm_generator *g, const llm_prompt *prompt, ggl_error *err) {
    run_ctx ctx = {g, prompt && prompt->each ? prompt : NULL};
    seq *q = &g->q;
    const int64_t first = q->n_kept, n_new = q->n - first, n = llm_seq_fill(q, g->batch, q->n_ctx);
    for (int64_t i = 0; i < n; i++)
        g->want[i] = (ctx.prompt && g->batch[i] >= 0) || i >= n_new - 1;
    const bool is_long = n_new > 1 && g->p.progress;
    const llm_batch b = {.n = n,
                         .token = g->batch,
                         .slot = g->slots,
                         .want = g->want,
                         .each = on_logits,
                         .progress = is_long ? on_progress : NULL,
                         .ctx = &ctx};
    g->n_rows = 0;
    if (is_long && !g->p.progress(g->p.ctx, 0, n))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    ggl_status st = llm_session_eval(q->session, &b, err);
    const int64_t n_past = llm_session_n_past(q->session, q->slot);
    q->n_kept = least(n_past, q->n);
    if (st == GGL_OK && n_past < first + n)
        st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    if (st != GGL_OK)
        return st;
    if (ctx.prompt)
        g->row[g->n_rows++] = llm_session_logits(q->session);
    llm_seq_ran(q);
    return GGL_OK;
}

/* Makes room in a full context, or fails with GGL_LIMIT. */
static ggl_status shift(llm_generator *g, ggl_error *err) {
    seq *q = &g->q;
    if (!g->p.shift)
        return ggl_fail(err, GGL_LIMIT, "the context of %" PRId64 " tokens is full", q->n_ctx);
    const int64_t keep = least(g->p.n_keep < 0 ? g->n_prompt : g->p.n_keep, q->n_ctx / 2);
    int64_t n_dropped;
    const ggl_status st = llm_seq_shift(q, keep, (q->n - keep + 1) / 2, &n_dropped, err);
    if (st != GGL_OK)
        return st;
    g->stats.n_shifts++;
    g->stats.n_dropped += n_dropped;
    return GGL_OK;
}

/* Runs the batch whose logits the next token is drawn from. */
static ggl_status advance(llm_generator *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (g->q.n == 0)
        return ggl_fail(err, GGL_USAGE, "there is no prompt to continue");
    if (g->q.n > g->q.n_ctx)
        st = shift(g, err);
    /* takes away wrong guesses; and without a token to run there would be no logits */
    if (st == GGL_OK)
        st = llm_seq_go_back(&g->q, g->q.n - 1, err);
    if (st == GGL_OK)
        st = llm_seq_guess(&g->q, g->q.n_ahead_max, err);
    return st == GGL_OK ? run(g, NULL, err) : st;
}

/* --- prompts ---------------------------------------------------------------------------------- */

ggl_status llm_generator_prompt(llm_generator *g, const llm_prompt *p, ggl_error *err) {
    seq *q = &g->q;
    ggl_status st = llm_seq_check(q->session, p->id, p->n, err);
    if (st != GGL_OK)
        return st;
    /* the last token always runs, as its logits are wanted */
    int64_t keep = p->each ? 0 : llm_seq_common(q->token, q->n_kept, p->id, (int64_t)p->n);
    if (keep == (int64_t)p->n)
        keep--;
    g->drawn_from = NULL;
    st = llm_seq_go_back(q, keep, err);
    if (st != GGL_OK)
        return st;
    q->n_told = least(q->n_told, keep);
    memmove(q->token, p->id, p->n * sizeof *q->token); /* may be our own tokens */
    q->n = g->n_prompt = (int64_t)p->n;
    g->stats.n_reused = q->n_kept;
    st = run(g, p, err);
    g->stats.n_prompt = q->n_kept - g->stats.n_reused;
    q->n = q->n_kept;
    q->n_told = least(q->n_told, q->n_kept);
    llm_seq_tell_sampler(q);
    return st == GGL_OK && llm_session_has_states(q->session)
               ? llm_seq_take_snapshot(q, SEQ_AT_PROMPT, err)
               : st;
}

ggl_status llm_generator_adopt(llm_generator *g, const int32_t *id, size_t n, ggl_error *err) {
    seq *q = &g->q;
    const int64_t n_past = llm_session_n_past(q->session, q->slot);
    if (n > (size_t)q->n_ctx || (int64_t)n != n_past)
        return ggl_fail(err, GGL_USAGE, "the slot holds %" PRId64 " tokens, but %zu are given",
                        n_past, n);
    llm_seq_drop_snapshots(q);
    if (n > 0)
        memmove(q->token, id, n * sizeof *id);
    q->n = q->n_kept = g->n_prompt = n_past;
    q->n_told = 0;
    q->at = -1;
    g->drawn_from = NULL;
    return n > 0 && llm_session_has_states(q->session)
               ? llm_seq_take_snapshot(q, SEQ_AT_PROMPT, err)
               : GGL_OK;
}

ggl_status llm_generator_settle(llm_generator *g, size_t *n_held, ggl_error *err) {
    const ggl_status st = llm_seq_go_back(&g->q, g->q.n_kept, err);
    *n_held = (size_t)g->q.n_kept;
    return st;
}

/* --- drawing ---------------------------------------------------------------------------------- */

ggl_status llm_generator_constrain(llm_generator *g, llm_matcher *m, int64_t n_max,
                                   ggl_error *err) {
    return llm_seq_constrain(&g->q, m, n_max, err);
}

ggl_status llm_generator_next(llm_generator *g, int32_t *id, ggl_error *err) {
    ggl_status st = g->q.at < 0 ? advance(g, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    const float *logits = g->row[g->q.at];
    st = llm_seq_draw(&g->q, logits, id, err);
    if (st == GGL_OK && *id >= 0)
        g->drawn_from = logits;
    return st;
}

void llm_generator_set_run(llm_generator *g, bool shift, int64_t n_keep,
                           bool (*progress)(void *ctx, int64_t n_done, int64_t n), void *ctx) {
    g->p.shift = g->q.shifts = shift;
    g->p.n_keep = n_keep;
    g->p.progress = progress;
    g->p.ctx = ctx;
}

void llm_generator_set_sampler(llm_generator *g, llm_sampler *sampler) {
    g->q.sampler = sampler;
    llm_seq_tell_sampler(&g->q);
}

/* --- looking ---------------------------------------------------------------------------------- */

const int32_t *llm_generator_tokens(const llm_generator *g, size_t *n) {
    *n = (size_t)g->q.n;
    return g->q.token;
}

const float *llm_generator_logits(const llm_generator *g) {
    return g->drawn_from;
}

llm_generator_stats llm_generator_get_stats(const llm_generator *g) {
    llm_generator_stats stats = g->stats;
    stats.n_drawn = g->q.n_drawn;
    stats.n_guessed = g->q.n_guessed;
    stats.n_right = g->q.n_right;
    stats.n_nan = g->q.n_nan;
    return stats;
}
