/* Where a text stands in a grammar: a set of items, each a state in a frame. A frame is the text of a
 * rule that was called; it knows where to go on when the rule's text is complete. Frames that were
 * called at the same place of the text for the same rule are one, so that frames form a graph, and
 * any context-free grammar is recognized in polynomial time (Earley 1970; Tomita 1985).
 *
 * Items, frames and returns are stacks: a caller that remembers their sizes can go back. */
#ifndef LLM_GRAMMAR_STACK_H
#define LLM_GRAMMAR_STACK_H

#include "states.h"

typedef struct llm_item {
    int32_t state, frame;
} llm_item;

/* When a frame is complete: go on with state `state` in frame `frame`. */
typedef struct llm_return {
    int32_t state, frame;
    int32_t next; /* of the same frame, -1: none */
} llm_return;

typedef struct llm_frame {
    int32_t rule;
    int32_t returns;     /* the first one, -1: none */
    uint64_t born, seen; /* the sets it was called in, and has an item in */
    int32_t item;        /* its item in set `seen` */
    int32_t finish;      /* bytes that finish the text after this frame, at least */
    int32_t best;        /* the return that needs no more than that; -1: none does */
    int32_t n_tokens;    /* tokens for these bytes; -1: not computed yet (ending.c) */
} llm_frame;

enum {
    LLM_FRAME_ROOT = 0, /* the whole text */
    LLM_FRAME_OPEN = 1, /* a frame whose returns are not known */
    LLM_FRAME_FIRST = 2
};

/* Items first .. first + n. */
typedef struct llm_item_set {
    size_t first, n;
    bool complete; /* the root's text may end here */
    bool exits;    /* LLM_FRAME_OPEN's text may end here */
} llm_item_set;

typedef struct llm_stack {
    llm_item *item;
    llm_frame *frame;
    llm_return *ret;
    size_t n_items, n_frames, n_returns;
    size_t cap_items, cap_frames, cap_returns;
} llm_stack;

/* A point to go back to. */
typedef struct llm_stack_mark {
    size_t n_items, n_frames, n_returns;
} llm_stack_mark;

/* A return that the set under construction has added, in a hash table. */
typedef struct llm_new_return {
    uint64_t clock; /* the set's; any other clock: the slot is free */
    int32_t to, index;
} llm_new_return;

/* What stacks of one grammar share. */
typedef struct llm_parser {
    llm_states states;
    int32_t start;  /* state */
    uint64_t clock; /* sets made so far */
    int32_t *frame; /* [n_rules] the frame that a rule was called in .. */
    uint64_t *born; /* [n_rules] .. in this set */
    int32_t *todo;  /* items of a set under construction that are to be looked at */
    size_t n_todo, cap_todo;
    llm_new_return *fresh; /* [n_fresh], a power of two; those of set `clock` are in use */
    size_t n_fresh, n_fresh_used;
} llm_parser;

/* Begins with the budget that is in p->states.pool.use. Returns false after a failure. */
bool llm_parser_init(llm_parser *p, const llm_bx_pool *pool, int32_t start);
void llm_parser_fini(llm_parser *p);

bool llm_stack_init(llm_parser *p, llm_stack *s);
void llm_stack_fini(llm_parser *p, llm_stack *s);
bool llm_stack_copy(llm_parser *p, llm_stack *to, const llm_stack *from);
static inline llm_stack_mark llm_stack_here(const llm_stack *s) {
    return (llm_stack_mark){s->n_items, s->n_frames, s->n_returns};
}
void llm_stack_back(llm_stack *s, llm_stack_mark m);

/* Removes frames and returns that no item leads to; only the items at the bottom may be on the stack.
 * Returns false, with everything as it was, if out of memory. */
bool llm_stack_collect(llm_stack *s);

/* Make sets on top of the stack. Failures are in p->states.pool.status. */

/* The item, and all that it leads to without reading a byte. */
llm_item_set llm_set_of(llm_parser *p, llm_stack *s, llm_item item);
/* The item alone. */
llm_item_set llm_set_of_item(llm_parser *p, llm_stack *s, llm_item item);
/* The items that follow when a frame is complete. */
llm_item_set llm_set_of_returns(llm_parser *p, llm_stack *s, int32_t frame);
/* The items that a byte leads to from the set `from`. */
llm_item_set llm_set_step(llm_parser *p, llm_stack *s, llm_item_set from, unsigned byte);

#endif
