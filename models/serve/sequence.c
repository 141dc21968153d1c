/* Sequences: what the slot holds, what has to run next, and which token is drawn. */
#include "sequence.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/amounts.h"
#include "common/least.h"
#include "ggl/alloc.h"

ggl_status llm_seq_init(seq *q, llm_session *s, const llm_guesser *guesser, int64_t n_guess_max,
                        ggl_error *err) {
    *q = (seq){.session = s,
               .n_ctx = llm_session_n_ctx(s),
               .n_vocab = llm_session_n_vocab(s),
               .writable = llm_session_writable(s),
               .n_left = -1,
               .at = -1};
    const int64_t most = least(llm_session_n_rows(s) - 1, llm_session_cut_limit(s));
    const int64_t n_forced_max = least(LLM_FORCED_ROWS - 1, most);
    if (guesser) {
        q->guesser = *guesser;
        q->n_guess_max = least(n_guess_max, most);
    }
    q->n_ahead_max = n_forced_max > q->n_guess_max ? n_forced_max : q->n_guess_max;
    q->guess = ggl_calloc((size_t)q->n_ahead_max + 1, sizeof *q->guess);
    if (!q->guess)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %" PRId64 " guesses", q->n_ahead_max);
    return GGL_OK;
}

void llm_seq_fini(seq *q) {
    llm_seq_drop_snapshot(q);
    ggl_free(q->allowed);
    ggl_free(q->guess);
    q->allowed = NULL;
    q->guess = NULL;
}

/* --- tokens ----------------------------------------------------------------------------------- */

bool llm_seq_has_shares(const seq *q, const float *share) {
    const size_t n = (size_t)llm_session_n_tasks(q->session);
    return memcmp(llm_seq_shares(q), share, n * sizeof *share) == 0;
}

int64_t llm_seq_common(const int32_t *a, int64_t n_a, const int32_t *b, int64_t n_b) {
    enum { PIECE = 256 }; /* compared at once */
    const int64_t most = n_a < n_b ? n_a : n_b;
    int64_t n = 0;
    while (n + PIECE <= most && memcmp(a + n, b + n, PIECE * sizeof *a) == 0)
        n += PIECE;
    while (n < most && a[n] == b[n])
        n++;
    return n;
}

void llm_seq_tell_sampler(seq *q) {
    llm_sampler_forget(q->sampler);
    for (int64_t i = 0; i < q->n; i++)
        llm_sampler_accept(q->sampler, q->token[i]);
}

/* --- going back ------------------------------------------------------------------------------- */

void llm_seq_drop_snapshot(seq *q) {
    ggl_free(q->snapshot.data);
    q->snapshot = (seq_snapshot){0};
}

/* Keeps the states of the slot as it is now. */
static ggl_status take_snapshot(seq *q, ggl_error *err) {
    seq_snapshot *s = &q->snapshot;
    llm_seq_drop_snapshot(q);
    if (!llm_session_has_states(q->session))
        return GGL_OK;
    s->n = llm_session_n_past(q->session, q->slot);
    return llm_session_save(q->session, q->slot, true, &s->data, &s->size, err);
}

/* Restores the snapshot. Returns false if it cannot, or if it is after n. */
static bool restore(seq *q, int64_t n) {
    const seq_snapshot *s = &q->snapshot;
    return s->data && s->n <= n &&
           llm_session_restore(q->session, q->slot, s->data, s->size, NULL) == GGL_OK;
}

ggl_status llm_seq_go_back(seq *q, int64_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    q->at = -1;
    q->n_guess = 0;
    q->has_mask = false;
    n = least(n, q->n_kept);
    if (llm_session_cut(q->session, q->slot, n, NULL) != GGL_OK && !restore(q, n))
        st = llm_session_clear(q->session, q->slot, err);
    q->n_kept = llm_session_n_past(q->session, q->slot);
    if (q->snapshot.n > n)
        llm_seq_drop_snapshot(q);
    return st;
}

ggl_status llm_seq_shift(seq *q, int64_t keep, int64_t n_drop, int64_t *n_dropped, ggl_error *err) {
    int64_t n, end = keep + n_drop, i = llm_session_row_of(q->session, q->token[keep], &n);
    keep -= least(i, keep);
    i = end < q->n ? llm_session_row_of(q->session, q->token[end], &n) : 0;
    end = i > 0 ? least(end + n - i, q->n - 1) : end;
    *n_dropped = 0;
    const ggl_status st = llm_seq_go_back(q, keep, err);
    if (st != GGL_OK)
        return st;
    *n_dropped = end - keep;
    q->n_told = least(q->n_told, keep);
    memmove(q->token + keep, q->token + end, (size_t)(q->n - end) * sizeof *q->token);
    q->n -= *n_dropped;
    return GGL_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

/* How many tokens may follow by the matcher. */
static int32_t budget_of(const seq *q) {
    /* a full context holds n_ctx tokens, and one more is drawn after them */
    const int64_t room = q->n_ctx + 1 - q->n;
    int64_t budget = q->is_unsteered ? -1 : q->n_left;
    if (!q->shifts && !q->is_unsteered && (budget < 0 || room < budget))
        budget = room;
    return budget < 0 ? LLM_MATCHER_NO_BUDGET : (int32_t)least(budget, INT32_MAX);
}

static ggl_status find_allowed(seq *q, ggl_error *err);

/* True if the mask allows one token. */
static bool allows_one(const seq *q) {
    int32_t n = 0;
    for (int32_t i = (llm_matcher_n_vocab(q->matcher) + 31) / 32; i > 0 && n < 2; i--)
        for (uint32_t bits = q->allowed[i - 1]; bits && n < 2; bits &= bits - 1)
            n++;
    return n == 1;
}

/* The tokens that the matcher forces run in one batch. They are drawn like all others, each from its own
 * logits, so that text, log-probabilities and the sampler's state are the same. */
static ggl_status find_forced(seq *q, int64_t most, ggl_error *err) {
    int32_t n = 0;
    most = least(least(most, LLM_FORCED_ROWS - 1), q->n_ahead_max);
    if (!q->matcher || most <= 0 || find_allowed(q, NULL) != GGL_OK || q->is_done || !allows_one(q))
        return GGL_OK; /* a failure is reported when the next token is drawn */
    const ggl_status st =
        llm_matcher_forced(q->matcher, budget_of(q), q->guess, (int32_t)most, &n, err);
    q->n_guess = n;
    q->is_forced = n > 0;
    return st;
}

ggl_status llm_seq_guess(seq *q, int64_t most, ggl_error *err) {
    most = least(most, q->n_ctx - q->n);
    q->n_guess = 0;
    q->is_forced = false;
    if (most <= 0 || q->n_kept + 1 < q->n)
        return GGL_OK;
    const ggl_status st = find_forced(q, most, err);
    if (st != GGL_OK)
        return st;
    if (q->n_guess > 0)
        return take_snapshot(q, err);
    most = least(most, q->n_guess_max);
    const llm_guesser *by = &q->guesser;
    if (most <= 0 || !by->guess)
        return GGL_OK;
    if (by->in_slot)
        by->in_slot(by->self, q->slot);
    const int64_t n =
        by->guess(by->self, q->token, (size_t)q->n, (size_t)q->n_told, q->guess, most);
    q->n_told = q->n;
    for (; q->n_guess < n && q->n_guess < most; q->n_guess++)
        if (q->guess[q->n_guess] < 0 || q->guess[q->n_guess] >= q->n_vocab)
            break;
    return q->n_guess > 0 ? take_snapshot(q, err) : GGL_OK;
}

int64_t llm_seq_fill(const seq *q, int32_t *batch, int64_t most) {
    const int64_t n_new = least(q->n - q->n_kept, most), n_guess = least(q->n_guess, most - n_new);
    memcpy(batch, q->token + q->n_kept, (size_t)n_new * sizeof *batch);
    memcpy(batch + n_new, q->guess, (size_t)n_guess * sizeof *batch);
    return n_new + n_guess;
}

void llm_seq_ran(seq *q) {
    q->n_kept = q->n;
    q->at = 0;
}

/* --- drawing ---------------------------------------------------------------------------------- */

static ggl_status check_logits(seq *q, const float *logits, ggl_error *err) {
    int64_t n_nan = 0, n_finite = 0;
    for (int64_t i = 0; i < q->n_vocab; i++) {
        n_nan += isnan(logits[i]) != 0;
        n_finite += isfinite(logits[i]) != 0;
    }
    q->n_nan = n_nan;
    if (n_finite > 0)
        return GGL_OK;
    const char *with = llm_session_adapters_text(q->session);
    return ggl_fail(
        err, GGL_FORMAT,
        "after %" PRId64 " token%s none of the %" PRId64 " logits is a finite number (%" PRId64
        " are NaN)%s: %s",
        q->n, llm_amount_s(q->n), q->n_vocab, n_nan, with,
        *with
            ? "a scale is too large for an adapter or a control vector, or its numbers are wrong. "
              "If the model without them has the same fault, its own numbers are; llm-gguf check "
              "FILE finds damage in a file"
            : "the model's numbers or its descriptor are wrong; llm-gguf check MODEL finds "
              "damage in the file, llm-arch verify names the first node with a NaN, llm-arch "
              "doctor tries other readings");
}

/* After a token was drawn from the row `at`: the next one is drawn from the following row if the
 * token was guessed. */
static void follow_guess(seq *q, int32_t id) {
    const int64_t k = q->at;
    const bool is_right = k < q->n_guess && q->guess[k] == id;
    q->at = is_right ? k + 1 : -1;
    q->n_kept += is_right;
    if (q->n_guess == 0 || (is_right && k + 1 < q->n_guess) || k == q->n_guess)
        return; /* nothing was guessed; more guesses wait; or this was drawn after the last one */
    const int64_t n_right = k + is_right;
    if (q->is_forced) {
        q->n_forced += n_right;
        return;
    }
    q->n_drafts++;
    q->n_guessed += q->n_guess;
    q->n_right += n_right;
    if (q->guesser.outcome)
        q->guesser.outcome(q->guesser.self, q->n_guess, n_right);
}

ggl_status llm_seq_constrain(seq *q, llm_matcher *m, int64_t n_max, ggl_error *err) {
    const size_t n_words = ((size_t)q->n_vocab + 31) / 32;
    q->matcher = NULL;
    q->has_mask = false;
    if (!m)
        return GGL_OK;
    if (llm_matcher_n_vocab(m) > q->n_vocab || llm_matcher_n_vocab(m) == 0)
        return ggl_fail(err, GGL_USAGE,
                        "the grammar's vocabulary has %" PRId32 " tokens, the model %" PRId64,
                        llm_matcher_n_vocab(m), q->n_vocab);
    if (!q->allowed)
        q->allowed = ggl_calloc(n_words, sizeof *q->allowed);
    if (!q->allowed)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a mask of %" PRId64 " tokens",
                        q->n_vocab);
    q->matcher = m;
    q->n_left = n_max;
    return GGL_OK;
}

/* Sets `allowed`, and is_done if the text is complete and nothing may follow. */
static ggl_status find_allowed(seq *q, ggl_error *err) {
    if (q->has_mask)
        return GGL_OK;
    q->is_done = llm_matcher_has_ended(q->matcher);
    if (q->is_done)
        return GGL_OK;
    const ggl_status st = llm_matcher_mask(q->matcher, budget_of(q), q->allowed, err);
    const int32_t n_words = (llm_matcher_n_vocab(q->matcher) + 31) / 32;
    q->has_mask = st == GGL_OK;
    for (int32_t i = 0; i < n_words && q->has_mask && q->writable; i++)
        q->allowed[i] &= q->writable[i];
    if (st != GGL_OK || !llm_matcher_must_end(q->matcher))
        return st;
    q->is_done = true; /* unless a token can say so */
    for (int32_t i = 0; i < n_words; i++)
        q->is_done &= q->allowed[i] == 0;
    return GGL_OK;
}

/* Draws from logits. *id is -1 if the text is complete. */
static ggl_status choose(seq *q, const float *logits, int32_t *id, ggl_error *err) {
    *id = -1;
    ggl_status st = q->matcher ? find_allowed(q, err) : GGL_OK;
    if (st != GGL_OK || (q->matcher && q->is_done))
        return st;
    q->has_mask = false;
    *id = llm_sampler_next(q->sampler, logits, q->matcher ? q->allowed : q->writable);
    if (*id < 0)
        return ggl_fail(err, GGL_USAGE, "no token can be chosen: the biases%s forbid all of %s",
                        q->writable ? ", and the file's suppress_tokens," : "",
                        q->matcher ? "those that the grammar allows" : "them");
    if (q->matcher)
        st = llm_matcher_accept_token(q->matcher, *id, err);
    q->n_left -= q->n_left > 0;
    return st;
}

ggl_status llm_seq_draw(seq *q, const float *logits, int32_t *id, ggl_error *err) {
    ggl_status st = check_logits(q, logits, err);
    if (st == GGL_OK)
        st = choose(q, logits, id, err);
    if (st != GGL_OK || *id < 0)
        return st;
    llm_sampler_accept(q->sampler, *id);
    q->token[q->n++] = *id;
    q->n_drawn++;
    follow_guess(q, *id);
    return GGL_OK;
}
