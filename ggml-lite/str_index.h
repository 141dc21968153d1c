/* A hash table from strings to their places in an array, for looking up names and finding
 * duplicates. Private to ggml-lite. The array is the caller's; each element begins with a ggl_str.
 * Nothing is ever removed. Open addressing, linear probing, at most half full:
 *
 *     slots: | 0 | i+1 | 0 | j+1 | k+1 | 0 | ...      0 is free, anything else an element's place +
 * 1
 */
#ifndef GGL_STR_INDEX_H
#define GGL_STR_INDEX_H

#include "ggl/gguf.h"

typedef struct str_index {
    uint32_t *slots;
    size_t mask;   /* number of slots - 1, a power of two - 1 */
    uint64_t seed; /* differs from run to run, so that a file cannot be made to collide */
} str_index;

/* Room for n strings. GGL_NOMEM; GGL_LIMIT from 2^31 on. */
ggl_status str_index_init(str_index *x, size_t n, ggl_error *err);
void str_index_fini(str_index *x);

/* The place of the element whose string equals that of element i: an earlier one's, or, if there
 * was none, i itself, which is now in the table. `array` has elements of `stride` bytes. */
size_t str_index_put(str_index *x, const void *array, size_t stride, size_t i);

/* The place of the element with this string, or SIZE_MAX. */
size_t str_index_find(const str_index *x, const void *array, size_t stride, ggl_str key);

#endif
