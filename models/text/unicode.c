#include "unicode.h"

unsigned llm_unicode_properties(uint32_t c) {
    if (c < 128)
        return llm_unicode_ascii[c];
    int low = 0, high = llm_n_unicode_ranges; /* the range is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (llm_unicode_ranges[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    return llm_unicode_kinds[llm_unicode_ranges[low].kind];
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

int llm_unicode_decompose(uint32_t c, uint32_t out[UNICODE_MOST_PARTS]) {
    const uint32_t low21 = (1u << 21) - 1;
    if (c - HANGUL < 11172)
        return decompose_hangul(c, out);
    int low = 0, high = llm_n_unicode_decompositions; /* the entry is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (llm_unicode_decompositions[middle] >> 42 <= c)
            low = middle;
        else
            high = middle;
    }
    const uint64_t pair = llm_unicode_decompositions[low];
    out[0] = c;
    if (pair >> 42 != c)
        return 1;
    /* the second part decomposes no further */
    int n = llm_unicode_decompose(pair >> 21 & low21, out);
    if (pair & low21)
        n += llm_unicode_decompose(pair & low21, out + n);
    return n;
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
