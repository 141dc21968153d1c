/* Memory that the library gives and takes. All of it comes from calloc of libc, so that tests can count
 * or fail allocations by wrapping it.
 *
 * Threads: any number may call these functions at the same time.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef GGL_ALLOC_H
#define GGL_ALLOC_H

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns n zeroed elements; NULL if out of memory or if n * size overflows. Not NULL for n = 0. */
GGL_API void *ggl_calloc(size_t n, size_t size);
/* Frees what ggl_calloc returned, and what a function of this library has the caller free. NULL is fine. */
GGL_API void ggl_free(void *p);

#ifdef __cplusplus
}
#endif
#endif
