/* JSON strings (RFC 8259), for the tools' line-wise input. */
#ifndef TOOLS_JSON_TEXT_H
#define TOOLS_JSON_TEXT_H

#include <stddef.h>

/* Reads the string, quotes and all, at the start of s[0..n) (white space before it is skipped): its bytes into
 * out[0..*n_out), which needs room for n bytes, and how many bytes of s it took. NULL, or what is wrong with it. Escapes
 * become UTF-8; half a surrogate pair is refused; bytes that are no UTF-8 pass as they are. */
const char *json_read_string(const char *s, size_t n, char *out, size_t *n_out, size_t *used);

#endif
