#include "cluster.h"

#include "ggl/internal/steps.h"
#include "unicode.h"

static bool extends(unicode_cluster k) {
    return k == CLUSTER_EXTEND || k == CLUSTER_LINKER || k == CLUSTER_CONJUNCT_EXTEND ||
           k == CLUSTER_ZWJ;
}

/* Hangul: a leading consonant, vowels, and final consonants belong together (GB6 to GB8). */
static bool is_syllable(unicode_cluster before, unicode_cluster k) {
    if (before == CLUSTER_L)
        return k == CLUSTER_L || k == CLUSTER_V || k == CLUSTER_LV || k == CLUSTER_LVT;
    if (before == CLUSTER_LV || before == CLUSTER_V)
        return k == CLUSTER_V || k == CLUSTER_T;
    return (before == CLUSTER_LVT || before == CLUSTER_T) && k == CLUSTER_T;
}

static unicode_cluster kind_of(uint32_t c) {
    return c < 0x110000 ? llm_unicode_cluster(c) : CLUSTER_OTHER;
}

size_t llm_cluster_length(const char *s, size_t n) {
    if ((unsigned char)s[0] < 0x80 && (n == 1 || (unsigned char)s[1] < 0x80))
        return n > 1 && s[0] == '\r' && s[1] == '\n' ? 2 : 1;
    ggl_str left = {s, n};
    unicode_cluster before = kind_of(llm_take_char(&left));
    bool in_picture = before == CLUSTER_PICTOGRAPHIC; /* a pictograph and what extends it */
    bool in_conjunct = before == CLUSTER_CONSONANT,
         linked = false; /* a consonant, and what joins it to the next */
    bool odd_region = before == CLUSTER_REGIONAL;
    if (before == CLUSTER_CONTROL)
        return n - left.n;
    while (left.n > 0) {
        ggl_str rest = left;
        const unicode_cluster k = kind_of(llm_take_char(&rest));
        GGL_STEPS(1);
        const bool joins =
            k != CLUSTER_CONTROL &&
            (extends(k) || k == CLUSTER_SPACING_MARK || before == CLUSTER_PREPEND ||
             is_syllable(before, k) || (k == CLUSTER_CONSONANT && in_conjunct && linked) ||
             (k == CLUSTER_PICTOGRAPHIC && in_picture && before == CLUSTER_ZWJ) ||
             (k == CLUSTER_REGIONAL && odd_region));
        if (!joins)
            break;
        linked = in_conjunct && (k == CLUSTER_LINKER || (linked && k != CLUSTER_CONSONANT));
        in_conjunct = k == CLUSTER_CONSONANT ||
                      (in_conjunct &&
                       (k == CLUSTER_LINKER || k == CLUSTER_CONJUNCT_EXTEND || k == CLUSTER_ZWJ));
        in_picture = k == CLUSTER_PICTOGRAPHIC || (in_picture && extends(k));
        odd_region = k == CLUSTER_REGIONAL && !odd_region;
        before = k;
        left = rest;
    }
    return n - left.n;
}
