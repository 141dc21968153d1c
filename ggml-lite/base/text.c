/* Strings: see ggl/internal/text.h. */
#include "ggl/internal/text.h"

#include <stdint.h>
#include <string.h>

#include "ggl/alloc.h"

static int small(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

int ggl_case_compare(const char *a, const char *b) {
    return ggl_case_compare_n(a, b, SIZE_MAX);
}

int ggl_case_compare_n(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (small(a[i]) != small(b[i]) || !a[i])
            return small(a[i]) - small(b[i]);
    return 0;
}

char *ggl_case_find(const char *s, const char *what) {
    const size_t n = strlen(what);
    for (;; s++) {
        if (ggl_case_compare_n(s, what, n) == 0)
            return (char *)s;
        if (!*s)
            return NULL;
    }
}

char *ggl_copy_text(const char *s) {
    return ggl_copy_text_n(s, strlen(s));
}

char *ggl_copy_text_n(const char *s, size_t n) {
    n = ggl_text_length(s, n);
    char *copy = n < SIZE_MAX ? ggl_calloc(n + 1, 1) : NULL;
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

size_t ggl_text_length(const char *s, size_t n) {
    const char *end = n > 0 ? memchr(s, 0, n) : NULL;
    return end ? (size_t)(end - s) : n;
}
