#include "user_text.h"

#include <string.h>

ggl_str llm_text_after_mark(ggl_str text) {
    const bool has = text.n >= 3 && memcmp(text.s, "\xef\xbb\xbf", 3) == 0;
    return has ? (ggl_str){text.s + 3, text.n - 3} : text;
}

static bool is_ascii(char c) {
    return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r';
}

bool llm_text_is_wide(ggl_str text) {
    const char *s = text.s;
    if (text.n < 2)
        return false;
    return memcmp(s, "\xff\xfe", 2) == 0 || memcmp(s, "\xfe\xff", 2) == 0 ||
           (text.n >= 4 && ((is_ascii(s[0]) && !s[1] && is_ascii(s[2]) && !s[3]) ||
                            (!s[0] && is_ascii(s[1]) && !s[2] && is_ascii(s[3]))));
}

size_t llm_text_end_lines(const char *s, size_t n, char *out) {
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] != '\r' || i + 1 == n || s[i + 1] != '\n')
            out[m++] = s[i];
    return m;
}
