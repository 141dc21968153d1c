/* Pages of the KV cache: which kept sequences are dropped, and which running ones wait, so that the
 * others have room. */
#include "engine_impl.h"
#include "run/session_room.h"

/* --- admission -------------------------------------------------------------------------------- */

/* The pages that a task needs for tokens from n_held to its last and the next one. */
static int64_t pages_from(const task *t, int64_t n_held) {
    return t->q.n / GGL_PAGE - n_held / GGL_PAGE + 1;
}

/* Estimates the first pages of beams that have no slots yet. What they have in common with the first one is shared. */
static void estimate_beams(llm_session *s, const task *t) {
    for (int i = 1; i < llm_group_n(t); i++)
        if (t->group->member[i]->where != TASK_RUNS)
            llm_session_estimate_pages(s, pages_from(t->group->member[i], t->n_begin));
}

/* Estimates what the running tasks need until they draw, and a waiting one that gets n_offer tokens
 * from a slot. */
static void estimate_beside(llm_engine *e, const task *t, int64_t n_offer) {
    llm_session *s = e->p.session;
    llm_session_estimate(s);
    for (int i = 0; i < e->n_run; i++) {
        const task *o = e->run[i];
        if (o->has_begun)
            llm_session_estimate_append(s, o->q.slot, llm_task_todo(o) + 1);
        else
            llm_session_estimate_pages(s, pages_from(o, o->lead_to));
        if (!llm_task_is_beam(o))
            estimate_beams(s, o);
    }
    llm_session_estimate_pages(s, pages_from(t, n_offer));
    estimate_beams(s, t);
    /* A task that was preempted needs one more page for each running task, or it would soon be preempted
     * again. */
    if (t->turn > 0)
        llm_session_estimate_pages(s, e->n_run);
}

bool llm_engine_fits(llm_engine *e, const task *t) {
    kept *k = &e->kept;
    int64_t n_offer = 0;
    if (e->n_run == 0)
        return true;
    if (!llm_kept_can_read(k, &t->q, !t->p.no_reuse))
        return false;
    const int source = llm_task_reuses(t) ? llm_kept_spare(k, &t->q, &n_offer) : -1;
    estimate_beside(e, t, n_offer);
    if (llm_kept_drop(k, source))
        return true;
    if (source < 0)
        return false;
    /* the slot with the beginning of its tokens may hold many others */
    estimate_beside(e, t, llm_kept_offer(k, &t->q, source));
    return llm_kept_drop(k, -1);
}

/* --- making room ------------------------------------------------------------------------------ */

/* Returns the task that began last; NULL if fewer than n have begun. The tasks of a group, which have the same turn, are one. */
static task *last_begun(const llm_engine *e, int n) {
    task *last = NULL;
    for (int i = 0; i < e->n_run; i++) {
        task *t = e->run[i];
        if (!t->has_begun || t->is_over)
            continue;
        n -= !last || last->turn != t->turn;
        last = t->group ? t->group->member[0] : t;
    }
    return n > 0 ? NULL : last;
}

/* Takes a task out of its slot and puts it back into the queue. It will run again from its tokens. */
static void preempt(llm_engine *e, task *t) {
    llm_group_leave(e, t);
    llm_engine_take_out(e, t);
    if (t->has_begun)
        llm_kept_give_back(&e->kept, &t->q);
    t->has_begun = false;
    t->n_stops = 0;
    t->where = TASK_WAITS;
    llm_queue_put_back(&e->queue, t);
    e->stats.n_preempted++;
}

/* Estimates what those that generate need for their next token and n_guess guesses. */
static void estimate_next(const llm_engine *e, int64_t n_guess) {
    llm_session_estimate(e->p.session);
    for (int i = 0; i < e->n_run; i++) {
        const task *t = e->run[i];
        if (llm_task_generates(t))
            llm_session_estimate_append(e->p.session, t->q.slot, llm_task_next(t, n_guess));
    }
}

bool llm_engine_has_room(const llm_engine *e) {
    estimate_next(e, 0);
    return llm_session_lacking(e->p.session) <= 0;
}

int64_t llm_engine_make_room(llm_engine *e, int64_t n_guess) {
    for (task *t;;) {
        estimate_next(e, n_guess);
        if (llm_session_lacking(e->p.session) <= 0)
            return n_guess;
        if (n_guess > 0)
            n_guess = 0;
        else if (llm_kept_drop(&e->kept, -1))
            return 0;
        else if ((t = last_begun(e, 2)) != NULL)
            preempt(e, t);
        else
            return 0;
    }
}

/* True if there are enough pages for n more tokens of a task; only then are kept sequences dropped for
 * them. Else *n_lacking is the number of pages that would be missing even without kept sequences. */
static bool drop_for(llm_engine *e, const task *t, int64_t n, int64_t *n_lacking) {
    llm_session_estimate_append(e->p.session, t->q.slot, n);
    const bool suffices = llm_kept_drop(&e->kept, -1);
    *n_lacking = suffices ? 0 : llm_kept_lacking(&e->kept);
    llm_session_undo_append(e->p.session, t->q.slot, n);
    return suffices;
}

int64_t llm_engine_most_piece(llm_engine *e, const task *t, int64_t n) {
    int64_t n_lacking;
    if (drop_for(e, t, n, &n_lacking))
        return n;
    const int64_t n_pages = (t->q.n_kept + n + GGL_PAGE - 1) / GGL_PAGE - n_lacking;
    const int64_t most = n_pages * GGL_PAGE - t->q.n_kept;
    return most > 0 && drop_for(e, t, most, &n_lacking) ? most : 0;
}

bool llm_engine_unblock(llm_engine *e) {
    task *t = last_begun(e, 2);
    if (t) {
        preempt(e, t);
        return true;
    }
    t = last_begun(e, 1);
    if (t && t->group)
        llm_group_cut(e, t, LLM_END_CONTEXT);
    else if (t && !(t->p.shift && !t->reads && llm_task_shift(t)))
        llm_task_over(t, LLM_END_CONTEXT);
    return t != NULL;
}
