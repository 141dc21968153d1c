/* Bodies of HTTP requests as asks: the first byte chooses the API. What is accepted must hold what others rely on, and
 * what is refused must say why. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "llm-server/server.h"

static const dialect *const apis[] = {&api_openai_chat,      &api_openai_completions,
                                      &api_openai_responses, &api_openai_embeddings,
                                      &api_rerank,           &api_tei_embed};
enum { N_APIS = sizeof apis / sizeof *apis };

/* A conversation is one that can be read again. */
static bool is_whole(const llm_talk *t) {
    llm_talk *again = NULL;
    char *text;
    size_t n;
    bool ok = t && llm_talk_json(t, &text, &n, NULL) == GGL_OK;
    if (ok) {
        ok = llm_talk_read(&again, (ggl_str){text, n}, NULL, NULL, NULL) == GGL_OK &&
             llm_talk_n(again) == llm_talk_n(t);
        ggl_free(text);
    }
    llm_talk_free(again);
    return ok;
}

static void check(const ask *a) {
    require(a->n_choices >= 1 && a->n_choices <= 128 && a->n_max >= -1 && a->n_top <= 128);
    require((a->kind == ASK_CHAT) == (a->talk != NULL));
    require((a->kind == ASK_CHAT) == (a->n_prompts == 0));
    require(a->kind != ASK_CHAT || is_whole(a->talk));
    require(!a->tools || a->tools->kind == JSON_ARRAY);
    require(a->tool_choice < ASK_TOOLS_REQUIRED || (a->tools && a->form == ASK_ANY));
    require((a->tool_choice == ASK_TOOLS_NAMED) <= (a->tool.n > 0));
    require(a->form != ASK_SCHEMA || (a->form_text.s && a->form_text.n > 0));
    for (size_t i = 0; i < a->n_prompts; i++)
        for (size_t k = 0; k < a->prompt[i].n && !a->prompt[i].text.s; k++)
            require(a->prompt[i].id[k] >= 0 && a->prompt[i].id[k] < 100);
    for (size_t i = 0; i < a->n_stops; i++)
        require(a->stop[i].n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const server_facts facts = {
        .model = "m", .n_vocab = 100, .n_predict = -1, .n_embd = 4, .has_chat = true};
    const char *param = NULL;
    ggl_error err = {0};
    ask *a = ask_new(&facts);
    require(a != NULL);
    if (size > 0 &&
        llm_json_parse(&a->doc, (const char *)data + 1, size - 1, "request", NULL) == GGL_OK) {
        const ggl_status st = apis[data[0] % N_APIS]->read(a, &facts, &param, &err);
        if (st == GGL_OK)
            check(a);
        else
            require(
                (st == GGL_USAGE || st == GGL_UNSUPPORTED || st == GGL_FORMAT || st == GGL_LIMIT) &&
                *err.msg);
    }
    ask_free(a);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seed[] = {
        "\0{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
        "\"a\"}]}, {\"role\": "
        "\"assistant\", \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\", "
        "\"arguments\": \"{}\"}}]}, "
        "{\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"x\"}], \"tools\": "
        "[{\"type\": \"function\", "
        "\"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}}], "
        "\"tool_choice\": {\"type\": "
        "\"function\", \"function\": {\"name\": \"f\"}}, \"stream\": true, \"stop\": [\"a\"]}",
        "\0{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"response_format\": "
        "{\"type\": \"json_schema\", "
        "\"json_schema\": {\"schema\": {}}}, \"logprobs\": true, \"top_logprobs\": 3, "
        "\"reasoning_effort\": \"low\", "
        "\"chat_template_kwargs\": {\"a\": 1}, \"samplers\": [\"top_k\"], \"logit_bias\": {\"5\": "
        "1}}",
        "\1{\"prompt\": [\"a\", [1, 2]], \"n\": 2, \"best_of\": 2, \"logprobs\": 1, "
        "\"max_tokens\": 5, \"seed\": 1}",
        "\2{\"input\": [{\"role\": \"user\", \"content\": \"a\"}, {\"type\": \"reasoning\", "
        "\"summary\": []}, {\"type\": "
        "\"function_call\", \"call_id\": \"c\", \"name\": \"f\", \"arguments\": \"{}\"}, "
        "{\"type\": "
        "\"function_call_output\", \"call_id\": \"c\", \"output\": \"1\"}], \"text\": {\"format\": "
        "{\"type\": "
        "\"json_object\"}}, \"reasoning\": {\"effort\": \"high\"}, \"include\": "
        "[\"reasoning.encrypted_content\"]}",
        "\3{\"input\": [[1, 2], [3]], \"encoding_format\": \"base64\", \"dimensions\": 4}",
        "\4{\"query\": \"a\", \"documents\": [\"b\", {\"text\": \"c\"}], \"top_n\": 1}",
        "\4{\"query\": \"a\", \"texts\": [\"b\"], \"raw_scores\": true, \"truncate\": true}",
        "\5{\"inputs\": [\"a\", [1]], \"normalize\": false, \"dimensions\": 2}"};
    if (k >= (int)(sizeof seed / sizeof *seed))
        return false;
    *size = 1 + strlen(seed[k] + 1);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, seed[k], *size);
    return true;
}
