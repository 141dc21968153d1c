#include "glob.h"

#include <ctype.h>

#include "bracket.h"
#include "ggl/internal/steps.h"
#include "utf8.h"

/* A kind of patterns: returns how many bytes of the text (n > 0) the element of the pattern at *at stands for, and sets *at to the next
 * one; 0: it does not fit. */
typedef size_t element_fn(ggl_str pattern, size_t *at, char number, ggl_str text);

static size_t take_literal(ggl_str pattern, size_t *at, ggl_str text) {
    return *at < pattern.n && pattern.s[(*at)++] == *text.s;
}

static size_t take_of_shell(ggl_str pattern, size_t *at, char number, ggl_str text) {
    (void)number;
    ggl_str rest = text;
    const char special = pattern.s[*at];
    if (special == '?' || special == '[') {
        const uint32_t c = llm_take_char(&rest);
        const llm_bracket b = special == '[' ? llm_bracket_read(pattern, *at + 1, true, c)
                                             : (llm_bracket){.end = *at + 1, .has = true};
        if (b.end > 0) {
            *at = b.end;
            return b.has ? text.n - rest.n : 0;
        }
    }
    *at += special == '\\';
    return take_literal(pattern, at, text);
}

static size_t take_of_stars(ggl_str pattern, size_t *at, char number, ggl_str text) {
    size_t n = 0;
    if (!number || pattern.s[*at] != number)
        return take_literal(pattern, at, text);
    while (n < text.n && isdigit((unsigned char)text.s[n]))
        n++;
    ++*at;
    return n;
}

/* Goes back to the last '*' alone, which then stands for one more character: what follows an earlier '*' can begin no later than
 * where it was found. */
static bool match(ggl_str pattern, element_fn *take, char number, ggl_str text) {
    ggl_str behind = {NULL, 0}; /* text behind what the last '*' stands for */
    size_t at = 0, star = 0;
    while (text.n > 0) {
        size_t next = at, n;
        GGL_STEPS(1);
        if (at < pattern.n && pattern.s[at] == '*') {
            star = ++at;
            behind = text;
        } else if (at < pattern.n && (n = take(pattern, &next, number, text)) > 0) {
            at = next;
            text = (ggl_str){text.s + n, text.n - n};
        } else if (behind.s) {
            llm_take_char(&behind);
            at = star;
            text = behind;
        } else {
            return false;
        }
    }
    while (at < pattern.n && pattern.s[at] == '*')
        at++;
    return at == pattern.n;
}

bool llm_glob_matches(ggl_str pattern, ggl_str text) {
    return match(pattern, take_of_shell, 0, text);
}

bool llm_stars_match(ggl_str pattern, char number, ggl_str text) {
    return match(pattern, take_of_stars, number, text);
}
