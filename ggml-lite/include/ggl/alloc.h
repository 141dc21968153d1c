/* Memory: overflow-checked sizes, zeroed arrays, and an arena for things that die together.
 * All of it ends in calloc/free of libc, so that a test can count or fail allocations by wrapping
 * those. */
#ifndef GGL_ALLOC_H
#define GGL_ALLOC_H

#include <stdbool.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *out = a * b, or a + b; false, and *out untouched, if that does not fit. */
GGL_API bool ggl_size_mul(size_t a, size_t b, size_t *out);
GGL_API bool ggl_size_add(size_t a, size_t b, size_t *out);
/* x rounded up to a multiple of align (a power of two); false on overflow. */
GGL_API bool ggl_size_align(size_t x, size_t align, size_t *out);

/* n zeroed elements; NULL if out of memory or if n * size overflows. n = 0 gives a valid pointer.
 */
GGL_API void *ggl_calloc(size_t n, size_t size);
GGL_API void ggl_free(void *p);

/* Asks the system to back [p, p + size) with huge pages: large memory that is read from end to end
 * again and again. Before it is touched; advice, of no effect where there are none. */
GGL_API void ggl_prefer_huge_pages(void *p, size_t size);

/* Grows *array (of elements of `size` bytes, *cap of them) to hold at least n. New elements are
 * zeroed. false if out of memory: *array and *cap stay as they were. */
GGL_API bool ggl_grow(void *array, size_t *cap, size_t n, size_t size);

/* Memory that is only freed as a whole. Zeroed; aligned to 16 bytes. */
typedef struct ggl_arena {
    struct ggl_arena_block *head;
    size_t used, limit; /* bytes given out, and allowed (0: no limit) */
} ggl_arena;

/* NULL if out of memory or past the limit. */
GGL_API void *ggl_arena_alloc(ggl_arena *a, size_t n, size_t size);
GGL_API char *ggl_arena_strndup(ggl_arena *a, const char *s, size_t n);
GGL_API char *ggl_arena_printf(ggl_arena *a, const char *fmt, ...) GGL_PRINTF(2, 3);
GGL_API void ggl_arena_fini(ggl_arena *a);

#ifdef __cplusplus
}
#endif
#endif
