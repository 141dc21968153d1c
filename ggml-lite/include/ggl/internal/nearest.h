/* Finds the name nearest to one that does not exist, for "did you mean ..".
 *
 * Threads: a search belongs to one thread at a time. */
#ifndef GGL_NEAREST_H
#define GGL_NEAREST_H

#include <stdbool.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GGL_NEAREST_LENGTH = 64 }; /* the most characters of a name that are compared */

/* Returns how many insertions, deletions, changes and swaps of neighbours turn the na bytes at a
 * into the nb bytes at b (optimal string alignment, also called restricted Damerau distance). Of
 * longer names only the first GGL_NEAREST_LENGTH bytes count. */
size_t ggl_edit_distance(const char *a, size_t na, const char *b, size_t nb);

/* True if two names differ at most in case, and in characters that are neither letters nor digits:
 * "Q4KM" and "q4_k_m". Names without letters and digits are not equal to anything. */
bool ggl_same_letters(const char *a, size_t na, const char *b, size_t nb);

typedef struct ggl_nearest {
    const char *wanted; /* borrowed */
    const char *best;   /* the nearest candidate so far, borrowed; NULL if none is near enough */
    size_t distance;    /* of `best`; before the first one, more than any that is near enough */
} ggl_nearest;

ggl_nearest ggl_nearest_to(const char *wanted);
/* Compares a candidate of `len` bytes; SIZE_MAX: up to the NUL. Upper and lower case are the same; one
 * with the same letters has the distance 0. */
void ggl_nearest_try(ggl_nearest *n, const char *candidate, size_t len);

#ifdef __cplusplus
}
#endif

#endif
