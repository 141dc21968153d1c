#include "user_text.h"

#include <string.h>

#include "ggl/internal/text.h"

ggl_str llm_text_after_mark(ggl_str text) {
    const bool has = text.n >= 3 && memcmp(text.s, "\xef\xbb\xbf", 3) == 0;
    return has ? (ggl_str){text.s + 3, text.n - 3} : text;
}

static bool is_ascii(char c) {
    return (c >= ' ' && c <= '~') || c == '\t' || c == '\n' || c == '\r';
}

/* True if the first two characters are ASCII, in units of `size` bytes, of which byte `at` is not zero. */
static bool has_units(ggl_str text, size_t size, size_t at) {
    bool has = text.n >= 2 * size;
    for (size_t i = 0; has && i < 2 * size; i++)
        has = i % size == at ? is_ascii(text.s[i]) : text.s[i] == '\0';
    return has;
}

const char *llm_text_wide(ggl_str text) {
    const bool is_32 = (text.n >= 4 && (memcmp(text.s, "\xff\xfe\0\0", 4) == 0 ||
                                        memcmp(text.s, "\0\0\xfe\xff", 4) == 0)) ||
                       has_units(text, 4, 0) || has_units(text, 4, 3);
    const bool is_16 = (text.n >= 2 && (memcmp(text.s, "\xff\xfe", 2) == 0 ||
                                        memcmp(text.s, "\xfe\xff", 2) == 0)) ||
                       has_units(text, 2, 0) || has_units(text, 2, 1);
    return is_32   ? "this is UTF-32; convert the file: iconv -f utf-32 -t utf-8"
           : is_16 ? "this is UTF-16; convert the file: iconv -f utf-16 -t utf-8"
                   : NULL;
}

size_t llm_text_end_lines(const char *s, size_t n, char *out) {
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (s[i] != '\r' || i + 1 == n || s[i + 1] != '\n')
            out[m++] = s[i];
    return m;
}

/* Returns what follows white space after the first c; '\0': the text begins with something else. */
static char after(ggl_str *text, char c) {
    size_t i = 0;
    while (i < text->n && memchr(" \t\r\n", text->s[i], 4))
        i++;
    if (i == text->n || text->s[i] != c)
        return '\0';
    do
        i++;
    while (i < text->n && memchr(" \t\r\n", text->s[i], 4));
    *text = (ggl_str){text->s + i, text->n - i};
    return i > 0 && text->n > 0 ? text->s[0] : '\0';
}

bool llm_text_is_json(const char *path, ggl_str text) {
    static const char *const json[] = {".json", ".jsonl", ".ndjson", ".jsonlines"},
                             *const texts[] = {".txt", ".text", ".md"};
    for (size_t i = 0; i < sizeof json / sizeof *json; i++)
        if (ggl_case_ends_with(path, json[i]))
            return true;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (ggl_case_ends_with(path, texts[i]))
            return false;
    ggl_str rest = text;
    return after(&rest, '{') == '"' || (rest = text, after(&rest, '[') == '{');
}
