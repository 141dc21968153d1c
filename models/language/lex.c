/* Splits a text into tokens. A line ends a statement, except inside ( ) and [ ]. Indentation by
 * spaces marks blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/number.h"
#include "language.h"

typedef struct lexer {
    const arch_text *text;
    const char *s;
    size_t n, i;
    ggl_arena *arena;
    arch_token *tok;
    size_t n_tok, cap_tok;
    char open[ARCH_MAX_NESTING]; /* brackets not yet closed */
    uint32_t open_at[ARCH_MAX_NESTING];
    int n_open;
    int indent[ARCH_MAX_NESTING]; /* columns of the blocks not yet ended */
    int n_indent, line;
    ggl_status status;
    ggl_error *err;
} lexer;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
static bool is_name(char c) {
    return is_letter(c) || is_digit(c);
}

static char peek(const lexer *l, size_t k) {
    return l->i + k < l->n ? l->s[l->i + k] : 0;
}

static bool fail(lexer *l, ggl_status s, size_t at, size_t n, const char *what) {
    if (l->status == GGL_OK)
        l->status = llm_arch_fail(l->err, s, (arch_place){l->text, (uint32_t)at, (uint32_t)n}, NULL,
                                  NULL, "%s", what);
    return false;
}

static arch_token *push(lexer *l, arch_token_kind kind, size_t at, size_t n) {
    if (!ggl_grow(&l->tok, &l->cap_tok, l->n_tok + 1, sizeof *l->tok)) {
        l->status = ggl_fail(l->err, GGL_NOMEM, "%s: out of memory", l->text->name);
        return NULL;
    }
    arch_token *t = &l->tok[l->n_tok++];
    *t = (arch_token){.kind = kind, .at = (uint32_t)at, .n = (uint32_t)n, .line = l->line};
    return t;
}

static bool push_text(lexer *l, arch_token_kind kind, size_t at, size_t n, size_t str_at,
                      size_t str_n) {
    arch_token *t = push(l, kind, at, n);
    if (!t)
        return false;
    t->str = ggl_arena_strndup(l->arena, l->s + str_at, str_n);
    if (!t->str)
        l->status = ggl_fail(l->err, GGL_NOMEM, "%s: out of memory", l->text->name);
    return t->str != NULL;
}

static bool check_utf8(lexer *l) {
    for (size_t i = 0; i < l->n;) {
        size_t n = ggl_utf8_length(l->s + i, l->n - i);
        if (n == 0 || l->s[i] == 0)
            return fail(l, GGL_FORMAT, i, 1,
                        n == 0 ? "the text is not valid UTF-8 here" : "a NUL byte");
        i += n;
    }
    return true;
}

static bool lex_name(lexer *l) {
    size_t at = l->i;
    while (is_name(peek(l, 0)))
        l->i++;
    if (l->i - at > ARCH_MAX_NAME)
        return fail(l, GGL_LIMIT, at, l->i - at, "a name has at most 64 characters");
    return push_text(l, TOK_NAME, at, l->i - at, at, l->i - at);
}

/* Reads '.' and dotted names; the token's string omits the first dot. */
static bool lex_key(lexer *l) {
    size_t at = l->i, part = l->i + 1;
    l->i++;
    while (is_name(peek(l, 0)) || (peek(l, 0) == '.' && is_letter(peek(l, 1)))) {
        if (peek(l, 0) == '.')
            part = l->i + 1;
        l->i++;
        if (l->i - part > ARCH_MAX_NAME || l->i - at > 3 * ARCH_MAX_NAME)
            return fail(l, GGL_LIMIT, at, l->i - at,
                        "a key is at most 192 characters long, its parts at most 64");
    }
    return push_text(l, TOK_KEY, at, l->i - at, at + 1, l->i - at - 1);
}

/* digits [. digits] [e [+-] digits] */
static bool lex_number(lexer *l) {
    size_t at = l->i;
    while (is_digit(peek(l, 0)))
        l->i++;
    if (peek(l, 0) == '.' && is_digit(peek(l, 1))) {
        l->i++;
        while (is_digit(peek(l, 0)))
            l->i++;
    }
    size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
    if ((peek(l, 0) == 'e' || peek(l, 0) == 'E') && is_digit(peek(l, 1 + sign))) {
        l->i += 1 + sign;
        while (is_digit(peek(l, 0)))
            l->i++;
    }
    if (is_letter(peek(l, 0)))
        return fail(l, GGL_FORMAT, at, l->i - at + 1,
                    "a name directly after a number: names start with a letter");
    if (l->i - at > ARCH_MAX_NAME)
        return fail(l, GGL_LIMIT, at, l->i - at, "a number has at most 64 characters");
    arch_token *t = push(l, TOK_NUMBER, at, l->i - at);
    if (!t)
        return false;
    t->num = ggl_number_value(l->s + at, l->i - at);
    if (t->num > 1e300)
        return fail(l, GGL_LIMIT, at, l->i - at, "this number is too large");
    return true;
}

static bool lex_string(lexer *l) {
    size_t at = l->i++;
    while (l->i < l->n && l->s[l->i] != '"' && l->s[l->i] != '\n')
        l->i++;
    if (peek(l, 0) != '"')
        return fail(l, GGL_FORMAT, at, l->i - at, "this string is not closed in its line");
    l->i++;
    if (l->i - at - 2 > 4 * ARCH_MAX_NAME)
        return fail(l, GGL_LIMIT, at, l->i - at, "a string has at most 256 bytes");
    return push_text(l, TOK_STRING, at, l->i - at, at + 1, l->i - at - 2);
}

static bool lex_bracket(lexer *l) {
    char c = peek(l, 0);
    if (c == '(' || c == '[') {
        if (l->n_open == ARCH_MAX_NESTING)
            return fail(l, GGL_LIMIT, l->i, 1, "brackets are nested more than 100 deep");
        l->open_at[l->n_open] = (uint32_t)l->i;
        l->open[l->n_open++] = c;
    } else if (l->n_open == 0 || l->open[l->n_open - 1] != (c == ')' ? '(' : '[')) {
        return fail(l, GGL_FORMAT, l->i, 1,
                    c == ')' ? "there is no '(' for this ')'" : "there is no '[' for this ']'");
    } else {
        l->n_open--;
    }
    return true;
}

static bool lex_symbol(lexer *l) {
    static const char *const symbols[] = {"**", "??", "==", "!=", "<=", ">=", "(", ")",
                                          "[",  "]",  ",",  ":",  "=",  "<",  ">", "+",
                                          "-",  "*",  "/",  "%",  "?",  "."};
    size_t len;
    const char *meant = llm_arch_meant_symbol(l->s + l->i, l->n - l->i, &len);
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols; k++) {
        size_t n = strlen(symbols[k]);
        if (meant && len >= n)
            continue; /* the longer match is "//" */
        if (l->i + n > l->n || memcmp(l->s + l->i, symbols[k], n) != 0)
            continue;
        if (strchr("()[]", symbols[k][0]) && !lex_bracket(l))
            return false;
        arch_token *t = push(l, TOK_SYMBOL, l->i, n);
        if (t)
            t->str = symbols[k];
        l->i += n;
        return t != NULL;
    }
    if (meant)
        return fail(l, GGL_FORMAT, l->i, len, meant);
    char what[64];
    size_t n = ggl_utf8_length(l->s + l->i, l->n - l->i);
    if (l->s[l->i] == '\t')
        return fail(l, GGL_FORMAT, l->i, 1, "a tab: use spaces in a descriptor");
    snprintf(what, sizeof what, "the character '%.*s' has no meaning here", (int)n, l->s + l->i);
    return fail(l, GGL_FORMAT, l->i, n, what);
}

/* Called at the first token of a line: pushes an INDENT or DEDENTs if its column differs from
 * the previous line's. */
static bool lex_indent(lexer *l, size_t begin) {
    int col = (int)(l->i - begin);
    if (col > l->indent[l->n_indent - 1]) {
        if (l->n_indent == ARCH_MAX_NESTING)
            return fail(l, GGL_LIMIT, l->i, 1, "blocks are nested more than 100 deep");
        l->indent[l->n_indent++] = col;
        return push(l, TOK_INDENT, l->i, 0) != NULL;
    }
    while (col < l->indent[l->n_indent - 1]) {
        l->n_indent--;
        if (!push(l, TOK_DEDENT, l->i, 0))
            return false;
    }
    if (col != l->indent[l->n_indent - 1])
        return fail(l, GGL_FORMAT, l->i, 1,
                    "the indentation of this line does not match any block above it");
    return true;
}

/* Skips spaces and a comment. */
static void skip_blank(lexer *l) {
    while (peek(l, 0) == ' ' || peek(l, 0) == '\r')
        l->i++;
    if (peek(l, 0) == '#')
        while (l->i < l->n && l->s[l->i] != '\n')
            l->i++;
}

static bool lex_token(lexer *l) {
    char c = peek(l, 0), before = l->i > 0 ? l->s[l->i - 1] : 0;
    if (is_letter(c))
        return lex_name(l);
    if (is_digit(c))
        return lex_number(l);
    if (c == '"')
        return lex_string(l);
    if (c == '.' && is_letter(peek(l, 1)) && !is_name(before) && before != ')' && before != ']' &&
        before != '"')
        return lex_key(l);
    return lex_symbol(l);
}

static bool lex_line(lexer *l) {
    size_t begin = l->i;
    skip_blank(l);
    if (l->i == l->n || peek(l, 0) == '\n')
        return true; /* an empty line */
    if (l->n_open == 0 && !lex_indent(l, begin))
        return false;
    while (l->i < l->n && peek(l, 0) != '\n') {
        if (!lex_token(l))
            return false;
        skip_blank(l);
    }
    return l->n_open > 0 || push(l, TOK_NEWLINE, l->i, 0) != NULL;
}

static bool lex_text(lexer *l) {
    if (l->n > ARCH_MAX_TEXT)
        return fail(l, GGL_LIMIT, 0, 1, "a descriptor has at most 256 KiB");
    if (!check_utf8(l))
        return false;
    l->indent[l->n_indent++] = 0;
    for (l->line = 1; l->i < l->n; l->line++) {
        if (!lex_line(l))
            return false;
        l->i++; /* the newline */
    }
    if (l->n_open > 0) {
        bool round = l->open[l->n_open - 1] == '(';
        return fail(l, GGL_FORMAT, l->open_at[l->n_open - 1], 1,
                    round ? "this '(' is never closed" : "this '[' is never closed");
    }
    for (int k = 1; k < l->n_indent; k++)
        if (!push(l, TOK_DEDENT, l->n, 0))
            return false;
    return push(l, TOK_END, l->n, 0) != NULL;
}

ggl_status llm_arch_lex(const arch_text *text, ggl_arena *arena, arch_token **out, ggl_error *err) {
    lexer l = {.text = text, .s = text->s, .n = text->n, .arena = arena, .err = err};
    *out = NULL;
    bool ok = lex_text(&l);
    if (ok) {
        *out = ggl_arena_alloc(arena, l.n_tok, sizeof **out);
        if (*out)
            memcpy(*out, l.tok, l.n_tok * sizeof **out);
        else
            l.status = ggl_fail(err, GGL_NOMEM, "%s: out of memory", text->name);
    }
    ggl_free(l.tok);
    return l.status;
}

bool llm_arch_next_term(const char **s, const char *end, ggl_str *term) {
    if (*s > end)
        return false;
    const char *to = *s, *from = *s;
    while (to < end && *to != '+' && *to != '-')
        to++;
    *s = to;
    while (from < to && *from == ' ')
        from++;
    while (to > from && to[-1] == ' ')
        to--;
    *term = (ggl_str){from, (size_t)(to - from)};
    return true;
}
