#include "calls_params.h"

#include <string.h>

#include "calls_impl.h"
#include "grammar/expr_text.h"
#include "grammar/regex.h"
#include "grammar/schema.h"

/* --- the format --------------------------------------------------------------------------------- */

/* Returns the text that ends a value. */
static ggl_str end_of_value(const call_format *f) {
    for (int i = 0; i + 1 < f->arg.n; i++)
        if (f->arg.piece[i].kind == PIECE_VALUE && f->arg.piece[i + 1].kind == PIECE_TEXT)
            return f->arg.piece[i + 1].text;
    return (ggl_str){"", 0};
}

static bool has_piece(const call_format *f, piece_kind kind) {
    for (int i = 0; i < f->arg.n; i++)
        if (f->arg.piece[i].kind == kind)
            return true;
    return false;
}

bool llm_calls_params_are_known(const call_format *f) {
    const ggl_str end = end_of_value(f);
    return has_piece(f, PIECE_KEY) && end.n > 0 && memchr(end.s, '<', end.n);
}

/* --- values ------------------------------------------------------------------------------------- */

static int32_t word(llm_exprs *g, const char *s) {
    return llm_expr_text(g, (ggl_str){s, strlen(s)});
}

/* Any text with s in it. */
static int32_t holding(llm_exprs *g, ggl_str s) {
    const int32_t any = llm_expr_any_text(g);
    return llm_expr_seq3(g, any, llm_expr_text(g, s), any);
}

/* The texts that are JSON of these scalar kinds, with white space around them, which the reader does not take for strings. */
static int32_t json_scalars(llm_exprs *g, unsigned kinds) {
    static const struct {
        json_kind kind;
        const char *pattern;
    } rows[] = {{JSON_NULL, "^[ \\t\\n\\r]*null[ \\t\\n\\r]*$"},
                {JSON_BOOL, "^[ \\t\\n\\r]*(true|false)[ \\t\\n\\r]*$"},
                {JSON_NUMBER,
                 "^[ \\t\\n\\r]*-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?[ \\t\\n\\r]*$"}};
    int32_t all = LLM_EXPR_NONE, e = LLM_EXPR_NONE;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (kinds & 1u << rows[i].kind) {
            const ggl_str p = {rows[i].pattern, strlen(rows[i].pattern)};
            const ggl_status st = llm_regex_read(&e, g, p, NULL);
            if (st != GGL_OK && g->status == GGL_OK)
                g->status = st;
            all = llm_expr_alt2(g, all, e);
        }
    return all;
}

/* Strings as they are: without the mark that would end them, and such that the reader takes them as they are. */
static int32_t plain(llm_exprs *g, const call_format *f, const llm_schema_argument *a,
                     unsigned kinds) {
    int32_t part[5], n = 0;
    if (a->text == LLM_EXPR_NONE)
        return LLM_EXPR_NONE;
    part[n++] = a->text;
    part[n++] = llm_expr_not(g, holding(g, end_of_value(f)));
    if (f->verbatim.n > 0)
        part[n++] = llm_expr_not(g, holding(g, f->verbatim));
    if (!f->lines) { /* a line break at both ends would be left out */
        const int32_t line = word(g, "\n");
        part[n++] = llm_expr_not(g, llm_expr_seq3(g, line, llm_expr_any_text(g), line));
    }
    const int32_t scalars = json_scalars(g, kinds);
    if (scalars != LLM_EXPR_NONE)
        part[n++] = llm_expr_not(g, scalars);
    return llm_expr_and(g, part, n);
}

/* The texts of a value whose kind no mark says: see llm_calls_as_string. */
static int32_t untyped(llm_exprs *g, const call_format *f, const llm_schema_argument *a,
                       unsigned kinds) {
    const unsigned string = 1u << JSON_STRING;
    if (kinds == 0)
        return llm_expr_alt(g, (int32_t[]){a->quoted, a->scalars, a->shapes}, 3);
    if (!(kinds & string))
        return llm_expr_alt2(g, a->scalars, a->shapes);
    const int32_t text = plain(g, f, a, kinds);
    return kinds == string ? text : llm_expr_alt2(g, text, a->scalars);
}

/* --- arguments ---------------------------------------------------------------------------------- */

/* The names of the types other than string. */
static int32_t other_types(llm_exprs *g) {
    static const char *const names[] = {"number", "boolean", "null", "object", "array"};
    int32_t e = LLM_EXPR_NONE;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        e = llm_expr_alt2(g, e, word(g, names[i]));
    return e;
}

/* An argument with this value. string: what {string} says. */
static int32_t between_marks(llm_exprs *g, const call_format *f, ggl_str name, int32_t value,
                             bool string) {
    int32_t e = LLM_EXPR_EMPTY;
    const int32_t line = word(g, "\n");
    for (int i = 0; i < f->arg.n; i++) {
        const piece *p = &f->arg.piece[i];
        int32_t x = LLM_EXPR_EMPTY;
        if (p->kind == PIECE_TEXT)
            x = llm_expr_text(g, p->text);
        else if (p->kind == PIECE_KEY)
            x = llm_expr_text(g, name);
        else if (p->kind == PIECE_STRING)
            x = word(g, string ? "true" : "false");
        else if (p->kind == PIECE_TYPE)
            x = string ? word(g, "string") : other_types(g);
        else if (p->kind == PIECE_VALUE)
            x = f->lines ? llm_expr_seq3(g, line, value, line) : value;
        if (i > 0 && p->kind == PIECE_TEXT && f->arg.piece[i - 1].kind == PIECE_TEXT)
            e = llm_expr_seq2(g, e, llm_expr_optional(g, line));
        e = llm_expr_seq2(g, e, x);
    }
    return e;
}

static int32_t argument_of(llm_exprs *g, const call_format *f, const llm_schema_argument *a,
                           unsigned kinds) {
    if (!has_piece(f, PIECE_STRING) && !has_piece(f, PIECE_TYPE))
        return between_marks(g, f, a->name, untyped(g, f, a, kinds), false);
    const int32_t other = llm_expr_alt2(g, a->scalars, a->shapes);
    return llm_expr_alt2(g, between_marks(g, f, a->name, plain(g, f, a, 0), true),
                         between_marks(g, f, a->name, other, false));
}

static bool can_stand(ggl_str name) {
    for (size_t i = 0; i < name.n; i++)
        if ((unsigned char)name.s[i] <= ' ' || strchr("<>\"\177", name.s[i]))
            return false;
    return name.n > 0 && name.n <= MAX_NAME;
}

static ggl_status all_arguments(int32_t *out, llm_exprs *g, const call_format *f,
                                const json_value *parameters, const llm_schema_argument *a,
                                size_t n, const char *where, ggl_error *err) {
    int32_t *member = ggl_calloc(n + 1, sizeof *member), n_members = 0, n_required = 0;
    bool *required = ggl_calloc(n + 1, sizeof *required);
    ggl_status st =
        member && required ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        const unsigned kinds = llm_calls_kinds(llm_calls_schema_in(parameters, a[i].name));
        if (!can_stand(a[i].name))
            st = ggl_fail(err, GGL_UNSUPPORTED,
                          "%s: the name \"%.*s\" cannot be written in this model's form of calls: "
                          "give it letters, digits and signs other than < > and quotes",
                          where, (int)(a[i].name.n < 60 ? a[i].name.n : 60), a[i].name.s);
        llm_exprs_count(g, 1 + n / 16); /* the name was looked up */
        member[n_members] = argument_of(g, f, &a[i], kinds);
        required[n_members] = a[i].required;
        n_required += a[i].required;
        n_members += member[n_members] != LLM_EXPR_NONE || a[i].required;
    }
    const llm_members all = {.member = member,
                             .required = required,
                             .n = n_members,
                             .rest = LLM_EXPR_NONE,
                             .comma = word(g, "\n"),
                             .min = n_required,
                             .max = LLM_EXPR_MANY};
    *out = n_members > 0 ? llm_expr_members(g, &all) : LLM_EXPR_EMPTY;
    ggl_free(member);
    ggl_free(required);
    return st;
}

ggl_status llm_calls_params_expr(int32_t *out, llm_exprs *g, const call_format *f,
                                 const json_value *parameters, const char *text, size_t n,
                                 const char *where, ggl_error *err) {
    llm_schema_argument *a;
    size_t n_a;
    *out = LLM_EXPR_EMPTY;
    if (!parameters || parameters->kind != JSON_OBJECT)
        return GGL_OK;
    ggl_status st = llm_schema_read_arguments(&a, &n_a, g, text, n, where, err);
    if (st == GGL_OK)
        st = all_arguments(out, g, f, parameters, a, n_a, where, err);
    ggl_free(a);
    return st;
}
