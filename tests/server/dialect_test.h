/* What the tests of dialects share: requests from texts, and answers that were made up. */
#ifndef TESTS_SERVER_DIALECT_TEST_H
#define TESTS_SERVER_DIALECT_TEST_H

#include "ggl/alloc.h"
#include "llm/internal/tokenizer.h"
#include "pieces.h"
#include "talk_text.h"
#include "test.h"

extern const dialect api_openai_chat, api_openai_completions, api_openai_responses,
    api_openai_embeddings, api_openai_compact, api_anthropic_messages, api_ollama_generate,
    api_ollama_chat, api_ollama_embed, api_ollama_embeddings, api_llamacpp_completion,
    api_llamacpp_infill, api_llamacpp_embedding, api_llamacpp_embeddings, api_rerank, api_tei_embed,
    api_decisions, api_systemone;

static server_facts facts = {.model = "toy",
                             .looks = true,
                             .n_ctx = 4096,
                             .n_vocab = 100,
                             .n_predict = -1,
                             .has_chat = true,
                             .strict_fields = true};

static ggl_error err;
static const char *param;
static ggl_status status;

/* Reads a request. The ask is freed by the next call; NULL: it was refused, see status, param and err. */
TEST_UNUSED static ask *request(const dialect *d, const char *text) {
    static ask *last;
    ask_free(last);
    facts.sampling = llm_sampler_default();
    err = (ggl_error){0};
    param = NULL;
    last = ask_new(&facts);
    status = llm_json_parse(&last->doc, text, strlen(text), "request", &err);
    if (status == GGL_OK)
        status = d->read(last, &facts, &param, &err);
    return status == GGL_OK ? last : NULL;
}

/* True if the request is refused with these words in the message. */
TEST_UNUSED static bool refuses(const dialect *d, const char *text, const char *words) {
    const ask *a = request(d, text);
    if (a || !strstr(err.msg, words))
        return TEST_SAY("%s\n    gives '%s', expected '%s'", text, a ? "no error" : err.msg, words);
    return true;
}

TEST_UNUSED static ggl_str str(const char *s) {
    return (ggl_str){s, strlen(s)};
}

TEST_UNUSED static bool str_is(ggl_str s, const char *text) {
    return ggl_str_is(s, text) || TEST_SAY("'%.*s' is not '%s'", (int)s.n, s.s, text);
}

/* Gives the requests the tokenizer of a model file; false: it cannot be read. */
TEST_UNUSED static bool use_tokenizer(const char *path) {
    ggl_gguf *file;
    llm_tokenizer *t = NULL;
    if (!CHECK_OK(ggl_gguf_open(&file, path, NULL, &err), &err))
        return false;
    const bool made = CHECK_OK(llm_tokenizer_new(&t, file, &err), &err);
    ggl_gguf_close(file);
    facts.tokenizer = t;
    facts.n_vocab = t ? llm_tokenizer_n_vocab(t) : 0;
    return made;
}

TEST_UNUSED static void forget_tokenizer(void) {
    llm_tokenizer_free((llm_tokenizer *)facts.tokenizer);
    facts.tokenizer = NULL;
    facts.n_vocab = 100;
}

/* An answer that was made up: a choice with some parts. */
typedef struct made_up {
    answer x;
    answer_choice choice;
    answer_part part[32];
    size_t n_parts;
    char own[256];
} made_up;

TEST_UNUSED static made_up *make_answer(const ask *a) {
    static made_up m;
    m = (made_up){0};
    m.x = (answer){.ask = a,
                   .facts = &facts,
                   .id = "abc",
                   .created = 1763766000,
                   .choice = &m.choice,
                   .n_choices = 1,
                   .own = m.own};
    m.x.counts = (answer_counts){
        .n_prompt = 20, .n_reused = 12, .n_drawn = 5, .total_s = 1.5, .first_s = 0.5};
    m.choice = (answer_choice){.part = m.part,
                               .n_prompt = 20,
                               .n_reused = 12,
                               .n_drawn = 5,
                               .prompt_s = 0.5,
                               .generate_s = 1,
                               .seed = 7,
                               .slot = 3};
    return &m;
}

TEST_UNUSED static answer_part *add_part(made_up *m, part_kind kind, const char *text) {
    answer_part *p = &m->part[m->n_parts++];
    *p = (answer_part){.kind = kind, .text = str(text)};
    m->choice.n_parts = m->n_parts;
    return p;
}

TEST_UNUSED static answer_part *add_call(made_up *m, const char *id, const char *name,
                                         const char *arguments) {
    answer_part *p = add_part(m, PART_CALL, "");
    p->id = str(id);
    p->name = str(name);
    p->arguments = str(arguments);
    return p;
}

/* What the dialect writes; valid until the next call. */
TEST_UNUSED static const char *written(llm_json_out *out) {
    static char *last;
    ggl_free(last);
    CHECK(!out->failed);
    last = out->s;
    *out = (llm_json_out){0};
    return last ? last : "";
}

TEST_UNUSED static const char *whole_text(const dialect *d, const made_up *m) {
    llm_json_out out = {0};
    d->whole(&m->x, &out);
    return written(&out);
}

/* Bytes of a piece of a call; 0: calls are whole. */
TEST_UNUSED static size_t call_piece;

/* The stream: each part of the answer on its own. */
TEST_UNUSED static const char *stream_text(const dialect *d, made_up *m) {
    llm_json_out out = {0};
    memset(m->own, 0, sizeof m->own);
    CHECK(d->own_size <= sizeof m->own);
    if (d->begin)
        d->begin(&m->x, &out);
    if (d->alive)
        d->alive(&m->x, &out);
    for (size_t i = 0; i < m->n_parts; i++)
        give_in_pieces(d, &m->x, &m->choice, &m->part[i], call_piece, &out);
    if (d->end_choice)
        d->end_choice(&m->x, &m->choice, &out);
    if (d->end)
        d->end(&m->x, &out);
    return written(&out);
}

/* Parses a text that the dialect wrote; freed by the next call but one. NULL: it is no JSON. */
TEST_UNUSED static const json_value *parsed(const char *text, size_t n) {
    static llm_json *kept[64];
    static char *texts[64];
    static int at;
    at = (at + 1) % 64;
    llm_json_free(kept[at]);
    ggl_free(texts[at]);
    texts[at] = ggl_calloc(n + 1, 1);
    memcpy(texts[at], text, n);
    kept[at] = NULL;
    ggl_error e = {0};
    if (llm_json_parse(&kept[at], texts[at], n, "answer", &e) != GGL_OK) {
        (void)TEST_SAY("%s in\n    %.*s", e.msg, (int)n, text);
        return NULL;
    }
    return &kept[at]->root;
}

/* A value by a path such as "message/content"; a number is an index. */
TEST_UNUSED static const json_value *at_path(const json_value *v, const char *path) {
    char name[64];
    while (v && *path) {
        const size_t n = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        const size_t i = (size_t)atoi(name);
        v = v->kind == JSON_ARRAY ? (i < v->n ? &v->item[i] : NULL) : llm_json_get(v, name);
        path += n + (path[n] == '/');
    }
    return v;
}

/* True if the value there, as a line of JSON, is `want`; "" for none. */
TEST_UNUSED static bool at_is(const json_value *v, const char *path, const char *want) {
    llm_json_out out = {0};
    const json_value *found = at_path(v, path);
    if (found)
        llm_json_put_value(&out, found);
    const bool same = strcmp(out.s ? out.s : "", want) == 0;
    if (!same)
        (void)TEST_SAY("%s is '%s', not '%s'", path, out.s ? out.s : "", want);
    ggl_free(out.s);
    return same;
}

/* A small generator of numbers for made-up answers. */
TEST_UNUSED static uint32_t next_number(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

#endif
