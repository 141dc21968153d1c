/* Functions of strings that C11 does not have. Case means that of ASCII letters, whatever the locale is.
 *
 * Threads: any number may call these functions at the same time. */
#ifndef GGL_TEXT_H
#define GGL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/str.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the first place of `what` in s[0..n); NULL: it is not there. An empty `what` is at the beginning. The time is linear,
 * whatever the bytes are. */
void *ggl_find_bytes(const void *s, size_t n, const void *what, size_t n_what);

/* Compare as strcmp and strncmp do, but take capital letters for small ones. */
int ggl_case_compare(const char *a, const char *b);
int ggl_case_compare_n(const char *a, const char *b, size_t n);
/* Returns the first place of `what` in s, whatever their cases are; NULL: it is not there. For short texts. */
char *ggl_case_find(const char *s, const char *what);

/* True if s begins, or ends, with the text. */
bool ggl_ends_with(const char *s, const char *text);
bool ggl_case_ends_with(const char *s, const char *text);
bool ggl_str_ends_with(ggl_str s, const char *text);
bool ggl_str_begins_with(ggl_str s, const char *text);
bool ggl_case_str_begins_with(ggl_str s, const char *text);

/* Return a copy, which free() or ggl_free() frees; NULL: out of memory. The second one copies n bytes, or those before a NUL among
 * them. */
char *ggl_copy_text(const char *s);
char *ggl_copy_text_n(const char *s, size_t n);

/* Returns how many bytes stand before the first NUL of s[0..n); n if there is none. */
size_t ggl_text_length(const char *s, size_t n);

#ifdef __cplusplus
}
#endif
#endif
