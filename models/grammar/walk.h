/* Walks a trie of tokens and the grammar together: which tokens may follow. */
#ifndef LLM_GRAMMAR_WALK_H
#define LLM_GRAMMAR_WALK_H

#include "ending.h"
#include "vocab.h"

typedef struct llm_level {
    llm_item_set set;
    llm_stack_mark mark; /* the stack with this set on top */
} llm_level;

typedef struct llm_walk {
    llm_parser *parser;
    llm_stack *stack;
    uint32_t *allowed; /* tokens that are found; set bits stay */
    int32_t limit;     /* only tokens after which the text can be completed in that many; -1: all */
    llm_ending *ending;
    llm_level *level; /* sets at the depths of the trie */
    size_t cap_levels;
} llm_walk;

/* Sets the bits of tokens that may follow `start`, the set on top of the stack. Failures are in
 * parser->states.pool.status. */
void llm_walk_trie(llm_walk *w, const llm_trie *t, llm_item_set start);
void llm_walk_fini(llm_walk *w);

#endif
