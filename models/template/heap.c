/* The memory of a template's values, and the limits of a run: memory, steps, depth. */
#include <stdarg.h>

#include "value.h"

void llm_tv_fail(tv_heap *h, ggl_status st, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    h->status = ggl_failv(h->err, st, fmt, args);
    va_end(args);
    h->status = ggl_within(h->err, st, "%s:%d", h->name, h->line);
    ggl_os_abandon(&h->attempt);
}

void llm_tv_fail_bare(tv_heap *h, ggl_status st, ggl_str text) {
    h->status = ggl_fail(h->err, st, "%.*s", (int)(text.n < 1000 ? text.n : 1000), text.s);
    ggl_os_abandon(&h->attempt);
}

void llm_tv_step(tv_heap *h, size_t n) {
    if (n > h->max_steps - h->steps)
        llm_tv_fail(h, GGL_LIMIT, "the template takes more than %zu steps", h->max_steps);
    h->steps += n;
}

void llm_tv_enter(tv_heap *h) {
    enum { MOST = 500 };
    if (h->depth >= MOST)
        llm_tv_fail(h, GGL_LIMIT, "values, expressions or calls are nested more than %d deep",
                    MOST);
    h->depth++;
}

void *llm_tv_alloc(tv_heap *h, size_t n, size_t size) {
    size_t bytes;
    if (!ggl_size_mul(n, size, &bytes))
        llm_tv_fail(h, GGL_LIMIT, "the template needs too much memory");
    llm_tv_step(h, bytes / 16 + 1);
    void *p = ggl_arena_alloc(&h->arena, n, size);
    if (!p && bytes > h->arena.limit - h->arena.used)
        llm_tv_fail(h, GGL_LIMIT, "the template needs more than %zu MiB of memory",
                    h->arena.limit >> 20);
    if (!p)
        llm_tv_fail(h, GGL_NOMEM, "out of memory");
    return p;
}

void llm_tv_heap_fini(tv_heap *h) {
    for (tv_dict *d = h->indexed; d; d = d->next_indexed)
        ggl_index_fini(&d->index);
    ggl_arena_fini(&h->arena);
}
