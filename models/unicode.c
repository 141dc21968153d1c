#include "unicode.h"

unsigned llm_unicode_properties(uint32_t c) {
    if (c < 128)
        return unicode_ascii[c];
    int low = 0, high = n_unicode_ranges; /* the range is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (unicode_ranges[middle].first <= c)
            low = middle;
        else
            high = middle;
    }
    return unicode_ranges[low].properties;
}
