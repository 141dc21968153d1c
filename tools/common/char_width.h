/* Characters of UTF-8, and how many columns of a terminal they take, whatever the locale. */
#ifndef TOOLS_CHAR_WIDTH_H
#define TOOLS_CHAR_WIDTH_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0 for marks that combine with the character before them, 2 for wide characters (CJK,
 * emoji), else 1. Control characters count as 1. */
int char_width(uint32_t c);

/* Reads the character at the start of s[0..n), n > 0: *c is its code point, or U+FFFD for a byte
 * that begins no valid UTF-8. Returns its bytes, 1 for such a byte. */
size_t char_read(const char *s, size_t n, uint32_t *c);

/* How many columns s[0..n) takes, a text without control characters. */
int char_columns(const char *s, size_t n);

/* Writes the character c, at most U+10FFFF, as UTF-8. Returns its bytes, 1 to 4. */
size_t char_write(uint32_t c, char *out);

#endif
