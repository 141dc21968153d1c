/* Reads the messages of /v1/chat/completions. */
#include <stdio.h>

#include "api_openai_messages.h"

#include "common/json_make.h"

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

static const struct role {
    const char *name;
    bool is_assistant;
} roles[] = {{"system", false},   {"developer", false}, {"user", false},
             {"assistant", true}, {"tool", false},      {"function", false}};

static const struct role *role_of(const json_value *message) {
    const json_value *v = llm_json_get_kind(message, "role", JSON_STRING);
    for (size_t k = 0; v && k < sizeof roles / sizeof *roles; k++)
        if (llm_json_is(v, roles[k].name))
            return &roles[k];
    return NULL;
}

/* --- calls of tools ----------------------------------------------------------------------------- */

static const field call_fields[] = {
    {"id", .kind = FIELD_IGNORED},     {"type", .kind = FIELD_IGNORED},
    {"index", .kind = FIELD_IGNORED},  {"function", .kind = FIELD_IGNORED},
    {"custom", .kind = FIELD_IGNORED}, {0}};
static const field called_fields[] = {
    {"name", .kind = FIELD_IGNORED}, {"arguments", .kind = FIELD_IGNORED}, {0}};

static const field custom_fields[] = {
    {"name", .kind = FIELD_IGNORED}, {"input", .kind = FIELD_IGNORED}, {0}};

/* Makes the call of a tool with free text one of the function that the model sees in its place. */
static ggl_status make_function_call(ask *a, json_value *out, const json_value *call,
                                     const json_value *custom, ggl_error *err) {
    const json_value *name = llm_json_get_kind(custom, "name", JSON_STRING),
                     *input = llm_json_get_kind(custom, "input", JSON_STRING),
                     *id = llm_json_get_kind(call, "id", JSON_STRING);
    const char *param;
    json_value arguments, function;
    const size_t outer = fields_enter(&a->ignored, "tool_calls.custom");
    ggl_status st = read_fields(a, custom, custom_fields, NULL, &param, err);
    fields_leave(&a->ignored, outer);
    if (st == GGL_OK && (!name || !input))
        st = ggl_fail(err, GGL_USAGE, "\"custom\" needs the strings \"name\" and \"input\"");
    if (st == GGL_OK)
        st = openai_make_input(a, &arguments, input, err);
    if (st != GGL_OK)
        return st;
    const llm_json_member f[] = {{{"name", 4}, *name}, {{"arguments", 9}, arguments}};
    const bool made = llm_json_make_object(&function, &a->arena, f, 2);
    const llm_json_member m[] = {{{"id", 2}, id ? *id : (json_value){0}},
                                 {{"type", 4}, llm_json_of_text("function")},
                                 {{"function", 8}, function}};
    return made && llm_json_make_object(out, &a->arena, id ? m : m + 1, id ? 3 : 2)
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

/* Copies a message whose calls are some of tools with free text; others stay as they are. */
static ggl_status make_calls(ask *a, const json_value **message, ggl_error *err) {
    const json_value *calls = llm_json_get_kind(*message, "tool_calls", JSON_ARRAY);
    bool has_custom = false;
    for (size_t i = 0; calls && i < calls->n; i++)
        has_custom = has_custom || llm_json_get_kind(&calls->item[i], "custom", JSON_OBJECT);
    if (!has_custom)
        return GGL_OK;
    json_value *item = ggl_arena_alloc(&a->arena, calls->n, sizeof *item),
               *copy = ggl_arena_alloc(&a->arena, 1, sizeof *copy), list;
    ggl_status st = item && copy ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    for (size_t i = 0; i < calls->n && st == GGL_OK; i++) {
        const json_value *custom = llm_json_get_kind(&calls->item[i], "custom", JSON_OBJECT);
        item[i] = calls->item[i];
        st = custom ? make_function_call(a, &item[i], &calls->item[i], custom, err) : GGL_OK;
        if (st != GGL_OK)
            (void)ggl_within(err, st, "tool_calls[%zu]", i);
    }
    if (st != GGL_OK)
        return st;
    list = (json_value){.kind = JSON_ARRAY, .n = calls->n, .item = item};
    if (!llm_json_make_with(copy, &a->arena, *message, "tool_calls", list))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    *message = copy;
    return GGL_OK;
}

/* Checks the names of the calls' members. */
static ggl_status check_calls(ask *a, const json_value *calls, ggl_error *err) {
    ggl_status st = GGL_OK;
    const char *param;
    const size_t outer = fields_enter(&a->ignored, "tool_calls");
    for (size_t i = 0; calls && calls->kind == JSON_ARRAY && i < calls->n && st == GGL_OK; i++) {
        const json_value *f = llm_json_get_kind(&calls->item[i], "function", JSON_OBJECT);
        st = read_fields(a, &calls->item[i], call_fields, NULL, &param, err);
        const size_t inner = fields_enter(&a->ignored, "function");
        if (st == GGL_OK && f)
            st = read_fields(a, f, called_fields, NULL, &param, err);
        fields_leave(&a->ignored, inner);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "tool_calls[%zu]", i);
    }
    fields_leave(&a->ignored, outer);
    return st;
}

/* --- messages ----------------------------------------------------------------------------------- */

/* Checks members whose values must be strings, if they are there. */
static ggl_status check_strings(const json_value *message, ggl_error *err) {
    static const char *const names[] = {"name", "tool_call_id", "reasoning_content", "reasoning"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_value *v = llm_json_get(message, names[i]);
        if (v && v->kind != JSON_NULL && v->kind != JSON_STRING)
            return ggl_fail(err, GGL_USAGE, "\"%s\" must be a string, not %s", names[i],
                            llm_json_kind_text((json_kind)v->kind));
    }
    return GGL_OK;
}

static bool has(const json_value *message, const char *name) {
    const json_value *v = llm_json_get(message, name);
    return v && v->kind != JSON_NULL;
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
        return field_wrong(err, "role", llm_json_get(message, "role"),
                           "\"system\", \"developer\", \"user\", \"assistant\", "
                           "\"tool\" or \"function\"");
    if (!role->is_assistant && has(message, "tool_calls"))
        return ggl_fail(err, GGL_USAGE, "only an assistant's message has \"tool_calls\"");
    if (!says || (!role->is_assistant && !has(message, "content")))
        return ggl_fail(err, GGL_USAGE, "\"content\" is missing");
    const ggl_status strings = check_strings(message, err);
    return strings == GGL_OK ? check_calls(a, llm_json_get(message, "tool_calls"), err) : strings;
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

ggl_status openai_add_messages(ask *a, ggl_error *err) {
    const json_value *list = llm_json_get_kind(&a->doc->root, "messages", JSON_ARRAY);
    const llm_part_reader reader = openai_part_reader(a);
    ggl_status st = GGL_OK;
    if (!list || list->n == 0)
        return ggl_fail(err, GGL_USAGE, "\"messages\" must be a list of at least one message");
    const size_t outer = fields_enter(&a->ignored, "messages");
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        st = check_message(a, &list->item[i], role_of(&list->item[i]), err);
        const json_value *message = &list->item[i];
        if (st == GGL_OK)
            st = make_calls(a, &message, err);
        if (st == GGL_OK)
            st = llm_talk_add_value(a->talk, message, &reader, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "messages[%zu]", i);
    }
    fields_leave(&a->ignored, outer);
    return st == GGL_OK && a->continues ? check_continued(list, err) : st;
}
