#include "unicode.h"

/* Returns the last range that begins at c or before. block: the last range that begins at or before each 256th code point. */
static int find_range(const struct unicode_range *ranges, const uint16_t *block, uint32_t c) {
    c = c < 0x110000 ? c : 0x10ffff;                         /* which is no character either */
    int low = block[c >> 8], high = block[(c >> 8) + 1] + 1; /* the range is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (ranges[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    return low;
}

unsigned llm_unicode_properties(uint32_t c) {
    return c < 128 ? llm_unicode_ascii[c]
                   : llm_unicode_kinds[llm_unicode_ranges[find_range(llm_unicode_ranges,
                                                                     llm_unicode_blocks, c)]
                                           .kind];
}

static uint32_t step_bits(uint32_t c) {
    return c < 128
               ? llm_unicode_step_ascii[c]
               : llm_unicode_step_kinds[llm_unicode_step_ranges[find_range(llm_unicode_step_ranges,
                                                                           llm_unicode_step_blocks,
                                                                           c)]
                                            .kind];
}

unsigned llm_unicode_step(uint32_t c) {
    return step_bits(c) & 0x3f;
}

unicode_cluster llm_unicode_cluster(uint32_t c) {
    return (unicode_cluster)(step_bits(c) >> 6 & 0x3f);
}

unsigned llm_unicode_script(uint32_t c) {
    return step_bits(c) >> 12;
}

size_t llm_unicode_encode(uint32_t c, char out[4]) {
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = n == 1 ? (char)c : (char)((0xf00u >> n & 0xff) | c);
    return n;
}

/* Hangul syllables are decomposed by arithmetic (Unicode, section 3.12). */
enum {
    HANGUL = 0xac00,
    LEADING = 0x1100,
    VOWEL = 0x1161,
    TRAILING = 0x11a7,
    N_VOWEL = 21,
    N_TRAILING = 28
};

static int decompose_hangul(uint32_t c, uint32_t *out) {
    const uint32_t i = c - HANGUL, trailing = i % N_TRAILING;
    out[0] = LEADING + i / (N_VOWEL * N_TRAILING);
    out[1] = VOWEL + i / N_TRAILING % N_VOWEL;
    out[2] = TRAILING + trailing;
    return trailing ? 3 : 2;
}

/* Returns the last of n sorted triples (three numbers of 21 bits) whose first `keys` numbers are at most key. */
static uint64_t find_triple(const uint64_t *triples, int n, int keys, uint64_t key) {
    int low = 0, high = n; /* the entry is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (triples[middle] >> (63 - 21 * keys) <= key)
            low = middle;
        else
            high = middle;
    }
    return triples[low];
}

int llm_unicode_decompose(uint32_t c, uint32_t out[UNICODE_MOST_PARTS]) {
    const uint32_t low21 = (1u << 21) - 1;
    if (c - HANGUL < 11172)
        return decompose_hangul(c, out);
    if (c < 0xc0 ||
        (c >= 0x3100 &&
         c < 0xf900)) { /* letters without accents, Chinese characters: no decomposition begins here */
        out[0] = c;
        return 1;
    }
    const uint64_t pair =
        find_triple(llm_unicode_decompositions, llm_n_unicode_decompositions, 1, c);
    out[0] = c;
    if (pair >> 42 != c)
        return 1;
    /* the second part decomposes no further */
    int n = llm_unicode_decompose(pair >> 21 & low21, out);
    if (pair & low21)
        n += llm_unicode_decompose(pair & low21, out + n);
    return n;
}

const uint32_t *llm_unicode_decompose_compatible(uint32_t c, int *n) {
    int low = 0, high = llm_n_unicode_compatible; /* the entry is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (llm_unicode_compatible[middle].c <= c)
            low = middle;
        else
            high = middle;
    }
    const struct unicode_compatible *found = &llm_unicode_compatible[low];
    *n = (int)found->n;
    return found->c == c ? llm_unicode_compatible_text + found->at : NULL;
}

uint32_t llm_unicode_compose(uint32_t a, uint32_t b) {
    const uint32_t leading = a - LEADING, vowel = b - VOWEL, syllable = a - HANGUL,
                   trailing = b - TRAILING;
    if (leading < 19 && vowel < N_VOWEL)
        return HANGUL + (leading * N_VOWEL + vowel) * N_TRAILING;
    if (syllable < 11172 && syllable % N_TRAILING == 0 && trailing > 0 && trailing < N_TRAILING)
        return a + trailing;
    const uint64_t key = (uint64_t)a << 21 | b,
                   found =
                       find_triple(llm_unicode_compositions, llm_n_unicode_compositions, 2, key);
    return found >> 21 == key ? found & ((1u << 21) - 1) : 0;
}

unsigned llm_unicode_combining(uint32_t c) {
    int low = 0, high = llm_n_unicode_classes; /* the range is in [low, high) */
    if (c < llm_unicode_classes[0].first)
        return 0;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (llm_unicode_classes[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    return c <= llm_unicode_classes[low].last ? llm_unicode_classes[low].value : 0;
}

uint32_t llm_unicode_lower(uint32_t c, uint32_t *mark) {
    *mark = 0;
    if (c < 128)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (c == 0x130) {
        *mark = 0x307;
        return 'i';
    }
    int low = 0, high = llm_n_unicode_lower_ranges; /* the range is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (llm_unicode_lower_ranges[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    const struct unicode_lower *r = &llm_unicode_lower_ranges[low];
    return c < r->first || c > r->last || (c - r->first) % r->step ? c : c + (uint32_t)r->delta;
}
