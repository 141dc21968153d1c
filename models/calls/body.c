/* Makes calls of what the patterns found. */
#include <stdio.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"

static ggl_status broken(attempt *a, const char *error) {
    a->error = error ? error : "it is no call";
    return GGL_FORMAT;
}

/* The format has the name of the function and what is wrong. */
static ggl_status broken_as(llm_calls *c, attempt *a, const char *format, ggl_str name,
                            const char *why) {
    const size_t n = ggl_utf8_cut(name.s, name.n, 64);
    snprintf(c->why, sizeof c->why, format, (int)n, name.s, why);
    return broken(a, c->why);
}

/* --- JSON texts ------------------------------------------------------------------------------- */

/* Parses; NULL: not JSON, and *why says where. The text stays in use. */
static ggl_status parse(llm_calls *c, ggl_str text, llm_json **doc, const char **why) {
    ggl_error err = {0};
    *why = NULL;
    ggl_status st = llm_json_parse_answer(doc, text.s, text.n, "JSON", &err);
    if (st == GGL_OK || st == GGL_NOMEM)
        return st;
    *why = ggl_arena_printf(&c->arena, "%s", err.msg);
    return *why ? GGL_FORMAT : GGL_NOMEM;
}

/* Returns the end of the JSON value that begins at i < s.n; of what is no JSON, some place after
 * i. */
static size_t value_end(ggl_str s, size_t i) {
    static const char ends[] = ",:]} \n\r\t";
    const bool scalar = !strchr("\"{[", s.s[i]);
    int depth = 0;
    bool quoted = false;
    for (; i < s.n; i++) {
        const char ch = s.s[i];
        GGL_STEPS(1);
        if (scalar && ch && strchr(ends, ch))
            break;
        if (quoted && ch == '\\')
            i++;
        else if (ch == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (ch == '{' || ch == '[') - (ch == '}' || ch == ']');
        if (!scalar && !quoted && depth <= 0)
            return i + 1;
    }
    return i < s.n ? i : s.n;
}

/* --- a call ----------------------------------------------------------------------------------- */

static ggl_status report(llm_calls *c, attempt *a, ggl_str name, ggl_str arguments, ggl_str id) {
    name = llm_calls_tool_name(c, llm_calls_cut_name(&c->f, name));
    if (!llm_calls_can_name(c, name))
        return broken_as(c, a, "\"%.*s\" is no name of a function%s", name, "");
    event *e = llm_calls_push(c, LLM_CALLS_CALL, (span){a->begin, a->scan});
    if (!e)
        return GGL_NOMEM;
    e->name = (ggl_str){ggl_arena_strndup(&c->arena, name.s, name.n), name.n};
    e->id = (ggl_str){ggl_arena_strndup(&c->arena, id.s ? id.s : "", id.n), id.n};
    e->arguments = (ggl_str){ggl_arena_strndup(&c->arena, arguments.s, arguments.n), arguments.n};
    return e->name.s && e->id.s && e->arguments.s ? GGL_OK : GGL_NOMEM;
}

/* Reports a call whose arguments are JSON in one line, which should be an object. */
static ggl_status with_arguments(llm_calls *c, attempt *a, ggl_str name, ggl_str json, ggl_str id) {
    llm_json *doc;
    const char *why;
    if (name.n == 0)
        return broken(a, "there is no name of a function");
    ggl_status st = parse(c, json, &doc, &why);
    if (st == GGL_FORMAT)
        return broken_as(c, a, "the arguments of \"%.*s\" are not JSON: %s", name, why);
    if (st != GGL_OK)
        return st;
    const json_kind kind = (json_kind)doc->root.kind;
    llm_json_free(doc);
    if (kind != JSON_OBJECT)
        return broken_as(c, a, "the arguments of \"%.*s\" are %s, not an object", name,
                         llm_json_kind_text(kind));
    return report(c, a, name, json, id);
}

/* The same of JSON in a string. */
static ggl_status with_text(llm_calls *c, attempt *a, ggl_str name, ggl_str text, ggl_str id) {
    ggl_str json = {"{}", 2};
    if (llm_calls_trimmed(text).n > 0) {
        const ggl_status st = llm_mend_text(&c->arena, text, &json);
        if (st == GGL_FORMAT)
            return broken_as(c, a, "the arguments of \"%.*s\" are not JSON%s", name, "");
        if (st != GGL_OK)
            return st;
    }
    return with_arguments(c, a, name, json, id);
}

/* --- {json} and {map} ------------------------------------------------------------------------- */

static const json_value *named(const json_value *v, ggl_str name) {
    for (size_t i = 0; i < v->n; i++) {
        const ggl_str is = json_name(v, i);
        if (is.n == name.n && (name.n == 0 || memcmp(is.s, name.s, name.n) == 0))
            return &v->item[i];
    }
    return NULL;
}

/* The member of one of the names a|b. */
static const json_value *member(const json_value *v, ggl_str names) {
    while (names.n > 0) {
        const char *bar = memchr(names.s, '|', names.n);
        const size_t n = bar ? (size_t)(bar - names.s) : names.n;
        const json_value *found = named(v, (ggl_str){names.s, n});
        if (found)
            return found;
        names.s += n + (bar != NULL);
        names.n -= n + (bar != NULL);
    }
    return NULL;
}

/* The text of an object's next value; text is the object as written, and *at where the value before
 * it ends, or 1. */
static ggl_str next_value_text(ggl_str text, size_t *at) {
    size_t i = *at;
    while (i < text.n && (llm_calls_is_white(text.s[i]) || text.s[i] == ','))
        i++;
    i = value_end(text, i); /* the name */
    while (i < text.n && (llm_calls_is_white(text.s[i]) || text.s[i] == ':'))
        i++;
    *at = value_end(text, i);
    return (ggl_str){text.s + i, *at - i};
}

/* The text of an object's i-th value. */
static ggl_str value_text(ggl_str text, size_t i) {
    size_t at = 1;
    ggl_str value = next_value_text(text, &at);
    while (i-- > 0)
        value = next_value_text(text, &at);
    return value;
}

static ggl_status read_object(llm_calls *c, attempt *a, const json_value *v, ggl_str text) {
    const json_value *inner = llm_json_get_kind(v, "function", JSON_OBJECT);
    if (inner && !member(v, c->f.name_key)) /* {"type": "function", "function": {..}} */
        return read_object(c, a, inner, value_text(text, (size_t)(inner - v->item)));
    const json_value *name = member(v, c->f.name_key), *args = member(v, c->f.args_key),
                     *id = member(v, c->f.id_key);
    if (!name)
        name = llm_json_get_kind(v, "function", JSON_STRING);
    if (!name || name->kind != JSON_STRING || name->n == 0)
        return broken(a, "the JSON has no name of a function");
    const ggl_str id_text = id && id->kind == JSON_STRING ? json_str(id) : (ggl_str){0};
    if (!args || args->kind == JSON_NULL)
        return with_arguments(c, a, json_str(name), (ggl_str){"{}", 2}, id_text);
    if (args->kind == JSON_STRING) /* JSON in a string, as OpenAI has it */
        return with_text(c, a, json_str(name), json_str(args), id_text);
    return with_arguments(c, a, json_str(name), value_text(text, (size_t)(args - v->item)),
                          id_text);
}

static ggl_status read_map(llm_calls *c, attempt *a, const json_value *v, ggl_str text) {
    if (v->n == 0)
        return broken(a, "the JSON has no name of a function");
    size_t at = 1;
    for (size_t i = 0; i < v->n; i++) {
        const ggl_str value = next_value_text(text, &at);
        ggl_status st = with_arguments(c, a, json_name(v, i), value, (ggl_str){0});
        if (st != GGL_OK)
            return st;
    }
    return GGL_OK;
}

/* An object of the field is one call, or in {map} several. The first that is none ends the calls of the field; what begins with it is
 * text. In a value that has not ended, the last object is a call if it has begun as one. */
static ggl_status read_element(llm_calls *c, attempt *a, const json_value *v, ggl_str text,
                               size_t *n_read) {
    const size_t before = c->n_events;
    if (v->kind != JSON_OBJECT)
        return broken(a, "the JSON is no call");
    if (a->unfinished && *n_read == a->n_whole &&
        (c->cut || !(a->was_begun_there || a->kind == PIECE_MAP)))
        return broken(a, "the call is not complete");
    const ggl_status st =
        a->kind == PIECE_MAP ? read_map(c, a, v, text) : read_object(c, a, v, text);
    if (st == GGL_FORMAT)
        c->n_events = before;
    else if (st == GGL_OK && a->unfinished && *n_read == a->n_whole)
        c->event[c->n_events - 1].unfinished = true;
    *n_read += st == GGL_OK;
    return st;
}

/* A value of the body: an object, or an array of them. */
static ggl_status read_value(llm_calls *c, attempt *a, const json_value *v, ggl_str text,
                             size_t *n_read) {
    if (v->kind != JSON_ARRAY)
        return read_element(c, a, v, text, n_read);
    size_t at = 1;
    ggl_status st = GGL_OK;
    for (uint32_t i = 0; i < v->n && st == GGL_OK; i++) {
        at += text.s[at] == ',';
        const size_t end = value_end(text, at);
        st = read_element(c, a, &v->item[i], (ggl_str){text.s + at, end - at}, n_read);
        at = end;
    }
    return st;
}

/* One value after the other, of the mended text. */
static ggl_status read_json(llm_calls *c, attempt *a) {
    ggl_str left = {a->mend.out.s, a->mend.out.n};
    ggl_status st = GGL_OK;
    size_t n_read = 0, i = c->n_events;
    while (st == GGL_OK && left.n > 0) {
        if (left.s[0] == ',') {
            left = (ggl_str){left.s + 1, left.n - 1};
            continue;
        }
        const size_t n = value_end(left, 0);
        llm_json *doc;
        const char *why;
        st = parse(c, (ggl_str){left.s, n}, &doc, &why);
        if (st == GGL_FORMAT) {
            st = broken_as(c, a, "the call is not JSON%.*s: %s", (ggl_str){"", 0}, why);
        } else if (st == GGL_OK) {
            st = read_value(c, a, &doc->root, (ggl_str){left.s, n}, &n_read);
            llm_json_free(doc);
        }
        left = (ggl_str){left.s + n, left.n - n};
    }
    if (st != GGL_FORMAT || n_read == 0)
        return st;
    a->rest = a->mend.end[n_read - 1]; /* what is read stays */
    for (; i < c->n_events; i++)
        c->event[i].text.end = a->rest;
    return GGL_OK;
}

/* --- the other fields ------------------------------------------------------------------------- */

static ggl_status read_python(llm_calls *c, attempt *a) {
    ggl_str left = llm_calls_slice(c, a->value);
    for (;;) {
        py_call call;
        const char *why;
        ggl_status st = llm_calls_python(&c->arena, &left, &call, &why);
        if (st == GGL_FORMAT)
            return broken(a, why);
        if (st != GGL_OK || call.name.n == 0)
            return st;
        st = with_arguments(c, a, call.name, call.arguments, (ggl_str){0});
        if (st != GGL_OK)
            return st;
    }
}

static ggl_status read_loose(llm_calls *c, attempt *a) {
    ggl_str text;
    const char *why;
    ggl_status st =
        llm_calls_loose(&c->arena, llm_calls_slice(c, a->value), c->f.quote, &text, &why);
    if (st == GGL_FORMAT)
        return broken(a, why);
    return st == GGL_OK ? with_arguments(c, a, llm_calls_slice(c, a->name), text, (ggl_str){0})
                        : st;
}

static ggl_status put_argument(llm_calls *c, attempt *a, const argument *arg, call_text *t) {
    const ggl_str key = llm_calls_trimmed(llm_calls_slice(c, arg->key)),
                  function = llm_calls_function_of(c, a);
    ggl_str value = llm_calls_slice(c, arg->value);
    bool string = arg->string;
    ggl_status st = GGL_OK;
    if (!arg->verbatim)
        value = llm_calls_unwrap(&c->f, value);
    if (!arg->typed)
        st = llm_calls_as_string(llm_calls_kinds(llm_calls_schema(c, function, key)), value,
                                 &string);
    else if (!string)
        st = llm_calls_as_string(0, value, &string);
    if (st != GGL_OK)
        return st;
    llm_calls_put(t, ",\"", t->n == 1 ? 0 : 1);
    llm_calls_put(t, "\"", 1);
    llm_calls_put_string(t, key);
    llm_calls_put(t, "\":\"", string ? 3 : 2);
    if (string)
        llm_calls_put_string(t, value);
    else
        (void)llm_calls_put_line(t, value);
    llm_calls_put(t, "\"", string);
    return GGL_OK;
}

static ggl_status read_params(llm_calls *c, attempt *a) {
    call_text t = {0};
    ggl_status st = GGL_OK;
    llm_calls_put(&t, "{", 1);
    for (size_t i = 0; i < a->n_args && st == GGL_OK; i++)
        st = put_argument(c, a, &a->arg[i], &t);
    llm_calls_put(&t, "}", 1);
    if (st == GGL_OK && t.no_memory)
        st = GGL_NOMEM;
    if (st == GGL_OK) /* they are JSON by their making */
        st = report(c, a, llm_calls_slice(c, a->name), (ggl_str){t.s, t.n}, (ggl_str){0});
    if (st == GGL_OK)
        c->event[c->n_events - 1].unfinished = a->unfinished;
    ggl_free(t.s);
    return st;
}

static ggl_status read_tree(llm_calls *c, attempt *a) {
    ggl_str text;
    const char *why;
    const ggl_str name = llm_calls_function_of(c, a);
    ggl_status st = llm_calls_tree(c, name, llm_calls_slice(c, a->value), &text, &why);
    if (st == GGL_FORMAT)
        return broken(a, why);
    return st == GGL_OK ? with_arguments(c, a, name, text, (ggl_str){0}) : st;
}

static ggl_status read_args(llm_calls *c, attempt *a) {
    ggl_str name, id;
    llm_calls_identify(c, a, &name, &id);
    if (a->unfinished && (c->cut || a->part.n_begun == 0))
        return broken(a, "the call is not complete");
    const ggl_status st = with_arguments(c, a, name, (ggl_str){a->mend.out.s, a->mend.out.n}, id);
    if (st == GGL_OK)
        c->event[c->n_events - 1].unfinished = a->unfinished;
    return st;
}

ggl_status llm_calls_read(llm_calls *c, attempt *a, ggl_error *err) {
    const size_t before = c->n_events;
    ggl_status st;
    switch (a->kind) {
    case PIECE_JSON:
    case PIECE_MAP:
        st = read_json(c, a);
        break;
    case PIECE_PYTHON:
        st = read_python(c, a);
        break;
    case PIECE_LOOSE:
        st = read_loose(c, a);
        break;
    case PIECE_PARAMS:
        st = read_params(c, a);
        break;
    case PIECE_TREE:
        st = read_tree(c, a);
        break;
    default:
        st = read_args(c, a);
    }
    if (st == GGL_OK && c->n_events == before)
        st = broken(a, "there is no call");
    for (size_t i = before; st == GGL_OK && i < c->n_events; i++) {
        c->event[i].has_begun = llm_calls_reports(c) && i - before < (size_t)a->part.n_begun;
        if (c->either && !a->mark && !llm_calls_function_named(c, c->event[i].name))
            st = broken(a, "there is no such tool");
    }
    if (st == GGL_FORMAT)
        c->n_events = before;
    return st == GGL_NOMEM ? ggl_fail(err, st, "out of memory for the calls of an answer") : st;
}
