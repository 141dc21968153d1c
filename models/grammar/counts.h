/* Arrays with a minimum or maximum number of items that fit a condition. */
#ifndef LLM_GRAMMAR_COUNTS_H
#define LLM_GRAMMAR_COUNTS_H

#include "expr.h"

enum { LLM_COUNTS_MOST = 6 }; /* conditions */

/* A condition that `least` to `most` (LLM_EXPR_MANY: no limit) items fit; items before `from` are not
 * counted. */
typedef struct llm_count {
    int64_t from, least, most;
} llm_count;

typedef struct llm_counts {
    const llm_count *count;
    int32_t n;        /* conditions, at most LLM_COUNTS_MOST */
    int64_t n_first;  /* items with expressions of their own; all later items have the same one */
    int64_t min, max; /* items; max LLM_EXPR_MANY: no limit */
    int32_t comma;
    /* Returns the expression of item `at` (n_first: of any later one) that fits the conditions with bits in
     * `fit`, and does not fit those with bits in `unfit`. */
    int32_t (*item)(void *ctx, int64_t at, unsigned fit, unsigned unfit);
    void *ctx;
} llm_counts;

/* Sets *out to lists of such items with commas between them. Returns false, and sets nothing, if the automaton
 * that counts would be too large. Failures of memory are in g->status. */
bool llm_counted_items(int32_t *out, llm_exprs *g, const llm_counts *c);

#endif
