/* Which pages of the KV cache hold which slots' tokens (ggl_graph_n_pages). A page belongs to no
 * slot, to one, or to several whose sequences begin with the same tokens.
 *
 * A slot writes only after its last token. New pages belong to it alone. If its last page is shared
 * and has room left, the slot gets a copy of it first. So no shared page is ever written: session.c
 * does this before each batch. */
#ifndef LLM_PAGES_H
#define LLM_PAGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct page_pool {
    int64_t n_pages; /* 0: the slots have no pages, and all calls do nothing */
    int64_t n_unused, n_slots;
    int64_t n_each;   /* most pages of a slot */
    int32_t *table;   /* the caller's [n_slots][n_each]: pages, in the order of positions */
    int64_t *n_held;  /* [n_slots]: pages of each slot; entries after them are not used */
    int32_t *n_users; /* [n_pages]: slots that a page belongs to */
    int32_t *unused;  /* [n_pages]: a stack of the pages without a slot; the last is taken first */
    bool changed;     /* the table was changed since the caller set this to false */
    /* The estimate: n_needed is the number of unused pages that the batch takes, minus those that it
     * frees; n_leaving [n_pages] counts the users of each page that would give it up. */
    int64_t n_needed;
    int32_t *n_leaving;
} page_pool;

/* No slot has pages at first. Pools may have one table: each uses the rows of its own slots. False: out of memory; free the pool
 * all the same. */
bool llm_pages_init(page_pool *p, int32_t *table, int64_t n_pages, int64_t n_slots, int64_t n_each);
void llm_pages_fini(page_pool *p);

/* Returns how many pages hold n tokens. */
int64_t llm_pages_for(const page_pool *p, int64_t n);
/* Returns how many unused pages it takes to append n_new tokens to a slot of n_past. */
int64_t llm_pages_needed(const page_pool *p, int slot, int64_t n_past, int64_t n_new);
/* Returns how many pages the slot could have if it gave back those that it has. */
int64_t llm_pages_available(const page_pool *p, int slot);
/* True if the slot's next token, at position n_past, falls into a page that other slots have, too. */
bool llm_pages_is_shared(const page_pool *p, int slot, int64_t n_past);

/* Returns how many tokens of a slot of n_past are in whole pages that other slots have, too. */
int64_t llm_pages_n_shared(const page_pool *p, int slot, int64_t n_past);
/* Returns how many tokens all slots have together; slot k has n_past[k]. Tokens of a shared page count
 * once. Ends the estimate. */
int64_t llm_pages_n_cached(page_pool *p, const int64_t *n_past);

/* --- estimates: are there enough pages for a batch that is being put together? ---
 *
 * A slot to which tokens are appended gives up its last page if that is shared, and takes a copy of it.
 * A slot that is cleared gives up all of its pages. A page that all of its users give up counts as
 * gained: it becomes unused, or the last user that appends to it needs no copy. */

/* Begins an estimate in which nothing is appended or cleared yet. */
void llm_pages_estimate(page_pool *p);
/* Adds n_new tokens, appended to a slot of n_past tokens. llm_pages_undo_append takes the same tokens out again. */
void llm_pages_estimate_append(page_pool *p, int slot, int64_t n_past, int64_t n_new);
void llm_pages_undo_append(page_pool *p, int slot, int64_t n_past, int64_t n_new);
/* Returns how many pages are missing; 0 or less: there are enough. */
int64_t llm_pages_lacking(const page_pool *p);
/* Returns the same number for the case that slots slot[0 .. n) are cleared. They are all different, and
 * nothing is appended to them. */
int64_t llm_pages_lacking_without(page_pool *p, const int *slot, int n);
/* Chooses which of slot[0 .. n) to clear so that no pages are missing. The slots are all different, and
 * the most dispensable comes first. The choice is minimal: each chosen slot is needed. Moves the chosen
 * slots to the start of the array, in the same order, and returns their number, or -1 if even clearing
 * all of them is not enough. Nothing may be appended to these slots. The estimate stays valid when they
 * are cleared afterwards. Takes time in proportion to the pages of the slots. */
int llm_pages_choose_to_clear(page_pool *p, int *slot, int n);

/* --- changes --- */

/* Returns the page that is taken next; there must be an unused one. */
int32_t llm_pages_next(const page_pool *p);
/* Puts that page in place of the slot's page i, which the slot gives back. */
void llm_pages_replace(page_pool *p, int slot, int64_t i);
/* Gives the slot n pages in all: takes unused ones (there must be enough), or gives back
 * the last ones. */
void llm_pages_resize(page_pool *p, int slot, int64_t n);
/* Gives slot dst the first n pages of slot src, and no others. */
void llm_pages_share(page_pool *p, int dst, int src, int64_t n);

#endif
