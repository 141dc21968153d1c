/* Masks. What a state allows by itself is found once, by a walk over the trie, and remembered: the
 * tokens that stay within its frame, and, as a small trie, the rests of those that leave it. Only
 * these rests are walked for each mask, with the frames that are really there. */
#ifndef LLM_GRAMMAR_MASK_H
#define LLM_GRAMMAR_MASK_H

#include "walk.h"

/* What is known of a state in a frame of a rule. */
typedef struct llm_memo {
    int32_t state, rule;
    int32_t slice;  /* a slice of the vocabulary that is allowed as a whole; -1: none */
    int32_t *token; /* [n_tokens] further tokens, owned; NULL: `bits` has them */
    int32_t n_tokens;
    uint32_t *bits;    /* [n_words] owned */
    int32_t max_bytes; /* the most bytes needed after a token, up to the end of the frame */
    llm_trie exits;    /* rests of tokens that leave the frame */
    bool is_long;      /* there are too many exits: the state is walked each time */
} llm_memo;

/* What matchers of one grammar and vocabulary remember. */
typedef struct llm_masks {
    const llm_vocab *vocab;
    llm_memo *memo;
    int32_t *bucket; /* [n_buckets] hash table of memos: index + 1, 0: free */
    uint8_t *covers; /* [cap_covers] by expression: the slices' characters it has; see mask.c */
    int32_t chars[LLM_N_SLICE_CHARS]; /* expressions for one character of each set; 0: not made */
    size_t n_memos, cap_memos, n_buckets, cap_covers, size;
} llm_masks;

void llm_masks_fini(llm_masks *m);

/* Sets the bits of tokens that may follow `set`, at the bottom of w->stack, within w->limit. Failures
 * are in w->parser->states.pool.status. */
void llm_mask(llm_masks *m, llm_walk *w, llm_item_set set, uint32_t *allowed);

#endif
