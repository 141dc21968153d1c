#include "pages.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/graph.h"

bool llm_pages_init(page_pool *p, int32_t *table, int64_t n_pages, int64_t n_slots,
                    int64_t n_each) {
    *p = (page_pool){
        .n_pages = n_pages, .n_slots = n_slots, .n_each = n_each, .table = table, .changed = true};
    p->n_held = ggl_calloc((size_t)n_slots, sizeof *p->n_held);
    p->n_users = ggl_calloc((size_t)n_pages, sizeof *p->n_users);
    p->n_leaving = ggl_calloc((size_t)n_pages, sizeof *p->n_leaving);
    p->unused = ggl_calloc((size_t)n_pages, sizeof *p->unused);
    if (!p->n_held || !p->n_users || !p->n_leaving || !p->unused)
        return false;
    while (p->n_unused < n_pages) { /* page 0 is taken first */
        p->unused[p->n_unused] = (int32_t)(n_pages - 1 - p->n_unused);
        p->n_unused++;
    }
    return true;
}

void llm_pages_fini(page_pool *p) {
    ggl_free(p->n_held);
    ggl_free(p->n_users);
    ggl_free(p->n_leaving);
    ggl_free(p->unused);
    *p = (page_pool){0};
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Returns the slot's row of the table. */
static int32_t *row_of(const page_pool *p, int slot) {
    return p->table + slot * p->n_each;
}

int64_t llm_pages_for(const page_pool *p, int64_t n) {
    return p->n_pages == 0 ? 0 : n / GGL_PAGE + (n % GGL_PAGE != 0);
}

bool llm_pages_is_shared(const page_pool *p, int slot, int64_t n_past) {
    const int64_t i = n_past / GGL_PAGE;
    return i < p->n_held[slot] && p->n_users[row_of(p, slot)[i]] > 1;
}

int64_t llm_pages_needed(const page_pool *p, int slot, int64_t n_past, int64_t n_new) {
    return n_new < 1 ? 0
                     : llm_pages_for(p, n_past + n_new) - p->n_held[slot] +
                           llm_pages_is_shared(p, slot, n_past);
}

int64_t llm_pages_available(const page_pool *p, int slot) {
    int64_t n = p->n_unused;
    for (int64_t i = 0; i < p->n_held[slot]; i++)
        n += p->n_users[row_of(p, slot)[i]] == 1;
    return n;
}

int64_t llm_pages_n_shared(const page_pool *p, int slot, int64_t n_past) {
    int64_t n = 0;
    for (int64_t i = 0; i < n_past / GGL_PAGE && i < p->n_held[slot]; i++)
        n += p->n_users[row_of(p, slot)[i]] > 1;
    return n * GGL_PAGE;
}

int64_t llm_pages_n_cached(page_pool *p, const int64_t *n_past) {
    int64_t n = 0;
    llm_pages_estimate(p); /* n_leaving: the tokens of each page that are counted already */
    for (int k = 0; k < p->n_slots; k++) {
        n += p->n_pages == 0 ? n_past[k] : 0;
        for (int64_t i = 0; i < p->n_held[k]; i++) {
            const int64_t rest = n_past[k] - i * GGL_PAGE;
            const int32_t n_here = (int32_t)(rest < GGL_PAGE ? rest : GGL_PAGE);
            int32_t *counted = &p->n_leaving[row_of(p, k)[i]];
            if (n_here > *counted) {
                n += n_here - *counted;
                *counted = n_here;
            }
        }
    }
    llm_pages_estimate(p);
    return n;
}

/* --- estimates -------------------------------------------------------------------------------- */

void llm_pages_estimate(page_pool *p) {
    memset(p->n_leaving, 0, (size_t)p->n_pages * sizeof *p->n_leaving);
    p->n_needed = 0;
}

/* Counts one more user of a page (stay: one less) that would give it up. */
static void leave(page_pool *p, int32_t page) {
    p->n_needed -= ++p->n_leaving[page] == p->n_users[page];
}

static void stay(page_pool *p, int32_t page) {
    p->n_needed += p->n_leaving[page]-- == p->n_users[page];
}

/* Returns how many pages an append takes from the unused ones. *left is the slot's last page if the slot
 * gives that up for a copy, else -1. */
static int64_t taken(const page_pool *p, int slot, int64_t n_past, int64_t n_new, int32_t *left) {
    const int64_t last = n_past / GGL_PAGE, n_held = p->n_held[slot];
    *left = n_new > 0 && last < n_held ? row_of(p, slot)[last] : -1;
    return n_new < 1 ? 0 : llm_pages_for(p, n_past + n_new) - n_held + (*left >= 0);
}

void llm_pages_estimate_append(page_pool *p, int slot, int64_t n_past, int64_t n_new) {
    int32_t left;
    p->n_needed += taken(p, slot, n_past, n_new, &left);
    if (left >= 0)
        leave(p, left);
}

void llm_pages_undo_append(page_pool *p, int slot, int64_t n_past, int64_t n_new) {
    int32_t left;
    p->n_needed -= taken(p, slot, n_past, n_new, &left);
    if (left >= 0)
        stay(p, left);
}

/* Counts a slot, to which nothing is appended, as cleared. */
static void estimate_clear(page_pool *p, int slot) {
    for (int64_t i = 0; i < p->n_held[slot]; i++)
        leave(p, row_of(p, slot)[i]);
}

static void undo_clear(page_pool *p, int slot) {
    for (int64_t i = 0; i < p->n_held[slot]; i++)
        stay(p, row_of(p, slot)[i]);
}

int64_t llm_pages_lacking(const page_pool *p) {
    return p->n_needed - p->n_unused;
}

int64_t llm_pages_lacking_without(page_pool *p, const int *slot, int n) {
    for (int i = 0; i < n; i++)
        estimate_clear(p, slot[i]);
    const int64_t n_lacking = llm_pages_lacking(p);
    for (int i = 0; i < n; i++)
        undo_clear(p, slot[i]);
    return n_lacking;
}

int llm_pages_choose_to_clear(page_pool *p, int *slot, int n) {
    enum { STAYS = -1 };
    int n_tried = 0, n_chosen = 0;
    while (n_tried < n && llm_pages_lacking(p) > 0)
        estimate_clear(p, slot[n_tried++]);
    const bool suffices = llm_pages_lacking(p) <= 0;
    for (int i = n_tried - 1; i >= 0; i--) { /* the least dispensable may stay first */
        undo_clear(p, slot[i]);
        if (suffices && llm_pages_lacking(p) > 0)
            estimate_clear(p, slot[i]);
        else
            slot[i] = STAYS;
    }
    for (int i = 0; i < n_tried; i++)
        if (slot[i] != STAYS) {
            undo_clear(p, slot[i]);
            slot[n_chosen++] = slot[i];
        }
    return suffices ? n_chosen : -1;
}

/* --- changes ---------------------------------------------------------------------------------- */

int32_t llm_pages_next(const page_pool *p) {
    return p->unused[p->n_unused - 1];
}

static void take(page_pool *p, int slot, int64_t i) {
    const int32_t page = p->unused[--p->n_unused];
    p->n_users[page] = 1;
    row_of(p, slot)[i] = page;
    p->changed = true;
}

static void give_back(page_pool *p, int slot, int64_t i) {
    const int32_t page = row_of(p, slot)[i];
    if (--p->n_users[page] == 0)
        p->unused[p->n_unused++] = page;
    else if (p->n_leaving[page] == p->n_users[page])
        p->n_needed--; /* the estimate stays valid: all other users leave the page */
}

void llm_pages_replace(page_pool *p, int slot, int64_t i) {
    const int32_t old = row_of(p, slot)[i];
    take(p, slot, i);
    if (--p->n_users[old] == 0)
        p->unused[p->n_unused++] = old;
}

void llm_pages_resize(page_pool *p, int slot, int64_t n) {
    int64_t *held = &p->n_held[slot];
    while (*held > n)
        give_back(p, slot, --*held);
    while (*held < n)
        take(p, slot, (*held)++);
}

void llm_pages_share(page_pool *p, int dst, int src, int64_t n) {
    llm_pages_resize(p, dst, 0);
    for (int64_t i = 0; i < n; i++) {
        const int32_t page = row_of(p, src)[i];
        row_of(p, dst)[i] = page;
        p->n_users[page]++;
    }
    p->n_held[dst] = n;
    p->changed |= n > 0;
}
