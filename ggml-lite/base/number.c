#include "ggl/internal/number.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* No double depends on more significant digits, except for whether one of the rest is not 0. */
enum { MOST_DIGITS = 800, MOST_EXPONENT = 1000000000 };

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static size_t digits(const char *s, size_t n) {
    size_t k = 0;
    while (k < n && is_digit(s[k]))
        k++;
    return k;
}

static size_t sign(const char *s, size_t n) {
    return n > 0 && (*s == '+' || *s == '-');
}

size_t ggl_number_length(const char *s, size_t n) {
    size_t k = sign(s, n);
    const size_t whole = digits(s + k, n - k);
    size_t fraction = 0;
    k += whole;
    if (k < n && s[k] == '.') {
        fraction = digits(s + k + 1, n - k - 1);
        if (whole + fraction > 0)
            k += 1 + fraction;
    }
    if (whole + fraction == 0)
        return 0;
    if (k < n && (s[k] == 'e' || s[k] == 'E')) {
        const size_t at = k + 1 + sign(s + k + 1, n - k - 1), power = digits(s + at, n - at);
        if (power > 0)
            k = at + power;
    }
    return k;
}

/* The exponent "[+-] digits", limited to +-MOST_EXPONENT. */
static long exponent_value(const char *s, size_t n) {
    long v = 0;
    for (size_t k = sign(s, n); k < n && is_digit(s[k]); k++)
        v = v < MOST_EXPONENT / 10 ? 10 * v + (s[k] - '0') : MOST_EXPONENT;
    return n > 0 && *s == '-' ? -v : v;
}

/* Writes the significant digits as a whole number and gives strtod that, with the exponent that belongs to it: 0.25e3 is read as
 * 25e1, which has no decimal point. */
double ggl_number_value(const char *s, size_t n) {
    char buf[MOST_DIGITS + 32];
    size_t used = 0, k = sign(s, n);
    long long exponent = 0;
    bool point = false, rest = false;
    if (k && *s == '-')
        buf[used++] = '-';
    const size_t first = used;
    for (; k < n && (is_digit(s[k]) || (s[k] == '.' && !point)); k++) {
        if (s[k] == '.') {
            point = true;
        } else if (used - first < MOST_DIGITS) {
            if (used > first || s[k] != '0')
                buf[used++] = s[k];
            exponent -= point;
        } else {
            rest |= s[k] != '0';
            exponent += !point;
        }
    }
    if (used == first)
        buf[used++] = '0';
    if (rest) { /* one more digit, so that a tie is none */
        buf[used++] = '1';
        exponent--;
    }
    if (k < n && (s[k] == 'e' || s[k] == 'E'))
        exponent += exponent_value(s + k + 1, n - k - 1);
    snprintf(buf + used, sizeof buf - used, "e%lld", exponent);
    return strtod(buf, NULL);
}

const char *ggl_number_shortest(char text[GGL_NUMBER_TEXT], double x, bool is_f32) {
    const int most = is_f32 ? 9 : 17;
    int digits = 6;
    do
        snprintf(text, GGL_NUMBER_TEXT, "%.*g", digits, x);
    while (++digits <= most && (is_f32 ? strtof(text, NULL) != (float)x : strtod(text, NULL) != x));
    return text;
}
