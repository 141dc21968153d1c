/* JSON strings (RFC 8259), for tools that read or write them line by line. */
#ifndef TOOLS_JSON_TEXT_H
#define TOOLS_JSON_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* Reads the JSON string at the start of s[0..n), after white space: writes its bytes to
 * out[0..*n_out), which must have room for n bytes; *used: bytes of s read. Returns NULL or an
 * error text. Escapes become UTF-8; unpaired surrogates are errors; invalid UTF-8 is copied. */
const char *json_read_string(const char *s, size_t n, char *out, size_t *n_out, size_t *used);

/* Writes s[0..n) as a JSON string. Bytes that are not valid UTF-8 become U+FFFD each; all control
 * characters are escaped, so that a terminal can show the text. */
void json_put_string(FILE *out, const char *s, size_t n);

#endif
