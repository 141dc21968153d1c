/* What the pre-tokenizers' patterns ask of a code point. The tables are generated (tools/gen_unicode.py). */
#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include <stdint.h>

enum { /* general categories, and the properties White_Space and Script=Han */
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
    UNICODE_L = UNICODE_LU | UNICODE_LL | UNICODE_LT | UNICODE_LM | UNICODE_LO,
    UNICODE_N = UNICODE_ND | UNICODE_NL | UNICODE_NO,
    UNICODE_WORD = UNICODE_L | UNICODE_M | UNICODE_ND | UNICODE_NL | UNICODE_PC /* \w */
};

struct unicode_range {
    uint32_t first;
    uint16_t properties;
};
extern const struct unicode_range unicode_ranges[];
extern const int n_unicode_ranges;
extern const uint16_t unicode_ascii[128];

/* The UNICODE_* bits of a code point. */
unsigned llm_unicode_properties(uint32_t c);

#endif
