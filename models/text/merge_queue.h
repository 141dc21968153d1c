/* What both kinds of merging tokenizers share: text as a chain of symbols, and a queue of possible
 * joins of neighbours, the best first. */
#ifndef LLM_MERGE_QUEUE_H
#define LLM_MERGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_SYMBOL UINT32_MAX

/* A stretch of bytes; n = 0: it was joined to its left neighbour. */
typedef struct symbol {
    uint32_t at, n;
    uint32_t prev, next; /* NO_SYMBOL at the ends */
    int32_t id;          /* -1: no piece, or not looked up yet */
} symbol;

/* A possible join of symbol `left` with its right neighbour into piece `id`. It is stale if the two
 * have no longer `n` bytes together: symbols only grow. */
typedef struct join {
    double rank; /* the lowest is joined first; of equals the leftmost */
    uint32_t left, n;
    int32_t id;
} join;

typedef struct merge_queue {
    join *heap;
    size_t n, cap;
} merge_queue;

/* False: out of memory; the queue stays as it was. */
bool llm_merge_queue_push(merge_queue *q, join j);
/* q->n > 0. */
join llm_merge_queue_pop(merge_queue *q);
void llm_merge_queue_fini(merge_queue *q);

/* Does the join: its right symbol becomes part of the left one. False, and nothing is done, if it
 * is stale. */
bool llm_merge_symbols(symbol *sym, const join *j);

#endif
