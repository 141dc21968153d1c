/* Makes logits from tokens: cuts a batch into ubatches, and keeps several of them under way if the session
 * has several backends. */
#include <inttypes.h>
#include <math.h>

#include "ggl/internal/sched.h"
#include "session_impl.h"

ggl_status llm_check_tokens(const int32_t *id, size_t n, int64_t n_vocab, ggl_error *err) {
    for (size_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId32 " is not in the vocabulary of %" PRId64, id[i],
                            n_vocab);
    return GGL_OK;
}

ggl_status llm_session_check_token(const llm_session *s, int32_t id, ggl_error *err) {
    llm_media_row row;
    if (id >= 0 || !s->media)
        return llm_check_tokens(&id, 1, s->built.n_vocab, err);
    if (!llm_media_get(s->media, id, &row))
        return ggl_fail(err, GGL_USAGE,
                        "token %" PRId32 " stands for a row of a picture that is not there any "
                        "more: show it again",
                        id);
    if (row.n_row != llm_session_n_given(s))
        return ggl_fail(err, GGL_USAGE,
                        "a row of %" PRId64 " numbers, but the model takes %" PRId64, row.n_row,
                        llm_session_n_given(s));
    if (s->built.given_together && row.n > s->n_ubatch)
        return ggl_fail(err, GGL_LIMIT,
                        "a picture of %" PRId64 " rows, which see each other, but %" PRId64
                        " tokens are computed at once: raise n_ubatch (-ub N)",
                        row.n, s->n_ubatch);
    return GGL_OK;
}

ggl_status llm_session_check_prompt(const llm_session *s, const int32_t *id, size_t n,
                                    ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(s);
    if (n == 0)
        return ggl_fail(err, GGL_USAGE, "the prompt is empty");
    if (n > (size_t)n_ctx)
        return ggl_fail(err, GGL_LIMIT, "the prompt has %zu tokens, but the context only %" PRId64,
                        n, n_ctx);
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = llm_session_check_token(s, id[i], err);
    return st;
}

/* Checks that each text of a model that sees them whole is in the batch whole, which is one ubatch. */
static ggl_status check_whole_texts(const llm_session *s, const llm_batch *b, ggl_error *err) {
    int64_t n_rows = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const int slot = llm_batch_slot(b, i);
        if (s->slots.state[slot].n_past > 0)
            return ggl_fail(
                err, GGL_USAGE,
                "slot %d has a text already, and the model sees a text whole: clear the "
                "slot first",
                slot);
        n_rows += llm_outputs_wanted(b, i) != 0;
    }
    if (b->n <= s->n_ubatch && n_rows <= s->n_rows)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%" PRId64 " tokens of which %" PRId64
                    " are wanted, but the model sees texts whole, and at most %" PRId64
                    " and %" PRId64 " are computed at once: use a larger context (n_ctx, or -c N)",
                    b->n, n_rows, s->n_ubatch, s->n_rows);
}

/* Checks tokens and slots of a batch, and that the slots have room, before anything runs. Appends
 * its tokens to s->slots. */
static ggl_status check_batch(llm_session *s, const llm_batch *b, ggl_error *err) {
    llm_slots_begin(&s->slots);
    if (b->n < 0 || (b->n > 0 && !b->token && !b->input))
        return ggl_fail(err, GGL_USAGE, "a batch of %" PRId64 " tokens%s", b->n,
                        b->n < 0 ? "" : ", but llm_batch.token is NULL");
    ggl_status st = b->n > 0 ? llm_inputs_accept(s, b, err) : GGL_OK;
    if (st == GGL_OK)
        st = llm_outputs_check(s, b, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; i < b->n; i++) {
        int slot = llm_batch_slot(b, i);
        if (slot >= s->n_slots)
            return ggl_fail(err, GGL_USAGE, "slot %d of %" PRId64, slot, s->n_slots);
        st = llm_slots_check_whole(&s->slots, slot, err);
        if (st == GGL_OK && b->token)
            st = llm_session_check_token(s, b->token[i], err);
        if (st != GGL_OK)
            return st;
        (void)llm_slots_append(&s->slots, slot);
    }
    st = llm_inputs_check(s, b, err);
    if (st == GGL_OK)
        st = llm_slots_check_room(&s->slots, b->n, err);
    return st == GGL_OK && s->built.sees_all ? check_whole_texts(s, b, err) : st;
}

/* True if the ubatch, which has n tokens, must end before token i: the rows of a picture that see each other, as far as they are new, are in one. */
static bool begins_next(const llm_session *s, const llm_batch *b, int64_t i, int64_t n) {
    const int32_t id = b->token[i];
    llm_media_row row;
    if (!s->built.given_together || n == 0 || !llm_media_get(s->media, id, &row))
        return false;
    const bool goes_on =
        row.i > 0 && b->token[i - 1] == id + 1 && llm_batch_slot(b, i - 1) == llm_batch_slot(b, i);
    return !goes_on && n + row.n - row.i > s->n_ubatch;
}

int64_t llm_session_whole_rows(const llm_session *s, const int32_t *token, int64_t n_token,
                               int64_t n) {
    llm_media_row row;
    if (!s->built.given_together || n <= 0 || n >= n_token || token[n] >= 0 ||
        !llm_media_get(s->media, token[n], &row))
        return n;
    const int64_t begin = n - row.i, end = begin + row.n;
    return begin > 0 ? begin : end < n_token ? end : n_token;
}

int64_t llm_session_row_of(const llm_session *s, int32_t id, int64_t *n) {
    llm_media_row row = {0};
    if (id >= 0 || !llm_media_get(s->media, id, &row))
        row = (llm_media_row){0};
    *n = row.n;
    return row.i;
}

int64_t llm_session_piece(int64_t n, int64_t n_ubatch, int n_backends, double cost) {
    enum { LEAST = 32 };
    if (n_backends < 2 || cost <= 0 || n < 1)
        return n_ubatch;
    const double best = sqrt(cost * (double)n / (n_backends - 1));
    const int64_t pieces = (int64_t)((double)n / best + 0.5),
                  each = pieces > 1 ? (n + pieces - 1) / pieces : n;
    const int64_t piece = each < LEAST ? LEAST : each;
    return piece < n_ubatch ? piece : n_ubatch;
}

/* Puts tokens from `first` on into the next ubatch, f: `most` of them if they fit, with at most s->n_rows wanted ones. */
static void choose_ubatch(llm_session *s, const llm_batch *b, int64_t first, int64_t most,
                          session_flight *f) {
    *f = (session_flight){.element = f->element, .row = f->row, .is_early = true, .of = *b};
    llm_slots_begin(&s->slots);
    for (; f->n < most && f->n < s->n_ubatch && first + f->n < b->n; f->n++) {
        const int64_t i = first + f->n;
        const int slot = llm_batch_slot(b, i);
        const int32_t id = b->token ? b->token[i] : 0;
        const uint32_t wanted = llm_outputs_wanted(b, i);
        if ((id < 0 && begins_next(s, b, i, f->n)) || (wanted && f->n_rows == s->n_rows))
            break;
        if (wanted)
            f->row[f->n_rows++] = (int32_t)f->n;
        f->is_early = f->is_early && (!wanted || wanted == s->early);
        f->element[f->n] = (session_element){
            i, id, id < 0 ? 0 : id, slot, llm_slots_append(&s->slots, slot), wanted};
    }
}

/* Starts the ubatch that choose_ubatch has made. With has_ticket, it is collected by f->ticket; else nothing is wanted of it. */
static ggl_status start_ubatch(llm_session *s, session_flight *f, bool has_ticket, ggl_error *err) {
    const ggl_status st = llm_inputs_set(s, s->inputs, &f->of, f->element, f->n, err);
    if (st != GGL_OK)
        return st;
    llm_slots_start(&s->slots);
    return ggl_sched_submit(s->sched, f->n, f->row, f->n_rows, f->n_rows > 0 && f->is_early,
                            has_ticket ? &f->ticket : NULL, err);
}

/* --- a batch of any size ---------------------------------------------------------------------- */

/* Waits for the oldest of the ubatches first .. end-1 and hands out what it has computed. */
static ggl_status collect_oldest(llm_session *s, int64_t *first, ggl_error *err) {
    session_flight *f = &s->flight[(*first)++ % s->n_lanes];
    const ggl_status st = ggl_sched_collect(s->sched, f->ticket, err);
    f->ticket = 0;
    if (st == GGL_OK)
        llm_outputs_give(s, f);
    return st;
}

/* Ubatches of which nothing is wanted have no ticket and are not counted here. */
static ggl_status eval_ubatches(llm_session *s, const llm_batch *b, ggl_error *err) {
    int64_t first = 0, end = 0; /* those with tickets that are not collected, by number */
    const bool together = s->built.sees_all || s->media;
    const int64_t piece =
        together ? s->n_ubatch : llm_session_piece(b->n, s->n_ubatch, s->n_lanes, s->batch_cost);
    ggl_status st = GGL_OK;
    for (int64_t i = 0, n; i < b->n && st == GGL_OK; i += n) {
        session_flight *f = &s->flight[end % s->n_lanes];
        choose_ubatch(s, b, i, piece, f);
        n = f->n;
        const bool is_wanted = f->n_rows > 0 || s->tells;
        st = start_ubatch(s, f, is_wanted, err);
        end += st == GGL_OK && is_wanted;
        if (st == GGL_OK && end - first == s->n_lanes)
            st = collect_oldest(s, &first, err);
        /* with several lanes it depends on time when none is under way */
        if (st == GGL_OK && s->n_lanes == 1 && ggl_sched_n_unfinished(s->sched) == 0)
            llm_slots_commit(&s->slots);
        if (st == GGL_OK && b->progress && !b->progress(b->ctx, i + n, b->n))
            break;
    }
    while (st == GGL_OK && first < end)
        st = collect_oldest(s, &first, err);
    while (first < end) { /* it has failed, and so have those after it */
        const ggl_status behind =
            ggl_sched_collect(s->sched, s->flight[first++ % s->n_lanes].ticket, NULL);
        (void)behind;
    }
    for (int k = 0; k < s->n_lanes; k++)
        s->flight[k].ticket = 0;
    const ggl_status finished = ggl_sched_finish(s->sched, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? finished : st;
}

ggl_status llm_session_check_collected(const llm_session *s, ggl_error *err) {
    for (int k = 0; k < s->n_lanes; k++)
        if (s->flight[k].ticket != 0)
            return ggl_fail(err, GGL_USAGE,
                            "a batch was submitted and is not collected yet: call "
                            "llm_session_collect first");
    return GGL_OK;
}

/* Makes room for the batch, and sets what is no token's own. */
static ggl_status prepare(llm_session *s, const llm_batch *b, ggl_error *err) {
    ggl_status st = llm_slots_take_pages(&s->slots, err);
    if (st == GGL_OK && b->is_block && ggl_sched_has_states(s->sched))
        st = ggl_sched_clear_slot(s->sched, llm_batch_slot(b, 0), err);
    return st == GGL_OK && b->input ? llm_inputs_set_rows(s, b->input, b->n, err) : st;
}

ggl_status llm_session_eval(llm_session *s, const llm_batch *b, ggl_error *err) {
    ggl_status st = llm_session_check_collected(s, err);
    if (st == GGL_OK)
        st = check_batch(s, b, err);
    if (st != GGL_OK)
        return st;
    st = prepare(s, b, err);
    if (st == GGL_OK)
        st = eval_ubatches(s, b, err);
    llm_slots_settle(&s->slots, 0, st == GGL_OK);
    return st;
}

const float *llm_session_logits(const llm_session *s) {
    return s->logits;
}

/* --- several batches under way ---------------------------------------------------------------- */

int llm_session_n_parts(const llm_session *s, int64_t n) {
    enum { FEWEST = 4 };
    return n < 2 * FEWEST ? 1 : n / FEWEST < s->n_lanes ? (int)(n / FEWEST) : s->n_lanes;
}

/* Checks that the batch is one ubatch. */
static ggl_status check_size(const llm_session *s, const llm_batch *b, ggl_error *err) {
    int64_t n_rows = 0;
    for (int64_t i = 0; i < b->n; i++)
        n_rows += llm_outputs_wanted(b, i) != 0;
    if (b->n >= 1 && b->n <= s->n_ubatch && n_rows <= s->n_rows)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "a batch of %" PRId64 " tokens of which %" PRId64
                    " are wanted; at most %" PRId64 " and %" PRId64
                    " are allowed, and at least one token",
                    b->n, n_rows, s->n_ubatch, s->n_rows);
}

ggl_status llm_session_submit(llm_session *s, const llm_batch *b, uint64_t *ticket,
                              ggl_error *err) {
    session_flight *f = NULL;
    *ticket = 0;
    for (int k = 0; k < s->n_lanes && !f; k++)
        f = s->flight[k].ticket == 0 ? &s->flight[k] : NULL;
    if (!f)
        return ggl_fail(err, GGL_USAGE,
                        "%d batches are not collected yet, and no more can be under way: call "
                        "llm_session_collect first",
                        s->n_lanes);
    ggl_status st = check_size(s, b, err);
    if (st == GGL_OK)
        st = check_batch(s, b, err);
    if (st == GGL_OK)
        st = prepare(s, b, err);
    if (st != GGL_OK)
        return st;
    choose_ubatch(s, b, 0, s->n_ubatch, f);
    st = start_ubatch(s, f, true, err);
    const uint64_t own = st == GGL_OK ? f->ticket : UINT64_MAX;
    llm_slots_set_ticket(&s->slots, own);
    if (st != GGL_OK)
        llm_slots_settle(&s->slots, own, false);
    *ticket = st == GGL_OK ? own : 0;
    return st;
}

ggl_status llm_session_collect(llm_session *s, uint64_t ticket, ggl_error *err) {
    session_flight *f = NULL;
    for (int k = 0; k < s->n_lanes && ticket != 0; k++)
        f = s->flight[k].ticket == ticket ? &s->flight[k] : f;
    if (!f)
        return ggl_fail(err, GGL_USAGE,
                        "no batch under way has ticket %" PRIu64 ", or it was collected", ticket);
    const ggl_status st = ggl_sched_collect(s->sched, ticket, err);
    f->ticket = 0;
    llm_slots_settle(&s->slots, ticket, st == GGL_OK);
    if (st == GGL_OK)
        llm_outputs_give(s, f);
    return st;
}
