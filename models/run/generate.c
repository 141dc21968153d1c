/* Generators: which tokens a slot holds, what has to run next, and which token is drawn. */
#include "llm/generate.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/alloc.h"

/* States of the slot at an earlier token, for models whose states cannot be cut back. */
typedef struct snapshot {
    void *data; /* NULL: none */
    size_t size;
    int64_t n; /* tokens of the sequence at which it was made */
} snapshot;

enum { SNAPSHOT_PROMPT, SNAPSHOT_GUESS, N_SNAPSHOTS };

struct llm_generator {
    llm_generator_params p;
    llm_guesser guesser; /* copied: p.guesser may be gone */
    int64_t n_ctx, n_vocab, n_guess_max;
    bool has_states;
    /* The sequence. The slot holds its first n_kept tokens, and behind them perhaps wrong guesses. */
    int32_t *token; /* [n_ctx + 1]: a full context and the token drawn after it */
    size_t n;
    int64_t n_kept, n_prompt;
    int64_t n_told; /* tokens at the start that the guesser has seen; they did not change since */
    snapshot snapshot[N_SNAPSHOTS];
    /* The last batch: its guesses, and the logits of its last token and of each guess. */
    int32_t *guess;    /* [n_guess_max] */
    int32_t *batch;    /* [n_ctx]: tokens to run and guesses */
    int32_t *slots;    /* [n_ctx]: p.slot, for llm_batch */
    bool *want;        /* [n_ctx] */
    const float **row; /* [n_guess_max + 1] */
    int64_t n_guess, n_rows;
    llm_matcher *matcher; /* NULL: every token is allowed */
    uint32_t *allowed;    /* a bit for each token; made when it is first needed */
    int64_t n_left;       /* tokens that will be drawn at most; less than 0: any number */
    int64_t at;           /* the row of the next token to draw; -1: a batch has to run first */
    const float *drawn_from;
    llm_generator_stats stats;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- creation --------------------------------------------------------------------------------- */

ggl_status llm_generator_new(llm_generator **out, const llm_generator_params *p, ggl_error *err) {
    *out = NULL;
    if (!p->session || !p->sampler || p->n_guess_max < 0 || p->n_keep < -1)
        return ggl_fail(err, GGL_USAGE,
                        "a generator needs a session and a sampler, n_guess_max of 0 or more, and "
                        "n_keep of -1 or more; n_guess_max is %" PRId64 " and n_keep %" PRId64,
                        p->n_guess_max, p->n_keep);
    llm_generator *g = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a generator");
    g->p = *p;
    if (p->guesser)
        g->guesser = *p->guesser;
    g->n_ctx = llm_session_n_ctx(p->session);
    g->n_vocab = llm_session_n_vocab(p->session);
    g->has_states = llm_session_has_states(p->session);
    g->n_guess_max = p->guesser ? p->n_guess_max : 0;
    g->n_guess_max = least(g->n_guess_max, llm_session_n_rows(p->session) - 1);
    g->n_guess_max = least(g->n_guess_max, llm_session_cut_limit(p->session));
    g->at = -1;
    const size_t n = (size_t)g->n_ctx, n_rows = (size_t)g->n_guess_max + 1;
    g->slots = ggl_calloc(n, sizeof *g->slots);
    for (size_t i = 0; g->slots && i < n; i++)
        g->slots[i] = p->slot;
    g->token = ggl_calloc(n + 1, sizeof *g->token);
    g->batch = ggl_calloc(n, sizeof *g->batch);
    g->want = ggl_calloc(n, sizeof *g->want);
    g->guess = ggl_calloc(n_rows, sizeof *g->guess);
    g->row = ggl_calloc(n_rows, sizeof *g->row);
    ggl_status st = GGL_OK;
    if (!g->token || !g->slots || !g->batch || !g->want || !g->guess || !g->row)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a generator of %" PRId64 " tokens",
                      g->n_ctx);
    if (st == GGL_OK)
        st = llm_session_clear(p->session, p->slot, err);
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
    for (int i = 0; i < N_SNAPSHOTS; i++)
        ggl_free(g->snapshot[i].data);
    ggl_free(g->allowed);
    ggl_free(g->token);
    ggl_free(g->slots);
    ggl_free(g->batch);
    ggl_free(g->want);
    ggl_free(g->guess);
    ggl_free(g->row);
    ggl_free(g);
}

/* --- going back ------------------------------------------------------------------------------- */

static void drop_snapshot(snapshot *s) {
    ggl_free(s->data);
    *s = (snapshot){0};
}

static ggl_status take_snapshot(llm_generator *g, int which, ggl_error *err) {
    snapshot *s = &g->snapshot[which];
    drop_snapshot(s);
    s->n = llm_session_n_past(g->p.session, g->p.slot);
    return llm_session_save(g->p.session, g->p.slot, true, &s->data, &s->size, err);
}

/* Restores the latest snapshot that is not after n. Returns false if none can be. */
static bool restore(llm_generator *g, int64_t n) {
    snapshot *best = NULL;
    for (int i = 0; i < N_SNAPSHOTS; i++) {
        snapshot *s = &g->snapshot[i];
        if (s->data && s->n <= n && (!best || s->n > best->n))
            best = s;
    }
    return best &&
           llm_session_restore(g->p.session, g->p.slot, best->data, best->size, NULL) == GGL_OK;
}

/* Makes the slot hold at most the first n tokens of the sequence: as many as the model's caches
 * allow, perhaps none. Sets n_kept. */
static ggl_status go_back(llm_generator *g, int64_t n, ggl_error *err) {
    llm_session *s = g->p.session;
    const int slot = g->p.slot;
    ggl_status st = GGL_OK;
    g->at = -1;
    n = least(n, g->n_kept);
    if (llm_session_cut(s, slot, n, NULL) != GGL_OK && !restore(g, n))
        st = llm_session_clear(s, slot, err);
    g->n_kept = llm_session_n_past(s, slot);
    for (int i = 0; i < N_SNAPSHOTS; i++)
        if (g->snapshot[i].n > n)
            drop_snapshot(&g->snapshot[i]);
    return st;
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

/* Runs what the slot lacks of the sequence, and n_guess guesses after it. */
static ggl_status run(llm_generator *g, const llm_prompt *prompt, ggl_error *err) {
    run_ctx ctx = {g, prompt && prompt->each ? prompt : NULL};
    const int64_t first = g->n_kept, n_new = (int64_t)g->n - first, n = n_new + g->n_guess;
    memcpy(g->batch, g->token + first, (size_t)n_new * sizeof *g->batch);
    memcpy(g->batch + n_new, g->guess, (size_t)g->n_guess * sizeof *g->batch);
    for (int64_t i = 0; i < n; i++)
        g->want[i] = ctx.prompt || i >= n_new - 1;
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
    ggl_status st = llm_session_eval(g->p.session, &b, err);
    const int64_t n_past = llm_session_n_past(g->p.session, g->p.slot);
    g->n_kept = least(n_past, (int64_t)g->n);
    if (st == GGL_OK && n_past < first + n)
        st = ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    if (ctx.prompt && st == GGL_OK)
        g->row[g->n_rows++] = llm_session_logits(g->p.session);
    g->at = st == GGL_OK ? 0 : -1;
    return st;
}

/* Asks for guesses of what follows the sequence, as many as the next batch has room for. */
static ggl_status guess(llm_generator *g, ggl_error *err) {
    const int64_t room = g->n_ctx - (int64_t)g->n;
    const int64_t most = least(g->n_guess_max, room);
    g->n_guess = 0;
    if (most <= 0 || g->n_kept + 1 < (int64_t)g->n)
        return GGL_OK;
    const llm_guesser *by = &g->guesser;
    const int64_t n = by->guess(by->self, g->token, g->n, (size_t)g->n_told, g->guess, most);
    g->n_told = (int64_t)g->n;
    for (; g->n_guess < n && g->n_guess < most; g->n_guess++)
        if (g->guess[g->n_guess] < 0 || g->guess[g->n_guess] >= g->n_vocab)
            break;
    return g->n_guess > 0 && g->has_states ? take_snapshot(g, SNAPSHOT_GUESS, err) : GGL_OK;
}

/* Makes room in a full context, or fails with GGL_LIMIT. */
static ggl_status shift(llm_generator *g, ggl_error *err) {
    if (!g->p.shift)
        return ggl_fail(err, GGL_LIMIT, "the context of %" PRId64 " tokens is full", g->n_ctx);
    const int64_t keep = least(g->p.n_keep < 0 ? g->n_prompt : g->p.n_keep, g->n_ctx / 2);
    const int64_t n_drop = ((int64_t)g->n - keep + 1) / 2;
    ggl_status st = go_back(g, keep, err);
    if (st != GGL_OK)
        return st;
    g->n_told = least(g->n_told, keep);
    g->n -= (size_t)n_drop;
    memmove(g->token + keep, g->token + keep + n_drop, (g->n - (size_t)keep) * sizeof *g->token);
    g->stats.n_shifts++;
    g->stats.n_dropped += n_drop;
    return GGL_OK;
}

/* Runs the batch whose logits the next token is drawn from. */
static ggl_status advance(llm_generator *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (g->n == 0)
        return ggl_fail(err, GGL_USAGE, "there is no prompt to continue");
    if ((int64_t)g->n > g->n_ctx)
        st = shift(g, err);
    /* takes away wrong guesses; and without a token to run there would be no logits */
    const int64_t last = (int64_t)g->n - 1;
    if (st == GGL_OK)
        st = go_back(g, last, err);
    g->n_guess = 0;
    if (st == GGL_OK && g->n_guess_max > 0)
        st = guess(g, err);
    return st == GGL_OK ? run(g, NULL, err) : st;
}

/* --- prompts ---------------------------------------------------------------------------------- */

static ggl_status check_prompt(const llm_generator *g, const llm_prompt *p, ggl_error *err) {
    if (p->n == 0)
        return ggl_fail(err, GGL_USAGE, "the prompt is empty");
    if (p->n > (size_t)g->n_ctx)
        return ggl_fail(err, GGL_LIMIT, "the prompt has %zu tokens, but the context only %" PRId64,
                        p->n, g->n_ctx);
    for (size_t i = 0; i < p->n; i++)
        if (p->id[i] < 0 || p->id[i] >= g->n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId32 " is not in the vocabulary of %" PRId64, p->id[i],
                            g->n_vocab);
    return GGL_OK;
}

/* The number of tokens at the start that the slot already holds. */
static int64_t common_beginning(const llm_generator *g, const llm_prompt *p) {
    int64_t n = 0;
    while (n < g->n_kept && n < (int64_t)p->n && p->id[n] == g->token[n])
        n++;
    return n;
}

ggl_status llm_generator_prompt(llm_generator *g, const llm_prompt *p, ggl_error *err) {
    ggl_status st = check_prompt(g, p, err);
    if (st != GGL_OK)
        return st;
    /* the last token always runs, as its logits are wanted */
    int64_t keep = p->each ? 0 : common_beginning(g, p);
    if (keep == (int64_t)p->n)
        keep--;
    g->drawn_from = NULL;
    g->n_guess = 0;
    st = go_back(g, keep, err);
    if (st != GGL_OK)
        return st;
    g->n_told = least(g->n_told, keep);
    memcpy(g->token, p->id, p->n * sizeof *g->token);
    g->n = p->n;
    g->n_prompt = (int64_t)p->n;
    g->stats.n_reused = g->n_kept;
    st = run(g, p, err);
    g->stats.n_prompt = g->n_kept - g->stats.n_reused;
    g->n = (size_t)g->n_kept;
    g->n_told = least(g->n_told, g->n_kept);
    llm_sampler_forget(g->p.sampler);
    for (size_t i = 0; i < g->n; i++)
        llm_sampler_accept(g->p.sampler, g->token[i]);
    return st == GGL_OK && g->has_states ? take_snapshot(g, SNAPSHOT_PROMPT, err) : st;
}

ggl_status llm_generator_adopt(llm_generator *g, const int32_t *id, size_t n, ggl_error *err) {
    const int64_t n_past = llm_session_n_past(g->p.session, g->p.slot);
    if (n > (size_t)g->n_ctx || (int64_t)n != n_past)
        return ggl_fail(err, GGL_USAGE, "the slot holds %" PRId64 " tokens, but %zu are given",
                        n_past, n);
    for (int i = 0; i < N_SNAPSHOTS; i++)
        drop_snapshot(&g->snapshot[i]);
    if (n > 0)
        memcpy(g->token, id, n * sizeof *id);
    g->n = n;
    g->n_told = 0;
    g->n_kept = g->n_prompt = n_past;
    g->at = -1;
    g->drawn_from = NULL;
    return n > 0 && g->has_states ? take_snapshot(g, SNAPSHOT_PROMPT, err) : GGL_OK;
}

ggl_status llm_generator_settle(llm_generator *g, size_t *n_held, ggl_error *err) {
    const ggl_status st = go_back(g, g->n_kept, err);
    *n_held = (size_t)g->n_kept;
    return st;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static ggl_status check_logits(llm_generator *g, const float *logits, ggl_error *err) {
    int64_t n_nan = 0, n_finite = 0;
    for (int64_t i = 0; i < g->n_vocab; i++) {
        n_nan += isnan(logits[i]) != 0;
        n_finite += isfinite(logits[i]) != 0;
    }
    g->stats.n_nan = n_nan;
    if (n_finite > 0)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT,
                    "after %zu tokens none of the %" PRId64 " logits is a finite number (%" PRId64
                    " are NaN): the model's numbers or its descriptor are wrong",
                    g->n, g->n_vocab, n_nan);
}

/* After a token was drawn from the row `at`: the next one is drawn from the following row if the
 * token was guessed. */
static void follow_guess(llm_generator *g, int32_t id) {
    const int64_t k = g->at;
    const bool is_right = k < g->n_guess && g->guess[k] == id;
    g->at = is_right ? k + 1 : -1;
    g->n_kept += is_right;
    if (g->n_guess == 0 || (is_right && k + 1 < g->n_guess) || k == g->n_guess)
        return; /* nothing was guessed; more guesses wait; or this was drawn after the last one */
    const int64_t n_right = k + is_right;
    g->stats.n_guessed += g->n_guess;
    g->stats.n_right += n_right;
    if (g->guesser.outcome)
        g->guesser.outcome(g->guesser.self, g->n_guess, n_right);
}

ggl_status llm_generator_constrain(llm_generator *g, llm_matcher *m, int64_t n_max,
                                   ggl_error *err) {
    const size_t n_words = ((size_t)g->n_vocab + 31) / 32;
    g->matcher = NULL;
    if (!m)
        return GGL_OK;
    if (llm_matcher_n_vocab(m) > g->n_vocab || llm_matcher_n_vocab(m) == 0)
        return ggl_fail(err, GGL_USAGE,
                        "the grammar's vocabulary has %" PRId32 " tokens, the model %" PRId64,
                        llm_matcher_n_vocab(m), g->n_vocab);
    if (!g->allowed)
        g->allowed = ggl_calloc(n_words, sizeof *g->allowed);
    if (!g->allowed)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a mask of %" PRId64 " tokens",
                        g->n_vocab);
    g->matcher = m;
    g->n_left = n_max;
    return GGL_OK;
}

/* Sets `allowed`. *is_done: the text is complete, and nothing may follow. */
static ggl_status find_allowed(llm_generator *g, bool *is_done, ggl_error *err) {
    /* a full context holds n_ctx tokens, and one more is drawn after them */
    const int64_t room = g->n_ctx + 1 - (int64_t)g->n;
    int64_t budget = g->n_left;
    if (!g->p.shift && (budget < 0 || room < budget))
        budget = room;
    *is_done = llm_matcher_has_ended(g->matcher);
    if (*is_done)
        return GGL_OK;
    const ggl_status st = llm_matcher_mask(
        g->matcher, budget < 0 ? LLM_MATCHER_NO_BUDGET : (int32_t)least(budget, INT32_MAX),
        g->allowed, err);
    if (st != GGL_OK || !llm_matcher_must_end(g->matcher))
        return st;
    const int32_t n_words = (llm_matcher_n_vocab(g->matcher) + 31) / 32;
    *is_done = true; /* unless a token can say so */
    for (int32_t i = 0; i < n_words; i++)
        *is_done &= g->allowed[i] == 0;
    return GGL_OK;
}

/* Draws from logits. *id is -1 if the text is complete. */
static ggl_status choose(llm_generator *g, const float *logits, int32_t *id, ggl_error *err) {
    bool is_done = false;
    *id = -1;
    ggl_status st = g->matcher ? find_allowed(g, &is_done, err) : GGL_OK;
    if (st != GGL_OK || is_done)
        return st;
    *id = llm_sampler_next(g->p.sampler, logits, g->matcher ? g->allowed : NULL);
    if (*id < 0)
        return ggl_fail(err, GGL_USAGE, "no token can be chosen: the biases forbid all of %s",
                        g->matcher ? "those that the grammar allows" : "them");
    if (g->matcher)
        st = llm_matcher_accept_token(g->matcher, *id, err);
    g->n_left -= g->n_left > 0;
    return st;
}

ggl_status llm_generator_next(llm_generator *g, int32_t *id, ggl_error *err) {
    ggl_status st = g->at < 0 ? advance(g, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    const float *logits = g->row[g->at];
    st = check_logits(g, logits, err);
    if (st != GGL_OK)
        return st;
    st = choose(g, logits, id, err);
    if (st != GGL_OK || *id < 0)
        return st;
    llm_sampler_accept(g->p.sampler, *id);
    g->drawn_from = logits;
    g->token[g->n++] = *id;
    g->stats.n_drawn++;
    follow_guess(g, *id);
    return GGL_OK;
}

void llm_generator_set_sampler(llm_generator *g, llm_sampler *sampler) {
    g->p.sampler = sampler;
    llm_sampler_forget(sampler);
    for (size_t i = 0; i < g->n; i++)
        llm_sampler_accept(sampler, g->token[i]);
}

/* --- looking ---------------------------------------------------------------------------------- */

const int32_t *llm_generator_tokens(const llm_generator *g, size_t *n) {
    *n = g->n;
    return g->token;
}

const float *llm_generator_logits(const llm_generator *g) {
    return g->drawn_from;
}

llm_generator_stats llm_generator_get_stats(const llm_generator *g) {
    return g->stats;
}
