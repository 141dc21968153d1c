#include "ggl/internal/nearest.h"

#include <stdint.h>
#include <string.h>

enum { MOST = GGL_NEAREST_LENGTH };

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

size_t ggl_edit_distance(const char *a, size_t na, const char *b, size_t nb) {
    size_t row[3][MOST + 1]; /* rows i-2, i-1, i of the usual table */
    if (na > MOST)
        na = MOST;
    if (nb > MOST)
        nb = MOST;
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    size_t *before = row[2], *last = row[0], *now = row[1];
    for (size_t i = 1; i <= na; i++) {
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
            d = last[j] + 1 < d ? last[j] + 1 : d;
            d = now[j - 1] + 1 < d ? now[j - 1] + 1 : d;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < d)
                d = before[j - 2] + 1;
            now[j] = d;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[nb];
}

/* Returns the next letter or digit at *s, in lower case, and advances *s; 0: the end. */
static int next_letter(const char **s, const char *end) {
    while (*s < end) {
        const char c = lower(*(*s)++);
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            return c;
    }
    return 0;
}

bool ggl_same_letters(const char *a, size_t na, const char *b, size_t nb) {
    const char *end_a = a + na, *end_b = b + nb;
    size_t n = 0;
    int x = next_letter(&a, end_a), y = next_letter(&b, end_b);
    for (; x == y && x != 0; n++) {
        x = next_letter(&a, end_a);
        y = next_letter(&b, end_b);
    }
    return x == y && n > 0;
}

ggl_nearest ggl_nearest_to(const char *wanted) {
    size_t n = strlen(wanted);
    return (ggl_nearest){wanted, NULL, n < 3 ? 2 : n / 3 + 2}; /* a larger distance is no help */
}

/* The edit distance of names, of which upper and lower case are the same. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb) {
    char la[MOST], lb[MOST];
    for (size_t i = 0; i < na && i < MOST; i++)
        la[i] = lower(a[i]);
    for (size_t i = 0; i < nb && i < MOST; i++)
        lb[i] = lower(b[i]);
    return ggl_edit_distance(la, na, lb, nb);
}

void ggl_nearest_try(ggl_nearest *n, const char *candidate, size_t len) {
    size_t wanted = strlen(n->wanted);
    if (len == SIZE_MAX)
        len = strlen(candidate);
    if (n->distance > 0 && ggl_same_letters(n->wanted, wanted, candidate, len)) {
        n->distance = 0;
        n->best = candidate;
        return;
    }
    size_t gap = len > wanted ? len - wanted : wanted - len;
    if (gap >= n->distance)
        return;
    size_t d = distance(n->wanted, wanted, candidate, len);
    if (d < n->distance && d < len) {
        n->distance = d;
        n->best = candidate;
    }
}
