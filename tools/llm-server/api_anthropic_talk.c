/* Anthropic's messages, with their blocks, as a conversation in OpenAI's form. */
#include <stdlib.h>

#include "api_anthropic.h"
#include "api_images.h"
#include "api_openai.h"
#include "api_shape.h"
#include "api_talk.h"
#include "fields_sampling.h"
#include "ggl/internal/show.h"
#include "template/parts.h"

/* A block of a message's content, by the fields of all types. */
typedef struct block {
    const json_value *type, *text, *tool_name, *id, *name, *input, *tool_use_id, *content,
        *is_error, *thinking, *source;
} block;

/* Where a picture is. */
typedef struct source {
    const json_value *type, *media_type, *data, *url;
} source;

static const shape_row text_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"text", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, text), NULL},
    {"citations", SHAPE_REFUSED, 0, "leave citations out"},
    {0}};
static const shape_row reference_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"tool_name", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, tool_name), NULL},
    {0}};
static const shape_row tool_use_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"id", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, id), NULL},
    {"name", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, name), NULL},
    {"input", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(block, input), NULL},
    {"caller", SHAPE_IGNORED, 0, NULL},
    {"toolset_name", SHAPE_REFUSED, 0, "tools come from \"tools\" alone"},
    {0}};
static const shape_row tool_result_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"tool_use_id", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, tool_use_id), NULL},
    {"content", SHAPE_STRING | SHAPE_LIST, offsetof(block, content), NULL},
    {"is_error", SHAPE_BOOL, offsetof(block, is_error), NULL},
    {"toolset_name", SHAPE_REFUSED, 0, "tools come from \"tools\" alone"},
    {0}};
static const shape_row thinking_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"thinking", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, thinking), NULL},
    {"signature", SHAPE_IGNORED, 0, NULL},
    {0}};
static const shape_row image_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"source", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(block, source), NULL},
    {0}};
static const shape_row source_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(source, type), NULL},
    {"media_type", SHAPE_STRING, offsetof(source, media_type), NULL},
    {"data", SHAPE_STRING, offsetof(source, data), NULL},
    {"url", SHAPE_STRING, offsetof(source, url), NULL},
    {"file_id", SHAPE_REFUSED, 0, "the server keeps no files"},
    {0}};
static const shape_row redacted_rows[] = {
    {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(block, type), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"data", SHAPE_IGNORED, 0, NULL},
    {0}};

/* A call of the last assistant message. */
typedef struct use {
    ggl_str id, name;
} use;

/* A conversation while it is read. */
typedef struct reading {
    ask *ask;
    ggl_error *err;
    talk_writer talk;
    const char *role;          /* of the message under way; NULL: none */
    bool is_open;              /* it has been begun in `talk` */
    bool has_calls, continues; /* of the last message */
    bool after_tools;          /* that one has results of tools */
    bool after_image; /* the message's text ends with a picture, which has no line of its own */
    use *use;         /* [n_uses], sorted by id */
    size_t n_uses;
} reading;

static int compare_uses(const void *a, const void *b) {
    const ggl_str x = ((const use *)a)->id, y = ((const use *)b)->id;
    const size_t n = x.n < y.n ? x.n : y.n;
    const int order = n > 0 ? memcmp(x.s, y.s, n) : 0;
    return order ? order : (x.n > y.n) - (x.n < y.n);
}

static void open_message(reading *r, const char *role) {
    if (!r->is_open) {
        talk_begin(&r->talk, role);
        r->after_image = false;
    }
    r->is_open = true;
}

static void close_message(reading *r) {
    if (r->is_open)
        talk_end_message(&r->talk);
    r->is_open = false;
}

/* --- blocks ------------------------------------------------------------------------------------- */

/* Returns what separates texts. An assistant's were one text; a user's are separate ones. */
static const char *between(const reading *r) {
    return strcmp(r->role, "assistant") == 0 ? "" : "\n";
}

static ggl_status add_text(reading *r, const block *b) {
    open_message(r, r->role);
    talk_text(&r->talk, json_str(b->text), r->after_image ? "" : between(r));
    r->after_image = false;
    return GGL_OK;
}

/* Finds the mark of a picture. */
static ggl_status image_mark(reading *r, const json_value *of, ggl_str *mark) {
    source s;
    const size_t outer = fields_enter(&r->ask->ignored, "source");
    ggl_status st = read_shape(&s, sizeof s, &r->ask->ignored, of, source_rows, r->err);
    fields_leave(&r->ask->ignored, outer);
    if (st != GGL_OK)
        return ggl_within(r->err, st, "source");
    if (llm_json_is(s.type, "base64") && s.data)
        st = image_of_base64(r->ask, json_str(s.data), false, mark, r->err);
    else if (llm_json_is(s.type, "url") && s.url)
        st = image_of_url(r->ask, json_str(s.url), mark, r->err);
    else
        st = ggl_fail(r->err, GGL_USAGE,
                      "a source must have the \"type\" \"base64\" and \"data\", or \"url\" and "
                      "\"url\"");
    return st == GGL_OK ? st : ggl_within(r->err, st, "source");
}

static ggl_status add_image(reading *r, const block *b) {
    ggl_str mark = {0};
    const ggl_status st = image_mark(r, b->source, &mark);
    if (st != GGL_OK)
        return st;
    open_message(r, r->role);
    talk_text(&r->talk, mark, "");
    r->after_image = true;
    return GGL_OK;
}

static ggl_status add_tool_use(reading *r, const block *b) {
    if (strcmp(r->role, "assistant") != 0)
        return ggl_fail(r->err, GGL_USAGE, "only an assistant's message can have tool_use");
    open_message(r, r->role);
    talk_call(&r->talk, json_str(b->id), json_str(b->name), b->input);
    r->use[r->n_uses++] = (use){json_str(b->id), json_str(b->name)};
    return GGL_OK;
}

/* Adds the picture of a result. */
static ggl_status result_image(reading *r, const json_value *v) {
    block b;
    ggl_str mark = {0};
    ggl_status st = read_shape(&b, sizeof b, &r->ask->ignored, v, image_rows, r->err);
    if (st == GGL_OK)
        st = image_mark(r, b.source, &mark);
    if (st == GGL_OK)
        talk_text(&r->talk, mark, "");
    return st;
}

/* Adds the text of a result: a string, or a list of texts, pictures, and tools that a search has found, whose definitions will stand there. A document, and a picture that the model does not see, becomes a text that says so: it is
 * part of each further request, which would otherwise all be refused. */
static ggl_status result_text(reading *r, const json_value *content) {
    if (content && content->kind == JSON_STRING)
        talk_text(&r->talk, json_str(content), "");
    bool after_image = false;
    for (size_t i = 0; content && content->kind == JSON_ARRAY && i < content->n; i++) {
        const json_value *v = &content->item[i], *type = llm_json_get(v, "type");
        block b;
        const bool is_tool = llm_part_is_reference(v);
        const char *before = i > 0 && !after_image ? "\n" : "";
        after_image = llm_json_is(type, "image") && r->ask->sees;
        if (after_image) {
            const ggl_status st = result_image(r, v);
            if (st != GGL_OK)
                return ggl_within(r->err, st, "content[%zu]", i);
            continue;
        }
        if (llm_json_is(type, "image") || llm_json_is(type, "document")) {
            talk_text(&r->talk, llm_part_left_out(llm_json_is(type, "image")), before);
            continue;
        }
        if (type && type->kind == JSON_STRING && !is_tool && !llm_json_is(type, "text"))
            return ggl_fail(r->err, GGL_UNSUPPORTED,
                            "content[%zu]: a result of type \"%.*s\" is not supported: give text",
                            i, (int)(type->n < 40 ? type->n : 40), type->s);
        const ggl_status st = read_shape(&b, sizeof b, &r->ask->ignored, v,
                                         is_tool ? reference_rows : text_rows, r->err);
        if (st != GGL_OK)
            return ggl_within(r->err, st, "content[%zu]", i);
        if (is_tool)
            talk_reference(&r->talk, json_str(b.tool_name));
        else
            talk_text(&r->talk, json_str(b.text), before);
    }
    return GGL_OK;
}

/* A result becomes a message of the role tool. */
static ggl_status add_tool_result(reading *r, const block *b) {
    const use wanted = {.id = json_str(b->tool_use_id)};
    if (strcmp(r->role, "user") != 0)
        return ggl_fail(r->err, GGL_USAGE, "only a user's message can have tool_result");
    const use *call =
        r->n_uses ? bsearch(&wanted, r->use, r->n_uses, sizeof *r->use, compare_uses) : NULL;
    if (!call)
        return ggl_fail(r->err, GGL_USAGE,
                        "tool_use_id \"%.*s\" is not the id of a tool_use block in the "
                        "assistant's message before",
                        (int)(wanted.id.n < 80 ? wanted.id.n : 80), wanted.id.s);
    close_message(r);
    r->after_tools = true;
    talk_begin(&r->talk, "tool");
    if (json_is_true(b->is_error))
        talk_text(&r->talk, (ggl_str){"Error: ", 7}, "");
    const size_t outer = fields_enter(&r->ask->ignored, "content");
    const ggl_status st = result_text(r, b->content);
    fields_leave(&r->ask->ignored, outer);
    talk_end_result(&r->talk, call->id, call->name);
    return st;
}

static ggl_status add_thinking(reading *r, const block *b) {
    if (strcmp(r->role, "assistant") != 0)
        return ggl_fail(r->err, GGL_USAGE, "only an assistant's message can have thinking");
    open_message(r, r->role);
    talk_reasoning(&r->talk, json_str(b->thinking), "\n");
    return GGL_OK;
}

static ggl_status add_nothing(reading *r, const block *b) {
    (void)r;
    (void)b;
    return GGL_OK;
}

static const struct block_type {
    const char *name;
    const shape_row *rows;
    ggl_status (*add)(reading *r, const block *b);
} block_types[] = {
    {"text", text_rows, add_text},
    {"image", image_rows, add_image},
    {"tool_use", tool_use_rows, add_tool_use},
    {"tool_result", tool_result_rows, add_tool_result},
    {"thinking", thinking_rows, add_thinking},
    {"redacted_thinking", redacted_rows, add_nothing},
};

static ggl_status add_block(reading *r, const json_value *v) {
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING);
    block b;
    if (!type)
        return ggl_fail(r->err, GGL_USAGE, "a block must be an object with a \"type\"");
    for (size_t i = 0; i < sizeof block_types / sizeof *block_types; i++)
        if (llm_json_is(type, block_types[i].name)) {
            ggl_status st =
                block_types[i].rows == image_rows ? image_check_seen(r->ask, r->err) : GGL_OK;
            if (st == GGL_OK)
                st = read_shape(&b, sizeof b, &r->ask->ignored, v, block_types[i].rows, r->err);
            return st == GGL_OK ? block_types[i].add(r, &b) : st;
        }
    return ggl_fail(r->err, GGL_UNSUPPORTED,
                    "a block of type \"%.*s\" is not supported: this server reads %s here",
                    (int)ggl_utf8_cut(type->s, type->n, 40), type->s,
                    strcmp(r->role, "system") == 0
                        ? "text"
                        : "text, image, document, search_result, tool_use, tool_result, thinking, "
                          "redacted_thinking, compaction, tool_addition and tool_removal");
}

/* --- messages ----------------------------------------------------------------------------------- */

/* Reads a message's content, a string or blocks, into messages: into at least one, even if nothing of the blocks
 * is shown. */
static ggl_status add_content(reading *r, const json_value *content) {
    const size_t n_messages = r->talk.n_messages;
    if (content->kind == JSON_STRING) {
        open_message(r, r->role);
        talk_text(&r->talk, json_str(content), "");
        close_message(r);
        return GGL_OK;
    }
    const size_t outer =
        fields_enter(&r->ask->ignored, strcmp(r->role, "system") == 0 ? "" : "content");
    for (size_t i = 0; i < content->n; i++) {
        const ggl_status st = add_block(r, &content->item[i]);
        if (st != GGL_OK)
            return ggl_within(r->err, st, "content[%zu]", i);
    }
    fields_leave(&r->ask->ignored, outer);
    if (r->talk.n_messages == n_messages)
        open_message(r, r->role);
    close_message(r);
    return GGL_OK;
}

/* Finds the role's static name; NULL: there is no such role. */
static const char *known_role(const json_value *v) {
    static const char *const roles[] = {"user", "assistant", "system"};
    for (int i = 0; i < 3; i++)
        if (llm_json_is(v, roles[i]))
            return roles[i];
    return NULL;
}

typedef struct message {
    const json_value *role, *content;
} message;

static const shape_row message_rows[] = {
    {"role", SHAPE_STRING | SHAPE_REQUIRED, offsetof(message, role), NULL},
    {"content", SHAPE_STRING | SHAPE_LIST | SHAPE_REQUIRED, offsetof(message, content), NULL},
    {0}};

/* Adds a message. An assistant's last one may be empty: the answer then has no beginning. */
static ggl_status add_message(reading *r, const json_value *v, bool is_last) {
    message m;
    ggl_status st = read_shape(&m, sizeof m, &r->ask->ignored, v, message_rows, r->err);
    if (st != GGL_OK)
        return st;
    r->role = known_role(m.role);
    if (!r->role)
        return field_wrong(r->err, "role", m.role, "\"user\", \"assistant\" or \"system\"");
    const bool answers = strcmp(r->role, "assistant") == 0;
    r->after_tools = false;
    r->continues = answers && m.content->n > 0;
    if (m.content->n == 0 && answers && is_last && r->talk.n_messages > 0)
        return GGL_OK;
    if (m.content->n == 0 && answers && is_last) { /* the only message */
        talk_message(&r->talk, r->role, (ggl_str){"", 0});
        return GGL_OK;
    }
    if (m.content->n == 0 && m.content->kind == JSON_ARRAY)
        return ggl_fail(r->err, GGL_USAGE, "\"content\" is an empty list");
    if (answers) {
        r->n_uses = 0;
        r->use = ggl_arena_alloc(
            &r->ask->arena, m.content->kind == JSON_ARRAY ? m.content->n + 1 : 1, sizeof *r->use);
        if (!r->use)
            return ggl_fail(r->err, GGL_NOMEM, "out of memory for a request");
    }
    st = add_content(r, m.content);
    if (st == GGL_OK && answers && r->n_uses > 0)
        qsort(r->use, r->n_uses, sizeof *r->use, compare_uses);
    r->has_calls = answers && r->n_uses > 0;
    return st;
}

static ggl_status add_system(reading *r, const json_value *system) {
    if (!system)
        return GGL_OK;
    if (system->kind != JSON_STRING && system->kind != JSON_ARRAY)
        return ggl_fail(r->err, GGL_USAGE, "\"system\" must be a string or a list of text blocks");
    if (system->n == 0)
        return GGL_OK;
    r->role = "system";
    const size_t outer = fields_enter(&r->ask->ignored, "system");
    const ggl_status st = add_content(r, system);
    fields_leave(&r->ask->ignored, outer);
    return st == GGL_OK ? st : ggl_within(r->err, st, "system");
}

static ggl_status add_messages(reading *r, const json_value *messages) {
    const size_t outer = fields_enter(&r->ask->ignored, "messages");
    for (size_t i = 0; i < messages->n; i++) {
        const ggl_status st = add_message(r, &messages->item[i], i + 1 == messages->n);
        if (st != GGL_OK)
            return ggl_within(r->err, st, "messages[%zu]", /* the request counts its own */
                              i < r->ask->n_recalled ? i : i - r->ask->n_recalled);
    }
    fields_leave(&r->ask->ignored, outer);
    if (r->has_calls)
        return ggl_fail(r->err, GGL_USAGE,
                        "the last message has tool_use: a message with their tool_result must "
                        "follow");
    r->ask->continues = r->continues;
    return GGL_OK;
}

/* Sets variables of the template. */
static void put_variables(reading *r) {
    const ask *a = r->ask;
    const anthropic_ask *own = a->own;
    if (own->has_thinking)
        talk_bool(&r->talk, "enable_thinking",
                  own->thinks && (!own->thinks_after_tools || r->after_tools));
    if (own->effort.s)
        talk_string(&r->talk, "reasoning_effort", own->effort);
}

ggl_status anthropic_talk(ask *a, const char **param, ggl_error *err) {
    const anthropic_ask *own = a->own;
    reading r = {.ask = a, .err = err};
    *param = "messages";
    if (!own->messages || own->messages->kind != JSON_ARRAY || own->messages->n == 0)
        return ggl_fail(err, GGL_USAGE, "\"messages\" must be a list of at least one message");
    ggl_status st = talk_start(&r.talk, a, err);
    if (st == GGL_OK && (st = add_system(&r, own->system)) != GGL_OK)
        *param = "system";
    if (st == GGL_OK)
        st = add_messages(&r, own->messages);
    if (st != GGL_OK) {
        talk_free(&r.talk);
        return st;
    }
    if (own->compacts) {
        talk_message(&r.talk, "user",
                     own->instructions.n > 0 ? own->instructions
                                             : (ggl_str){TALK_WISH, sizeof TALK_WISH - 1});
        a->continues = false;
    }
    put_variables(&r);
    *param = NULL;
    return talk_finish(&r.talk, err);
}

/* --- tools -------------------------------------------------------------------------------------- */

typedef struct tool {
    const json_value *type, *name, *description, *schema, *deferred;
} tool;

static const shape_row tool_rows[] = {
    {"type", SHAPE_STRING, offsetof(tool, type), NULL},
    {"name", SHAPE_STRING | SHAPE_REQUIRED, offsetof(tool, name), NULL},
    {"description", SHAPE_STRING, offsetof(tool, description), NULL},
    {"input_schema", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(tool, schema), NULL},
    {"cache_control", SHAPE_IGNORED, 0, NULL},
    {"eager_input_streaming", SHAPE_IGNORED, 0, NULL},
    {"allowed_callers", SHAPE_IGNORED, 0, NULL},
    {"strict", SHAPE_IGNORED, 0, NULL},
    {"defer_loading", SHAPE_BOOL, offsetof(tool, deferred), NULL},
    {"input_examples", SHAPE_IGNORED, 0, NULL},
    {0}};

bool anthropic_is_left_out(const ask *a, const json_value *v) {
    static const char search[] = "web_search_";
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING);
    if (!type || llm_json_is(type, "custom"))
        return false;
    return !a->ignored.strict ||
           (type->n > sizeof search - 1 && memcmp(type->s, search, sizeof search - 1) == 0);
}

/* True if the search for tools is one of Anthropic's own: nobody carries it out, so no tool is deferred. */
static bool has_own_search(const json_value *tools) {
    static const char search[] = "tool_search_tool";
    for (uint32_t i = 0; i < tools->n; i++) {
        const json_value *type = llm_json_get_kind(&tools->item[i], "type", JSON_STRING);
        if (type && type->n >= sizeof search - 1 && memcmp(type->s, search, sizeof search - 1) == 0)
            return true;
    }
    return false;
}

/* Makes a tool of OpenAI's form. */
static ggl_status make_tool(ask *a, json_value *out, const json_value *v, bool may_defer,
                            ggl_error *err) {
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING);
    tool t;
    if (type && !llm_json_is(type, "custom"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the tool \"%.*s\" of Anthropic's own is not supported: describe a tool by "
                        "\"name\", \"description\" and \"input_schema\", and carry out its calls",
                        (int)(type->n < 60 ? type->n : 60), type->s);
    const ggl_status st = read_shape(&t, sizeof t, &a->ignored, v, tool_rows, err);
    if (st != GGL_OK)
        return st;
    return openai_make_tool(a, out, json_str(t.name), t.description, t.schema,
                            may_defer && json_is_true(t.deferred), err);
}

ggl_status anthropic_tools(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    ggl_status st = GGL_OK;
    uint32_t n = 0;
    (void)facts;
    if (v->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE, "\"tools\" must be a list, not %s",
                        llm_json_kind_text((json_kind)v->kind));
    json_value *list = ggl_arena_alloc(&a->arena, 1, sizeof *list),
               *item = ggl_arena_alloc(&a->arena, v->n, sizeof *item);
    if (!list || !item)
        return ggl_fail(err, GGL_NOMEM, "out of memory for tools");
    const bool may_defer = !has_own_search(v);
    const size_t outer = fields_enter(&a->ignored, "tools");
    for (size_t i = 0; i < v->n && st == GGL_OK; i++) {
        const json_value *given = &v->item[i];
        const bool is_left_out = anthropic_is_left_out(a, given);
        st = is_left_out
                 ? fields_ignore(&a->ignored, "tools", json_str(llm_json_get(given, "type")), err)
                 : make_tool(a, &item[n++], given, may_defer, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "tools[%zu]", i);
    }
    fields_leave(&a->ignored, outer);
    if (st != GGL_OK || n == 0)
        return st;
    ((anthropic_ask *)a->own)->tools = v;
    *list = (json_value){.kind = JSON_ARRAY, .n = n, .item = item};
    a->tools = list;
    return GGL_OK;
}
