/* Reads the messages of /v1/chat/completions. */
#include <stdio.h>

#include "api_openai_messages.h"

static const field message_fields[] = {
    {"role", .kind = FIELD_IGNORED}, /* read by the functions below */
    {"content", .kind = FIELD_IGNORED},
    {"name", .kind = FIELD_IGNORED},
    {"refusal", .kind = FIELD_IGNORED},
    {"reasoning_content", .kind = FIELD_IGNORED},
    {"reasoning", .kind = FIELD_IGNORED},
    {"tool_calls", .kind = FIELD_IGNORED},
    {"tool_call_id", .kind = FIELD_IGNORED},
    {"annotations", .kind = FIELD_IGNORED}, /* an answer has some, which comes back as a message */
    {"audio", FIELD_REFUSED, .why = "the model reads only text"},
    {"function_call", FIELD_REFUSED, .why = "use \"tool_calls\""},
    {0}};

/* Roles, and those that templates know. */
static const struct role {
    const char *name, *as;
    bool is_assistant;
} roles[] = {{"system", "system", false}, {"developer", "system", false},
             {"user", "user", false},     {"assistant", "assistant", true},
             {"tool", "tool", false},     {"function", "tool", false}};

static const struct role *role_of(const json_value *message) {
    const json_value *v = llm_json_get_kind(message, "role", JSON_STRING);
    for (size_t k = 0; v && k < sizeof roles / sizeof *roles; k++)
        if (llm_json_is(v, roles[k].name))
            return &roles[k];
    return NULL;
}

/* --- calls of tools ----------------------------------------------------------------------------- */

static const field call_fields[] = {{"id", .kind = FIELD_IGNORED},
                                    {"type", .kind = FIELD_IGNORED},
                                    {"index", .kind = FIELD_IGNORED},
                                    {"function", .kind = FIELD_IGNORED},
                                    {"custom", FIELD_REFUSED, .why = "only functions are called"},
                                    {0}};
static const field called_fields[] = {
    {"name", .kind = FIELD_IGNORED}, {"arguments", .kind = FIELD_IGNORED}, {0}};

static ggl_status add_call(ask *a, talk_writer *t, const json_value *call, ggl_error *err) {
    const char *param;
    const json_value *f = llm_json_get_kind(call, "function", JSON_OBJECT);
    const json_value *id = llm_json_get_kind(call, "id", JSON_STRING);
    const json_value *name = llm_json_get_kind(f, "name", JSON_STRING);
    const json_value *arguments = llm_json_get(f, "arguments");
    ggl_status st = read_fields(a, call, call_fields, NULL, &param, err);
    if (st == GGL_OK && f)
        st = read_fields(a, f, called_fields, NULL, &param, err);
    if (st != GGL_OK)
        return st;
    if (!name || (arguments && arguments->kind != JSON_STRING && arguments->kind != JSON_OBJECT))
        return ggl_fail(err, GGL_USAGE,
                        "a call needs \"function\" with a \"name\" and \"arguments\", a string of "
                        "JSON");
    talk_call(t, id ? json_str(id) : (ggl_str){"", 0}, json_str(name), arguments);
    return GGL_OK;
}

static ggl_status add_calls(ask *a, talk_writer *t, const json_value *calls, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (calls->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"tool_calls\" must be a list");
    for (size_t i = 0; i < calls->n && st == GGL_OK; i++) {
        st = add_call(a, t, &calls->item[i], err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "tool_calls[%zu]", i);
    }
    talk_put_calls(t);
    return st;
}

/* --- messages ----------------------------------------------------------------------------------- */

/* Writes a member whose value must be a string, if it is there. */
static ggl_status put_string(talk_writer *t, const json_value *message, const char *name,
                             const char *as, ggl_error *err) {
    const json_value *v = llm_json_get(message, name);
    if (!v || v->kind == JSON_NULL)
        return GGL_OK;
    if (v->kind != JSON_STRING)
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a string, not %s", name,
                        llm_json_kind_text((json_kind)v->kind));
    talk_member(t, as, json_str(v));
    return GGL_OK;
}

static bool has(const json_value *message, const char *name) {
    const json_value *v = llm_json_get(message, name);
    return v && v->kind != JSON_NULL;
}

/* Adds what only an assistant's message may have: reasoning and calls. */
static ggl_status add_assistant(ask *a, talk_writer *t, const json_value *message, ggl_error *err) {
    const bool plain = has(message, "reasoning_content");
    ggl_status st =
        put_string(t, message, plain ? "reasoning_content" : "reasoning", "reasoning_content", err);
    if (st == GGL_OK && has(message, "tool_calls"))
        st = add_calls(a, t, llm_json_get(message, "tool_calls"), err);
    return st;
}

static ggl_status check_message(ask *a, const json_value *message, const struct role *role,
                                ggl_error *err) {
    const char *param;
    const ggl_status st = read_fields(a, message, message_fields, NULL, &param, err);
    const bool says = has(message, "content") || has(message, "refusal") ||
                      has(message, "tool_calls") || has(message, "reasoning_content");
    if (st != GGL_OK)
        return st;
    if (!role)
        return ggl_fail(err, GGL_USAGE,
                        "\"role\" must be \"system\", \"developer\", \"user\", \"assistant\", "
                        "\"tool\" or \"function\"");
    if (!role->is_assistant && has(message, "tool_calls"))
        return ggl_fail(err, GGL_USAGE, "only an assistant's message has \"tool_calls\"");
    if (!says || (!role->is_assistant && !has(message, "content")))
        return ggl_fail(err, GGL_USAGE, "\"content\" is missing");
    return GGL_OK;
}

static ggl_status add_message(ask *a, talk_writer *t, const json_value *message, const char *where,
                              ggl_error *err) {
    const struct role *role = role_of(message);
    const char *content = has(message, "content") ? "content" : "refusal";
    ggl_status st = check_message(a, message, role, err);
    if (st == GGL_OK) {
        talk_begin(t, role->as);
        st = put_string(t, message, "name", "name", err);
    }
    if (st == GGL_OK)
        st = put_string(t, message, "tool_call_id", "tool_call_id", err);
    if (st == GGL_OK && role->is_assistant)
        st = add_assistant(a, t, message, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", where);
    const json_value *v = llm_json_get(message, content);
    st = strcmp(role->as, "tool") == 0 ? openai_add_result(a, t, v, where, err)
                                       : openai_add_content(a, t, talk_text, v, where, err);
    talk_end_message(t);
    return st;
}

bool openai_can_continue(const json_value *message) {
    const struct role *role = role_of(message);
    const json_value *content = llm_json_get(message, "content");
    const json_value *calls = llm_json_get(message, "tool_calls");
    return role && role->is_assistant && content && (!calls || calls->n == 0) &&
           (content->kind == JSON_STRING || content->kind == JSON_ARRAY) && content->n > 0;
}

static ggl_status check_continued(const json_value *list, ggl_error *err) {
    if (openai_can_continue(&list->item[list->n - 1]))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "\"continue_final_message\" needs a last message of the assistant, with a "
                    "content");
}

ggl_status openai_add_messages(ask *a, talk_writer *t, ggl_error *err) {
    const json_value *list = llm_json_get_kind(&a->doc->root, "messages", JSON_ARRAY);
    ggl_status st = GGL_OK;
    char where[40];
    if (!list || list->n == 0)
        return ggl_fail(err, GGL_USAGE, "\"messages\" must be a list of at least one message");
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        snprintf(where, sizeof where, "messages[%zu]", i);
        st = add_message(a, t, &list->item[i], where, err);
    }
    return st == GGL_OK && a->continues ? check_continued(list, err) : st;
}
