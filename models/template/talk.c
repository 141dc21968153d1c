#include "talk_impl.h"

#include <inttypes.h>
#include <string.h>

#include "common/json_make.h"
#include "common/json_write.h"
#include "ggl/internal/show.h"

/* Variables are searched one by one. */
enum { MOST_VARIABLES = 1000 };

ggl_status llm_talk_new(llm_talk **out, ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    return *out ? GGL_OK : llm_talk_no_memory(err);
}

ggl_status llm_talk_copy(llm_talk **out, const llm_talk *of, size_t n, ggl_error *err) {
    llm_talk *t = *out = ggl_calloc(1, sizeof *t);
    if (!t || !ggl_grow(&t->message, &t->cap, n, sizeof *t->message) ||
        !ggl_grow(&t->variable, &t->cap_variables, of->n_variables, sizeof *t->variable)) {
        llm_talk_free(t);
        *out = NULL;
        return llm_talk_no_memory(err);
    }
    if (n > 0)
        memcpy(t->message, of->message, n * sizeof *t->message);
    if (of->n_variables > 0)
        memcpy(t->variable, of->variable, of->n_variables * sizeof *t->variable);
    t->n = n;
    t->n_variables = of->n_variables;
    return GGL_OK;
}

void llm_talk_free(llm_talk *t) {
    if (!t)
        return;
    for (size_t i = 0; i < t->n_docs; i++)
        llm_json_free(t->doc[i]);
    ggl_free(t->doc);
    ggl_free(t->message);
    ggl_free(t->variable);
    ggl_arena_fini(&t->arena);
    ggl_free(t);
}

/* --- messages --------------------------------------------------------------------------------- */

size_t llm_talk_n(const llm_talk *t) {
    return t->n;
}

const llm_talk_message *llm_talk_at(const llm_talk *t, size_t i) {
    return &t->message[i];
}

/* Copies a text as UTF-8. */
static ggl_status copy_text(llm_talk *t, ggl_str *to, ggl_str from, ggl_error *err) {
    static const char replacement[] = "\xef\xbf\xbd";
    size_t n_bad = 0, n = 0;
    for (size_t i = 0, len; i < from.n; i += len ? len : 1) {
        len = ggl_utf8_length(from.s + i, from.n - i);
        n_bad += len == 0;
    }
    if (from.n > UINT32_MAX - 2 * n_bad)
        return ggl_fail(err, GGL_LIMIT, "a content of %zu bytes; it may have less than 4 GiB",
                        from.n);
    char *s = ggl_arena_alloc(&t->arena, from.n + 2 * n_bad + 1, 1);
    if (!s)
        return llm_talk_no_memory(err);
    for (size_t i = 0, len; i < from.n; i += len ? len : 1) {
        len = n_bad > 0 ? ggl_utf8_length(from.s + i, from.n - i) : from.n;
        memcpy(s + n, len ? from.s + i : replacement, len ? len : 3);
        n += len ? len : 3;
    }
    *to = (ggl_str){s, n};
    return GGL_OK;
}

/* Makes a message of a role and a content, which are copied. */
static ggl_status make(llm_talk *t, llm_talk_message *m, const char *role, ggl_str content,
                       ggl_error *err) {
    *m = (llm_talk_message){0};
    json_value *object = ggl_arena_alloc(&t->arena, 1, sizeof *object);
    ggl_status st = object ? copy_text(t, &m->role, (ggl_str){role, strlen(role)}, err)
                           : llm_talk_no_memory(err);
    if (st == GGL_OK)
        st = copy_text(t, &m->content, content, err);
    if (st != GGL_OK)
        return st;
    const llm_json_member members[] = {{{"role", 4}, llm_json_of_str(m->role)},
                                       {{"content", 7}, llm_json_of_str(m->content)}};
    m->object = object;
    return llm_json_make_object(object, &t->arena, members, 2) ? GGL_OK : llm_talk_no_memory(err);
}

static ggl_status add(llm_talk *t, const llm_talk_message *m, ggl_error *err) {
    if (!ggl_grow(&t->message, &t->cap, t->n + 1, sizeof *t->message))
        return llm_talk_no_memory(err);
    t->message[t->n++] = *m;
    return GGL_OK;
}

ggl_status llm_talk_add(llm_talk *t, const char *role, ggl_str content, ggl_error *err) {
    llm_talk_message m;
    const ggl_status st = make(t, &m, role, content, err);
    return st == GGL_OK ? add(t, &m, err) : st;
}

ggl_status llm_talk_add_value(llm_talk *t, const json_value *message, const llm_part_reader *reader,
                              ggl_error *err) {
    llm_talk_message m;
    const ggl_status st = llm_talk_make_message(t, &m, message, reader, err);
    return st == GGL_OK ? add(t, &m, err) : st;
}

ggl_status llm_talk_append(llm_talk *t, ggl_str text, ggl_error *err) {
    llm_talk_message *m = t->n > 0 ? &t->message[t->n - 1] : NULL;
    if (!m)
        return ggl_fail(err, GGL_USAGE, "there is no message to be continued");
    if (m->content.n == 0)
        return ggl_fail(
            err, GGL_USAGE,
            "messages[%zu] (%.*s): the last message cannot be continued: it has no text", t->n - 1,
            (int)(m->role.n < 40 ? m->role.n : 40), m->role.s);
    if (text.n > UINT32_MAX - m->content.n)
        return ggl_fail(err, GGL_LIMIT, "a content has at most 4 GiB");
    json_value *object = ggl_arena_alloc(&t->arena, 1, sizeof *object);
    char *s = ggl_arena_alloc(&t->arena, m->content.n + text.n + 1, 1);
    if (!object || !s)
        return llm_talk_no_memory(err);
    memcpy(s, m->content.s, m->content.n);
    if (text.n > 0)
        memcpy(s + m->content.n, text.s, text.n);
    const ggl_str whole = {s, m->content.n + text.n};
    if (!llm_json_make_with(object, &t->arena, m->object, "content", llm_json_of_str(whole)))
        return llm_talk_no_memory(err);
    m->content = whole;
    m->object = object;
    return GGL_OK;
}

void llm_talk_cut(llm_talk *t, size_t n) {
    t->n = t->n < n ? t->n : n;
}

static bool is_system(const llm_talk_message *m) {
    return ggl_str_is(m->role, "system") || ggl_str_is(m->role, "developer");
}

ggl_status llm_talk_set_system(llm_talk *t, ggl_str text, ggl_error *err) {
    const bool had = t->n > 0 && is_system(&t->message[0]), wants = text.n > 0;
    llm_talk_message m = {0};
    const ggl_status st = wants ? make(t, &m, "system", text, err) : GGL_OK;
    if (st != GGL_OK || (!wants && !had))
        return st;
    if (!ggl_grow(&t->message, &t->cap, t->n + 1, sizeof *t->message))
        return llm_talk_no_memory(err);
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
        if (ggl_str_is(t->message[i].role, "user"))
            return i;
    return t->n;
}

/* --- variables -------------------------------------------------------------------------------- */

ggl_status llm_talk_put(llm_talk *t, ggl_str name, const json_value *value, ggl_error *err) {
    size_t k = 0;
    while (k < t->n_variables && !ggl_str_equal(t->variable[k].name, name))
        k++;
    if (k == MOST_VARIABLES)
        return ggl_fail(err, GGL_LIMIT, "a conversation has more than %d variables",
                        MOST_VARIABLES);
    if (!ggl_grow(&t->variable, &t->cap_variables, k + 1, sizeof *t->variable))
        return llm_talk_no_memory(err);
    t->variable[k] = (talk_variable){name, value};
    t->n_variables += k == t->n_variables;
    return GGL_OK;
}

const json_value *llm_talk_get(const llm_talk *t, const char *name) {
    for (size_t k = 0; k < t->n_variables; k++)
        if (ggl_str_is(t->variable[k].name, name))
            return t->variable[k].value->kind == JSON_NULL ? NULL : t->variable[k].value;
    return NULL;
}

ggl_str llm_talk_variable(const llm_talk *t, size_t k, const json_value **value) {
    if (k >= t->n_variables)
        return (ggl_str){0};
    *value = t->variable[k].value;
    return t->variable[k].name;
}

/* Sets all variables of an object but "messages". */
static ggl_status put_all(llm_talk *t, const json_value *object, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (uint32_t i = 0; i < object->n && st == GGL_OK; i++)
        if (!ggl_str_is(json_name(object, i), "messages"))
            st = llm_talk_put(t, json_name(object, i), &object->item[i], err);
    return st;
}

/* Reads a copy of the text of an object, which the conversation holds. */
static ggl_status hold_object(llm_talk *t, const json_value **root, ggl_str json, const char *name,
                              ggl_error *err) {
    llm_json *doc = NULL;
    const char *copy = ggl_arena_strndup(&t->arena, json.n > 0 ? json.s : "", json.n);
    name = name ? name : "the conversation";
    ggl_status st = copy ? llm_json_parse(&doc, copy, json.n, name, err) : llm_talk_no_memory(err);
    if (st == GGL_OK)
        st = llm_talk_hold(t, doc, err);
    if (st != GGL_OK)
        return st;
    *root = &doc->root;
    if (doc->root.kind == JSON_OBJECT)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT, "%s: a JSON object is expected, not %s%s", name,
                    llm_json_kind_text((json_kind)doc->root.kind),
                    doc->root.kind == JSON_ARRAY ? "; a list of messages is {\"messages\": [..]}"
                                                 : "");
}

ggl_status llm_talk_add_json(llm_talk *t, ggl_str json, const char *name, ggl_error *err) {
    const json_value *root = NULL;
    const ggl_status st = hold_object(t, &root, json, name, err);
    return st == GGL_OK ? llm_talk_add_value(t, root, NULL, err) : st;
}

ggl_status llm_talk_set(llm_talk *t, ggl_str json, const char *name, ggl_error *err) {
    const json_value *root = NULL;
    const ggl_status st = hold_object(t, &root, json, name, err);
    if (st != GGL_OK)
        return st;
    if (llm_json_get(root, "messages"))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: \"messages\" is the conversation itself, and cannot be set", name);
    return put_all(t, root, err);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static ggl_status read_all(llm_talk *t, ggl_str json, const char *name,
                           const llm_part_reader *reader, ggl_error *err) {
    const json_value *root = NULL;
    ggl_status st = hold_object(t, &root, json, name, err);
    if (st != GGL_OK)
        return st;
    const json_value *messages = llm_json_get_kind(root, "messages", JSON_ARRAY);
    if (!messages)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: there is no list \"messages\": write {\"messages\": [{\"role\": "
                        "\"user\", \"content\": \"Hi\"}]}",
                        name ? name : "the conversation");
    st = put_all(t, root, err);
    if (st == GGL_OK && !ggl_grow(&t->message, &t->cap, messages->n, sizeof *t->message))
        st = llm_talk_no_memory(err);
    for (uint32_t i = 0; i < messages->n && st == GGL_OK; i++) {
        st = llm_talk_add_value(t, &messages->item[i], reader, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "messages[%" PRIu32 "]", i);
        if (st != GGL_OK && name)
            (void)ggl_within(err, st, "%s", name);
    }
    return st;
}

ggl_status llm_talk_read(llm_talk **out, ggl_str json, const char *name,
                         const llm_part_reader *reader, ggl_error *err) {
    llm_talk *t = NULL;
    *out = NULL;
    ggl_status st = llm_talk_new(&t, err);
    if (st == GGL_OK)
        st = read_all(t, json, name, reader, err);
    if (st != GGL_OK) {
        llm_talk_free(t);
        return st;
    }
    *out = t;
    return GGL_OK;
}

ggl_status llm_talk_json(const llm_talk *t, char **text, size_t *n, ggl_error *err) {
    llm_json_out out = {0};
    *text = NULL;
    *n = 0;
    llm_json_put_text(&out, "{");
    for (size_t i = 0; i < t->n_variables; i++) {
        llm_json_put_string(&out, t->variable[i].name);
        llm_json_put_text(&out, ": ");
        llm_json_put_value(&out, t->variable[i].value);
        llm_json_put_text(&out, ",\n ");
    }
    llm_json_put_text(&out, "\"messages\": [");
    for (size_t i = 0; i < t->n; i++) {
        llm_json_put_text(&out, i > 0 ? ",\n  " : "\n  ");
        llm_json_put_value(&out, t->message[i].object);
    }
    llm_json_put_text(&out, t->n > 0 ? "\n ]}\n" : "]}\n");
    if (out.failed) {
        ggl_free(out.s);
        return llm_talk_no_memory(err);
    }
    *text = out.s;
    *n = out.n;
    return GGL_OK;
}
