/* How sequences end. */
#include "common/least.h"
#include "engine_impl.h"

void llm_engine_leave(llm_engine *e, task *t, llm_end why) {
    llm_task_over(t, why);
    llm_queue_remove(&e->queue, t);
    t->where = TASK_LEAVES;
    t->next = e->leaving;
    e->leaving = t;
}

/* The task is in no list any more. */
static void end(llm_engine *e, task *t) {
    llm_table_remove(&e->ids, &t->node);
    if (e->asked == t)
        e->asked = NULL;
    t->stats.n_drawn = t->q.n_drawn;
    t->stats.n_guessed = t->q.n_guessed;
    t->stats.n_right = t->q.n_right;
    t->stats.n_nan = t->q.n_nan;
    e->stats.n_drafts += t->q.n_drafts;
    e->stats.n_guessed += t->q.n_guessed;
    e->stats.n_right += t->q.n_right;
    e->stats.n_ended++;
    const bool failed = t->why == LLM_END_FAILED && t->err.status != GGL_CANCELLED;
    e->stats.n_failed += failed;
    e->stats.n_cancelled += t->why == LLM_END_CANCELLED || (t->why == LLM_END_FAILED && !failed);
    if (t->p.ended)
        t->p.ended(t->p.ctx, t->why, &t->stats, t->why == LLM_END_FAILED ? &t->err : NULL);
    llm_task_free(t);
}

/* Leaves what it has to its slot: of a prompt that has not run to its end, only what has run. */
static void end_in_slot(llm_engine *e, task *t) {
    if (t->reads && t->q.n_drawn == 0)
        t->q.n = least(t->q.n, t->q.n_kept);
    llm_kept_end(&e->kept, &t->q);
}

/* Of a group, all tasks end for the reason of the first that is over. */
static void end_running(llm_engine *e, task *t) {
    task *first = t->group ? t->group->member[0] : t;
    if (!first->is_over) {
        llm_task_over(first, t->why);
        first->err = t->err;
    }
    t = first;
    llm_group_leave(e, t);
    llm_engine_take_out(e, t);
    if (t->has_begun && e->sees_all) /* of no use to later sequences */
        llm_kept_give_back(&e->kept, &t->q);
    else if (t->has_begun)
        end_in_slot(e, t);
    end(e, t);
}

/* Lets those whose context is full lose tokens; one whose tokens are asked for does so when the next is. */
static void shift_all(llm_engine *e) {
    for (int i = 0; i < e->n_run; i++)
        if (e->run[i]->is_full && !e->run[i]->is_under_way && e->run[i] != e->asked)
            (void)llm_task_shift(e->run[i]);
}

/* Callbacks may add to both lists. A sequence in a batch that is under way ends after it. */
void llm_engine_end_all(llm_engine *e) {
    bool again = true;
    llm_group_step_all(e);
    while (again) {
        again = e->leaving != NULL;
        for (task *t; (t = e->leaving) != NULL;) {
            e->leaving = t->next;
            end(e, t);
        }
        for (int i = 0; i < e->n_run;) {
            task *t = e->run[i];
            const bool ends = t->is_over && !llm_group_is_under_way(t);
            again |= ends;
            if (ends)
                end_running(e, t); /* the next one is now at i */
            else
                i++;
        }
    }
    shift_all(e);
}
