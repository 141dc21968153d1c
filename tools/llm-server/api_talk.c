#include "api_talk.h"

#include "fields_sampling.h"

static void clear(llm_json_out *out) {
    out->n = 0;
}

static ggl_str text_of(const llm_json_out *out) {
    return (ggl_str){out->s ? out->s : "", out->n};
}

static void put_name(talk_writer *t, ggl_str name) {
    llm_json_format(&t->out, ", %.*s: ", LLM_JSON_STR(name));
}

void talk_member(talk_writer *t, const char *name, ggl_str value) {
    put_name(t, (ggl_str){name, strlen(name)});
    llm_json_put_string(&t->out, value);
}

void talk_begin(talk_writer *t, const char *role) {
    llm_json_format(&t->out, "%s{'role': '%s'", t->n_messages++ ? ", " : "{\"messages\": [", role);
    clear(&t->text);
    clear(&t->reasoning);
    clear(&t->calls);
    t->n_calls = 0;
}

static void append(llm_json_out *out, ggl_str s, const char *between) {
    if (out->n > 0)
        llm_json_put_text(out, between);
    if (s.n > 0)
        llm_json_put(out, s.s, s.n);
}

void talk_text(talk_writer *t, ggl_str s, const char *between) {
    append(&t->text, s, between);
}

void talk_reasoning(talk_writer *t, ggl_str s, const char *between) {
    append(&t->reasoning, s, between);
}

/* Text that is no JSON object stays a string: models write such calls, too. */
static void put_arguments(llm_json_out *out, const json_value *arguments) {
    llm_json *doc = NULL;
    ggl_status st = GGL_FORMAT;
    if (!arguments || arguments->kind == JSON_NULL ||
        (arguments->kind == JSON_STRING && arguments->n == 0)) {
        llm_json_put_text(out, "{}");
        return;
    }
    if (arguments->kind == JSON_STRING)
        st = llm_json_parse(&doc, arguments->s, arguments->n, "arguments", NULL);
    llm_json_put_value(out, st == GGL_OK && doc->root.kind == JSON_OBJECT ? &doc->root : arguments);
    out->failed = out->failed || st == GGL_NOMEM;
    llm_json_free(doc);
}

void talk_call(talk_writer *t, ggl_str id, ggl_str name, const json_value *arguments) {
    llm_json_out *out = &t->calls;
    llm_json_put_text(out, t->n_calls++ ? ", {" : "{");
    if (id.s)
        llm_json_format(out, "'id': %.*s, ", LLM_JSON_STR(id));
    llm_json_format(
        out, "'type': 'function', 'function': {'name': %.*s, 'arguments': ", LLM_JSON_STR(name));
    put_arguments(out, arguments);
    llm_json_put_text(out, "}}");
}

void talk_put_reasoning(talk_writer *t) {
    talk_member(t, "reasoning_content", text_of(&t->reasoning));
    clear(&t->reasoning);
}

void talk_put_calls(talk_writer *t) {
    llm_json_put_text(&t->out, ", \"tool_calls\": [");
    llm_json_put(&t->out, text_of(&t->calls).s, t->calls.n);
    llm_json_put_text(&t->out, "]");
    clear(&t->calls);
    t->n_calls = 0;
}

void talk_end_result(talk_writer *t, ggl_str call_id, ggl_str name) {
    talk_member(t, "content", text_of(&t->text));
    if (t->reasoning.n > 0)
        talk_put_reasoning(t);
    if (name.s)
        talk_member(t, "name", name);
    if (call_id.s)
        talk_member(t, "tool_call_id", call_id);
    if (t->n_calls > 0)
        talk_put_calls(t);
    llm_json_put_text(&t->out, "}");
}

void talk_end_message(talk_writer *t) {
    const ggl_str none = {NULL, 0};
    talk_end_result(t, none, none);
}

void talk_message(talk_writer *t, const char *role, ggl_str text) {
    talk_begin(t, role);
    talk_text(t, text, "");
    talk_end_message(t);
}

static void end_messages(talk_writer *t) {
    if (!t->is_ended)
        llm_json_put_text(&t->out, t->n_messages ? "]" : "{\"messages\": []");
    t->is_ended = true;
}

void talk_tools(talk_writer *t, ggl_str tools) {
    end_messages(t);
    llm_json_put_text(&t->out, ", \"tools\": ");
    llm_json_put(&t->out, tools.s, tools.n);
}

void talk_bool(talk_writer *t, const char *name, bool value) {
    end_messages(t);
    put_name(t, (ggl_str){name, strlen(name)});
    llm_json_put_text(&t->out, value ? "true" : "false");
}

void talk_string(talk_writer *t, const char *name, ggl_str value) {
    end_messages(t);
    talk_member(t, name, value);
}

void talk_value(talk_writer *t, ggl_str name, const json_value *value) {
    end_messages(t);
    put_name(t, name);
    llm_json_put_value(&t->out, value);
}

void talk_free(talk_writer *t) {
    ggl_free(t->out.s);
    ggl_free(t->text.s);
    ggl_free(t->reasoning.s);
    ggl_free(t->calls.s);
    *t = (talk_writer){0};
}

ggl_status talk_finish(talk_writer *t, ask *a, ggl_error *err) {
    end_messages(t);
    llm_json_put_text(&t->out, "}");
    t->out.failed |= t->text.failed | t->reasoning.failed | t->calls.failed;
    const ggl_status st = ask_keep(a, &t->out, &a->talk, err);
    talk_free(t);
    return st;
}
