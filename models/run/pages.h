/* Which pages of the KV cache hold which slots' tokens (ggl_graph_n_pages). A page belongs to no
 * slot, to one, or to several whose sequences begin with the same tokens.
 *
 * A slot writes only after its last token. The pages that it takes for that are its own; its last
 * page, if that has room left and is shared, is replaced by a copy first. So no shared page is ever
 * written: session.c does this before each batch. */
#ifndef LLM_PAGES_H
#define LLM_PAGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct page_pool {
    int64_t n_pages, n_unused, n_slots;
    int64_t n_each;  /* most pages of a slot; 0: the model has no pages, and all calls do nothing */
    int32_t *table;  /* [n_slots][n_each]: the slots' pages, in the order of positions */
    int64_t *n_held; /* [n_slots]: pages of each slot; entries after them are not used */
    int32_t *n_users;   /* [n_pages]: slots that a page belongs to */
    int32_t *n_writers; /* [n_pages]: all 0 between calls */
    int32_t *unused; /* [n_pages]: a stack of the pages without a slot; the last is taken first */
    bool changed;    /* the table, since the caller set this to false */
} page_pool;

/* No slot has pages at first. False: out of memory; free the pool all the same. */
bool llm_pages_init(page_pool *p, int64_t n_pages, int64_t n_slots, int64_t n_each);
void llm_pages_fini(page_pool *p);

/* Returns how many pages hold n tokens. */
int64_t llm_pages_for(const page_pool *p, int64_t n);
/* Returns how many unused pages it takes to append n_new tokens to a slot of n_past. */
int64_t llm_pages_needed(const page_pool *p, int slot, int64_t n_past, int64_t n_new);
/* Returns how many it takes to append n_new[k] tokens to each slot k of n_past[k]. Of the slots that
 * write to a shared page, the last needs no copy if nobody else has the page. */
int64_t llm_pages_needed_by_all(page_pool *p, const int64_t *n_past, const int64_t *n_new);
/* Returns how many pages the slot could have if it gave back those that it has. */
int64_t llm_pages_available(const page_pool *p, int slot);
/* True if the page of the slot's token n_past, which is not yet there, belongs to others, too. */
bool llm_pages_is_shared(const page_pool *p, int slot, int64_t n_past);

/* Returns the page that is taken next; there must be an unused one. */
int32_t llm_pages_next(const page_pool *p);
/* Puts that page in place of the slot's page i, which the slot gives back. */
void llm_pages_replace(page_pool *p, int slot, int64_t i);
/* Gives the slot n pages in all: takes unused ones, of which there must be enough, or gives back
 * the last ones. */
void llm_pages_resize(page_pool *p, int slot, int64_t n);
/* Gives slot dst the first n pages of slot src, and no others. */
void llm_pages_share(page_pool *p, int dst, int src, int64_t n);

#endif
