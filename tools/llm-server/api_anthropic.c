/* Anthropic's /v1/messages. */
#include "api_anthropic.h"

#include "api_openai.h"
#include "api_pieces.h"
#include "api_recall.h"
#include "api_shape.h"

/* --- reading ------------------------------------------------------------------------------------ */

static anthropic_ask *own_of(ask *a) {
    return a->own;
}

static ggl_status read_system(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    (void)err;
    own_of(a)->system = v;
    return GGL_OK;
}

static ggl_status read_messages(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    (void)facts;
    (void)err;
    own_of(a)->messages = v;
    return GGL_OK;
}

/* Returns the index of a string in a list; -1: it is not in it. */
static int which(const json_value *v, const char *const *names, int n) {
    for (int i = 0; v && i < n; i++)
        if (llm_json_is(v, names[i]))
            return i;
    return -1;
}

typedef struct thinking {
    const json_value *type, *display;
} thinking;

static ggl_status read_thinking(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    static const shape_row rows[] = {
        {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(thinking, type), NULL},
        {"display", SHAPE_STRING, offsetof(thinking, display), NULL},
        {"budget_tokens", SHAPE_IGNORED, 0, NULL},
        {"block_binding", SHAPE_IGNORED, 0, NULL}, /* thinking has no signature to be checked */
        {0}};
    static const char *const types[] = {"disabled", "enabled", "adaptive", "between_tools"};
    static const char *const displays[] = {"summarized", "omitted", "updates"};
    thinking t;
    (void)facts;
    const ggl_status st = read_shape(&t, sizeof t, &a->ignored, v, rows, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "thinking");
    const int type = which(t.type, types, 4);
    if (type < 0)
        return ggl_within(err,
                          field_wrong(err, "type", t.type,
                                      "\"enabled\", \"disabled\", \"adaptive\" or "
                                      "\"between_tools\""),
                          "thinking");
    if (t.display && which(t.display, displays, 3) < 0)
        return ggl_within(
            err,
            field_wrong(err, "display", t.display, "\"summarized\", \"updates\" or \"omitted\""),
            "thinking");
    own_of(a)->has_thinking = true;
    own_of(a)->thinks = type > 0;
    own_of(a)->thinks_after_tools = type == 3;
    own_of(a)->hides_thinking = t.display && llm_json_is(t.display, "omitted");
    return GGL_OK;
}

typedef struct choice {
    const json_value *type, *name, *one;
} choice;

/* True if the request has a tool of that name. */
static bool has_tool(ask *a, ggl_str name) {
    const json_value *tools = own_of(a)->tools;
    for (size_t i = 0; tools && i < tools->n; i++) {
        const json_value *v = llm_json_get_kind(&tools->item[i], "name", JSON_STRING);
        if (v && !anthropic_is_left_out(a, &tools->item[i]) && v->n == name.n &&
            (name.n == 0 || memcmp(v->s, name.s, name.n) == 0))
            return true;
    }
    return false;
}

static ggl_status read_tool_choice(ask *a, const json_value *v, const server_facts *facts,
                                   ggl_error *err) {
    static const shape_row rows[] = {
        {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(choice, type), NULL},
        {"name", SHAPE_STRING, offsetof(choice, name), NULL},
        {"disable_parallel_tool_use", SHAPE_BOOL, offsetof(choice, one), NULL},
        {0}};
    static const char *const types[] = {"auto", "none", "any", "tool"}; /* as in ask_tools */
    choice c;
    (void)facts;
    const ggl_status st = read_shape(&c, sizeof c, &a->ignored, v, rows, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "tool_choice");
    const int type = which(c.type, types, 4);
    if (type < 0)
        return ggl_within(
            err, field_wrong(err, "type", c.type, "\"auto\", \"any\", \"tool\" or \"none\""),
            "tool_choice");
    a->tool_choice = (ask_tools)type;
    a->one_call = json_is_true(c.one);
    if (a->tool_choice == ASK_TOOLS_NAMED) {
        if (!c.name)
            return ggl_fail(err, GGL_USAGE, "tool_choice: \"name\" is missing");
        a->tool = json_str(c.name);
        if (!has_tool(a, a->tool))
            return ggl_fail(err, GGL_USAGE, "tool_choice: there is no tool \"%.*s\"",
                            (int)(a->tool.n < 80 ? a->tool.n : 80), a->tool.s);
    }
    if (a->tool_choice == ASK_TOOLS_REQUIRED && !own_of(a)->tools)
        return ggl_fail(err, GGL_USAGE, "tool_choice: a call is required, but there are no tools");
    return GGL_OK;
}

typedef struct format {
    const json_value *type, *schema;
} format;

static ggl_status read_format(ask *a, const json_value *v, ggl_error *err) {
    static const shape_row rows[] = {
        {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(format, type), NULL},
        {"schema", SHAPE_OBJECT | SHAPE_REQUIRED, offsetof(format, schema), NULL},
        {0}};
    format f;
    const size_t outer = fields_enter(&a->ignored, "format");
    const ggl_status st = read_shape(&f, sizeof f, &a->ignored, v, rows, err);
    fields_leave(&a->ignored, outer);
    if (st != GGL_OK)
        return st;
    if (!llm_json_is(f.type, "json_schema"))
        return field_wrong(err, "type", llm_json_get(v, "type"), "\"json_schema\"");
    return ask_set_form(a, ASK_SCHEMA, f.schema, err);
}

static ggl_status read_output_format(ask *a, const json_value *v, const server_facts *facts,
                                     ggl_error *err) {
    (void)facts;
    const ggl_status st = read_format(a, v, err);
    return st == GGL_OK ? st : ggl_within(err, st, "output_format");
}

typedef struct output_config {
    const json_value *effort, *format;
} output_config;

static ggl_status read_output_config(ask *a, const json_value *v, const server_facts *facts,
                                     ggl_error *err) {
    static const shape_row rows[] = {
        {"effort", SHAPE_STRING, offsetof(output_config, effort), NULL},
        {"format", SHAPE_OBJECT, offsetof(output_config, format), NULL},
        {"task_budget", SHAPE_REFUSED, 0, "limit the answer by \"max_tokens\""},
        {0}};
    static const char *const efforts[] = {"low", "medium", "high", "xhigh", "max"};
    output_config c;
    (void)facts;
    ggl_status st = read_shape(&c, sizeof c, &a->ignored, v, rows, err);
    if (st == GGL_OK && c.effort && which(c.effort, efforts, 5) < 0)
        st = field_wrong(err, "effort", c.effort,
                         "\"low\", \"medium\", \"high\", \"xhigh\" or \"max\"");
    if (st == GGL_OK && c.effort)
        own_of(a)->effort = json_str(c.effort);
    if (st == GGL_OK && c.format) {
        st = read_format(a, c.format, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "format");
    }
    return st == GGL_OK ? st : ggl_within(err, st, "output_config");
}

/* Edits of earlier turns; they are applied when the messages are read. */
static ggl_status read_context_edits(ask *a, const json_value *v, const server_facts *facts,
                                     ggl_error *err) {
    enum { MOST_EDITS = 4 };
    const json_value *edits = llm_json_get(v, "edits");
    (void)facts;
    if (v->kind != JSON_OBJECT || (edits && edits->kind != JSON_ARRAY && edits->kind != JSON_NULL))
        return ggl_fail(err, GGL_USAGE,
                        "\"context_management\" must be an object with a list \"edits\"");
    if (edits && edits->kind == JSON_ARRAY && edits->n > MOST_EDITS)
        return ggl_fail(err, GGL_LIMIT, "context_management: there are %u edits; at most %d",
                        (unsigned)edits->n, (int)MOST_EDITS);
    own_of(a)->edits = edits && edits->kind == JSON_ARRAY ? edits : NULL;
    return GGL_OK;
}

typedef struct compaction {
    const json_value *type, *instructions;
} compaction;

/* The answer is a summary of the conversation, and nothing else. */
static ggl_status read_compaction(ask *a, const json_value *v, const server_facts *facts,
                                  ggl_error *err) {
    static const shape_row rows[] = {
        {"type", SHAPE_STRING | SHAPE_REQUIRED, offsetof(compaction, type), NULL},
        {"instructions", SHAPE_STRING, offsetof(compaction, instructions), NULL},
        {0}};
    compaction c;
    (void)facts;
    ggl_status st = read_shape(&c, sizeof c, &a->ignored, v, rows, err);
    if (st == GGL_OK && !llm_json_is(c.type, "summarize"))
        st = ggl_fail(err, GGL_USAGE, "\"type\" must be \"summarize\"");
    if (st == GGL_OK && own_of(a)->edits)
        st = ggl_fail(err, GGL_USAGE, "it cannot be used together with \"context_management\"");
    if (st != GGL_OK)
        return ggl_within(err, st, "compaction");
    own_of(a)->compacts = true;
    if (c.instructions && strspn(c.instructions->s, " \t\r\n") < c.instructions->n)
        own_of(a)->instructions = json_str(c.instructions);
    return GGL_OK;
}

#define ONE_MODEL "this server has one model"

static const field fields[] = {
#include "fields_anthropic.def"
    {"max_tokens", FIELD_INT, .at = FIELD_AT(n_max), .min = 0, .max = 1e9},
    {"stop_sequences", .kind = FIELD_STOPS},
    {"stream", FIELD_BOOL, .at = FIELD_AT(stream)},
    {"temperature", FIELD_FLOAT, .at = FIELD_AT(sampling.temp), .min = 0, .max = 100},
    {"top_k", FIELD_INT32, .at = FIELD_AT(sampling.top_k), .min = 0, .max = 1e9},
    {"top_p", FIELD_FLOAT, .at = FIELD_AT(sampling.top_p), .min = 0, .max = 1},
    {"metadata", .kind = FIELD_IGNORED},
    {"service_tier", .kind = FIELD_IGNORED},
    {"inference_geo", .kind = FIELD_IGNORED},
    {"container", FIELD_REFUSED, .fn = field_is_empty, .why = "this server runs no code"},
    {"fallbacks", FIELD_REFUSED, .fn = field_is_empty, .why = ONE_MODEL},
    {"fallback_credit_token", FIELD_REFUSED, .fn = field_is_empty, .why = ONE_MODEL},
    {0}};

const field anthropic_count_fields[] = {
#include "fields_anthropic.def"
    {"max_tokens", .kind = FIELD_IGNORED},    {"stop_sequences", .kind = FIELD_IGNORED},
    {"stream", .kind = FIELD_IGNORED},        {"temperature", .kind = FIELD_IGNORED},
    {"top_k", .kind = FIELD_IGNORED},         {"top_p", .kind = FIELD_IGNORED},
    {"metadata", .kind = FIELD_IGNORED},      {"service_tier", .kind = FIELD_IGNORED},
    {"inference_geo", .kind = FIELD_IGNORED}, {0}};

static ggl_status read_tools(ask *a, const server_facts *facts, const char **param,
                             ggl_error *err) {
    const json_value *tools;
    *param = "messages";
    const ggl_status st = anthropic_tools_in_effect(a, &tools, err);
    if (st != GGL_OK || !tools || tools->kind == JSON_NULL)
        return st;
    *param = "tools";
    return anthropic_tools(a, tools, facts, err);
}

static ggl_status read_by(ask *a, const field *table, const server_facts *facts, const char **param,
                          ggl_error *err) {
    a->kind = ASK_CHAT;
    a->own = ggl_arena_alloc(&a->arena, 1, sizeof(anthropic_ask));
    if (!a->own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    own_of(a)->arena = &a->arena;
    ggl_status st = anthropic_recall(a, param, err);
    if (st == GGL_OK)
        st = read_tools(a, facts, param, err);
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, table, facts, param, err);
    if (st == GGL_OK)
        st = anthropic_edit(a, facts, param, err);
    if (table == anthropic_count_fields)
        own_of(a)->compacts = false; /* counted is what was sent */
    if (st == GGL_OK && own_of(a)->compacts) {
        a->tools = NULL;
        a->tool_choice = ASK_TOOLS_AUTO;
        a->tool = (ggl_str){NULL, 0};
        a->form = ASK_ANY;
    }
    return st == GGL_OK ? anthropic_talk(a, param, err) : st;
}

ggl_status anthropic_read(ask *a, const server_facts *facts, const char **param, ggl_error *err) {
    a->n_max = -1;
    const ggl_status st = read_by(a, fields, facts, param, err);
    if (st == GGL_OK && a->n_max < 0) {
        *param = "max_tokens";
        return ggl_fail(err, GGL_USAGE, "\"max_tokens\" is missing");
    }
    return st;
}

ggl_status anthropic_read_count(ask *a, const server_facts *facts, const char **param,
                                ggl_error *err) {
    return read_by(a, anthropic_count_fields, facts, param, err);
}

/* --- writing ------------------------------------------------------------------------------------ */

static bool compacts(const answer *x) {
    return ((const anthropic_ask *)x->ask->own)->compacts;
}

static const char *stop_reason(const answer *x, const answer_choice *c) {
    switch (c->finish) {
    case FINISH_STOP_STRING:
        return "stop_sequence";
    case FINISH_CALLS:
        return "tool_use";
    case FINISH_LENGTH:
        return c->context_full ? "model_context_window_exceeded" : "max_tokens";
    case FINISH_DEADLINE:
    case FINISH_CANCELLED:
        return "max_tokens";
    case FINISH_STOP:
        break;
    }
    return compacts(x) ? "compaction" : "end_turn";
}

/* Tokens of the prompt that were computed before are not among input_tokens. When a stream begins, only the
 * length of the prompt is known. */
static void put_usage(llm_json_out *out, const answer *x) {
    const answer_counts *n = &x->counts;
    const int64_t n_prompt = n->n_prompt > 0 || !x->n_choices ? n->n_prompt : x->choice[0].n_prompt;
    llm_json_format(out,
                    "{'input_tokens': %lld, 'cache_creation_input_tokens': 0, "
                    "'cache_read_input_tokens': %lld, 'output_tokens': %lld",
                    (long long)(n_prompt - n->n_reused), (long long)n->n_reused,
                    (long long)n->n_drawn);
    if (n->n_reasoning > 0)
        llm_json_format(out, ", 'output_tokens_details': {'thinking_tokens': %lld}",
                        (long long)n->n_reasoning);
    llm_json_put_text(out, "}");
}

/* The members stop_reason and stop_sequence; c NULL: the answer has not ended. */
static void put_stop(llm_json_out *out, const answer *x, const answer_choice *c) {
    if (c)
        llm_json_format(out, "'stop_reason': '%s', 'stop_sequence': ", stop_reason(x, c));
    else
        llm_json_put_text(out, "\"stop_reason\": null, \"stop_sequence\": ");
    if (c && c->finish == FINISH_STOP_STRING)
        llm_json_put_string(out, c->stop);
    else
        llm_json_put_text(out, "null");
}

/* Which edits of "context_management" have changed something, if some were wanted. */
static void put_edits(llm_json_out *out, const answer *x) {
    const anthropic_ask *own = x->ask->own;
    if (!own->applied.s)
        return;
    llm_json_put_text(out, ", \"context_management\": ");
    llm_json_put(out, own->applied.s, own->applied.n);
}

static bool hides_thinking(const answer *x) {
    return ((const anthropic_ask *)x->ask->own)->hides_thinking;
}

static ggl_str shown_text(const answer *x, const answer_part *p) {
    return p->kind == PART_REASONING && hides_thinking(x) ? (ggl_str){"", 0} : p->text;
}

static void put_block(llm_json_out *out, const answer *x, const answer_part *p) {
    switch (p->kind) {
    case PART_CONTENT:
        llm_json_format(out, "{'type': 'text', 'text': %.*s", LLM_JSON_STR(p->text));
        break;
    case PART_REASONING:
        llm_json_put_text(out, "{\"type\": \"thinking\", \"signature\": \"\", \"thinking\": ");
        llm_json_put_string(out, shown_text(x, p));
        break;
    case PART_CALL:
        llm_json_format(out, "{'type': 'tool_use', 'id': %.*s, 'name': %.*s, 'input': ",
                        LLM_JSON_STR(p->id), LLM_JSON_STR(p->name));
        llm_json_put(out, p->arguments.s, p->arguments.n);
        break;
    }
    llm_json_put_text(out, "}");
}

/* A stream: blocks are numbered; the one that is open grows as long as parts of its kind come. */
typedef struct stream {
    int n_blocks;
    bool is_open;
    part_kind kind; /* of the open block */
    /* If the answer is kept: the open block, and JSON of those before it, with commas. */
    kept_text text, name, id, blocks;
    bool failed; /* out of memory */
} stream;

/* The message as an object; c NULL: as it begins. blocks: those of a stream, or NULL. */
static void put_message(llm_json_out *out, const answer *x, const answer_choice *c,
                        const kept_text *blocks) {
    llm_json_format(out,
                    "{'id': 'msg_%s', 'type': 'message', 'role': 'assistant', 'model': ", x->id);
    openai_put_model(x, out);
    llm_json_put_text(out, ", \"content\": [");
    if (blocks && blocks->n > 0)
        llm_json_put(out, blocks->s, blocks->n);
    if (c && compacts(x) && !blocks) {
        llm_json_put_text(out, "{\"type\": \"compaction\", \"content\": ");
        openai_put_texts(c->part, c->n_parts, PART_CONTENT, out);
        llm_json_put_text(out, "}");
    }
    for (size_t i = 0; c && !compacts(x) && i < c->n_parts; i++) {
        llm_json_put_text(out, i ? ", " : "");
        put_block(out, x, &c->part[i]);
    }
    llm_json_put_text(out, "], ");
    put_stop(out, x, c);
    if (c)
        put_edits(out, x);
    llm_json_put_text(out, ", \"usage\": ");
    put_usage(out, x);
    llm_json_put_text(out, "}");
}

static void whole(const answer *x, llm_json_out *out) {
    put_message(out, x, &x->choice[0], NULL);
}

static void kept(const answer *x, llm_json_out *out) {
    const stream *s = x->own;
    put_message(out, x, &x->choice[0], &s->blocks);
    out->failed = out->failed || s->failed;
}

static void keep(const answer *x, kept_text *t, ggl_str text) {
    const anthropic_ask *own = x->ask->own;
    stream *s = x->own;
    if ((x->ask->keep.is_wanted || compacts(x)) && !keep_text(t, own->arena, text.s, text.n))
        s->failed = true;
}

static bool is_json(ggl_str text) {
    llm_json *doc = NULL;
    const bool is = llm_json_parse(&doc, text.s, text.n, "arguments", NULL) == GGL_OK;
    llm_json_free(doc);
    return is;
}

/* Adds the block that was open to those that are kept. The arguments of a call may have been cut off. */
static void keep_block(const answer *x) {
    stream *s = x->own;
    llm_json_out out = {0};
    const ggl_str text = {s->text.s, s->text.n};
    const answer_part p = {.kind = s->kind,
                           .text = text,
                           .name = {s->name.s, s->name.n},
                           .id = {s->id.s, s->id.n},
                           .arguments = is_json(text) ? text : (ggl_str){"{}", 2}};
    llm_json_put_text(&out, s->blocks.n > 0 ? "," : "");
    put_block(&out, x, &p);
    s->failed = s->failed || out.failed;
    keep(x, &s->blocks, (ggl_str){out.s, out.n});
    ggl_free(out.s);
}

static void put_event(llm_json_out *out, const char *name) {
    llm_json_format(out, "event: %s\ndata: {'type': '%s'", name, name);
}

static void end_event(llm_json_out *out) {
    llm_json_put_text(out, "}\n\n");
}

static void put_index(llm_json_out *out, const char *event, int index) {
    put_event(out, event);
    llm_json_format(out, ", 'index': %d", index);
}

static void begin(const answer *x, llm_json_out *out) {
    put_event(out, "message_start");
    llm_json_put_text(out, ", \"message\": ");
    put_message(out, x, NULL, NULL);
    end_event(out);
}

static void put_delta(llm_json_out *out, const stream *s, const char *type, const char *member,
                      ggl_str text) {
    put_index(out, "content_block_delta", s->n_blocks - 1);
    llm_json_format(out, ", 'delta': {'type': '%s', '%s': %.*s}", type, member, LLM_JSON_STR(text));
    end_event(out);
}

static void close_block(const answer *x, llm_json_out *out) {
    stream *s = x->own;
    if (!s->is_open)
        return;
    if (x->ask->keep.is_wanted)
        keep_block(x);
    if (s->kind == PART_REASONING)
        put_delta(out, s, "signature_delta", "signature", (ggl_str){"", 0});
    put_index(out, "content_block_stop", s->n_blocks - 1);
    end_event(out);
    s->is_open = false;
}

/* A block begins without its text, or its arguments. */
static void open_block(stream *s, const answer *x, const answer_part *p, llm_json_out *out) {
    answer_part empty = *p;
    empty.text = (ggl_str){"", 0};
    empty.arguments = (ggl_str){"{}", 2};
    close_block(x, out);
    s->is_open = true;
    s->kind = p->kind;
    s->text.n = s->name.n = s->id.n = 0;
    keep(x, &s->name, p->name);
    keep(x, &s->id, p->id);
    put_index(out, "content_block_start", s->n_blocks++);
    llm_json_put_text(out, ", \"content_block\": ");
    put_block(out, x, &empty);
    end_event(out);
}

static void part(const answer *x, const answer_choice *c, const answer_part *p, llm_json_out *out) {
    static const char *const types[][2] = {[PART_CONTENT] = {"text_delta", "text"},
                                           [PART_REASONING] = {"thinking_delta", "thinking"},
                                           [PART_CALL] = {"input_json_delta", "partial_json"}};
    stream *s = x->own;
    const ggl_str text = p->kind == PART_CALL ? p->arguments : shown_text(x, p);
    (void)c;
    if (p->kind != PART_CALL && p->text.n == 0)
        return;
    if (compacts(x)) { /* it is one block, which is given when it is complete */
        if (p->kind == PART_CONTENT && p->joins)
            keep(x, &s->text, (ggl_str){"\n", 1});
        if (p->kind == PART_CONTENT)
            keep(x, &s->text, p->text);
        return;
    }
    const bool begins = p->kind == PART_CALL ? !p->is_continued : p->begins;
    if (!s->is_open || s->kind != p->kind || begins)
        open_block(s, x, p, out);
    keep(x, &s->text, text);
    if (text.n > 0)
        put_delta(out, s, types[p->kind][0], types[p->kind][1], text);
}

/* Gives a summary as a block. */
static void give_summary(const answer *x, llm_json_out *out) {
    stream *s = x->own;
    const ggl_str text = {s->text.n > 0 ? s->text.s : "", s->text.n};
    llm_json_out block = {0};
    put_index(out, "content_block_start", s->n_blocks++);
    llm_json_put_text(out, ", \"content_block\": {\"type\": \"compaction\", \"content\": null}");
    end_event(out);
    put_delta(out, s, "compaction_delta", "content", text);
    put_index(out, "content_block_stop", s->n_blocks - 1);
    end_event(out);
    llm_json_format(&block, "{'type': 'compaction', 'content': %.*s}", LLM_JSON_STR(text));
    s->failed = s->failed || block.failed;
    keep(x, &s->blocks, (ggl_str){block.s, block.n});
    ggl_free(block.s);
}

static void end_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    (void)c;
    if (compacts(x))
        give_summary(x, out);
    else
        close_block(x, out);
}

static void end(const answer *x, llm_json_out *out) {
    put_event(out, "message_delta");
    llm_json_put_text(out, ", \"delta\": {");
    put_stop(out, x, &x->choice[0]);
    llm_json_put_text(out, "}");
    put_edits(out, x);
    llm_json_put_text(out, ", \"usage\": ");
    put_usage(out, x);
    end_event(out);
    put_event(out, "message_stop");
    end_event(out);
}

static void alive(const answer *x, llm_json_out *out) {
    (void)x;
    put_event(out, "ping");
    end_event(out);
}

/* The names of kinds of errors. */
static const char *error_type(const char *type) {
    static const struct {
        const char *type, *name;
    } names[] = {{"not_found", "not_found_error"},   {"authentication", "authentication_error"},
                 {"permission", "permission_error"}, {"too_large", "request_too_large"},
                 {"rate_limit", "rate_limit_error"}, {"overloaded", "overloaded_error"},
                 {"timeout", "timeout_error"},       {"server_error", "api_error"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i].type) == 0)
            return names[i].name;
    return "invalid_request_error";
}

static void error(const api_error *e, bool in_stream, llm_json_out *out) {
    if (in_stream)
        put_event(out, "error");
    else
        llm_json_put_text(out, "{\"type\": \"error\"");
    llm_json_format(out, ", 'error': {'type': '%s', 'message': ", error_type(e->type));
    if (e->n_prompt > 0) /* clients look for these words */
        llm_json_format(out, "'prompt is too long: %lld tokens > %lld maximum'",
                        (long long)e->n_prompt, (long long)e->n_ctx);
    else
        llm_json_put_string(out, (ggl_str){e->message, strlen(e->message)});
    if (e->code)
        llm_json_format(out, ", 'details': {'error_code': '%s'}", e->code);
    llm_json_put_text(out, "}, \"request_id\": ");
    if (e->request_id)
        llm_json_put_string(out, (ggl_str){e->request_id, strlen(e->request_id)});
    else
        llm_json_put_text(out, "null");
    if (in_stream)
        end_event(out);
    else
        llm_json_put_text(out, "}");
}

const dialect api_anthropic_messages = {
    .name = "anthropic",
    .stream_type = "text/event-stream",
    .read = anthropic_read,
    .whole = whole,
    .kept = kept,
    .id_prefix = "msg_",
    .begin = begin,
    .part = part,
    .takes_pieces = true,
    .end_choice = end_choice,
    .end = end,
    .alive = alive,
    .error = error,
    .own_size = sizeof(stream),
    .fields = fields,
};
