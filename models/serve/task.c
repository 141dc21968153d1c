#include "task.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "common/least.h"

/* Checks that the session makes what is wanted. */
static ggl_status check_output(llm_session *s, const llm_sequence_params *p, ggl_error *err) {
    const bool writes = llm_session_has_logits(s) && !llm_session_sees_all(s);
    const bool scores = p->pooling == LLM_POOL_RANK;
    const bool diffuses = llm_session_has_logits(s) && llm_session_sees_all(s);
    const bool shows = p->prompted && p->n_max == 0 && llm_session_has_logits(s);
    if (!p->embedded && !p->diffusion && !llm_session_has_logits(s))
        return ggl_fail(err, GGL_USAGE,
                        "the model gives no logits, so it cannot write texts: it makes %s of them",
                        llm_session_n_embd(s) > 0 ? "vectors" : "scores");
    if (p->diffusion ? !diffuses : !p->embedded && !shows && diffuses)
        return ggl_fail(err, GGL_USAGE,
                        p->diffusion ? "the model does not write by diffusion"
                                     : "this model does not continue texts: it writes them by "
                                       "diffusion (llm_sequence_params.diffusion)");
    if (p->diffusion && (p->n_max < 1 || p->matcher || p->prompted || p->embedded))
        return ggl_fail(err, GGL_USAGE,
                        "a text by diffusion has n_max tokens (%" PRId64
                        "), at least 1, and neither a grammar nor logits of its prompt",
                        p->n_max);
    if (p->beams && (!writes || p->matcher || p->prompted || p->embedded || p->shift))
        return ggl_fail(err, GGL_USAGE,
                        "beams are for texts that are written one token after the other, without a "
                        "grammar, logits of the prompt and a context that shifts");
    if (p->labels && (!writes || p->n_max != 0 || p->matcher || p->prompted || p->embedded ||
                      p->beams || p->asked || llm_session_reads_text(s)))
        return ggl_fail(err, GGL_USAGE,
                        "labels are compared after a text that the model continues, with n_max 0, "
                        "and nothing else of it");
    if (p->asked && (p->beams || p->diffusion || p->embedded))
        return ggl_fail(err, GGL_USAGE,
                        "tokens are asked for, one after the other, of a text without beams and "
                        "diffusion");
    if (p->n_texts > 1 && (!p->text_ended || !p->beams || p->n_texts > p->beams->n))
        return ggl_fail(err, GGL_USAGE, "%d texts need as many beams, and text_ended",
                        (int)p->n_texts);
    if (p->read && !llm_session_reads_text(s))
        return ggl_fail(err, GGL_USAGE,
                        "read is set, but the model reads no text apart from its prompt");
    if (p->prompted && !p->asked && !p->read && llm_session_reads_text(s))
        return ggl_fail(err, GGL_USAGE,
                        "the model reads the prompt, and does not continue it: there are no "
                        "logits of its tokens");
    if (p->embedded && llm_session_reads_text(s) && (!scores || p->read))
        return ggl_fail(err, GGL_USAGE,
                        "the session writes about the texts that it reads: their vectors need one "
                        "of its own (llm_session_params.only)");
    if (p->embedded && (p->prompted || p->n_max != 0 ||
                        (scores ? llm_session_n_score(s) : llm_session_n_embd(s)) == 0))
        return ggl_fail(err, GGL_USAGE,
                        "%s of a prompt, with n_max %" PRId64
                        "%s: n_max must be 0, logits cannot be asked for at the same time, and the "
                        "session must %s",
                        scores ? "scores" : "embeddings", p->n_max,
                        p->prompted ? ", with logits" : "",
                        scores ? "have scores" : "be made with embeddings");
    return GGL_OK;
}

static ggl_status check(llm_session *s, const llm_sequence_params *p, ggl_error *err) {
    const ggl_status st = check_output(s, p, err);
    if (st != GGL_OK)
        return st;
    if (!p->sampler && !p->embedded && !p->diffusion && !p->beams && !p->labels)
        return ggl_fail(err, GGL_USAGE, "a sequence needs a sampler");
    if (p->n_max < -1)
        return ggl_fail(err, GGL_USAGE, "n_max is %" PRId64 ", but must be -1 or more", p->n_max);
    if (p->n_keep < -1)
        return ggl_fail(err, GGL_USAGE, "n_keep is %" PRId64 ", but must be -1 or more", p->n_keep);
    if (p->n_seen < 0 || (size_t)p->n_seen > p->n_prompt || (p->n_seen && !p->embedded))
        return ggl_fail(err, GGL_USAGE, "n_seen is %d, of a prompt of %zu tokens", (int)p->n_seen,
                        p->n_prompt);
    for (int64_t k = 0; p->share && k < llm_session_n_tasks(s); k++)
        if (!isfinite(p->share[k]))
            return ggl_fail(err, GGL_USAGE, "share %" PRId64 " is %g, but must be finite", k,
                            (double)p->share[k]);
    if (p->in_slot < 0 || p->in_slot > llm_session_n_slots(s))
        return ggl_fail(err, GGL_USAGE,
                        "in_slot is %d, but must be 0, or 1 + one of %" PRId64 " slots", p->in_slot,
                        llm_session_n_slots(s));
    if (p->read && (p->n_read == 0 || p->n_read > (size_t)llm_session_n_ctx(s)))
        return ggl_fail(err, p->n_read == 0 ? GGL_USAGE : GGL_LIMIT,
                        "the text that the model is to read has %zu tokens; 1 to %" PRId64
                        " are possible",
                        p->n_read, llm_session_n_ctx(s));
    const ggl_status read =
        p->read ? llm_check_tokens(p->read, p->n_read, llm_session_n_vocab(s), err) : GGL_OK;
    return read == GGL_OK ? llm_session_check_prompt(s, p->prompt, p->n_prompt, err) : read;
}

static ggl_status copy(int32_t **to, int64_t *n_to, const int32_t *id, size_t n, ggl_error *err) {
    *to = ggl_calloc(n, sizeof **to);
    if (!*to)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt of %zu tokens", n);
    memcpy(*to, id, n * sizeof **to);
    *n_to = (int64_t)n;
    return GGL_OK;
}

static ggl_status copy_types(task *t, const llm_session *s, ggl_error *err) {
    const int32_t *from = t->p.type;
    int64_t n;
    t->p.type = NULL;
    return from && llm_session_sees_all(s) ? copy(&t->type, &n, from, t->p.n_prompt, err) : GGL_OK;
}

static ggl_status copy_shares(task *t, const llm_session *s, ggl_error *err) {
    const size_t n = (size_t)llm_session_n_tasks(s);
    if (!t->p.share || n == 0)
        return GGL_OK;
    t->share = ggl_calloc(n, sizeof *t->share);
    if (!t->share)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sequence");
    memcpy(t->share, t->p.share, n * sizeof *t->share);
    t->q.share = t->share;
    return GGL_OK;
}

/* Refuses a text to whose tokens rows of a sound are added, and which leaves none of them to a token that is written. */
static ggl_status check_left(const llm_session *s, const llm_sequence_params *p, ggl_error *err) {
    const int64_t n = (int64_t)p->n_prompt, left = llm_session_rows_left(s, p->prompt, n);
    return left > 0 || p->n_max == 0 || p->prompted
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "the text has %" PRId64 " tokens, but the sound has rows for %" PRId64
                          ", one for each token, so nothing is left to write: give a shorter text, "
                          "or a longer sound",
                          n, n + left);
}

/* Copies the prompt, and the text that the model is to read before it; both may be gone later. */
static ggl_status copy_prompt(task *t, const llm_session *s, ggl_error *err) {
    const llm_sequence_params p = t->p;
    t->p.prompt = t->p.read = NULL;
    t->p.share = NULL;
    t->stats.n_prompt = (int64_t)p.n_prompt;
    if (!llm_session_reads_text(s))
        return copy(&t->q.token, &t->q.n, p.prompt, p.n_prompt, err);
    const int32_t start = llm_session_start_token(s);
    const ggl_status st = p.read ? copy(&t->text, &t->q.n_text, p.read, p.n_read, err)
                                 : copy(&t->text, &t->q.n_text, p.prompt, p.n_prompt, err);
    t->q.text = t->text;
    if (st != GGL_OK)
        return st;
    if (p.embedded) { /* a classifier's decoder reads the text, too, from its own start token on */
        const ggl_status copied = copy(&t->q.token, &t->q.n, p.prompt, p.n_prompt, err);
        if (copied == GGL_OK) {
            memmove(t->q.token + 1, t->q.token, (p.n_prompt - 1) * sizeof *t->q.token);
            t->q.token[0] = start;
        }
        return copied;
    }
    return p.read ? copy(&t->q.token, &t->q.n, p.prompt, p.n_prompt, err)
                  : copy(&t->q.token, &t->q.n, &start, 1, err);
}

/* Returns the most tokens that the sequence can come to have: one more than the context is drawn. */
static size_t most_tokens(const task *t) {
    const int64_t most = t->q.n_ctx + 1, n = t->q.n, n_max = t->p.n_max;
    return (size_t)(n_max < 0 || n_max > most - n ? most : n + n_max);
}

ggl_status llm_task_make_room(task *t, ggl_error *err) {
    size_t n = (size_t)t->q.n;
    if (!ggl_grow(&t->q.token, &n, most_tokens(t), sizeof *t->q.token))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sequence of %zu tokens",
                        most_tokens(t));
    return GGL_OK;
}

/* Makes what writes the text, which is the sequence from now on. */
static ggl_status make_diffuser(task *t, const llm_session *s, ggl_error *err) {
    llm_diffusion d = *t->p.diffusion;
    d.prompt = t->q.token;
    d.n_prompt = t->n_given = t->q.n;
    d.n_length = t->p.n_max < INT64_MAX - t->q.n ? t->q.n + t->p.n_max : INT64_MAX;
    t->p.diffusion = NULL;
    ggl_status st = llm_diffuser_new(&t->diffuser, s, &d, err);
    if (st == GGL_OK)
        st = llm_task_make_room(t, err);
    t->q.n = st == GGL_OK ? d.n_length : t->q.n;
    return st;
}

ggl_status llm_task_new(task **out, llm_session *s, const llm_sequence_params *p,
                        const llm_guesser *guesser, int64_t n_guess_max, ggl_error *err) {
    *out = NULL;
    ggl_status st = check(s, p, err);
    if (st == GGL_OK)
        st = check_left(s, p, err);
    if (st != GGL_OK)
        return st;
    task *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a sequence");
    t->p = *p;
    const int64_t left = llm_session_rows_left(s, p->prompt, (int64_t)p->n_prompt);
    if (left < INT64_MAX && (p->n_max < 0 || p->n_max > left))
        t->p.n_max = left > 0 ? left : 0;
    t->p.beams = NULL; /* the caller's */
    if (p->embedded)
        llm_embed_range(s, p->pooling, p->n_before, (int64_t)p->n_prompt, &t->n_prompted,
                        &t->embed_end);
    if (p->embedded && !llm_session_sees_all(s))
        t->p.n_prompt = (size_t)t->embed_end; /* later tokens do not change earlier rows */
    t->p.no_reuse |= llm_session_sees_all(s);
    t->guesser = t->stats.slot = -1;
    st = llm_seq_init(&t->q, s, guesser, n_guess_max, err);
    t->q.slot = -1;
    t->q.sampler = p->sampler;
    t->q.is_unsteered = p->is_unsteered;
    t->q.shifts = p->shift;
    if (st == GGL_OK)
        st = llm_seq_constrain(&t->q, p->matcher, t->p.n_max, err);
    if (st == GGL_OK && p->asked) {
        t->row = ggl_calloc((size_t)t->q.n_ahead_max + 1, sizeof *t->row);
        st = t->row ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a sequence");
    }
    if (st == GGL_OK)
        st = copy_shares(t, s, err);
    if (st == GGL_OK)
        st = copy_types(t, s, err);
    if (st == GGL_OK)
        st = copy_prompt(t, s, err);
    t->n_begin = t->q.n;
    if (st == GGL_OK && t->p.diffusion)
        st = make_diffuser(t, s, err);
    if (st != GGL_OK) {
        llm_task_free(t);
        return st;
    }
    *out = t;
    return GGL_OK;
}

void llm_task_free(task *t) {
    if (t->group && t->place == 0) {
        for (int32_t i = 1; i < t->group->n; i++)
            if (t->group->member[i])
                llm_task_free(t->group->member[i]);
        llm_beams_free(t->group->beams);
        ggl_free(t->group);
    }
    llm_seq_fini(&t->q);
    ggl_free(t->q.token);
    ggl_free(t->text);
    ggl_free(t->share);
    ggl_free(t->type);
    ggl_free((void *)t->row);
    llm_diffuser_free(t->diffuser);
    ggl_free(t);
}

void llm_task_over(task *t, llm_end why) {
    if (t->is_over)
        return;
    t->is_over = true;
    t->why = why;
}

void llm_task_failed(task *t, const ggl_error *err) {
    if (t->is_over)
        return;
    llm_task_over(t, LLM_END_FAILED);
    t->err = *err;
}

bool llm_task_shift(task *t) {
    seq *q = &t->q;
    ggl_error err;
    const int64_t n_keep = least(t->p.n_keep < 0 ? t->n_begin : t->p.n_keep, q->n_ctx / 2),
                  n_drop = (q->n - n_keep + 1) / 2;
    int64_t n_dropped;
    t->is_full = false;
    if (n_drop <= 0)
        return false;
    if (llm_seq_shift(q, n_keep, n_drop, &n_dropped, &err) != GGL_OK) {
        llm_task_failed(t, &err);
        return true;
    }
    t->reads = true;
    t->n_stops = 0;
    t->lead_to = 0;
    t->n_held = q->n_kept;
    t->stats.n_shifts++;
    t->stats.n_dropped += n_dropped;
    return true;
}

int64_t llm_task_todo(const task *t) {
    return t->q.n - t->q.n_kept;
}

int64_t llm_task_next(const task *t, int64_t n_guess) {
    if (t->p.n_max >= 0)
        n_guess = least(n_guess, t->p.n_max - t->q.n_drawn - 1);
    return least(llm_task_todo(t) + n_guess, t->q.n_ctx - t->q.n_kept);
}

bool llm_task_reuses(const task *t) {
    return !t->p.no_reuse && (!llm_task_shows(t) || t->n_prompted + 1 >= t->n_begin);
}

/* Removes the stops that its tokens have passed. */
static void drop_stops(task *t) {
    int n = 0;
    while (n < t->n_stops && t->stop[n] <= t->q.n_kept)
        n++;
    t->n_stops -= n;
    memmove(t->stop, t->stop + n, (size_t)t->n_stops * sizeof *t->stop);
}

bool llm_task_add_stop(task *t, int64_t n) {
    int i = 0;
    drop_stops(t);
    while (i < t->n_stops && t->stop[i] < n)
        i++;
    if (n == t->q.n || (i < t->n_stops && t->stop[i] == n))
        return true;
    if (n <= t->q.n_kept || n > t->q.n || t->n_stops == TASK_N_STOPS)
        return false;
    memmove(t->stop + i + 1, t->stop + i, (size_t)(t->n_stops - i) * sizeof *t->stop);
    t->stop[i] = n;
    t->n_stops++;
    return true;
}

int64_t llm_task_until_stop(const task *t) {
    int i = 0;
    while (i < t->n_stops && t->stop[i] <= t->q.n_kept)
        i++;
    return (i < t->n_stops ? t->stop[i] : t->q.n) - t->q.n_kept;
}
