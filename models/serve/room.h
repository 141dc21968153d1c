/* Decides how many prompt tokens a step runs, and to which prompts they belong. */
#ifndef LLM_ROOM_H
#define LLM_ROOM_H

#include <stdint.h>

/* What steps cost, learned from their times. Attention reads all tokens before a token, so a token at
 * position p costs token_ns + depth_ns p. */
typedef struct room {
    int64_t step_ns;    /* a step with prompts should take about this long while others generate */
    double generate_ns; /* time of a step without prompts; 0: not known */
    double token_ns, depth_ns; /* cost of a prompt token, as above; token_ns 0: not known */
} room;

/* Records a step's time. depth: the sum of the positions of the n_prompt tokens. */
void llm_room_learn(room *r, int64_t ns, int64_t n_prompt, double depth, int64_t n_generating);
/* Returns the expected time of a prompt token at this position; 0: not known. */
double llm_room_token_ns(const room *r, double pos);

typedef struct room_share {
    uint64_t client;
    int64_t want;    /* tokens that can run in this step */
    int64_t left;    /* tokens of the prompt that have not run */
    double token_ns; /* llm_room_token_ns of its next token */
    int64_t get;     /* the result */
    int at;          /* scratch: its index */
} room_share;

/* Sets how many tokens each prompt gets in the next step (s[i].get): at most n_most in all. While others
 * generate, only as many as fit into the time that a step should take, but at least a few. The prompts
 * are in the order in which they came. Takes time n log n for n prompts. */
void llm_room_for_prompts(const room *r, room_share *s, int n_prompts, int64_t n_most,
                          int64_t n_generating);
/* Divides n_most tokens and `ns` nanoseconds (INFINITY: no limit) among prompts. Half of both is shared
 * evenly by the clients, and each client's part by its prompts, so that no prompt stalls. The rest goes
 * to the prompts with the fewest tokens left. */
void llm_room_divide(room_share *s, int n_prompts, int64_t n_most, double ns);

#endif
