/* Properties of code points used by tokenizers. The tables are generated
 * (scripts/gen_unicode.py). */
#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#include "common/utf8.h" /* llm_unicode_decode */

/* General categories, and the properties White_Space and Script=Han. */
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
    UNICODE_PC = 1 << 12, /* in addition to UNICODE_P */
    UNICODE_HAN = 1 << 13,
    UNICODE_MN = 1 << 14, /* in addition to UNICODE_M: nonspacing marks */
    UNICODE_WORD =
        1
        << 15, /* [\w]: letters, marks, decimal and letter numbers, connectors, and a hundred signs that count as letters */
    UNICODE_L = UNICODE_LU | UNICODE_LL | UNICODE_LT | UNICODE_LM | UNICODE_LO,
    UNICODE_N = UNICODE_ND | UNICODE_NL | UNICODE_NO
};

/* What the steps of a tokenizer.json know of a character, by the tables of the library that defines them, which are of several versions of
 * Unicode; its kind of cluster; and its script (0: it has none). */
enum {
    STEP_OTHER = 1 << 0, /* BertNormalizer drops it: control, format, private use */
    STEP_PUNCTUATION = 1 << 1,
    STEP_NUMBER = 1 << 2,
    STEP_WORD = 1 << 3,    /* \w of the steps that are no patterns */
    STEP_MARK = 1 << 4,    /* StripAccents drops it */
    STEP_NO_SPACE = 1 << 5 /* BertNormalizer drops it as an accent */
};

/* Kinds of characters in clusters, those that a reader takes for one (UAX 29). */
typedef enum unicode_cluster {
    CLUSTER_OTHER,
    CLUSTER_CONTROL,
    CLUSTER_EXTEND,
    CLUSTER_SPACING_MARK,
    CLUSTER_PREPEND,
    CLUSTER_PICTOGRAPHIC,
    CLUSTER_L, /* of Hangul */
    CLUSTER_V,
    CLUSTER_T,
    CLUSTER_CONSONANT,
    CLUSTER_LINKER,          /* as Extend; joins consonants */
    CLUSTER_CONJUNCT_EXTEND, /* as Extend; may stand beside a linker */
    CLUSTER_ZWJ,
    CLUSTER_REGIONAL,
    CLUSTER_LV,
    CLUSTER_LVT
} unicode_cluster;

struct unicode_range {
    uint32_t first : 21, kind : 11; /* kind: in llm_unicode_kinds */
};
extern const uint16_t llm_unicode_kinds[]; /* properties */
extern const struct unicode_range llm_unicode_ranges[];
extern const int llm_n_unicode_ranges;
extern const uint16_t llm_unicode_blocks[], llm_unicode_step_blocks[]; /* [0x1101] */
extern const uint16_t llm_unicode_ascii[128];

extern const uint32_t
    llm_unicode_step_kinds[]; /* STEP_* bits, then 6 bits of unicode_cluster, then the script */
extern const struct unicode_range llm_unicode_step_ranges[];
extern const int llm_n_unicode_step_ranges;
extern const uint32_t llm_unicode_step_ascii[128];

struct unicode_compatible {
    uint32_t c, at, n; /* becomes llm_unicode_compatible_text[at .. at + n) */
};
extern const struct unicode_compatible llm_unicode_compatible[];
extern const int llm_n_unicode_compatible;
extern const uint32_t llm_unicode_compatible_text[];
extern const uint64_t llm_unicode_compositions[];
extern const int llm_n_unicode_compositions;
struct unicode_class {
    uint32_t first, last, value;
};
extern const struct unicode_class llm_unicode_classes[];
extern const int llm_n_unicode_classes;

struct unicode_lower {
    uint32_t first, last;
    int32_t delta;
    uint32_t step; /* 1: all code points of the range; 2: every second one */
};
extern const uint64_t llm_unicode_decompositions[];
extern const int llm_n_unicode_decompositions;
extern const struct unicode_lower llm_unicode_lower_ranges[];
extern const int llm_n_unicode_lower_ranges;

/* Returns the UNICODE_* bits of a code point; 0 for control, format, private-use and unassigned
 * characters, and for what is no code point. */
unsigned llm_unicode_properties(uint32_t c);

/* Returns the STEP_* bits of a code point. */
unsigned llm_unicode_step(uint32_t c);
unicode_cluster llm_unicode_cluster(uint32_t c);
unsigned llm_unicode_script(uint32_t c);

/* Writes a code point as UTF-8; returns the number of bytes, 1 to 4. */
size_t llm_unicode_encode(uint32_t c, char out[4]);

enum { UNICODE_MOST_PARTS = 4 };
/* Writes the full canonical decomposition; returns the number of parts. A code point without one
 * is its own part. Does not put marks into canonical order. */
int llm_unicode_decompose(uint32_t c, uint32_t out[UNICODE_MOST_PARTS]);
/* Returns the full compatible decomposition and sets *n, or NULL if it is the canonical one. */
const uint32_t *llm_unicode_decompose_compatible(uint32_t c, int *n);
/* Returns what two code points compose to; 0: nothing. */
uint32_t llm_unicode_compose(uint32_t a, uint32_t b);
/* Returns the canonical combining class. */
unsigned llm_unicode_combining(uint32_t c);
/* Returns c in lower case, or c if it has none. U+0130 becomes 'i' and *mark a combining dot;
 * otherwise *mark is 0. */
uint32_t llm_unicode_lower(uint32_t c, uint32_t *mark);

#endif
