/* Properties of code points that the tokenizers use. The tables are generated (scripts/gen_unicode.py). */
#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include <stddef.h>
#include <stdint.h>

/* general categories, and the properties White_Space and Script=Han */
enum {
    UNICODE_LU = 1 << 0,
    UNICODE_LL = 1 << 1,
    UNICODE_LT = 1 << 2,
    UNICODE_LM = 1 << 3,
    UNICODE_LO = 1 << 4,
    UNICODE_M = 1 << 5,
    UNICODE_ND = 1 << 6,
    UNICODE_NL = 1 << 7,
    UNICODE_NO = 1 << 8,
    UNICODE_P = 1 << 9,
    UNICODE_S = 1 << 10,
    UNICODE_WHITE = 1 << 11,
    UNICODE_PC = 1 << 12, /* beside UNICODE_P */
    UNICODE_HAN = 1 << 13,
    UNICODE_MN = 1 << 14, /* beside UNICODE_M: marks that take no space */
    UNICODE_L = UNICODE_LU | UNICODE_LL | UNICODE_LT | UNICODE_LM | UNICODE_LO,
    UNICODE_N = UNICODE_ND | UNICODE_NL | UNICODE_NO,
    UNICODE_WORD = UNICODE_L | UNICODE_M | UNICODE_ND | UNICODE_NL | UNICODE_PC /* \w */
};

struct unicode_range {
    uint32_t first;
    uint16_t properties;
};
extern const struct unicode_range llm_unicode_ranges[];
extern const int llm_n_unicode_ranges;
extern const uint16_t llm_unicode_ascii[128];

struct unicode_lower {
    uint32_t first, last;
    int32_t delta;
    uint32_t step; /* 1: all code points of the range; 2: each second one */
};
extern const uint64_t llm_unicode_decompositions[];
extern const int llm_n_unicode_decompositions;
extern const struct unicode_lower llm_unicode_lower_ranges[];
extern const int llm_n_unicode_lower_ranges;

/* The UNICODE_* bits of a code point. None: it is a control or format character, of private use, or
 * unassigned. */
unsigned llm_unicode_properties(uint32_t c);

/* The code point at s[0..n), a whole valid UTF-8 character. */
uint32_t llm_unicode_decode(const char *s, size_t n);
/* Writes a code point as UTF-8; returns its 1 to 4 bytes. */
size_t llm_unicode_encode(uint32_t c, char out[4]);

enum { UNICODE_MOST_PARTS = 4 };
/* The canonical decomposition, down to the last part; a code point without one is its own. Marks are
 * not brought into canonical order. Returns the number of parts. */
int llm_unicode_decompose(uint32_t c, uint32_t out[UNICODE_MOST_PARTS]);
/* In lower case; a code point that has none stays. U+0130 becomes 'i' and the mark that is written
 * to *mark, which is 0 otherwise. */
uint32_t llm_unicode_lower(uint32_t c, uint32_t *mark);

#endif
