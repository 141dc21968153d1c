/* The alphabet of byte-level vocabularies: a printable character for each byte. Printable bytes of Latin-1 stand for themselves; the
 * others are U+0100, U+0101, .. in order. */
#ifndef LLM_BYTE_SPELLING_H
#define LLM_BYTE_SPELLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool llm_byte_is_printable(unsigned b) {
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xff && b != 0xad);
}

/* Writes the spelling of a byte, 1 or 2 bytes of UTF-8; returns their number. */
static inline size_t llm_spell_byte(unsigned b, char *out) {
    const uint32_t c = llm_byte_is_printable(b) ? b
                                                : 0x100 + (b <= 0x20   ? b
                                                           : b <= 0xa0 ? b - 0x7f + 0x21
                                                                       : 0x43);
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

#endif
