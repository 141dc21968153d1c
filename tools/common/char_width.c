#include "char_width.h"

#include <stdbool.h>

#include "char_width_tables.h"
#include "ggl/internal/show.h"

static bool is_in(const struct width_range *range, size_t n, uint32_t c) {
    size_t low = 0;
    while (low < n) {
        const size_t middle = low + (n - low) / 2;
        if (c > range[middle].last)
            low = middle + 1;
        else
            n = middle;
    }
    return range[low].first <= c && c <= range[low].last;
}

int char_width(uint32_t c) {
    enum { N_NONE = sizeof width_none / sizeof *width_none };
    enum { N_TWO = sizeof width_two / sizeof *width_two };
    if (c < width_none[0].first)
        return 1;
    return is_in(width_none, N_NONE - 1, c) ? 0 : is_in(width_two, N_TWO - 1, c) ? 2 : 1;
}

size_t char_read(const char *s, size_t n, uint32_t *c) {
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const size_t len = ggl_utf8_length(s, n);
    if (len == 0) {
        *c = 0xfffd;
        return 1;
    }
    *c = (unsigned char)s[0] & mask[len];
    for (size_t i = 1; i < len; i++)
        *c = *c << 6 | ((unsigned char)s[i] & 0x3f);
    return len;
}

int char_columns(const char *s, size_t n) {
    int columns = 0;
    for (size_t i = 0, size; i < n; i += size) {
        uint32_t c;
        size = char_read(s + i, n - i, &c);
        columns += char_width(c);
    }
    return columns;
}

size_t char_write(uint32_t c, char *out) {
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}
