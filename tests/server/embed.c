/* Embeddings: what clients get is made of the vectors that a session gives for each token, alone or among others. */
#include <math.h>

#include "answer_fixture.h"
#include "seed.h"

static const char *const texts[] = {"Once upon a time there was a frog.", "a", "The old house",
                                    "Once upon a time there was a girl who lived in a big house."};
enum { N_TEXTS = sizeof texts / sizeof *texts };

/* An ask for n texts from the k-th on. */
static ask *ask_vectors(server *s, size_t k, size_t n) {
    ask *a = ask_text(s, "");
    ask_prompt *p = a ? ggl_arena_alloc(&a->arena, n, sizeof *p) : NULL;
    if (!p) {
        ask_free(a);
        return NULL;
    }
    a->kind = ASK_EMBED;
    a->n_max = -1;
    a->prompt = p;
    for (size_t i = 0; i < n; i++)
        p[i].text = (ggl_str){texts[(k + i) % N_TEXTS], strlen(texts[(k + i) % N_TEXTS])};
    a->n_prompts = n;
    return a;
}

static bool open_embedding(server *s) {
    *s = (server){.embeds = true, .api = &api_ollama_embed};
    return server_open(s, 0);
}

typedef struct rows {
    double *at;
    int64_t n, n_embd;
} rows;

static void add_row(void *ctx, int64_t i, const float *e) {
    rows *r = ctx;
    for (int64_t k = 0; k < r->n_embd; k++)
        r->at[i * r->n_embd + k] = (double)e[k];
    r->n++;
}

/* The vectors of all tokens of a text, by another session. */
static void get_rows(server *s, const char *text, rows *r) {
    llm_session_params sp = llm_session_default();
    llm_session *session = NULL;
    llm_tokens ids = {0};
    bool all[FIXTURE_CTX];
    sp.n_ctx = FIXTURE_CTX;
    sp.embeddings = true;
    sp.backend = &s->cpu;
    sp.n_backends = 1;
    sp.fold = s->reference;
    memset(all, true, sizeof all);
    REQUIRE_OK(llm_session_new(&session, s->model, &sp, &s->err), &s->err);
    REQUIRE_OK(llm_session_alloc(session, &s->err), &s->err);
    REQUIRE_OK(llm_tokenize(s->tokenizer, text, strlen(text),
                            LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL, &ids, &s->err),
               &s->err);
    *r = (rows){.n_embd = s->facts.n_embd};
    r->at = calloc(ids.n * (size_t)r->n_embd, sizeof *r->at);
    const llm_batch b = {.n = (int64_t)ids.n,
                         .token = ids.id,
                         .want_embedding = all,
                         .each_embedding = add_row,
                         .ctx = r};
    REQUIRE_OK(llm_session_eval(session, &b, &s->err), &s->err);
    REQUIRE(r->n == (int64_t)ids.n);
    llm_tokens_fini(&ids);
    llm_session_free(session);
}

/* The vector that the rows become, of any length. */
static void pool(const rows *r, llm_pooling how, double *out) {
    const int64_t first = how == LLM_POOL_LAST ? r->n - 1 : 0, end = how == LLM_POOL_CLS ? 1 : r->n;
    for (int64_t k = 0; k < r->n_embd; k++) {
        out[k] = 0;
        for (int64_t i = first; i < end; i++)
            out[k] += r->at[i * r->n_embd + k] / (double)(end - first);
    }
}

/* Compares an answer's vector with the direction of another one. */
static void same_direction(const json_value *v, const double *want, int64_t n) {
    double length = 0, worst = 0, own = 0;
    REQUIRE(v->kind == JSON_ARRAY && v->n == n);
    for (int64_t k = 0; k < n; k++)
        length += want[k] * want[k];
    for (int64_t k = 0; k < n; k++) {
        worst = fmax(worst, fabs(v->item[k].number - want[k] / sqrt(length)));
        own += v->item[k].number * v->item[k].number;
    }
    CHECK_MSG(worst < 1e-6 && fabs(own - 1) < 1e-5, "%g away, length %g", worst, sqrt(own));
}

TEST(pooled_rows_of_length_1) {
    server s;
    REQUIRE(open_embedding(&s));
    for (int how = LLM_POOL_MEAN; how <= LLM_POOL_CLS; how++) {
        s.facts.pooling = (llm_pooling)how;
        http_reply *r = answer_alone(&s, ask_vectors(&s, 0, N_TEXTS));
        llm_json *doc = NULL;
        int64_t n_tokens = 0;
        CHECK_INT(r->status, 200);
        REQUIRE_OK(llm_json_parse(&doc, r->body.s, r->body.n, "answer", &s.err), &s.err);
        const json_value *list = llm_json_get(&doc->root, "embeddings");
        REQUIRE(list && list->n == N_TEXTS);
        for (int i = 0; i < N_TEXTS; i++) {
            rows x = {0};
            double want[1024];
            get_rows(&s, texts[i], &x);
            REQUIRE(x.at && x.n_embd <= 1024);
            pool(&x, (llm_pooling)how, want);
            same_direction(&list->item[i], want, x.n_embd);
            n_tokens += x.n;
            free(x.at);
        }
        CHECK((int64_t)llm_json_get(&doc->root, "prompt_eval_count")->number == n_tokens);
        llm_json_free(doc);
        reply_free(r);
    }
    server_close(&s);
}

/* The body without its time. */
static void check_same(http_reply *a, http_reply *b) {
    const char *end = strstr(a->body.s, "\"total_duration\"");
    REQUIRE(end);
    CHECK(strncmp(a->body.s, b->body.s, (size_t)(end - a->body.s)) == 0);
    reply_free(b);
}

/* Requests among others, and among chats, get the bytes that they get alone. */
LONG_TEST(alone_and_among_others) {
    enum { N = 24 };
    server s;
    http_reply *among[N], *chat[N];
    uint64_t pace = sample_seed();
    REQUIRE(open_embedding(&s));
    s.facts.pooling = pace % 2 ? LLM_POOL_LAST : LLM_POOL_MEAN;
    for (size_t i = 0; i < N; i++) {
        among[i] = start(&s, ask_vectors(&s, i, 1 + i % 9));
        s.api = &fixture_api;
        chat[i] = start(&s, ask_text(&s, texts[i % N_TEXTS]));
        s.api = &api_ollama_embed;
        server_run(&s, (int)(test_random(&pace) % 4));
    }
    server_run(&s, 100000);
    s.api = &fixture_api;
    http_reply *alone[N_TEXTS];
    for (size_t i = 0; i < N_TEXTS; i++)
        alone[i] = answer_alone(&s, ask_text(&s, texts[i]));
    for (size_t i = 0; i < N; i++) {
        CHECK_STR(chat[i]->body.s, alone[i % N_TEXTS]->body.s);
        reply_free(chat[i]);
    }
    for (size_t i = 0; i < N_TEXTS; i++)
        reply_free(alone[i]);
    s.api = &api_ollama_embed;
    for (size_t i = 0; i < N; i++) {
        http_reply *r = answer_alone(&s, ask_vectors(&s, i, 1 + i % 9));
        check_same(r, among[i]);
        reply_free(r);
    }
    CHECK_INT(answers_n(s.answers), 0);
    server_close(&s);
}

/* A client that goes before its vectors are there: nothing is written, nothing runs on. */
TEST(clients_that_go) {
    server s;
    REQUIRE(open_embedding(&s));
    http_reply *r = start(&s, ask_vectors(&s, 0, 40));
    server_run(&s, 2);
    r->gone = true;
    server_run(&s, 100000);
    CHECK(r->ended && r->status == 0);
    CHECK_INT(answers_n(s.answers), 0);
    CHECK_INT(s.count[COUNT_GONE], 1);
    reply_free(r);
    server_close(&s);
}
