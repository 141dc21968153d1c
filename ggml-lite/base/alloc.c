/* Checked sizes, zeroed arrays, arenas: see ggl/alloc.h. */
#include "ggl/internal/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ggl_size_mul(uint64_t a, uint64_t b, size_t *out) {
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *out = (size_t)(a * b);
    return true;
}

bool ggl_size_add(size_t a, size_t b, size_t *out) {
    if (a > SIZE_MAX - b)
        return false;
    *out = a + b;
    return true;
}

bool ggl_size_align(size_t x, size_t align, size_t *out) {
    size_t sum;
    if (!ggl_size_add(x, align - 1, &sum))
        return false;
    *out = sum & ~(align - 1);
    return true;
}

void *ggl_calloc(size_t n, size_t size) {
    size_t bytes;
    if (!ggl_size_mul(n, size, &bytes))
        return NULL;
    return calloc(1, bytes > 0 ? bytes : 1);
}

void ggl_free(void *p) {
    free(p);
}

/* The address of the whole stands before the bytes. */
void *ggl_aligned_calloc(size_t align, size_t size) {
    size_t bytes;
    if (!ggl_size_add(size, align + sizeof(void *), &bytes))
        return NULL;
    void *whole = ggl_calloc(bytes, 1);
    if (!whole)
        return NULL;
    const uintptr_t after = (uintptr_t)whole + sizeof whole;
    char *p = (char *)whole + sizeof whole + (align - after % align) % align;
    memcpy(p - sizeof whole, &whole, sizeof whole);
    return p;
}

void ggl_aligned_free(void *p) {
    void *whole = NULL;
    if (p)
        memcpy(&whole, (char *)p - sizeof whole, sizeof whole);
    ggl_free(whole);
}

enum { LARGE = 1 << 20 }; /* bytes */

bool ggl_grow(void *array, size_t *cap, size_t n, size_t size) {
    if (n <= *cap)
        return true;
    /* A share of what is there, so that n single appends copy O(n) bytes. Large arrays, which realloc
     * moves without copying on most systems, grow by less: what is unused counts more there. */
    const size_t share = *cap > LARGE / size ? *cap / 8 : *cap / 2;
    size_t wanted = n, bytes;
    if (ggl_size_add(*cap, share + 8, &wanted) && wanted < n)
        wanted = n;
    if (!ggl_size_mul(wanted, size, &bytes)) {
        wanted = n;
        if (!ggl_size_mul(wanted, size, &bytes))
            return false;
    }
    /* array is a T ** for an unknown T, so the pointer is copied as bytes */
    void *old;
    memcpy(&old, array, sizeof old);
    char *grown = realloc(old, bytes);
    if (!grown)
        return false;
    memset(grown + *cap * size, 0, bytes - *cap * size);
    memcpy(array, &grown, sizeof grown);
    *cap = wanted;
    return true;
}

/* An arena is a list of blocks:  | next, size, used | ... bytes ... |.  Requests are served from
 * the head. A large request gets a block of its own, inserted after the head. */
struct ggl_arena_block {
    struct ggl_arena_block *next;
    size_t size, used; /* of the bytes after the header */
};

enum { ARENA_ALIGN = 16, ARENA_FIRST = 1 << 12, ARENA_LARGEST = 1 << 20 };

/* The header's size, rounded up so that the bytes after it are aligned like the block (calloc:
 * 16). */
#define ARENA_HEADER                                                                               \
    ((sizeof(struct ggl_arena_block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)
_Static_assert(_Alignof(max_align_t) <= ARENA_ALIGN, "an arena's memory suits every type");

static struct ggl_arena_block *arena_block_new(size_t size) {
    size_t bytes;
    if (!ggl_size_add(size, ARENA_HEADER, &bytes))
        return NULL;
    struct ggl_arena_block *b = ggl_calloc(1, bytes);
    if (b)
        b->size = size;
    return b;
}

static void *arena_take(struct ggl_arena_block *b, size_t bytes) {
    char *p = (char *)b + ARENA_HEADER + b->used;
    b->used += bytes;
    return p;
}

void *ggl_arena_alloc(ggl_arena *a, size_t n, size_t size) {
    size_t bytes, used;
    if (!ggl_size_mul(n, size, &bytes) ||
        !ggl_size_align(bytes > 0 ? bytes : 1, ARENA_ALIGN, &bytes) ||
        !ggl_size_add(a->used, bytes, &used) || (a->limit > 0 && used > a->limit))
        return NULL;

    struct ggl_arena_block *b = a->head;
    if (!b || b->size - b->used < bytes) {
        size_t fresh = b ? b->size * 2 : ARENA_FIRST;
        if (fresh > ARENA_LARGEST)
            fresh = ARENA_LARGEST;
        bool own = bytes > fresh / 4;
        b = arena_block_new(own ? bytes : fresh);
        if (!b)
            return NULL;
        if (own && a->head) {
            b->next = a->head->next;
            a->head->next = b;
        } else {
            b->next = a->head;
            a->head = b;
        }
    }
    a->used = used;
    return arena_take(b, bytes);
}

char *ggl_arena_strndup(ggl_arena *a, const char *s, size_t n) {
    size_t bytes;
    if (!ggl_size_add(n, 1, &bytes))
        return NULL;
    char *copy = ggl_arena_alloc(a, bytes, 1);
    if (copy && n > 0)
        memcpy(copy, s, n);
    return copy;
}

char *ggl_arena_printf(ggl_arena *a, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *s = n < 0 ? NULL : ggl_arena_alloc(a, (size_t)n + 1, 1);
    if (s)
        vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

void ggl_arena_fini(ggl_arena *a) {
    for (struct ggl_arena_block *b = a->head, *next; b; b = next) {
        next = b->next;
        ggl_free(b);
    }
    a->head = NULL;
    a->used = 0;
}
