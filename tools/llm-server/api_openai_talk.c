/* Reads what OpenAI's requests share: limits, contents, tools and formats. */
#include <stdio.h>
#include <string.h>

#include "api_images.h"
#include "api_openai.h"
#include "ggl/internal/nearest.h"
#include "llm/internal/chat.h"
#include "template/parts.h"

ggl_status openai_begin(ask *a, ask_kind kind, ggl_error *err) {
    openai_own *own = ggl_arena_alloc(&a->arena, 1, sizeof *own);
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    own->top_logprobs = -1;
    own->arena = &a->arena;
    a->kind = kind;
    a->own = own;
    return GGL_OK;
}

/* --- fields ------------------------------------------------------------------------------------- */

ggl_status openai_field_model(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_STRING || memchr(v->s, 0, v->n))
        return ggl_fail(err, GGL_USAGE, "\"model\" must be a string");
    a->model = ggl_arena_strndup(&a->arena, v->s, v->n);
    return a->model ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

static ggl_status set_max(ask *a, const json_value *v, const char *name, ggl_error *err) {
    openai_own *own = openai_own_of(a);
    if (v->kind != JSON_NUMBER || !v->whole || v->number < -1)
        return field_wrong(err, name, v,
                           "a number of tokens from 0, or -1 (until the context is full)");
    if (own->has_max && a->n_max != (int64_t)v->number)
        return ggl_fail(err, GGL_USAGE, "\"%s\" and \"%s\" are two names of one limit, but differ",
                        own->max_field, name);
    own->has_max = true;
    own->max_field = name;
    a->n_max = (int64_t)v->number;
    return GGL_OK;
}

ggl_status openai_field_max_tokens(ask *a, const json_value *v, const server_facts *facts,
                                   ggl_error *err) {
    (void)facts;
    return set_max(a, v, "max_tokens", err);
}

ggl_status openai_field_max_completion_tokens(ask *a, const json_value *v,
                                              const server_facts *facts, ggl_error *err) {
    (void)facts;
    return set_max(a, v, "max_completion_tokens", err);
}

ggl_status openai_field_n_predict(ask *a, const json_value *v, const server_facts *facts,
                                  ggl_error *err) {
    (void)facts;
    return set_max(a, v, "n_predict", err);
}

ggl_status openai_field_parallel(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_BOOL)
        return ggl_fail(err, GGL_USAGE, "\"parallel_tool_calls\" must be true or false");
    a->one_call = !v->flag;
    return GGL_OK;
}

ggl_status openai_field_top_logprobs(ask *a, const json_value *v, const server_facts *facts,
                                     ggl_error *err) {
    enum { MOST = 20 };
    (void)facts;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 0 || v->number > MOST)
        return ggl_fail(err, GGL_USAGE, "\"top_logprobs\" must be an integer from 0 to %d", MOST);
    openai_own_of(a)->top_logprobs = (int64_t)v->number;
    return GGL_OK;
}

ggl_status openai_field_timings_per_token(ask *a, const json_value *v, const server_facts *facts,
                                          ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_BOOL)
        return ggl_fail(err, GGL_USAGE, "\"timings_per_token\" must be true or false");
    openai_own_of(a)->timings_per_token = v->flag;
    return GGL_OK;
}

ggl_status openai_field_stream_options(ask *a, const json_value *v, const server_facts *facts,
                                       ggl_error *err) {
    static const field fields[] = {
        {"include_usage", FIELD_BOOL, .at = FIELD_AT(stream_usage)},
        {"include_obfuscation", FIELD_REFUSED, .fn = field_is_false,
         .why = "chunks are as long as their text; leave it out or set it to false"},
        {0}};
    const char *param;
    const ggl_status st = read_fields(a, v, fields, facts, &param, err);
    return st == GGL_OK ? st : ggl_within(err, st, "stream_options");
}

/* --- contents ----------------------------------------------------------------------------------- */

/* The names that a part of text may have. */
static const field part_fields[] = {{"type", .kind = FIELD_IGNORED},
                                    {"text", .kind = FIELD_IGNORED},
                                    {"refusal", .kind = FIELD_IGNORED},
                                    {"annotations", .kind = FIELD_IGNORED},
                                    {"logprobs", .kind = FIELD_IGNORED},
                                    {"cache_control", .kind = FIELD_IGNORED},
                                    {"prompt_cache_breakpoint", .kind = FIELD_IGNORED},
                                    {0}};

/* Finds the text of a part. */
static ggl_status part_text(ask *a, const json_value *part, bool in_result, ggl_str *text,
                            ggl_error *err) {
    const char *param;
    llm_text_part p;
    const llm_part_marks marks = {.pictures = a->sees, .sounds = a->listens};
    const ggl_status st = llm_part_read(&p, part, in_result, &marks, err);
    if (st != GGL_OK)
        return st;
    *text = p.text;
    return p.left_out ? GGL_OK : read_fields(a, part, part_fields, NULL, &param, err);
}

/* Pictures and sounds become their marks; those of results that no model here could see a text that says so. */
static ggl_status read_part(void *ctx, const json_value *part, bool in_result, ggl_str *text,
                            bool *stands, ggl_error *err) {
    ask *a = ctx;
    const bool is_sound = llm_part_is_sound(part), notices = is_sound ? a->listens : a->sees;
    *stands = (is_sound || llm_part_is_picture(part)) && (notices || !in_result);
    const size_t outer = fields_enter(&a->ignored, "content");
    const ggl_status st = !*stands   ? part_text(a, part, in_result, text, err)
                          : is_sound ? image_of_sound_part(a, part, text, err)
                                     : image_of_part(a, part, text, err);
    fields_leave(&a->ignored, outer);
    return st;
}

llm_part_reader openai_part_reader(ask *a) {
    return (llm_part_reader){.part = read_part, .ctx = a};
}

ggl_status openai_add_content(ask *a, talk_writer *t, talk_adder *add, const json_value *content,
                              bool in_result, const char *where, ggl_error *err) {
    const llm_part_reader reader = openai_part_reader(a);
    ggl_str text = {"", 0};
    if (content->kind == JSON_STRING)
        text = json_str(content);
    else if (content->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_USAGE,
                        "%s: \"content\" must be a string or a list of parts, not %s", where,
                        llm_json_kind_text((json_kind)content->kind));
    else {
        const ggl_status st = llm_parts_text(&text, &a->arena, content, in_result, &reader, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "%s", where);
    }
    add(t, text, "");
    return GGL_OK;
}

/* --- formats ------------------------------------------------------------------------------------ */

static const field format_fields[] = {{"type", .kind = FIELD_IGNORED},
                                      {"json_schema", .kind = FIELD_IGNORED},
                                      {"name", .kind = FIELD_IGNORED},
                                      {"description", .kind = FIELD_IGNORED},
                                      {"schema", .kind = FIELD_IGNORED},
                                      {"strict", .kind = FIELD_IGNORED},
                                      {0}};

/* The schema of a format: in "json_schema", or, flat and in llama.cpp's form, in the format itself. */
static ggl_status read_schema(ask *a, const json_value *v, openai_style style, ggl_error *err) {
    const json_value *inner = llm_json_get(v, "json_schema"), *schema;
    const char *param;
    if (inner && style == OPENAI_NESTED) {
        const size_t outer = fields_enter(&a->ignored, "json_schema");
        const ggl_status st = read_fields(a, inner, format_fields, NULL, &param, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "json_schema");
        fields_leave(&a->ignored, outer);
        v = inner;
    }
    schema = llm_json_get(v, "schema");
    if (!schema || (schema->kind != JSON_OBJECT && schema->kind != JSON_BOOL))
        return ggl_fail(err, GGL_USAGE, "a format of type \"json_schema\" needs a \"schema\"");
    return ask_set_form(a, ASK_SCHEMA, schema, err);
}

ggl_status openai_read_format(ask *a, const json_value *v, openai_style style, ggl_error *err) {
    const char *param;
    const ggl_status st = read_fields(a, v, format_fields, NULL, &param, err);
    const json_value *type = llm_json_get_kind(v, "type", JSON_STRING);
    if (st != GGL_OK)
        return st;
    if (type && llm_json_is(type, "text"))
        return GGL_OK;
    if (type && llm_json_is(type, "json_schema"))
        return read_schema(a, v, style, err);
    if (type && llm_json_is(type, "json_object"))
        return llm_json_get(v, "schema") ? read_schema(a, v, style, err)
                                         : ask_set_form(a, ASK_JSON, v, err);
    return field_wrong(err, "type", llm_json_get(v, "type"),
                       "\"text\", \"json_object\" or \"json_schema\" (for grammars there is the "
                       "field \"grammar\")");
}

/* --- variables of the template ------------------------------------------------------------------ */

ggl_status openai_put_effort(talk_writer *t, const json_value *effort, const json_value *kwargs,
                             ggl_error *err) {
    const char *known = llm_chat_effort(effort);
    char got[FIELD_NOT];
    if (!known)
        return ggl_fail(err, GGL_USAGE,
                        "the effort of reasoning must be \"none\", \"minimal\", \"low\", "
                        "\"medium\", \"high\", \"xhigh\" or \"max\"%s",
                        field_not(effort, got));
    const bool is_off = strcmp(known, "none") == 0;
    const char *name = is_off ? "enable_thinking" : "reasoning_effort";
    if (llm_json_get(kwargs, name))
        return GGL_OK;
    if (is_off)
        talk_bool(t, name, false);
    else
        talk_string(t, name, json_str(effort));
    return GGL_OK;
}

ggl_status openai_end_talk(ask *a, talk_writer *t, ggl_error *err) {
    if (a->tools && a->form == ASK_GBNF) {
        talk_free(t);
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "tools cannot be called while the whole answer must fit a grammar; use a "
                        "schema (\"response_format\"), leave out one of them, or set "
                        "\"tool_choice\" to \"none\"");
    }
    return talk_finish(t, err);
}
