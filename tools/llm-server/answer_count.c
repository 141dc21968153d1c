/* Anthropic's /v1/messages/count_tokens: how long the prompt of a request would be. */
#include <stdio.h>

#include "answer_impl.h"
#include "api_anthropic.h"

static ggl_status count(server *s, ask *a, ggl_str body, size_t *n, const char **param,
                        ggl_error *err) {
    job_prompt prompt = {0};
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    ggl_status st = llm_json_parse(&a->doc, body.s, body.n, "request", err);
    if (st == GGL_OK)
        st = anthropic_read_count(a, server_get_facts(s), param, err);
    if (st == GGL_OK)
        st = answer_chat_prompt(s, a, &prompt, param, err);
    *n = prompt.ids.n;
    llm_tokens_fini(&prompt.ids);
    ggl_free(prompt.owned);
    return st;
}

void api_anthropic_count(server *s, const http_request *q, http_reply *r) {
    ask *a = ask_new(server_get_facts(s));
    const char *param = NULL;
    ggl_error err = {0};
    size_t n = 0;
    const ggl_status st = count(s, a, q->body, &n, &param, &err);
    if (a)
        server_say_ignored(s, &a->ignored, q, r);
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
