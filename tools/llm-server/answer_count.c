/* How long the prompt of a request would be: Anthropic's /v1/messages/count_tokens, and .../input_tokens of OpenAI's APIs. */
#include <stdio.h>

#include "answer_impl.h"
#include "api_anthropic.h"

typedef ggl_status reader(ask *a, const server_facts *facts, const char **param, ggl_error *err);

/* A request whose tokens are counted. */
typedef struct counting {
    server *s; /* held */
    ask *a;
    http_reply *r;
    const dialect *d;
    const char *object; /* a member of the answer before the number */
} counting;

/* Answers, and frees it. st: what was wrong before. */
static void end_count(counting *c, ggl_status st, const char *param, ggl_error *err) {
    job_prompt prompt = {0};
    char text[100];
    if (st == GGL_OK)
        st = answer_chat_prompt(c->s, c->a, &prompt, &param, err);
    if (st == GGL_OK)
        answer_say_notes(c->s, c->a, &prompt.changes, c->r);
    const int size =
        snprintf(text, sizeof text, "{%s\"input_tokens\": %zu}", c->object, prompt.ids.n);
    llm_tokens_fini(&prompt.ids);
    ggl_free(prompt.owned);
    if (st == GGL_OK) {
        http_reply_begin(c->r, 200, "application/json", false);
        http_reply_write(c->r, text, (size_t)size);
        http_reply_end(c->r);
    } else {
        answer_unread(c->d, c->a, st, err, param, c->r);
    }
    ask_free(c->a);
    server_release(c->s);
    ggl_free(c);
}

static void on_looked(void *ctx, const api_error *e) {
    counting *c = ctx;
    ggl_error err = {0};
    if (!e) {
        end_count(c, GGL_OK, NULL, &err);
        return;
    }
    ask_free(c->a);
    server_release(c->s);
    answer_error(c->d, e, c->r);
    ggl_free(c);
}

/* Enters what a request with pictures holds while they are looked at. */
static ggl_status hold_images(ask *a, ggl_error *err) {
    size_t n = a->held.n;
    for (size_t i = 0; i < a->n_images; i++)
        n += a->image[i].n;
    return memory_set(&a->held, n) ? GGL_OK
                                   : ggl_fail(err, GGL_NOMEM,
                                              "no memory for the request (--request-memory); try "
                                              "again later");
}

static void answer_count(server *s, const http_request *q, http_reply *r, const dialect *d,
                         reader *read, const char *object) {
    counting *c = ggl_calloc(1, sizeof *c);
    ask *a = answer_new_ask(s, q);
    const char *param = NULL;
    ggl_error err = {0};
    if (!c || !a) {
        ggl_free(c);
        ask_free(a);
        answer_failed(d, GGL_NOMEM, NULL, NULL, r);
        return;
    }
    *c = (counting){.s = s, .a = a, .r = r, .d = d, .object = object};
    server_hold(s);
    a->held = (memory_hold){.of = server_answers(s)->memory, .use = MEMORY_REQUESTS};
    ggl_status st = llm_json_parse(&a->doc, q->body.s, q->body.n, "request", &err);
    if (st == GGL_OK)
        st = read(a, server_get_facts(s), &param, &err);
    server_say_ignored(s, &a->ignored, q, r);
    if (st == GGL_OK && a->n_images > 0)
        st = hold_images(a, &err);
    if (st == GGL_OK && a->n_images > 0)
        server_look(s, a, r, server_client(s, q), 0, on_looked, c);
    else
        end_count(c, st, param, &err);
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
