/* The queue is a binary heap. */
#include "merge_queue.h"

#include "ggl/internal/alloc.h"
#include "ggl/internal/steps.h"

/* The order of joins: by rank, then from left to right. */
static bool before(const join *a, const join *b) {
    GGL_STEPS(1);
    return a->rank < b->rank || (a->rank == b->rank && a->left < b->left);
}

static bool push(merge_queue *q, join j) {
    if (q->n == q->cap && !ggl_grow(&q->heap, &q->cap, q->n + 1, sizeof *q->heap))
        return false;
    size_t i = q->n++;
    for (; i > 0 && before(&j, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
        q->heap[i] = q->heap[(i - 1) / 2];
    q->heap[i] = j;
    return true;
}

/* Removes and returns the best join; requires q->n > 0. */
static join pop(merge_queue *q) {
    join top = q->heap[0], last = q->heap[--q->n];
    size_t i = 0;
    for (;;) {
        size_t c = 2 * i + 1;
        if (c >= q->n)
            break;
        if (c + 1 < q->n && before(&q->heap[c + 1], &q->heap[c]))
            c++;
        if (!before(&q->heap[c], &last))
            break;
        q->heap[i] = q->heap[c];
        i = c;
    }
    q->heap[i] = last;
    return top;
}

void llm_merge_queue_fini(merge_queue *q) {
    ggl_free(q->heap);
    *q = (merge_queue){0};
}

/* Performs a join: appends the right symbol to the left one. False: the join is stale, nothing
 * is done. */
static bool perform(symbol *sym, const join *j) {
    symbol *a = &sym[j->left];
    if (a->n == 0 || a->next == NO_SYMBOL || a->n + sym[a->next].n != j->n)
        return false;
    symbol *b = &sym[a->next];
    a->n = j->n;
    a->id = j->id;
    a->next = b->next;
    b->n = 0;
    if (a->next != NO_SYMBOL)
        sym[a->next].prev = j->left;
    return true;
}

/* Queues the join of `left` with its right neighbor, if find() finds one. False: out of memory. */
static bool consider(merge_queue *q, const symbol *sym, uint32_t left, merge_find_fn *find,
                     const void *context) {
    if (left == NO_SYMBOL || sym[left].next == NO_SYMBOL)
        return true;
    const symbol *a = &sym[left], *b = &sym[a->next];
    join j = {.left = left, .n = a->n + b->n};
    return !find(context, a, b, &j) || push(q, j);
}

bool llm_merge_all(merge_queue *q, symbol *sym, uint32_t n, merge_find_fn *find,
                   const void *context) {
    q->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        sym[i].prev = i > 0 ? i - 1 : NO_SYMBOL;
        sym[i].next = i + 1 < n ? i + 1 : NO_SYMBOL;
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        if (!consider(q, sym, i, find, context))
            return false;
    while (q->n > 0) {
        const join j = pop(q);
        if (perform(sym, &j) && (!consider(q, sym, sym[j.left].prev, find, context) ||
                                 !consider(q, sym, j.left, find, context)))
            return false;
    }
    return true;
}
