/* Ollama's messages as a conversation in OpenAI's form. */
#include "api_images.h"
#include "api_ollama.h"
#include "api_shape.h"
#include "api_talk.h"
#include "fields_sampling.h"

typedef struct message {
    const json_value *role, *content, *thinking, *calls, *tool_name, *call_id, *images;
} message;

static const shape_row message_rows[] = {
    {"role", SHAPE_STRING | SHAPE_REQUIRED, offsetof(message, role), NULL},
    {"content", SHAPE_STRING, offsetof(message, content), NULL},
    {"thinking", SHAPE_STRING, offsetof(message, thinking), NULL},
    {"tool_calls", SHAPE_LIST, offsetof(message, calls), NULL},
    {"tool_name", SHAPE_STRING, offsetof(message, tool_name), NULL},
    {"tool_call_id", SHAPE_STRING, offsetof(message, call_id), NULL},
    {"images", SHAPE_LIST, offsetof(message, images), NULL},
    {0}};

typedef struct call {
    const json_value *id, *function, *type;
} call;

static const shape_row call_rows[] = {
    {"id", SHAPE_STRING, offsetof(call, id), NULL},
    {"type", SHAPE_STRING, offsetof(call, type), NULL},
    {"function", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(call, function), NULL},
    {0}};

typedef struct function {
    const json_value *name, *arguments;
} function;

static const shape_row function_rows[] = {
    {"name", SHAPE_STRING | SHAPE_REQUIRED, offsetof(function, name), NULL},
    {"arguments", SHAPE_OBJECT, offsetof(function, arguments), NULL},
    {"index", SHAPE_IGNORED, 0, NULL},
    {"description", SHAPE_IGNORED, 0, NULL},
    {0}};

static ggl_str str_or_null(const json_value *v) {
    return v ? json_str(v) : (ggl_str){NULL, 0};
}

static ggl_status add_call(talk_writer *t, ignored_fields *x, const json_value *v, ggl_error *err) {
    call c;
    function f;
    const size_t outer = fields_enter(x, "tool_calls");
    ggl_status st = read_shape(&c, sizeof c, x, v, call_rows, err);
    (void)fields_enter(x, "function");
    if (st == GGL_OK)
        st = read_shape(&f, sizeof f, x, c.function, function_rows, err);
    fields_leave(x, outer);
    if (st == GGL_OK)
        talk_call(t, str_or_null(c.id), json_str(f.name), f.arguments);
    return st;
}

static const char *known_role(const json_value *v) {
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    for (int i = 0; i < 4; i++)
        if (llm_json_is(v, roles[i]))
            return roles[i];
    return NULL;
}

ggl_status ollama_images(ask *a, const json_value *images, llm_json_out *out, ggl_error *err) {
    for (size_t i = 0; images && i < images->n; i++) {
        const json_value *v = &images->item[i];
        ggl_str mark = {0};
        const ggl_status st =
            v->kind == JSON_STRING
                ? image_of_base64(a, json_str(v), image_is_sound(a, json_str(v)), &mark, err)
                : ggl_fail(err, GGL_USAGE,
                           "a picture or a sound must be a string of base64, not %s",
                           llm_json_kind_text((json_kind)v->kind));
        if (st != GGL_OK)
            return ggl_within(err, st, "images[%zu]", i);
        llm_json_put(out, mark.s, mark.n);
    }
    return GGL_OK;
}

static ggl_status add_message(talk_writer *t, ask *a, const json_value *v, bool *answers,
                              ggl_error *err) {
    ignored_fields *x = &a->ignored;
    message m;
    ggl_status st = read_shape(&m, sizeof m, x, v, message_rows, err);
    if (st != GGL_OK)
        return st;
    const char *role = known_role(m.role);
    if (!role)
        return field_wrong(err, "role", m.role, "\"system\", \"user\", \"assistant\" or \"tool\"");
    *answers = strcmp(role, "assistant") == 0 && !m.calls && m.content && m.content->n > 0;
    talk_begin(t, role);
    st = ollama_images(a, m.images, &t->text, err);
    if (m.content)
        talk_text(t, json_str(m.content), "");
    if (m.thinking)
        talk_reasoning(t, json_str(m.thinking), "");
    for (size_t i = 0; m.calls && i < m.calls->n && st == GGL_OK; i++) {
        st = add_call(t, x, &m.calls->item[i], err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "tool_calls[%zu]", i);
    }
    talk_end_result(t, str_or_null(m.call_id), str_or_null(m.tool_name));
    return st;
}

/* The messages of /api/chat; the last one, if it is an assistant's, is continued. */
static ggl_status add_messages(talk_writer *t, ask *a, const json_value *messages, ggl_error *err) {
    bool answers = false;
    const size_t outer = fields_enter(&a->ignored, "messages");
    for (size_t i = 0; i < messages->n; i++) {
        const ggl_status st = add_message(t, a, &messages->item[i], &answers, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "messages[%zu]", i);
    }
    fields_leave(&a->ignored, outer);
    a->continues = answers;
    return GGL_OK;
}

ggl_status ollama_talk(ask *a, const char **param, ggl_error *err) {
    const ollama_ask *own = a->own;
    talk_writer t;
    ggl_status st = talk_start(&t, a, err);
    *param = own->is_chat ? "messages" : "prompt";
    if (st == GGL_OK && own->is_chat) {
        st = add_messages(&t, a, own->messages, err);
    } else if (st == GGL_OK) {
        if (own->system.n > 0)
            talk_message(&t, "system", own->system);
        talk_begin(&t, "user");
        st = ollama_images(a, own->images, &t.text, err);
        talk_text(&t, own->prompt, "");
        talk_end_message(&t);
    }
    if (st != GGL_OK) {
        talk_free(&t);
        return st;
    }
    if (own->has_think)
        talk_bool(&t, "enable_thinking", own->thinks);
    if (own->effort.s)
        talk_string(&t, "reasoning_effort", own->effort);
    *param = NULL;
    return talk_finish(&t, err);
}

/* --- tools -------------------------------------------------------------------------------------- */

typedef struct tool {
    const json_value *type, *function;
} tool;

static const shape_row tool_rows[] = {
    {"type", SHAPE_STRING, offsetof(tool, type), NULL},
    {"function", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(tool, function), NULL},
    {"items", SHAPE_IGNORED, 0, NULL},
    {0}};

typedef struct described {
    const json_value *name, *description, *parameters;
} described;

static const shape_row described_rows[] = {
    {"name", SHAPE_STRING | SHAPE_REQUIRED, offsetof(described, name), NULL},
    {"description", SHAPE_STRING, offsetof(described, description), NULL},
    {"parameters", SHAPE_OBJECT, offsetof(described, parameters), NULL},
    {"strict", SHAPE_IGNORED, 0, NULL},
    {0}};

static ggl_status check_tool(ignored_fields *x, const json_value *v, ggl_error *err) {
    tool t;
    described d;
    const ggl_status st = read_shape(&t, sizeof t, x, v, tool_rows, err);
    if (st != GGL_OK)
        return st;
    if (t.type && !llm_json_is(t.type, "function"))
        return ggl_fail(err, GGL_UNSUPPORTED, "\"type\" must be \"function\", not \"%.*s\"",
                        (int)(t.type->n < 40 ? t.type->n : 40), t.type->s);
    const size_t outer = fields_enter(x, "function");
    const ggl_status inner = read_shape(&d, sizeof d, x, t.function, described_rows, err);
    fields_leave(x, outer);
    return inner;
}

/* Checks the list and keeps it as it is: its form is OpenAI's. */
ggl_status ollama_tools(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"tools\" must be a list, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    for (size_t i = 0; i < v->n; i++) {
        const ggl_status st = check_tool(&a->ignored, &v->item[i], err);
        if (st != GGL_OK)
            return ggl_within(err, st, "tools[%zu]", i);
    }
    a->tools = v->n > 0 ? v : NULL;
    return GGL_OK;
}
