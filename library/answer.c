/* Answers in conversations: content, reasoning and calls of tools. */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/json_write.h"
#include "demand.h"
#include "ggl/internal/params.h"

/* --- messages --------------------------------------------------------------------------------- */

/* A message that is written while the answer comes. */
typedef struct message {
    llm_json_out content, reasoning, calls;
    size_t n_calls;
    llm_part_fn *each; /* NULL: none */
    void *user;
    bool stopped;   /* `each` returned false */
    bool begun[2];  /* content, reasoning: a part of it was there */
    bool short_ids; /* llm_chat_has_short_ids */
} message;

static void message_free(message *m) {
    ggl_free(m->content.s);
    ggl_free(m->reasoning.s);
    ggl_free(m->calls.s);
}

static void put_call(message *m, const llm_calls_part *part) {
    char id[40];
    snprintf(id, sizeof id, m->short_ids ? "call%05zu" : "call_%zu", m->n_calls);
    llm_json_put_text(&m->calls, m->n_calls++ > 0 ? ", {\"id\": " : "{\"id\": ");
    llm_json_put_string(&m->calls, part->id.n > 0 ? part->id : (ggl_str){id, strlen(id)});
    llm_json_format(&m->calls,
                    ", 'type': 'function', 'function': {'name': %.*s, 'arguments': %.*s}}",
                    LLM_JSON_STR(part->name), LLM_JSON_STR(part->arguments));
}

static void put_text(message *m, bool thinks, ggl_str text) {
    llm_json_put(thinks ? &m->reasoning : &m->content, text.s, text.n);
    if (m->each && text.n > 0 && !m->stopped)
        m->stopped =
            !m->each(m->user, thinks ? LLM_PART_REASONING : LLM_PART_CONTENT, text.s, text.n);
}

/* Several parts of one kind become one text; a line break is between them. */
static void take_part(message *m, const llm_calls_part *part) {
    const bool thinks = part->kind == LLM_CALLS_REASONING;
    if (part->kind == LLM_CALLS_CALL) {
        put_call(m, part);
        return;
    }
    if (part->begins && m->begun[thinks])
        put_text(m, thinks, (ggl_str){"\n", 1});
    m->begun[thinks] = true;
    put_text(m, thinks, part->text);
}

static void take_parts(message *m, llm_calls *calls) {
    llm_calls_part part;
    while (llm_calls_next(calls, &part))
        take_part(m, &part);
}

static void put_member(llm_json_out *out, const char *name, const llm_json_out *text) {
    llm_json_put_text(out, name);
    llm_json_put_string(out, (ggl_str){text->s, text->n});
}

/* Writes the message as JSON. */
static ggl_status message_json(const message *m, char **json, size_t *n, ggl_error *err) {
    llm_json_out out = {0};
    llm_json_put_text(&out, "{\"role\": \"assistant\"");
    if (m->reasoning.n > 0)
        put_member(&out, ", \"reasoning_content\": ", &m->reasoning);
    if (m->content.n > 0 || m->n_calls == 0)
        put_member(&out, ", \"content\": ", &m->content);
    else
        llm_json_put_text(&out, ", \"content\": null");
    if (m->n_calls > 0) {
        llm_json_put_text(&out, ", \"tool_calls\": [");
        llm_json_put(&out, m->calls.s, m->calls.n);
        llm_json_put_text(&out, "]");
    }
    llm_json_put_text(&out, "}");
    if (out.failed || m->content.failed || m->reasoning.failed || m->calls.failed) {
        ggl_free(out.s);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the message");
    }
    *json = out.s;
    *n = out.n;
    return GGL_OK;
}

ggl_status llm_chat_parse(const llm_context *c, const char *answer, size_t n,
                          const llm_parse_params *params, char **json, size_t *n_json,
                          ggl_error *err) {
    llm_parse_params p = {.size = sizeof p};
    message m = {.short_ids = c->chat && llm_chat_has_short_ids(c->chat)};
    llm_calls *calls = NULL;
    llm_json *tools = NULL;
    *json = NULL;
    *n_json = 0;
    ggl_status st = GGL_READ_PARAMS(llm_parse_params, &p, params, err);
    if (st == GGL_OK)
        st = llm_demand_read(&tools, p.tools, err);
    const llm_calls_params cp =
        llm_demand_params(c, tools ? &tools->root : NULL, llm_text_or_empty(p.prompt));
    if (st == GGL_OK)
        st = llm_calls_new(&calls, &cp, err);
    if (st == GGL_OK)
        st = llm_calls_add(calls, answer, n, err);
    if (st == GGL_OK)
        st = p.is_cut ? llm_calls_cut(calls, err) : llm_calls_finish(calls, err);
    if (st == GGL_OK) {
        take_parts(&m, calls);
        st = message_json(&m, json, n_json, err);
    }
    llm_calls_free(calls);
    llm_json_free(tools);
    message_free(&m);
    return st;
}

/* --- conversations with tools ----------------------------------------------------------------- */

/* Finds which calls the conversation demands: "auto", "required", a name ..; empty: it does not say. */
static ggl_status read_choice(llm_json_out *choice, const llm_talk *talk, ggl_error *err) {
    const json_value *v = llm_talk_get(talk, "tool_choice");
    const json_value *name =
        llm_json_get_kind(llm_json_get_kind(v, "function", JSON_OBJECT), "name", JSON_STRING);
    if (!v)
        return GGL_OK;
    name = v->kind == JSON_STRING ? v : name;
    if (!name)
        return ggl_fail(err, GGL_USAGE,
                        "tool_choice must be \"auto\", \"none\", \"required\" or {\"type\": "
                        "\"function\", \"function\": {\"name\": ..}}");
    llm_json_put(choice, name->s, name->n);
    return choice->failed ? ggl_fail(err, GGL_NOMEM, "out of memory for the tools") : GGL_OK;
}

/* Generates after the prompt, and reads the answer while it comes. */
static ggl_status run(llm_context *c, const llm_spans *given, ggl_str prompt,
                      const llm_generate_params *p, llm_calls *calls, bool has_tools, message *m,
                      ggl_error *err) {
    int32_t *id;
    size_t n_id, n;
    const char *piece = NULL;
    ggl_status st = llm_context_tokenize(c, given, prompt, LLM_TOKENIZE_SPECIAL, &id, &n_id, err);
    if (st == GGL_OK)
        st = llm_context_begin(c, id, n_id, p, err);
    ggl_free(id);
    while (st == GGL_OK && !m->stopped && !llm_calls_is_over(calls) &&
           (st = llm_next(c, &piece, &n, err)) == GGL_OK && piece) {
        st = llm_calls_add(calls, piece, n, err);
        take_parts(m, calls);
    }
    if (st != GGL_OK) { /* llm_calls_add may have failed within the generation */
        c->run.finish = c->generation ? LLM_FINISH_ERROR : c->run.finish;
        llm_context_end(c);
        return st;
    }
    if (!m->stopped && llm_calls_is_over(calls)) {
        llm_context_end(c);
        c->run.finish = LLM_FINISH_END;
    }
    const llm_finish why = c->run.finish;
    st = !m->stopped && has_tools && (why == LLM_FINISH_LENGTH || why == LLM_FINISH_CONTEXT)
             ? llm_calls_cut(calls, err)
             : llm_calls_finish(calls, err);
    take_parts(m, calls);
    if (!m->stopped)
        return st;
    llm_context_end(c);
    c->run.finish = LLM_FINISH_CANCELLED;
    return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
}

/* Answers a conversation, in which nothing is to be shown any more. */
static ggl_status answer(llm_context *c, llm_talk *talk, llm_generate_params *p, message *m,
                         ggl_error *err) {
    char *prompt = NULL;
    size_t n = 0;
    llm_chat_made made = {0};
    llm_calls *calls = NULL;
    const bool none = p->tool_choice && strcmp(p->tool_choice, "none") == 0;
    const json_value *parallel = llm_talk_get(talk, "parallel_tool_calls");
    llm_asked asked = {.one_call = parallel && parallel->kind == JSON_BOOL && !parallel->flag};
    ggl_status st = none ? GGL_OK : llm_talk_callable(talk, &asked.tools, err);
    if (st != GGL_OK)
        return st;
    p->tools = NULL; /* asked has them */
    if (llm_demands_call(p->tool_choice) && !asked.tools)
        return ggl_fail(err, GGL_USAGE, "tool_choice '%s' needs tools", p->tool_choice);
    st = llm_context_format(c, talk, true, &prompt, &n, &made, err);
    if (st == GGL_OK)
        llm_note_changes(&made.changes, p);
    llm_calls_params cp = llm_demand_params(c, asked.tools, (ggl_str){prompt, n});
    cp.demanded = llm_demands_call(p->tool_choice);
    cp.no_calls = !asked.tools;
    cp.one_call = asked.one_call;
    /* once a text in a given form has begun, marks in it are text */
    cp.answer = llm_text_or_empty(p->json_schema || asked.tools ? p->json_schema : p->grammar);
    asked.tokens = llm_calls_tokens_of(cp.format);
    if (st == GGL_OK)
        st = llm_calls_new(&calls, &cp, err);
    c->asked = &asked;
    c->answers = &cp;
    if (st == GGL_OK)
        st = run(c, &made.given, cp.prompt, p, calls, asked.tools != NULL, m, err);
    c->asked = NULL;
    c->answers = NULL;
    llm_calls_free(calls);
    llm_chat_made_fini(&made);
    ggl_free(prompt);
    return st;
}

ggl_status llm_chat_answer(llm_context *c, const char *json, const llm_generate_params *params,
                           llm_part_fn *each, void *user, char **text, size_t *n, ggl_error *err) {
    llm_generate_params p = llm_generate_default_of(c);
    message m = {
        .each = each, .user = user, .short_ids = c->chat && llm_chat_has_short_ids(c->chat)};
    llm_json_out choice = {0};
    llm_talk *talk = NULL;
    *text = NULL;
    *n = 0;
    llm_context_start(c);
    if (!json)
        return ggl_fail(err, GGL_USAGE, "llm_chat_answer needs a conversation as JSON");
    ggl_status st = GGL_READ_PARAMS(llm_generate_params, &p, params, err);
    if (st == GGL_OK)
        st = llm_context_see_talk(c, json, &talk, err);
    if (st == GGL_CANCELLED)
        c->run.finish = LLM_FINISH_CANCELLED;
    if (st == GGL_OK)
        st = read_choice(&choice, talk, err);
    if (st == GGL_OK) {
        p.tool_choice = choice.s;
        st = answer(c, talk, &p, &m, err);
    }
    if (st == GGL_OK)
        st = message_json(&m, text, n, err);
    llm_talk_free(talk);
    ggl_free(choice.s);
    message_free(&m);
    return st;
}
