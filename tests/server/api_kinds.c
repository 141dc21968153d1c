/* Requests of all APIs with values of every kind in every field, with mutations, and without memory: each is read, or refused with a
 * sentence. */
#include "alloc_fail.h"
#include "dialect_test.h"
#include "llm-server/api_shape.h"
#include "seed.h"

#define HI "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"

/* The APIs, each with what makes a request complete, and a request that uses much of it. */
static const struct api {
    const char *name;
    const dialect *d;
    const char *required, *rich;
} apis[] = {
    {"chat/completions", &api_openai_chat,
     "\"messages\": [{\"role\": \"assistant\", \"content\": \"Hi\"}]",
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}]}, "
     "{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
     "\"{}\"}}]}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\"}}], "
     "\"stop\": \"x\", \"reasoning_effort\": \"low\", \"model\": \"m\", \"logit_bias\": {\"7\": "
     "-100}}"},
    {"completions", &api_openai_completions, "\"prompt\": \"Hi\"",
     "{\"prompt\": [\"a\", [1, 99], \"\"], \"logprobs\": 2, \"echo\": true, \"stop\": [\"a\"]}"},
    {"responses", &api_openai_responses, "\"input\": \"Hi\"",
     "{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": "
     "\"Hi\"}]}, {\"type\": \"function_call\", \"call_id\": \"c\", \"name\": \"f\", \"arguments\": "
     "\"{}\"}, {\"type\": \"function_call_output\", \"call_id\": \"c\", \"output\": \"1\"}], "
     "\"tools\": [{\"type\": \"custom\", \"name\": \"f\"}], \"text\": {\"format\": {\"type\": "
     "\"json_schema\", \"name\": \"s\", \"schema\": {}}}}"},
    {"v1/embeddings", &api_openai_embeddings, "\"input\": \"Hi\"",
     "{\"input\": [\"a\", [1, 2]], \"dimensions\": 2, \"encoding_format\": \"base64\"}"},
    {"messages", &api_anthropic_messages, "\"max_tokens\": 5, " HI,
     "{\"model\": \"m\", \"max_tokens\": 7, \"system\": [{\"type\": \"text\", \"text\": "
     "\"\\u00e9\"}], \"messages\": [{\"role\": \"user\", "
     "\"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": [{\"type\": \"thinking\", "
     "\"thinking\": \"hm\"}, {\"type\": \"tool_use\", "
     "\"id\": \"a\", \"name\": \"f\", \"input\": {\"x\": [1, null]}}]}, {\"role\": \"user\", "
     "\"content\": [{\"type\": \"tool_result\", "
     "\"tool_use_id\": \"a\", \"content\": [{\"type\": \"text\", \"text\": \"ok\"}]}]}], "
     "\"tools\": [{\"name\": \"f\", \"input_schema\": {}}], "
     "\"tool_choice\": {\"type\": \"tool\", \"name\": \"f\"}, \"stop_sequences\": [\"a\"], "
     "\"output_config\": {\"effort\": \"low\", "
     "\"format\": {\"type\": \"json_schema\", \"schema\": {}}}, \"thinking\": {\"type\": "
     "\"adaptive\"}}"},
    {"chat", &api_ollama_chat, HI,
     "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": "
     "\"assistant\", \"thinking\": \"hm\", "
     "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {}}}]}, {\"role\": "
     "\"tool\", \"tool_name\": \"f\", \"content\": "
     "\"1\"}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", "
     "\"parameters\": {}}}], \"think\": \"low\", \"format\": "
     "{\"type\": \"object\"}, \"options\": {\"stop\": [\"a\"], \"logit_bias\": [[1, 2]], "
     "\"samplers\": [\"top_k\"]}, \"logprobs\": true}"},
    {"generate", &api_ollama_generate, "\"prompt\": \"a\"",
     "{\"model\": \"m\", \"prompt\": \"Hi\", \"system\": \"S\", \"format\": \"json\", \"options\": "
     "{\"seed\": 3}}"},
    {"embed", &api_ollama_embed, "\"input\": \"a\"",
     "{\"model\": \"m\", \"input\": [\"a\", \"b\"]}"},
    {"embeddings", &api_ollama_embeddings, "\"prompt\": \"a\"",
     "{\"model\": \"m\", \"prompt\": \"b\"}"},
    {"embedding", &api_llamacpp_embedding, "\"input\": \"a\"",
     "{\"model\": \"m\", \"content\": [\"a\", [1, 2]], \"embd_normalize\": 2}"},
    {"tei", &api_tei_embed, "\"inputs\": \"a\"",
     "{\"inputs\": [\"a\", [1, 2]], \"normalize\": false, \"truncate\": true, \"dimensions\": 1}"},
    {"rerank", &api_rerank, "\"query\": \"a\", \"documents\": [\"b\"]",
     "{\"model\": \"m\", \"query\": \"a\", \"documents\": [\"b\", {\"text\": \"c\"}], \"top_n\": "
     "1, "
     "\"return_documents\": true}"},
    {"completion", &api_llamacpp_completion, "\"prompt\": \"a\"",
     "{\"model\": \"m\", \"prompt\": [[1, 2], \"a\", {\"prompt_string\": \"b\"}], \"json_schema\": "
     "{\"type\": \"array\"}, "
     "\"dry_sequence_breakers\": [\"x\"], \"logit_bias\": {\"5\": false}, \"response_fields\": "
     "[\"content\", \"a/b\"], \"stop\": \"x\"}"},
};

enum { N_APIS = sizeof apis / sizeof *apis };

static const char *const values[] = {"null",
                                     "-7.5",
                                     "\"\\u0000x\"",
                                     "{\"tpye\": 1}",
                                     "true",
                                     "false",
                                     "0",
                                     "-1",
                                     "2",
                                     "1.5",
                                     "1e300",
                                     "-1e300",
                                     "NaN",
                                     "Infinity",
                                     "\"\"",
                                     "\"x\"",
                                     "\"auto\"",
                                     "\"\\u0000\"",
                                     "\"json\"",
                                     "[]",
                                     "[0]",
                                     "[\"a\"]",
                                     "[\"\"]",
                                     "[[]]",
                                     "[[1, 2]]",
                                     "[{}]",
                                     "[null]",
                                     "[[1, null]]",
                                     "{}",
                                     "{\"a\": 1}",
                                     "{\"type\": 3}",
                                     "{\"type\": \"auto\"}",
                                     "[{\"type\": \"text\", \"text\": \"x\"}]"};

enum { N_VALUES = sizeof values / sizeof *values };

/* True if the value asks for nothing. */
static bool is_neutral(const char *v) {
    static const char *const neutral[] = {"null", "false", "true", "0",  "-1",
                                          "-7.5", "\"\"",  "[]",   "{}", "-1e300"};
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
        if (strcmp(v, neutral[i]) == 0)
            return true;
    return false;
}

static bool is_named(const field *f) {
    return (param && strcmp(param, f->name) == 0) || strstr(err.msg, f->name);
}

/* Returns whether the value is accepted. */
static bool check_value(const struct api *api, const field *f, const char *value) {
    char text[1024], quoted[80];
    snprintf(quoted, sizeof quoted, "\"%s\"", f->name);
    const bool replaces = strstr(api->required, quoted) != NULL;
    snprintf(text, sizeof text, "{%s%s\"%s\": %s}", replaces ? "" : api->required,
             replaces ? "" : ", ", f->name, value);
    const bool taken = request(api->d, text) != NULL;
    CHECK_MSG(taken || err.msg[0], "%s: no sentence", text);
    CHECK_MSG(status == GGL_OK || status == GGL_USAGE || status == GGL_UNSUPPORTED ||
                  status == GGL_FORMAT,
              "%s: %d, %s", text, (int)status, err.msg);
    if (f->kind == FIELD_IGNORED || strcmp(value, "null") == 0)
        CHECK_MSG(taken || replaces, "%s: %s", text, err.msg);
    else if (f->kind == FIELD_REFUSED)
        CHECK_MSG(taken ? is_neutral(value)
                        : strstr(err.msg, "is not supported") && is_named(f) &&
                              strstr(err.msg, f->why),
                  "%s: %s", text, err.msg);
    else if (!taken)
        CHECK_MSG(replaces || is_named(f), "%s: '%s' does not name the field", text, err.msg);
    if (f->kind == FIELD_BOOL)
        CHECK_MSG(taken == (value[0] == 't' || value[0] == 'f' || value[0] == 'n'), "%s: %s", text,
                  err.msg);
    return taken;
}

TEST(every_field_with_every_kind) {
    facts.n_embd = 4;
    for (int i = 0; i < N_APIS; i++)
        for (const field *f = apis[i].d->fields; f->name; f++) {
            int n_taken = 0;
            for (int k = 0; k < N_VALUES; k++)
                n_taken += check_value(&apis[i], f, values[k]);
            CHECK_MSG(n_taken < N_VALUES || f->kind == FIELD_IGNORED, "%s: %s accepts all",
                      apis[i].name, f->name);
            for (const field *g = f + 1; g->name; g++)
                CHECK_MSG(strcmp(f->name, g->name) != 0, "%s: two rows for %s", apis[i].name,
                          f->name);
        }
}

/* A struct need not have room for what has no effect. */
TEST(shapes_without_members) {
    static const shape_row rows[] = {
        {"verbose", SHAPE_IGNORED, 0, NULL}, {"images", SHAPE_REFUSED, 0, "send none"}, {0}};
    static const char text[] = "{\"verbose\": 3, \"images\": []}";
    char *nothing = malloc(1);
    CHECK_OK(
        read_shape(nothing, 1, &(ignored_fields){0}, parsed(text, sizeof text - 1), rows, &err),
        &err);
    free(nothing);
}

/* Requests with bytes changed, removed and doubled. */
TEST(mutations) {
    uint64_t state = sample_seed();
    for (int i = 0; i < (TEST_SANITIZED ? 2000 : 20000); i++) {
        const struct api *api = &apis[next_number(&state, N_APIS)];
        char text[4096];
        const size_t n = strlen(api->rich);
        memcpy(text, api->rich, n + 1);
        for (uint32_t k = next_number(&state, 4) + 1; k > 0; k--) {
            static const char bytes[] = "{}[]\",:0123456789-.eE\\utfnab ";
            text[next_number(&state, (uint32_t)n)] = bytes[next_number(&state, sizeof bytes - 1)];
        }
        if (!request(api->d, text) && !CHECK_MSG(err.msg[0], "%s: no sentence", text))
            return;
    }
}

static bool read_rich(void *arg) {
    const struct api *api = arg;
    ask *a = ask_new(&facts);
    const char *where = NULL;
    err = (ggl_error){0};
    ggl_status st =
        a ? llm_json_parse(&a->doc, api->rich, strlen(api->rich), "request", &err) : GGL_NOMEM;
    if (st == GGL_OK)
        st = api->d->read(a, &facts, &where, &err);
    CHECK_MSG(st == GGL_OK || st == GGL_NOMEM, "%s: %s", api->name, err.msg);
    ask_free(a);
    return st == GGL_OK;
}

TEST(out_of_memory) {
    facts.sampling = llm_sampler_default();
    for (int i = 0; i < N_APIS; i++)
        CHECK_MSG(alloc_fail_each(read_rich, (void *)&apis[i]) > 2, "%s", apis[i].name);
}

static bool write_rich(void *arg) {
    made_up *m = arg;
    const dialect *d = (const dialect *)m->x.own;
    llm_json_out out = {0};
    d->whole(&m->x, &out);
    const bool good = !out.failed;
    ggl_free(out.s);
    return good;
}

TEST(out_of_memory_while_writing) {
    const dialect *const all[] = {&api_anthropic_messages, &api_ollama_chat,
                                  &api_llamacpp_completion};
    const char *const texts[] = {
        "{\"max_tokens\": 5, " HI "}", "{" HI "}",
        "{\"prompt\": \"a\", \"response_fields\": [\"content\", \"timings\"]}"};
    for (int i = 0; i < 3; i++) {
        made_up *m = make_answer(request(all[i], texts[i]));
        REQUIRE(m->x.ask);
        for (int k = 0; k < 20; k++)
            add_part(m, k % 7 ? PART_CONTENT : PART_REASONING,
                     "a somewhat long text, so that memory grows");
        m->x.own = (void *)all[i]; /* `whole` does not use it */
        CHECK(alloc_fail_each(write_rich, m) > 2);
    }
}
