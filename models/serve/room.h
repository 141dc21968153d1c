/* How many tokens of prompts a step runs, and which prompts they belong to. */
#ifndef LLM_ROOM_H
#define LLM_ROOM_H

#include <stdint.h>

/* What steps cost, learned from their times. */
typedef struct room {
    int64_t step_ns;    /* a step with prompts should take about this long while others generate */
    double generate_ns; /* of a step without prompts; 0: not known */
    double token_ns;    /* that a token of a prompt adds; 0: not known */
} room;

/* Tokens of prompts for the next step, 1 .. n_most. */
int64_t llm_room_for_prompts(const room *r, int64_t n_most, int64_t n_generating);
/* Records a step's time. */
void llm_room_learn(room *r, int64_t ns, int64_t n_prompt, int64_t n_generating);

typedef struct room_share {
    uint64_t client;
    int64_t want; /* tokens that it can run */
    int64_t left; /* tokens of the prompt, in all */
    int64_t get;  /* the result */
} room_share;

/* Divides n tokens among prompts, which are given in the order in which they came. Half of the room
 * is shared evenly by clients, and a client's part by its prompts, so that none stalls; the rest
 * goes to those that will be done first. */
void llm_room_divide(room_share *s, int n_prompts, int64_t n);

#endif
