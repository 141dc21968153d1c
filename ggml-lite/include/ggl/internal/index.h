/* A hash table from keys to indices of an array of the caller. It is seeded at random, so that
 * nobody can make a file whose keys collide. Elements cannot be removed.
 *
 * The first member of each element is its key: a ggl_str, which may hold any bytes, or a fixed
 * number of bytes (two integers, say).
 *
 *     struct entry { ggl_str name; ... } *e;
 *     ggl_index x;
 *     if (ggl_index_init(&x, n, sizeof *e, GGL_INDEX_STRINGS, err) != GGL_OK) ...
 *     first = ggl_index_put(&x, e, i);          // first != i: e[first] has the same name
 *     i = ggl_index_find(&x, e, name);          // SIZE_MAX: not found
 *     ggl_index_fini(&x);
 *
 * Open addressing, linear probing, at most half full:
 *
 *     slots: | 0 | i+1 | 0 | j+1 | k+1 | 0 | ...      0: free, else an element's index + 1
 *
 * Threads: any number may look things up at the same time, while none adds to it. */
#ifndef GGL_INDEX_H
#define GGL_INDEX_H

#include "ggl/status.h"
#include "ggl/str.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GGL_INDEX_STRINGS = 0 };

typedef struct ggl_index {
    uint32_t *slots;         /* NULL: the table is empty, and nothing is found in it */
    size_t mask;             /* number of slots - 1, a power of two - 1 */
    size_t n;                /* elements in it */
    size_t stride, key_size; /* bytes of an element, and of its key unless that is a ggl_str */
    uint64_t seed[2];        /* differs from run to run */
} ggl_index;

/* Makes an empty table with room for n elements of `stride` bytes, whose keys are key_size bytes,
 * or strings (GGL_INDEX_STRINGS). GGL_NOMEM; GGL_LIMIT: 2^31 elements or more. On failure *x is
 * empty, and ggl_index_fini does nothing. */
GGL_NODISCARD ggl_status ggl_index_init(ggl_index *x, size_t n, size_t stride, size_t key_size,
                                        ggl_error *err);
void ggl_index_fini(ggl_index *x);

/* Makes room for n elements in all; `array` holds those already in the table. If the table has to
 * grow, it at least doubles, so that adding elements one by one takes linear time. On failure the
 * table is unchanged. Same statuses as ggl_index_init. */
GGL_NODISCARD ggl_status ggl_index_reserve(ggl_index *x, const void *array, size_t n,
                                           ggl_error *err);

/* Adds element i, for which the table must have room, and returns i. If the table already has an
 * element with this key, changes nothing and returns its index. */
size_t ggl_index_put(ggl_index *x, const void *array, size_t i);

/* Returns the index of the element with this key, or SIZE_MAX. For keys of fixed size, key.n is
 * that size. */
size_t ggl_index_find(const ggl_index *x, const void *array, ggl_str key);

#ifdef __cplusplus
}
#endif
#endif
