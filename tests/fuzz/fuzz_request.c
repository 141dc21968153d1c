/* Bodies of HTTP requests as asks: the first byte chooses the API. What is accepted must hold what others rely on, and
 * what is refused must say why. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "llm-server/server.h"

static const dialect *const apis[] = {
    &api_openai_chat, &api_openai_completions, &api_openai_responses,  &api_openai_embeddings,
    &api_rerank,      &api_tei_embed,          &api_anthropic_messages};
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

/* Answers that requests may name. */
static answer_store *make_store(void) {
    static const struct {
        const char *id, *parent, *sent, *fixed, *answer;
    } rows[] = {
        {"resp_A", "", "[{\"role\":\"user\",\"content\":\"a\"}]", "",
         "{\"output\":[{\"id\":\"msg_A_0\",\"type\":\"message\",\"role\":\"assistant\",\"content\":"
         "[{\"type\":\"output_text\",\"text\":\"b\"}]}]}"},
        {"resp_B", "resp_A", "[{\"type\":\"item_reference\",\"id\":\"msg_A_0\"}]", "",
         "{\"output\":[]}"},
        {"conv_C", "", "[{\"id\":\"msg_C_xq\",\"role\":\"user\",\"content\":\"a\"}]", "{}", ""},
        {"msg_A", "", "[{\"role\":\"user\",\"content\":\"a\"}]", "{\"system\":\"s\"}",
         "{\"content\":[{\"type\":\"text\",\"text\":\"b\"}]}"}};
    answer_store *s = store_new(NULL, 1 << 20);
    require(s != NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stored x = {.owner = 7,
                    .sent = {rows[i].sent, strlen(rows[i].sent)},
                    .fixed = {rows[i].fixed, strlen(rows[i].fixed)},
                    .answer = {rows[i].answer, strlen(rows[i].answer)}};
        memcpy(x.id, rows[i].id, strlen(rows[i].id));
        memcpy(x.parent, rows[i].parent, strlen(rows[i].parent));
        require(store_put(s, &x));
    }
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const server_facts facts = {
        .model = "m", .n_vocab = 100, .n_predict = -1, .n_embd = 4, .has_chat = true};
    const char *param = NULL;
    ggl_error err = {0};
    static answer_store *store;
    ask *a = ask_new(&facts);
    require(a != NULL);
    a->store = store = store ? store : make_store();
    a->owner = 7;
    if (size > 0 &&
        llm_json_parse(&a->doc, (const char *)data + 1, size - 1, "request", NULL) == GGL_OK) {
        const ggl_status st = apis[data[0] % N_APIS]->read(a, &facts, &param, &err);
        if (st == GGL_OK)
            check(a);
        else
            require((st == GGL_USAGE || st == GGL_UNSUPPORTED || st == GGL_FORMAT ||
                     st == GGL_LIMIT || st == GGL_NOT_FOUND) &&
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
        "\2{\"input\": [{\"type\": \"item_reference\", \"id\": \"msg_A_0\"}, {\"type\": "
        "\"additional_tools\", \"tools\": [{\"type\": \"custom\", \"name\": \"p\"}]}, {\"type\": "
        "\"configuration_update\", \"reasoning\": {\"effort\": \"low\"}, \"text\": {\"format\": "
        "{\"type\": \"text\"}}}, {\"type\": \"compaction_trigger\"}], \"previous_response_id\": "
        "\"resp_B\", \"reasoning\": {\"summary\": \"auto\", \"context\": \"current_turn\"}}",
        "\2{\"input\": [{\"id\": \"msg_C_xq\"}], \"conversation\": {\"id\": \"conv_C\"}, "
        "\"store\": "
        "true}",
        "\6{\"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
        "\"document\", \"source\": {\"type\": \"text\", \"data\": \"d\"}, \"title\": \"t\"}]}, "
        "{\"role\": "
        "\"assistant\", \"content\": [{\"type\": \"compaction\", \"content\": \"s\"}, {\"type\": "
        "\"thinking\", \"thinking\": \"h\"}, {\"type\": \"tool_use\", \"id\": \"i\", \"name\": "
        "\"f\", "
        "\"input\": {\"a\": 1}}]}, {\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", "
        "\"tool_use_id\": \"i\", \"content\": [{\"type\": \"search_result\", \"source\": \"s\", "
        "\"title\": \"t\", \"content\": []}]}]}, {\"role\": \"system\", \"content\": [{\"type\": "
        "\"tool_addition\", \"tool\": {\"type\": \"tool_definition\", \"definition\": {\"name\": "
        "\"g\", "
        "\"input_schema\": {}}}}, {\"type\": \"tool_removal\", \"tool\": {\"type\": "
        "\"tool_reference\", \"name\": \"f\"}}]}], \"tools\": [{\"name\": \"f\", \"input_schema\": "
        "{}}], "
        "\"context_management\": {\"edits\": [{\"type\": \"clear_thinking_20251015\", \"keep\": "
        "{\"type\": \"thinking_turns\", \"value\": 0}}, {\"type\": \"clear_tool_uses_20250919\", "
        "\"trigger\": {\"type\": \"tool_uses\", \"value\": 0}, \"keep\": {\"type\": \"tool_uses\", "
        "\"value\": 0}, \"exclude_tools\": [\"g\"], \"clear_tool_inputs\": true}]}}",
        "\6{\"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": \"c\"}], "
        "\"thread\": "
        "{\"type\": \"continue\", \"previous_message_id\": \"msg_A\"}, \"thinking\": {\"type\": "
        "\"between_tools\"}, \"compaction\": {\"type\": \"summarize\"}}",
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
