/* Strings of files, fit for terminals: an escape sequence in a tensor's name must not reach one.
 *
 *     ggl_fprint(stdout, "%-40s %d\n", tensor_name, n);      // "a\x1b[31m   .. 7"
 */
#ifndef GGL_SHOW_H
#define GGL_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* s[0..n) fit for a terminal: control characters (of C0 and C1), DEL, and bytes that are no UTF-8
 * become \x1b; a character that the end cuts is left out. Writes at most `size` bytes with a NUL;
 * returns how many there would be with enough room, without the NUL. */
GGL_API size_t ggl_show(char *buf, size_t size, const char *s, size_t n);

/* Like vsnprintf, but what %s and %.*s stand for appears as by ggl_show. Of conversions it knows
 * d i u x X o c e f g a p s and %%, with every flag, width, precision and length modifier. */
GGL_API int ggl_vformat(char *buf, size_t size, const char *fmt, va_list args);

/* The same to a file; false if writing failed or memory is short. */
GGL_API bool ggl_fprint(FILE *to, const char *fmt, ...) GGL_PRINTF(2, 3);

/* Length of the valid UTF-8 character that s[0..n) begins with; 0: there is none. */
GGL_API size_t ggl_utf8_length(const char *s, size_t n);

/* The beginning of s[0..n) that a message shows: at most `most` bytes, and no half of a character
 * at its end. For %.*s. */
GGL_API size_t ggl_utf8_cut(const char *s, size_t n, size_t most);

#ifdef __cplusplus
}
#endif
#endif
