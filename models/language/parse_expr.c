/* Parses expressions by precedence climbing. Limits the depth of trees, because evaluation is
 * recursive. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "language.h"

typedef enum assoc { LEFT, RIGHT, NONE } assoc;

typedef struct infix {
    const char *symbol;
    int level;
    assoc assoc;
    arch_expr_kind kind;
} infix;

/* Loosest first. LEVEL_NOT and LEVEL_NEG are the levels of the unary operators `not` and `-`. */
enum {
    LEVEL_OR = 1,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARE,
    LEVEL_ELSE,
    LEVEL_ADD,
    LEVEL_MUL,
    LEVEL_NEG,
    LEVEL_POW
};

static const infix infixes[] = {
    {"or", LEVEL_OR, LEFT, EX_OR},          {"and", LEVEL_AND, LEFT, EX_AND},
    {"==", LEVEL_COMPARE, NONE, EX_BINARY}, {"!=", LEVEL_COMPARE, NONE, EX_BINARY},
    {"<", LEVEL_COMPARE, NONE, EX_BINARY},  {"<=", LEVEL_COMPARE, NONE, EX_BINARY},
    {">", LEVEL_COMPARE, NONE, EX_BINARY},  {">=", LEVEL_COMPARE, NONE, EX_BINARY},
    {"in", LEVEL_COMPARE, NONE, EX_IN},     {"??", LEVEL_ELSE, RIGHT, EX_OR_ELSE},
    {"+", LEVEL_ADD, LEFT, EX_BINARY},      {"-", LEVEL_ADD, LEFT, EX_BINARY},
    {"*", LEVEL_MUL, LEFT, EX_BINARY},      {"/", LEVEL_MUL, LEFT, EX_BINARY},
    {"%", LEVEL_MUL, LEFT, EX_BINARY},      {"**", LEVEL_POW, RIGHT, EX_BINARY},
};

static arch_expr *parse_level(arch_parser *p, int level);

/* Counts the parser's recursion. False: too deep, reported. */
static bool enter(arch_parser *p) {
    /* A bracket or operator takes up to two levels; finish() limits the depth of trees. */
    if (p->depth >= 4 * ARCH_MAX_NESTING) {
        llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok), "nested too deep");
        return false;
    }
    p->depth++;
    return true;
}

static arch_expr *new_expr(arch_parser *p, arch_expr_kind kind, arch_place mark) {
    arch_expr *e = llm_arch_parse_alloc(p, 1, sizeof *e);
    if (e) {
        e->kind = kind;
        e->place = e->mark = mark;
        e->depth = 1;
        e->local = e->global = -1;
    }
    return e;
}

/* Sets e's place, from `begin` to the last token, and its depth. NULL: too deep, reported. */
static arch_expr *finish(arch_parser *p, arch_expr *e, arch_place begin) {
    const arch_token *last = p->tok - 1;
    e->place = begin;
    e->place.n = last->at + last->n - begin.at;
    const arch_expr *child[3] = {e->a, e->b, e->c};
    for (int k = 0; k < 3; k++)
        if (child[k] && child[k]->depth >= e->depth)
            e->depth = child[k]->depth + 1;
    for (int k = 0; k < e->n_arg; k++)
        if (e->arg[k].value->depth >= e->depth)
            e->depth = e->arg[k].value->depth + 1;
    if (e->depth > ARCH_MAX_NESTING)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, e->mark,
                                      "this expression is nested more than %d operations deep",
                                      ARCH_MAX_NESTING);
    return e;
}

/* --- atoms ------------------------------------------------------------------------------------ */

/* { expr | NAME "=" expr } up to `end`; named arguments come last. */
static bool parse_args(arch_parser *p, arch_expr *e, const char *end, bool names) {
    arch_arg arg[ARCH_MAX_ARGS];
    int n = 0;
    bool named = false;
    while (!llm_arch_is(p, end)) {
        if (n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d of them", ARCH_MAX_ARGS);
        arg[n] = (arch_arg){.place = llm_arch_token_place(p, p->tok)};
        bool is_name = names && p->tok->kind == TOK_NAME && p->tok[1].kind == TOK_SYMBOL &&
                       strcmp(p->tok[1].str, "=") == 0;
        if (is_name) {
            arg[n].name = p->tok->str;
            p->tok += 2;
            named = true;
        } else if (named) {
            return llm_arch_parse_fail(p,
                                       "arguments without a name must come before those with one");
        }
        arg[n].value = llm_arch_parse_expr(p);
        if (!arg[n].value)
            return false;
        n++;
        if (!llm_arch_is(p, end) && !llm_arch_expect(p, ",",
                                                     end[0] == ')' ? "or ')' between arguments"
                                                                   : "or ']' between elements"))
            return false;
    }
    p->tok++;
    e->n_arg = n;
    e->arg = llm_arch_parse_copy(p, arg, n, sizeof *arg);
    return e->arg != NULL;
}

/* key("a.b"): a key given by its full name. */
static arch_expr *parse_whole_key(arch_parser *p, arch_place begin) {
    p->tok += 2;
    if (p->tok->kind != TOK_STRING)
        return llm_arch_parse_fail(
            p, "key(..) needs the key's full name in quotes: key(\"general.name\")");
    arch_expr *e = new_expr(p, EX_KEY, begin);
    if (!e)
        return NULL;
    e->name = p->tok->str;
    e->whole = true;
    p->tok++;
    return llm_arch_expect(p, ")", "after the key's name") ? finish(p, e, begin) : NULL;
}

static arch_expr *parse_has(arch_parser *p, arch_place begin) {
    p->tok++;
    if (!llm_arch_expect(p, "(", "after has"))
        return NULL;
    arch_expr *e = new_expr(p, EX_HAS, begin);
    if (!e || !(e->a = llm_arch_parse_expr(p)))
        return NULL;
    return llm_arch_expect(p, ")", "after the argument of has(..)") ? finish(p, e, begin) : NULL;
}

/* reads(.key) and names(.key), in the prelude and known_keys.arch only. */
static arch_expr *parse_asks(arch_parser *p, arch_place begin, arch_expr_kind kind) {
    p->tok += 2;
    if (p->tok->kind != TOK_KEY)
        return llm_arch_parse_fail(p, "a key is expected: reads(.a.b), names(.a.b)");
    arch_expr *e = new_expr(p, kind, begin);
    if (!e || !(e->a = llm_arch_parse_atom(p)))
        return NULL;
    return llm_arch_expect(p, ")", "after the key") ? finish(p, e, begin) : NULL;
}

arch_expr *llm_arch_parse_name(arch_parser *p) {
    arch_expr *e = new_expr(p, EX_NAME, llm_arch_token_place(p, p->tok));
    if (e)
        e->name = p->tok->str;
    p->tok++;
    return e;
}

static arch_expr *parse_word(arch_parser *p, arch_place begin) {
    const char *word = p->tok->str;
    bool called = p->tok[1].kind == TOK_SYMBOL && strcmp(p->tok[1].str, "(") == 0;
    if (strcmp(word, "has") == 0)
        return parse_has(p, begin);
    if (p->text->prelude && strcmp(word, "language") == 0) {
        p->tok++;
        return new_expr(p, EX_LANGUAGE, begin);
    }
    if (strcmp(word, "key") == 0 && called)
        return parse_whole_key(p, begin);
    if (p->text->prelude && called && (strcmp(word, "reads") == 0 || strcmp(word, "names") == 0))
        return parse_asks(p, begin, word[0] == 'r' ? EX_READS : EX_NAMES);
    bool is_true = strcmp(word, "true") == 0;
    if (is_true || strcmp(word, "false") == 0 || strcmp(word, "none") == 0) {
        arch_expr *e = new_expr(p, word[0] == 'n' ? EX_NONE : EX_BOOL, begin);
        if (e)
            e->num = is_true;
        p->tok++;
        return e;
    }
    if (llm_arch_is_reserved(word))
        return llm_arch_parse_fail(p, "a value is expected here, not '%s'", word);
    if (!called)
        return llm_arch_parse_name(p);
    arch_expr *e = new_expr(p, EX_CALL, begin);
    if (!e)
        return NULL;
    e->name = word;
    p->tok += 2;
    if (!parse_args(p, e, ")", true) || !finish(p, e, begin))
        return NULL;
    return llm_arch_resolve_call(p, e) ? e : NULL;
}

arch_expr *llm_arch_parse_atom(arch_parser *p) {
    const arch_token *t = p->tok;
    arch_place begin = llm_arch_token_place(p, t);
    char buf[96];
    if (t->kind == TOK_NAME)
        return parse_word(p, begin);
    if (t->kind == TOK_NUMBER || t->kind == TOK_STRING || t->kind == TOK_KEY) {
        arch_expr *e = new_expr(p,
                                t->kind == TOK_NUMBER   ? EX_NUMBER
                                : t->kind == TOK_STRING ? EX_STRING
                                                        : EX_KEY,
                                begin);
        if (e) {
            e->num = t->num;
            e->name = t->str;
        }
        p->tok++;
        return e;
    }
    if (llm_arch_accept(p, "(")) {
        arch_expr *e = llm_arch_parse_expr(p);
        if (!e || !llm_arch_expect(p, ")", "to close '('"))
            return NULL;
        e->in_brackets = true;
        e->place = begin; /* quotations include the brackets */
        e->place.n = p->tok[-1].at + p->tok[-1].n - begin.at;
        return e;
    }
    if (llm_arch_accept(p, "[")) {
        arch_expr *e = new_expr(p, EX_LIST, begin);
        return e && parse_args(p, e, "]", false) ? finish(p, e, begin) : NULL;
    }
    return llm_arch_parse_fail(p, "a value is expected here, not %s",
                               llm_arch_describe(t, buf, sizeof buf));
}

static bool is_part(const char *name) {
    static const char *const parts[] = {"bias",  "t",      "x",      "y",       "corner",
                                        "share", "window", "lines",  "columns", "there",
                                        "line",  "column", "picture"};
    bool found = false;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        found |= strcmp(parts[k], name) == 0;
    return found;
}

static arch_expr *parse_postfix(arch_parser *p) {
    arch_place begin = llm_arch_token_place(p, p->tok);
    arch_expr *e = llm_arch_parse_atom(p);
    while (e && (llm_arch_is(p, "[") || llm_arch_is(p, "."))) {
        bool index = llm_arch_is(p, "[");
        arch_expr *f = new_expr(p, index ? EX_INDEX : EX_PART, llm_arch_token_place(p, p->tok));
        if (!f)
            return NULL;
        f->a = e;
        p->tok++;
        if (index) {
            if (!(f->b = llm_arch_parse_expr(p)) || !llm_arch_expect(p, "]", "after the index"))
                return NULL;
        } else {
            if (p->tok->kind != TOK_NAME && !(p->in_convert && p->tok->kind == TOK_STRING))
                return llm_arch_parse_fail(p, "a name is expected after '.'");
            f->name = p->tok->str;
            if (p->in_convert)
                f->kind = EX_FIELD;
            else if (!is_part(f->name))
                return llm_arch_parse_fail(p,
                                           "values have no part '%s'; weights have '.bias', and "
                                           "places .t, .x and .y",
                                           f->name);
            f->mark = llm_arch_token_place(p, p->tok++);
        }
        e = finish(p, f, begin);
    }
    return e;
}

/* --- operators -------------------------------------------------------------------------------- */

static const infix *next_infix(const arch_parser *p) {
    if (p->tok->kind != TOK_SYMBOL && p->tok->kind != TOK_NAME)
        return NULL;
    for (size_t k = 0; k < sizeof infixes / sizeof *infixes; k++)
        if (strcmp(p->tok->str, infixes[k].symbol) == 0)
            return &infixes[k];
    return NULL;
}

static arch_expr *parse_prefix(arch_parser *p, arch_expr_kind kind, int level) {
    arch_place begin = llm_arch_token_place(p, p->tok);
    arch_expr *e = new_expr(p, kind, begin);
    p->tok++;
    if (!e || !(e->a = parse_level(p, level)))
        return NULL;
    return finish(p, e, begin);
}

static arch_expr *parse_operand(arch_parser *p) {
    if (llm_arch_is(p, "-"))
        return parse_prefix(p, EX_NEG, LEVEL_NEG);
    if (llm_arch_is(p, "not"))
        return parse_prefix(p, EX_NOT, LEVEL_NOT);
    return parse_postfix(p);
}

/* Parses an expression of operators of this level or a tighter one. */
static arch_expr *parse_level(arch_parser *p, int level) {
    if (!enter(p))
        return NULL;
    arch_place begin = llm_arch_token_place(p, p->tok);
    arch_expr *e = parse_operand(p);
    const infix *op, *last = NULL;
    while (e && (op = next_infix(p)) && op->level >= level) {
        if (last && last->assoc == NONE && last->level == op->level) {
            e = llm_arch_parse_fail(p, "comparisons do not chain: write a < b and b < c");
            break;
        }
        arch_expr *f = new_expr(p, op->kind, llm_arch_token_place(p, p->tok));
        if (!f) {
            e = NULL;
            break;
        }
        f->op = op->kind == EX_BINARY ? ggl_op_find(op->symbol) : GGL_OP_COUNT;
        f->name = op->symbol;
        p->tok++;
        f->a = e;
        f->b = parse_level(p, op->assoc == RIGHT ? op->level : op->level + 1);
        e = f->b ? finish(p, f, begin) : NULL;
        last = op;
    }
    p->depth--;
    return e;
}

/* or ["if" or "else" expr] */
arch_expr *llm_arch_parse_expr(arch_parser *p) {
    arch_place begin = llm_arch_token_place(p, p->tok);
    arch_expr *value = parse_level(p, LEVEL_OR);
    if (!value || !llm_arch_is(p, "if"))
        return value;
    if (!enter(p))
        return NULL;
    arch_expr *e = new_expr(p, EX_IF, llm_arch_token_place(p, p->tok));
    p->tok++;
    if (!e || !(e->c = parse_level(p, LEVEL_OR)))
        return NULL;
    e->a = value;
    if (!llm_arch_accept(p, "else"))
        return llm_arch_parse_fail(p, "'else' is expected: an inline 'if' needs both arms");
    e->b = llm_arch_parse_expr(p);
    p->depth--;
    return e->b ? finish(p, e, begin) : NULL;
}

arch_expr **llm_arch_parse_exprs(arch_parser *p, int *n) {
    arch_expr *list[ARCH_MAX_ARGS];
    *n = 0;
    do {
        if (*n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d of them", ARCH_MAX_ARGS);
        list[*n] = llm_arch_parse_expr(p);
        if (!list[(*n)++])
            return NULL;
    } while (llm_arch_accept(p, ","));
    return llm_arch_parse_copy(p, list, *n, sizeof *list);
}

bool llm_arch_one_expr(arch_parser *p, arch_stmt *s) {
    s->n_expr = 1;
    s->expr = llm_arch_parse_alloc(p, 1, sizeof *s->expr);
    return s->expr && (s->expr[0] = llm_arch_parse_expr(p)) != NULL;
}

arch_stmt *llm_arch_parse_require(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_REQUIRE);
    const char *word = p->tok->str; /* "require", or "note" in a convert section */
    p->tok++;
    if (!s || !llm_arch_one_expr(p, s))
        return NULL;
    if (llm_arch_accept(p, ",")) {
        if (p->tok->kind != TOK_STRING)
            return llm_arch_parse_fail(p, "the message of a '%s' must be in quotes", word);
        s->string = p->tok->str;
        p->tok++;
    }
    return llm_arch_end_of_line(p) ? s : NULL;
}
