/* Walks a trie of tokens and the grammar together: which tokens may follow. */
#ifndef LLM_GRAMMAR_WALK_H
#define LLM_GRAMMAR_WALK_H

#include "ending.h"
#include "loops.h"

typedef struct llm_level {
    llm_item_set set;
    llm_stack_mark mark; /* the stack with this set on top */
} llm_level;

typedef struct llm_walk {
    llm_parser *parser;
    llm_stack *stack;
    llm_ending *ending;
    llm_loops *loops; /* NULL: every node is walked */
    int32_t limit;    /* only tokens after which the text can be completed in that many; -1: all */
    int64_t most_bytes; /* that `limit` tokens of the vocabulary can have */
    unsigned skip;      /* nodes with one of these bits in `slices` are not entered */
    bool lists_exits;
    int32_t *found;    /* [n_found] tokens that may follow */
    int32_t *exit;     /* [n_exits] nodes below which LLM_FRAME_OPEN may have been left */
    int32_t max_bytes; /* the most bytes that are needed after a token found */
    size_t n_found, n_exits, cap_found, cap_exits;
    llm_level *level; /* sets at the depths of the trie */
    size_t cap_levels;
} llm_walk;

/* Appends to w->found the tokens that may follow `start`, the set on top of the stack, and to w->exit
 * if that is asked for. Failures are in parser->states.pool.status. */
void llm_walk_trie(llm_walk *w, const llm_trie *t, llm_item_set start);
/* The same for tokens at a node and below it, where `set` is after the node's byte. The set may be
 * anywhere on the stack. */
void llm_walk_from(llm_walk *w, const llm_trie *t, int32_t node, llm_item_set set);
void llm_walk_fini(llm_walk *w);

#endif
