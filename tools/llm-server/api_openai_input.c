/* Reads the items of /v1/responses. */
#include "api_openai_input.h"

#include <stdio.h>

/* Messages under construction. A turn of the assistant comes in several items. */
typedef struct talker {
    ask *a;
    llm_json_out *out;
    bool any; /* a message was written */
    llm_json_out reasoning, content,
        calls; /* of the turn; reasoning and content: a JSON string, or empty */
} talker;

static void begin_message(talker *t, const char *role) {
    llm_json_put_text(t->out, t->any ? ",{\"role\":\"" : "{\"role\":\"");
    llm_json_put_text(t->out, role);
    llm_json_put_text(t->out, "\"");
    t->any = true;
}

/* Moves what was collected into `out`, with a name before it. */
static void put_collected(talker *t, const char *name, llm_json_out *from, const char *after) {
    if (from->n > 0) {
        llm_json_put_text(t->out, name);
        llm_json_put(t->out, from->s, from->n);
        llm_json_put_text(t->out, after);
    }
    t->out->failed = t->out->failed || from->failed;
    from->n = 0;
}

/* Ends the turn of the assistant, if there is one. */
static void end_turn(talker *t) {
    if (t->reasoning.n == 0 && t->content.n == 0 && t->calls.n == 0)
        return;
    begin_message(t, "assistant");
    if (t->content.n == 0)
        llm_json_put_text(t->out, ",\"content\":\"\"");
    put_collected(t, ",\"reasoning_content\":", &t->reasoning, "");
    put_collected(t, ",\"content\":", &t->content, "");
    put_collected(t, ",\"tool_calls\":[", &t->calls, "]");
    llm_json_put_text(t->out, "}");
}

/* --- items -------------------------------------------------------------------------------------- */

static ggl_status read_message(talker *t, const json_value *item, const char *where,
                               ggl_error *err) {
    static const char *const roles[][2] = {{"user", "user"},
                                           {"system", "system"},
                                           {"developer", "system"},
                                           {"assistant", "assistant"}};
    enum { N = sizeof roles / sizeof *roles, ASSISTANT = N - 1 };
    const json_value *role = llm_json_get_kind(item, "role", JSON_STRING);
    const json_value *content = llm_json_get(item, "content");
    size_t k = 0;
    while (k < N && !(role && llm_json_is(role, roles[k][0])))
        k++;
    if (k == N)
        return ggl_fail(err, GGL_USAGE,
                        "%s: \"role\" must be \"user\", \"assistant\", \"system\" or \"developer\"",
                        where);
    if (!content || content->kind == JSON_NULL)
        return ggl_fail(err, GGL_USAGE, "%s: \"content\" is missing", where);
    if (k != ASSISTANT || t->content.n > 0 || t->calls.n > 0)
        end_turn(t);
    if (k == ASSISTANT)
        return openai_put_content(t->a, &t->content, content, where, err);
    begin_message(t, roles[k][1]);
    llm_json_put_text(t->out, ",\"content\":");
    const ggl_status st = openai_put_content(t->a, t->out, content, where, err);
    llm_json_put_text(t->out, "}");
    return st;
}

static ggl_status read_call(talker *t, const json_value *item, const char *where, ggl_error *err) {
    const json_value *id = llm_json_get_kind(item, "call_id", JSON_STRING);
    const json_value *name = llm_json_get_kind(item, "name", JSON_STRING);
    const json_value *arguments = llm_json_get_kind(item, "arguments", JSON_STRING);
    if (!id || !name || !arguments)
        return ggl_fail(err, GGL_USAGE,
                        "%s: a call needs the strings \"call_id\", \"name\" and \"arguments\"",
                        where);
    llm_json_put_text(&t->calls, t->calls.n > 0 ? "," : "");
    openai_put_call(&t->calls, json_str(id), json_str(name), arguments);
    return GGL_OK;
}

static ggl_status read_output(talker *t, const json_value *item, const char *where,
                              ggl_error *err) {
    const json_value *id = llm_json_get_kind(item, "call_id", JSON_STRING);
    const json_value *output = llm_json_get(item, "output");
    if (!id || !output || output->kind == JSON_NULL)
        return ggl_fail(err, GGL_USAGE, "%s: the output of a call needs \"call_id\" and \"output\"",
                        where);
    end_turn(t);
    begin_message(t, "tool");
    llm_json_put_text(t->out, ",\"tool_call_id\":");
    llm_json_put_string(t->out, json_str(id));
    llm_json_put_text(t->out, ",\"content\":");
    const ggl_status st = openai_put_content(t->a, t->out, output, where, err);
    llm_json_put_text(t->out, "}");
    return st;
}

/* The text is the content, or else the summary. */
static ggl_status read_reasoning(talker *t, const json_value *item, const char *where,
                                 ggl_error *err) {
    const json_value *content = llm_json_get_kind(item, "content", JSON_ARRAY);
    const json_value *summary = llm_json_get_kind(item, "summary", JSON_ARRAY);
    const json_value *text = content && content->n > 0 ? content : summary;
    end_turn(t);
    if (!text || text->n == 0)
        return GGL_OK;
    return openai_put_content(t->a, &t->reasoning, text, where, err);
}

static const field message_fields[] = {{"type", .kind = FIELD_IGNORED},
                                       {"role", .kind = FIELD_IGNORED},
                                       {"content", .kind = FIELD_IGNORED},
                                       {"id", .kind = FIELD_IGNORED},
                                       {"status", .kind = FIELD_IGNORED},
                                       {"phase", .kind = FIELD_IGNORED},
                                       {0}};
static const field call_fields[] = {{"type", .kind = FIELD_IGNORED},
                                    {"id", .kind = FIELD_IGNORED},
                                    {"call_id", .kind = FIELD_IGNORED},
                                    {"name", .kind = FIELD_IGNORED},
                                    {"arguments", .kind = FIELD_IGNORED},
                                    {"status", .kind = FIELD_IGNORED},
                                    {"caller", .kind = FIELD_IGNORED},
                                    {"namespace", FIELD_REFUSED, .fn = field_is_empty},
                                    {0}};
static const field output_fields[] = {{"type", .kind = FIELD_IGNORED},
                                      {"id", .kind = FIELD_IGNORED},
                                      {"call_id", .kind = FIELD_IGNORED},
                                      {"name", .kind = FIELD_IGNORED},
                                      {"output", .kind = FIELD_IGNORED},
                                      {"status", .kind = FIELD_IGNORED},
                                      {"caller", .kind = FIELD_IGNORED},
                                      {"namespace", FIELD_REFUSED, .fn = field_is_empty},
                                      {0}};
static const field reasoning_fields[] = {{"type", .kind = FIELD_IGNORED},
                                         {"id", .kind = FIELD_IGNORED},
                                         {"summary", .kind = FIELD_IGNORED},
                                         {"content", .kind = FIELD_IGNORED},
                                         {"status", .kind = FIELD_IGNORED},
                                         {"encrypted_content", .kind = FIELD_IGNORED},
                                         {0}};

static const struct item_kind {
    const char *type;
    const field *fields;
    ggl_status (*read)(talker *t, const json_value *item, const char *where, ggl_error *err);
} kinds[] = {{"message", message_fields, read_message},
             {"function_call", call_fields, read_call},
             {"function_call_output", output_fields, read_output},
             {"reasoning", reasoning_fields, read_reasoning}};

static ggl_status read_item(talker *t, const json_value *item, const char *where, ggl_error *err) {
    enum { N = sizeof kinds / sizeof *kinds };
    const json_value *type = llm_json_get(item, "type");
    const char *param;
    size_t k = 0;
    while (type && k < N && !llm_json_is(type, kinds[k].type))
        k++;
    if (k == N && type->kind == JSON_STRING)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: items of type \"%.*s\" are not supported; give messages, function "
                        "calls, their outputs and reasoning",
                        where, (int)(type->n < 40 ? type->n : 40), type->s);
    if (k == N)
        return ggl_fail(err, GGL_USAGE, "%s: \"type\" must be a string", where);
    const ggl_status st = read_fields(t->a, item, kinds[k].fields, NULL, &param, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", where);
    return kinds[k].read(t, item, where, err);
}

/* --- the input ---------------------------------------------------------------------------------- */

static ggl_status read_input(talker *t, const json_value *input, ggl_error *err) {
    ggl_status st = GGL_OK;
    char where[40];
    if (input && input->kind == JSON_STRING) {
        begin_message(t, "user");
        llm_json_put_text(t->out, ",\"content\":");
        llm_json_put_string(t->out, json_str(input));
        llm_json_put_text(t->out, "}");
        return GGL_OK;
    }
    if (!input || input->kind != JSON_ARRAY || input->n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "\"input\" must be a string, or a list of at least one item");
    for (size_t i = 0; i < input->n && st == GGL_OK; i++) {
        snprintf(where, sizeof where, "input[%zu]", i);
        st = read_item(t, &input->item[i], where, err);
    }
    end_turn(t);
    return st;
}

ggl_status openai_put_input(ask *a, llm_json_out *out, ggl_error *err) {
    talker t = {.a = a, .out = out};
    const json_value *instructions = llm_json_get_kind(&a->doc->root, "instructions", JSON_STRING);
    llm_json_put_text(out, "{\"messages\":[");
    if (instructions && instructions->n > 0) {
        begin_message(&t, "system");
        llm_json_put_text(out, ",\"content\":");
        llm_json_put_string(out, json_str(instructions));
        llm_json_put_text(out, "}");
    }
    const ggl_status st = read_input(&t, llm_json_get(&a->doc->root, "input"), err);
    llm_json_put_text(out, "]");
    ggl_free(t.reasoning.s);
    ggl_free(t.content.s);
    ggl_free(t.calls.s);
    return st;
}
