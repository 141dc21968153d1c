#include "origin.h"

#include "common/json_write.h"

#include <string.h>

enum { PAGE_BITS = 12, PAGE = 1 << PAGE_BITS, WORDS = PAGE / 64, LEAST = 64 };

typedef struct page {
    uintptr_t number; /* its address, by PAGE; 0: the place is free */
    uint64_t *bit;    /* [WORDS] */
} page;

/* A table with open addresses, at most half full. */
struct tv_origin {
    page *page;
    size_t n, cap; /* cap: a power of two */
    page *last;    /* the one that was found last */
};

static page *place_of(const tv_origin *o, uintptr_t number) {
    size_t i = (size_t)(((uint64_t)number * 0x9e3779b97f4a7c15u) >> 32) & (o->cap - 1);
    while (o->page[i].number != 0 && o->page[i].number != number)
        i = (i + 1) & (o->cap - 1);
    return &o->page[i];
}

/* The bits of the page with this address; NULL: none is set. */
static const uint64_t *find(const tv_origin *o, uintptr_t number) {
    return o->last && o->last->number == number ? o->last->bit : place_of(o, number)->bit;
}

static void grow(tv_heap *h, tv_origin *o) {
    const tv_origin old = *o;
    o->cap *= 2;
    o->page = llm_tv_alloc(h, o->cap, sizeof *o->page);
    o->last = NULL;
    for (size_t i = 0; i < old.cap; i++)
        if (old.page[i].number != 0)
            *place_of(o, old.page[i].number) = old.page[i];
}

/* The same, which are made if they are not there. */
static uint64_t *make(tv_heap *h, uintptr_t number) {
    tv_origin *o = h->origin;
    if (o->last && o->last->number == number)
        return o->last->bit;
    page *p = place_of(o, number);
    if (p->number == 0) {
        uint64_t *bit = llm_tv_alloc(h, WORDS, sizeof *bit);
        if (2 * (o->n + 1) > o->cap)
            grow(h, o);
        p = place_of(o, number);
        *p = (page){number, bit};
        o->n++;
    }
    o->last = p;
    return p->bit;
}

void llm_tv_note_origin(tv_heap *h) {
    tv_origin *o = llm_tv_alloc(h, 1, sizeof *o);
    o->cap = LEAST;
    o->page = llm_tv_alloc(h, o->cap, sizeof *o->page);
    h->origin = o;
}

/* Sets the bits of n bytes. */
static void set(tv_heap *h, const char *s, size_t n) {
    for (uintptr_t at = (uintptr_t)s, end = at + n; at < end;) {
        uint64_t *bit = make(h, at >> PAGE_BITS);
        const uintptr_t page_end = (at | (PAGE - 1)) + 1, to = page_end < end ? page_end : end;
        while (at < to) {
            const unsigned first = (unsigned)(at & 63);
            const size_t left = (size_t)(to - at), k = left < 64 - first ? left : 64 - first;
            const uint64_t ones = k == 64 ? UINT64_MAX : ((uint64_t)1 << k) - 1;
            bit[(at & (PAGE - 1)) >> 6] |= ones << first;
            at += k;
        }
    }
}

/* Finds the first bytes from s[*at] on whose bits are `wanted`, at most n; the place, or n. */
static size_t next(const tv_origin *o, const char *s, size_t at, size_t n, bool wanted) {
    while (at < n) {
        const uintptr_t address = (uintptr_t)s + at;
        const uint64_t *bit = find(o, address >> PAGE_BITS);
        if (!bit && wanted) { /* none on this page */
            at += PAGE - (size_t)(address & (PAGE - 1));
            continue;
        }
        const uint64_t word = bit ? bit[(address & (PAGE - 1)) >> 6] : 0;
        const uint64_t rest = (wanted ? word : ~word) >> (address & 63);
        if (rest != 0) {
            at += (size_t)__builtin_ctzll(rest);
            break;
        }
        at += 64 - (size_t)(address & 63);
    }
    return at < n ? at : n;
}

void llm_tv_give(tv_heap *h, ggl_str s) {
    if (h->origin && s.n > 0)
        set(h, s.s, s.n);
}

void llm_tv_copied(tv_heap *h, const char *to, const char *from, size_t n) {
    if (!h->origin)
        return;
    for (size_t at = 0, end; (at = next(h->origin, from, at, n, true)) < n; at = end) {
        end = next(h->origin, from, at, n, false);
        set(h, to + at, end - at);
    }
}

void llm_tv_derived(tv_heap *h, const char *to, size_t n, const char *from) {
    if (h->origin && next(h->origin, from, 0, 1, true) == 0)
        set(h, to, n);
}

void llm_tv_give_json(tv_heap *h, const json_value *v) {
    if (!h->origin)
        return;
    if (v->kind == JSON_STRING)
        llm_tv_give(h, json_str(v));
    for (uint32_t i = 0; v->kind >= JSON_ARRAY && i < v->n; i++) {
        if (v->kind == JSON_OBJECT)
            llm_tv_give(h, json_name(v, i));
        llm_tv_give_json(h, &v->item[i]);
    }
}

bool llm_tv_origins(const tv_heap *h, ggl_str text, llm_spans *out) {
    for (size_t at = 0, end; (at = next(h->origin, text.s, at, text.n, true)) < text.n; at = end) {
        end = next(h->origin, text.s, at, text.n, false);
        if (!ggl_grow(&out->at, &out->cap, out->n + 1, sizeof *out->at))
            return false;
        out->at[out->n++] = (llm_span){at, end};
    }
    return true;
}

ggl_str llm_tv_written(tv_heap *h, const json_value *v) {
    llm_json_out out = {0};
    llm_json_put_value(&out, v);
    const ggl_str copy = {ggl_arena_strndup(&h->arena, out.s ? out.s : "", out.n), out.n};
    const bool failed = out.failed || !copy.s;
    ggl_free(out.s);
    if (failed)
        llm_tv_fail(h, GGL_NOMEM, "out of memory for a conversation");
    llm_tv_step(h, copy.n / 16 + 1);
    llm_tv_give(h, copy);
    return copy;
}
