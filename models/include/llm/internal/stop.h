/* Stop strings: finds the first of several byte strings in a text that comes in pieces, and holds
 * back what may become one. The time is linear in the text, whatever the strings are.
 *
 *     llm_stop *s;
 *     if (llm_stop_new(&s, strings, n, &err) != GGL_OK) ...
 *     for each piece of text, appended to a buffer `waiting`:
 *         size_t ready = llm_stop_read(s, piece, n_piece);
 *         .. show and remove the first `ready` bytes of `waiting` ..
 *         if (llm_stop_found(s) >= 0)
 *             break;  // the rest of `waiting` begins with the stop string
 *     at the end of the text, without a stop string: show the rest
 *
 * Threads: a search belongs to one thread at a time. */
#ifndef LLM_STOP_H
#define LLM_STOP_H

#include "ggl/status.h"
#include "ggl/str.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llm_stop llm_stop;

/* Prepares n strings, which are copied. n may be 0. GGL_USAGE: a string is empty. GGL_NOMEM;
 * GGL_LIMIT: they are too long. On failure *out is NULL. */
GGL_NODISCARD ggl_status llm_stop_new(llm_stop **out, const ggl_str *strings, size_t n,
                                      ggl_error *err);
void llm_stop_free(llm_stop *s);

/* Reads the next n bytes of the text. Returns how many of the bytes that were read and not yet
 * returned can be shown: they are no part of a stop string, however the text goes on. After a stop
 * string was found, reads nothing and returns 0. Allocates nothing. */
size_t llm_stop_read(llm_stop *s, const char *text, size_t n);
/* Returns the index of the string that was found; -1: none. It is the one that ends first in the
 * text; of several that end at the same byte, the longest; of equal strings, the first. The text up
 * to where it begins has been returned by llm_stop_read. */
int32_t llm_stop_found(const llm_stop *s);
/* Returns the number of bytes held back: less than the longest string, or, if one was found, its
 * length. Bytes after the stop string are not counted. */
size_t llm_stop_held(const llm_stop *s);
/* Begins another text. */
void llm_stop_reset(llm_stop *s);

#ifdef __cplusplus
}
#endif
#endif
