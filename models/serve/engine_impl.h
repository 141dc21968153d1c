/* Shared by engine.c (sequences come), leave.c (they end), make_room.c (memory for them), admit.c (which ones
 * run), beam_group.c (those that have several beams), label_task.c (those that compare labels), step.c (what a step runs), batch.c (what a batch runs, and what is drawn), asked.c (a task that runs alone) and overlap.c (steps that overlap on
 * several backends). */
#ifndef LLM_ENGINE_IMPL_H
#define LLM_ENGINE_IMPL_H

#include "kept.h"
#include "client_queue.h"
#include "room.h"

/* A batch of the session, and whose tokens it has. */
typedef struct part {
    llm_engine *e;
    uint64_t ticket; /* if it is under way beside others */
    task **owner;    /* [n] of n_most */
    int64_t n;
} part;

struct llm_engine {
    llm_engine_params p;
    int64_t n_ubatch, n_rows;
    int64_t
        n_most; /* elements of a batch: n_ubatch, or more for texts and pictures that are not parted */
    bool
        sees_all; /* the session sees texts whole: a task that gets a place runs in the same step, and ends */
    int64_t n_pool,
        n_pool_read; /* tokens, and tokens of texts that they read, for which the KV cache has room */
    kept kept;
    queue queue;
    table ids;  /* all tasks */
    task **run; /* [n_run] of n_parallel, in the order of their turns */
    int n_run;
    task *asked;       /* the only task, whose tokens are asked for; NULL: there is none */
    task *leaving;     /* tasks that were taken out of the queue, to be ended */
    int *idle_guesser; /* [n_idle_guessers] of n_parallel: guessers that no task uses */
    int n_idle_guessers;
    bool is_busy;     /* callbacks may be running; sequences are ended after them */
    bool is_closing;  /* llm_engine_free ends all sequences: none can be added */
    int64_t deadline; /* no task has an earlier one */
    uint64_t last_id, last_turn;
    room room;
    /* The batch of the step. */
    int32_t *token, *slot; /* [n_most] */
    const float **shares;  /* [n_most]; NULL: the session has no tasks */
    int32_t *seen, *type;  /* [n_most]; NULL: it does not see texts whole */
    bool *want, *want_embedding, *want_score;
    part *part;                   /* [n_lanes]; a step that is alone has the first one */
    int n_lanes;                  /* batches that may be under way */
    int i_part;                   /* the oldest of those that are */
    int n_parts;                  /* their number, in part[], which is a ring */
    part *filled;                 /* the one that is being filled */
    room_share *share;            /* [n_parallel] */
    int64_t n, n_want;            /* n_want: rows of logits, embeddings and scores */
    int64_t n_prompt, n_generate; /* tokens of the n */
    double prompt_depth;          /* the sum of the positions of the n_prompt */
    int next;                     /* index in run[] of the first to get room */
    llm_engine_stats stats;
};

/* --- those that run (run_list.c) -------------------------------------------------------------- */

int64_t llm_engine_now(const llm_engine *e);
/* Puts a task into run[]. */
void llm_engine_insert(llm_engine *e, task *t);
/* Takes a task out of run[], with its guesser. */
void llm_engine_take_out(llm_engine *e, task *t);

/* --- batches (batch.c) ------------------------------------------------------------------------ */

/* Appends at most n of the tokens that a task has to run to the batch, guesses included. */
void llm_engine_put(llm_engine *e, task *t, int64_t n);
/* Appends the whole text of a task that writes by diffusion; and, after the batch has run, gives its caller what is settled. */
void llm_engine_put_pass(llm_engine *e, task *t);
void llm_engine_end_pass(llm_engine *e, task *t);
/* Draws the next token of a task from its logits, and decides whether it is the last one. */
void llm_engine_draw(llm_engine *e, task *t, const float *logits);
/* The callbacks of a batch; ctx: its part. */
void llm_engine_on_logits(void *ctx, int64_t i, const float *logits);
void llm_engine_on_row(void *ctx, int64_t i, const float *row); /* of embeddings or scores */

/* --- a task whose tokens are asked for (asked.c) ------------------------------------------------ */

/* True if the logits are there from which its next token is drawn. */
bool llm_asked_has_row(const task *t);
/* Runs a batch of the task alone. GGL_CANCELLED: also if `progress` says so. */
ggl_status llm_asked_eval(llm_engine *e, task *t, llm_batch *b, ggl_error *err);
/* Lets a copy of the slot be kept when all of the prompt but its last token has run. */
void llm_asked_keep_later(task *t);
/* Keeps it, if these have run. */
void llm_asked_keep(task *t);

/* --- how sequences end (leave.c) -------------------------------------------------------------- */

/* Takes a task out of the queue, to be ended by llm_engine_end_all for this reason. */
void llm_engine_leave(llm_engine *e, task *t, llm_end why);
/* Lets searches of beams take their step, ends the tasks that are over, and lets those whose context is full shift. */
void llm_engine_end_all(llm_engine *e);

/* --- beams (beam_group.c) --------------------------------------------------------------------- */

/* Makes the group of a task that has beams. */
ggl_status llm_group_new(llm_engine *e, task *t, const llm_sequence_params *p, ggl_error *err);
/* The places that a task takes. */
static inline int llm_group_n(const task *t) {
    return t->group ? t->group->n : 1;
}
/* Makes room for the tokens of all beams; see llm_task_make_room. */
ggl_status llm_group_make_room(task *t, ggl_error *err);
/* Gives the beams of a task that was preempted their places again, beside its own. */
void llm_group_resume(llm_engine *e, task *t);
/* Takes the logits after a beam's text. */
void llm_group_logits(llm_engine *e, task *t, const float *logits);
/* Lets the groups whose logits are complete take a step: beams get the slots of others, or the text is found. Not while a batch runs. */
void llm_group_step_all(llm_engine *e);
/* Ends a search with what it has, for this reason. */
void llm_group_cut(llm_engine *e, task *t, llm_end why);
/* Takes the beams of a task out of run[] and their slots, but not its own. */
void llm_group_leave(llm_engine *e, task *t);
/* True if a batch that is under way has a token of the task or of its beams. */
bool llm_group_is_under_way(const task *t);

/* --- labels (label_task.c) ---------------------------------------------------------------------- */

/* True if the prompt of a task has run whose labels have not been compared yet. */
bool llm_engine_has_labels(const llm_engine *e);
/* Compares the labels of such tasks for which the cache has room. is_stuck: nothing else can run, so others give up their places. Not while a
 * batch runs. */
void llm_engine_run_labels(llm_engine *e, bool is_stuck);

/* --- several batches under way (overlap.c) ---------------------------------------------------- */

/* True if the running sequences may be divided over batches that are under way at the same time: if
 * there is nothing to do but to generate. */
bool llm_engine_overlaps(llm_engine *e);
/* Starts batches of idle sequences until there are as many as should be, and collects the oldest one. */
ggl_status llm_engine_overlap(llm_engine *e, ggl_error *err);
/* Collects all batches that are under way. */
ggl_status llm_engine_collect_all(llm_engine *e, ggl_error *err);

/* --- pages of the cache (make_room.c) --------------------------------------------------------- */

/* True if a waiting task may begin beside the running ones, because there are enough pages for its
 * tokens, and for the text that they read. Drops kept sequences if that frees enough pages. */
bool llm_engine_fits(llm_engine *e, const task *t);
/* Makes room for the next token of all tasks that generate and n_guess guesses of each: gives up the
 * guesses, then drops kept sequences, then preempts the tasks that began last. Returns n_guess, or 0 if
 * there is no room for guesses. */
int64_t llm_engine_make_room(llm_engine *e, int64_t n_guess);
/* Returns how many of the task's next n tokens get pages, in addition to the batch in the session's
 * estimate. Drops kept sequences to gain pages. */
int64_t llm_engine_most_piece(llm_engine *e, const task *t, int64_t n);
/* True if there are free pages for the next token of all tasks that run, without making room. */
bool llm_engine_has_room(const llm_engine *e);
/* Call if no token could run. Preempts the task that began last, or ends it if there is no other. Returns false if no
 * task has begun. */
bool llm_engine_unblock(llm_engine *e);

/* --- places and slots (admit.c) --------------------------------------------------------------- */

/* Ends tasks whose deadline has passed, and gives free places to waiting tasks. A task also gets a slot,
 * unless it should wait until another task has run the beginning that their prompts share. */
void llm_engine_admit(llm_engine *e, int64_t now);

#endif
