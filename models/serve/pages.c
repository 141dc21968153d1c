/* Pages of the KV cache: which kept sequences are dropped, and which running ones wait, so that the
 * others have room. */
#include "engine_impl.h"

static int64_t n_free(const llm_engine *e) {
    return llm_session_n_free(e->p.session);
}

static int64_t n_needed(const llm_engine *e, const task *t, int64_t n) {
    return llm_session_n_needed(e->p.session, t->q.slot, n);
}

/* The tokens of the pages that a task needs for tokens from n_held to its last and the next one. */
static int64_t in_pages(const task *t, int64_t n_held) {
    return (t->q.n / GGL_PAGE - n_held / GGL_PAGE + 1) * GGL_PAGE;
}

/* --- admission -------------------------------------------------------------------------------- */

/* What the running tasks need until they draw. */
static int64_t n_reserved(const llm_engine *e) {
    int64_t n = 0;
    for (int i = 0; i < e->n_run; i++) {
        const task *t = e->run[i];
        n += t->has_begun ? n_needed(e, t, llm_task_todo(t) + 1) : in_pages(t, t->lead_to);
    }
    return n;
}

/* What dropping all kept sequences may bring at most. */
static int64_t n_kept(const llm_engine *e) {
    int64_t n = 0;
    for (int i = 0; i < e->kept.n; i++)
        n += (e->kept.slot[i].n + GGL_PAGE - 1) / GGL_PAGE * GGL_PAGE;
    return n;
}

bool llm_engine_fits(llm_engine *e, const task *t) {
    if (e->n_run == 0)
        return true;
    /* One that had to make room needs a page more for each task beside it, or it would soon have to do
     * so again. */
    const int64_t n_beside = n_reserved(e) + (t->turn > 0 ? e->n_run * GGL_PAGE : 0);
    const bool reuses = llm_task_reuses(t);
    if (reuses)
        llm_kept_spare(&e->kept, &t->q);
    do {
        const int64_t need = n_beside + in_pages(t, reuses ? llm_kept_offer(&e->kept, &t->q) : 0);
        if (need <= n_free(e))
            return true;
        if (need - n_kept(e) > n_free(e))
            return false;
    } while (llm_kept_drop(&e->kept));
    return false;
}

/* --- making room ------------------------------------------------------------------------------ */

/* The task that began last; NULL unless there are at least n that have begun. */
static task *last_begun(const llm_engine *e, int n) {
    task *last = NULL;
    for (int i = 0; i < e->n_run; i++)
        if (e->run[i]->has_begun && !e->run[i]->is_over) {
            last = e->run[i];
            n--;
        }
    return n > 0 ? NULL : last;
}

/* It runs again later, from its tokens. */
static void preempt(llm_engine *e, task *t) {
    llm_engine_take_out(e, t);
    llm_kept_give_back(&e->kept, &t->q);
    t->has_begun = false;
    t->n_stops = 0;
    t->where = TASK_WAITS;
    llm_queue_put_back(&e->queue, t);
    e->stats.n_preempted++;
}

/* Tokens of the pages that those that generate need for their next token and n_guess guesses. */
static int64_t need_of_all(const llm_engine *e, int64_t n_guess) {
    int64_t n = 0;
    for (int i = 0; i < e->n_run; i++) {
        const task *t = e->run[i];
        if (!t->reads && !t->is_over)
            n += n_needed(e, t, llm_task_next(t, n_guess));
    }
    return n;
}

int64_t llm_engine_make_room(llm_engine *e, int64_t n_guess) {
    while (need_of_all(e, n_guess) > n_free(e)) {
        task *t;
        if (n_guess > 0)
            n_guess = 0;
        else if (llm_kept_drop(&e->kept))
            continue;
        else if ((t = last_begun(e, 2)) != NULL)
            preempt(e, t);
        else
            break;
    }
    return n_guess;
}

int64_t llm_engine_most_piece(llm_engine *e, const task *t, int64_t n, int64_t n_taken) {
    int64_t need;
    do {
        need = n_needed(e, t, n) + n_taken;
    } while (need > n_free(e) && llm_kept_drop(&e->kept));
    const int64_t n_lacks = need - n_free(e);
    if (n_lacks <= 0)
        return n;
    const int64_t past_border = (t->q.n_kept + n) % GGL_PAGE;
    const int64_t most = n - n_lacks + GGL_PAGE - (past_border > 0 ? past_border : GGL_PAGE);
    return most > 0 && n_needed(e, t, most) + n_taken <= n_free(e) ? most : 0;
}

bool llm_engine_unblock(llm_engine *e) {
    task *t = last_begun(e, 2);
    if (t) {
        preempt(e, t);
        return true;
    }
    t = last_begun(e, 1);
    if (t)
        llm_task_over(t, LLM_END_CONTEXT);
    return t != NULL;
}
