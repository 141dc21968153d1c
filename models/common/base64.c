#include "base64.h"

#include <stdint.h>

/* The value of a digit; -1: it is none. */
static int digit_value(char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool llm_base64_decode(unsigned char *to, size_t *n_out, ggl_str text, size_t *wrong) {
    size_t n = text.n, n_bytes = 0;
    uint32_t bits = 0;
    while (n > 0 && text.n - n < 2 && text.s[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++) {
        const int digit = digit_value(text.s[i]);
        *wrong = i;
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 > 0 && (text.n % 4 == 0 || i + 4 < text.n))
            to[n_bytes++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    *n_out = n_bytes;
    *wrong = text.n;
    if (text.n % 4 != 0)
        return false;
    *wrong = n > 0 ? n - 1 : 0;
    return (bits & ((1u << 2 * (text.n - n)) - 1)) == 0;
}
