/* OpenAI's /v1/responses: the request. */
#include "api_openai_responses.h"

#include <stdio.h>

#include "api_openai_input.h"
#include "api_recall.h"
#include "server.h"

static ggl_status read_max(ask *a, const json_value *v, const server_facts *facts, ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 1)
        return field_wrong(err, "max_output_tokens", v, "a number of tokens, at least 1");
    a->n_max = (int64_t)v->number;
    return GGL_OK;
}

/* A conversation that is too long is an error with both: the server drops no part of one. */
static ggl_status read_truncation(ask *a, const json_value *v, const server_facts *facts,
                                  ggl_error *err) {
    (void)a, (void)facts;
    return llm_json_is(v, "disabled") || llm_json_is(v, "auto")
               ? GGL_OK
               : field_wrong(err, "truncation", v, "\"auto\" or \"disabled\"");
}

static ggl_status read_format(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    (void)facts;
    return openai_read_format(a, v, OPENAI_FLAT, err);
}

static ggl_status read_text(ask *a, const json_value *v, const server_facts *facts,
                            ggl_error *err) {
    static const field fields[] = {{"format", FIELD_FN, .fn = read_format},
                                   {"verbosity", .kind = FIELD_IGNORED}, /* a hint */
                                   {0}};
    const char *param;
    const ggl_status st = read_fields(a, v, fields, facts, &param, err);
    return st == GGL_OK ? st : ggl_within(err, st, "text");
}

/* The reasoning is given as it is, also where a client looks for its summary. */
static ggl_status read_summary(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)facts;
    openai_own_of(a)->summarizes = true;
    if (llm_json_is(v, "auto") || llm_json_is(v, "concise") || llm_json_is(v, "detailed"))
        return GGL_OK;
    return field_wrong(err, "summary", v, "\"auto\", \"concise\" or \"detailed\"");
}

/* "all_turns" is left to the chat template, which decides what it shows of the reasoning that it gets. */
static ggl_status read_context(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)facts;
    openai_own_of(a)->this_turn_only = llm_json_is(v, "current_turn");
    if (openai_own_of(a)->this_turn_only || llm_json_is(v, "auto") || llm_json_is(v, "all_turns"))
        return GGL_OK;
    return field_wrong(err, "context", v, "\"auto\", \"current_turn\" or \"all_turns\"");
}

/* How much is computed for an answer: a hint, of which "standard" is what there is. */
static ggl_status read_mode(ask *a, const json_value *v, const server_facts *facts,
                            ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_STRING)
        return ggl_fail(err, GGL_USAGE, "\"mode\" must be a string, such as \"standard\"");
    return llm_json_is(v, "standard")
               ? GGL_OK
               : fields_ignore(&a->ignored, "reasoning", (ggl_str){"mode", 4}, err);
}

/* The effort is read later, for the template. */
static ggl_status read_reasoning(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    static const field fields[] = {{"effort", .kind = FIELD_IGNORED},
                                   {"summary", FIELD_FN, .fn = read_summary},
                                   {"generate_summary", FIELD_FN, .fn = read_summary},
                                   {"context", FIELD_FN, .fn = read_context},
                                   {"mode", FIELD_FN, .fn = read_mode},
                                   {0}};
    const char *param;
    const ggl_status st = read_fields(a, v, fields, facts, &param, err);
    return st == GGL_OK ? st : ggl_within(err, st, "reasoning");
}

/* Most are about items that this server does not make. */
static const char *const included[] = {"message.output_text.logprobs",
                                       "reasoning.encrypted_content",
                                       "file_search_call.results",
                                       "web_search_call.results",
                                       "web_search_call.action.sources",
                                       "message.input_image.image_url",
                                       "computer_call_output.output.image_url",
                                       "code_interpreter_call.outputs"};
enum { N_INCLUDED = sizeof included / sizeof *included };

static ggl_status not_included(const json_value *v, size_t i, ggl_error *err) {
    char name[40], all[512] = "";
    for (size_t k = 0, n = 0; k < N_INCLUDED; k++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s\"%s\"",
                              k == 0               ? ""
                              : k + 1 < N_INCLUDED ? ", "
                                                   : " or ",
                              included[k]);
    snprintf(name, sizeof name, "include[%zu]", i);
    return field_wrong(err, name, v, all);
}

/* Checks the names. */
static ggl_status read_include(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)facts;
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n; i++) {
        size_t k = 0;
        while (k < N_INCLUDED && !llm_json_is(&v->item[i], included[k]))
            k++;
        if (k == N_INCLUDED)
            return not_included(&v->item[i], i, err);
        openai_own_of(a)->logprobs = openai_own_of(a)->logprobs || k == 0;
        openai_own_of(a)->carries_thoughts = openai_own_of(a)->carries_thoughts || k == 1;
    }
    return v->kind == JSON_ARRAY ? GGL_OK : ggl_fail(err, GGL_USAGE, "\"include\" must be a list");
}

static ggl_status check_string(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)a, (void)facts;
    return v->kind == JSON_STRING ? GGL_OK
                                  : ggl_fail(err, GGL_USAGE, "\"instructions\" must be a string");
}

static const field fields[] = {
    {"model", FIELD_FN, .fn = openai_field_model},
    {"input", FIELD_FN, .fn = field_any}, /* read after the others */
    {"instructions", FIELD_FN, .fn = check_string},
    {"stream", FIELD_BOOL, .at = FIELD_AT(stream)},
    {"stream_options", FIELD_FN, .fn = openai_field_stream_options},
    {"max_output_tokens", FIELD_FN, .fn = read_max},
#include "fields_sampling.def"
    {"text", FIELD_FN, .fn = read_text},
#include "fields_llamacpp.def"
    {"timings_per_token", FIELD_FN, .fn = openai_field_timings_per_token},
    {"stop", .kind = FIELD_STOPS},
    {"include", FIELD_FN, .fn = read_include},
    {"top_logprobs", FIELD_FN, .fn = openai_field_top_logprobs},
    {"tools", FIELD_FN, .fn = field_any},
    {"tool_choice", FIELD_FN, .fn = field_any},
    {"parallel_tool_calls", FIELD_FN, .fn = openai_field_parallel},
    {"reasoning", FIELD_FN, .fn = read_reasoning},
    {"truncation", FIELD_FN, .fn = read_truncation},
    {"background", FIELD_REFUSED, .fn = field_is_false, .why = "use \"stream\""},
    {"previous_response_id", FIELD_FN, .fn = field_any}, /* these three: read before the others */
    {"conversation", FIELD_FN, .fn = field_any},
    {"store", FIELD_FN, .fn = field_any},
    {"prompt", FIELD_REFUSED, .why = "the server stores no prompts; use \"instructions\""},
    {"context_management", FIELD_REFUSED, .why = "shorten the conversation in \"input\""},
    {"moderation", FIELD_REFUSED, .why = "the server does not moderate"},
    {"max_tool_calls", .kind = FIELD_IGNORED}, /* limits tools that the server would run */
    {"client_metadata", .kind = FIELD_IGNORED},
    {"metadata", .kind = FIELD_IGNORED},
    {"user", .kind = FIELD_IGNORED},
    {"safety_identifier", .kind = FIELD_IGNORED},
    {"service_tier", .kind = FIELD_IGNORED},
    {"prompt_cache_key", .kind = FIELD_IGNORED},
    {"prompt_cache_options", .kind = FIELD_IGNORED},
    {"prompt_cache_retention", .kind = FIELD_IGNORED},
    {0}};

/* What the last item "configuration_update" says has priority over the request's field, which agents send with each request. */
static ggl_status put_effort(ask *a, talk_writer *t, ggl_error *err) {
    const json_value *update = llm_json_get(openai_last_update(a, "reasoning"), "effort");
    const json_value *given = llm_json_get(llm_json_get(&a->doc->root, "reasoning"), "effort");
    const json_value *effort = update && update->kind != JSON_NULL ? update : given;
    return effort && effort->kind != JSON_NULL ? openai_put_effort(t, effort, NULL, err) : GGL_OK;
}

/* `last`: a user's message after the input, and no tools are shown; s NULL: none. */
static ggl_status read_talk(ask *a, const server_facts *facts, ggl_str last, const char **param,
                            ggl_error *err) {
    talk_writer t;
    ggl_status st = talk_start(&t, a, err);
    if (st == GGL_OK && !last.s)
        st = openai_read_tools(a, OPENAI_FLAT, facts, param, err);
    if (st == GGL_OK) {
        *param = "input";
        st = openai_add_input(a, &t, err);
    }
    if (st == GGL_OK && last.s)
        talk_message(&t, "user", last);
    if (st == GGL_OK) {
        *param = "reasoning";
        st = put_effort(a, &t, err);
    }
    if (st != GGL_OK) {
        talk_free(&t);
        return st;
    }
    *param = "tools";
    return openai_end_talk(a, &t, err);
}

/* The same for the format of the text. */
static ggl_status update_format(ask *a, const char **param, ggl_error *err) {
    const json_value *format = llm_json_get(openai_last_update(a, "text"), "format");
    if (!format || format->kind == JSON_NULL)
        return GGL_OK;
    *param = "input";
    a->form = ASK_ANY;
    const ggl_status st = openai_read_format(a, format, OPENAI_FLAT, err);
    return st == GGL_OK ? st : ggl_within(err, st, "configuration_update: text.format");
}

enum { MOST_SUMMARY = 2048 };

/* Reads the conversation, for a summary of it. */
static ggl_status read_for_summary(ask *a, const server_facts *facts, const char **param,
                                   ggl_error *err) {
    a->form = ASK_ANY;
    if (a->n_max < 0)
        a->n_max = MOST_SUMMARY;
    return read_talk(a, facts, (ggl_str){TALK_WISH, sizeof TALK_WISH - 1}, param, err);
}

static ggl_status read_responses(ask *a, const server_facts *facts, const char **param,
                                 ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_CHAT, err);
    a->talk_name = "input";
    if (st == GGL_OK)
        st = openai_recall(a, true, param, err);
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, fields, facts, param, err);
    if (st == GGL_OK && (openai_own_of(a)->logprobs || openai_own_of(a)->top_logprobs > 0))
        a->n_top = (int)(openai_own_of(a)->top_logprobs > 0 ? openai_own_of(a)->top_logprobs : 0);
    if (st == GGL_OK)
        st = update_format(a, param, err);
    const bool compacts = st == GGL_OK && openai_wants_compaction(a);
    if (compacts)
        openai_own_of(a)->compacts = true;
    if (st == GGL_OK)
        st = compacts ? read_for_summary(a, facts, param, err)
                      : read_talk(a, facts, (ggl_str){NULL, 0}, param, err);
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

/* --- compaction --------------------------------------------------------------------------------- */

/* The model sums up the conversation. */
static ggl_status read_compact(ask *a, const server_facts *facts, const char **param,
                               ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_CHAT, err);
    a->talk_name = "input";
    if (st == GGL_OK)
        st = openai_recall(a, false, param, err);
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, fields, facts, param, err);
    a->stream = false;
    if (st == GGL_OK)
        st = read_for_summary(a, facts, param, err);
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

/* The user's messages as they were, and an item in place of all others. */
static void compact_whole(const answer *x, llm_json_out *out) {
    const json_value *input = llm_json_get_kind(&x->ask->doc->root, "input", JSON_ARRAY);
    stored list = {0}; /* whose items are listed */
    snprintf(list.id, sizeof list.id, "resp_%s", x->id);
    openai_put_head(x, "resp_", "response.compaction", out);
    llm_json_format(out, ",'created_at':%lld,'output':[", (long long)x->created);
    for (size_t i = 0; input && i < input->n; i++) {
        const json_value *role = llm_json_get_kind(&input->item[i], "role", JSON_STRING);
        if (!role || !llm_json_is(role, "user"))
            continue;
        openai_put_listed(&list, &input->item[i], i, out);
        llm_json_put_text(out, ",");
    }
    llm_json_format(out, "{'id':'cmp_%s','type':'compaction','encrypted_content':", x->id);
    openai_put_texts(x->choice[0].part, x->choice[0].n_parts, PART_CONTENT, out);
    llm_json_put_text(out, "}],\"usage\":");
    openai_responses_put_usage(&x->counts, out);
    llm_json_put_text(out, "}");
}

const dialect api_openai_compact = {.name = "openai_compact",
                                    .fields = fields,
                                    .read = read_compact,
                                    .whole = compact_whole,
                                    .error = openai_error};

const dialect api_openai_responses = {.name = "openai_responses",
                                      .fields = fields,
                                      .stream_type = "text/event-stream",
                                      .read = read_responses,
                                      .whole = openai_responses_whole,
                                      .kept = openai_responses_kept,
                                      .id_prefix = "resp_",
                                      .begin = openai_responses_begin,
                                      .part = openai_responses_part,
                                      .takes_pieces = true,
                                      .end_choice = openai_responses_end_choice,
                                      .end = openai_responses_end,
                                      .progress = openai_responses_progress,
                                      .alive = openai_alive,
                                      .error = openai_responses_error,
                                      .own_size = sizeof(responses_state)};
