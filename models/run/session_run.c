/* Makes logits from tokens: cuts a batch into ubatches, and keeps several of them under way if the session
 * has several backends. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "session_impl.h"

static int slot_of(const llm_batch *b, int64_t i) {
    return b->slot ? b->slot[i] : 0;
}

/* The shares of a token in the tasks of adapters. */
static const float *share_of(const llm_session *s, const llm_batch *b, int64_t i) {
    return b->share && b->share[i] ? b->share[i] : s->share;
}

static bool wants_logits(const llm_batch *b, int64_t i) {
    return b->want ? b->want[i]
                   : i == b->n - 1 && !b->want_embedding && !b->want_score && !b->want_alignment &&
                         !b->input;
}

static bool wants_score(const llm_batch *b, int64_t i) {
    return b->want_score && b->want_score[i];
}

static bool wants_alignment(const llm_batch *b, int64_t i) {
    return b->want_alignment && b->want_alignment[i];
}

static bool wants_embedding(const llm_batch *b, int64_t i) {
    return b->want_embedding && b->want_embedding[i];
}

static bool is_wanted(const llm_batch *b, int64_t i) {
    return wants_logits(b, i) || wants_embedding(b, i) || wants_score(b, i) ||
           wants_alignment(b, i);
}

/* Checks a block of guesses: its tokens see each other, so they run in one ubatch and one slot. */
static ggl_status check_block(const llm_session *s, const llm_batch *b, ggl_error *err) {
    int64_t n_wanted = 0;
    bool is_one_slot = true;
    for (int64_t i = 0; i < b->n; i++) {
        n_wanted += wants_logits(b, i);
        is_one_slot = is_one_slot && slot_of(b, i) == slot_of(b, 0);
    }
    if (s->built.n_guess_block > 0 && !b->row && !b->feature && b->n <= s->n_ubatch &&
        n_wanted <= s->n_rows && is_one_slot)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "a block of %" PRId64 " guesses, of which %" PRId64
                    " are wanted: the session makes %s, in one slot, of at most %" PRId64
                    " tokens and %" PRId64 " wanted ones, without rows",
                    b->n, n_wanted, s->built.n_guess_block ? "blocks" : "no blocks", s->n_ubatch,
                    s->n_rows);
}

/* Checks that the outputs that the batch wants exist. */
static ggl_status check_outputs(const llm_session *s, const llm_batch *b, ggl_error *err) {
    if (b->want_embedding && s->at_embedding < 0)
        return ggl_fail(err, GGL_USAGE,
                        "the session gives no embeddings: it was made without "
                        "llm_session_params.embeddings");
    if (b->want_score && s->at_score < 0)
        return ggl_fail(err, GGL_USAGE, "the model gives no scores to texts");
    if (b->want_alignment && s->at_alignment < 0)
        return ggl_fail(err, GGL_USAGE,
                        "the session gives no alignments: it was made without "
                        "llm_session_params.alignment");
    if (b->n > 0 && b->feature && !s->feature)
        return ggl_fail(err, GGL_USAGE,
                        "the session reads no rows of another model (llm_batch.feature)");
    const ggl_status st = b->n > 0 && b->is_block ? check_block(s, b, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    const bool has_rows =
        b->is_block ||
        (s->built.guess_stays ? b->feature != NULL : (b->row != NULL) != (b->feature != NULL));
    if (b->n > 0 && (s->guesses ? !has_rows : b->row || b->feature))
        return ggl_fail(err, GGL_USAGE,
                        s->guesses ? "a session of guesses needs the rows of the tokens before "
                                     "(llm_batch.row)"
                                   : "the session reads no rows (llm_batch.row)");
    const bool runs_rows = s->n_inputs > 0 && !s->reads_text;
    if (b->n > 0 && (b->input != NULL) != runs_rows)
        return ggl_fail(err, GGL_USAGE,
                        runs_rows ? "a stage over rows needs them (llm_batch.input)"
                                  : "the session has no stage over rows (llm_batch.input)");
    for (int64_t i = 0; s->at_logits < 0 && i < b->n; i++)
        if (wants_logits(b, i))
            return ggl_fail(
                err, GGL_USAGE,
                "the model gives no logits, so it cannot write texts: it makes %s of them",
                s->at_embedding >= 0 ? "vectors" : "scores");
    return GGL_OK;
}

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

/* Checks that the slots have texts to read. */
static ggl_status check_texts(const llm_session *s, const llm_batch *b, ggl_error *err) {
    for (int64_t i = 0; i < b->n; i++)
        if (s->slots.state[llm_text_slot(s, slot_of(b, i))].n_past == 0)
            return ggl_fail(err, GGL_USAGE,
                            s->n_inputs > 0
                                ? "the model reads rows of an input before it writes, and slot %d "
                                  "has none (llm_stages_read gives it some)"
                                : "the model reads a text before it writes, and slot %d has none "
                                  "(llm_generate and llm_session_read give it one)",
                            slot_of(b, i));
    return GGL_OK;
}

/* Checks that each text of a model that sees them whole is in the batch whole, which is one ubatch. */
static ggl_status check_whole_texts(const llm_session *s, const llm_batch *b, ggl_error *err) {
    int64_t n_rows = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const int slot = slot_of(b, i);
        if (s->slots.state[slot].n_past > 0)
            return ggl_fail(
                err, GGL_USAGE,
                "slot %d has a text already, and the model sees a text whole: clear the "
                "slot first",
                slot);
        n_rows += is_wanted(b, i);
    }
    if (b->n <= s->n_ubatch && n_rows <= s->n_rows)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%" PRId64 " tokens of which %" PRId64
                    " are wanted, but the model sees texts whole, and at most %" PRId64
                    " and %" PRId64 " are computed at once: use a larger context (n_ctx, or -c N)",
                    b->n, n_rows, s->n_ubatch, s->n_rows);
}

void llm_session_set_ends(llm_session *s, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int32_t all = (int32_t)s->slots.n_new[s->slot[i]];
        s->end[i] = s->end[i] > 0 && s->end[i] < all ? s->end[i] : all;
    }
}

/* Checks that a row of a picture whose rows see each other has the next one behind it, and is not one of the rows for which something is
 * wanted: these end a ubatch when there are enough of them. */
static ggl_status check_together(const llm_session *s, const llm_batch *b, int64_t i,
                                 ggl_error *err) {
    const int32_t id = b->token[i];
    llm_media_row row;
    if (!llm_media_get(s->media, id, &row) || row.i + 1 == row.n)
        return GGL_OK;
    if (i + 1 == b->n || b->token[i + 1] != id - 1 || slot_of(b, i + 1) != slot_of(b, i))
        return ggl_fail(err, GGL_USAGE,
                        "row %" PRId64 " of a picture of %" PRId64
                        " ends a text, but all of its rows see each other",
                        row.i, row.n);
    return wants_logits(b, i) || wants_embedding(b, i) || wants_score(b, i)
               ? ggl_fail(err, GGL_UNSUPPORTED,
                          "of a picture whose rows see each other, only the last one has an output")
               : GGL_OK;
}

/* Checks tokens and slots of a batch, and that the slots have room, before anything runs. Appends
 * its tokens to s->slots. */
static ggl_status check_batch(llm_session *s, const llm_batch *b, ggl_error *err) {
    llm_slots_begin(&s->slots);
    if (b->n < 0 || (b->n > 0 && !b->token && !b->input))
        return ggl_fail(err, GGL_USAGE, "a batch of %" PRId64 " tokens%s", b->n,
                        b->n < 0 ? "" : ", but llm_batch.token is NULL");
    ggl_status st = check_outputs(s, b, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; i < b->n; i++) {
        int slot = slot_of(b, i);
        if (slot >= s->n_slots)
            return ggl_fail(err, GGL_USAGE, "slot %d of %" PRId64, slot, s->n_slots);
        st = llm_slots_check_whole(&s->slots, slot, err);
        if (st != GGL_OK)
            return st;
        st = b->token ? llm_session_check_token(s, b->token[i], err) : GGL_OK;
        if (st == GGL_OK && b->token && b->token[i] < 0 && s->built.given_together)
            st = check_together(s, b, i, err);
        if (st != GGL_OK)
            return st;
        const float *share = share_of(s, b, i);
        for (int64_t k = 0; k < s->n_tasks; k++)
            if (!isfinite(share[k]))
                return ggl_fail(err, GGL_USAGE, "share %" PRId64 " of a token is %g", k,
                                (double)share[k]);
        (void)llm_slots_append(&s->slots, slot);
    }
    st = llm_slots_check_room(&s->slots, b->n, err);
    if (st == GGL_OK && s->reads_text)
        st = check_texts(s, b, err);
    return st == GGL_OK && s->built.sees_all ? check_whole_texts(s, b, err) : st;
}

/* Copies element i of the batch's rows to element n of the ubatch's. */
static void give_row(llm_session *s, const llm_batch *b, int64_t i, int64_t n) {
    const int64_t n_row = s->built.n_row, n_feature = s->built.n_feature;
    if (b->row)
        memcpy(s->given + n * n_row, b->row + i * n_row, (size_t)n_row * sizeof *s->given);
    if (b->feature)
        memcpy(s->feature + n * n_feature, b->feature + i * n_feature,
               (size_t)n_feature * sizeof *s->feature);
    if (s->feature)
        s->is_given[n] = b->row || b->is_block ? 1 : 0;
    s->end[n] = b->is_block ? (int32_t)(s->slots.state[slot_of(b, i)].n_past + b->n) : 0;
}

/* True if the ubatch, which has n tokens, must end before token i: the rows of a picture that see each other, as far as they are new, are in one. */
static bool begins_next(const llm_session *s, const llm_batch *b, int64_t i, int64_t n) {
    const int32_t id = b->token[i];
    llm_media_row row;
    if (!s->built.given_together || n == 0 || !llm_media_get(s->media, id, &row))
        return false;
    const bool goes_on =
        row.i > 0 && b->token[i - 1] == id + 1 && slot_of(b, i - 1) == slot_of(b, i);
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

/* Sets what the row with this id stands for in element n of the ubatch, whose slot and position are set, and the places of that element. Of a
 * token, only the latter. */
static void put_row(llm_session *s, int32_t id, int64_t n) {
    const int64_t n_given = s->built.n_given, n_more = s->built.n_given_more, pos = s->pos[n];
    llm_media_row row = {.n = 1, .n_pos = 1};
    const bool is = id < 0 && llm_media_get(s->media, id, &row);
    s->is_put[n] = is ? 1 : 0;
    if (is) {
        memcpy(s->put + n * n_given, row.row, (size_t)n_given * sizeof *s->put);
        memcpy(s->put_more + n * n_more, row.row + n_given, (size_t)n_more * sizeof *s->put);
    }
    if (s->built.given_together)
        s->end[n] = (int32_t)(pos - row.i + row.n);
    if (!s->behind)
        return;
    int32_t *behind = s->behind + s->slot[n] * s->n_ctx + pos;
    const int32_t before = pos > 0 ? behind[-1] : 0;
    for (int k = 0; k < 3; k++)
        if (s->at_place[k])
            s->at_place[k][n] = (int32_t)(pos - row.i) - before + row.place[k];
    *behind = before + (row.i + 1 == row.n ? (int32_t)(row.n - row.n_pos) : 0);
}

/* Sets the inputs of rows in place of tokens, and of places. */
static ggl_status set_put(llm_session *s, int64_t n, ggl_error *err) {
    static const char *const name[3] = {"pos.t", "pos.y", "pos.x"};
    const size_t size = sizeof(float), rows = (size_t)n;
    const size_t n_more = (size_t)s->built.n_given_more;
    ggl_status st = ggl_sched_set(s->sched, "given_row", s->put,
                                  rows * (size_t)s->built.n_given * size, n, err);
    if (st == GGL_OK && n_more > 0)
        st = ggl_sched_set(s->sched, "given_more", s->put_more, rows * n_more * size, n, err);
    if (st == GGL_OK)
        st = ggl_sched_set(s->sched, "is_given", s->is_put, rows * size, n, err);
    for (int k = 0; k < 3 && st == GGL_OK; k++)
        if (s->at_place[k])
            st = ggl_sched_set(s->sched, name[k], s->at_place[k], rows * sizeof *s->at_place[k], n,
                               err);
    return st;
}

ggl_status llm_session_set_inputs(llm_session *s, const float *const *input, int64_t n,
                                  ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; n > 0 && k < s->n_inputs && st == GGL_OK; k++)
        st = ggl_sched_set(s->sched, s->input[k].name, input[k],
                           (size_t)(n * s->input[k].n) * sizeof(float), n, err);
    return st;
}

/* Sets the inputs of guesses. What is not copied is left from before: it does not count. */
static ggl_status set_rows(llm_session *s, int64_t n, ggl_error *err) {
    const size_t size = sizeof(float), rows = (size_t)n;
    const bool in_blocks = s->built.n_guess_block > 0;
    ggl_status st = in_blocks
                        ? ggl_sched_set(s->sched, "end", s->end, rows * sizeof *s->end, n, err)
                        : ggl_sched_set(s->sched, "row", s->given,
                                        rows * (size_t)s->built.n_row * size, n, err);
    if (st == GGL_OK && s->feature)
        st = ggl_sched_set(s->sched, "features", s->feature,
                           rows * (size_t)s->built.n_feature * size, n, err);
    if (st == GGL_OK && s->feature)
        st = ggl_sched_set(s->sched, "given", s->is_given, rows * size, n, err);
    return st;
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

/* Fills the arrays of the next ubatch with tokens from `first` on, `most` of them if they fit, with at most
 * s->n_rows wanted ones, which f notes. Returns their number. */
static int64_t fill_ubatch(llm_session *s, const llm_batch *b, int64_t first, int64_t most,
                           session_flight *f) {
    int64_t n = 0;
    *f = (session_flight){.row = f->row,
                          .told = f->told,
                          .is_early = true,
                          .each = b->each,
                          .each_embedding = b->each_embedding,
                          .each_score = b->each_score,
                          .each_alignment = b->each_alignment,
                          .each_row = b->each_row,
                          .ctx = b->ctx};
    llm_slots_begin(&s->slots);
    for (; n < most && n < s->n_ubatch && first + n < b->n; n++) {
        const int64_t i = first + n;
        const int slot = slot_of(b, i);
        const int32_t id = b->token ? b->token[i] : 0;
        if (id < 0 && begins_next(s, b, i, n))
            break;
        const bool logits = wants_logits(b, i), embedding = wants_embedding(b, i),
                   score = wants_score(b, i), alignment = wants_alignment(b, i);
        if (logits || embedding || score || alignment) {
            if (f->n_rows == s->n_rows)
                break;
            s->row[f->n_rows] = (int32_t)n;
            f->row[f->n_rows++] = (wanted_row){i, n, logits, embedding, score, alignment};
            f->is_early &= s->at_alignment >= 0 ? !embedding && !score && !alignment
                                                : embedding && !logits && !score;
        }
        s->token[n] = id < 0 ? 0 : id;
        s->end[n] = b->seen ? b->seen[i] : 0;
        s->slot[n] = slot;
        s->pos[n] = llm_slots_append(&s->slots, slot);
        if (f->told)
            f->told[n] = (told_token){slot, s->pos[n], s->token[n]};
        memcpy(s->task + n * s->n_tasks, share_of(s, b, i), (size_t)s->n_tasks * sizeof *s->task);
        if (s->guesses)
            give_row(s, b, i, n);
        if (s->put)
            put_row(s, id, n);
        if (s->reads_text) {
            s->read_slot[n] = llm_text_slot(s, slot);
            s->read_end[n] = (int32_t)s->slots.state[llm_text_slot(s, slot)].n_past;
        }
    }
    f->n = n;
    return n;
}

/* Sets the input prefix + name to the first n values. */
static ggl_status set_input(llm_session *s, const char *prefix, const char *name,
                            const int32_t *value, int64_t n, ggl_error *err) {
    char full[16];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    if (s->n_inputs > 0) { /* the rows of a stage have no tokens, and not all need positions */
        const ggl_tensor *t = ggl_graph_find_input(s->graph, full);
        if (!t || !t->needed)
            return GGL_OK;
    }
    return ggl_sched_set(s->sched, full, value, (size_t)n * sizeof *value, n, err);
}

ggl_status llm_session_set_text(llm_session *s, const char *prefix, int64_t n, ggl_error *err) {
    ggl_status st = set_input(s, prefix, "token", s->token, n, err);
    if (st == GGL_OK)
        st = set_input(s, prefix, "pos", s->pos, n, err);
    if (st == GGL_OK)
        st = set_input(s, prefix, "slot", s->slot, n, err);
    const bool whole = s->built.sees_all || *prefix || (s->media && s->built.given_together);
    return st == GGL_OK && whole ? set_input(s, prefix, "end", s->end, n, err) : st;
}

/* Starts the ubatch of n tokens that fill_ubatch has made. With has_ticket, it is collected by f->ticket; else
 * nothing is wanted of it. */
static ggl_status start_ubatch(llm_session *s, int64_t n, session_flight *f, bool has_ticket,
                               ggl_error *err) {
    if (s->built.sees_all)
        llm_session_set_ends(s, n);
    ggl_status st = llm_session_set_text(s, s->prefix, n, err);
    if (st == GGL_OK && s->reads_text)
        st = set_input(s, "read.", "slot", s->read_slot, n, err);
    if (st == GGL_OK && s->reads_text)
        st = set_input(s, "read.", "end", s->read_end, n, err);
    if (st == GGL_OK && s->guesses)
        st = set_rows(s, n, err);
    if (st == GGL_OK && s->put)
        st = set_put(s, n, err);
    if (st == GGL_OK && s->n_tasks > 0)
        st = ggl_sched_set(s->sched, "task", s->task, (size_t)(n * s->n_tasks) * sizeof *s->task, n,
                           err);
    if (st != GGL_OK)
        return st;
    llm_slots_start(&s->slots);
    const bool early = f->n_rows > 0 && f->is_early && s->can_end_early;
    return ggl_sched_submit(s->sched, n, s->row, f->n_rows, early, has_ticket ? &f->ticket : NULL,
                            err);
}

static const float *output(const llm_session *s, int at) {
    return at >= 0 ? ggl_sched_output(s->sched, at) : NULL;
}

/* --- what comes out --------------------------------------------------------------------------- */

/* Hands out what a ubatch has computed. */
static void give(llm_session *s, const session_flight *f) {
    const float *logits = output(s, s->at_logits), *embedding = output(s, s->at_embedding),
                *score = output(s, s->at_score), *share = output(s, s->at_alignment),
                *row = output(s, s->at_rows);
    for (int64_t i = 0; s->tells && s->hear && i < f->n; i++)
        s->hear(s->hear_ctx, f->told[i].slot, f->told[i].pos, f->told[i].token,
                row + i * s->built.n_row);
    for (int64_t k = 0; k < f->n_rows; k++) {
        const wanted_row *w = &f->row[k];
        if (w->embedding && f->each_embedding)
            f->each_embedding(f->ctx, w->i, embedding + k * s->built.n_embd);
        if (s->guesses && f->each_row)
            f->each_row(f->ctx, w->i, row + (s->tells ? w->at : k) * s->built.n_row);
        if (w->score && f->each_score)
            f->each_score(f->ctx, w->i, score + k * s->built.score.n);
        if (w->alignment && f->each_alignment)
            f->each_alignment(f->ctx, w->i, share + k * s->built.alignment.n);
        if (!w->logits)
            continue;
        s->logits = logits + k * llm_session_n_logits(s);
        if (f->each)
            f->each(f->ctx, w->i, s->logits);
    }
}

/* --- a batch of any size ---------------------------------------------------------------------- */

/* Waits for the oldest of the ubatches first .. end-1 and hands out what it has computed. */
static ggl_status collect_oldest(llm_session *s, int64_t *first, ggl_error *err) {
    session_flight *f = &s->flight[(*first)++ % s->n_lanes];
    const ggl_status st = ggl_sched_collect(s->sched, f->ticket, err);
    f->ticket = 0;
    if (st == GGL_OK)
        give(s, f);
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
        n = fill_ubatch(s, b, i, piece, f);
        const bool is_wanted = f->n_rows > 0 || s->tells;
        st = start_ubatch(s, n, f, is_wanted, err);
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

ggl_status llm_session_eval(llm_session *s, const llm_batch *b, ggl_error *err) {
    ggl_status st = llm_session_check_collected(s, err);
    if (st == GGL_OK)
        st = check_batch(s, b, err);
    if (st != GGL_OK)
        return st;
    st = llm_slots_take_pages(&s->slots, err);
    if (st == GGL_OK && b->input)
        st = llm_session_set_inputs(s, b->input, b->n, err);
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
        n_rows += is_wanted(b, i);
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
        st = llm_slots_take_pages(&s->slots, err);
    if (st == GGL_OK && b->input)
        st = llm_session_set_inputs(s, b->input, b->n, err);
    if (st != GGL_OK)
        return st;
    const int64_t n = fill_ubatch(s, b, 0, s->n_ubatch, f);
    st = start_ubatch(s, n, f, true, err);
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
        give(s, f);
    return st;
}
