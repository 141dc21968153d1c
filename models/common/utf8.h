/* Characters of UTF-8 as numbers. */
#ifndef LLM_UTF8_H
#define LLM_UTF8_H

#include "ggl/internal/show.h"
#include "ggl/str.h"

/* Returns the code point at s[0..n), a whole valid UTF-8 character. */
static inline uint32_t llm_unicode_decode(const char *s, size_t n) {
    const unsigned char *u = (const unsigned char *)s;
    uint32_t c = n == 1 ? u[0] : u[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (u[i] & 0x3f);
    return c;
}

/* Takes the first character of *s, which is not empty. A byte that begins no valid character is one of its
 * own, whose number is above all code points. */
static inline uint32_t llm_take_char(ggl_str *s) {
    const size_t length = (unsigned char)*s->s < 0x80 ? 1 : ggl_utf8_length(s->s, s->n);
    const uint32_t c =
        length > 0 ? llm_unicode_decode(s->s, length) : 0x110000u + (unsigned char)*s->s;
    const size_t n = length > 0 ? length : 1;
    *s = (ggl_str){s->s + n, s->n - n};
    return c;
}

#endif
