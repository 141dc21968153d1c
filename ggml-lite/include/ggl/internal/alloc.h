/* Overflow-checked sizes, arrays that grow, and arenas for objects that are freed together. Arenas and
 * arrays take their memory from ggl_calloc.
 *
 * Threads: any number may call these functions at the same time; an arena, or an array that grows,
 * belongs to one at a time. */
#ifndef GGL_INTERNAL_ALLOC_H
#define GGL_INTERNAL_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "ggl/alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Set *out to a * b, or a + b. Return false, and leave *out unchanged, if that does not fit. */
bool ggl_size_mul(uint64_t a, uint64_t b, size_t *out);
bool ggl_size_add(size_t a, size_t b, size_t *out);
/* Sets *out to x rounded up to a multiple of align (a power of two); returns false on overflow. */
bool ggl_size_align(size_t x, size_t align, size_t *out);

/* Returns `size` zeroed bytes at a multiple of `align`, a power of two; NULL: out of memory. ggl_aligned_free, and nothing
 * else, frees them. */
void *ggl_aligned_calloc(size_t align, size_t size);
void ggl_aligned_free(void *p); /* NULL is fine */

/* Returns `size` zeroed bytes at a multiple of 64; NULL: out of memory. Large memory is the system's again when ggl_pages_free, and nothing
 * else, frees it: that of malloc may stay with the process. */
void *ggl_pages_calloc(size_t size);
void ggl_pages_free(void *p, size_t size); /* the size that was asked for; p NULL is fine */

/* Asks the system to back [p, p + size) with huge pages, which pays for large memory that is read
 * from end to end repeatedly. Call it before the memory is touched. Has no effect where there are
 * no huge pages. */
void ggl_prefer_huge_pages(void *p, size_t size);

/* Grows an array to at least n elements of `size` bytes. `array` points to the pointer to it, *cap
 * is its number of elements. New elements are zeroed. Returns false if out of memory; *array and
 * *cap are then unchanged. */
bool ggl_grow(void *array, size_t *cap, size_t n, size_t size);

/* Allocates memory that is freed as a whole: zeroed, aligned to 16 bytes. */
typedef struct ggl_arena {
    struct ggl_arena_block *head;
    size_t used, limit; /* bytes allocated so far, and at most (0: no limit) */
} ggl_arena;

/* Return NULL if out of memory or past the limit. */
void *ggl_arena_alloc(ggl_arena *a, size_t n, size_t size);
char *ggl_arena_strndup(ggl_arena *a, const char *s, size_t n);
char *ggl_arena_printf(ggl_arena *a, const char *fmt, ...) GGL_PRINTF(2, 3);
void ggl_arena_fini(ggl_arena *a);

#ifdef __cplusplus
}
#endif
#endif
