/* What all parts of the parser use: the next token, errors, memory. */
#include <stdio.h>
#include <string.h>

#include "language.h"

arch_place llm_arch_token_place(const arch_parser *p, const arch_token *t) {
    return (arch_place){p->text, t->at, t->n};
}

void *llm_arch_parse_fail_at(arch_parser *p, ggl_status s, arch_place place, const char *fmt, ...) {
    if (p->status == GGL_OK) {
        va_list args;
        va_start(args, fmt);
        p->status = llm_arch_failv(p->err, s, place, NULL, NULL, fmt, args);
        va_end(args);
    }
    return NULL;
}

void *llm_arch_parse_fail(arch_parser *p, const char *fmt, ...) {
    if (p->status == GGL_OK) {
        va_list args;
        va_start(args, fmt);
        p->status = llm_arch_failv(p->err, GGL_FORMAT, llm_arch_token_place(p, p->tok), NULL, NULL,
                                   fmt, args);
        va_end(args);
    }
    return NULL;
}

void *llm_arch_parse_alloc(arch_parser *p, size_t n, size_t size) {
    void *out = ggl_arena_alloc(p->arena, n > 0 ? n : 1, size);
    if (!out && p->status == GGL_OK)
        p->status = ggl_fail(p->err, GGL_NOMEM, "%s: out of memory", p->text->name);
    return out;
}

void *llm_arch_parse_copy(arch_parser *p, const void *from, int n, size_t size) {
    void *out = llm_arch_parse_alloc(p, (size_t)n, size);
    if (out)
        memcpy(out, from, (size_t)n * size);
    return out;
}

bool llm_arch_is(const arch_parser *p, const char *word) {
    return (p->tok->kind == TOK_SYMBOL || p->tok->kind == TOK_NAME) &&
           strcmp(p->tok->str, word) == 0;
}

bool llm_arch_accept(arch_parser *p, const char *word) {
    bool yes = llm_arch_is(p, word);
    p->tok += yes;
    return yes;
}

bool llm_arch_expect(arch_parser *p, const char *symbol, const char *where) {
    char buf[96];
    if (!llm_arch_accept(p, symbol)) {
        llm_arch_parse_fail(p, "'%s' is expected %s, not %s", symbol, where,
                            llm_arch_describe(p->tok, buf, sizeof buf));
        return false;
    }
    return true;
}

const char *llm_arch_describe(const arch_token *t, char *buf, size_t size) {
    switch (t->kind) {
    case TOK_END:
        return "the end of the text";
    case TOK_NEWLINE:
        return "the end of the line";
    case TOK_INDENT:
        return "an indented line";
    case TOK_DEDENT:
        return "the end of the block";
    case TOK_NUMBER:
        return "a number";
    case TOK_STRING:
        return "a string";
    case TOK_KEY:
        snprintf(buf, size, "the key .%s", t->str);
        return buf;
    default:
        snprintf(buf, size, "'%s'", t->str);
        return buf;
    }
}

bool llm_arch_is_reserved(const char *word) {
    static const char *const words[] = {"if",   "elif",  "else", "and", "or",     "not",    "in",
                                        "true", "false", "none", "has", "return", "require"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strcmp(word, words[k]) == 0)
            return true;
    return false;
}

bool llm_arch_next_is(const arch_parser *p, arch_token_kind kind) {
    return p->tok[1].kind == kind;
}

bool llm_arch_next_is_symbol(const arch_parser *p, const char *symbol) {
    return p->tok[1].kind == TOK_SYMBOL && strcmp(p->tok[1].str, symbol) == 0;
}

bool llm_arch_end_of_line(arch_parser *p) {
    char buf[96];
    if (p->tok->kind == TOK_NEWLINE) {
        p->tok++;
        return true;
    }
    if (llm_arch_is(p, "?"))
        llm_arch_parse_fail(p, "write 'a if c else b' instead of 'c ? a : b'");
    else
        llm_arch_parse_fail(p, "the line should end here, but there is %s",
                            llm_arch_describe(p->tok, buf, sizeof buf));
    return false;
}

arch_stmt *llm_arch_new_stmt(arch_parser *p, arch_stmt_kind kind) {
    arch_stmt *s = llm_arch_parse_alloc(p, 1, sizeof *s);
    if (s) {
        s->kind = kind;
        s->place = llm_arch_token_place(p, p->tok);
        s->line = p->tok->line;
    }
    return s;
}

const char **llm_arch_parse_names(arch_parser *p, int *n, arch_place *place) {
    const char *name[ARCH_MAX_ARGS];
    *n = 0;
    do {
        if (*n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d names", ARCH_MAX_ARGS);
        if ((p->tok->kind != TOK_NAME && p->tok->kind != TOK_STRING) || p->tok->str[0] == 0)
            return llm_arch_parse_fail(p, "a name is expected, either a word or in quotes");
        if (p->tok->n > ARCH_MAX_NAME)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "a name has at most 64 characters");
        if (place)
            place[*n] = llm_arch_token_place(p, p->tok);
        name[(*n)++] = p->tok->str;
        p->tok++;
    } while (llm_arch_accept(p, ","));
    const char **out = llm_arch_parse_alloc(p, (size_t)*n, sizeof *out);
    if (out)
        memcpy(out, name, (size_t)*n * sizeof *out);
    return out;
}
