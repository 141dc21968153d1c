/* Masks. What a state allows by itself is found once, by a walk over the trie, and remembered: the
 * tokens that stay within its frame, and the nodes of the trie at which others have left it. Only from
 * these nodes on is walked for each mask, with the frames that are really there. */
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
    int32_t *exit;     /* [n_exits] nodes whose byte is the first after the frame, owned */
    int32_t n_exits;
} llm_memo;

/* What matchers of one grammar and vocabulary remember. */
typedef struct llm_masks {
    const llm_vocab *vocab;
    llm_loops loops;
    llm_memo *memo;
    int32_t *bucket; /* [n_buckets] hash table of memos: index + 1, 0: free */
    size_t n_memos, cap_memos, n_buckets;
    size_t size; /* bytes of all memos */
} llm_masks;

/* p: the pool with whose budget it worked. */
void llm_masks_fini(llm_masks *m, llm_bx_pool *p);

/* Sets the bits of tokens that may follow `set`, at the bottom of w->stack, within w->limit. Failures
 * are in w->parser->states.pool.status. */
void llm_mask(llm_masks *m, llm_walk *w, llm_item_set set, uint32_t *allowed);

#endif
