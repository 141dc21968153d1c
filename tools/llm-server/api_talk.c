#include "api_talk.h"

#include "fields_sampling.h"

static void clear(llm_json_out *out) {
    out->n = 0;
}

static ggl_str text_of(const llm_json_out *out) {
    return (ggl_str){out->s ? out->s : "", out->n};
}

static void put_member(llm_json_out *out, const char *name, ggl_str value) {
    llm_json_put_text(out, ", \"");
    llm_json_put_text(out, name);
    llm_json_put_text(out, "\": ");
    llm_json_put_string(out, value);
}

void talk_begin(talk_writer *t, const char *role) {
    llm_json_put_text(&t->out, t->n_messages++ ? ", " : "{\"messages\": [");
    llm_json_put_text(&t->out, "{\"role\": \"");
    llm_json_put_text(&t->out, role);
    llm_json_put_text(&t->out, "\"");
    clear(&t->text);
    clear(&t->reasoning);
    clear(&t->calls);
    t->name = t->call_id = (ggl_str){NULL, 0};
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

void talk_call(talk_writer *t, ggl_str id, ggl_str name, const json_value *arguments) {
    llm_json_out *out = &t->calls;
    llm_json_put_text(out, t->n_calls++ ? ", {\"type\": \"function\"" : "{\"type\": \"function\"");
    if (id.s)
        put_member(out, "id", id);
    llm_json_put_text(out, ", \"function\": {\"name\": ");
    llm_json_put_string(out, name);
    llm_json_put_text(out, ", \"arguments\": ");
    if (arguments)
        llm_json_put_value(out, arguments);
    else
        llm_json_put_text(out, "{}");
    llm_json_put_text(out, "}}");
}

void talk_result_of(talk_writer *t, ggl_str call_id, ggl_str name) {
    t->call_id = call_id;
    t->name = name;
}

void talk_end_message(talk_writer *t) {
    put_member(&t->out, "content", text_of(&t->text));
    if (t->reasoning.n > 0)
        put_member(&t->out, "reasoning_content", text_of(&t->reasoning));
    if (t->name.s)
        put_member(&t->out, "name", t->name);
    if (t->call_id.s)
        put_member(&t->out, "tool_call_id", t->call_id);
    if (t->n_calls > 0) {
        llm_json_put_text(&t->out, ", \"tool_calls\": [");
        llm_json_put(&t->out, t->calls.s, t->calls.n);
        llm_json_put_text(&t->out, "]");
    }
    llm_json_put_text(&t->out, "}");
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
    llm_json_put_text(&t->out, ", \"");
    llm_json_put_text(&t->out, name);
    llm_json_put_text(&t->out, value ? "\": true" : "\": false");
}

void talk_string(talk_writer *t, const char *name, ggl_str value) {
    end_messages(t);
    put_member(&t->out, name, value);
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
