#include "pages.h"

#include "ggl/alloc.h"
#include "ggl/graph.h"

bool llm_pages_init(page_pool *p, int64_t n_pages, int64_t n_slots, int64_t n_each) {
    *p = (page_pool){.n_pages = n_pages, .n_slots = n_slots, .n_each = n_each, .changed = true};
    size_t size;
    if (!ggl_size_mul((size_t)n_slots, (size_t)n_each, &size))
        return false;
    p->table = ggl_calloc(size, sizeof *p->table);
    p->n_held = ggl_calloc((size_t)n_slots, sizeof *p->n_held);
    p->n_users = ggl_calloc((size_t)n_pages, sizeof *p->n_users);
    p->n_writers = ggl_calloc((size_t)n_pages, sizeof *p->n_writers);
    p->unused = ggl_calloc((size_t)n_pages, sizeof *p->unused);
    if (!p->table || !p->n_held || !p->n_users || !p->n_writers || !p->unused)
        return false;
    while (p->n_unused < n_pages) { /* page 0 is taken first */
        p->unused[p->n_unused] = (int32_t)(n_pages - 1 - p->n_unused);
        p->n_unused++;
    }
    return true;
}

void llm_pages_fini(page_pool *p) {
    ggl_free(p->table);
    ggl_free(p->n_held);
    ggl_free(p->n_users);
    ggl_free(p->n_writers);
    ggl_free(p->unused);
    *p = (page_pool){0};
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Returns the slot's row of the table. */
static int32_t *row_of(const page_pool *p, int slot) {
    return p->table + slot * p->n_each;
}

int64_t llm_pages_for(const page_pool *p, int64_t n) {
    return p->n_each == 0 ? 0 : n / GGL_PAGE + (n % GGL_PAGE != 0);
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

int64_t llm_pages_needed_by_all(page_pool *p, const int64_t *n_past, const int64_t *n_new) {
    int64_t n = 0;
    for (int k = 0; k < p->n_slots; k++) {
        n += llm_pages_needed(p, k, n_past[k], n_new[k]);
        if (n_new[k] == 0 || !llm_pages_is_shared(p, k, n_past[k]))
            continue;
        const int32_t page = row_of(p, k)[n_past[k] / GGL_PAGE];
        n -= ++p->n_writers[page] == p->n_users[page];
    }
    for (int k = 0; k < p->n_slots; k++)
        if (n_new[k] > 0 && llm_pages_is_shared(p, k, n_past[k]))
            p->n_writers[row_of(p, k)[n_past[k] / GGL_PAGE]] = 0;
    return n;
}

int64_t llm_pages_available(const page_pool *p, int slot) {
    int64_t n = p->n_unused;
    for (int64_t i = 0; i < p->n_held[slot]; i++)
        n += p->n_users[row_of(p, slot)[i]] == 1;
    return n;
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
