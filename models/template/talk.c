#include "llm/internal/talk.h"

#include <string.h>

#include "common/json.h"
#include "common/json_write.h"
#include "ggl/alloc.h"

typedef struct message {
    llm_json_out json; /* the whole object */
    char *role;        /* has a NUL */
    char *content;     /* [n_content]; NULL: no string */
    size_t n_content;
    llm_json_out calls; /* as llm_talk_calls returns them */
} message;

typedef struct variable {
    char *name;
    size_t n_name;
    llm_json_out value;
} variable;

/* They are searched one by one. */
enum { MOST_VARIABLES = 1000 };

struct llm_talk {
    message *message;
    size_t n, cap;
    variable *variable;
    size_t n_variables, cap_variables;
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
}

/* Returns a copy with a NUL; NULL: out of memory. */
static char *copy_of(ggl_str s) {
    char *copy = ggl_calloc(s.n + 1, 1);
    if (copy && s.n > 0)
        memcpy(copy, s.s, s.n);
    return copy;
}

ggl_status llm_talk_new(llm_talk **out, ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    return *out ? GGL_OK : no_memory(err);
}

static void message_fini(message *m) {
    ggl_free(m->json.s);
    ggl_free(m->role);
    ggl_free(m->content);
    ggl_free(m->calls.s);
}

static void variable_fini(variable *v) {
    ggl_free(v->name);
    ggl_free(v->value.s);
}

void llm_talk_free(llm_talk *t) {
    if (!t)
        return;
    llm_talk_cut(t, 0);
    for (size_t i = 0; i < t->n_variables; i++)
        variable_fini(&t->variable[i]);
    ggl_free(t->message);
    ggl_free(t->variable);
    ggl_free(t);
}

/* --- messages --------------------------------------------------------------------------------- */

size_t llm_talk_n(const llm_talk *t) {
    return t->n;
}

ggl_str llm_talk_role(const llm_talk *t, size_t i) {
    return (ggl_str){t->message[i].role, strlen(t->message[i].role)};
}

ggl_str llm_talk_content(const llm_talk *t, size_t i) {
    return (ggl_str){t->message[i].content, t->message[i].n_content};
}

ggl_str llm_talk_calls(const llm_talk *t, size_t i) {
    return (ggl_str){t->message[i].calls.s, t->message[i].calls.n};
}

/* Makes a message of a role and a content. False: out of memory. */
static bool message_make(message *m, ggl_str role, ggl_str content) {
    *m = (message){.role = copy_of(role), .content = copy_of(content), .n_content = content.n};
    llm_json_format(&m->json, "{'role': %.*s, 'content': %.*s}", LLM_JSON_STR(role),
                    LLM_JSON_STR(content));
    if (m->role && m->content && !m->json.failed)
        return true;
    message_fini(m);
    return false;
}

ggl_status llm_talk_add(llm_talk *t, const char *role, ggl_str content, ggl_error *err) {
    message m;
    if (!ggl_grow(&t->message, &t->cap, t->n + 1, sizeof *t->message) ||
        !message_make(&m, (ggl_str){role, strlen(role)}, content))
        return no_memory(err);
    t->message[t->n++] = m;
    return GGL_OK;
}

void llm_talk_cut(llm_talk *t, size_t n) {
    while (t->n > n)
        message_fini(&t->message[--t->n]);
}

static bool is_system(const message *m) {
    return strcmp(m->role, "system") == 0 || strcmp(m->role, "developer") == 0;
}

ggl_status llm_talk_set_system(llm_talk *t, ggl_str text, ggl_error *err) {
    const bool had = t->n > 0 && is_system(&t->message[0]), wants = text.n > 0;
    message m;
    if (!wants && !had)
        return GGL_OK;
    if (wants && (!ggl_grow(&t->message, &t->cap, t->n + 1, sizeof *t->message) ||
                  !message_make(&m, (ggl_str){"system", 6}, text)))
        return no_memory(err);
    if (had)
        message_fini(&t->message[0]);
    if (had != wants)
        memmove(t->message + wants, t->message + had, (t->n - had) * sizeof *t->message);
    if (wants)
        t->message[0] = m;
    t->n = t->n - had + wants;
    return GGL_OK;
}

size_t llm_talk_begin(const llm_talk *t) {
    size_t i = 0;
    while (i < t->n && is_system(&t->message[i]))
        i++;
    return i;
}

size_t llm_talk_next_turn(const llm_talk *t, size_t i) {
    for (i++; i < t->n; i++)
        if (strcmp(t->message[i].role, "user") == 0)
            return i;
    return t->n;
}

/* --- variables -------------------------------------------------------------------------------- */

static variable *find(llm_talk *t, ggl_str name) {
    for (size_t i = 0; i < t->n_variables; i++)
        if (t->variable[i].n_name == name.n &&
            (name.n == 0 || memcmp(t->variable[i].name, name.s, name.n) == 0))
            return &t->variable[i];
    return NULL;
}

static ggl_status set_variable(llm_talk *t, ggl_str name, const json_value *value, ggl_error *err) {
    variable new = {.name = copy_of(name), .n_name = name.n};
    llm_json_put_value(&new.value, value);
    if (!new.name || new.value.failed ||
        !ggl_grow(&t->variable, &t->cap_variables, t->n_variables + 1, sizeof *t->variable)) {
        variable_fini(&new);
        return no_memory(err);
    }
    variable *old = find(t, name); /* after the list may have moved */
    if (!old && t->n_variables == MOST_VARIABLES) {
        variable_fini(&new);
        return ggl_fail(err, GGL_LIMIT, "a conversation has more than %d variables",
                        MOST_VARIABLES);
    }
    if (old) {
        variable_fini(old);
        *old = new;
    } else {
        t->variable[t->n_variables++] = new;
    }
    return GGL_OK;
}

/* Sets all variables of an object but "messages". */
static ggl_status set_all(llm_talk *t, const json_value *object, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (uint32_t i = 0; i < object->n && st == GGL_OK; i++)
        if (!ggl_str_is(json_name(object, i), "messages"))
            st = set_variable(t, json_name(object, i), &object->item[i], err);
    return st;
}

static ggl_status parse_object(llm_json **doc, ggl_str json, const char *name, ggl_error *err) {
    ggl_status st = llm_json_parse(doc, json.s, json.n, name, err);
    if (st == GGL_OK && (*doc)->root.kind != JSON_OBJECT) {
        st = ggl_fail(err, GGL_FORMAT, "%s: a JSON object is expected, not %s", name,
                      llm_json_kind_text((json_kind)(*doc)->root.kind));
        llm_json_free(*doc);
        *doc = NULL;
    }
    return st;
}

ggl_status llm_talk_set(llm_talk *t, ggl_str json, const char *name, ggl_error *err) {
    llm_json *doc = NULL;
    ggl_status st = parse_object(&doc, json, name, err);
    if (st != GGL_OK)
        return st;
    st = llm_json_get(&doc->root, "messages")
             ? ggl_fail(err, GGL_FORMAT,
                        "%s: \"messages\" is the conversation itself, and cannot be set", name)
             : set_all(t, &doc->root, err);
    llm_json_free(doc);
    return st;
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Writes the calls of "tool_calls"; OpenAI's form has each of them in a "function". */
static void put_calls(llm_json_out *out, const json_value *calls) {
    for (uint32_t i = 0; calls && i < calls->n; i++) {
        const json_value *call = &calls->item[i];
        const json_value *function = llm_json_get_kind(call, "function", JSON_OBJECT);
        const json_value *name = llm_json_get(function ? function : call, "name");
        const json_value *arguments = llm_json_get(function ? function : call, "arguments");
        llm_json_put_text(out, "{\"name\": ");
        if (name)
            llm_json_put_value(out, name);
        else
            llm_json_put_text(out, "null");
        llm_json_put_text(out, ", \"arguments\": ");
        if (arguments)
            llm_json_put_value(out, arguments);
        else
            llm_json_put_text(out, "{}");
        llm_json_put_text(out, "}\n");
    }
}

/* A content is a string or a list of parts. It may be missing, or null, beside calls of tools. */
static ggl_status check_content(const json_value *v, size_t at, const char *name, ggl_error *err) {
    const json_value *content = llm_json_get(v, "content");
    const json_value *calls = llm_json_get_kind(v, "tool_calls", JSON_ARRAY);
    if (content && (content->kind == JSON_STRING || content->kind == JSON_ARRAY))
        return GGL_OK;
    if ((!content || content->kind == JSON_NULL) && calls && calls->n > 0)
        return GGL_OK;
    if (!content)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: message %zu has no \"content\"; write {\"role\": \"user\", "
                        "\"content\": \"Hi\"}",
                        name, at);
    return ggl_fail(err, GGL_FORMAT,
                    "%s: the \"content\" of message %zu is %s; a string or a list is expected",
                    name, at, llm_json_kind_text((json_kind)content->kind));
}

static ggl_status read_message(llm_talk *t, const json_value *v, const char *name, ggl_error *err) {
    const json_value *role = llm_json_get_kind(v, "role", JSON_STRING);
    const json_value *content = llm_json_get_kind(v, "content", JSON_STRING);
    if (!role)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: message %zu has no \"role\"; write {\"role\": \"user\", \"content\": "
                        "\"Hi\"}",
                        name, t->n + 1);
    message m = {.role = copy_of(json_str(role)),
                 .content = content ? copy_of(json_str(content)) : NULL,
                 .n_content = content ? content->n : 0};
    llm_json_put_value(&m.json, v);
    put_calls(&m.calls, llm_json_get_kind(v, "tool_calls", JSON_ARRAY));
    if (!m.role || (content && !m.content) || m.json.failed || m.calls.failed ||
        !ggl_grow(&t->message, &t->cap, t->n + 1, sizeof *t->message)) {
        message_fini(&m);
        return no_memory(err);
    }
    t->message[t->n++] = m;
    return GGL_OK;
}

ggl_status llm_talk_add_json(llm_talk *t, ggl_str json, const char *name, ggl_error *err) {
    llm_json *doc = NULL;
    ggl_status st = llm_json_parse(&doc, json.s, json.n, name, err);
    if (st == GGL_OK)
        st = read_message(t, &doc->root, name, err);
    llm_json_free(doc);
    return st;
}

static ggl_status read_all(llm_talk *t, const json_value *root, const char *name, ggl_error *err) {
    const json_value *messages = llm_json_get_kind(root, "messages", JSON_ARRAY);
    if (!messages)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: there is no list \"messages\": this is not a conversation", name);
    ggl_status st = set_all(t, root, err);
    for (uint32_t i = 0; i < messages->n && st == GGL_OK; i++) {
        st = read_message(t, &messages->item[i], name, err);
        if (st == GGL_OK)
            st = check_content(&messages->item[i], i + 1, name, err);
    }
    return st;
}

ggl_status llm_talk_read(llm_talk **out, ggl_str json, const char *name, ggl_error *err) {
    llm_json *doc = NULL;
    *out = NULL;
    ggl_status st = parse_object(&doc, json, name, err);
    llm_talk *t = NULL;
    if (st == GGL_OK)
        st = llm_talk_new(&t, err);
    if (st == GGL_OK)
        st = read_all(t, &doc->root, name, err);
    llm_json_free(doc);
    if (st != GGL_OK) {
        llm_talk_free(t);
        return st;
    }
    *out = t;
    return GGL_OK;
}

ggl_status llm_talk_json(const llm_talk *t, size_t first, char **text, size_t *n, ggl_error *err) {
    llm_json_out out = {0};
    const size_t begin = llm_talk_begin(t);
    bool any = false;
    *text = NULL;
    *n = 0;
    llm_json_put_text(&out, "{");
    for (size_t i = 0; i < t->n_variables; i++) {
        llm_json_put_string(&out, (ggl_str){t->variable[i].name, t->variable[i].n_name});
        llm_json_put_text(&out, ": ");
        llm_json_put(&out, t->variable[i].value.s, t->variable[i].value.n);
        llm_json_put_text(&out, ",\n ");
    }
    llm_json_put_text(&out, "\"messages\": [");
    for (size_t i = 0; i < t->n; i++) {
        if (i >= begin && i < first)
            continue;
        llm_json_put_text(&out, any ? ",\n  " : "\n  ");
        llm_json_put(&out, t->message[i].json.s, t->message[i].json.n);
        any = true;
    }
    llm_json_put_text(&out, any ? "\n ]}\n" : "]}\n");
    if (out.failed) {
        ggl_free(out.s);
        return no_memory(err);
    }
    *text = out.s;
    *n = out.n;
    return GGL_OK;
}
