/* Escapes strings from files for terminals: an escape sequence in a tensor's name must not reach
 * one.
 *
 *     ggl_fprint(stdout, "%-40s %d\n", tensor_name, n);      // "a\x1b[31m   .. 7"
 *
 * Threads: the functions have no state; any number of threads may call them at the same time. */
#ifndef GGL_SHOW_H
#define GGL_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes s[0..n) to buf, escaped for a terminal: control characters (C0 and C1), DEL, and bytes
 * that are not valid UTF-8 become "\x1b" and the like. Writes at most `size` bytes with the NUL,
 * and never a part of a character. Returns the length, without the NUL, that enough room would
 * need. */
size_t ggl_show(char *buf, size_t size, const char *s, size_t n);

/* Like vsnprintf, but the arguments of %s and %.*s are escaped as by ggl_show. Supports the
 * conversions d i u x X o c e f g a p s and %%, with all flags, widths, precisions and length
 * modifiers. */
int ggl_vformat(char *buf, size_t size, const char *fmt, va_list args);

/* Like ggl_vformat, but prints to a file; returns false if writing fails or memory runs out. */
bool ggl_fprint(FILE *to, const char *fmt, ...) GGL_PRINTF(2, 3);

/* Returns the length of the valid UTF-8 character at the start of s[0..n); 0 if none. */
size_t ggl_utf8_length(const char *s, size_t n);

/* True if s[0..n) consists of whole, valid UTF-8 characters. */
bool ggl_utf8_is_valid(const char *s, size_t n);

/* Returns the length of the longest prefix of s[0..n) that has at most `most` bytes and does not
 * end within a character. For the precision of %.*s in messages. */
size_t ggl_utf8_cut(const char *s, size_t n, size_t most);

#ifdef __cplusplus
}
#endif
#endif
