/* Which sequences run: deadlines, free places, slots, and beginnings that several have in common. */
#include "engine_impl.h"
#include "common/least.h"
#include "run/session_room.h"

enum { WORTH_SHARING = 16 }; /* tokens for which a prompt waits until another one has run them */

/* --- deadlines -------------------------------------------------------------------------------- */

typedef struct expiry {
    llm_engine *e;
    int64_t now;
} expiry;

/* True if the task's deadline has passed. Else it becomes the engine's deadline if it is the earliest. */
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

static void expire_all(llm_engine *e, int64_t now) {
    expiry x = {e, now};
    e->deadline = INT64_MAX;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (!has_expired(&x, t))
            continue;
        if (t->group && !t->is_over) /* as much as there is, as of others */
            llm_group_cut(e, t->group->member[0], LLM_END_DEADLINE);
        llm_task_over(t, LLM_END_DEADLINE);
    }
    llm_queue_each(&e->queue, expire_waiting, &x);
    llm_engine_end_all(e);
}

/* --- files that share beginnings -------------------------------------------------------------- */

/* Fills an empty slot with the longest beginning of the task's tokens that the folder has, unless a slot has about as many. */
static void load_beginning(llm_engine *e, const task *t) {
    ggl_error err;
    int32_t *id;
    const seq *q = &t->q;
    const int64_t n_offer = llm_kept_offer(&e->kept, q, -1);
    const int64_t n =
        llm_prompt_folder_find(e->p.prompts, q->token, q->n - 1, n_offer + WORTH_SHARING);
    const int slot = n > 0 ? llm_kept_empty(&e->kept) : -1;
    if (slot < 0)
        return;
    ggl_status st = llm_prompt_folder_load(e->p.prompts, slot, q->token, n, &id, &err);
    if (st == GGL_LIMIT) {
        llm_session_estimate(e->p.session);
        llm_session_estimate_pages(e->p.session, (n + GGL_PAGE - 1) / GGL_PAGE);
        if (llm_kept_drop(&e->kept, slot))
            st = llm_prompt_folder_load(e->p.prompts, slot, q->token, n, &id, &err);
    }
    if (st == GGL_OK && e->kept.has_states) /* others start there, too, when this one has gone on */
        llm_snapshots_add(&e->kept.snapshots, e->p.session, slot, llm_seq_shares(q), id, n);
    if (st == GGL_OK)
        llm_kept_adopt(&e->kept, slot, id, n);
}

/* Returns how many tokens of a task to save, because other prompts begin with them, too; 0: none. Before it gets its slot. */
static int64_t worth_saving(const llm_engine *e, const task *t) {
    const int64_t n_prompt = t->n_begin, n_parted = llm_kept_parted(&e->kept, &t->q, n_prompt),
                  n_told = (int64_t)t->p.n_beginning;
    const int64_t n = n_told > n_parted && n_told < n_prompt ? n_told : n_parted;
    return llm_prompt_folder_wants(e->p.prompts, t->q.token, n);
}

/* Saves them now, or lets a piece end there. */
static void save_beginning(llm_engine *e, task *t, int64_t n) {
    t->save_at = 0;
    if (n > 0 && t->q.n_kept >= n)
        llm_prompt_folder_save(e->p.prompts, t->q.slot, t->q.token, n);
    else if (n > 0 && llm_task_add_stop(t, n))
        t->save_at = n;
}

/* True if the folder is for sequences like this one. */
static bool uses_folder(const llm_engine *e, const task *t) {
    return e->p.prompts && !e->sees_all && !t->text && !t->diffuser && !llm_task_is_beam(t) &&
           llm_task_reuses(t) && llm_seq_has_shares(&t->q, llm_session_shares(e->p.session));
}

/* --- places and slots ------------------------------------------------------------------------- */

static void lend_guesser(llm_engine *e, task *t) {
    if (e->n_idle_guessers == 0 || t->group || t->p.no_guesses)
        return;
    t->guesser = e->idle_guesser[--e->n_idle_guessers];
    t->q.guesser = *e->p.guesser[t->guesser];
    t->q.n_told = 0;
}

/* Prepares a task that gets a place for the first time. */
static void prepare(llm_engine *e, task *t) {
    ggl_error err;
    t->turn = ++e->last_turn;
    if (t->diffuser)
        return;
    if (llm_group_make_room(t, &err) != GGL_OK)
        llm_task_failed(t, &err);
    if (t->q.sampler)
        llm_seq_tell_sampler(&t->q);
}

/* True while another task runs the beginning that they have in common. */
static bool is_led(llm_engine *e, const task *t) {
    const task *by = t->lead_to > 0 ? llm_table_find(&e->ids, t->leader) : NULL;
    return by && by->has_begun && by->reads && !by->is_over && by->q.n_kept < t->lead_to;
}

/* Looks for a task that is about to run a beginning that it has in common with this one, and lets this one wait for it.
 * Returns false if there is none, or if a slot can already give nearly as many tokens. */
static bool find_leader(llm_engine *e, task *t) {
    const int64_t n = t->q.n - 1;
    int64_t most = 0;
    task *by = NULL;
    for (int i = 0; i < e->n_run; i++) {
        task *o = e->run[i];
        if (!o->has_begun || !o->reads || o->is_over || t->text ||
            !llm_seq_has_shares(&t->q, llm_seq_shares(&o->q)))
            continue;
        const int64_t n_common = llm_seq_common(t->q.token, n, o->q.token, o->q.n);
        if (n_common > most && n_common > o->q.n_kept) {
            most = n_common;
            by = o;
        }
    }
    if (!by || most < llm_kept_offer(&e->kept, &t->q, -1) + WORTH_SHARING)
        return false;
    /* states and windows cannot be cut back: the leader must stop at that place, or waiting is of no use */
    if ((e->kept.has_states || llm_session_cut_limit(e->p.session) < INT64_MAX) &&
        !llm_task_add_stop(by, most))
        return false;
    t->leader = by->node.key;
    t->lead_to = most;
    return true;
}

/* Makes pieces end where other prompts may begin to differ from this one, because snapshots of states are
 * useful there. A caller who asks for tokens waits for the first one. */
static void add_stops(llm_engine *e, task *t, int64_t n_common) {
    if (!e->kept.has_states || t->p.asked)
        return;
    if (n_common >= t->q.n_kept + WORTH_SHARING)
        (void)llm_task_add_stop(t, n_common);
    (void)llm_task_add_stop(t, (t->q.n - 1) / GGL_PAGE * GGL_PAGE);
}

/* Lets the task's slot read its text, unless a slot has it. If that fails, the task ends, and gives its slot back. */
static void read_text(llm_engine *e, task *t, int64_t now) {
    ggl_error err;
    bool is_found = false;
    const seq *q = &t->q;
    ggl_status st = GGL_OK;
    /* beams have one text, for which there is room once */
    if (!t->p.no_reuse || llm_task_is_beam(t))
        st = llm_session_find_read(e->p.session, q->slot, q->text, q->n_text, &is_found, &err);
    if (st == GGL_OK && !is_found) {
        llm_kept_make_room_to_read(&e->kept, q);
        st = llm_session_read(e->p.session, q->slot, q->text, q->n_text, &err);
    }
    if (st != GGL_OK) {
        llm_task_failed(t, &err);
        return;
    }
    /* if the text is the prompt, its first token is counted when it runs */
    const int64_t ns = llm_engine_now(e) - now, n = t->stats.n_prompt - t->n_begin;
    if (is_found)
        t->n_found = n;
    else
        e->stats.n_prompt += n;
    e->stats.prompt_ns += ns;
    e->stats.busy_ns += ns;
}

/* Gives a task a slot, which may hold the beginning of its tokens. */
static void begin(llm_engine *e, task *t, int64_t now) {
    ggl_error err;
    int64_t n_save = 0;
    if (uses_folder(e, t)) {
        load_beginning(e, t);
        n_save = worth_saving(e, t);
    }
    const int64_t n_common = e->kept.has_states ? llm_kept_common(&e->kept, &t->q) : 0;
    if (llm_kept_begin(&e->kept, &t->q, llm_task_reuses(t), t->p.in_slot - 1, &err) != GGL_OK) {
        llm_task_failed(t, &err);
        return;
    }
    if (t->text)
        read_text(e, t, now);
    t->has_begun = true;
    t->stats.slot = t->q.slot;
    e->kept.slot[t->q.slot].id = t->node.key;
    e->kept.slot[t->q.slot].n_prompt = t->n_begin;
    t->n_held = t->q.n_kept;
    add_stops(e, t, n_common);
    llm_asked_keep_later(t);
    save_beginning(e, t, n_save);
    if (!t->has_begun_before) {
        t->has_begun_before = true;
        t->stats.t_begun = now;
        t->stats.n_reused = t->q.n_kept + t->n_found;
        e->stats.n_reused += t->stats.n_reused;
    }
}

/* Gives a task a slot, unless it should wait until another task has run the beginning of its tokens. */
static void begin_if_free(llm_engine *e, task *t, int64_t now) {
    if (!t->has_begun && !t->is_over && !t->waits && !is_led(e, t) &&
        !(llm_task_reuses(t) && find_leader(e, t)))
        begin(e, t, now);
}

static void begin_all(llm_engine *e, int64_t now) {
    for (int i = 0; i < e->n_run; i++)
        begin_if_free(e, e->run[i], now);
}

/* --- waiting tasks ---------------------------------------------------------------------------- */

/* True if a text fits whole into the step beside those of the tasks that run; alone it always does. */
static bool fits_whole(const llm_engine *e, const task *t) {
    int64_t n = t->q.n;
    for (int i = 0; i < e->n_run; i++)
        n += e->run[i]->q.n;
    return n <= e->n_ubatch || e->n_run == 0;
}

/* The free places; a group has taken those of all its beams from its beginning on. */
static int n_free_places(const llm_engine *e) {
    int n = e->p.n_parallel;
    for (int i = 0; i < e->n_run; i++)
        n -= llm_task_is_beam(e->run[i]) ? 0 : llm_group_n(e->run[i]);
    return n;
}

/* Gives waiting tasks the free places. Each gets its slot at once, so that the next one finds which
 * pages are left. */
static void admit(llm_engine *e, int64_t now) {
    while (e->queue.n > 0) {
        task *t = llm_queue_first(&e->queue);
        if (llm_group_n(t) > n_free_places(e) || !llm_engine_fits(e, t) ||
            (e->sees_all && !fits_whole(e, t)))
            return;
        (void)llm_queue_take(&e->queue);
        if (t->turn == 0)
            prepare(e, t);
        lend_guesser(e, t);
        llm_engine_insert(e, t);
        llm_group_resume(e, t);
        if (t->p.labels)
            t->waits = false; /* its prompt runs again, if it had to make room */
        begin_if_free(e, t, now);
    }
}

void llm_engine_admit(llm_engine *e, int64_t now) {
    if (now >= e->deadline)
        expire_all(e, now);
    begin_all(e, now);
    admit(e, now);
}
