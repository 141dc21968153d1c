/* Guesses from a smaller model, or from layers of the model itself that guess: the likeliest tokens, run one after the other.
 * Its slot follows the sequence: it is cut where the sequence changed, and runs the tokens that it lacks. */
#include <inttypes.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "block.h"
#include "heard.h"
#include "source.h"

enum { READ = 256 }; /* most rows that are given at once */

typedef struct draft {
    llm_session *session;
    /* [n_layers]: layers that guess one after the other; that of `session` is the first. Each holds the same tokens. */
    llm_draft_layer *layer;
    int n_layers;
    bool is_apart;     /* each of them reads rows of the model */
    bool stays;        /* further guesses are made in the place of the first */
    guess_block block; /* all are made at once; .n 0: one after the other */
    bool *no_want; /* [n_ctx]: nothing is wanted of tokens that are read for blocks; else NULL */
    int slot;
    int32_t *slots; /* [n_ctx], each of them `slot` */
    float p_min;
    int64_t n_ctx, n_vocab;
    bool has_states;
    /* The slot holds the first n_held tokens of the sequence, and then those guesses that were run. */
    int64_t n_held;
    int32_t run[LLM_GUESS_MOST];
    int64_t n_run;
    /* Layers of the model itself read with each token what the model computed of the one before. Their guesses are not kept in the
     * slot, because they were made from guessed rows. heard NULL: a model of its own. */
    llm_heard *heard;
    int heard_slot;
    int64_t n_row, n_heard; /* lengths of their rows, and of those that are heard */
    int64_t n_first;        /* tokens at the beginning that they do not run: 0 or 1 */
    float *given,
        *last;     /* [READ][n_heard]: rows that are read; [n_row]: what the next guess reads */
    bool is_ready; /* it holds the whole sequence, and its logits are known */
    /* The states after the first n_saved tokens, if the model has some. NULL if none are saved. */
    void *saved;
    size_t saved_size;
    int64_t n_saved;
    ggl_error error; /* of the run that failed */
} draft;

static void draft_follow(void *self, const int32_t *old, size_t n_old, size_t n_same,
                         const int32_t *id, size_t n) {
    draft *d = self;
    (void)old;
    if ((size_t)d->n_held > n_same)
        d->n_held = (int64_t)n_same;
    else if ((size_t)d->n_held == n_old && !d->heard) /* some of the guesses may have been right */
        for (int64_t i = 0; i < d->n_run && (size_t)d->n_held < n; i++, d->n_held++)
            if (id[d->n_held] != d->run[i])
                break;
    d->n_run = 0;
}

/* --- the slot --------------------------------------------------------------------------------- */

static void drop_saved(draft *d) {
    ggl_free(d->saved);
    d->saved = NULL;
}

/* Ends guessing, unless a run was merely cancelled. The slot may be incomplete. */
static bool fail(draft *d, ggl_status st, const ggl_error *err) {
    if (st != GGL_CANCELLED) {
        d->error = *err;
        d->error.status = st;
    }
    d->n_held = 0;
    drop_saved(d);
    return false;
}

static ggl_status cut(draft *d, int64_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < d->n_layers && st == GGL_OK; k++)
        st = llm_session_cut(d->layer[k].session, d->slot, n, err);
    return st;
}

/* Makes the slot hold no more than the first n tokens: fewer, if its states or rings cannot go back
 * so far. */
static ggl_status go_back(draft *d, int64_t n, ggl_error *err) {
    llm_session *s = d->session;
    ggl_status st = GGL_OK;
    if (d->saved && d->n_saved > n)
        drop_saved(d);
    if (n > d->n_first && cut(d, n - d->n_first, NULL) == GGL_OK)
        d->n_held = n;
    else if (d->saved && llm_session_restore(s, d->slot, d->saved, d->saved_size, NULL) == GGL_OK)
        d->n_held = d->n_saved;
    else {
        d->n_held = 0;
        for (int k = 0; k < d->n_layers && st == GGL_OK; k++)
            st = llm_session_clear(d->layer[k].session, d->slot, err);
    }
    return st;
}

static void keep_row(void *ctx, int64_t i, const float *row) {
    const draft *d = ctx;
    (void)i;
    memcpy(d->last, row, (size_t)d->n_row * sizeof *row);
}

/* Runs n tokens. Layers that guess read row[n][n_row], or feature[n][n_heard] of the model for which they do. */
static ggl_status eval(draft *d, llm_session *s, const int32_t *id, int64_t n, const float *row,
                       const float *feature, ggl_error *err) {
    const llm_batch b = {.n = n,
                         .token = id,
                         .slot = d->slots,
                         .row = row,
                         .feature = feature,
                         .want = d->no_want,
                         .each_row = d->heard ? keep_row : NULL,
                         .ctx = d};
    return llm_session_eval(s, &b, err);
}

/* Tokens of a sequence, and guesses that follow it. */
typedef struct followed {
    const int32_t *id, *guess;
    int64_t n; /* of id */
} followed;

static int32_t token_at(const followed *f, int64_t i) {
    return i < f->n ? f->id[i] : f->guess[i - f->n];
}

/* Sets d->given to the rows that layer k has heard for n <= READ tokens from number `first` on. */
static void give_heard(draft *d, int k, const followed *f, int64_t first, int64_t n) {
    const llm_draft_layer *l = &d->layer[k];
    const size_t n_row = (size_t)d->n_heard;
    const int slot = l->heard == d->heard ? d->heard_slot : d->slot;
    for (int64_t i = 0; i < n; i++) {
        const int64_t before = first + i - (d->is_apart ? k + 1 : 1);
        const float *row =
            before < 0 ? NULL : llm_heard_row(l->heard, slot, before, token_at(f, before));
        if (row)
            memcpy(d->given + (size_t)i * n_row, row, n_row * sizeof *row);
        else
            memset(d->given + (size_t)i * n_row, 0, n_row * sizeof *row);
    }
}

/* Runs n <= READ tokens from number `first` on, all of the sequence or all guesses, in layer k, with the rows that it has heard. */
static ggl_status eval_heard(draft *d, int k, const followed *f, int64_t first, int64_t n,
                             ggl_error *err) {
    llm_session *s = d->layer[k].session;
    const bool is_own = llm_session_n_feature(s) == 0;
    const int32_t *id = first < f->n ? f->id + first : f->guess + (first - f->n);
    give_heard(d, k, f, first, n);
    return eval(d, s, id, n, is_own ? d->given : NULL, is_own ? NULL : d->given, err);
}

/* Runs the newest guess in the place of the first one, with what was heard for that. */
static ggl_status eval_in_place(draft *d, const followed *f, int32_t guess, ggl_error *err) {
    const ggl_status st = llm_session_cut(d->session, d->slot, d->n_held - d->n_first - 1, err);
    give_heard(d, 0, f, f->n - 1, 1);
    return st == GGL_OK ? eval(d, d->session, &guess, 1, d->last, d->given, err) : st;
}

/* Runs id[first .. n), piece by piece in all layers, so that few of the rows that they tell are kept. */
static ggl_status eval_all(draft *d, const int32_t *id, int64_t first, int64_t n, ggl_error *err) {
    const followed f = {.id = id, .n = n};
    ggl_status st = GGL_OK;
    if (!d->heard)
        return eval(d, d->session, id + first, n - first, NULL, NULL, err);
    for (int64_t i = first < d->n_first ? d->n_first : first; i < n && st == GGL_OK; i += READ) {
        const int64_t piece = n - i < READ ? n - i : READ;
        for (int k = 0; k < d->n_layers && st == GGL_OK; k++)
            st = eval_heard(d, k, &f, i, piece, err);
        for (int k = 1; k < d->n_layers && !d->is_apart; k++)
            llm_heard_drop(d->layer[k].heard, d->slot, i + piece - 1 - LLM_GUESS_MOST);
    }
    if (st == GGL_OK)
        llm_heard_drop(d->heard, d->heard_slot, n - 1 - LLM_GUESS_MOST);
    return st;
}

/* Runs id[n_held .. n). Afterwards the logits after it are known. */
static bool run(draft *d, const int32_t *id, int64_t n) {
    ggl_error err = {0};
    if (n <= d->n_first)
        return false;
    ggl_status st = go_back(d, d->n_held < n ? d->n_held : n - 1, &err);
    if (st != GGL_OK)
        return fail(d, st, &err);
    for (int64_t i = d->n_held; i < n; i++)
        if (id[i] < 0 || id[i] >= d->n_vocab) /* a token or row that only the other model has */
            return false;
    st = eval_all(d, id, d->n_held, n, &err);
    if (st == GGL_OK && d->has_states) {
        drop_saved(d);
        st = llm_session_save(d->session, d->slot, true, &d->saved, &d->saved_size, &err);
        d->n_saved = n;
    }
    d->n_held = n;
    return st == GGL_OK || fail(d, st, &err);
}

static int64_t draft_catch_up(void *self, const int32_t *id, size_t n) {
    draft *d = self;
    const int64_t n_held = d->n_held;
    d->is_ready =
        d->error.status == GGL_OK && n > 0 && (int64_t)n <= d->n_ctx && run(d, id, (int64_t)n);
    return d->is_ready && n_held < (int64_t)n ? (int64_t)n - n_held : 1;
}

/* --- guesses ---------------------------------------------------------------------------------- */

/* Takes guesses made from guessed rows out of the slot. False: that failed. */
static bool forget_run(draft *d) {
    ggl_error err = {0};
    if (!d->heard || d->n_run == 0)
        return true;
    d->n_run = 0;
    const ggl_status st = cut(d, d->n_held - d->n_first, &err);
    d->is_ready = false;
    return st == GGL_OK || fail(d, st, &err);
}

/* Runs what the next guess needs: in the layer that makes it, all of the k guesses before it; in the last one, which makes all that
 * follow, the newest. Returns the session that has its logits; NULL: that failed. */
static llm_session *run_guesses(draft *d, const int32_t *id, size_t n, const int32_t *out,
                                int64_t k) {
    const followed f = {.id = id, .guess = out, .n = (int64_t)n};
    const int last = d->n_layers - 1;
    llm_session *s = d->layer[k < last ? k : last].session;
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    if (d->stays)
        st = eval_in_place(d, &f, out[k - 1], &err);
    else if (k <= last)
        st = eval_heard(d, (int)k, &f, f.n, k, &err);
    else
        st = eval(d, s, &out[k - 1], 1, d->heard ? d->last : NULL, NULL, &err);
    if (!d->stays)
        d->run[d->n_run++] = out[k - 1];
    d->is_ready = !d->stays;
    return st == GGL_OK || fail(d, st, &err) ? s : NULL;
}

/* Makes all guesses of a block, and takes it out of the slot, which has so much room. */
static int64_t propose_block(draft *d, int32_t newest, int32_t *out, uint8_t *class, int64_t n_max,
                             int64_t room) {
    ggl_error err = {0};
    const int64_t n = d->block.n < room ? d->block.n : room;
    if (n < 1 + d->block.first)
        return 0;
    block_guesses g = {.n_max = n - d->block.first < n_max ? n - d->block.first : n_max};
    d->is_ready = false;
    ggl_status st = llm_block_guess(&d->block, newest, n, d->p_min, &g, &err);
    if (st == GGL_OK)
        st = cut(d, d->n_held - d->n_first, &err);
    if (st != GGL_OK)
        return (void)fail(d, st, &err), 0;
    for (int64_t k = 0; k < g.n; k++) {
        out[k] = g.id[k];
        class[k] = (uint8_t)(g.p[k] * (PACE_CLASSES - 1));
    }
    return g.n;
}

static int64_t draft_propose(void *self, const int32_t *id, size_t n, int32_t *out, uint8_t *class,
                             int64_t n_max) {
    draft *d = self;
    const int64_t room = d->n_ctx - (int64_t)n + 1; /* the last guess is not run */
    const llm_session *s = d->session;
    int64_t k = 0;
    n_max = n_max < room ? n_max : room;
    if (!d->is_ready)
        return 0;
    if (d->block.n > 0) /* the masks have places in the slot, too */
        return propose_block(d, id[n - 1], out, class, n_max, room);
    while (s) {
        float p;
        const int32_t best = llm_guess_of(s, llm_session_logits(s), &p);
        if (best < 0 || !(p >= d->p_min))
            return forget_run(d) ? k : 0;
        out[k] = best;
        class[k] = (uint8_t)(p * (PACE_CLASSES - 1));
        if (++k == n_max)
            return forget_run(d) ? k : 0;
        s = run_guesses(d, id, n, out, k);
    }
    return 0;
}

/* --- creation --------------------------------------------------------------------------------- */

static void draft_free(void *self) {
    draft *d = self;
    drop_saved(d);
    ggl_free(d->slots);
    ggl_free(d->given);
    ggl_free(d->last);
    ggl_free(d->layer);
    ggl_free(d->no_want);
    llm_block_fini(&d->block);
    ggl_free(d);
}

static void draft_in_slot(void *self, int slot) {
    draft *d = self;
    d->heard_slot = slot;
}

static ggl_status draft_failed(const void *self, ggl_error *err) {
    const draft *d = self;
    return d->error.status == GGL_OK ? GGL_OK : ggl_pass(err, &d->error);
}

void llm_draft_fill_default(llm_draft_params *p, size_t size) {
    const llm_draft_params d = {.size = sizeof(llm_draft_params), .p_min = 0.75f};
    ggl_params_fill(p, size, &d, sizeof d);
}

/* True if the one session besides makes the guesses of a block, one after the other. */
static bool is_in_turn(const llm_draft_params *dp) {
    return llm_session_built(dp->session)->guess_in_turn;
}

/* Checks the sessions and what they read. */
static ggl_status check_draft(const llm_draft_params *dp, ggl_error *err) {
    if (!dp->session || !(dp->p_min >= 0 && dp->p_min <= 1))
        return ggl_fail(err, GGL_USAGE,
                        "a draft needs a session, and a least probability from 0 to 1, not %g",
                        (double)dp->p_min);
    if (dp->n_more < 0 || dp->n_more >= LLM_GUESS_MOST || (dp->n_more > 0 && !dp->heard))
        return ggl_fail(err, GGL_USAGE, "%d more layers that guess: 0 to %d are allowed",
                        dp->n_more, LLM_GUESS_MOST - 1);
    if (is_in_turn(dp) && dp->n_more != 1)
        return ggl_fail(
            err, GGL_USAGE,
            "the draft makes its guesses in turn, by a session besides, and %d are given",
            dp->n_more);
    for (int k = 0; k <= dp->n_more && !(k > 0 && is_in_turn(dp)); k++) {
        const llm_session *s = k ? dp->more[k - 1].session : dp->session;
        const llm_heard *heard = k ? dp->more[k - 1].heard : dp->heard;
        const int64_t n =
            llm_session_n_feature(s) ? llm_session_n_feature(s) : llm_session_n_row(s);
        if ((n > 0) != (heard != NULL) || (heard && llm_heard_n_row(heard) != n))
            return ggl_fail(err, GGL_USAGE,
                            "the draft reads rows of %" PRId64
                            " numbers, and the model's have %" PRId64 ": it is for another model",
                            n, heard ? llm_heard_n_row(heard) : 0);
    }
    return GGL_OK;
}

/* Sets what is allocated, and clears the slot. */
static ggl_status set_up(draft *d, const llm_draft_params *dp, ggl_error *err) {
    ggl_status st = GGL_OK;
    d->n_layers = is_in_turn(dp) ? 1 : 1 + dp->n_more;
    d->layer = ggl_calloc((size_t)d->n_layers, sizeof *d->layer);
    d->slots = ggl_calloc((size_t)d->n_ctx, sizeof *d->slots);
    if (d->heard) {
        d->given = ggl_calloc((size_t)(READ * d->n_heard), sizeof *d->given);
        d->last = ggl_calloc((size_t)d->n_row, sizeof *d->last);
    }
    if (!d->layer || !d->slots || (d->heard && (!d->given || !d->last)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
    for (int64_t i = 0; i < d->n_ctx; i++)
        d->slots[i] = d->slot;
    d->layer[0] = (llm_draft_layer){dp->session, dp->heard};
    for (int k = 1; k < d->n_layers; k++)
        d->layer[k] = dp->more[k - 1];
    for (int k = 0; k < d->n_layers && st == GGL_OK; k++)
        st = llm_session_clear(d->layer[k].session, d->slot, err);
    if (st == GGL_OK)
        st = llm_block_init(&d->block, dp->session, is_in_turn(dp) ? dp->more[0].session : NULL,
                            d->slot, err);
    if (st == GGL_OK && d->block.n > 0 &&
        !(d->no_want = ggl_calloc((size_t)d->n_ctx, sizeof *d->no_want)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
    return st;
}

ggl_status llm_guess_draft(llm_guess **out, const llm_guess_params *p,
                           const llm_draft_params *draft_params, ggl_error *err) {
    llm_draft_params own = llm_draft_default();
    const llm_draft_params *dp = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_draft_params, &own, draft_params, err);
    if (is_read != GGL_OK)
        return is_read;
    ggl_status st = check_draft(dp, err);
    if (st != GGL_OK)
        return st;
    draft *d = ggl_calloc(1, sizeof *d);
    if (!d)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
    *d = (draft){.session = dp->session,
                 .slot = dp->slot,
                 .p_min = dp->p_min,
                 .n_ctx = llm_session_n_ctx(dp->session),
                 .n_vocab = llm_session_n_vocab(dp->session),
                 .heard = dp->heard,
                 .is_apart = llm_session_built(dp->session)->guess_apart,
                 .stays = llm_session_built(dp->session)->guess_stays,
                 .n_row = llm_session_n_row(dp->session),
                 .n_heard = dp->heard ? llm_heard_n_row(dp->heard) : 0,
                 .n_first = llm_session_from_second(dp->session),
                 .has_states = llm_session_has_states(dp->session)};
    st = set_up(d, dp, err);
    if (st != GGL_OK) {
        draft_free(d);
        return st;
    }
    guess_source source = {.follow = draft_follow,
                           .catch_up = draft_catch_up,
                           .propose = draft_propose,
                           .free = draft_free,
                           .in_slot = draft_in_slot,
                           .failed = draft_failed,
                           .self = d};
    for (int i = 0; i < PACE_CLASSES; i++) /* as often as the draft expects */
        source.prior[i] = (i + 0.5) / PACE_CLASSES;
    source.prior[PACE_ANY] = 0.7;
    return llm_guess_new(out, p, &source, err);
}
