/* The list of tasks that run, and the engine's clock. */
#include "engine_impl.h"

int64_t llm_engine_now(const llm_engine *e) {
    return e->p.clock(e->p.clock_ctx);
}

/* run[] is in the order of turns: a preempted task gets its old place. */
void llm_engine_insert(llm_engine *e, task *t) {
    int i = e->n_run++;
    for (; i > 0 && e->run[i - 1]->turn > t->turn; i--)
        e->run[i] = e->run[i - 1];
    e->run[i] = t;
    t->where = TASK_RUNS;
    t->reads = true;
    t->lead_to = 0;
}

void llm_engine_take_out(llm_engine *e, task *t) {
    int i = 0;
    while (e->run[i] != t)
        i++;
    for (e->n_run--; i < e->n_run; i++)
        e->run[i] = e->run[i + 1];
    if (t->guesser >= 0)
        e->idle_guesser[e->n_idle_guessers++] = t->guesser;
    t->guesser = -1;
}
