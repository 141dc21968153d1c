#include "bracket.h"

#include <ctype.h>

#include "utf8.h"

static const struct {
    const char *name;
    int (*has)(int c);
} classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
               {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
               {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};

static const struct {
    char letter;
    const char *text;
} named[] = {{'d', "[[:digit:]]"},  {'D', "[^[:digit:]]"}, {'s', "[[:space:]]"},
             {'S', "[^[:space:]]"}, {'w', "[_[:alnum:]]"}, {'W', "[^_[:alnum:]]"}};

const char *llm_bracket_named(char letter) {
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (named[i].letter == letter)
            return named[i].text;
    return NULL;
}

bool llm_is_word(uint32_t c) {
    return c == '_' || (c < 128 && isalnum((int)c));
}

/* A bracket expression while it is read. */
typedef struct reader {
    ggl_str rest;
    bool is_shell;
    uint32_t c;
    bool has;
    const char *fault;
} reader;

static bool take(reader *r, const char *text) {
    const size_t n = strlen(text);
    if (r->rest.n < n || memcmp(r->rest.s, text, n) != 0)
        return false;
    r->rest = (ggl_str){r->rest.s + n, r->rest.n - n};
    return true;
}

/* Reads the name and the ":]" of a class. */
static void read_class(reader *r) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (take(r, classes[i].name)) {
            r->has |= r->c < 128 && classes[i].has((int)r->c);
            r->fault = take(r, ":]") ? NULL : "a class of characters ends with ':]'";
            return;
        }
    r->fault = "no class has this name; classes are alnum, alpha, blank, cntrl, digit, graph, "
               "lower, print, punct, space, upper and xdigit";
}

/* Reads a character, also as [.c.], [=c=] or after a '\'. */
static uint32_t read_char(reader *r) {
    const char *const end = take(r, "[.") ? ".]" : take(r, "[=") ? "=]" : "";
    const ggl_str before = r->rest;
    const bool escaped = !*end && take(r, "\\");
    if (r->rest.n == 0) {
        r->fault = "the '[' is not closed by ']'";
        return 0;
    }
    if (escaped && !r->is_shell && isalnum((unsigned char)*r->rest.s)) {
        r->rest = before;
        r->fault = "in brackets, this letter or digit has no meaning after '\\'";
        return 0;
    }
    const uint32_t c = llm_take_char(&r->rest);
    if (!take(r, end))
        r->fault = "only a single character can stand between '[.' and '.]', or '[=' and '=]'";
    return c;
}

/* Reads a character or a range of them. */
static void read_range(reader *r) {
    const ggl_str from = r->rest;
    const uint32_t first = read_char(r);
    uint32_t last = first;
    if (!r->fault && r->rest.n > 1 && r->rest.s[1] != ']' && take(r, "-"))
        last = read_char(r);
    if (!r->fault && last < first && !r->is_shell) {
        r->rest = from;
        r->fault = "the end of the range is before its beginning";
    }
    r->has |= first <= r->c && r->c <= last;
}

llm_bracket llm_bracket_read(ggl_str s, size_t at, bool is_shell, uint32_t c) {
    reader r = {{s.s + at, s.n - at}, is_shell, c, false, NULL};
    const bool negated = take(&r, "^") || (is_shell && take(&r, "!"));
    const char *const first = r.rest.s, *word;
    while (!r.fault && (r.rest.s == first || !take(&r, "]"))) {
        if (take(&r, "[:")) {
            read_class(&r);
        } else if (!is_shell && r.rest.n > 1 && *r.rest.s == '\\' &&
                   (word = llm_bracket_named(r.rest.s[1]))) {
            r.rest = (ggl_str){r.rest.s + 2, r.rest.n - 2};
            r.has |= llm_bracket_read((ggl_str){word, strlen(word)}, 1, false, c).has;
        } else {
            read_range(&r);
        }
    }
    const size_t end = (size_t)(r.rest.s - s.s);
    return r.fault ? (llm_bracket){.fault = r.fault, .at = r.rest.n ? end : at - 1}
                   : (llm_bracket){.end = end, .has = r.has != negated};
}
