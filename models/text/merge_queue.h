/* For tokenizers that merge (spm, bpe): the text as a list of symbols, and a queue of possible
 * joins of neighbors, best first. */
#ifndef LLM_MERGE_QUEUE_H
#define LLM_MERGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NO_SYMBOL UINT32_MAX

/* A range of bytes. n = 0: it was joined to its left neighbor. */
typedef struct symbol {
    uint32_t at, n;
    uint32_t prev, next; /* NO_SYMBOL at the ends */
    int32_t id;          /* -1: not a piece, or not looked up yet */
} symbol;

/* A possible join of symbol `left` with its right neighbor into piece `id`. It is stale if the
 * two no longer have n bytes in total; symbols only grow. */
typedef struct join {
    double rank; /* lowest first; among equals the leftmost */
    uint32_t left, n;
    int32_t id;
} join;

typedef struct merge_queue {
    join *heap;
    size_t n, cap;
} merge_queue;

/* False: out of memory; the queue is unchanged. */
bool llm_merge_queue_push(merge_queue *q, join j);
/* Removes and returns the best join; requires q->n > 0. */
join llm_merge_queue_pop(merge_queue *q);
void llm_merge_queue_fini(merge_queue *q);

/* Performs a join: appends the right symbol to the left one. False: the join is stale, nothing
 * is done. */
bool llm_merge_symbols(symbol *sym, const join *j);

#endif
