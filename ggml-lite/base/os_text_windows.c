/* ggl_find_bytes (text.h) where the C library has no memmem. This is the two-way algorithm of Crochemore and Perrin ("Two-way
 * string-matching", Journal of the ACM 38, 1991): it needs no memory, and its time is linear. */
#include <stdbool.h>
#include <string.h>

#include "ggl/internal/text.h"

typedef unsigned char byte;

/* Returns where the largest end of w begins, by the order of bytes or the opposite one, and the period of that end. */
static size_t largest_end(const byte *w, size_t n, bool opposite, size_t *period) {
    size_t begin = 0, other = 1,
           k = 0; /* both ends have k bytes in common, in the current period */
    *period = 1;
    while (other + k < n) {
        const byte a = w[begin + k], b = w[other + k];
        if (a == b) {
            k++;
            if (k == *period) {
                other += k;
                k = 0;
            }
        } else if ((a > b) != opposite) { /* the end at `other` is smaller */
            other += k + 1;
            *period = other - begin;
            k = 0;
        } else {
            begin = other++;
            *period = 1;
            k = 0;
        }
    }
    return begin;
}

/* Finds w, which begins with c, where most places do not have its first byte. */
static const byte *skip_to(const byte *s, const byte *last, byte c) {
    return s <= last ? memchr(s, c, (size_t)(last - s) + 1) : NULL;
}

void *ggl_find_bytes(const void *in, size_t n, const void *what, size_t m) {
    const byte *s = in, *w = what;
    if (m == 0)
        return (void *)in;
    if (n < m)
        return NULL;
    const byte *last = s + (n - m);
    size_t period, other_period;
    size_t cut = largest_end(w, m, false, &period);
    const size_t other_cut = largest_end(w, m, true, &other_period);
    if (other_cut > cut) {
        cut = other_cut;
        period = other_period;
    }
    /* If w repeats itself from its beginning, what is known to match is not compared again. Otherwise w may move further. */
    const bool repeats = cut + period <= m && memcmp(w, w + period, cut) == 0;
    if (!repeats)
        period = (cut > m - cut ? cut : m - cut) + 1;
    size_t known = 0; /* bytes of w that match at s, from the move before */
    while (s <= last) {
        if (known == 0 && !(s = skip_to(s, last, w[0])))
            return NULL;
        size_t i = cut > known ? cut : known;
        while (i < m && w[i] == s[i])
            i++;
        if (i < m) {
            s += i - cut + 1;
            known = 0;
            continue;
        }
        for (i = cut; i > known && w[i - 1] == s[i - 1];)
            i--;
        if (i <= known)
            return (void *)s;
        s += period;
        known = repeats ? m - period : 0;
    }
    return NULL;
}
