/* A step: which sequences get a place and a slot, which tokens run, and what is drawn. */
#include <string.h>

#include "engine_impl.h"

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

/* Gives waiting tasks the free places. */
static void admit(llm_engine *e) {
    while (e->n_run < e->p.n_parallel && e->queue.n > 0) {
        task *t = llm_queue_first(&e->queue);
        llm_queue_remove(&e->queue, t);
        t->where = TASK_RUNS;
        t->reads = true;
        t->turn = t->turn ? t->turn : ++e->last_turn;
        lend_guesser(e, t);
        if (!t->was_begun)
            llm_seq_tell_sampler(&t->q);
        t->was_begun = true;
        e->run[e->n_run++] = t;
    }
}

/* Gives a task a slot, which may hold the beginning of its tokens. */
static void begin(llm_engine *e, task *t, int64_t now) {
    ggl_error err;
    const bool reuse = !t->p.no_reuse && !t->p.prompted;
    if (llm_kept_begin(&e->kept, &t->q, reuse, &err) != GGL_OK) {
        llm_task_failed(t, &err);
        return;
    }
    t->has_begun = true;
    e->kept.slot[t->q.slot].id = t->node.key;
    if (t->stats.t_begun == 0) {
        t->stats.t_begun = now;
        t->stats.n_reused = t->q.n_kept;
        e->stats.n_reused += t->q.n_kept;
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
        e->want[at] = pos >= q->n - 1 || (t->p.prompted && pos < t->stats.n_prompt);
        e->n_want += e->want[at];
    }
    e->n += t->n_piece;
    *(t->reads ? &e->n_prompt : &e->n_generate) += t->n_piece;
}

/* The most guesses of each of n sequences that generate, so that neither the rows of logits nor the
 * tokens of the ubatch are too few. */
static int64_t most_guesses(const llm_engine *e, int64_t n) {
    const int64_t most = least(e->n_rows, e->n_ubatch) / n - 1;
    return most > 0 ? most : 0;
}

/* Appends the last token of a sequence that generates, and guesses. */
static void put_next(llm_engine *e, task *t, int64_t n_guess) {
    ggl_error err;
    seq *q = &t->q;
    if (t->p.n_max >= 0)
        n_guess = least(n_guess, t->p.n_max - q->n_drawn - 1);
    ggl_status st = llm_seq_go_back(q, q->n - 1, &err);
    if (st == GGL_OK && q->guesser.guess)
        st = llm_seq_guess(q, least(n_guess, e->n_ubatch - e->n - 1), &err);
    if (st != GGL_OK)
        llm_task_failed(t, &err);
    else
        put(e, t, e->n_ubatch - e->n);
}

/* Those for which there is no room come first in the next step. */
static void put_generating(llm_engine *e) {
    const int n = e->n_run, first = e->next < n ? e->next : 0;
    int n_generating = 0;
    for (int i = 0; i < n; i++)
        n_generating += !e->run[i]->reads;
    e->next = 0;
    for (int k = 0; k < n; k++) {
        const int i = (first + k) % n;
        if (e->run[i]->reads || e->run[i]->is_over)
            continue;
        if (e->n == e->n_ubatch) {
            e->next = i;
            return;
        }
        put_next(e, e->run[i], most_guesses(e, n_generating));
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
    const int64_t n_free = llm_room_for_prompts(&e->room, e->n_ubatch - e->n, e->n_generate);
    int n = 0;
    for (int i = 0; i < e->n_run; i++) {
        const task *t = e->run[i];
        if (t->reads && t->has_begun && !t->is_over)
            e->share[n++] = (room_share){
                .client = t->p.client, .want = wanted_piece(e, t), .left = llm_task_todo(t)};
    }
    llm_room_divide(e->share, n, n_free);
    n = 0;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (t->reads && t->has_begun && !t->is_over && e->share[n++].get > 0)
            put(e, t, e->share[n - 1].get);
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
static void prepare(llm_engine *e, int64_t now) {
    expire(e, now);
    admit(e);
    e->n = e->n_want = e->n_prompt = e->n_generate = 0;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        t->n_piece = 0;
        if (!t->has_begun)
            begin(e, t, now);
    }
    put_generating(e);
    put_prompts(e);
}

ggl_status llm_engine_step(llm_engine *e, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (e->is_busy)
        return ggl_fail(err, GGL_USAGE, "a callback of a step cannot begin another step");
    e->is_busy = true;
    const int64_t now = llm_engine_now(e);
    prepare(e, now);
    if (e->n > 0) {
        st = run(e, err);
        count_time(e, llm_engine_now(e) - now);
    }
    llm_engine_end_all(e);
    e->is_busy = false;
    return st;
}
