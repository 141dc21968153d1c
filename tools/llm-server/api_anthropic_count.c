/* Anthropic's /v1/messages/count_tokens: how long the prompt of a request would be. */
#include "api_anthropic.h"

#include <stdio.h>

#include "server.h"

/* Renders the conversation, and counts its tokens. */
static ggl_status count_prompt(server *s, const ask *a, size_t *n, ggl_error *err) {
    static const char asks[] = "{\"add_generation_prompt\": true}";
    const ggl_str vars[] = {a->talk, {asks, sizeof asks - 1}};
    llm_tokens ids = {0};
    char *text = NULL;
    size_t size = 0;
    if (!server_chat(s))
        return ggl_fail(err, GGL_UNSUPPORTED, "the model has no chat template");
    ggl_status st =
        llm_chat_prompt(server_chat(s), vars, a->continues ? 1 : 2, NULL, &text, &size, err);
    if (st == GGL_OK)
        st = llm_tokenize(server_tokenizer(s), text, size, LLM_TOKENIZE_SPECIAL, &ids, err);
    *n = ids.n;
    llm_tokens_fini(&ids);
    ggl_free(text);
    return st;
}

static ggl_status count(server *s, ask *a, ggl_str body, size_t *n, const char **param,
                        ggl_error *err) {
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    ggl_status st = llm_json_parse(&a->doc, body.s, body.n, "request", err);
    if (st == GGL_OK)
        st = anthropic_read_count(a, server_get_facts(s), param, err);
    return st == GGL_OK ? count_prompt(s, a, n, err) : st;
}

void api_anthropic_count(server *s, const http_request *q, http_reply *r) {
    ask *a = ask_new(server_get_facts(s));
    const char *param = NULL;
    ggl_error err = {0};
    size_t n = 0;
    const ggl_status st = count(s, a, q->body, &n, &param, &err);
    if (st == GGL_OK) {
        char text[64];
        const int size = snprintf(text, sizeof text, "{\"input_tokens\": %zu}", n);
        http_reply_begin(r, 200, "application/json", false);
        http_reply_write(r, text, (size_t)size);
        http_reply_end(r);
    } else {
        answer_failed(&api_anthropic_messages, st, &err, param, r);
    }
    ask_free(a);
}
