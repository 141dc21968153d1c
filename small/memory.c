/* The allocator of the large engine's text functions, in memory that the caller of small_encode gives: one block behind the other. The last one grows in
 * place, or is given back; others stay until the text is done. */
#include <string.h>

#include "ggl/internal/alloc.h"
#include "memory.h"

enum { ALIGN = 16 };

static char *from, *to, *end; /* to: the end of the last block */

/* Before each block. */
typedef struct block {
    size_t size;
} block;

void small_use_memory(char *memory, size_t size) {
    from = to = memory;
    end = memory + size / ALIGN * ALIGN;
}

char *small_mark(void) {
    return to;
}

void small_release(char *mark) {
    to = mark;
}

static size_t rounded(size_t size) {
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

static block *of(void *p) {
    return (block *)(void *)((char *)p - ALIGN);
}

void *ggl_calloc(size_t n, size_t size) {
    const size_t room = (size_t)(end - to), all = rounded(n > 0 && size > 0 ? n * size : 1);
    if ((size && n > SIZE_MAX / 2 / size) || room < ALIGN || all > room - ALIGN)
        return NULL;
    char *p = to + ALIGN;
    of(p)->size = all;
    memset(p, 0, all);
    to = p + all;
    return p;
}

void ggl_free(void *p) {
    if (p && (char *)p + of(p)->size == to)
        to = (char *)p - ALIGN;
}

/* Lets the last block grow to `wanted` elements where it is. */
static bool grow_last(char *p, size_t wanted, size_t size, size_t had) {
    const size_t room = (size_t)(end - p);
    if (wanted > room / size || rounded(wanted * size) > room)
        return false;
    const size_t all = rounded(wanted * size);
    memset(p + had, 0, all - had);
    of(p)->size = all;
    to = p + all;
    return true;
}

bool ggl_grow(void *array, size_t *cap, size_t n, size_t size) {
    void *old;
    memcpy(&old, array, sizeof old);
    if (n <= *cap)
        return true;
    const size_t had = *cap * size;
    size_t wanted = *cap < 8 ? 8 : *cap + *cap / 2;
    wanted = wanted < n ? n : wanted;
    if (old && (char *)old + of(old)->size == to) {
        if (!grow_last(old, wanted, size, had) && !grow_last(old, wanted = n, size, had))
            return false;
        *cap = wanted;
        return true;
    }
    void *p = ggl_calloc(wanted, size);
    if (!p)
        p = ggl_calloc(wanted = n, size);
    if (!p)
        return false;
    if (had > 0)
        memcpy(p, old, had);
    memcpy(array, &p, sizeof p);
    *cap = wanted;
    return true;
}

/* Sentences of errors have no place on a board: a status is enough. */
ggl_status ggl_fail(ggl_error *err, ggl_status s, const char *fmt, ...) {
    (void)err, (void)fmt;
    return s;
}
