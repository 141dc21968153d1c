/* A string with a length.
 *
 * Threads: the functions have no state; any number of threads may call them at the same time.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_STR_H
#define GGL_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* n bytes at s, any of which may be 0; no NUL follows them. Functions that return a ggl_str
 * document the owner of the bytes. */
typedef struct ggl_str {
    const char *s;
    size_t n;
} ggl_str;

/* True if s has the same bytes as the NUL-terminated text. */
static inline bool ggl_str_is(ggl_str s, const char *text) {
    return s.n == strlen(text) && (s.n == 0 || memcmp(s.s, text, s.n) == 0);
}

/* True if both have the same bytes. */
static inline bool ggl_str_equal(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

#endif
