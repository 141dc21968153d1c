/* How long the prompt of a request would be: Anthropic's /v1/messages/count_tokens, and .../input_tokens of OpenAI's APIs. */
#include <stdio.h>

#include "answer_impl.h"
#include "api_anthropic.h"

typedef ggl_status reader(ask *a, const server_facts *facts, const char **param, ggl_error *err);

static ggl_status count(server *s, ask *a, reader *read, ggl_str body, size_t *n,
                        const char **param, ggl_error *err) {
    job_prompt prompt = {0};
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    ggl_status st = llm_json_parse(&a->doc, body.s, body.n, "request", err);
    if (st == GGL_OK)
        st = read(a, server_get_facts(s), param, err);
    if (st == GGL_OK)
        st = answer_chat_prompt(s, a, &prompt, param, err);
    *n = prompt.ids.n;
    llm_tokens_fini(&prompt.ids);
    ggl_free(prompt.owned);
    return st;
}

/* `object`: a member of the answer before the number. */
static void answer_count(server *s, const http_request *q, http_reply *r, const dialect *d,
                         reader *read, const char *object) {
    ask *a = ask_new(server_get_facts(s));
    const char *param = NULL;
    ggl_error err = {0};
    size_t n = 0;
    const ggl_status st = count(s, a, read, q->body, &n, &param, &err);
    if (a)
        server_say_ignored(s, &a->ignored, q, r);
    if (st == GGL_OK) {
        char text[100];
        const int size = snprintf(text, sizeof text, "{%s\"input_tokens\": %zu}", object, n);
        http_reply_begin(r, 200, "application/json", false);
        http_reply_write(r, text, (size_t)size);
        http_reply_end(r);
    } else {
        answer_failed(d, st, &err, param, r);
    }
    ask_free(a);
}

#define OBJECT "\"object\": \"response.input_tokens\", "

void api_anthropic_count(server *s, const http_request *q, http_reply *r) {
    answer_count(s, q, r, &api_anthropic_messages, anthropic_read_count, "");
}

void api_openai_chat_count(server *s, const http_request *q, http_reply *r) {
    answer_count(s, q, r, &api_openai_chat, api_openai_chat.read, OBJECT);
}

void api_openai_responses_count(server *s, const http_request *q, http_reply *r) {
    answer_count(s, q, r, &api_openai_responses, api_openai_responses.read, OBJECT);
}
