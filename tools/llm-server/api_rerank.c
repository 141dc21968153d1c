/* Rerankers' /v1/rerank: the form of Jina, Cohere and llama.cpp ("documents"), and that of Text Embeddings Inference ("texts"). */
#include <math.h>
#include <stdlib.h>

#include "api_openai.h"
#include "server.h"

/* A document with its score. */
typedef struct ranked {
    float score;
    int index;
} ranked;

/* --- requests ----------------------------------------------------------------------------------- */

static ggl_status read_query(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    if (v->kind != JSON_STRING || v->n == 0)
        return ggl_fail(err, GGL_USAGE, "\"query\" must be a string, and not empty");
    a->query = json_str(v);
    return GGL_OK;
}

/* Reads a document: a string, or an object that has it as "text". */
static bool read_document(const json_value *v, ggl_str *to) {
    const json_value *text = v->kind == JSON_OBJECT ? llm_json_get_kind(v, "text", JSON_STRING) : v;
    if (!text || text->kind != JSON_STRING)
        return false;
    *to = json_str(text);
    return true;
}

static ggl_status read_list(ask *a, const json_value *v, const char *name, ggl_error *err) {
    if (a->n_prompts > 0)
        return ggl_fail(err, GGL_USAGE,
                        "\"documents\" and \"texts\" are two forms of a request: "
                        "give one of them");
    if (v->kind != JSON_ARRAY || v->n == 0)
        return ggl_fail(err, GGL_USAGE, "\"%s\" must be a list of texts, and not empty", name);
    a->prompt = ggl_arena_alloc(&a->arena, v->n, sizeof *a->prompt);
    openai_own_of(a)->ranked = ggl_arena_alloc(&a->arena, v->n, sizeof(ranked));
    if (!a->prompt || !openai_own_of(a)->ranked)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    for (uint32_t i = 0; i < v->n; i++)
        if (!read_document(&v->item[i], &a->prompt[i].text))
            return ggl_fail(err, GGL_USAGE,
                            "%s[%lu] must be a string, or an object with the string \"text\"", name,
                            (unsigned long)i);
    a->n_prompts = v->n;
    return GGL_OK;
}

static ggl_status read_documents(ask *a, const json_value *v, const server_facts *facts,
                                 ggl_error *err) {
    (void)facts;
    return read_list(a, v, "documents", err);
}

static ggl_status read_texts(ask *a, const json_value *v, const server_facts *facts,
                             ggl_error *err) {
    (void)facts;
    openai_own_of(a)->is_tei = true;
    return read_list(a, v, "texts", err);
}

static const field fields[] = {
    {"model", FIELD_FN, .fn = openai_field_model},
    {"query", FIELD_FN, .fn = read_query},
    {"documents", FIELD_FN, .fn = read_documents},
    {"texts", FIELD_FN, .fn = read_texts},
    {"top_n", FIELD_INT, .at = FIELD_AT(top_n), .min = 1, .max = 1e9},
    {"return_documents", FIELD_BOOL, .at = FIELD_AT(returns_texts)},
    {"return_text", FIELD_BOOL, .at = FIELD_AT(returns_texts)},
    {"raw_scores", FIELD_BOOL, .at = FIELD_AT(raw_scores)},
    {"truncate", FIELD_BOOL, .at = FIELD_AT(truncates)},
    {"truncation", FIELD_BOOL, .at = FIELD_AT(truncates)},
    {"truncation_direction", FIELD_FN, .fn = tei_field_direction},
    {"max_tokens_per_doc", .kind = FIELD_IGNORED},
    {"priority", .kind = FIELD_IGNORED},
    {"user", .kind = FIELD_IGNORED},
    {"rank_fields", FIELD_REFUSED, .fn = field_is_empty, .why = "send each document as one text"},
    {"return_embeddings", FIELD_REFUSED, .fn = field_is_false, .why = "ask /v1/embeddings"},
    {0}};

static ggl_status missing(const char *name, const char *what, const char **param, ggl_error *err) {
    *param = name;
    return ggl_fail(err, GGL_USAGE, "\"%s\" is missing: %s", name, what);
}

static ggl_status read_rerank(ask *a, const server_facts *facts, const char **param,
                              ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_RANK, err);
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, fields, facts, param, err);
    if (st != GGL_OK)
        return st;
    if (!a->query.s)
        return missing("query", "the text for which documents are ranked", param, err);
    return a->n_prompts > 0 ? GGL_OK : missing("documents", "a list of texts", param, err);
}

/* --- answers ------------------------------------------------------------------------------------ */

/* The best first; of equals the one that came first. */
static int by_score(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score)
                                : (x->index > y->index) - (x->index < y->index);
}

static void put_score(llm_json_out *out, double score) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", score);
    llm_json_put_text(out, text);
}

/* Text Embeddings Inference's: a share of 1, unless raw scores are asked for. */
static void put_tei(const answer *x, const ranked *r, llm_json_out *out) {
    llm_json_format(out, "{'index':%d", r->index);
    if (x->ask->returns_texts)
        llm_json_format(out, ",'text':%.*s", LLM_JSON_STR(x->ask->prompt[r->index].text));
    llm_json_put_text(out, ",\"score\":");
    put_score(out, x->ask->raw_scores ? r->score : 1 / (1 + exp(-(double)r->score)));
    llm_json_put_text(out, "}");
}

static void put_result(const answer *x, const ranked *r, llm_json_out *out) {
    llm_json_format(out, "{'index':%d,'relevance_score':", r->index);
    put_score(out, r->score);
    if (x->ask->returns_texts)
        llm_json_format(out, ",'document':{'text':%.*s}",
                        LLM_JSON_STR(x->ask->prompt[r->index].text));
    llm_json_put_text(out, "}");
}

static void put_list(const answer *x, llm_json_out *out) {
    const openai_own *own = openai_own_of(x->ask);
    const int64_t n = x->n_choices, top = x->ask->top_n;
    ranked *r = own->ranked;
    for (int i = 0; i < x->n_choices; i++)
        r[i] = (ranked){x->embedding[i * answer_width(x)], i};
    qsort(r, (size_t)n, sizeof *r, by_score);
    llm_json_put_text(out, "[");
    for (int64_t i = 0; i < n && (top == 0 || i < top); i++) {
        llm_json_put_text(out, i > 0 ? "," : "");
        (own->is_tei ? put_tei : put_result)(x, &r[i], out);
    }
    llm_json_put_text(out, "]");
}

static void rerank_whole(const answer *x, llm_json_out *out) {
    if (openai_own_of(x->ask)->is_tei) {
        put_list(x, out);
        return;
    }
    llm_json_put_text(out, "{\"model\":");
    openai_put_model(x, out);
    llm_json_format(
        out, ",'object':'list','usage':{'prompt_tokens':%lld,'total_tokens':%lld},'results':",
        (long long)x->counts.n_prompt, (long long)x->counts.n_prompt);
    put_list(x, out);
    llm_json_put_text(out, "}");
}

const dialect api_rerank = {.name = "rerank",
                            .fields = fields,
                            .read = read_rerank,
                            .whole = rerank_whole,
                            .error = llamacpp_error};
