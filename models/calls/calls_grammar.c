/* A grammar of the calls that an answer must have. The texts around a call come from the format's pattern, its
 * arguments from the schemas of the tools. */
#include <stdio.h>
#include <string.h>

#include "calls_impl.h"
#include "calls_params.h"
#include "common/json_write.h"
#include "ggl/internal/params.h"
#include "ggl/internal/text.h"
#include "grammar/grammar.h"
#include "grammar/schema.h"
#include "grammar/thoughts.h"

typedef struct builder {
    llm_exprs g;
    call_format f;
    ggl_str format;          /* its name */
    const json_value *tools; /* NULL: none */
    ggl_str tool;            /* the one that may be called; empty: any */
    bool one;
    const mark *open; /* of the reasoning within which the prompt ends; NULL: not known */
    ggl_error *err;
} builder;

/* --- expressions -------------------------------------------------------------------------------- */

static int32_t text(builder *b, ggl_str s) {
    return llm_expr_text(&b->g, s);
}

static int32_t word(builder *b, const char *s) {
    return text(b, (ggl_str){s, strlen(s)});
}

/* At most n blanks and line ends. */
static int32_t blank(builder *b, int32_t n) {
    const llm_char_range white[] = {{' ', ' '}, {'\n', '\n'}};
    return llm_expr_repeat(&b->g, llm_expr_class(&b->g, white, 2, false), 0, n);
}

/* A string of JSON. */
static int32_t quoted(builder *b, ggl_str s) {
    llm_json_out out = {0};
    llm_json_put_string(&out, s);
    if (out.failed && b->g.status == GGL_OK)
        b->g.status = GGL_NOMEM;
    const int32_t e = out.failed ? LLM_EXPR_NONE : text(b, (ggl_str){out.s, out.n});
    ggl_free(out.s);
    return e;
}

/* `"key": `, the space being optional. */
static int32_t key(builder *b, ggl_str name) {
    return llm_expr_seq3(&b->g, quoted(b, name), word(b, ":"),
                         llm_expr_optional(&b->g, word(b, " ")));
}

/* --- arguments ---------------------------------------------------------------------------------- */

/* True if a schema lists properties and has no keyword about others. */
static bool names_all(const json_value *v) {
    static const char *const others[] = {"additionalProperties",
                                         "unevaluatedProperties",
                                         "patternProperties",
                                         "propertyNames",
                                         "$ref",
                                         "$dynamicRef",
                                         "allOf",
                                         "anyOf",
                                         "oneOf",
                                         "if",
                                         "dependentSchemas"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (llm_json_get(v, others[k]))
            return false;
    return llm_json_get_kind(v, "properties", JSON_OBJECT) != NULL;
}

/* Writes the schema of a function's arguments. A missing "type" becomes "object". If the schema only lists properties, others
 * are forbidden, because a model would make some up. Without a schema there are no arguments. */
static void put_schema(llm_json_out *out, const json_value *v) {
    if (!v || v->kind != JSON_OBJECT) {
        llm_json_put_text(out, "{\"type\":\"object\",\"additionalProperties\":false}");
        return;
    }
    llm_json_put_value(out, v);
    out->n -= !out->failed; /* the closing brace */
    const char *comma = v->n > 0 ? "," : "";
    if (!llm_json_get(v, "type")) {
        llm_json_format(out, "%s'type':'object'", comma);
        comma = ",";
    }
    if (names_all(v))
        llm_json_format(out, "%s'additionalProperties':false", comma);
    llm_json_put_text(out, "}");
}

static ggl_status arguments_of(builder *b, const json_value *function, ggl_str name, bool marked,
                               int32_t *e) {
    const llm_schema_params compact = {.size = sizeof compact, .compact = true};
    const json_value *parameters = llm_json_get(function, "parameters");
    char where[MAX_NAME + 24];
    llm_json_out out = {0};
    put_schema(&out, parameters);
    snprintf(where, sizeof where, "parameters of %.*s",
             (int)(name.n < MAX_NAME ? name.n : MAX_NAME), name.s);
    const ggl_status st =
        out.failed ? ggl_fail(b->err, GGL_NOMEM, "out of memory for a grammar")
        : marked   ? llm_calls_params_expr(e, &b->g, &b->f, parameters, out.s, out.n, where, b->err)
                   : llm_schema_read(e, &b->g, out.s, out.n, where, &compact, b->err);
    ggl_free(out.s);
    return st;
}

/* --- patterns ----------------------------------------------------------------------------------- */

/* A function that can be called. */
typedef struct target {
    ggl_str name;
    int32_t arguments;
} target;

/* {"name": "f", "arguments": {..}}, or with `map` {"f": {..}}; alone, or in a list whose elements all call f. */
static int32_t object(builder *b, const target *t, bool map) {
    llm_exprs *g = &b->g;
    const int32_t comma = llm_expr_seq2(g, word(b, ","), llm_expr_optional(g, word(b, " ")));
    const int32_t name =
        llm_expr_seq3(g, key(b, llm_calls_first_key(b->f.name_key)), quoted(b, t->name), comma);
    const int32_t arguments = llm_expr_seq2(
        g,
        map ? key(b, t->name) : llm_expr_seq2(g, name, key(b, llm_calls_first_key(b->f.args_key))),
        t->arguments);
    const int32_t one = llm_expr_seq3(g, word(b, "{"), arguments, word(b, "}"));
    const int32_t more = llm_expr_repeat(g, llm_expr_seq2(g, comma, one), 0, LLM_EXPR_MANY);
    const int32_t list = b->one ? one : llm_expr_seq2(g, one, more);
    return llm_expr_alt2(g, one, llm_expr_seq3(g, word(b, "["), list, word(b, "]")));
}

/* functions.f, perhaps with a number as in functions.f:0. */
static int32_t path(builder *b, ggl_str name) {
    llm_exprs *g = &b->g;
    const int32_t digits = llm_expr_repeat(g, llm_expr_range(g, '0', '9'), 1, 3);
    return llm_expr_seq3(g, word(b, "functions."), text(b, name),
                         llm_expr_optional(g, llm_expr_seq2(g, word(b, ":"), digits)));
}

static int32_t id(builder *b) {
    const llm_char_range letters[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
    return llm_expr_repeat(&b->g, llm_expr_class(&b->g, letters, 3, false), 9, 9);
}

static int32_t piece_of(builder *b, const piece *p, const target *t) {
    switch (p->kind) {
    case PIECE_TEXT:
        return text(b, p->text);
    case PIECE_NAME:
        return text(b, t->name);
    case PIECE_PATH:
        return path(b, t->name);
    case PIECE_ID:
        return id(b);
    case PIECE_ARGS:
    case PIECE_PARAMS:
        return t->arguments;
    case PIECE_JSON:
    case PIECE_MAP:
        return object(b, t, p->kind == PIECE_MAP);
    default: /* START, SKIP */
        return LLM_EXPR_EMPTY;
    }
}

static bool is_value(piece_kind k) {
    return k == PIECE_ARGS || k == PIECE_JSON || k == PIECE_MAP || k == PIECE_PARAMS;
}

static bool has_params(const pattern *p) {
    for (int i = 0; i < p->n; i++)
        if (p->piece[i].kind == PIECE_PARAMS)
            return true;
    return false;
}

/* False for values in notations that no grammar here writes: calls as in Python, elements, names without quotes. */
static bool is_known(const call_format *f, piece_kind k) {
    return k <= PIECE_MAP || (k == PIECE_PARAMS && llm_calls_params_are_known(f));
}

/* A call of one function, without its first `from` pieces. Around values there may be a blank or a line end. */
static int32_t call_of(builder *b, const pattern *p, int from, const target *t) {
    int32_t e = LLM_EXPR_EMPTY;
    for (int i = from; i < p->n; i++) {
        if (p->piece[i].optional) { /* it is left out, with the field after it */
            i++;
            continue;
        }
        const bool value = is_value(p->piece[i].kind);
        const bool texts = i > from && p->piece[i].kind == PIECE_TEXT &&
                           p->piece[i - 1].kind == PIECE_TEXT && has_params(p);
        if (value && i > 0 && (i > 1 || p->piece[0].kind == PIECE_TEXT))
            e = llm_expr_seq2(&b->g, e, blank(b, 1));
        if (texts)
            e = llm_expr_seq2(&b->g, e, blank(b, 1));
        e = llm_expr_seq2(&b->g, e, piece_of(b, &p->piece[i], t));
        if (value && i + 1 < p->n)
            e = llm_expr_seq2(&b->g, e, blank(b, 1));
    }
    return e;
}

static bool holds(ggl_str s, ggl_str part) {
    return part.n == 0 || (s.n >= part.n && ggl_find_bytes(s.s, s.n, part.s, part.n));
}

/* Returns how well a pattern suits; 0: it cannot be written as a grammar. Patterns that begin without a mark suit best,
 * because marks are often control tokens, which a grammar must spell in other tokens. Next come patterns whose texts
 * all stand in the template; of these, the one with the most texts. */
static int rank(const call_format *f, const pattern *p, ggl_str template_text) {
    int n = 1;
    bool all = true;
    for (int i = 0; i < p->n; i++) {
        const piece *x = &p->piece[i];
        const bool must = x->kind == PIECE_TEXT && !x->optional;
        if (!is_known(f, x->kind))
            return 0;
        all = all && !(must && !holds(template_text, x->text));
        n += must;
    }
    return p->piece[0].kind != PIECE_TEXT ? INT32_MAX : all ? n : 1;
}

/* tried: bits of those that are out of the question. */
static const pattern *best_pattern(const builder *b, ggl_str template_text, unsigned tried) {
    const pattern *best = NULL;
    int most = 0;
    for (int k = 0; k < b->f.n_calls; k++) {
        const int n = rank(&b->f, &b->f.call[k], template_text);
        if (n > most && !(tried >> k & 1)) {
            most = n;
            best = &b->f.call[k];
        }
    }
    return best;
}

/* --- reasoning ---------------------------------------------------------------------------------- */

static bool ends_with(ggl_str s, ggl_str end) {
    while (s.n > 0 && llm_calls_is_white(s.s[s.n - 1]))
        s.n--;
    return end.n > 0 && end.n <= s.n && memcmp(s.s + s.n - end.n, end.s, end.n) == 0;
}

/* True if the model may reason: its template has the mark, or is not known. */
static bool may_reason(ggl_str template_text, const mark *m) {
    return m->role == MARK_THINK &&
           (template_text.n == 0 ||
            ggl_find_bytes(template_text.s, template_text.n, m->text.s, m->text.n) != NULL);
}

static void add_thought(llm_thought *t, const mark *m, bool is_begun) {
    *t = (llm_thought){.is_begun = is_begun};
    memcpy(t->open, m->text.s, m->text.n);
    memcpy(t->close, m->close.s, m->close.n);
}

/* Finds the ways to reason before the answer, and returns how many there are. If the prompt ends within reasoning, there is one, the
 * rest of this reasoning. If reasoning has just ended there, there is none. */
static size_t find_thoughts(const call_format *f, const mark *open, const llm_calls_params *p,
                            llm_thought t[LLM_THOUGHTS]) {
    size_t n = 0;
    for (int k = 0; k < f->n_marks && !open; k++) {
        const mark *m = &f->mark[k];
        if (m->role == MARK_THINK && ends_with(p->prompt, m->text))
            open = m;
        else if (m->role == MARK_THINK && ends_with(p->prompt, m->close))
            return 0;
    }
    if (open)
        add_thought(&t[n++], open, true);
    for (int k = 0; k < f->n_marks && !open && n < LLM_THOUGHTS; k++)
        if (may_reason(p->template_text, &f->mark[k]))
            add_thought(&t[n++], &f->mark[k], false);
    return n;
}

/* --- the whole ---------------------------------------------------------------------------------- */

/* True if the reader finds the function's name in a pattern: as a string, or as a name of its characters. */
static bool can_be_named(const pattern *p, ggl_str name) {
    bool is_string = true, is_path = false;
    for (int i = 0; i < p->n; i++) {
        is_string = is_string && p->piece[i].kind != PIECE_NAME && p->piece[i].kind != PIECE_PATH;
        is_path = is_path || p->piece[i].kind == PIECE_PATH;
    }
    for (size_t i = 0; i < name.n && !is_string; i++)
        if (!name.s[i] || !llm_calls_is_name(name.s[i]) || (is_path && strchr(":.", name.s[i])))
            return false;
    return is_string || name.n <= MAX_NAME;
}

/* The calls of all functions that may be called, without their first `from` pieces. */
static ggl_status any_call(builder *b, const pattern *p, int from, int32_t *e) {
    static const json_value none = {.kind = JSON_ARRAY};
    const json_value *list = b->tools ? b->tools : &none;
    bool found = false;
    *e = LLM_EXPR_NONE;
    for (size_t i = 0; i < list->n; i++) {
        target t = {0};
        const json_value *f = llm_calls_function(&list->item[i], &t.name);
        if (b->tool.n > 0 && (t.name.n != b->tool.n || memcmp(t.name.s, b->tool.s, t.name.n) != 0))
            continue;
        if (!can_be_named(p, t.name))
            return ggl_fail(
                b->err, GGL_UNSUPPORTED,
                "the function \"%.*s\" cannot be named in this model's form of calls: use "
                "letters, digits, _ and -",
                (int)(t.name.n < 60 ? t.name.n : 60), t.name.s);
        const ggl_status st = arguments_of(b, f, t.name, has_params(p), &t.arguments);
        if (st != GGL_OK)
            return st;
        *e = llm_expr_alt2(&b->g, *e, call_of(b, p, from, &t));
        found = true;
    }
    if (found)
        return GGL_OK;
    return b->tool.n > 0 ? ggl_fail(b->err, GGL_NOT_FOUND, "there is no tool \"%.*s\"",
                                    (int)(b->tool.n < MAX_NAME ? b->tool.n : MAX_NAME), b->tool.s)
                         : ggl_fail(b->err, GGL_NOT_FOUND, "there are no tools to be called");
}

/* One call or several. Between calls without marks there is a separator. */
static int32_t several(builder *b, const pattern *p, int32_t first, int32_t call) {
    llm_exprs *g = &b->g;
    const bool marked = p->piece[0].kind == PIECE_TEXT;
    const int32_t between = marked ? blank(b, 1) : llm_expr_alt2(g, word(b, "; "), word(b, "\n"));
    const int32_t more = llm_expr_seq2(g, between, call);
    return b->one ? first : llm_expr_seq2(g, first, llm_expr_repeat(g, more, 0, LLM_EXPR_MANY));
}

/* Adds the text that may stand in place of calls. */
static ggl_status or_text(builder *b, ggl_str schema, int32_t *e) {
    const llm_schema_params compact = {.size = sizeof compact, .compact = true};
    int32_t answer;
    if (schema.n == 0)
        return GGL_OK;
    const ggl_status st =
        llm_schema_read(&answer, &b->g, schema.s, schema.n, "schema", &compact, b->err);
    if (st == GGL_OK)
        *e = llm_expr_alt2(&b->g, *e, answer);
    return st;
}

static ggl_status no_grammar(const builder *b, bool has_answer) {
    return ggl_fail(b->err, GGL_UNSUPPORTED,
                    "%s of this model: there is no grammar for calls in the format \"%.*s\"%s",
                    has_answer ? "calls of tools, or else an answer in a given form, cannot be "
                                 "demanded"
                               : "a call of a tool cannot be demanded",
                    (int)b->format.n, b->format.s,
                    has_answer ? "; leave out the tools or the form"
                               : "; let the model decide whether it calls one, or use a chat "
                                 "template that shows tools");
}

/* True if the prompt ends with the mark that begins a call. */
static bool begins_call(const pattern *p, ggl_str prompt) {
    return p->piece[0].kind == PIECE_TEXT && ends_with(prompt, p->piece[0].text);
}

/* Builds the calls in the best pattern that can hold the arguments of all tools. */
static ggl_status find_calls(builder *b, const llm_calls_params *p, const pattern **found,
                             int32_t *call) {
    ggl_status st = GGL_OK;
    for (unsigned tried = 0;; tried |= 1u << (*found - b->f.call)) {
        *found = best_pattern(b, p->template_text, tried);
        if (!*found)
            return tried ? st : no_grammar(b, p->answer.n > 0);
        st = any_call(b, *found, 0, call);
        if (st != GGL_UNSUPPORTED)
            return st;
    }
}

static ggl_status build(builder *b, llm_grammar **out, const llm_calls_params *p) {
    const pattern *call_pattern;
    int32_t call, first;
    ggl_status st = find_calls(b, p, &call_pattern, &call);
    if (st != GGL_OK)
        return st;
    const bool is_begun = begins_call(call_pattern, p->prompt);
    first = call;
    if (is_begun)
        st = any_call(b, call_pattern, 1, &first);
    if (st != GGL_OK)
        return st;
    int32_t answer = several(b, call_pattern, first, call);
    st = is_begun ? GGL_OK : or_text(b, p->answer, &answer);
    if (st != GGL_OK)
        return st;
    llm_thought thought[LLM_THOUGHTS];
    const size_t n = is_begun ? 0 : find_thoughts(&b->f, b->open, p, thought);
    const int32_t root = llm_expr_after_thoughts(&b->g, thought, n, answer);
    st = llm_grammar_compile(out, &b->g, root, b->err);
    return st == GGL_OK ? st : ggl_within(b->err, st, "calls of tools");
}

/* Finds out whether the answer goes on within reasoning. */
static ggl_status find_open(builder *b, const llm_calls_params *p) {
    llm_calls *c;
    if (p->n_begun == 0)
        return GGL_OK;
    const ggl_status st = llm_calls_new(&c, p, b->err);
    if (st == GGL_OK && c->mode == IN_REASONING) /* both have read the same format */
        b->open = &b->f.mark[c->think - c->f.mark];
    llm_calls_free(st == GGL_OK ? c : NULL);
    return st;
}

static ggl_status load(builder *b, const llm_calls_params *p) {
    b->g.use = llm_grammar_budget(p->max_steps, p->max_bytes);
    b->format = p->format.n > 0 ? p->format : llm_calls_format(p->template_text);
    ggl_status st = llm_call_format_load(&b->f, b->format, b->err);
    b->tools = p->tools;
    return st == GGL_OK && p->tools ? llm_calls_check_tools(p->tools, b->err) : st;
}

/* Reads the params into *p, loads their format and finds what the prompt has begun. end() follows in any case. */
static ggl_status begin(builder *b, llm_calls_params *p, const llm_calls_params *params) {
    ggl_status st = GGL_READ_PARAMS(llm_calls_params, p, params, b->err);
    if (st == GGL_OK)
        st = load(b, p);
    return st == GGL_OK ? find_open(b, p) : st;
}

static void end(builder *b) {
    llm_exprs_fini(&b->g);
    llm_call_format_fini(&b->f);
}

ggl_status llm_calls_thoughts(llm_thought thought[LLM_THOUGHTS], size_t *n,
                              const llm_calls_params *params, ggl_error *err) {
    llm_calls_params p = {.size = sizeof p};
    builder b = {.err = err};
    *n = 0;
    const ggl_status st = begin(&b, &p, params);
    if (st == GGL_OK)
        *n = find_thoughts(&b.f, b.open, &p, thought);
    end(&b);
    return st;
}

ggl_status llm_calls_grammar(llm_grammar **out, const llm_calls_params *params, ggl_str tool,
                             bool one, ggl_error *err) {
    llm_calls_params p = {.size = sizeof p};
    builder b = {.tool = tool, .one = one, .err = err};
    *out = NULL;
    ggl_status st = begin(&b, &p, params);
    if (st == GGL_OK)
        st = build(&b, out, &p);
    end(&b);
    return st;
}
