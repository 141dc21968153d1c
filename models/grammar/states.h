/* States of the automaton: expressions over bytes whose transitions are remembered. They are made when
 * they are first reached. */
#ifndef LLM_GRAMMAR_STATES_H
#define LLM_GRAMMAR_STATES_H

#include "pool.h"

enum {
    LLM_STATE_UNKNOWN = 0, /* in rows: not computed yet */
    LLM_STATE_DEAD = 1     /* nothing can be completed from here */
};

typedef struct llm_state {
    int32_t expr;
    int32_t min_len;       /* bytes of its shortest text */
    int32_t row;           /* first of its 256 transitions; -1: none were asked for */
    int32_t call, n_calls; /* calls that may come first; call -1: not listed yet */
    int32_t n_tokens;      /* for its shortest text; -1: not computed yet (ending.c) */
    bool nullable;         /* the text may end here */
    bool simple;           /* neither nullable, nor may a call come first */
} llm_state;

typedef struct llm_states {
    llm_bx_pool pool;
    llm_state *state;
    int32_t *of_expr; /* [cap_of_expr] state of an expression, 0: none */
    int32_t *row;     /* [256 * n_rows] */
    llm_bx_call *call;
    size_t n_states, n_rows, n_calls;
    size_t cap_states, cap_of_expr, cap_rows, cap_calls;
} llm_states;

/* Copies the pool. Returns false if out of memory. */
bool llm_states_init(llm_states *s, const llm_bx_pool *pool);
void llm_states_fini(llm_states *s);

/* Forgets transitions if there are very many; they are found again when they are needed. */
void llm_states_trim(llm_states *s);

/* The state of an expression: LLM_STATE_DEAD if it has no text, and after a failure (pool.status). */
int32_t llm_state_of(llm_states *s, int32_t expr);
/* Computes a transition that is not known yet, and those of bytes that lead to the same state. */
int32_t llm_state_find_next(llm_states *s, int32_t state, unsigned b);
/* Lists the calls that may come first. Returns how many. */
int32_t llm_state_calls(llm_states *s, int32_t state);

static inline int32_t llm_state_next(llm_states *s, int32_t state, unsigned b) {
    const int32_t row = s->state[state].row;
    const int32_t next = row >= 0 ? s->row[(size_t)row * 256 + b] : LLM_STATE_UNKNOWN;
    return next != LLM_STATE_UNKNOWN ? next : llm_state_find_next(s, state, b);
}

#endif
