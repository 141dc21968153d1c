/* A hash table from keys to their places in an array of the caller, for keys that files supply: it
 * is seeded, so that no file can be made whose keys collide. Elements are never removed.
 *
 * The first member of each element is its key: a ggl_str, which may hold any bytes, or a number of
 * bytes that is the same for all elements (two integers, say).
 *
 *     struct entry { ggl_str name; ... } *e;
 *     ggl_index x;
 *     if (ggl_index_init(&x, n, sizeof *e, GGL_INDEX_STRINGS, err) != GGL_OK) ...
 *     first = ggl_index_put(&x, e, i);          // first != i: e[first] has the same name
 *     i = ggl_index_find(&x, e, name);          // SIZE_MAX: there is none
 *     ggl_index_fini(&x);
 *
 * Open addressing, linear probing, at most half full:
 *
 *     slots: | 0 | i+1 | 0 | j+1 | k+1 | 0 | ...      0: free, else an element's place + 1 */
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

/* An empty table with room for n elements of `stride` bytes, whose keys have key_size bytes, or are
 * strings (GGL_INDEX_STRINGS). GGL_NOMEM; GGL_LIMIT from 2^31 elements on. On failure *x is empty,
 * and ggl_index_fini does nothing. */
GGL_API GGL_NODISCARD ggl_status ggl_index_init(ggl_index *x, size_t n, size_t stride,
                                                size_t key_size, ggl_error *err);
GGL_API void ggl_index_fini(ggl_index *x);

/* Makes room for n elements in all; `array` holds those that are in the table. Twice as many as
 * before, at least, so that adding one after the other takes linear time. On failure the table
 * stays as it was. Statuses as of ggl_index_init. */
GGL_API GGL_NODISCARD ggl_status ggl_index_reserve(ggl_index *x, const void *array, size_t n,
                                                   ggl_error *err);

/* Puts element i into the table, in which there must be room for it. Returns the place of the
 * element with this key that is already there, and then changes nothing; or i. */
GGL_API size_t ggl_index_put(ggl_index *x, const void *array, size_t i);

/* The place of the element with this key, or SIZE_MAX. Of a key of fixed size: key.n is that size.
 */
GGL_API size_t ggl_index_find(const ggl_index *x, const void *array, ggl_str key);

#ifdef __cplusplus
}
#endif
#endif
