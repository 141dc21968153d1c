/* Expressions, with the precedences of Jinja: from `if` down to attributes. */
#include <string.h>

#include "parse.h"

/* A list of nodes that is being built. */
typedef struct list {
    tn *first, **last;
} list;

static void add(list *l, tn *t) {
    *(l->last ? l->last : &l->first) = t;
    l->last = &t->next;
}

tn *llm_parse_new(parser *p, tn_kind kind) {
    tn *t = llm_tv_alloc(p->l.h, 1, sizeof *t);
    t->kind = kind;
    t->line = p->l.token.line;
    return t;
}

static tn *new_with(parser *p, tn_kind kind, tn *a, tn *b) {
    tn *t = llm_parse_new(p, kind);
    t->a = a;
    t->b = b;
    return t;
}

bool llm_parse_skip(parser *p, const char *op) {
    if (!llm_lex_is(&p->l, LEX_OPERATOR, op))
        return false;
    llm_lex_next(&p->l);
    return true;
}

bool llm_parse_skip_name(parser *p, const char *name) {
    if (!llm_lex_is(&p->l, LEX_NAME, name))
        return false;
    llm_lex_next(&p->l);
    return true;
}

void llm_parse_unexpected(parser *p, const char *wanted) {
    p->l.h->line = p->l.token.line;
    llm_tv_fail(p->l.h, GGL_FORMAT, "%s was expected, not %s", wanted, llm_lex_show(&p->l));
}

void llm_parse_expect(parser *p, const char *op) {
    if (!llm_parse_skip(p, op))
        llm_parse_unexpected(p, op);
}

void llm_parse_expect_name(parser *p, const char *name) {
    if (!llm_parse_skip_name(p, name))
        llm_parse_unexpected(p, name);
}

int llm_parse_variable(parser *p) {
    static const char *const reserved[] = {"and",  "or",   "not",  "in",    "is",   "if",   "else",
                                           "true", "True", "none", "false", "None", "False"};
    bool fits = p->l.token.kind == LEX_NAME;
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        fits = fits && !llm_lex_is(&p->l, LEX_NAME, reserved[i]);
    if (!fits)
        llm_parse_unexpected(p, "a name");
    int id = llm_tn_name_id(p->t, p->l.token.text);
    llm_lex_next(&p->l);
    return id;
}

/* Reads elements up to the bracket `close`; a comma may stand before it. */
static tn *parse_elements(parser *p, const char *close) {
    list l = {0};
    while (!llm_parse_skip(p, close)) {
        add(&l, llm_parse_expr(p));
        if (!llm_lex_is(&p->l, LEX_OPERATOR, close))
            llm_parse_expect(p, ",");
    }
    return l.first;
}

static tn *parse_dict(parser *p) {
    tn *t = llm_parse_new(p, TN_DICT);
    list l = {0};
    while (!llm_parse_skip(p, "}")) {
        tn *key = llm_parse_expr(p);
        llm_parse_expect(p, ":");
        add(&l, new_with(p, TN_PAIR, key, llm_parse_expr(p)));
        if (!llm_lex_is(&p->l, LEX_OPERATOR, "}"))
            llm_parse_expect(p, ",");
    }
    t->a = l.first;
    return t;
}

/* What follows "(": an expression in parentheses, or a tuple. */
static tn *parse_parentheses(parser *p) {
    if (llm_lex_is(&p->l, LEX_OPERATOR, ")")) {
        tn *empty = llm_parse_new(p, TN_TUPLE);
        llm_lex_next(&p->l);
        return empty;
    }
    tn *t = llm_parse_tuple(p, true);
    llm_parse_expect(p, ")");
    return t;
}

static tn *parse_constant(parser *p, tv value) {
    tn *t = llm_parse_new(p, TN_CONST);
    t->value = value;
    return t;
}

/* Reads string literals that stand side by side as one. */
static tn *parse_string(parser *p) {
    tn *t = parse_constant(p, tv_str(p->l.token.text));
    tv_text all = {0};
    llm_lex_next(&p->l);
    if (p->l.token.kind != LEX_STRING)
        return t;
    llm_tv_put(p->l.h, &all, t->value.text.s, t->value.text.n);
    for (; p->l.token.kind == LEX_STRING; llm_lex_next(&p->l))
        llm_tv_put(p->l.h, &all, p->l.token.text.s, p->l.token.text.n);
    t->value = tv_str(llm_tv_done(&all));
    return t;
}

static tn *parse_name(parser *p) {
    static const struct {
        const char *name;
        tv value;
    } constant[] = {{"true", {.kind = TV_BOOL, .truth = true}},
                    {"True", {.kind = TV_BOOL, .truth = true}},
                    {"false", {.kind = TV_BOOL}},
                    {"False", {.kind = TV_BOOL}},
                    {"none", {.kind = TV_NONE}},
                    {"None", {.kind = TV_NONE}}};
    tn *t = NULL;
    for (size_t i = 0; i < sizeof constant / sizeof *constant && !t; i++)
        if (llm_lex_is(&p->l, LEX_NAME, constant[i].name))
            t = parse_constant(p, constant[i].value);
    if (t) {
        llm_lex_next(&p->l);
        return t;
    }
    t = llm_parse_new(p, TN_NAME);
    t->id = llm_parse_variable(p);
    return t;
}

static tn *parse_primary(parser *p) {
    if (p->l.token.kind == LEX_NAME)
        return parse_name(p);
    if (p->l.token.kind == LEX_STRING)
        return parse_string(p);
    if (p->l.token.kind == LEX_NUMBER) {
        tn *t = parse_constant(p, p->l.token.value);
        llm_lex_next(&p->l);
        return t;
    }
    if (llm_parse_skip(p, "("))
        return parse_parentheses(p);
    if (llm_parse_skip(p, "{"))
        return parse_dict(p);
    if (llm_parse_skip(p, "[")) {
        tn *t = llm_parse_new(p, TN_LIST);
        t->a = parse_elements(p, "]");
        return t;
    }
    llm_parse_unexpected(p, "an expression");
}

tn *llm_parse_args(parser *p) {
    list l = {0};
    while (!llm_parse_skip(p, ")")) {
        tn *arg = llm_parse_new(p, TN_ARG);
        arg->op = llm_parse_skip(p, "**") ? 'D' : llm_parse_skip(p, "*") ? '*' : 0;
        arg->a = llm_parse_expr(p);
        if (!arg->op && arg->a->kind == TN_NAME && llm_parse_skip(p, "=")) {
            arg->name = p->t->names[arg->a->id].text;
            arg->a = llm_parse_expr(p);
        }
        add(&l, arg);
        if (!llm_lex_is(&p->l, LEX_OPERATOR, ")"))
            llm_parse_expect(p, ",");
    }
    return l.first;
}

/* What follows "[": an index or a slice of `object`. */
static tn *parse_index(parser *p, tn *object) {
    tn *t = new_with(p, TN_INDEX, object, NULL);
    if (!llm_lex_is(&p->l, LEX_OPERATOR, ":"))
        t->b = llm_parse_tuple(p, true);
    if (llm_parse_skip(p, ":")) {
        t->kind = TN_SLICE;
        if (!llm_lex_is(&p->l, LEX_OPERATOR, ":") && !llm_lex_is(&p->l, LEX_OPERATOR, "]"))
            t->c = llm_parse_expr(p);
        if (llm_parse_skip(p, ":") && !llm_lex_is(&p->l, LEX_OPERATOR, "]"))
            t->d = llm_parse_expr(p);
    }
    llm_parse_expect(p, "]");
    return t;
}

/* What follows ".": a name, or the number of an element. */
static tn *parse_attribute(parser *p, tn *object) {
    tn *t = new_with(p, TN_ATTR, object, NULL);
    if (p->l.token.kind == LEX_NUMBER && p->l.token.value.kind == TV_INT) {
        t->kind = TN_INDEX;
        t->b = parse_constant(p, p->l.token.value);
    } else if (p->l.token.kind == LEX_NAME) {
        t->name = p->l.token.text;
    } else {
        llm_parse_unexpected(p, "a name");
    }
    llm_lex_next(&p->l);
    return t;
}

static tn *parse_postfix(parser *p, tn *t) {
    for (;;) {
        llm_tv_step(p->l.h, 1);
        if (llm_parse_skip(p, "."))
            t = parse_attribute(p, t);
        else if (llm_parse_skip(p, "["))
            t = parse_index(p, t);
        else if (llm_parse_skip(p, "(")) {
            t = new_with(p, TN_CALL, t, NULL);
            t->b = llm_parse_args(p);
        } else
            return t;
    }
}

/* Reads a filter's or test's name, which may contain dots, and looks it up. */
static tn *parse_builtin(parser *p, tn_kind kind, tn *to) {
    tn *t = new_with(p, kind, to, NULL);
    if (p->l.token.kind != LEX_NAME)
        llm_parse_unexpected(p, kind == TN_FILTER ? "the name of a filter" : "the name of a test");
    t->name = p->l.token.text;
    t->builtin = kind == TN_FILTER ? llm_tv_filter(t->name) : llm_tv_test(t->name);
    if (!t->builtin && !p->unknown)
        p->unknown = t;
    llm_lex_next(&p->l);
    return t;
}

tn *llm_parse_filters(parser *p, tn *to) {
    do {
        to = parse_builtin(p, TN_FILTER, to);
        if (llm_parse_skip(p, "("))
            to->b = llm_parse_args(p);
    } while (llm_parse_skip(p, "|"));
    return to;
}

/* True if the current token can begin the argument of a test without parentheses. */
static bool begins_argument(parser *p) {
    static const char *const ends[] = {"else", "or", "and", "is", "if", "in", "not"};
    const lexer *l = &p->l;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (llm_lex_is(l, LEX_NAME, ends[i]))
            return false;
    return l->token.kind == LEX_NAME || l->token.kind == LEX_STRING ||
           l->token.kind == LEX_NUMBER || llm_lex_is(l, LEX_OPERATOR, "[") ||
           llm_lex_is(l, LEX_OPERATOR, "{");
}

static tn *parse_test(parser *p, tn *to) {
    const bool negated = llm_parse_skip_name(p, "not");
    tn *t = parse_builtin(p, TN_TEST, to);
    if (llm_parse_skip(p, "(")) {
        t->b = llm_parse_args(p);
    } else if (begins_argument(p)) {
        t->b = llm_parse_new(p, TN_ARG);
        t->b->a = parse_postfix(p, parse_primary(p));
    }
    return negated ? new_with(p, TN_NOT, t, NULL) : t;
}

static tn *parse_unary(parser *p, bool with_filters) {
    llm_tv_enter(p->l.h);
    tn *t = llm_parse_new(p, TN_NEGATE);
    if (llm_parse_skip(p, "-")) {
        t->a = parse_unary(p, false);
    } else if (llm_parse_skip(p, "+")) {
        t->kind = TN_PLUS;
        t->a = parse_unary(p, false);
    } else {
        t = parse_primary(p);
    }
    t = parse_postfix(p, t);
    while (with_filters) {
        if (llm_parse_skip(p, "|"))
            t = llm_parse_filters(p, t);
        else if (llm_parse_skip_name(p, "is"))
            t = parse_test(p, t);
        else if (llm_parse_skip(p, "(")) {
            t = new_with(p, TN_CALL, t, NULL);
            t->b = llm_parse_args(p);
        } else
            break;
    }
    tv_leave(p->l.h);
    return t;
}

/* The levels of binary operators, the loosest first. */
static const struct level {
    const char *op[4];
    int code[4];
} levels[] = {
    {{"+", "-"}, {'+', '-'}},
    {{"~"}, {'~'}},
    {{"*", "/", "//", "%"}, {'*', '/', 'f', '%'}},
    {{"**"}, {'p'}},
};

static tn *parse_binary(parser *p, size_t level) {
    if (level == sizeof levels / sizeof *levels)
        return parse_unary(p, true);
    tn *t = parse_binary(p, level + 1);
    for (int i = 0; i < 4 && levels[level].op[i];) {
        if (!llm_parse_skip(p, levels[level].op[i])) {
            i++;
            continue;
        }
        t = new_with(p, TN_BINARY, t, NULL);
        t->op = levels[level].code[i];
        t->b = parse_binary(p, level + 1);
        i = 0;
    }
    return t;
}

/* If a comparison follows, moves past its operator and returns its code; else -1. */
static int parse_comparison(parser *p) {
    static const char *const op[] = {"==", "!=", "<", "<=", ">", ">="};
    for (int i = 0; i < 6; i++)
        if (llm_parse_skip(p, op[i]))
            return TN_EQ + i;
    if (llm_parse_skip_name(p, "in"))
        return TN_IN;
    if (llm_lex_is(&p->l, LEX_NAME, "not")) {
        llm_lex_next(&p->l);
        llm_parse_expect_name(p, "in");
        return TN_NOT_IN;
    }
    return -1;
}

static tn *parse_compare(parser *p) {
    tn *first = parse_binary(p, 0);
    list l = {0};
    for (int code; (code = parse_comparison(p)) >= 0;) {
        tn *c = llm_parse_new(p, TN_COMPARISON);
        c->op = code;
        c->a = parse_binary(p, 0);
        add(&l, c);
    }
    return l.first ? new_with(p, TN_COMPARE, first, l.first) : first;
}

static tn *parse_not(parser *p) {
    if (!llm_parse_skip_name(p, "not"))
        return parse_compare(p);
    llm_tv_enter(p->l.h);
    tn *t = new_with(p, TN_NOT, parse_not(p), NULL);
    tv_leave(p->l.h);
    return t;
}

static tn *parse_and(parser *p) {
    tn *t = parse_not(p);
    while (llm_parse_skip_name(p, "and"))
        t = new_with(p, TN_AND, t, parse_not(p));
    return t;
}

tn *llm_parse_or(parser *p) {
    tn *t = parse_and(p);
    while (llm_parse_skip_name(p, "or"))
        t = new_with(p, TN_OR, t, parse_and(p));
    return t;
}

tn *llm_parse_expr(parser *p) {
    llm_tv_enter(p->l.h);
    tn *const unknown = p->unknown;
    tn *t = llm_parse_or(p);
    while (llm_parse_skip_name(p, "if")) {
        t = new_with(p, TN_COND, t, llm_parse_or(p));
        if (llm_parse_skip_name(p, "else"))
            t->c = llm_parse_expr(p);
        p->unknown = unknown;
    }
    tv_leave(p->l.h);
    return t;
}

tn *llm_parse_tuple(parser *p, bool conditions) {
    list l = {0};
    tn *first = conditions ? llm_parse_expr(p) : llm_parse_or(p);
    if (!llm_lex_is(&p->l, LEX_OPERATOR, ","))
        return first;
    add(&l, first);
    while (llm_parse_skip(p, ",")) {
        if (p->l.token.kind == LEX_TAG_END || llm_lex_is(&p->l, LEX_OPERATOR, ")") ||
            llm_lex_is(&p->l, LEX_OPERATOR, "=") || llm_lex_is(&p->l, LEX_OPERATOR, "]"))
            break;
        add(&l, conditions ? llm_parse_expr(p) : llm_parse_or(p));
    }
    return new_with(p, TN_TUPLE, l.first, NULL);
}

static tn *parse_one_target(parser *p, bool attributes) {
    if (llm_parse_skip(p, "(")) {
        tn *t = llm_parse_target(p, attributes);
        llm_parse_expect(p, ")");
        return t;
    }
    tn *t = llm_parse_new(p, TN_NAME);
    t->id = llm_parse_variable(p);
    return attributes && llm_parse_skip(p, ".") ? parse_attribute(p, t) : t;
}

tn *llm_parse_target(parser *p, bool attributes) {
    list l = {0};
    llm_tv_enter(p->l.h);
    tn *first = parse_one_target(p, attributes);
    if (llm_lex_is(&p->l, LEX_OPERATOR, ",")) {
        add(&l, first);
        while (llm_parse_skip(p, ",") && p->l.token.kind == LEX_NAME)
            add(&l, parse_one_target(p, attributes));
        first = new_with(p, TN_TUPLE, l.first, NULL);
    }
    tv_leave(p->l.h);
    return first;
}

int llm_tn_name_id(llm_template *t, ggl_str name) {
    size_t i = ggl_index_find(&t->by_name, t->names, name);
    if (i != SIZE_MAX)
        return (int)i;
    if (!ggl_grow(&t->names, &t->cap_names, t->n_names + 1, sizeof *t->names))
        llm_tv_fail(&t->heap, GGL_NOMEM, "out of memory");
    t->names[t->n_names].text = name;
    ggl_status st = ggl_index_reserve(&t->by_name, t->names, t->n_names + 1, t->heap.err);
    if (st != GGL_OK)
        llm_tv_fail(&t->heap, st, "out of memory");
    return (int)ggl_index_put(&t->by_name, t->names, t->n_names++);
}
