/* The answers of OpenAI's /v1/responses: items, their events in a stream, and the response as an object.
 *
 * There is one mechanism: parts make items and events. A whole answer is what the events of a stream would
 * end with, whose texts are thrown away. */
#include <stdio.h>

#include "api_openai_responses.h"

/* --- texts that are kept ------------------------------------------------------------------------ */

static responses_state *state_of(const answer *x) {
    return x->own;
}

static void keep(const answer *x, kept_text *t, const char *s, size_t n) {
    if (!keep_text(t, openai_own_of(x->ask)->arena, s, n))
        state_of(x)->failed = true;
}

static void put_kept(const kept_text *t, llm_json_out *out) {
    if (t->n > 0)
        llm_json_put(out, t->s, t->n);
}

static ggl_str str_of(const kept_text *t) {
    return (ggl_str){t->n > 0 ? t->s : "", t->n};
}

/* --- items -------------------------------------------------------------------------------------- */

/* What depends on the kind of an item. */
static const struct item_row {
    const char *prefix;       /* of its id */
    const char *type, *part;  /* the type of the item, and of its content */
    const char *delta, *done; /* events */
} rows[] = {[PART_CONTENT] = {"msg_", "message", "output_text", "response.output_text.delta",
                              "response.output_text.done"},
            [PART_REASONING] = {"rs_", "reasoning", "reasoning_text",
                                "response.reasoning_text.delta", "response.reasoning_text.done"},
            [PART_CALL] = {"fc_", "function_call", NULL, "response.function_call_arguments.delta",
                           "response.function_call_arguments.done"}};

static bool compacts(const answer *x) {
    return openai_own_of(x->ask)->compacts;
}

/* `"msg_ID_0"`: an id that no other item has. */
static void put_id(const answer *x, part_kind kind, llm_json_out *out) {
    char text[80];
    snprintf(text, sizeof text, "\"%s%s_%d\"", compacts(x) ? "cmp_" : rows[kind].prefix, x->id,
             state_of(x)->n_items);
    llm_json_put_text(out, text);
}

/* The content of a text or of reasoning: `{"type":"output_text","text":..}` */
static void put_content(const answer *x, part_kind kind, llm_json_out *out) {
    const responses_state *r = state_of(x);
    llm_json_format(out, "{'type':'%s','text':", rows[kind].part);
    llm_json_put_string(out, str_of(&r->text));
    if (kind == PART_CONTENT) {
        llm_json_put_text(out, ",\"annotations\":[],\"logprobs\":[");
        put_kept(&r->logprobs, out);
        llm_json_put_text(out, "]");
    }
    llm_json_put_text(out, "}");
}

static bool summarizes(const answer *x, part_kind kind) {
    return kind == PART_REASONING && openai_own_of(x->ask)->summarizes;
}

static void put_summary(ggl_str text, llm_json_out *out) {
    llm_json_format(out, "{'type':'summary_text','text':%.*s}", LLM_JSON_STR(text));
}

/* What an item of reasoning has besides its content. */
static void put_thoughts(const answer *x, bool has_ended, llm_json_out *out) {
    const responses_state *r = state_of(x);
    llm_json_put_text(out, ",\"summary\":[");
    if (has_ended && summarizes(x, PART_REASONING))
        put_summary(str_of(&r->text), out);
    llm_json_put_text(out, "]");
    if (!has_ended || !openai_own_of(x->ask)->carries_thoughts)
        return;
    llm_json_out text = {0};
    llm_json_put_text(&text, OPENAI_PLAIN);
    put_kept(&r->text, &text);
    out->failed = out->failed || text.failed;
    llm_json_format(out, ",'encrypted_content':%.*s", LLM_JSON_STR(((ggl_str){text.s, text.n})));
    ggl_free(text.s);
}

/* A text or reasoning; `status`: "in_progress", without content, "completed" or "incomplete". */
static void put_text_item(const answer *x, part_kind kind, const char *status, llm_json_out *out) {
    const bool has_ended = strcmp(status, "in_progress") != 0;
    llm_json_put_text(out, "{\"id\":");
    put_id(x, kind, out);
    if (compacts(x)) {
        const ggl_str text = has_ended ? str_of(&state_of(x)->text) : (ggl_str){"", 0};
        llm_json_format(out, ",'type':'compaction','encrypted_content':%.*s}", LLM_JSON_STR(text));
        return;
    }
    llm_json_format(out, ",'type':'%s'", rows[kind].type);
    if (kind == PART_CONTENT)
        llm_json_put_text(out, ",\"role\":\"assistant\"");
    else
        put_thoughts(x, has_ended, out);
    llm_json_format(out, ",'status':'%s','content':[", status);
    if (has_ended)
        put_content(x, kind, out);
    llm_json_put_text(out, "]}");
}

/* The open call, as far as it is known. */
static answer_part kept_call(const answer *x) {
    const responses_state *r = state_of(x);
    return (answer_part){.kind = PART_CALL,
                         .name = str_of(&r->name),
                         .id = str_of(&r->call_id),
                         .arguments = str_of(&r->text)};
}

/* The open call. `status` as for a text; arguments are in the item when it has ended. */
static void put_call_item(const answer *x, const char *status, llm_json_out *out) {
    const answer_part p = kept_call(x);
    const openai_tool *t = openai_find_tool(x->ask, p.name);
    const bool custom = openai_is_custom(x->ask, p.name);
    llm_json_put_text(out, "{\"id\":");
    put_id(x, PART_CALL, out);
    llm_json_put_text(out, custom ? ",\"type\":\"custom_tool_call\",\"call_id\":"
                                  : ",\"type\":\"function_call\",\"call_id\":");
    llm_json_format(out, "%.*s,'name':", LLM_JSON_STR(p.id));
    llm_json_put_string(out, t ? t->name : p.name);
    if (t && t->space.n > 0)
        llm_json_format(out, ",'namespace':%.*s", LLM_JSON_STR(t->space));
    llm_json_put_text(out, custom ? ",\"input\":" : ",\"arguments\":");
    if (strcmp(status, "in_progress") != 0)
        openai_put_arguments(x->ask, &p, out);
    else
        llm_json_put_text(out, "\"\"");
    llm_json_format(out, ",'status':'%s'}", status);
}

/* --- events ------------------------------------------------------------------------------------- */

static void begin_event(const answer *x, const char *type, llm_json_out *out) {
    llm_json_format(out, "event: %s\ndata: {'type':'%s','sequence_number':%lld", type, type,
                    (long long)(state_of(x)->sequence++));
}

static void end_event(const answer *x, llm_json_out *out) {
    llm_json_put_text(out, "}\n\n");
    out->failed = out->failed || state_of(x)->failed;
}

/* An event about the open item, or the one that is being added. */
static void begin_item_event(const answer *x, const char *type, part_kind kind, bool in_content,
                             llm_json_out *out) {
    begin_event(x, type, out);
    llm_json_format(out, ",'output_index':%lld,'item_id':", (long long)(state_of(x)->n_items));
    put_id(x, kind, out);
    if (in_content)
        llm_json_put_text(out, ",\"content_index\":0");
}

static void begin_item(const answer *x, const char *type, llm_json_out *out) {
    begin_event(x, type, out);
    llm_json_format(out, ",'output_index':%lld,'item':", (long long)(state_of(x)->n_items));
}

/* Keeps the item that was written at the end of `out`, from `begin` on. */
static void keep_item(const answer *x, const llm_json_out *out, size_t begin) {
    responses_state *r = state_of(x);
    if (out->failed)
        return;
    keep(x, &r->output, ",", r->n_items > 0);
    keep(x, &r->output, out->s + begin, out->n - begin);
}

/* --- texts and reasoning ------------------------------------------------------------------------ */

/* An event about the summary of the open item, which is its text: begin, a piece, or both ends. */
static void begin_summary_event(const answer *x, const char *type, llm_json_out *out) {
    begin_item_event(x, type, PART_REASONING, false, out);
    llm_json_put_text(out, ",\"summary_index\":0");
}

static void open_summary(const answer *x, llm_json_out *out) {
    begin_summary_event(x, "response.reasoning_summary_part.added", out);
    llm_json_put_text(out, ",\"part\":");
    put_summary((ggl_str){"", 0}, out);
    end_event(x, out);
}

static void close_summary(const answer *x, llm_json_out *out) {
    const ggl_str text = str_of(&state_of(x)->text);
    begin_summary_event(x, "response.reasoning_summary_text.done", out);
    llm_json_format(out, ",'text':%.*s", LLM_JSON_STR(text));
    end_event(x, out);
    begin_summary_event(x, "response.reasoning_summary_part.done", out);
    llm_json_put_text(out, ",\"part\":");
    put_summary(text, out);
    end_event(x, out);
}

static void open_item(const answer *x, part_kind kind, llm_json_out *out) {
    responses_state *r = state_of(x);
    r->open = true;
    r->kind = kind;
    r->text.n = r->logprobs.n = 0;
    begin_item(x, "response.output_item.added", out);
    put_text_item(x, kind, "in_progress", out);
    end_event(x, out);
    if (compacts(x)) {
        begin_item_event(x, "response.compaction.compacting", kind, false, out);
        end_event(x, out);
        return;
    }
    begin_item_event(x, "response.content_part.added", kind, true, out);
    llm_json_put_text(out, ",\"part\":");
    put_content(x, kind, out);
    end_event(x, out);
    if (summarizes(x, kind))
        open_summary(x, out);
}

static void put_call_delta(const answer *x, ggl_str arguments, llm_json_out *out) {
    begin_item_event(x, rows[PART_CALL].delta, PART_CALL, false, out);
    llm_json_format(out, ",'delta':%.*s", LLM_JSON_STR(arguments));
    end_event(x, out);
}

/* The free text of a call, as one piece. */
static void put_custom_delta(const answer *x, const answer_part *p, llm_json_out *out) {
    begin_item_event(x, "response.custom_tool_call_input.delta", PART_CALL, false, out);
    llm_json_put_text(out, ",\"delta\":");
    openai_put_arguments(x->ask, p, out);
    end_event(x, out);
}

static void close_call(const answer *x, bool complete, llm_json_out *out) {
    responses_state *r = state_of(x);
    const answer_part p = kept_call(x);
    const bool custom = openai_is_custom(x->ask, p.name);
    if (custom)
        put_custom_delta(x, &p, out);
    begin_item_event(x, custom ? "response.custom_tool_call_input.done" : rows[PART_CALL].done,
                     PART_CALL, false, out);
    if (!custom)
        llm_json_format(out, ",'name':%.*s", LLM_JSON_STR(p.name));
    llm_json_put_text(out, custom ? ",\"input\":" : ",\"arguments\":");
    openai_put_arguments(x->ask, &p, out);
    end_event(x, out);
    begin_item(x, "response.output_item.done", out);
    const size_t begin = out->n;
    put_call_item(x, complete ? "completed" : "incomplete", out);
    keep_item(x, out, begin);
    end_event(x, out);
    r->n_items++;
    r->open = false;
}

/* Ends the content of the open text. */
static void close_content(const answer *x, part_kind kind, llm_json_out *out) {
    const responses_state *r = state_of(x);
    begin_item_event(x, rows[kind].done, kind, true, out);
    llm_json_put_text(out, ",\"text\":");
    llm_json_put_string(out, str_of(&r->text));
    if (kind == PART_CONTENT) {
        llm_json_put_text(out, ",\"logprobs\":[");
        put_kept(&r->logprobs, out);
        llm_json_put_text(out, "]");
    }
    end_event(x, out);
    begin_item_event(x, "response.content_part.done", kind, true, out);
    llm_json_put_text(out, ",\"part\":");
    put_content(x, kind, out);
    end_event(x, out);
    if (summarizes(x, kind))
        close_summary(x, out);
}

static void close_item(const answer *x, bool complete, llm_json_out *out) {
    responses_state *r = state_of(x);
    const part_kind kind = r->kind;
    if (!r->open)
        return;
    if (kind == PART_CALL) {
        close_call(x, complete, out);
        return;
    }
    if (!compacts(x))
        close_content(x, kind, out);
    begin_item(x, "response.output_item.done", out);
    const size_t begin = out->n;
    put_text_item(x, kind, complete ? "completed" : "incomplete", out);
    keep_item(x, out, begin);
    end_event(x, out);
    r->n_items++;
    r->open = false;
}

static void add_text(const answer *x, const answer_choice *c, const answer_part *p,
                     llm_json_out *out) {
    responses_state *r = state_of(x);
    if (summarizes(x, p->kind)) {
        begin_summary_event(x, "response.reasoning_summary_text.delta", out);
        llm_json_format(out, ",'delta':%.*s", LLM_JSON_STR(p->text));
        end_event(x, out);
    }
    begin_item_event(x, rows[p->kind].delta, p->kind, true, out);
    llm_json_format(out, ",'delta':%.*s", LLM_JSON_STR(p->text));
    if (p->kind == PART_CONTENT) {
        llm_json_put_text(out, ",\"logprobs\":[");
        const size_t begin = out->n;
        if (x->ask->n_top >= 0)
            openai_put_tokens(x, p->token, p->n_tokens, out);
        if (!out->failed && out->n > begin) {
            keep(x, &r->logprobs, ",", r->logprobs.n > 0);
            keep(x, &r->logprobs, out->s + begin, out->n - begin);
        }
        llm_json_put_text(out, "]");
    }
    keep(x, &r->text, p->text.s, p->text.n);
    if (openai_own_of(x->ask)->timings_per_token) {
        llm_json_put_text(out, ",\"timings\":");
        openai_put_timings(x, c, out);
    }
    end_event(x, out);
}

/* --- calls -------------------------------------------------------------------------------------- */

static void add_call(const answer *x, const answer_part *p, llm_json_out *out) {
    responses_state *r = state_of(x);
    if (!p->is_continued) {
        r->open = true;
        r->kind = PART_CALL;
        r->text.n = r->name.n = r->call_id.n = 0;
        keep(x, &r->name, p->name.s, p->name.n);
        keep(x, &r->call_id, p->id.s, p->id.n);
        begin_item(x, "response.output_item.added", out);
        put_call_item(x, "in_progress", out);
        end_event(x, out);
    }
    keep(x, &r->text, p->arguments.s, p->arguments.n);
    const answer_part call = kept_call(x);
    if (p->arguments.n > 0 &&
        !openai_is_custom(x->ask, call.name)) /* free text is known when its call is complete */
        put_call_delta(x, p->arguments, out);
    if (!p->goes_on)
        close_call(x, true, out);
}

void openai_responses_part(const answer *x, const answer_choice *c, const answer_part *p,
                           llm_json_out *out) {
    const responses_state *r = state_of(x);
    if (compacts(x) && p->kind != PART_CONTENT)
        return; /* how a summary was found is no part of it */
    if (r->open && !compacts(x) && (r->kind != p->kind || (p->kind != PART_CALL && p->begins)))
        close_item(x, true, out);
    if (p->kind == PART_CALL) {
        add_call(x, p, out);
        return;
    }
    if (!r->open && p->text.n == 0)
        return; /* tokens of a mark at the end */
    if (!r->open)
        open_item(x, p->kind, out);
    if (compacts(x)) {
        keep(x, &state_of(x)->text, "\n", p->joins);
        keep(x, &state_of(x)->text, p->text.s, p->text.n);
    } else
        add_text(x, c, p, out);
}

/* --- the response ------------------------------------------------------------------------------- */

/* Fields of the request that the response repeats, or what they are by default. */
static void put_repeated(const answer *x, llm_json_out *out) {
    static const char *const row[][2] = {{"instructions", "null"},
                                         {"max_output_tokens", "null"},
                                         {"metadata", "{}"},
                                         {"parallel_tool_calls", "true"},
                                         {"reasoning", "{\"effort\":null,\"summary\":null}"},
                                         {"text", "{\"format\":{\"type\":\"text\"}}"},
                                         {"tool_choice", "\"auto\""},
                                         {"tools", "[]"},
                                         {"top_logprobs", "0"},
                                         {"truncation", "\"disabled\""},
                                         {"user", "null"}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        const json_value *v = llm_json_get(&x->ask->doc->root, row[k][0]);
        llm_json_format(out, ",'%s':", row[k][0]);
        if (v && v->kind != JSON_NULL)
            llm_json_put_value(out, v);
        else
            llm_json_put_text(out, row[k][1]);
    }
}

void openai_responses_put_usage(const answer_counts *n, llm_json_out *out) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"input_tokens\":%lld,\"input_tokens_details\":{\"cached_tokens\":%lld,"
             "\"cache_write_tokens\":0},"
             "\"output_tokens\":%lld,\"output_tokens_details\":{\"reasoning_tokens\":%lld},"
             "\"total_tokens\":%lld}",
             (long long)n->n_prompt, (long long)n->n_reused, (long long)n->n_drawn,
             (long long)n->n_reasoning, (long long)(n->n_prompt + n->n_drawn));
    llm_json_put_text(out, text);
}

/* Writes the members that are known only at the end. */
static void put_ending(const answer *x, bool ended, llm_json_out *out) {
    const responses_state *r = state_of(x);
    llm_json_put_text(out, ",\"output\":[");
    put_kept(&r->output, out);
    llm_json_put_text(out, ended && r->cut
                               ? "],\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"
                               : "],\"incomplete_details\":null");
    llm_json_put_text(out, ",\"completed_at\":");
    if (ended && !r->cut)
        openai_put_int(out, x->created + (int64_t)x->counts.total_s);
    else
        llm_json_put_text(out, "null");
    llm_json_put_text(out, ",\"usage\":");
    if (!ended) {
        llm_json_put_text(out, "null");
        return;
    }
    openai_responses_put_usage(&x->counts, out);
    llm_json_put_text(out, ",\"timings\":");
    openai_put_timings(x, NULL, out);
}

static void put_member(llm_json_out *out, const char *name, const json_value *v) {
    llm_json_format(out, ",'%s':", name);
    llm_json_put_value(out, v);
}

/* Where the response belongs, and whether it is kept. */
static void put_place(const answer *x, llm_json_out *out) {
    const json_value *root = &x->ask->doc->root;
    const json_value *talk = llm_json_get(root, "conversation"),
                     *previous = llm_json_get_kind(root, "previous_response_id", JSON_STRING);
    if (talk && talk->kind == JSON_STRING)
        llm_json_format(out, ",'conversation':{'id':%.*s}", LLM_JSON_STR(json_str(talk)));
    else if (talk && talk->kind == JSON_OBJECT)
        put_member(out, "conversation", talk);
    if (previous)
        put_member(out, "previous_response_id", previous);
    else
        llm_json_put_text(out, ",\"previous_response_id\":null");
    llm_json_put_text(out, x->ask->keep.is_wanted ? ",\"store\":true" : ",\"store\":false");
}

static void put_response(const answer *x, bool ended, llm_json_out *out) {
    const responses_state *r = state_of(x);
    llm_json_format(
        out, "{'id':'resp_%s','object':'response','created_at':%lld,'status':'%s','model':", x->id,
        (long long)x->created,
        !ended   ? "in_progress"
        : r->cut ? "incomplete"
                 : "completed");
    openai_put_model(x, out);
    llm_json_put_text(out, ",\"temperature\":");
    put_shortest(out, x->ask->sampling.temp);
    llm_json_put_text(out, ",\"top_p\":");
    put_shortest(out, x->ask->sampling.top_p);
    put_repeated(x, out);
    put_place(x, out);
    llm_json_put_text(out, ",\"background\":false,\"error\":null,\"service_tier\":\"default\"");
    put_ending(x, ended, out);
    llm_json_put_text(out, "}");
    out->failed = out->failed || r->failed;
}

static void put_response_event(const answer *x, const char *type, bool ended, llm_json_out *out) {
    begin_event(x, type, out);
    llm_json_put_text(out, ",\"response\":");
    put_response(x, ended, out);
    if (ended) { /* llama.cpp has it here */
        llm_json_put_text(out, ",\"timings\":");
        openai_put_timings(x, NULL, out);
    }
    end_event(x, out);
}

void openai_responses_begin(const answer *x, llm_json_out *out) {
    put_response_event(x, "response.created", false, out);
    put_response_event(x, "response.in_progress", false, out);
}

void openai_responses_progress(const answer *x, const answer_choice *c, int64_t n_done,
                               llm_json_out *out) {
    begin_event(x, "response.in_progress", out);
    llm_json_put_text(out, ",\"response\":");
    put_response(x, false, out);
    openai_put_progress(x, c, n_done, openai_own_of(x->ask)->timings_per_token, out);
    end_event(x, out);
}

void openai_responses_end_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    responses_state *r = state_of(x);
    if (compacts(x) && !r->open && r->n_items == 0)
        open_item(x, PART_CONTENT, out); /* an empty summary is one, too */
    r->cut =
        c->finish == FINISH_LENGTH || c->finish == FINISH_CANCELLED || c->finish == FINISH_DEADLINE;
    close_item(x, !r->cut, out);
}

void openai_responses_end(const answer *x, llm_json_out *out) {
    put_response_event(x, state_of(x)->cut ? "response.incomplete" : "response.completed", true,
                       out);
}

void openai_responses_kept(const answer *x, llm_json_out *out) {
    put_response(x, true, out);
}

void openai_responses_whole(const answer *x, llm_json_out *out) {
    const answer_choice *c = &x->choice[0];
    llm_json_out events = {0};
    for (size_t i = 0; i < c->n_parts; i++) {
        openai_responses_part(x, c, &c->part[i], &events);
        if (!events.failed)
            events.n = 0;
    }
    openai_responses_end_choice(x, c, &events);
    out->failed = out->failed || events.failed;
    ggl_free(events.s);
    put_response(x, true, out);
}

/* In a stream the error is an event with the members of both forms: those of the API's event, and "error",
 * at which its clients raise an exception. */
void openai_responses_error(const api_error *e, bool in_stream, llm_json_out *out) {
    if (!in_stream) {
        openai_error(e, false, out);
        return;
    }
    llm_json_put_text(out,
                      "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"code\":");
    llm_json_format(out, "%.*s,'message':%.*s,'param':null,'error':", LLM_JSON_TEXT(e->type),
                    LLM_JSON_TEXT(e->message));
    openai_put_error(e, out);
    llm_json_put_text(out, "}\n\n");
}
