/* Statements: {% .. %}, {{ .. }} and the text between them. */
#include "parse.h"

#include <string.h>

void llm_tn_unknown(tv_heap *h, const tn *t) {
    h->line = t->line;
    llm_tv_fail(h, GGL_UNSUPPORTED, "there is no %s '%.*s'",
                t->kind == TN_FILTER ? "filter" : "test", (int)(t->name.n < 60 ? t->name.n : 60),
                t->name.s);
}

static tn *parse_body(parser *p, const char *const *ends);

/* At the end of a tag: leaves it. */
static void end_tag(parser *p) {
    if (p->l.token.kind != LEX_TAG_END)
        llm_parse_unexpected(p, p->l.close == '%' ? "%}" : "}}");
    llm_lex_leave(&p->l);
}

/* Parses the body of a statement with a scope of its own. */
static tn *parse_scope(parser *p, const char *const *ends) {
    tn *const unknown = p->unknown;
    p->unknown = NULL;
    tn *body = parse_body(p, ends);
    if (p->unknown)
        llm_tn_unknown(p->l.h, p->unknown);
    p->unknown = unknown;
    return body;
}

/* Parses the body after a tag, up to {% end %}, and that tag. */
static tn *body_until(parser *p, const char *end) {
    end_tag(p);
    tn *body = parse_scope(p, (const char *const[]){end, NULL});
    llm_lex_next(&p->l);
    return body;
}

static tn *parse_if(parser *p) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    tn *t = llm_parse_new(p, TN_IF), *const unknown = p->unknown;
    t->a = llm_parse_tuple(p, true);
    end_tag(p);
    t->b = parse_body(p, ends);
    if (llm_parse_skip_name(p, "elif")) {
        llm_tv_enter(p->l.h);
        t->c = parse_if(p);
        tv_leave(p->l.h);
    } else {
        if (llm_parse_skip_name(p, "else")) {
            end_tag(p);
            t->c = parse_body(p, &ends[2]);
        }
        llm_lex_next(&p->l);
    }
    p->unknown = unknown;
    return t;
}

static tn *parse_for(parser *p) {
    tn *t = llm_parse_new(p, TN_FOR);
    t->a = llm_parse_target(p, false);
    llm_parse_expect_name(p, "in");
    t->b = llm_parse_tuple(p, false);
    if (llm_parse_skip_name(p, "if"))
        t->d = llm_parse_expr(p);
    if (llm_lex_is(&p->l, LEX_NAME, "recursive"))
        llm_tv_fail(p->l.h, GGL_UNSUPPORTED, "'recursive' loops are not supported");
    end_tag(p);
    p->n_loops++;
    t->c = parse_scope(p, (const char *const[]){"else", "endfor", NULL});
    p->n_loops--;
    if (llm_parse_skip_name(p, "else"))
        t->e = body_until(p, "endfor");
    else
        llm_lex_next(&p->l);
    return t;
}

static tn *parse_set(parser *p) {
    tn *t = llm_parse_new(p, TN_SET);
    t->a = llm_parse_target(p, true);
    if (llm_parse_skip(p, "=")) {
        t->b = llm_parse_tuple(p, true);
        return t;
    }
    t->kind = TN_SET_TEXT;
    if (llm_parse_skip(p, "|"))
        t->b = llm_parse_filters(p, NULL);
    t->c = body_until(p, "endset");
    return t;
}

static tn *parse_filter_block(parser *p) {
    tn *t = llm_parse_new(p, TN_FILTERED);
    t->b = llm_parse_filters(p, NULL);
    t->c = body_until(p, "endfilter");
    return t;
}

static tn *parse_with(parser *p) {
    tn *t = llm_parse_new(p, TN_WITH), **last = &t->a;
    while (p->l.token.kind != LEX_TAG_END) {
        tn *set = llm_parse_new(p, TN_SET);
        set->a = llm_parse_target(p, false);
        llm_parse_expect(p, "=");
        set->b = llm_parse_expr(p);
        *last = set;
        last = &set->next;
        if (p->l.token.kind != LEX_TAG_END)
            llm_parse_expect(p, ",");
    }
    t->c = body_until(p, "endwith");
    return t;
}

/* What follows "(" in a macro's head: names, with defaults. */
static tn *parse_params(parser *p) {
    tn *first = NULL, **last = &first;
    while (!llm_parse_skip(p, ")")) {
        tn *param = llm_parse_new(p, TN_PARAM);
        param->id = llm_parse_variable(p);
        if (llm_parse_skip(p, "="))
            param->a = llm_parse_expr(p);
        *last = param;
        last = &param->next;
        if (!llm_lex_is(&p->l, LEX_OPERATOR, ")"))
            llm_parse_expect(p, ",");
    }
    return first;
}

static tn *parse_macro(parser *p) {
    tn *t = llm_parse_new(p, TN_MACRO);
    const int n_loops = p->n_loops;
    p->n_loops = 0;
    t->id = llm_parse_variable(p);
    t->name = p->t->names[t->id].text;
    llm_parse_expect(p, "(");
    t->a = parse_params(p);
    t->c = body_until(p, "endmacro");
    p->n_loops = n_loops;
    return t;
}

static tn *parse_call(parser *p) {
    tn *t = llm_parse_new(p, TN_CALLER);
    const int n_loops = p->n_loops;
    p->n_loops = 0; /* its body is a macro */
    t->name = (ggl_str){"caller", 6};
    if (llm_parse_skip(p, "("))
        t->a = parse_params(p);
    t->b = llm_parse_expr(p);
    if (t->b->kind != TN_CALL)
        llm_parse_unexpected(p, "a call");
    t->c = body_until(p, "endcall");
    p->n_loops = n_loops;
    return t;
}

/* Statements that only mark their body, which is printed as if they were not there. */
static tn *parse_generation(parser *p) {
    tn *t = llm_parse_new(p, TN_WITH);
    t->c = body_until(p, "endgeneration");
    return t;
}

static tn *parse_leave(parser *p, tn_kind kind, const char *name) {
    if (p->n_loops == 0)
        llm_tv_fail(p->l.h, GGL_FORMAT, "'%s' stands outside of a loop", name);
    return llm_parse_new(p, kind);
}

static tn *parse_break(parser *p) {
    return parse_leave(p, TN_BREAK, "break");
}

static tn *parse_continue(parser *p) {
    return parse_leave(p, TN_CONTINUE, "continue");
}

static const struct statement {
    const char *name;
    tn *(*parse)(parser *p);
} statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"filter", parse_filter_block},
    {"with", parse_with},
    {"call", parse_call},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
};

/* Statements of Jinja that templates of other programs may have. */
static const char *const unsupported[] = {"extends", "block",      "include", "import", "from",
                                          "do",      "autoescape", "trans",   "debug"};

static tn *parse_statement(parser *p) {
    lexer *l = &p->l;
    if (l->token.kind != LEX_NAME)
        llm_parse_unexpected(p, "a statement");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (llm_parse_skip_name(p, statements[i].name)) {
            tn *t = statements[i].parse(p);
            end_tag(p);
            return t;
        }
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (llm_lex_is(l, LEX_NAME, unsupported[i]))
            llm_tv_fail(l->h, GGL_UNSUPPORTED, "{%% %s %%} is not supported", unsupported[i]);
    llm_tv_fail(l->h, GGL_FORMAT, "there is no statement %s", llm_lex_show(l));
}

/* True if the tag's first token is one of these. */
static bool is_end(const lexer *l, const char *const *ends) {
    for (; *ends; ends++)
        if (llm_lex_is(l, LEX_NAME, *ends))
            return true;
    return false;
}

/* Parses until a tag begins with one of the names in ends[], which ends with NULL; the tag is then
 * current. At the top, where ends[] is empty, until the template ends. */
static tn *parse_body(parser *p, const char *const *ends) {
    tn *first = NULL, **last = &first;
    const int line = p->l.token.line; /* of the end of the tag before */
    llm_tv_enter(p->l.h);
    for (;;) {
        ggl_str text;
        lex_tag tag;
        tn *t;
        if (llm_lex_text(&p->l, &text, &tag)) {
            t = llm_parse_new(p, TN_TEXT);
            t->value = tv_str(text);
        } else if (tag == LEX_END) {
            if (!*ends)
                break;
            p->l.h->line = line;
            llm_tv_fail(p->l.h, GGL_FORMAT, "there is no {%% %s %%} for what begins here",
                        ends[1] ? ends[2] ? ends[2] : ends[1] : ends[0]);
        } else if (tag == LEX_PRINT) {
            t = llm_parse_new(p, TN_PRINT);
            t->a = llm_parse_tuple(p, true);
            end_tag(p);
        } else if (is_end(&p->l, ends)) {
            break;
        } else {
            t = parse_statement(p);
        }
        *last = t;
        last = &t->next;
    }
    tv_leave(p->l.h);
    return first;
}

void llm_tn_parse(llm_template *t, const char *text, size_t size) {
    parser p = {.t = t};
    p.l = (lexer){.h = &t->heap, .s = text, .n = size, .line = 1, .starts_line = true};
    t->heap.line = 1;
    t->body = parse_scope(&p, (const char *const[]){NULL});
}
