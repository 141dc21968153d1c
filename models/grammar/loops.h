/* States that loop over many characters, as those in strings do: all tokens of such characters are
 * allowed, and need not be walked. */
#ifndef LLM_GRAMMAR_LOOPS_H
#define LLM_GRAMMAR_LOOPS_H

#include "states.h"
#include "vocab.h"

/* How many characters of each set (llm_slice_chars) may come first; 0: none, or not all of the set. */
typedef struct llm_loop {
    int32_t most[LLM_N_SLICE_CHARS]; /* INT32_MAX: any number */
    int32_t bytes; /* no more are needed after such characters, up to the end of the frame */
    bool known;
} llm_loop;

typedef struct llm_loops {
    llm_loop *loop;  /* [cap] by state */
    uint8_t *covers; /* [cap_covers] by expression: the sets that it has; see loops.c */
    int32_t chars[LLM_N_SLICE_CHARS]; /* expressions for one character of each set; 0: not made */
    size_t cap, cap_covers;
    int n_visits; /* of the search under way */
} llm_loops;

void llm_loops_fini(llm_loops *l);

/* The loops of a state. Failures are in s->pool.status. */
llm_loop llm_loops_find(llm_loops *l, llm_states *s, int32_t state);
/* The largest slice of a vocabulary that a state allows as a whole; -1: none. */
int32_t llm_loop_slice(llm_loop x);

static inline llm_loop llm_loop_of(llm_loops *l, llm_states *s, int32_t state) {
    return (size_t)state < l->cap && l->loop[state].known ? l->loop[state]
                                                          : llm_loops_find(l, s, state);
}

#endif
