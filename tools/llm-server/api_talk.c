#include "api_talk.h"

#include "fields_sampling.h"

static ggl_str text_of(const llm_json_out *out) {
    return (ggl_str){out->n > 0 ? out->s : "", out->n};
}

/* Notes the first error. */
static void note(talk_writer *t, ggl_status st, const ggl_error *err) {
    if (t->status != GGL_OK || st == GGL_OK)
        return;
    t->status = st;
    t->err = *err;
}

static void no_memory(talk_writer *t) {
    ggl_error err;
    note(t, ggl_fail(&err, GGL_NOMEM, "out of memory for a request"), &err);
}

ggl_status talk_start(talk_writer *t, ask *a, ggl_error *err) {
    *t = (talk_writer){.a = a};
    return llm_talk_new(&a->talk, err);
}

void talk_begin(talk_writer *t, const char *role) {
    t->role = role;
    t->n_messages++;
    t->text.n = t->reasoning.n = t->n_calls = t->n_references = 0;
}

static void append(llm_json_out *out, ggl_str s, const char *between) {
    if (out->n > 0)
        llm_json_put_text(out, between);
    llm_json_put(out, s.s, s.n);
}

void talk_text(talk_writer *t, ggl_str s, const char *between) {
    append(&t->text, s, between);
}

void talk_reasoning(talk_writer *t, ggl_str s, const char *between) {
    append(&t->reasoning, s, between);
}

void talk_call(talk_writer *t, ggl_str id, ggl_str name, const json_value *arguments) {
    const json_value none = {.kind = JSON_NULL};
    const llm_json_member f[] = {{{"name", 4}, llm_json_of_str(name)},
                                 {{"arguments", 9}, arguments ? *arguments : none}};
    json_value function;
    bool made = ggl_grow(&t->call, &t->cap_calls, t->n_calls + 1, sizeof *t->call) &&
                llm_json_make_object(&function, &t->a->arena, f, 2);
    if (made) {
        const llm_json_member m[] = {{{"id", 2}, llm_json_of_str(id)},
                                     {{"type", 4}, llm_json_of_text("function")},
                                     {{"function", 8}, function}};
        made = llm_json_make_object(&t->call[t->n_calls++], &t->a->arena, id.s ? m : m + 1,
                                    id.s ? 3 : 2);
    }
    if (!made)
        no_memory(t);
}

void talk_reference(talk_writer *t, ggl_str name) {
    if (ggl_grow(&t->reference, &t->cap_references, t->n_references + 1, sizeof *t->reference))
        t->reference[t->n_references++] = llm_json_of_str(name);
    else
        no_memory(t);
}

void talk_end_result(talk_writer *t, ggl_str call_id, ggl_str name) {
    ggl_arena *arena = &t->a->arena;
    json_value *message = ggl_arena_alloc(arena, 1, sizeof *message), calls, references;
    ggl_str kept[2] = {{0}};
    ggl_error err = {0};
    const llm_json_out *from[] = {&t->text, &t->reasoning};
    bool made = message && t->status == GGL_OK &&
                llm_json_make_array(&calls, arena, t->call, t->n_calls) &&
                llm_json_make_array(&references, arena, t->reference, t->n_references);
    for (int i = 0; i < 2 && made; i++) {
        kept[i] = (ggl_str){ggl_arena_strndup(arena, text_of(from[i]).s, from[i]->n), from[i]->n};
        made = kept[i].s && !from[i]->failed && from[i]->n <= UINT32_MAX;
    }
    llm_json_member m[7];
    size_t n = 0;
    if (made) {
        m[n++] = llm_json_member_of("role", llm_json_of_text(t->role));
        m[n++] = llm_json_member_of("content", llm_json_of_str(kept[0]));
        if (kept[1].n > 0)
            m[n++] = llm_json_member_of("reasoning_content", llm_json_of_str(kept[1]));
        if (name.s)
            m[n++] = llm_json_member_of("name", llm_json_of_str(name));
        if (call_id.s)
            m[n++] = llm_json_member_of("tool_call_id", llm_json_of_str(call_id));
        if (t->n_calls > 0)
            m[n++] = llm_json_member_of("tool_calls", calls);
        if (t->n_references > 0)
            m[n++] = llm_json_member_of("tool_references", references);
        made = llm_json_make_object(message, arena, m, n);
    }
    if (!made)
        no_memory(t);
    else
        note(t, llm_talk_add_value(t->a->talk, message, NULL, &err), &err);
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

/* --- variables ---------------------------------------------------------------------------------- */

void talk_value(talk_writer *t, ggl_str name, const json_value *value) {
    ggl_error err = {0};
    if (t->status == GGL_OK)
        note(t, llm_talk_put(t->a->talk, name, value, &err), &err);
}

static void put_copy(talk_writer *t, const char *name, json_value value) {
    json_value *copy = ggl_arena_alloc(&t->a->arena, 1, sizeof *copy);
    if (!copy) {
        no_memory(t);
        return;
    }
    *copy = value;
    talk_value(t, (ggl_str){name, strlen(name)}, copy);
}

void talk_bool(talk_writer *t, const char *name, bool value) {
    put_copy(t, name, llm_json_of_bool(value));
}

void talk_string(talk_writer *t, const char *name, ggl_str value) {
    put_copy(t, name, llm_json_of_str(value));
}

/* --- the end ------------------------------------------------------------------------------------ */

void talk_free(talk_writer *t) {
    ggl_free(t->text.s);
    ggl_free(t->reasoning.s);
    ggl_free(t->call);
    ggl_free(t->reference);
    *t = (talk_writer){0};
}

/* Leaves the tools that can be called now. */
static ggl_status find_callable(ask *a, ggl_error *err) {
    const json_value *all = a->tools;
    const ggl_status st = llm_talk_callable(a->talk, &a->tools, err);
    if (st != GGL_OK || a->tools == all)
        return st;
    bool has_named = a->tool_choice != ASK_TOOLS_NAMED;
    for (uint32_t i = 0; a->tools && i < a->tools->n && !has_named; i++) {
        const json_value *f = llm_json_get(&a->tools->item[i], "function"),
                         *name = llm_json_get_kind(f, "name", JSON_STRING);
        has_named = name && ggl_str_equal(json_str(name), a->tool);
    }
    if (a->tool_choice >= ASK_TOOLS_REQUIRED && (!a->tools || !has_named))
        return ggl_fail(err, GGL_USAGE,
                        "\"tool_choice\" demands a call of a tool with \"defer_loading\", which no "
                        "\"tool_reference\" has named yet");
    if (!a->tools)
        a->tool_choice = ASK_TOOLS_NONE;
    return GGL_OK;
}

ggl_status talk_finish(talk_writer *t, ggl_error *err) {
    if (t->a->tools && t->a->tool_choice != ASK_TOOLS_NONE)
        talk_value(t, (ggl_str){"tools", 5}, t->a->tools);
    if (t->status == GGL_OK && t->a->tools && t->a->tool_choice != ASK_TOOLS_NONE) {
        ggl_error own = {0};
        note(t, find_callable(t->a, &own), &own);
    }
    const ggl_status st = t->status;
    if (st != GGL_OK)
        *err = t->err;
    talk_free(t);
    return st;
}
