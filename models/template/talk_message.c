/* Messages of JSON in the one form that conversations have. */
#include <inttypes.h>
#include <string.h>

#include "common/json_make.h"
#include "parts.h"
#include "talk_impl.h"

ggl_status llm_talk_no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
}

ggl_status llm_talk_hold(llm_talk *t, llm_json *doc, ggl_error *err) {
    if (!ggl_grow(&t->doc, &t->cap_docs, t->n_docs + 1, sizeof(llm_json *))) {
        llm_json_free(doc);
        return llm_talk_no_memory(err);
    }
    t->doc[t->n_docs++] = doc;
    return GGL_OK;
}

/* --- calls of tools ----------------------------------------------------------------------------- */

bool llm_is_result(ggl_str role) {
    return ggl_str_is(role, "tool") || ggl_str_is(role, "function");
}

static int depth_of(const json_value *v) {
    int most = 0;
    for (uint32_t i = 0; v->kind >= JSON_ARRAY && i < v->n; i++) {
        const int depth = depth_of(&v->item[i]);
        most = depth > most ? depth : most;
    }
    return most + 1;
}

/* Finds what a call's arguments are: of a text that is an object, as in OpenAI's form, the object; of none, an empty one.
 * Models write texts that are none, too: they stay, and so does one so deep that the conversation could not be read again. */
static ggl_status find_arguments(llm_talk *t, json_value *out, const json_value *v,
                                 ggl_error *err) {
    enum { ABOVE = 8 }; /* levels around arguments, and more */
    llm_json *doc = NULL;
    *out = (json_value){.kind = JSON_OBJECT};
    if (!v || v->kind == JSON_NULL || (v->kind == JSON_STRING && v->n == 0))
        return GGL_OK;
    *out = *v;
    if (v->kind != JSON_STRING)
        return GGL_OK;
    const ggl_status st = llm_json_parse(&doc, v->s, v->n, "arguments", NULL);
    if (st == GGL_NOMEM)
        return llm_talk_no_memory(err);
    if (st != GGL_OK || doc->root.kind != JSON_OBJECT ||
        depth_of(&doc->root) > LLM_JSON_MAX_DEPTH - ABOVE) {
        llm_json_free(doc);
        return GGL_OK;
    }
    *out = doc->root;
    return llm_talk_hold(t, doc, err);
}

/* Reads a call: {"id": .., "type": "function", "function": {"name": .., "arguments": ..}}, or what stands in "function" alone.
 * *object: the former. */
static ggl_status read_call(llm_talk *t, llm_talk_call *call, json_value *object,
                            const json_value *v, ggl_error *err) {
    const json_value *f = llm_json_get_kind(v, "function", JSON_OBJECT), *own = f ? f : v;
    const json_value *name = llm_json_get_kind(own, "name", JSON_STRING),
                     *id = llm_json_get_kind(v, "id", JSON_STRING),
                     *given = llm_json_get(own, "arguments");
    json_value arguments, function;
    if (!name || (given && given->kind != JSON_OBJECT && given->kind != JSON_STRING &&
                  given->kind != JSON_NULL))
        return ggl_fail(err, GGL_FORMAT,
                        "a call needs \"function\" with a \"name\" and \"arguments\", a string of "
                        "JSON");
    ggl_status st = find_arguments(t, &arguments, given, err);
    if (st != GGL_OK)
        return st;
    bool made;
    if (f) {
        json_value typed = *v;
        made = (llm_json_get(v, "type") ||
                llm_json_make_with(&typed, &t->arena, v, "type", llm_json_of_text("function"))) &&
               llm_json_make_with(&function, &t->arena, f, "arguments", arguments) &&
               llm_json_make_with(object, &t->arena, &typed, "function", function);
    } else {
        const llm_json_member in[] = {{{"name", 4}, *name}, {{"arguments", 9}, arguments}};
        made = llm_json_make_object(&function, &t->arena, in, 2);
        const llm_json_member m[] = {{{"id", 2}, id ? *id : (json_value){0}},
                                     {{"type", 4}, llm_json_of_text("function")},
                                     {{"function", 8}, function}};
        made = made && llm_json_make_object(object, &t->arena, id ? m : m + 1, id ? 3 : 2);
    }
    if (!made)
        return llm_talk_no_memory(err);
    *call =
        (llm_talk_call){.id = id ? json_str(id) : (ggl_str){0},
                        .name = json_str(name),
                        .arguments = llm_json_get(llm_json_get(object, "function"), "arguments")};
    return GGL_OK;
}

static ggl_status read_calls(llm_talk *t, llm_talk_message *m, json_value *to, const json_value *v,
                             ggl_error *err) {
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_FORMAT, "\"tool_calls\" must be a list, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    llm_talk_call *call = ggl_arena_alloc(&t->arena, v->n, sizeof *call);
    json_value *object = ggl_arena_alloc(&t->arena, v->n, sizeof *object);
    if (!call || !object)
        return llm_talk_no_memory(err);
    for (uint32_t i = 0; i < v->n; i++) {
        const ggl_status st = read_call(t, &call[i], &object[i], &v->item[i], err);
        if (st != GGL_OK)
            return ggl_within(err, st, "tool_calls[%" PRIu32 "]", i);
    }
    m->call = call;
    m->n_calls = v->n;
    *to = (json_value){.kind = JSON_ARRAY, .n = v->n, .item = object};
    return GGL_OK;
}

/* --- references to tools ------------------------------------------------------------------------ */

static const char references[] = "tool_references";

/* Reads a name: of a part of a content, or one of a list that was saved. */
static ggl_status read_reference(llm_talk_message *m, ggl_str *to, const json_value *v, size_t i,
                                 ggl_error *err) {
    const json_value *name =
        v->kind == JSON_STRING ? v : llm_json_get_kind(v, "tool_name", JSON_STRING);
    if (!name || name->n == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s[%zu]: a reference to a tool is {\"type\": \"tool_reference\", "
                        "\"tool_name\": NAME}",
                        v->kind == JSON_OBJECT ? "content" : references, i);
    *to = json_str(name);
    m->n_references++;
    return GGL_OK;
}

/* Finds the tools that the result of a search names: parts of its content, or in a conversation that was saved a list beside it. *kept: that list. */
static ggl_status read_references(llm_talk *t, llm_talk_message *m, const json_value *v,
                                  const json_value *content, json_value *kept, ggl_error *err) {
    const json_value *list = llm_json_get_kind(v, references, JSON_ARRAY);
    const bool has_parts = content && content->kind == JSON_ARRAY;
    const size_t most = (list ? list->n : 0) + (has_parts ? (size_t)content->n : 0);
    if (most == 0 || !llm_is_result(m->role))
        return GGL_OK;
    ggl_str *name = ggl_arena_alloc(&t->arena, most, sizeof *name);
    json_value *item = ggl_arena_alloc(&t->arena, most, sizeof *item);
    ggl_status st = name && item ? GGL_OK : llm_talk_no_memory(err);
    for (uint32_t i = 0; st == GGL_OK && list && i < list->n; i++)
        st = read_reference(m, &name[m->n_references], &list->item[i], i, err);
    for (uint32_t i = 0; st == GGL_OK && has_parts && i < content->n; i++)
        if (llm_part_is_reference(&content->item[i]))
            st = read_reference(m, &name[m->n_references], &content->item[i], i, err);
    for (size_t i = 0; st == GGL_OK && i < m->n_references; i++)
        item[i] = llm_json_of_str(name[i]);
    m->reference = name;
    *kept = (json_value){.kind = JSON_ARRAY, .n = (uint32_t)m->n_references, .item = item};
    return st;
}

/* --- contents ----------------------------------------------------------------------------------- */

/* Reads a content: a text, a list of parts, or null. */
static ggl_status read_content(llm_talk *t, llm_talk_message *m, json_value *to,
                               const json_value *v, const llm_part_reader *r, ggl_error *err) {
    const bool in_result = llm_is_result(m->role);
    ggl_str text = {0};
    ggl_status st = GGL_OK;
    *to = *v;
    if (v->kind == JSON_NULL)
        return GGL_OK;
    if (v->kind == JSON_ARRAY)
        st = llm_parts_text(&text, &t->arena, v, in_result, r, err);
    else if (v->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT, "\"content\" must be a string or a list of parts, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    else if (r && r->text)
        st = r->text(r->ctx, json_str(v), &text, err);
    else
        text = json_str(v);
    if (st == GGL_OK && text.n > UINT32_MAX)
        st = ggl_fail(err, GGL_LIMIT, "a content has at most 4 GiB");
    if (st == GGL_OK && v->kind == JSON_STRING && text.s != v->s) {
        text.s = ggl_arena_strndup(&t->arena, text.s ? text.s : "", text.n);
        st = text.s ? GGL_OK : llm_talk_no_memory(err);
    }
    m->content = text;
    *to = llm_json_of_str(text);
    return st;
}

/* Members that are texts with a meaning. Of several names of one, that of the first row counts. */
static const struct {
    const char *name;
    size_t at;
} texts[] = {{"reasoning_content", offsetof(llm_talk_message, reasoning)},
             {"reasoning", offsetof(llm_talk_message, reasoning)},
             {"thinking", offsetof(llm_talk_message, reasoning)},
             {"name", offsetof(llm_talk_message, name)},
             {"tool_call_id", offsetof(llm_talk_message, call_id)}};

static void find_texts(llm_talk_message *m, const json_value *v) {
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        ggl_str *to = (ggl_str *)((char *)m + texts[k].at);
        const json_value *s = llm_json_get_kind(v, texts[k].name, JSON_STRING);
        if (s && to->n == 0)
            *to = json_str(s);
    }
}

/* What is a message's content: what it declined to say is one, too. */
static const json_value *find_content(const json_value *v) {
    const json_value *content = llm_json_get(v, "content"),
                     *refusal = llm_json_get_kind(v, "refusal", JSON_STRING);
    return refusal && (!content || content->kind == JSON_NULL) ? refusal : content;
}

static ggl_status check(llm_talk_message *m, const json_value *v, const json_value *content,
                        ggl_error *err) {
    if (m->content.s || m->n_calls > 0 || m->reasoning.s)
        return GGL_OK;
    if (content &&
        llm_json_get_kind(v, "tool_calls", JSON_ARRAY)) { /* an empty answer that called nothing */
        m->content = (ggl_str){"", 0};
        return GGL_OK;
    }
    return content ? ggl_fail(err, GGL_FORMAT,
                              "\"content\" must be a string or a list of parts, not null")
                   : ggl_fail(
                         err, GGL_FORMAT,
                         "\"content\" is missing: write {\"role\": \"user\", \"content\": \"Hi\"}");
}

/* --- messages ----------------------------------------------------------------------------------- */

ggl_status llm_talk_make_message(llm_talk *t, llm_talk_message *m, const json_value *v,
                                 const llm_part_reader *reader, ggl_error *err) {
    const json_value *role = llm_json_get_kind(v, "role", JSON_STRING), *content = find_content(v);
    *m = (llm_talk_message){0};
    if (!role)
        return ggl_fail(err, GGL_FORMAT,
                        "a message must be an object with a \"role\", such as {\"role\": \"user\", "
                        "\"content\": \"Hi\"}");
    m->role = json_str(role);
    find_texts(m, v);
    json_value *object = ggl_arena_alloc(&t->arena, 1, sizeof *object),
               *item = ggl_arena_alloc(&t->arena, 2 * (size_t)v->n + 2, sizeof *item), kept;
    if (!object || !item)
        return llm_talk_no_memory(err);
    const size_t most = (size_t)v->n + 1;
    uint32_t n = 0;
    ggl_status st = read_references(t, m, v, content, &kept, err);
    for (uint32_t i = 0; i < v->n && st == GGL_OK; i++) {
        const json_value *from = &v->item[i];
        if (ggl_str_is(json_name(v, i), references) && m->n_references > 0)
            continue;
        const bool is_calls = ggl_str_is(json_name(v, i), "tool_calls");
        if (from != content &&
            (from->kind == JSON_NULL || (is_calls && from->kind == JSON_ARRAY && from->n == 0)))
            continue;
        item[most + n] = from == content ? llm_json_of_text("content") : v->item[v->n + i];
        if (from == content)
            st = read_content(t, m, &item[n++], from, reader, err);
        else if (is_calls)
            st = read_calls(t, m, &item[n++], from, err);
        else
            item[n++] = *from;
    }
    if (st == GGL_OK)
        st = check(m, v, content, err);
    if (m->n_references > 0) {
        item[most + n] = llm_json_of_text(references);
        item[n++] = kept;
    }
    memmove(item + n, item + most, n * sizeof *item);
    *object = (json_value){.kind = JSON_OBJECT, .n = n, .item = item};
    m->object = object;
    return st;
}
