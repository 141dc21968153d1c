/* Requests of the other APIs from their JSON to the bytes of the answer: all say what a model says, whole and as streams. */
#include "answer_fixture.h"
#include "common/json.h"

static ggl_error err;

static const char *no_header(const http_request *q, const char *name) {
    (void)q, (void)name;
    return NULL;
}

static const http_request request = {
    .header = no_header, .parameter = no_header, .client = "127.0.0.1"};

/* Answers a request; the caller frees the reply. */
static http_reply *answer_to(server *s, const dialect *d, const char *body) {
    ask *a = ask_new(&s->facts);
    const char *param = NULL;
    http_reply *r = ggl_calloc(1, sizeof *r);
    if (!CHECK_OK(llm_json_parse(&a->doc, body, strlen(body), "request", &err), &err) ||
        !CHECK_OK(d->read(a, &s->facts, &param, &err), &err)) {
        ask_free(a);
        return r;
    }
    answer_start(s, d, a, &request, r);
    server_run(s, 100000);
    CHECK(r->ended && r->status == 200);
    return r;
}

/* Appends the strings at these names, one inside the other, in each JSON text of an answer: of its lines, after "data: ". */
static void collect(const http_reply *r, const char *const path[3], char *text, size_t size) {
    char line[8192];
    text[0] = '\0';
    for (const char *at = r->body.s, *end = at + r->body.n; at && at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        snprintf(line, sizeof line, "%.*s", (int)((stop ? stop : end) - at), at);
        const char *json = strncmp(line, "data: ", 6) == 0 ? line + 6 : line;
        llm_json *doc = NULL;
        if (json[0] == '{' &&
            CHECK_OK(llm_json_parse(&doc, json, strlen(json), "answer", &err), &err)) {
            const json_value *v = &doc->root;
            for (int k = 0; k < 3 && path[k]; k++)
                v = v && v->kind == JSON_ARRAY ? &v->item[0] : llm_json_get(v, path[k]);
            if (v && v->kind == JSON_STRING)
                snprintf(text + strlen(text), size - strlen(text), "%.*s", (int)v->n, v->s);
        }
        llm_json_free(doc);
        at = (stop ? stop : end) + 1;
    }
}

/* How an API is asked for one answer, and where its text is. */
typedef struct form {
    const dialect *d;
    const char *whole, *stream;
    const char *path[3], *delta[3];
} form;

#define SAY "\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a story.\"}]"

static const form chats[] = {
    {&api_anthropic_messages,
     "{\"max_tokens\": 30, \"temperature\": 0, " SAY "}",
     "{\"max_tokens\": 30, \"temperature\": 0, \"stream\": true, " SAY "}",
     {"content", "0", "text"},
     {"delta", "text"}},
    {&api_ollama_chat,
     "{\"stream\": false, \"options\": {\"num_predict\": 30, \"temperature\": 0}, " SAY "}",
     "{\"options\": {\"num_predict\": 30, \"temperature\": 0}, " SAY "}",
     {"message", "content"},
     {"message", "content"}},
    {&api_ollama_generate,
     "{\"stream\": false, \"prompt\": \"Tell me a story.\", \"options\": {\"num_predict\": 30, "
     "\"temperature\": 0}}",
     "{\"prompt\": \"Tell me a story.\", \"options\": {\"num_predict\": 30, \"temperature\": 0}}",
     {"response"},
     {"response"}},
};

static const form texts[] = {
    {&api_llamacpp_completion,
     "{\"prompt\": \"Once upon a time\", \"n_predict\": 30, \"temperature\": 0}",
     "{\"prompt\": \"Once upon a time\", \"n_predict\": 30, \"temperature\": 0, \"stream\": true}",
     {"content"},
     {"content"}},
    {&api_ollama_generate,
     "{\"stream\": false, \"raw\": true, \"prompt\": \"Once upon a time\", \"options\": "
     "{\"num_predict\": 30, \"temperature\": 0}}",
     "{\"raw\": true, \"prompt\": \"Once upon a time\", \"options\": {\"num_predict\": 30, "
     "\"temperature\": 0}}",
     {"response"},
     {"response"}},
};

/* All forms give the same text. */
static void compare(const form *f, size_t n) {
    server s = {0};
    char first[4096] = "", text[4096];
    REQUIRE(server_open(&s, 0));
    for (size_t i = 0; i < 2 * n; i++) {
        const form *g = &f[i / 2];
        http_reply *r = answer_to(&s, g->d, i % 2 ? g->stream : g->whole);
        CHECK_STR(r->media, i % 2 ? g->d->stream_type : "application/json");
        collect(r, i % 2 ? g->delta : g->path, text, sizeof text);
        if (i == 0)
            snprintf(first, sizeof first, "%s", text);
        CHECK(strlen(first) > 20);
        CHECK_STR(text, first);
        reply_free(r);
    }
    server_close(&s);
}

TEST(chats_say_the_same) {
    compare(chats, sizeof chats / sizeof *chats);
}

TEST(texts_are_continued_the_same) {
    compare(texts, sizeof texts / sizeof *texts);
}

TEST(nothing_is_asked_for) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    http_reply *r = answer_to(&s, &api_ollama_generate, "{\"model\": \"m\"}");
    CHECK(r->streams && strcmp(r->media, "application/x-ndjson") == 0);
    CHECK_HAS(r->body.s, "\"response\": \"\", \"done\": true, \"done_reason\": \"load\"}\n");
    reply_free(r);
    r = answer_to(&s, &api_ollama_chat, "{\"stream\": false, \"messages\": []}");
    CHECK(!r->streams);
    CHECK_HAS(r->body.s, "\"done_reason\": \"load\"}");
    reply_free(r);
    server_close(&s);
}

/* Sends a conversation to be counted. */
static http_reply *count_of(server *s, const char *body) {
    http_request q = request;
    http_reply *r = ggl_calloc(1, sizeof *r);
    q.body = (ggl_str){body, strlen(body)};
    api_anthropic_count(s, &q, r);
    return r;
}

TEST(tokens_are_counted_as_prompts_are_made) {
    static const char *const bodies[] = {
        SAY,
        "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", "
        "\"content\": \"Once \"}]",
        "\"system\": \"Be kind.\", " SAY};
    server s = {0};
    REQUIRE(server_open(&s, 0));
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char body[512];
        int counted = 0, fresh = 0, cached = 0;
        snprintf(body, sizeof body, "{%s}", bodies[i]);
        http_reply *r = count_of(&s, body);
        CHECK(r->status == 200 && sscanf(r->body.s, "{\"input_tokens\": %d}", &counted) == 1);
        reply_free(r);
        snprintf(body, sizeof body, "{\"max_tokens\": 2, %s}", bodies[i]);
        r = answer_to(&s, &api_anthropic_messages, body);
        const char *usage = strstr(r->body.s, "\"input_tokens\"");
        CHECK(usage && sscanf(usage,
                              "\"input_tokens\": %d, \"cache_creation_input_tokens\": 0, "
                              "\"cache_read_input_tokens\": %d",
                              &fresh, &cached) == 2);
        CHECK_INT(counted, fresh + cached);
        reply_free(r);
    }
    http_reply *r = count_of(&s, "{\"max_tokns\": 3, " SAY "}");
    CHECK(r->status == 400);
    CHECK_HAS(r->body.s, "{\"type\": \"error\", \"error\": {\"type\": \"invalid_request_error\", "
                         "\"message\": \"unknown field \\\"max_tokns\\\"");
    reply_free(r);
    r = count_of(&s, "{");
    CHECK_INT(r->status, 400);
    reply_free(r);
    server_close(&s);
}

/* The last token that a grammar needs ends the answer, also if no further one could be drawn. */
TEST(complete_answers_are_not_cut) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    http_reply *r = answer_to(&s, &api_ollama_chat,
                              "{\"stream\": false, \"format\": {\"enum\": [\"A\"]}, \"options\": "
                              "{\"num_predict\": 100, \"temperature\": 0}, " SAY "}");
    const char *count = strstr(r->body.s, "\"eval_count\": ");
    int n = 0;
    char body[512];
    CHECK(count && sscanf(count, "\"eval_count\": %d", &n) == 1 && n > 1);
    CHECK_HAS(r->body.s, "\"done_reason\": \"stop\"");
    reply_free(r);
    snprintf(body, sizeof body,
             "{\"stream\": false, \"format\": {\"enum\": [\"A\"]}, \"options\": {\"num_predict\": "
             "%d, \"temperature\": 0}, " SAY "}",
             n - 1);
    r = answer_to(&s, &api_ollama_chat, body);
    CHECK_HAS(r->body.s, "\"content\": \"\\\"A\\\"\"");
    CHECK_HAS(r->body.s, "\"done_reason\": \"stop\"");
    reply_free(r);
    server_close(&s);
}
