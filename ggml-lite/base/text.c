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

bool ggl_ends_with(const char *s, const char *text) {
    return ggl_str_ends_with((ggl_str){s, strlen(s)}, text);
}

bool ggl_case_ends_with(const char *s, const char *text) {
    const size_t n_s = strlen(s), n = strlen(text);
    return n_s >= n && ggl_case_compare(s + n_s - n, text) == 0;
}

bool ggl_str_ends_with(ggl_str s, const char *text) {
    const size_t n = strlen(text);
    return s.n >= n && (n == 0 || memcmp(s.s + s.n - n, text, n) == 0);
}

bool ggl_str_begins_with(ggl_str s, const char *text) {
    const size_t n = strlen(text);
    return s.n >= n && (n == 0 || memcmp(s.s, text, n) == 0);
}

bool ggl_case_str_begins_with(ggl_str s, const char *text) {
    const size_t n = strlen(text);
    return s.n >= n && ggl_case_compare_n(s.s, text, n) == 0;
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
