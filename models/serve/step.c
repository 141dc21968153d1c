/* A step: which sequences get a place and a slot, which tokens run, and what is drawn. */
#include <string.h>

#include "engine_impl.h"

enum { WORTH_SHARING = 16 }; /* tokens for which a prompt waits until another one has run them */

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* --- deadlines -------------------------------------------------------------------------------- */

typedef struct expiry {
    llm_engine *e;
    int64_t now;
} expiry;

/* True if the task's deadline has passed; else it counts for the next look. */
static bool has_expired(const expiry *x, const task *t) {
    if (t->p.deadline == 0)
        return false;
    if (t->p.deadline <= x->now)
        return true;
    x->e->deadline = least(x->e->deadline, t->p.deadline);
    return false;
}

static void expire_waiting(void *ctx, task *t) {
    const expiry *x = ctx;
    if (has_expired(x, t))
        llm_engine_leave(x->e, t, LLM_END_DEADLINE);
}

static void expire(llm_engine *e, int64_t now) {
    expiry x = {e, now};
    if (now < e->deadline)
        return;
    e->deadline = INT64_MAX;
    for (int i = 0; i < e->n_run; i++)
        if (has_expired(&x, e->run[i]))
            llm_task_over(e->run[i], LLM_END_DEADLINE);
    llm_queue_each(&e->queue, expire_waiting, &x);
    llm_engine_end_all(e);
}

/* --- places and slots ------------------------------------------------------------------------- */

static void lend_guesser(llm_engine *e, task *t) {
    int i = 0;
    if (!e->p.guesser)
        return;
    while (e->is_lent[i])
        i++;
    e->is_lent[i] = true;
    t->guesser = i;
    t->q.guesser = *e->p.guesser[i];
    t->q.n_told = 0;
}

/* run[] is in the order of turns: a task that made room gets its old place. */
static void insert(llm_engine *e, task *t) {
    int i = e->n_run++;
    for (; i > 0 && e->run[i - 1]->turn > t->turn; i--)
        e->run[i] = e->run[i - 1];
    e->run[i] = t;
}

/* Gives waiting tasks the free places. */
static void admit(llm_engine *e) {
    while (e->n_run < e->p.n_parallel && e->queue.n > 0) {
        task *t = llm_queue_first(&e->queue);
        if (!llm_engine_fits(e, t))
            return;
        llm_queue_remove(&e->queue, t);
        t->where = TASK_RUNS;
        t->reads = true;
        t->lead_to = 0;
        if (t->turn == 0) {
            t->turn = ++e->last_turn;
            llm_seq_tell_sampler(&t->q);
        }
        lend_guesser(e, t);
        insert(e, t);
    }
}

/* What was run before is used, unless the logits of the prompt have yet to be shown. */
static bool reuses(const task *t) {
    return !t->p.no_reuse && (!t->p.prompted || t->n_prompted == t->stats.n_prompt);
}

/* True while another task runs the beginning that both have. */
static bool is_led(llm_engine *e, const task *t) {
    const task *by = t->lead_to > 0 ? llm_table_find(&e->ids, t->leader) : NULL;
    return by && by->has_begun && by->reads && !by->is_over && by->q.n_kept < t->lead_to;
}

/* Looks for a task that is about to run the beginning of this one's tokens, when no slot holds nearly as
 * much of it. */
static bool find_leader(llm_engine *e, task *t) {
    const int64_t n = t->q.n - 1;
    int64_t most = 0;
    task *by = NULL;
    for (int i = 0; i < e->n_run; i++) {
        task *o = e->run[i];
        if (!o->has_begun || !o->reads || o->is_over)
            continue;
        const int64_t n_common = llm_seq_common(t->q.token, n, o->q.token, o->q.n);
        if (n_common > most && n_common > o->q.n_kept) {
            most = n_common;
            by = o;
        }
    }
    if (!by || most < llm_kept_offer(&e->kept, &t->q) + WORTH_SHARING)
        return false;
    t->leader = by->node.key;
    t->lead_to = most;
    /* what cannot go back has to stop there */
    if (e->kept.has_states || llm_session_cut_limit(e->p.session) < INT64_MAX)
        llm_task_add_stop(by, most);
    return true;
}

/* States are kept where other prompts may part from this one. */
static void add_stops(llm_engine *e, task *t, int64_t n_common) {
    if (!e->kept.has_states)
        return;
    if (n_common >= t->q.n_kept + WORTH_SHARING)
        llm_task_add_stop(t, n_common);
    llm_task_add_stop(t, (t->q.n - 1) / GGL_PAGE * GGL_PAGE);
}

/* Gives a task a slot, which may hold the beginning of its tokens. */
static void begin(llm_engine *e, task *t, int64_t now) {
    ggl_error err;
    const int64_t n_common = llm_kept_common(&e->kept, &t->q, t->q.n - 1);
    if (llm_kept_begin(&e->kept, &t->q, reuses(t), &err) != GGL_OK) {
        llm_task_failed(t, &err);
        return;
    }
    t->has_begun = true;
    e->kept.slot[t->q.slot].id = t->node.key;
    add_stops(e, t, n_common);
    if (t->stats.t_begun == 0) {
        t->stats.t_begun = now;
        t->stats.n_reused = t->q.n_kept;
        e->stats.n_reused += t->q.n_kept;
    }
}

static void begin_all(llm_engine *e, int64_t now) {
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (!t->has_begun && !is_led(e, t) && !(reuses(t) && find_leader(e, t)))
            begin(e, t, now);
    }
}

/* --- the batch -------------------------------------------------------------------------------- */

/* Appends at most n of the tokens that a task has to run, guesses included. */
static void put(llm_engine *e, task *t, int64_t n) {
    const seq *q = &t->q;
    t->first = e->n;
    t->from = q->n_kept;
    t->n_before = q->n;
    t->n_piece = llm_seq_fill(q, e->token + e->n, n);
    for (int64_t i = 0; i < t->n_piece; i++) {
        const int64_t at = e->n + i, pos = t->from + i;
        e->slot[at] = q->slot;
        e->owner[at] = t;
        e->want[at] =
            pos >= q->n - 1 || (t->p.prompted && pos >= t->n_prompted && pos < t->stats.n_prompt);
        e->n_want += e->want[at];
    }
    e->n += t->n_piece;
    e->n_taken += llm_session_n_needed(e->p.session, q->slot, t->n_piece);
    *(t->reads ? &e->n_prompt : &e->n_generate) += t->n_piece;
}

static bool is_reading(const task *t) {
    return t->reads && t->has_begun && !t->is_over;
}

/* Takes wrong guesses out of the slots of those that generate. Returns their number. */
static int go_back(llm_engine *e) {
    int n = 0;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        ggl_error err;
        if (t->reads || t->is_over)
            continue;
        if (llm_seq_go_back(&t->q, t->q.n - 1, &err) != GGL_OK)
            llm_task_failed(t, &err);
        n++;
    }
    return n;
}

/* The tokens of the ubatch that those that generate may take, so that prompts go on. */
static int64_t room_to_generate(const llm_engine *e) {
    bool any_reads = false;
    for (int i = 0; i < e->n_run; i++)
        any_reads |= is_reading(e->run[i]);
    if (!any_reads)
        return e->n_ubatch;
    return e->n_ubatch > 1 ? e->n_ubatch - 1 : e->stats.n_steps % 2;
}

/* The most guesses of each of n sequences that generate, so that rows of logits suffice and half of the
 * room is left for prompts. */
static int64_t most_guesses(const llm_engine *e, int n, int64_t n_room) {
    const int64_t n_tokens = n_room < e->n_ubatch ? e->n_ubatch / 2 : e->n_ubatch;
    const int64_t most = n > 0 ? least(e->n_rows, n_tokens) / n - 1 : 0;
    return e->p.guesser && most > 0 ? least(most, e->p.n_guess_max) : 0;
}

/* Appends the last token of a sequence that generates, and guesses. */
static void put_next(llm_engine *e, task *t, int64_t n_guess, int64_t n_room) {
    ggl_error err;
    if (t->p.n_max >= 0)
        n_guess = least(n_guess, t->p.n_max - t->q.n_drawn - 1);
    if (llm_seq_guess(&t->q, least(n_guess, n_room - 1), &err) != GGL_OK)
        llm_task_failed(t, &err);
    else
        put(e, t, n_room);
}

/* Those for which there is no room come first in the next step. */
static void put_generating(llm_engine *e, int64_t n_guess, int64_t n_room) {
    const int n = e->n_run, first = e->next < n ? e->next : 0;
    e->next = 0;
    for (int k = 0; k < n; k++) {
        task *t = e->run[(first + k) % n];
        if (t->reads || t->is_over)
            continue;
        if (e->n >= n_room) {
            e->next = (first + k) % n;
            return;
        }
        put_next(e, t, n_guess, n_room - e->n);
    }
}

/* Tokens of its prompt that a task can run in this step. */
static int64_t wanted_piece(const llm_engine *e, const task *t) {
    const int64_t n = llm_task_until_stop(t);
    if (!t->p.prompted)
        return n;
    const int64_t n_rows = e->n_rows - e->n_want;
    return least(n, n_rows > 1 ? n_rows : 1);
}

/* Fills the room with pieces of prompts. */
static void put_prompts(llm_engine *e) {
    const int64_t n_most = llm_room_for_prompts(&e->room, e->n_ubatch - e->n, e->n_generate);
    int n = 0;
    for (int i = 0; i < e->n_run; i++) {
        const task *t = e->run[i];
        if (is_reading(t))
            e->share[n++] = (room_share){
                .client = t->p.client, .want = wanted_piece(e, t), .left = llm_task_todo(t)};
    }
    llm_room_divide(e->share, n, n_most);
    n = 0;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (!is_reading(t))
            continue;
        const int64_t n_piece = llm_engine_most_piece(e, t, e->share[n++].get, e->n_taken);
        if (n_piece > 0)
            put(e, t, n_piece);
    }
}

/* --- drawing ---------------------------------------------------------------------------------- */

/* Whether a sequence goes on after a token was drawn. */
static void decide(const llm_engine *e, task *t, int32_t id, bool goes_on) {
    if (e->p.tokenizer && !t->p.ignore_eog && llm_tokenizer_is_eog(e->p.tokenizer, id))
        llm_task_over(t, LLM_END_EOG);
    else if (!goes_on)
        llm_task_over(t, LLM_END_STOPPED);
    else if (t->q.n_drawn == t->p.n_max)
        llm_task_over(t, LLM_END_MAX);
    else if (t->q.n > t->q.n_ctx)
        llm_task_over(t, LLM_END_CONTEXT);
}

static void draw(llm_engine *e, task *t, const float *logits) {
    ggl_error err;
    int32_t id;
    if (t->p.n_max == 0) {
        llm_task_over(t, LLM_END_MAX);
    } else if (llm_seq_draw(&t->q, logits, &id, &err) != GGL_OK) {
        llm_task_failed(t, &err);
    } else if (id < 0) {
        llm_task_over(t, LLM_END_EOG);
    } else {
        e->stats.n_drawn++;
        t->stats.t_last = llm_engine_now(e);
        decide(e, t, id, !t->p.token || t->p.token(t->p.ctx, id, logits));
    }
}

/* llm_batch.each */
static void on_logits(void *ctx, int64_t i, const float *logits) {
    llm_engine *e = ctx;
    task *t = e->owner[i];
    const int64_t pos = t->from + i - t->first, row = pos - (t->n_before - 1);
    if (!t->is_over && t->p.prompted && pos < t->stats.n_prompt && pos >= t->n_prompted) {
        t->n_prompted = pos + 1;
        t->p.prompted(t->p.ctx, pos, logits);
    }
    if (row == 0) {
        llm_seq_ran(&t->q);
        t->reads = false;
        if (t->stats.t_prompt == 0)
            t->stats.t_prompt = llm_engine_now(e);
    }
    if (row >= 0 && t->q.at == row && !t->is_over)
        draw(e, t, logits);
}

/* --- the step --------------------------------------------------------------------------------- */

static ggl_status run(llm_engine *e, ggl_error *err) {
    const llm_batch b = {.n = e->n,
                         .token = e->token,
                         .slot = e->slot,
                         .want = e->want,
                         .each = on_logits,
                         .ctx = e};
    ggl_error why;
    const ggl_status st = llm_session_eval(e->p.session, &b, &why);
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (t->n_piece == 0)
            continue;
        if (st != GGL_OK)
            llm_task_failed(t, &why);
        else if (t->from + t->n_piece < t->n_before)
            t->q.n_kept = t->from + t->n_piece;
    }
    if (st != GGL_OK && err)
        *err = why;
    return st;
}

static void count_time(llm_engine *e, int64_t ns) {
    const double share = (double)e->n_prompt / (double)e->n;
    const int64_t prompt_ns = (int64_t)((double)ns * share);
    llm_room_learn(&e->room, ns, e->n_prompt, e->n_generate);
    e->stats.n_steps++;
    e->stats.n_prompt += e->n_prompt;
    e->stats.busy_ns += ns;
    e->stats.prompt_ns += prompt_ns;
    e->stats.generate_ns += ns - prompt_ns;
}

/* Fills the batch. */
static void fill(llm_engine *e) {
    e->n = e->n_want = e->n_prompt = e->n_generate = e->n_taken = 0;
    for (int i = 0; i < e->n_run; i++)
        e->run[i]->n_piece = 0;
    const int64_t n_room = room_to_generate(e), n_guess = most_guesses(e, go_back(e), n_room);
    put_generating(e, llm_engine_make_room(e, n_guess), n_room);
    put_prompts(e);
}

/* Keeps the states after prompts, and where their pieces have to end. */
static void take_snapshots(llm_engine *e) {
    for (int i = 0; i < e->n_run && e->kept.has_states; i++) {
        const task *t = e->run[i];
        const int64_t n = t->from + t->n_piece;
        bool is_stop = n == t->n_before && t->n_before == t->stats.n_prompt;
        for (int k = 0; k < t->n_stops; k++)
            is_stop |= n == t->stop[k];
        if (t->n_piece > 0 && is_stop && t->why != LLM_END_FAILED)
            llm_kept_take_snapshot(&e->kept, &t->q, n);
    }
}

static ggl_status step(llm_engine *e, ggl_error *err) {
    const int64_t now = llm_engine_now(e);
    expire(e, now);
    admit(e);
    begin_all(e, now);
    fill(e);
    while (e->n == 0 && llm_engine_unblock(e))
        fill(e);
    if (e->n == 0)
        return GGL_OK;
    const ggl_status st = run(e, err);
    if (st == GGL_OK)
        take_snapshots(e);
    count_time(e, llm_engine_now(e) - now);
    return st;
}

ggl_status llm_engine_step(llm_engine *e, ggl_error *err) {
    if (e->is_busy)
        return ggl_fail(err, GGL_USAGE, "a callback of a step cannot begin another step");
    e->is_busy = true;
    const ggl_status st = step(e, err);
    llm_engine_end_all(e);
    e->is_busy = false;
    return st;
}
