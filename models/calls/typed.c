/* Values that are written without quotes: what the schemas of the tools say of them, and arguments as elements. */
#include <stdio.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

enum { MAX_DEPTH = 64, MAX_UNION = 4 };

/* --- schemas ------------------------------------------------------------------------------------ */

/* The kinds of a name of "type". */
static unsigned named_kinds(const json_value *name) {
    static const struct {
        const char *name;
        unsigned kinds;
    } row[] = {{"string", 1u << JSON_STRING},  {"number", 1u << JSON_NUMBER},
               {"integer", 1u << JSON_NUMBER}, {"boolean", 1u << JSON_BOOL},
               {"null", 1u << JSON_NULL},      {"object", 1u << JSON_OBJECT},
               {"array", 1u << JSON_ARRAY}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (llm_json_is(name, row[i].name))
            return row[i].kinds;
    return 0;
}

static unsigned kinds_at(const json_value *schema, int depth);

/* The kinds of all in a list: types, values of an enum, or schemas. 0 if one of them does not say. */
static unsigned kinds_of_list(const json_value *list, char what, int depth) {
    unsigned kinds = 0;
    for (size_t i = 0; i < list->n; i++) {
        const json_value *v = &list->item[i];
        const unsigned one = what == 't'   ? named_kinds(v)
                             : what == 'e' ? 1u << v->kind
                                           : kinds_at(v, depth + 1);
        if (one == 0)
            return 0;
        kinds |= one;
    }
    return kinds;
}

static unsigned kinds_at(const json_value *schema, int depth) {
    static const struct {
        const char *name;
        char what;
    } lists[] = {{"type", 't'}, {"enum", 'e'}, {"anyOf", 's'}, {"oneOf", 's'}};
    if (!schema || schema->kind != JSON_OBJECT || depth > MAX_UNION)
        return 0;
    const json_value *type = llm_json_get_kind(schema, "type", JSON_STRING),
                     *constant = llm_json_get(schema, "const");
    if (type)
        return named_kinds(type);
    if (constant)
        return 1u << constant->kind;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const json_value *list = llm_json_get_kind(schema, lists[i].name, JSON_ARRAY);
        if (list)
            return kinds_of_list(list, lists[i].what, depth);
    }
    return 0;
}

unsigned llm_calls_kinds(const json_value *schema) {
    return kinds_at(schema, 0);
}

static const json_value *member(const json_value *v, ggl_str name) {
    for (size_t i = 0; v && i < v->n; i++) {
        const ggl_str is = json_name(v, i);
        if (is.n == name.n && memcmp(is.s, name.s, name.n) == 0)
            return &v->item[i];
    }
    return NULL;
}

/* The keyword of a schema, or of one of its alternatives. */
static const json_value *keyword(const json_value *schema, const char *name, json_kind kind,
                                 int depth) {
    static const char *const lists[] = {"anyOf", "oneOf"};
    if (!schema || schema->kind != JSON_OBJECT || depth > MAX_UNION)
        return NULL;
    const json_value *found = llm_json_get_kind(schema, name, kind);
    for (int k = 0; k < 2 && !found; k++) {
        const json_value *list = llm_json_get_kind(schema, lists[k], JSON_ARRAY);
        for (size_t i = 0; list && i < list->n && !found; i++)
            found = keyword(&list->item[i], name, kind, depth + 1);
    }
    return found;
}

/* --- tools -------------------------------------------------------------------------------------- */

const json_value *llm_calls_function(const json_value *tool, ggl_str *name) {
    const json_value *inner = llm_json_get_kind(tool, "function", JSON_OBJECT);
    const json_value *f = inner ? inner : tool, *own = llm_json_get_kind(f, "name", JSON_STRING);
    *name = own ? json_str(own) : (ggl_str){"", 0};
    return f;
}

/* Says which member has a schema that nobody reads; NULL: none has. */
static const char *schema_elsewhere(const json_value *f) {
    static const char *const names[] = {"input_schema", "inputSchema"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (llm_json_get(f, names[k]) && !llm_json_get(f, "parameters"))
            return names[k];
    return NULL;
}

static ggl_status check_tool(const json_value *tool, size_t i, ggl_error *err) {
    ggl_str name;
    const json_value *f = llm_calls_function(tool, &name);
    const json_value *parameters = llm_json_get(f, "parameters");
    const char *elsewhere = schema_elsewhere(f);
    if (tool->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT,
                        "tools[%zu]: %s, expected an object that describes a function", i,
                        llm_json_kind_text((json_kind)tool->kind));
    if (name.n == 0)
        return ggl_fail(err, GGL_FORMAT, "tools[%zu]: the function has no name", i);
    if (elsewhere)
        return ggl_fail(
            err, GGL_FORMAT,
            "tools[%zu]: \"%s\" is not read; write {\"type\": \"function\", \"function\": "
            "{\"name\": .., \"parameters\": {..}}}",
            i, elsewhere);
    if (parameters && parameters->kind != JSON_OBJECT && parameters->kind != JSON_NULL)
        return ggl_fail(err, GGL_FORMAT,
                        "tools[%zu]: \"parameters\" is %s, expected a schema, an object", i,
                        llm_json_kind_text((json_kind)parameters->kind));
    return GGL_OK;
}

ggl_status llm_calls_check_tools(const json_value *tools, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (tools->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_FORMAT, "tools: %s, expected an array of functions",
                        llm_json_kind_text((json_kind)tools->kind));
    for (size_t i = 0; i < tools->n && st == GGL_OK; i++)
        st = check_tool(&tools->item[i], i, err);
    return st;
}

const json_value *llm_calls_function_named(const llm_calls *c, ggl_str name) {
    for (uint32_t i = 0; c->tools && i < c->tools->n; i++) {
        ggl_str own;
        const json_value *f = llm_calls_function(&c->tools->item[i], &own);
        if (own.n > 0 && own.n == name.n && memcmp(own.s, name.s, own.n) == 0)
            return f;
    }
    return NULL;
}

/* The schema of a function's arguments; NULL if none. */
static const json_value *parameters(const llm_calls *c, ggl_str function) {
    return llm_json_get(llm_calls_function_named(c, function), "parameters");
}

const json_value *llm_calls_schema_in(const json_value *parameters, ggl_str key) {
    return member(keyword(parameters, "properties", JSON_OBJECT, 0), key);
}

const json_value *llm_calls_schema(const llm_calls *c, ggl_str function, ggl_str key) {
    return llm_calls_schema_in(parameters(c, function), key);
}

/* --- values ------------------------------------------------------------------------------------- */

ggl_str llm_calls_unwrap(const call_format *f, ggl_str s) {
    const bool first = s.n > 0 && s.s[0] == '\n', last = s.n > 0 && s.s[s.n - 1] == '\n';
    if (s.n == 1 && first)
        return (ggl_str){s.s, f->lines ? 0 : 1};
    if (!first || (!last && !f->lines))
        return s;
    return (ggl_str){s.s + 1, s.n - 1 - last};
}

/* Parses a text. *kind: the value's; *is_json is false for other texts, and for NaN and
 * Infinity. */
static ggl_status parse(ggl_str text, bool *is_json, json_kind *kind) {
    llm_json *doc;
    const ggl_status st = llm_json_parse_answer(&doc, text.s, text.n, "JSON", NULL);
    *is_json = st == GGL_OK;
    if (st != GGL_OK)
        return st == GGL_NOMEM ? st : GGL_OK;
    *kind = (json_kind)doc->root.kind;
    llm_json_free(doc);
    *is_json = llm_calls_put_line(NULL, text);
    return GGL_OK;
}

ggl_status llm_calls_as_string(unsigned kinds, ggl_str text, bool *string) {
    const unsigned string_bit = 1u << JSON_STRING;
    const unsigned scalars = 1u << JSON_NULL | 1u << JSON_BOOL | 1u << JSON_NUMBER;
    bool is_json;
    json_kind kind = JSON_NULL;
    *string = kinds == string_bit;
    if (*string)
        return GGL_OK;
    const ggl_status st = parse(text, &is_json, &kind);
    /* where strings are allowed, "5" is one unless numbers are, too */
    *string = !is_json || (kinds & string_bit && !(kinds & scalars & 1u << kind));
    return st;
}

/* --- elements ----------------------------------------------------------------------------------- */

typedef struct tree {
    ggl_str text, tag;
    size_t i;
    call_text out;
    const char *why;
    ggl_status st; /* not GGL_OK: no memory */
} tree;

static bool wrong(tree *t, const char *why) {
    t->why = why;
    return false;
}

static bool at_tag(const tree *t, size_t i, char next) {
    const size_t n = t->tag.n;
    return t->text.n - i > n + 1 && memcmp(t->text.s + i, t->tag.s, n) == 0 &&
           t->text.s[i + n] == '<' && (t->text.s[i + n + 1] == '/') == (next == '/');
}

static void skip_white(tree *t) {
    while (t->i < t->text.n && llm_calls_is_white(t->text.s[t->i]))
        t->i++;
}

/* Takes the name in a tag; it follows the tag's first `before` bytes. */
static bool take_tag(tree *t, size_t before, ggl_str *name) {
    const char *s = t->text.s + t->i + t->tag.n + before;
    const size_t left = t->text.n - t->i - t->tag.n - before;
    const char *end = memchr(s, '>', left < MAX_NAME ? left : MAX_NAME);
    if (!end || end == s)
        return wrong(t, "an element has no name");
    *name = (ggl_str){s, (size_t)(end - s)};
    t->i = (size_t)(end - t->text.s) + 1;
    return true;
}

static bool take_value(tree *t, const json_value *schema, ggl_str name, int depth);

/* Takes elements up to something else, as an object, or as a list. */
static bool take_elements(tree *t, const json_value *schema, bool list, int depth) {
    const json_value *properties = keyword(schema, "properties", JSON_OBJECT, 0);
    const json_value *items = keyword(schema, "items", JSON_OBJECT, 0);
    if (depth > MAX_DEPTH)
        return wrong(t, "the arguments are nested too deeply");
    llm_calls_put(&t->out, list ? "[" : "{", 1);
    for (bool first = true;; first = false) {
        ggl_str name, end;
        skip_white(t);
        if (!at_tag(t, t->i, '<'))
            break;
        if (!take_tag(t, 1, &name))
            return false;
        llm_calls_put(&t->out, ",", !first);
        if (!list) {
            llm_calls_put(&t->out, "\"", 1);
            llm_calls_put_string(&t->out, name);
            llm_calls_put(&t->out, "\":", 2);
        }
        if (!take_value(t, list ? items : member(properties, name), name, depth))
            return false;
        if (!at_tag(t, t->i, '/') || !take_tag(t, 2, &end) || end.n != name.n ||
            memcmp(end.s, name.s, end.n) != 0)
            return wrong(t, "an element does not end");
    }
    llm_calls_put(&t->out, list ? "]" : "}", 1);
    return true;
}

/* Finds where the text of the element `name` ends: at its closing tag or, if it is no string, at any tag. */
static bool find_end(const tree *t, ggl_str name, bool string, size_t *end) {
    for (size_t i = t->i; i < t->text.n; i++) {
        GGL_STEPS(1);
        if (t->text.s[i] != t->tag.s[0] || !at_tag(t, i, '/'))
            continue;
        const size_t at = i + t->tag.n + 2;
        *end = i;
        if (!string || (t->text.n - at > name.n && t->text.s[at + name.n] == '>' &&
                        memcmp(t->text.s + at, name.s, name.n) == 0))
            return true;
    }
    return false;
}

static void put_scalar(tree *t, ggl_str text, unsigned kinds) {
    bool string;
    if (text.n == 0 && kinds & (1u << JSON_ARRAY | 1u << JSON_OBJECT)) {
        llm_calls_put(&t->out, kinds & 1u << JSON_ARRAY ? "[]" : "{}", 2);
        return;
    }
    t->st = llm_calls_as_string(kinds, text, &string);
    llm_calls_put(&t->out, "\"", string);
    if (string)
        llm_calls_put_string(&t->out, text);
    else
        llm_calls_put(&t->out, text.s, text.n);
    llm_calls_put(&t->out, "\"", string);
}

static bool take_value(tree *t, const json_value *schema, ggl_str name, int depth) {
    const unsigned kinds = llm_calls_kinds(schema), is_list = 1u << JSON_ARRAY;
    const bool string = kinds & 1u << JSON_STRING;
    const size_t begin = t->i;
    size_t end;
    skip_white(t);
    if (!string && at_tag(t, t->i, '<')) {
        const size_t at = t->i + t->tag.n;
        const bool items = t->text.n - at > 6 && memcmp(t->text.s + at, "<item>", 6) == 0;
        const bool list =
            kinds & is_list ? !(kinds & 1u << JSON_OBJECT) || items : kinds == 0 && items;
        return take_elements(t, schema, list, depth + 1);
    }
    if (string)
        t->i = begin;
    if (!find_end(t, name, string, &end))
        return wrong(t, "an element does not end");
    put_scalar(t, (ggl_str){t->text.s + t->i, end - t->i}, kinds);
    t->i = end;
    return t->st == GGL_OK;
}

ggl_status llm_calls_tree(llm_calls *c, ggl_str function, ggl_str text, ggl_str *out,
                          const char **why) {
    tree t = {.text = text, .tag = c->f.tag};
    bool good = take_elements(&t, parameters(c, function), false, 0);
    if (good && t.i < text.n)
        good = wrong(&t, "something else is between the elements");
    ggl_status st = t.st != GGL_OK    ? t.st
                    : t.out.no_memory ? GGL_NOMEM
                    : good            ? GGL_OK
                                      : GGL_FORMAT;
    *out = (ggl_str){0};
    *why = t.why;
    if (st == GGL_OK) {
        *out = (ggl_str){ggl_arena_strndup(&c->arena, t.out.s, t.out.n), t.out.n};
        st = out->s ? GGL_OK : GGL_NOMEM;
    }
    ggl_free(t.out.s);
    return st;
}
