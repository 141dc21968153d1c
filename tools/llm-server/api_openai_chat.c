/* OpenAI's /v1/chat/completions. */
#include "api_openai.h"
#include "api_openai_messages.h"
#include "common/reasoning.h"
#include "server.h"

enum { MOST_CHOICES = 128 };

/* --- requests ----------------------------------------------------------------------------------- */

static ggl_status wrong(ggl_error *err, const char *name, const char *wanted) {
    return ggl_fail(err, GGL_USAGE, "\"%s\" must be %s", name, wanted);
}

static ggl_status read_logprobs(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_BOOL)
        return wrong(err, "logprobs", "true or false");
    openai_own_of(a)->logprobs = v->flag;
    return GGL_OK;
}

/* Accepts text as the only modality. */
static ggl_status is_text(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_ARRAY && v->n == 1 && llm_json_is(v->item, "text")
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED, "not supported");
}

ggl_status openai_field_format(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)facts;
    const ggl_status st = openai_read_format(a, v, OPENAI_NESTED, err);
    return st == GGL_OK ? st : ggl_within(err, st, "response_format");
}

/* "none": reasoning and calls stay in the content. */
static ggl_status read_reasoning_format(ask *a, const json_value *v, const server_facts *facts,
                                        ggl_error *err) {
    static const char *const formats[] = {TOOL_REASONING_FORMATS, NULL};
    (void)facts;
    char known[256] = "one of";
    a->raw_marks = llm_json_is(v, formats[TOOL_FORMAT_NONE]);
    for (int k = 0; formats[k]; k++) {
        const size_t n = strlen(known);
        if (llm_json_is(v, formats[k]))
            return GGL_OK;
        snprintf(known + n, sizeof known - n, "%s \"%s\"", k > 0 ? "," : "", formats[k]);
    }
    return wrong(err, "reasoning_format", known);
}

static ggl_status is_object(ask *a, const json_value *v, const server_facts *facts,
                            ggl_error *err) {
    static const char *const taken[] = {"messages", "tools", "add_generation_prompt"};
    (void)a, (void)facts;
    if (v->kind != JSON_OBJECT)
        return wrong(err, "chat_template_kwargs", "an object: variables of the template");
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
        if (llm_json_get(v, taken[k]))
            return ggl_fail(err, GGL_USAGE, "\"chat_template_kwargs\" cannot set \"%s\"", taken[k]);
    return GGL_OK;
}

/* Checks the kind; put_variables writes the value. */
static ggl_status check_thinking(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_BOOL ? GGL_OK : wrong(err, "enable_thinking", "true or false");
}

/* As in transformers; true is the default, but then a last message of the assistant is continued. */
static ggl_status read_turn(ask *a, const json_value *v, const server_facts *facts,
                            ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_BOOL)
        return wrong(err, "add_generation_prompt", "true or false");
    if (v->flag && a->continues)
        return ggl_fail(err, GGL_USAGE,
                        "\"add_generation_prompt\" and \"continue_final_message\" cannot both be "
                        "true: a turn either begins or goes on");
    a->no_turn = !v->flag;
    return GGL_OK;
}

static const field fields[] = {
    {"model", FIELD_FN, .fn = openai_field_model},
    {"messages", FIELD_FN, .fn = field_any}, /* read after the others */
    {"stream", FIELD_BOOL, .at = FIELD_AT(stream)},
    {"stream_options", FIELD_FN, .fn = openai_field_stream_options},
    {"max_completion_tokens", FIELD_FN, .fn = openai_field_max_completion_tokens},
    {"max_tokens", FIELD_FN, .fn = openai_field_max_tokens},
    {"n_predict", FIELD_FN, .fn = openai_field_n_predict},
    {"n", FIELD_INT, .at = FIELD_AT(n_choices), .min = 1, .max = MOST_CHOICES},
    {"stop", .kind = FIELD_STOPS},
#include "fields_sampling.def"
    {"response_format", FIELD_FN, .fn = openai_field_format},
#include "fields_llamacpp.def"
    {"logprobs", FIELD_FN, .fn = read_logprobs},
    {"top_logprobs", FIELD_FN, .fn = openai_field_top_logprobs},
    {"tools", FIELD_FN, .fn = field_any},
    {"tool_choice", FIELD_FN, .fn = field_any},
    {"parallel_tool_calls", FIELD_FN, .fn = openai_field_parallel},
    {"reasoning_effort", FIELD_FN, .fn = field_any},
    {"reasoning_format", FIELD_FN, .fn = read_reasoning_format},
    {"reasoning_budget_tokens", FIELD_INT, .at = FIELD_AT(reasoning_budget), .min = -1,
     .max = INT32_MAX},
    {"thinking_budget_tokens", FIELD_INT, .at = FIELD_AT(reasoning_budget), .min = -1,
     .max = INT32_MAX},
    {"chat_template_kwargs", FIELD_FN, .fn = is_object},
    {"enable_thinking", FIELD_FN, .fn = check_thinking},
    {"continue_final_message", FIELD_BOOL, .at = FIELD_AT(continues)},
    {"add_generation_prompt", FIELD_FN, .fn = read_turn}, /* after continue_final_message */
    {"timings_per_token", FIELD_FN, .fn = openai_field_timings_per_token},
    {"verbose", FIELD_BOOL, .at = FIELD_AT(shows_prompt)},
    {"modalities", FIELD_REFUSED, .fn = is_text, .why = "the model writes only text"},
    {"audio", FIELD_REFUSED, .why = "the model writes only text"},
    {"functions", FIELD_REFUSED, .why = "use \"tools\""},
    {"function_call", FIELD_REFUSED, .why = "use \"tool_choice\""},
    {"moderation", FIELD_REFUSED, .why = "the server does not moderate"},
    {"web_search_options", FIELD_REFUSED, .why = "the server searches nothing; give a tool"},
    {"reasoning_control", FIELD_REFUSED, .fn = field_is_false,
     .why = "set \"reasoning_effort\" or \"max_tokens\""},
    {"verbosity", .kind = FIELD_IGNORED}, /* a hint */
    {"store", .kind = FIELD_IGNORED},     /* nothing is stored */
    {"prediction", .kind = FIELD_IGNORED},
    {"metadata", .kind = FIELD_IGNORED},
    {"user", .kind = FIELD_IGNORED},
    {"safety_identifier", .kind = FIELD_IGNORED},
    {"service_tier", .kind = FIELD_IGNORED},
    {"prompt_cache_key", .kind = FIELD_IGNORED},
    {"prompt_cache_options", .kind = FIELD_IGNORED},
    {"prompt_cache_retention", .kind = FIELD_IGNORED},
    {0}};

static ggl_status apply_logprobs(ask *a, const char **param, ggl_error *err) {
    const openai_own *own = openai_own_of(a);
    *param = "top_logprobs";
    if (own->top_logprobs > 0 && !own->logprobs)
        return ggl_fail(err, GGL_USAGE, "\"top_logprobs\" needs \"logprobs\": true");
    if (own->logprobs && own->top_logprobs >= 0)
        a->n_top = (int)own->top_logprobs;
    else if (own->logprobs && a->n_top < 0)
        a->n_top = 0;
    return GGL_OK;
}

/* Variables of the template besides messages and tools. "chat_template_kwargs" come before the fields of their
 * names, and "enable_thinking" before an effort of "none". */
static ggl_status put_variables(ask *a, talk_writer *t, const char **param, ggl_error *err) {
    const json_value *effort = llm_json_get(&a->doc->root, "reasoning_effort");
    const json_value *thinks = llm_json_get_kind(&a->doc->root, "enable_thinking", JSON_BOOL);
    const json_value *kwargs =
        llm_json_get_kind(&a->doc->root, "chat_template_kwargs", JSON_OBJECT);
    for (size_t i = 0; kwargs && i < kwargs->n; i++)
        talk_value(t, json_name(kwargs, i), &kwargs->item[i]);
    if (thinks && !llm_json_get(kwargs, "enable_thinking"))
        talk_bool(t, "enable_thinking", thinks->flag);
    *param = "reasoning_effort";
    if (!effort || effort->kind == JSON_NULL || (thinks && llm_json_is(effort, "none")))
        return GGL_OK;
    return openai_put_effort(t, effort, kwargs, err);
}

/* True if the request says nothing of how the prompt ends, and its last message is one that can be continued. */
static bool continues_by_itself(const ask *a) {
    const json_value *root = &a->doc->root;
    const json_value *messages = llm_json_get_kind(root, "messages", JSON_ARRAY);
    return !llm_json_get_kind(root, "continue_final_message", JSON_BOOL) &&
           !llm_json_get_kind(root, "add_generation_prompt", JSON_BOOL) && messages &&
           messages->n > 0 && openai_can_continue(&messages->item[messages->n - 1]);
}

static ggl_status read_talk(ask *a, const server_facts *facts, const char **param, ggl_error *err) {
    talk_writer t;
    ggl_status st = talk_start(&t, a, err);
    if (st == GGL_OK)
        st = openai_read_tools(a, OPENAI_NESTED, facts, param, err);
    if (st == GGL_OK) {
        *param = "messages";
        a->continues = a->continues || continues_by_itself(a);
        st = openai_add_messages(a, err);
    }
    if (st == GGL_OK)
        st = put_variables(a, &t, param, err);
    if (st != GGL_OK) {
        talk_free(&t);
        return st;
    }
    *param = "tools";
    return openai_end_talk(a, &t, err);
}

static ggl_status read_chat(ask *a, const server_facts *facts, const char **param, ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_CHAT, err);
    a->raw_marks = facts->raw_marks;
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, fields, facts, param, err);
    if (st == GGL_OK)
        st = apply_logprobs(a, param, err);
    if (st == GGL_OK)
        st = read_talk(a, facts, param, err);
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

/* --- answers ------------------------------------------------------------------------------------ */

/* A tool with free text is called so; its calls are never in pieces. */
static void put_custom(const answer *x, const answer_part *p, llm_json_out *out) {
    llm_json_format(out,
                    "'id':%.*s,'type':'custom','custom':{'name':%.*s,'input':", LLM_JSON_STR(p->id),
                    LLM_JSON_STR(p->name));
    openai_put_arguments(x->ask, p, out);
    llm_json_put_text(out, "}}");
}

static void put_call(const answer *x, const answer_part *p, bool in_stream, llm_json_out *out) {
    llm_json_put_text(out, "{");
    if (in_stream)
        llm_json_format(out, "'index':%d,", p->call);
    if (openai_is_custom(x->ask, p->name)) {
        put_custom(x, p, out);
        return;
    }
    if (p->is_continued) {
        llm_json_put_text(out, "\"function\":{");
    } else {
        llm_json_format(out, "'id':%.*s,'type':'function','function':{'name':%.*s,",
                        LLM_JSON_STR(p->id), LLM_JSON_STR(p->name));
    }
    llm_json_format(out, "'arguments':%.*s}}", LLM_JSON_STR(p->arguments));
}

static void begin_logprobs(llm_json_out *out) {
    llm_json_put_text(out, ",\"logprobs\":{\"content\":[");
}

static void end_logprobs(llm_json_out *out) {
    llm_json_put_text(out, "],\"refusal\":null}");
}

static bool has_kind(const answer_choice *c, part_kind kind) {
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->part[i].kind == kind && (kind == PART_CALL || c->part[i].text.n > 0))
            return true;
    return false;
}

static void put_calls(const answer *x, const answer_choice *c, llm_json_out *out) {
    const char *before = ",\"tool_calls\":[";
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->part[i].kind == PART_CALL) {
            llm_json_put_text(out, before);
            put_call(x, &c->part[i], false, out);
            before = ",";
        }
    llm_json_put_text(out, "]");
}

static void put_all_logprobs(const answer *x, const answer_choice *c, llm_json_out *out) {
    bool first = true;
    begin_logprobs(out);
    for (size_t i = 0; i < c->n_parts; i++) {
        const answer_part *p = &c->part[i];
        if (p->kind == PART_REASONING || p->n_tokens == 0)
            continue;
        llm_json_put_text(out, first ? "" : ",");
        openai_put_tokens(x, p->token, p->n_tokens, out);
        first = false;
    }
    end_logprobs(out);
}

static void put_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    const bool calls = has_kind(c, PART_CALL), content = has_kind(c, PART_CONTENT);
    llm_json_format(out, "{'index':%d,'message':{'role':'assistant','content':", c->index);
    if (calls && !content)
        llm_json_put_text(out, "null");
    else
        openai_put_texts(c->part, c->n_parts, PART_CONTENT, out);
    llm_json_put_text(out, ",\"refusal\":null");
    if (has_kind(c, PART_REASONING)) {
        llm_json_put_text(out, ",\"reasoning_content\":");
        openai_put_texts(c->part, c->n_parts, PART_REASONING, out);
    }
    if (calls)
        put_calls(x, c, out);
    llm_json_put_text(out, "}");
    if (x->ask->n_top >= 0)
        put_all_logprobs(x, c, out);
    else
        llm_json_put_text(out, ",\"logprobs\":null");
    openai_put_ids(x, c->part, c->n_parts, out);
    llm_json_put_text(out, ",\"finish_reason\":");
    openai_put_finish(c, out);
    llm_json_put_text(out, "}");
}

static void chat_whole(const answer *x, llm_json_out *out) {
    const ggl_str prompt = x->choice[0].prompt;
    openai_put_whole(x, put_choice, out);
    if (x->ask->shows_prompt)
        llm_json_format(out, ",'__verbose':{'prompt':%.*s}", LLM_JSON_STR(prompt));
    llm_json_put_text(out, "}");
}

/* --- streams ------------------------------------------------------------------------------------ */

static void chat_begin(const answer *x, llm_json_out *out) {
    for (int i = 0; i < x->n_choices; i++) {
        openai_begin_chunk(x, i, out);
        llm_json_format(
            out,
            "{'role':'assistant','content':%s,'refusal':null},'logprobs':null,'finish_reason':null",
            x->ask->tools ? "null" : "\"\"");
        openai_end_chunk(x, NULL, out);
    }
}

static void put_delta(const answer *x, const answer_part *p, llm_json_out *out) {
    static const char *const name[] = {[PART_CONTENT] = "{\"content\":",
                                       [PART_REASONING] = "{\"reasoning_content\":",
                                       [PART_CALL] = "{\"tool_calls\":["};
    llm_json_put_text(out, name[p->kind]);
    if (p->kind == PART_CALL)
        put_call(x, p, true, out);
    else
        openai_put_texts(p, 1, p->kind, out);
    llm_json_put_text(out, p->kind == PART_CALL ? "]}" : "}");
}

static void chat_part(const answer *x, const answer_choice *c, const answer_part *p,
                      llm_json_out *out) {
    if (p->is_continued && p->arguments.n == 0 && p->n_tokens == 0)
        return; /* the end of a call, which this API does not tell */
    openai_begin_chunk(x, c->index, out);
    put_delta(x, p, out);
    if (x->ask->n_top >= 0 && p->kind != PART_REASONING) {
        begin_logprobs(out);
        openai_put_tokens(x, p->token, p->n_tokens, out);
        end_logprobs(out);
    } else
        llm_json_put_text(out, ",\"logprobs\":null");
    openai_put_ids(x, p, 1, out);
    llm_json_put_text(out, ",\"finish_reason\":null");
    openai_end_chunk(x, openai_own_of(x->ask)->timings_per_token ? c : NULL, out);
}

const dialect api_openai_chat = {.name = "openai_chat",
                                 .fields = fields,
                                 .stream_type = "text/event-stream",
                                 .read = read_chat,
                                 .whole = chat_whole,
                                 .begin = chat_begin,
                                 .part = chat_part,
                                 .takes_pieces = true,
                                 .end_choice = openai_end_choice,
                                 .end = openai_end,
                                 .progress = openai_progress,
                                 .alive = openai_alive,
                                 .error = openai_error};
