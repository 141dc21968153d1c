/* Reads the items of /v1/responses. */
#include "api_openai_input.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/nearest.h"
#include "ggl/internal/show.h"

#define TRIGGER "compaction_trigger"

/* The conversation while it is read. A turn of the assistant may come in several items. */
typedef struct reading {
    ask *a;
    talk_writer *talk;
    bool in_turn;     /* a turn of the assistant was begun, */
    bool has_content; /* which has one */
    size_t i_turn; /* index of the item with which the turn began: the last message of the user */
    size_t i;      /* of the item that is read */
    size_t n_read; /* items of known types */
} reading;

static void begin_turn(reading *r) {
    if (!r->in_turn)
        talk_begin(r->talk, "assistant");
    r->in_turn = true;
}

/* Ends the turn of the assistant, if there is one. */
static void end_turn(reading *r) {
    if (!r->in_turn)
        return;
    talk_end_message(r->talk);
    r->in_turn = r->has_content = false;
}

/* --- items -------------------------------------------------------------------------------------- */

static ggl_status read_message(reading *r, const json_value *item, const char *where,
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
        return ggl_within(err,
                          field_wrong(err, "role", llm_json_get(item, "role"),
                                      "\"user\", \"assistant\", \"system\" or \"developer\""),
                          "%s", where);
    if (!content || content->kind == JSON_NULL)
        return ggl_fail(err, GGL_USAGE, "%s: \"content\" is missing", where);
    if (k != ASSISTANT || r->has_content || r->talk->n_calls > 0)
        end_turn(r);
    if (k == ASSISTANT) {
        begin_turn(r);
        r->has_content = true;
        return openai_add_content(r->a, r->talk, talk_text, content, false, where, err);
    }
    talk_begin(r->talk, roles[k][1]);
    const ggl_status st = openai_add_content(r->a, r->talk, talk_text, content, false, where, err);
    talk_end_message(r->talk);
    return st;
}

static ggl_status read_call(reading *r, const json_value *item, const char *where, ggl_error *err) {
    const json_value *id = llm_json_get_kind(item, "call_id", JSON_STRING);
    const json_value *name = llm_json_get_kind(item, "name", JSON_STRING);
    const json_value *arguments = llm_json_get_kind(item, "arguments", JSON_STRING);
    if (!id || !name || !arguments)
        return ggl_fail(err, GGL_USAGE,
                        "%s: a call needs the strings \"call_id\", \"name\" and \"arguments\"",
                        where);
    const json_value *space = llm_json_get_kind(item, "namespace", JSON_STRING);
    const ggl_str shown =
        openai_shown_name(r->a, space ? json_str(space) : (ggl_str){"", 0}, json_str(name));
    if (!shown.s)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    begin_turn(r);
    talk_call(r->talk, json_str(id), shown, arguments);
    return GGL_OK;
}

/* The call of a tool with free text, which the model sees as a function with one string. */
static ggl_status read_custom_call(reading *r, const json_value *item, const char *where,
                                   ggl_error *err) {
    const json_value *id = llm_json_get_kind(item, "call_id", JSON_STRING);
    const json_value *name = llm_json_get_kind(item, "name", JSON_STRING);
    const json_value *input = llm_json_get_kind(item, "input", JSON_STRING);
    json_value arguments;
    if (!id || !name || !input)
        return ggl_fail(err, GGL_USAGE,
                        "%s: a call needs the strings \"call_id\", \"name\" and \"input\"", where);
    const ggl_status st = openai_make_input(r->a, &arguments, input, err);
    if (st != GGL_OK)
        return st;
    begin_turn(r);
    talk_call(r->talk, json_str(id), json_str(name), &arguments);
    return GGL_OK;
}

/* What /v1/responses/compact has made of a conversation. */
static ggl_status read_compaction(reading *r, const json_value *item, const char *where,
                                  ggl_error *err) {
    const json_value *text = llm_json_get_kind(item, "encrypted_content", JSON_STRING);
    if (!text)
        return ggl_fail(err, GGL_USAGE, "%s: \"encrypted_content\" must be a string", where);
    end_turn(r);
    talk_begin(r->talk, "user");
    talk_text(r->talk, (ggl_str){TALK_SUMMARY, sizeof TALK_SUMMARY - 1}, "");
    talk_text(r->talk, json_str(text), "");
    talk_end_message(r->talk);
    return GGL_OK;
}

static ggl_status read_output(reading *r, const json_value *item, const char *where,
                              ggl_error *err) {
    const json_value *id = llm_json_get_kind(item, "call_id", JSON_STRING);
    const json_value *output = llm_json_get(item, "output");
    if (!id || !output || output->kind == JSON_NULL)
        return ggl_fail(err, GGL_USAGE, "%s: the output of a call needs \"call_id\" and \"output\"",
                        where);
    end_turn(r);
    talk_begin(r->talk, "tool");
    const ggl_status st = openai_add_content(r->a, r->talk, talk_text, output, true, where, err);
    talk_end_result(r->talk, json_str(id), (ggl_str){NULL, 0});
    return st;
}

/* The reasoning that this server has put into "encrypted_content"; that of others cannot be read. s NULL: none. */
static ggl_str carried_thoughts(const json_value *item) {
    static const char mark[] = OPENAI_PLAIN;
    const json_value *v = llm_json_get_kind(item, "encrypted_content", JSON_STRING);
    const size_t n = sizeof mark - 1;
    if (!v || v->n < n || memcmp(v->s, mark, n) != 0)
        return (ggl_str){NULL, 0};
    return (ggl_str){v->s + n, v->n - n};
}

/* The text is the content, or what was carried, or else the summary. */
static ggl_status read_reasoning(reading *r, const json_value *item, const char *where,
                                 ggl_error *err) {
    const json_value *content = llm_json_get_kind(item, "content", JSON_ARRAY);
    const json_value *summary = llm_json_get_kind(item, "summary", JSON_ARRAY);
    const ggl_str carried = carried_thoughts(item);
    const bool has_content = content && content->n > 0;
    const json_value *text = has_content ? content : summary;
    end_turn(r);
    if (openai_own_of(r->a)->this_turn_only && r->i < r->i_turn)
        return GGL_OK;
    if (!has_content && carried.n > 0) {
        begin_turn(r);
        talk_reasoning(r->talk, carried, "");
        return GGL_OK;
    }
    if (!text || text->n == 0)
        return GGL_OK;
    begin_turn(r);
    return openai_add_content(r->a, r->talk, talk_reasoning, text, false, where, err);
}

/* Items that are read elsewhere: tools, settings, and the wish for a summary. */
static ggl_status read_nothing(reading *r, const json_value *item, const char *where,
                               ggl_error *err) {
    (void)r, (void)item, (void)where, (void)err;
    return GGL_OK;
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
                                    {"namespace", .kind = FIELD_IGNORED},
                                    {0}};
static const field custom_call_fields[] = {{"type", .kind = FIELD_IGNORED},
                                           {"id", .kind = FIELD_IGNORED},
                                           {"call_id", .kind = FIELD_IGNORED},
                                           {"name", .kind = FIELD_IGNORED},
                                           {"input", .kind = FIELD_IGNORED},
                                           {"status", .kind = FIELD_IGNORED},
                                           {"caller", .kind = FIELD_IGNORED},
                                           {"namespace", FIELD_REFUSED, .fn = field_is_empty},
                                           {0}};
static const field compaction_fields[] = {{"type", .kind = FIELD_IGNORED},
                                          {"id", .kind = FIELD_IGNORED},
                                          {"encrypted_content", .kind = FIELD_IGNORED},
                                          {"created_by", .kind = FIELD_IGNORED},
                                          {0}};
static const field output_fields[] = {{"type", .kind = FIELD_IGNORED},
                                      {"id", .kind = FIELD_IGNORED},
                                      {"call_id", .kind = FIELD_IGNORED},
                                      {"name", .kind = FIELD_IGNORED},
                                      {"output", .kind = FIELD_IGNORED},
                                      {"status", .kind = FIELD_IGNORED},
                                      {"caller", .kind = FIELD_IGNORED},
                                      {"namespace", .kind = FIELD_IGNORED},
                                      {0}};
static const field reasoning_fields[] = {{"type", .kind = FIELD_IGNORED},
                                         {"id", .kind = FIELD_IGNORED},
                                         {"summary", .kind = FIELD_IGNORED},
                                         {"content", .kind = FIELD_IGNORED},
                                         {"status", .kind = FIELD_IGNORED},
                                         {"encrypted_content", .kind = FIELD_IGNORED},
                                         {0}};

static const field tools_fields[] = {
    {"type", .kind = FIELD_IGNORED},   {"id", .kind = FIELD_IGNORED},
    {"role", .kind = FIELD_IGNORED},   {"tools", .kind = FIELD_IGNORED},
    {"status", .kind = FIELD_IGNORED}, {0}};
static const field trigger_fields[] = {
    {"type", .kind = FIELD_IGNORED}, {"id", .kind = FIELD_IGNORED}, {0}};
static const field update_fields[] = {{"type", .kind = FIELD_IGNORED},
                                      {"id", .kind = FIELD_IGNORED},
                                      {"reasoning", .kind = FIELD_IGNORED},
                                      {"text", .kind = FIELD_IGNORED},
                                      {0}};

static const struct item_kind {
    const char *type;
    const field *fields;
    ggl_status (*read)(reading *r, const json_value *item, const char *where, ggl_error *err);
} kinds[] = {{"message", message_fields, read_message},
             {"function_call", call_fields, read_call},
             {"function_call_output", output_fields, read_output},
             {"custom_tool_call", custom_call_fields, read_custom_call},
             {"custom_tool_call_output", output_fields, read_output},
             {"compaction", compaction_fields, read_compaction},
             {"compaction_summary", compaction_fields, read_compaction},
             {"reasoning", reasoning_fields, read_reasoning},
             {"additional_tools", tools_fields, read_nothing},
             {"configuration_update", update_fields, read_nothing},
             {TRIGGER, trigger_fields, read_nothing}};

enum { N_KINDS = sizeof kinds / sizeof *kinds };

static ggl_status unknown_type(const json_value *type, const char *where, ggl_error *err) {
    char wanted[48];
    snprintf(wanted, sizeof wanted, "%.*s", (int)ggl_utf8_cut(type->s, type->n, 40), type->s);
    ggl_nearest near = ggl_nearest_to(wanted);
    for (size_t k = 0; k < N_KINDS; k++)
        ggl_nearest_try(&near, kinds[k].type, SIZE_MAX);
    ggl_nearest_try(&near, "item_reference", SIZE_MAX);
    return ggl_fail(err, near.best ? GGL_USAGE : GGL_UNSUPPORTED,
                    "%s: items of type \"%s\" are not supported; %s%s%s", where, wanted,
                    near.best ? "did you mean \"" : "give messages, function calls, their outputs ",
                    near.best ? near.best : "and reasoning", near.best ? "\"?" : "");
}

static bool says(const json_value *item, const char *name) {
    const json_value *v = llm_json_get(item, name);
    return v && v->kind != JSON_NULL;
}

/* Items of unknown types are hints about tools that others run, unless they have the text of a conversation. */
static bool is_hint(const ask *a, const json_value *item) {
    return !a->ignored.strict && !says(item, "role") && !says(item, "content");
}

static ggl_status read_item(reading *r, const json_value *item, const char *where, ggl_error *err) {
    const json_value *type = llm_json_get(item, "type");
    const char *param;
    size_t k = 0;
    while (type && k < N_KINDS && !llm_json_is(type, kinds[k].type))
        k++;
    if (k == N_KINDS && type->kind == JSON_STRING && is_hint(r->a, item))
        return fields_ignore(&r->a->ignored, r->a->talk_name, json_str(type), err);
    if (k == N_KINDS && type->kind == JSON_STRING)
        return unknown_type(type, where, err);
    if (k == N_KINDS)
        return ggl_fail(err, GGL_USAGE, "%s: \"type\" must be a string", where);
    r->n_read++;
    const ggl_status st = read_fields(r->a, item, kinds[k].fields, NULL, &param, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", where);
    return kinds[k].read(r, item, where, err);
}

/* --- the input ---------------------------------------------------------------------------------- */

bool openai_wants_compaction(const ask *a) {
    const json_value *input = llm_json_get_kind(&a->doc->root, "input", JSON_ARRAY);
    return input && input->n > 0 && llm_json_has(&input->item[input->n - 1], "type", TRIGGER);
}

const json_value *openai_last_update(const ask *a, const char *name) {
    const json_value *input = llm_json_get_kind(&a->doc->root, "input", JSON_ARRAY);
    for (size_t i = input ? input->n : 0; i-- > 0;) {
        const json_value *v = llm_json_get_kind(&input->item[i], name, JSON_OBJECT);
        if (v && llm_json_has(&input->item[i], "type", "configuration_update"))
            return v;
    }
    return NULL;
}

/* Finds the last summary that the server was asked for: it stands for all before it. Returns its index; 0: there is none. */
static size_t find_summary(const json_value *input) {
    for (size_t i = input->n; i-- > 1;)
        if (llm_json_has(&input->item[i], "type", "compaction") &&
            llm_json_has(&input->item[i - 1], "type", TRIGGER))
            return i;
    return 0;
}

/* True for items that count although a summary follows. */
static bool outlives_summary(const json_value *item) {
    return llm_json_has(item, "role", "system") || llm_json_has(item, "role", "developer");
}

void openai_name_item(const ask *a, const json_value *item, size_t i, bool was_kept,
                      char where[OPENAI_WHERE]) {
    const json_value *id = llm_json_get_kind(item, "id", JSON_STRING);
    if (was_kept && id)
        snprintf(where, OPENAI_WHERE, "the kept item \"%.*s\"", (int)ggl_utf8_cut(id->s, id->n, 72),
                 id->s);
    else if (was_kept)
        snprintf(where, OPENAI_WHERE, "item %zu of what is named", i);
    else
        snprintf(where, OPENAI_WHERE, "%s[%zu]", a->talk_name, i);
}

static ggl_status read_input(reading *r, const json_value *input, ggl_error *err) {
    ggl_status st = GGL_OK;
    char where[OPENAI_WHERE];
    if (input && input->kind == JSON_STRING) {
        talk_message(r->talk, "user", json_str(input));
        return GGL_OK;
    }
    if (!input || input->kind != JSON_ARRAY || input->n == 0)
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a string, or a list of at least one item",
                        r->a->talk_name);
    const size_t i_summary = find_summary(input),
                 outer = fields_enter(&r->a->ignored, r->a->talk_name);
    for (size_t i = 0; i < input->n; i++)
        r->i_turn = llm_json_has(&input->item[i], "role", "user") ? i : r->i_turn;
    for (size_t i = 0; i < input->n && st == GGL_OK; i++) {
        r->i = i;
        if (i < i_summary && !outlives_summary(&input->item[i]))
            continue;
        const size_t n = r->a->n_recalled; /* the request counts its own */
        openai_name_item(r->a, &input->item[i], i < n ? i : i - n, i < n, where);
        st = read_item(r, &input->item[i], where, err);
    }
    if (st == GGL_OK && r->n_read == 0) /* where: of the last one */
        st = unknown_type(llm_json_get(&input->item[r->i], "type"), where, err);
    fields_leave(&r->a->ignored, outer);
    end_turn(r);
    return st;
}

ggl_status openai_add_input(ask *a, talk_writer *t, ggl_error *err) {
    reading r = {.a = a, .talk = t};
    const json_value *instructions = llm_json_get_kind(&a->doc->root, "instructions", JSON_STRING);
    if (instructions && instructions->n > 0)
        talk_message(t, "system", json_str(instructions));
    return read_input(&r, llm_json_get(&a->doc->root, a->talk_name), err);
}
