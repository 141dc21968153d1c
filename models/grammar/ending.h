/* Endings: how a text can be completed, and in how many tokens at most. The plan goes by bytes: a
 * shortest text of an item, then of each frame that it returns to. The fewest tokens for these bytes
 * are found exactly for a plan, and added up piece by piece for comparisons, which can only give
 * more. */
#ifndef LLM_GRAMMAR_ENDING_H
#define LLM_GRAMMAR_ENDING_H

#include "shortest.h"
#include "stack.h"

typedef struct llm_ending {
    llm_parser *parser;
    llm_stack *stack;
    const llm_vocab *vocab;
    llm_bytes text;
    llm_spelled spelled; /* the plan's tokens */
    llm_suffixes suffixes;
} llm_ending;

void llm_ending_fini(llm_ending *e);

/* The fewest bytes that complete the text from a state in a frame. */
static inline int32_t llm_ending_bytes_from(const llm_ending *e, int32_t state, int32_t frame) {
    const int32_t a = e->parser->states.state[state].min_len, b = e->stack->frame[frame].finish;
    return a < LLM_BX_DEAD - 1 - b ? a + b : llm_bx_add_len(a, b);
}
/* The fewest bytes that complete a text which stands at `set`. */
int32_t llm_ending_bytes(const llm_ending *e, llm_item_set set);
/* The same from the item of the set that needs most bytes. */
int32_t llm_ending_most_bytes(const llm_ending *e, llm_item_set set);
/* A number of tokens that is enough to complete the text. */
int32_t llm_ending_tokens(llm_ending *e, llm_item_set set);
/* Plans an ending: e->text and e->spelled. Failures are in parser->states.pool.status. */
void llm_ending_plan(llm_ending *e, llm_item_set set);

#endif
