/* Shared by engine.c (sequences come and go) and step.c (what a step runs). */
#ifndef LLM_ENGINE_IMPL_H
#define LLM_ENGINE_IMPL_H

#include "kept.h"
#include "queue.h"
#include "room.h"

struct llm_engine {
    llm_engine_params p;
    int64_t n_ubatch, n_rows;
    kept kept;
    queue queue;
    table ids;  /* all tasks */
    task **run; /* [n_run] of n_parallel, in the order in which they began */
    int n_run;
    task *leaving;    /* tasks that were taken out of the queue, to be ended */
    bool *is_lent;    /* [n_parallel]: guessers in use */
    bool is_busy;     /* callbacks may run: sequences end later */
    int64_t deadline; /* no task has an earlier one */
    uint64_t last_id, last_turn;
    room room;
    /* The batch of the step. */
    int32_t *token, *slot; /* [n_ubatch] */
    bool *want;
    task **owner;
    room_share *share; /* [n_parallel] */
    int64_t n, n_want;
    int64_t n_prompt, n_generate; /* tokens of the n */
    int next;                     /* index in run[] of the first to get room */
    llm_engine_stats stats;
};

int64_t llm_engine_now(const llm_engine *e);
/* Takes a task out of the queue, to be ended by llm_engine_end_all for this reason. */
void llm_engine_leave(llm_engine *e, task *t, llm_end why);
/* Ends the tasks that are over. */
void llm_engine_end_all(llm_engine *e);

#endif
