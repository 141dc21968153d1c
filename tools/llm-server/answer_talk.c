#include "answer_talk.h"

#include <stdio.h>

#include "ggl/internal/text.h"

/* How a message with calls is written. */
typedef struct call_style {
    bool null_content;   /* an empty content is null */
    bool text_arguments; /* arguments are the text of an object */
} call_style;

/* The first one is how the readers of requests write calls. The first one that works is used. */
static const call_style styles[] = {{false, false}, {true, false}, {false, true}, {true, true}};
enum { N_STYLES = sizeof styles / sizeof *styles };

/* --- what the template takes -------------------------------------------------------------------- */

/* Finds out whether the arguments of a call, {"zq": 1}, appear in a prompt as JSON: in quotes that are not escaped. */
static ggl_status shows_call(const llm_chat *chat, const call_style *s, bool *shown,
                             ggl_error *err) {
    char talk[512], *text = NULL;
    size_t n = 0;
    snprintf(talk, sizeof talk,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
             "\"content\": %s, \"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\", "
             "\"function\": {\"name\": \"f\", \"arguments\": %s}}]}, {\"role\": \"tool\", "
             "\"tool_call_id\": \"abcdefghi\", \"content\": \"b\"}], \"tools\": [{\"type\": "
             "\"function\", \"function\": {\"name\": \"f\", \"description\": \"\", \"parameters\": "
             "{\"type\": \"object\", \"properties\": {}}}}]}",
             s->null_content ? "null" : "\"\"",
             s->text_arguments ? "\"{\\\"zq\\\": 1}\"" : "{\"zq\": 1}");
    const ggl_str vars = {talk, strlen(talk)};
    const ggl_status st = llm_chat_prompt(chat, &vars, 1, NULL, &text, &n, NULL);
    *shown = st == GGL_OK && ggl_find_bytes(text, n, "\"zq\"", 4) != NULL;
    ggl_free(text);
    return st != GGL_NOMEM ? GGL_OK : ggl_fail(err, st, "out of memory for a conversation");
}

/* Finds the first style in which the template shows calls. It is the first of all if the template shows none, or not as
 * JSON. */
static ggl_status find_style(const llm_chat *chat, const call_style **out, ggl_error *err) {
    for (int k = 0; k < N_STYLES; k++) {
        bool shown;
        const ggl_status st = shows_call(chat, &styles[k], &shown, err);
        *out = &styles[shown ? k : 0];
        if (st != GGL_OK || shown)
            return st;
    }
    return GGL_OK;
}

/* --- the talk ----------------------------------------------------------------------------------- */

static void put_text_of(llm_json_out *out, const json_value *v) {
    llm_json_out text = {0};
    llm_json_put_value(&text, v);
    llm_json_put_string(out, (ggl_str){text.n ? text.s : "", text.n});
    out->failed = out->failed || text.failed;
    ggl_free(text.s);
}

static void put_fitted(llm_json_out *out, const json_value *v, const call_style *s, bool in_call);

static void put_member(llm_json_out *out, const json_value *object, size_t i, const call_style *s,
                       bool in_call) {
    static const char *const entered[] = {"messages", "tool_calls", "function"};
    const json_value *v = &object->item[i];
    const ggl_str name = json_name(object, i);
    const bool calls = llm_json_get(object, "tool_calls") != NULL;
    bool enter = false;
    for (size_t k = 0; k < sizeof entered / sizeof *entered; k++)
        enter = enter || ggl_str_is(name, entered[k]);
    if (calls && s->null_content && ggl_str_is(name, "content") && v->kind == JSON_STRING &&
        v->n == 0)
        llm_json_put_text(out, "null");
    else if (in_call && s->text_arguments && ggl_str_is(name, "arguments") &&
             v->kind == JSON_OBJECT)
        put_text_of(out, v);
    else if (enter)
        put_fitted(out, v, s, in_call || ggl_str_is(name, "tool_calls"));
    else
        llm_json_put_value(out, v);
}

/* Writes the talk, its messages, their calls and the functions of these: five levels at most. */
static void put_fitted(llm_json_out *out, const json_value *v, const call_style *s, bool in_call) {
    const bool object = v->kind == JSON_OBJECT;
    if (!object && v->kind != JSON_ARRAY) {
        llm_json_put_value(out, v);
        return;
    }
    llm_json_put_text(out, object ? "{" : "[");
    for (size_t i = 0; i < v->n; i++) {
        llm_json_put_text(out, i > 0 ? "," : "");
        if (object) {
            llm_json_put_string(out, json_name(v, i));
            llm_json_put_text(out, ":");
            put_member(out, v, i, s, in_call);
        } else
            put_fitted(out, &v->item[i], s, in_call);
    }
    llm_json_put_text(out, object ? "}" : "]");
}

ggl_status answer_fit_talk(const llm_chat *chat, ggl_str talk, llm_json_out *out, ggl_error *err) {
    static const char calls[] = "\"tool_calls\"";
    llm_json *doc = NULL;
    *out = (llm_json_out){0};
    if (!ggl_find_bytes(talk.s, talk.n, calls, sizeof calls - 1))
        return GGL_OK;
    const call_style *s;
    ggl_status st = find_style(chat, &s, err);
    if (st != GGL_OK || s == &styles[0])
        return st;
    st = llm_json_parse(&doc, talk.s, talk.n, "conversation", err);
    if (st == GGL_OK)
        put_fitted(out, &doc->root, s, false);
    llm_json_free(doc);
    if (st == GGL_OK && out->failed)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
    return st;
}
