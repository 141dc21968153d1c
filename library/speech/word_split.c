#include "word_split.h"

#include <string.h>

#include "ggl/internal/show.h"
#include "ggl/internal/text.h"

bool llm_word_has_no_spaces(const char *language) {
    static const char *const codes[] = {"zh", "ja", "th", "lo", "my", "yue"};
    for (size_t k = 0; k < sizeof codes / sizeof *codes; k++)
        if (strcmp(codes[k], language) == 0)
            return true;
    return false;
}

bool llm_word_is_of(const char *list, const char *s, size_t n) {
    return n == 0 || (ggl_utf8_is_valid(s, n) && ggl_find_bytes(list, strlen(list), s, n) != NULL);
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void llm_word_trim(const char **s, size_t *n) {
    for (; *n > 0 && is_space(**s); ++*s)
        --*n;
    while (*n > 0 && is_space((*s)[*n - 1]))
        --*n;
}

/* True if text[from .. to) consists of whole characters; bytes that are no character count as one, unless a later byte completes them. */
static bool is_whole(const char *text, size_t from, size_t to, size_t n_text) {
    while (from < to) {
        const size_t n = ggl_utf8_length(text + from, to - from);
        if (n == 0)
            return ggl_utf8_length(text + from, n_text - from) == 0;
        from += n;
    }
    return true;
}

/* True if a word begins with the n bytes. */
static bool begins(const char *s, size_t n) {
    if (n > 0 && *s == ' ')
        return true;
    llm_word_trim(&s, &n);
    return llm_word_is_of("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", s, n);
}

void llm_word_split(const char *text, const size_t *at, size_t n, bool no_spaces, word_part *part,
                    size_t *n_parts) {
    size_t first = 0;
    *n_parts = 0;
    for (size_t k = 0; k < n; k++) {
        const size_t from = at[first], to = at[k + 1];
        if (k + 1 < n && !is_whole(text, from, to, at[n]))
            continue;
        if (*n_parts == 0 || no_spaces || begins(text + from, to - from))
            part[(*n_parts)++] = (word_part){.text = from};
        word_part *p = &part[*n_parts - 1];
        p->n_tokens += k + 1 - first;
        p->n_text += to - from;
        first = k + 1;
    }
}
