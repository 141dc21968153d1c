/* For tokenizers that merge (spm, bpe), also those of small/: the text as a list of symbols, whose neighbors are joined, the
 * best ones first, until no two of them can be. */
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

/* Sets j->rank and j->id if symbol a and its right neighbor b can be joined, else returns false. j->n is how many bytes they have together. */
typedef bool merge_find_fn(const void *context, const symbol *a, const symbol *b, join *j);

/* Joins the n symbols, whose links it sets, as long as find() finds two neighbors to join; those that are left are reached from the
 * first one by .next. q keeps its memory for the next call. False: out of memory. */
bool llm_merge_all(merge_queue *q, symbol *sym, uint32_t n, merge_find_fn *find,
                   const void *context);
void llm_merge_queue_fini(merge_queue *q);

#endif
