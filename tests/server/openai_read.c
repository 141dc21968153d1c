/* Requests of OpenAI's APIs become asks (tools/llm-server/api_openai*.c). */
#include "dialect_test.h"

#define HI      "\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"
#define TALK_HI "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"
#define F(name) "{\"type\": \"function\", \"function\": {\"name\": \"" name "\"}}"
#define SHOWN(name)                                                                                \
    "{\"type\":\"function\",\"function\":{\"name\":\"" name                                        \
    "\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}"

/* --- chats -------------------------------------------------------------------------------------- */

TEST(chat_defaults) {
    facts.n_predict = 77;
    const ask *a = request(&api_openai_chat, "{" HI "}");
    facts.n_predict = -1;
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->kind == ASK_CHAT && !a->model && !a->stream && a->n_choices == 1 && a->n_max == 77);
    CHECK(a->n_top == -1 && a->form == ASK_ANY && !a->tools && !a->has_seed && !a->continues);
    str_is(talk_str(a), "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}");
}

TEST(chat_fields) {
    const ask *a = request(
        &api_openai_chat,
        "{\"model\": \"gpt\", " HI
        ", \"stream\": true, \"stream_options\": {\"include_usage\": true}, "
        "\"n\": 3, \"max_completion_tokens\": 9, \"max_tokens\": 9, \"stop\": [\"a\", \"b\"], "
        "\"seed\": 5, "
        "\"temperature\": 0, \"top_p\": 0.25, \"top_k\": -1, \"logprobs\": true, \"top_logprobs\": "
        "4, "
        "\"logit_bias\": {\"7\": -100}, \"presence_penalty\": 1.5, \"parallel_tool_calls\": false, "
        "\"cache_prompt\": false, \"id_slot\": 2, \"ignore_eos\": true, \"return_tokens\": true, "
        "\"t_max_predict_ms\": 1500, \"reasoning_format\": \"none\", \"samplers\": [\"top_k\", "
        "\"temperature\"], \"mirostat\": 2, \"dry_sequence_breakers\": [\"x\"]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_STR(a->model, "gpt");
    CHECK(a->stream && a->stream_usage && a->n_choices == 3 && a->n_max == 9 && a->n_stops == 2);
    CHECK(a->has_seed && a->sampling.seed == 5 && a->sampling.temp == 0 &&
          a->sampling.top_p == 0.25f);
    CHECK(a->sampling.top_k == 0 && a->n_top == 4 && a->sampling.n_bias == 1);
    CHECK(a->sampling.bias[0].id == 7 && a->sampling.bias[0].bias == -100);
    CHECK(a->sampling.presence_penalty == 1.5f && a->one_call && a->no_cache && a->only_slot == 2);
    CHECK(a->ignore_eos && a->return_tokens && a->seconds == 1.5 && a->raw_marks);
    CHECK(a->sampling.n_stages == 2 && a->sampling.mirostat == 2 &&
          a->sampling.n_dry_breakers == 1);
}

/* A conversation and the text for the template. */
static const struct {
    const char *messages, *talk;
} talks[] = {
    {"{\"role\": \"developer\", \"content\": \"Be brief.\"}, {\"role\": \"user\", \"name\": "
     "\"Ann\", \"content\": "
     "[{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"\\u00e9\\n\"}]}",
     "{\"role\":\"developer\",\"content\":\"Be "
     "brief.\"},{\"role\":\"user\",\"name\":\"Ann\",\"content\":\"a\\n"
     "\xc3\xa9\\n\"}"},
    {"{\"role\": \"user\", \"content\": \"\"}, {\"role\": \"assistant\", \"content\": null, "
     "\"refusal\": null, "
     "\"tool_calls\": [{\"id\": \"c1\", \"type\": \"function\", \"index\": 0, \"function\": "
     "{\"name\": \"f\", "
     "\"arguments\": \"{\\\"a\\\": [1, 2.50]}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": "
     "\"c1\", \"content\": "
     "\"42\"}",
     "{\"role\":\"user\",\"content\":\"\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
     "[{\"id\":\"c1\",\"type\":\"function\",\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":"
     "{\"a\": [1, 2.50]}}}]},{\"role\":"
     "\"tool\",\"tool_call_id\":\"c1\",\"content\":\"42\"}"},
    {"{\"role\": \"assistant\", \"reasoning_content\": \"Hm\", \"content\": [{\"type\": "
     "\"refusal\", \"refusal\": "
     "\"No\"}], \"annotations\": []}, {\"role\": \"function\", \"name\": \"f\", \"content\": "
     "\"1\"}",
     "{\"role\":\"assistant\",\"reasoning_content\":\"Hm\",\"content\":\"No\",\"annotations\":[]},"
     "{\"role\":\"function\",\"name\":\"f\",\"content\":\"1\"}"},
    {"{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": "
     "\"f\", "
     "\"arguments\": \"{broken\"}}, {\"function\": {\"name\": \"g\", \"arguments\": \"\"}}]}",
     "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
     "\"arguments\":"
     "\"{broken\"},\"type\":\"function\"},{\"function\":{\"name\":\"g\",\"arguments\":{}},\"type\":"
     "\"function\"}]}"},
};

/* Compares JSON by its values. */
static bool same_json(ggl_str got, const char *want) {
    llm_json *a = NULL, *b = NULL;
    llm_json_out s = {0}, t = {0};
    bool same =
        CHECK_MSG(llm_json_parse(&a, got.s, got.n, "got", &err) == GGL_OK, "%s", err.msg) &&
        CHECK_MSG(llm_json_parse(&b, want, strlen(want), "want", &err) == GGL_OK, "%s", err.msg);
    if (same) {
        llm_json_put_value(&s, &a->root);
        llm_json_put_value(&t, &b->root);
        same = CHECK_MSG(s.n == t.n && memcmp(s.s, t.s, s.n) == 0, "got:  %s\nwant: %s", s.s, t.s);
    }
    ggl_free(s.s);
    ggl_free(t.s);
    llm_json_free(a);
    llm_json_free(b);
    return same;
}

TEST(messages) {
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++) {
        char text[2048], want[2048];
        snprintf(text, sizeof text, "{\"messages\": [%s]}", talks[i].messages);
        snprintf(want, sizeof want, "{\"messages\":[%s]}", talks[i].talk);
        const ask *a = request(&api_openai_chat, text);
        if (CHECK_MSG(a, "%zu: %s", i, err.msg))
            same_json(talk_str(a), want);
    }
}

TEST(variables) {
    const ask *a = request(&api_openai_chat,
                           "{" HI ", \"reasoning_effort\": \"low\", \"chat_template_kwargs\": "
                           "{\"enable_thinking\": true, \"x\": [1]}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    same_json(talk_str(a),
              TALK_HI ",\"enable_thinking\":true,\"x\":[1],\"reasoning_effort\":\"low\"}");
    a = request(&api_openai_chat, "{" HI ", \"reasoning_effort\": \"none\"}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    same_json(talk_str(a), TALK_HI ",\"enable_thinking\":false}");
    a = request(&api_openai_chat, "{" HI ", \"reasoning_effort\": \"high\", "
                                  "\"chat_template_kwargs\": {\"reasoning_effort\": 7}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    same_json(talk_str(a), TALK_HI ",\"reasoning_effort\":7}");
    a = request(&api_openai_chat, "{" HI ", \"enable_thinking\": true, \"reasoning_effort\": "
                                  "\"none\"}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    same_json(talk_str(a), TALK_HI ",\"enable_thinking\":true}");
    a = request(&api_openai_chat, "{" HI ", \"enable_thinking\": true, "
                                  "\"chat_template_kwargs\": {\"enable_thinking\": false}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    same_json(talk_str(a), TALK_HI ",\"enable_thinking\":false}");
}

/* --- tools and formats -------------------------------------------------------------------------- */

static const struct {
    const char *choice;
    ask_tools tools;
    const char *tool, *shown;
} choices[] = {
    {"null", ASK_TOOLS_AUTO, NULL, "[" SHOWN("f") "," SHOWN("g") "]"},
    {"\"auto\"", ASK_TOOLS_AUTO, NULL, "[" SHOWN("f") "," SHOWN("g") "]"},
    {"\"required\"", ASK_TOOLS_REQUIRED, NULL, "[" SHOWN("f") "," SHOWN("g") "]"},
    {"\"none\"", ASK_TOOLS_NONE, NULL, NULL},
    {F("g"), ASK_TOOLS_NAMED, "g", "[" SHOWN("f") "," SHOWN("g") "]"},
    {"{\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"required\", \"tools\": [" F(
         "g") "]}}",
     ASK_TOOLS_REQUIRED, NULL, "[" SHOWN("g") "]"},
    {"{\"type\": \"allowed_tools\", \"allowed_tools\": {\"mode\": \"auto\", \"tools\": []}}",
     ASK_TOOLS_NONE, NULL, NULL},
};

TEST(tool_choices) {
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        char text[1024], want[1024];
        snprintf(text, sizeof text,
                 "{" HI ", \"tools\": [" F("f") ", " F("g") "], \"tool_choice\": %s}",
                 choices[i].choice);
        const ask *a = request(&api_openai_chat, text);
        if (!CHECK_MSG(a, "%s: %s", choices[i].choice, err.msg))
            continue;
        CHECK_MSG(a->tool_choice == choices[i].tools, "%s", choices[i].choice);
        CHECK(!a->tool.s == !choices[i].tool && (!a->tool.s || str_is(a->tool, choices[i].tool)));
        CHECK(!a->tools == !choices[i].shown);
        snprintf(want, sizeof want, TALK_HI "%s%s}", choices[i].shown ? ",\"tools\":" : "",
                 choices[i].shown ? choices[i].shown : "");
        same_json(talk_str(a), want);
        if (a->tools)
            same_json(tools_str(a), choices[i].shown);
    }
}

static const struct {
    const dialect *d;
    const char *field;
    ask_form form;
    const char *text;
} formats[] = {
    {&api_openai_chat, "\"response_format\": {\"type\": \"text\"}", ASK_ANY, NULL},
    {&api_openai_chat, "\"response_format\": {\"type\": \"json_object\"}", ASK_JSON, NULL},
    {&api_openai_chat, "\"response_format\": {\"type\": \"json_object\", \"schema\": {}}",
     ASK_SCHEMA, "{}"},
    {&api_openai_chat,
     "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": {\"name\": \"n\", "
     "\"strict\": true, "
     "\"schema\": {\"type\": \"null\"}}}",
     ASK_SCHEMA, "{\"type\": \"null\"}"},
    {&api_openai_chat, "\"json_schema\": {\"type\": \"null\"}", ASK_SCHEMA, "{\"type\": \"null\"}"},
    {&api_openai_chat,
     "\"json_schema\": {\"enum\": [9007199254740993, 0.1234567890123456789, 1.50, 1E5]}",
     ASK_SCHEMA, "{\"enum\": [9007199254740993, 0.1234567890123456789, 1.50, 1E5]}"},
    {&api_openai_chat, "\"grammar\": \"root ::= []\"", ASK_GBNF, "root ::= []"},
    {&api_openai_chat, "\"grammar\": \"\"", ASK_ANY, NULL},
};

TEST(forms) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{" HI ", %s}", formats[i].field);
        const ask *a = request(formats[i].d, text);
        if (!CHECK_MSG(a, "%s: %s", formats[i].field, err.msg))
            continue;
        CHECK_MSG(a->form == formats[i].form, "%s", formats[i].field);
        if (a->form == ASK_SCHEMA)
            same_json(a->form_text, formats[i].text);
        else if (formats[i].text)
            str_is(a->form_text, formats[i].text);
    }
}

/* --- completions, embeddings, responses --------------------------------------------------------- */

TEST(prompts) {
    const ask *a = request(&api_openai_completions,
                           "{\"prompt\": [\"a\", [1, 99], \"\"], \"logprobs\": 2, \"echo\": true, "
                           "\"n\": 2, \"best_of\": 2, \"suffix\": \"\"}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->kind == ASK_TEXT && a->n_prompts == 3 && a->echo && a->n_top == 2 &&
          a->n_choices == 2);
    str_is(a->prompt[0].text, "a");
    CHECK(!a->prompt[1].text.s && a->prompt[1].n == 2 && a->prompt[1].id[1] == 99);
    CHECK(a->prompt[2].text.s && a->prompt[2].text.n == 0);
    a = request(&api_openai_completions, "{\"prompt\": [3]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->n_prompts == 1 && a->prompt[0].n == 1 && a->prompt[0].id[0] == 3);
    facts.n_embd = 4;
    a = request(&api_openai_embeddings, "{\"input\": \"x\", \"dimensions\": 4, \"user\": \"u\"}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->kind == ASK_EMBED && a->n_prompts == 1);
    facts.n_embd = 0; /* answered by 501 */
    CHECK(request(&api_openai_embeddings, "{\"input\": \"x\", \"dimensions\": 4}"));
    CHECK(request(&api_llamacpp_embedding, "{\"content\": \"x\", \"embd_normalize\": 3}"));
}

/* What coding agents send with every request. */
TEST(codex) {
    const ask *a = request(
        &api_openai_responses,
        "{\"input\": \"Hi\", \"text\": {\"verbosity\": \"low\"}, \"client_metadata\": {\"a\": "
        "\"b\"}, \"store\": true, \"tools\": [{\"type\": \"web_search\", "
        "\"external_web_access\": true}, {\"type\": \"function\", \"name\": \"f\"}, {\"type\": "
        "\"web_search_preview\"}]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    same_json(tools_str(a), "[" SHOWN("f") "]");
    a = request(&api_openai_responses,
                "{\"input\": \"Hi\", \"tools\": [{\"type\": \"web_search\"}]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(!a->tools && a->tool_choice == ASK_TOOLS_NONE);
    a = request(&api_openai_chat, "{" HI ", \"store\": true, \"verbosity\": \"low\", "
                                  "\"repetition_penalty\": 1.25, \"slot_id\": 3}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->sampling.repeat_penalty == 1.25f && a->only_slot == 3);
}

/* What codex --output-schema sends. */
TEST(tools_and_a_format) {
    const ask *a = request(
        &api_openai_responses,
        "{\"input\": \"Hi\", \"tool_choice\": \"auto\", \"tools\": [{\"type\": \"function\", "
        "\"name\": "
        "\"f\", \"parameters\": {\"type\": \"object\"}}], \"text\": {\"format\": {\"type\": "
        "\"json_schema\", \"name\": \"s\", \"strict\": true, \"schema\": {\"type\": "
        "\"object\"}}}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->form == ASK_SCHEMA && a->tools && a->tool_choice == ASK_TOOLS_AUTO);
    CHECK(strstr(talk_text(a), "\"tools\""));
}

/* Codex's tools: free text is a function of one string, namespaces are parts of names; others are left out and named, and so are
 * items about them. */
TEST(tools_of_codex) {
    static const char *const tools =
        "\"tools\": [{\"type\": \"custom\", \"name\": \"apply_patch\", \"description\": \"Edit.\", "
        "\"format\": {\"type\": \"grammar\", \"syntax\": \"lark\", \"definition\": \"start: x\"}}, "
        "{\"type\": \"local_shell\"}, {\"type\": \"tool_search\", \"execution\": \"client\"}, "
        "{\"type\": "
        "\"namespace\", \"name\": \"mcp__fs\", \"tools\": [{\"type\": \"function\", \"name\": "
        "\"read\"}]}]";
    char text[1500];
    facts.strict_fields = false;
    snprintf(
        text, sizeof text,
        "{%s, \"input\": [{\"role\": \"user\", \"content\": \"a\"}, {\"type\": "
        "\"custom_tool_call\", \"call_id\": \"c\", \"name\": \"apply_patch\", \"input\": "
        "\"*** \\\"x\\\"\"}, {\"type\": \"custom_tool_call_output\", \"call_id\": \"c\", "
        "\"output\": "
        "\"ok\"}, {\"type\": \"function_call\", \"call_id\": \"d\", \"namespace\": \"mcp__fs\", "
        "\"name\": \"read\", \"arguments\": \"{}\"}, {\"type\": \"tool_search_call\"}, {\"type\": "
        "\"compaction\", \"encrypted_content\": \"It was so.\"}]}",
        tools);
    const ask *a = request(&api_openai_responses, text);
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_STR(a->ignored.names, "tools.local_shell, tools.tool_search, input.tool_search_call");
    same_json(tools_str(a),
              "[{\"type\":\"function\",\"function\":{\"name\":\"apply_patch\",\"description\":"
              "\"Edit.\\n\\n"
              "The input must match this grammar:\\nstart: x\",\"parameters\":{\"type\":\"object\","
              "\"properties\":{\"input\":{\"type\":\"string\"}},\"required\":[\"input\"]}}}," SHOWN(
                  "mcp__fs__read") "]");
    static const char *const parts[] = {
        "\"arguments\": {\"input\": \"*** \\\"x\\\"\"}",
        "\"content\": \"ok\", \"tool_call_id\": \"c\"",
        "{\"name\": \"mcp__fs__read\", \"arguments\": {}}",
        "Summary of the conversation before this point:\\n\\nIt was so."};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        CHECK_MSG(memmem(talk_text(a), strlen(talk_text(a)), parts[i], strlen(parts[i])),
                  "%s is not in %.*s", parts[i], (int)strlen(talk_text(a)), talk_text(a));
    snprintf(text, sizeof text,
             "{%s, \"input\": \"a\", \"tool_choice\": {\"type\": \"custom\", \"name\": "
             "\"apply_patch\"}}",
             tools);
    a = request(&api_openai_responses, text);
    CHECK(a && a->tool_choice == ASK_TOOLS_NAMED && str_is(a->tool, "apply_patch"));
    snprintf(text, sizeof text,
             "{%s, \"input\": \"a\", \"tool_choice\": {\"type\": \"function\", \"namespace\": "
             "\"mcp__fs\", "
             "\"name\": \"read\"}}",
             tools);
    a = request(&api_openai_responses, text);
    CHECK(a && str_is(a->tool, "mcp__fs__read"));
    CHECK(!request(&api_openai_responses,
                   "{\"input\": [{\"type\": \"item_reference\", \"id\": \"x\"}]}"));
    CHECK_HAS(err.msg, "the item \"x\" is not known: the server keeps no answers (--no-store)");
    a = request(&api_openai_compact,
                "{\"input\": \"a\", \"instructions\": \"b\", \"stream\": true}");
    CHECK(a && !a->stream && !a->tools && memmem(talk_text(a), strlen(talk_text(a)), "Sum up", 6));
    CHECK(a && a->n_max > 77);
    facts.n_predict = 77;
    a = request(&api_openai_compact, "{\"input\": \"a\"}");
    CHECK(a && a->n_max == 77);
    facts.n_predict = -1;
    facts.strict_fields = true;
}

TEST(responses) {
    const ask *a = request(
        &api_openai_responses,
        "{\"model\": \"m\", \"instructions\": \"Be brief.\", \"input\": [{\"role\": \"user\", "
        "\"content\": "
        "[{\"type\": \"input_text\", \"text\": \"Hi\"}]}, {\"type\": \"reasoning\", \"id\": \"r\", "
        "\"summary\": [], "
        "\"content\": [{\"type\": \"reasoning_text\", \"text\": \"Hm\"}]}, {\"type\": \"message\", "
        "\"id\": \"i\", "
        "\"role\": \"assistant\", \"status\": \"completed\", \"content\": [{\"type\": "
        "\"output_text\", \"text\": "
        "\"Well\", \"annotations\": [], \"logprobs\": []}]}, {\"type\": \"function_call\", "
        "\"call_id\": \"c\", "
        "\"name\": \"f\", \"arguments\": \"{}\"}, {\"type\": \"function_call\", \"call_id\": "
        "\"d\", \"name\": \"g\", "
        "\"arguments\": \"{}\"}, {\"type\": \"function_call_output\", \"call_id\": \"c\", "
        "\"output\": \"1\"}], "
        "\"tools\": [{\"type\": \"function\", \"name\": \"f\", \"parameters\": null, \"strict\": "
        "true}], "
        "\"tool_choice\": {\"type\": \"function\", \"name\": \"f\"}, \"reasoning\": {\"effort\": "
        "\"high\", "
        "\"summary\": \"auto\"}, \"text\": {\"format\": {\"type\": \"text\"}, \"verbosity\": "
        "\"medium\"}, "
        "\"include\": [\"reasoning.encrypted_content\", \"message.output_text.logprobs\"], "
        "\"store\": false, "
        "\"max_output_tokens\": 12, \"truncation\": \"disabled\", \"metadata\": {\"a\": \"b\"}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->kind == ASK_CHAT && a->n_max == 12 && a->n_top == 0 &&
          a->tool_choice == ASK_TOOLS_NAMED);
    same_json(talk_str(a),
              "{\"messages\":[{\"role\":\"system\",\"content\":\"Be "
              "brief.\"},{\"role\":\"user\",\"content\":"
              "\"Hi\"},{\"role\":\"assistant\",\"content\":\"Well\",\"reasoning_content\":"
              "\"Hm\",\"tool_calls\":["
              "{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\","
              "\"arguments\":{}}},{\"id\":\"d\","
              "\"type\":\"function\",\"function\":{\"name\":\"g\",\"arguments\":{}}}]},{"
              "\"role\":\"tool\",\"content\":\"1\",\"tool_call_id\":\"c\"}],\"reasoning_effort\":"
              "\"high\","
              "\"tools\":[" SHOWN("f") "]}");
    a = request(&api_openai_responses, "{\"input\": \"Hi\", \"text\": {\"format\": {\"type\": "
                                       "\"json_schema\", \"name\": \"n\", \"schema\": {}}}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->form == ASK_SCHEMA);
}

#define INPUT(items) "{\"input\": [" items "]"

/* Items that are no messages: tools, settings, a wish for a summary; and which reasoning the model sees. */
TEST(further_items) {
    const ask *a = request(
        &api_openai_responses,
        INPUT("{\"type\": \"additional_tools\", \"role\": \"developer\", \"tools\": [{\"type\": "
              "\"function\", \"name\": \"f\"}, {\"type\": \"function\", \"name\": \"g\"}]}, "
              "{\"role\": \"user\", \"content\": \"a\"}, {\"type\": \"additional_tools\", "
              "\"role\": \"developer\", \"tools\": [{\"type\": \"function\", \"name\": \"f\", "
              "\"description\": \"new\"}]}") ", \"tool_choice\": \"required\"}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->tool_choice == ASK_TOOLS_REQUIRED && a->tools && a->tools->n == 2 &&
          a->ignored.n == 0);
    CHECK_HAS(line_of(a->tools), "\"name\": \"f\", \"description\": \"new\"");
    CHECK(!request(&api_openai_responses,
                   INPUT("{\"type\": \"additional_tools\", \"tools\": [{\"type\": \"function\"}]}, "
                         "{\"role\": \"user\", \"content\": \"a\"}") "}"));
    CHECK_HAS(err.msg, "a function needs a \"name\"");
    a = request(
        &api_openai_responses,
        INPUT(
            "{\"type\": \"configuration_update\", \"reasoning\": {\"effort\": \"low\"}}, "
            "{\"role\": \"user\", \"content\": \"a\"}, {\"type\": "
            "\"configuration_update\", \"reasoning\": {\"effort\": \"high\"}}, {\"type\": "
            "\"configuration_update\", \"text\": {\"format\": {\"type\": "
            "\"json_schema\", \"name\": \"n\", \"schema\": {}}}}") ", \"reasoning\": "
                                                                   "{\"effort\": \"medium\"}, "
                                                                   "\"text\": {\"format\": "
                                                                   "{\"type\": \"json_object\"}}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->form == ASK_SCHEMA);
    CHECK_HAS(talk_text(a), "\"reasoning_effort\": \"high\"");
    CHECK(!request(
        &api_openai_responses,
        INPUT("{\"role\": \"user\", \"content\": \"a\"}, {\"type\": "
              "\"configuration_update\", \"text\": {\"format\": {\"type\": \"x\"}}}") "}"));
    CHECK_HAS(err.msg, "configuration_update: text.format");
}

#define THOUGHT(more)    "{\"type\": \"reasoning\", \"summary\": [], " more "}"
#define SAID(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"

TEST(reasoning_that_comes_back) {
    static const struct {
        const char *body, *has, *lacks;
    } rows[] = {
        {INPUT(SAID("user", "a") "," THOUGHT("\"encrypted_content\": \"plain text: Hm\"") "," SAID(
             "assistant", "b") "," SAID("user", "c")) "}",
         "\"reasoning_content\": \"Hm\"", "plain"},
        {INPUT(SAID("user", "a") "," THOUGHT("\"encrypted_content\": \"gAAAA\"") "," SAID(
             "assistant", "b")) "}",
         "\"b\"", "gAAAA"},
        {INPUT(SAID("user", "a") "," THOUGHT(
             "\"encrypted_content\": null, \"content\": null, \"id\": null") "," SAID("assistant",
                                                                                      "b")) "}",
         "\"b\"", "reasoning"},
        {INPUT(SAID("user", "a") "," THOUGHT("\"encrypted_content\": \"plain text: old\"") "," SAID(
             "assistant",
             "b") "," SAID("user",
                           "c") "," THOUGHT("\"encrypted_content\": \"plain "
                                            "text: new\"") "," SAID("assistant",
                                                                    "d")) ", \"reasoning\": "
                                                                          "{\"context\": "
                                                                          "\"current_turn\"}}",
         "new", "old"},
        {INPUT(SAID("user", "a") "," THOUGHT("\"encrypted_content\": \"plain text: old\"") "," SAID(
             "assistant", "b") "," SAID("user",
                                        "c")) ", \"reasoning\": {\"context\": \"all_turns\", "
                                              "\"summary\": \"detailed\", "
                                              "\"generate_summary\": \"concise\", \"mode\": "
                                              "\"standard\"}, \"truncation\": \"auto\"}",
         "old", "zzz"},
        /* a summary that was asked for stands for what was before it, but for the system's messages */
        {INPUT(SAID("developer", "rules") "," SAID("user", "a") "," SAID(
             "assistant",
             "b") ",{\"type\": "
                  "\"compaction_trigger\"}, {\"type\": \"compaction\", \"encrypted_content\": "
                  "\"sum\"}," SAID("user", "c")) "}",
         "\"rules\"}, {\"role\": \"user\", \"content\": \"Summary of the conversation", "\"b\""},
        {INPUT(SAID("user", "a") ",{\"type\": \"compaction\", \"encrypted_content\": \"sum\"}") "}",
         "\"a\"", "zzz"},
        {INPUT(SAID("user", "a") ",{\"type\": \"compaction_trigger\"}") "}", "Sum up", "zzz"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ask *a = request(&api_openai_responses, rows[i].body);
        if (!CHECK_MSG(a, "%s: %s", rows[i].body, err.msg))
            continue;
        CHECK_HAS(talk_text(a), rows[i].has);
        CHECK_MSG(!strstr(talk_text(a), rows[i].lacks), "%s in %s", rows[i].lacks, talk_text(a));
    }
    facts.strict_fields = false;
    const ask *a =
        request(&api_openai_responses, "{\"input\": \"a\", \"reasoning\": {\"mode\": \"pro\"}}");
    facts.strict_fields = true;
    CHECK(a && strcmp(a->ignored.names, "reasoning.mode") == 0);
    a = request(
        &api_openai_responses,
        INPUT(SAID(
            "user",
            "a") ",{\"type\": \"compaction_trigger\"}") ", \"text\": {\"format\": {\"type\": "
                                                        "\"json_object\"}}, \"tools\": [{\"type\": "
                                                        "\"function\", \"name\": \"f\"}]}");
    CHECK(a && a->form == ASK_ANY && !a->tools);
    refuses(&api_openai_chat, "{" HI ", \"reasoning_format\": \"deeper\"}",
            "\"reasoning_format\" must be one of \"auto\", \"none\", \"deepseek\", "
            "\"deepseek-legacy\"");
    refuses(&api_openai_responses, "{\"input\": \"a\", \"reasoning\": {\"summary\": \"long\"}}",
            "reasoning: \"summary\" must be \"auto\", \"concise\" or \"detailed\"");
    refuses(&api_openai_responses, "{\"input\": \"a\", \"reasoning\": {\"context\": \"x\"}}",
            "reasoning: \"context\" must be \"auto\", \"current_turn\" or \"all_turns\"");
    refuses(&api_openai_responses, "{\"input\": \"a\", \"truncation\": \"x\"}",
            "\"truncation\" must be \"auto\" or \"disabled\"");
}

/* Tools with free text in chats: the model sees functions, also in what it has called before. */
TEST(custom_tools_of_chats) {
    static const char tools[] =
        "\"tools\": [{\"type\": \"custom\", \"custom\": {\"name\": \"sql\", \"description\": "
        "\"Asks.\", \"format\": {\"type\": \"grammar\", \"grammar\": {\"syntax\": \"lark\", "
        "\"definition\": \"start: X\"}}}}, " F("f") "]";
    char text[2000];
    snprintf(text, sizeof text,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
             "\"content\": null, \"tool_calls\": [{\"id\": \"c1\", \"type\": \"custom\", "
             "\"custom\": {\"name\": \"sql\", \"input\": \"select\\n\"}}, {\"id\": \"c2\", "
             "\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]}, "
             "{\"role\": \"tool\", \"tool_call_id\": \"c1\", \"content\": \"1\"}], %s, "
             "\"tool_choice\": {\"type\": \"custom\", \"custom\": {\"name\": \"sql\"}}}",
             tools);
    const ask *a = request(&api_openai_chat, text);
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->whole_calls && a->tool_choice == ASK_TOOLS_NAMED && str_is(a->tool, "sql"));
    CHECK_HAS(talk_text(a), "{\"id\": \"c1\", \"type\": \"function\", \"function\": {\"name\": "
                            "\"sql\", \"arguments\": {\"input\": \"select\\n\"}}}");
    CHECK_HAS(line_of(a->tools), "Asks.\\n\\nThe input must match this grammar:\\nstart: X");
    refuses(&api_openai_chat,
            "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"c\", "
            "\"type\": \"custom\", \"custom\": {\"name\": \"f\"}}]}]}",
            "messages[0]: tool_calls[0]: \"custom\" needs the strings \"name\" and \"input\"");
    refuses(&api_openai_chat, "{" HI ", \"tools\": [{\"type\": \"custom\", \"name\": \"flat\"}]}",
            "tools[0]: a function needs a \"name\"");
}

/* --- how the prompt ends ------------------------------------------------------------------------ */

#define LAST(text) "\"messages\": [{\"role\": \"assistant\", \"content\": " text "}]"

/* As in transformers and vLLM, and a last message of the assistant goes on by itself, as in llama.cpp. */
TEST(turns) {
    static const struct {
        const char *text;
        bool continues, no_turn;
    } rows[] = {
        {"{" HI "}", false, false},
        {"{" HI ", \"add_generation_prompt\": null, \"continue_final_message\": null}", false,
         false},
        {"{" HI ", \"add_generation_prompt\": false}", false, true},
        {"{" HI ", \"add_generation_prompt\": true, \"continue_final_message\": false}", false,
         false},
        {"{" LAST("\"a\"") "}", true, false},
        {"{" LAST("[{\"type\": \"text\", \"text\": \"a\"}]") "}", true, false},
        {"{" LAST("\"a\", \"tool_calls\": []") "}", true, false},
        {"{" LAST("\"a\"") ", \"add_generation_prompt\": true}", false, false},
        {"{" LAST("\"a\"") ", \"add_generation_prompt\": false}", false, true},
        {"{" LAST("\"a\"") ", \"continue_final_message\": false}", false, false},
        {"{" LAST("\"a\"") ", \"continue_final_message\": true}", true, false},
        {"{" LAST("\"a\"") ", \"continue_final_message\": true, \"add_generation_prompt\": false}",
         true, true},
        {"{" LAST("\"\"") "}", false, false},
        {"{" LAST("\"a\", \"tool_calls\": [{\"id\": \"i\", \"function\": {\"name\": \"f\", "
                  "\"arguments\": \"{}\"}}]") "}",
         false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ask *a = request(&api_openai_chat, rows[i].text);
        if (CHECK_MSG(a, "%s: %s", rows[i].text, err.msg))
            CHECK_MSG(a->continues == rows[i].continues && a->no_turn == rows[i].no_turn, "%s",
                      rows[i].text);
    }
    CHECK(!request(&api_openai_chat, "{" LAST("\"a\"") ", \"continue_final_message\": true, "
                                                       "\"add_generation_prompt\": true}"));
    CHECK_HAS(err.msg, "cannot both be true");
    CHECK_STR(param, "add_generation_prompt");
}

/* A picture in a result is part of each further request, so it must not block them; in a question it is an error. */
TEST(pictures) {
    static const char part[] = "{\"type\": \"image_url\", \"image_url\": {\"url\": \"data:,\"}}";
    char text[600];
    snprintf(
        text, sizeof text,
        "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"i\", \"function\": "
        "{\"name\": \"f\", \"arguments\": \"{}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": "
        "\"i\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, %s]}]}",
        part);
    const ask *a = request(&api_openai_chat, text);
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(memmem(talk_text(a), strlen(talk_text(a)), "a\\n[picture left out", 20));
    a = request(&api_openai_responses,
                "{\"input\": [{\"type\": \"function_call\", \"call_id\": \"i\", \"name\": \"f\", "
                "\"arguments\": \"{}\"}, {\"type\": \"function_call_output\", \"call_id\": \"i\", "
                "\"output\": [{\"type\": \"input_file\", \"file_id\": \"x\"}]}]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(memmem(talk_text(a), strlen(talk_text(a)), "\"[file left out", 15));
    snprintf(text, sizeof text, "{\"messages\": [{\"role\": \"user\", \"content\": [%s]}]}", part);
    CHECK(!request(&api_openai_chat, text));
    CHECK_HAS(err.msg, "is not supported");
}

/* What clients of other servers send, at the top and within messages, calls, parts and tools. */
TEST(names_of_other_servers) {
    facts.strict_fields = false;
    const ask *a = request(
        &api_openai_chat,
        "{\"provider\": {}, \"usage\": {\"include\": true}, \"chat_template\": null, \"n\": 2, "
        "\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hi\", "
        "\"part\": 1}], \"createdAt\": 1}, {\"role\": \"assistant\", \"content\": \"b\", \"id\": "
        "\"x\", "
        "\"reasoning_details\": [], \"tool_calls\": [{\"id\": \"i\", \"more\": 1, \"function\": "
        "{\"name\": \"f\", \"arguments\": \"{}\"}}]}, {\"role\": \"tool\", \"tool_call_id\": "
        "\"i\", "
        "\"content\": \"c\", \"id\": \"y\"}], \"tools\": [{\"type\": \"function\", \"function\": "
        "{\"name\": \"f\", \"extra\": 1}}]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_INT(a->n_choices, 2);
    CHECK_STR(a->ignored.names,
              "provider, usage, tools.function.extra, messages.createdAt, messages.content.part, "
              "messages.id, messages.reasoning_details, messages.tool_calls.more");
    a = request(&api_openai_chat,
                "{" HI ", \"stream_options\": {\"include_usge\": true}, "
                "\"response_format\": {\"type\": \"json_schema\", \"json_schema\": "
                "{\"schema\": {}, \"a\": 1}}, \"tools\": [{\"type\": \"function\", "
                "\"parameters\": {}, \"function\": {\"name\": \"f\"}}], \"z\": 1}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_STR(a->ignored.names, "z, stream_options.include_usge, response_format.json_schema.a, "
                                "tools.parameters");
    a = request(&api_openai_responses,
                "{\"input\": [{\"role\": \"user\", \"content\": \"Hi\", \"x\": 1}], "
                "\"reasoning\": {\"effort\": \"low\", \"y\": 1}, \"text\": {\"z\": 1}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_STR(a->ignored.names, "text.z, reasoning.y, input.x");
    a = request(&api_openai_responses,
                "{\"input\": [{\"type\": \"web_search_call\", \"id\": \"x\", \"action\": {}}, "
                "{\"role\": \"user\", \"content\": \"Hi\"}]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_STR(a->ignored.names, "input.web_search_call");
    /* what may be a message is not left out, and something is asked */
    refuses(&api_openai_responses,
            "{\"input\": [{\"type\": \"mesage\", \"role\": \"user\", \"content\": \"a\"}]}",
            "input[0]: items of type \"mesage\" are not supported; did you mean \"message\"?");
    refuses(&api_openai_responses,
            "{\"input\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"type\": \"note\", "
            "\"content\": \"a\"}]}",
            "input[1]: items of type \"note\" are not supported; give messages, function calls");
    refuses(&api_openai_responses,
            "{\"instructions\": \"a\", \"input\": [{\"type\": \"web_search_call\"}, {\"type\": "
            "\"custom_tool_cal\"}]}",
            "input[1]: items of type \"custom_tool_cal\" are not supported; did you mean");
    facts.strict_fields = true;
}

/* --- messages of errors ------------------------------------------------------------------------- */

static const struct {
    const dialect *d;
    const char *text, *param, *message;
} wrong[] = {
    {&api_openai_chat, "[]", NULL, "a JSON object is expected, not an array"},
    {&api_openai_chat, "{}", "messages", "\"messages\" must be a list of at least one message"},
    {&api_openai_chat, "{\"messages\": [{\"role\": \"bot\", \"content\": \"\"}]}", "messages",
     "messages[0]: \"role\" must be \"system\", \"developer\", \"user\", \"assistant\", \"tool\" "
     "or \"function\", not \"bot\""},
    {&api_openai_chat, "{\"messages\": [{\"role\": \"user\"}]}", "messages",
     "messages[0]: \"content\" is missing"},
    {&api_openai_chat, "{\"messages\": [{\"role\": \"user\", \"contnet\": \"\"}]}", "messages",
     "messages[0]: unknown field \"contnet\"; did you mean \"content\"?"},
    {&api_openai_chat,
     "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": "
     "{}}]}]}",
     "messages",
     "messages[0]: content[0]: image input is not supported: the server was started without an eye "
     "for its model (--mmproj FILE)"},
    {&api_openai_chat, "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"txt\"}]}]}",
     "messages", "messages[0]: content[0]: \"txt\" is not a type of part; use \"text\""},
    {&api_openai_chat, "{\"messages\": [{\"role\": \"user\", \"content\": 5}]}", "messages",
     "messages[0]: \"content\" must be a string or a list of parts, not a number"},
    {&api_openai_chat,
     "{\"messages\": [{\"role\": \"user\", \"content\": \"\", \"tool_calls\": []}]}", "messages",
     "messages[0]: only an assistant's message has \"tool_calls\""},
    {&api_openai_chat,
     "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"arguments\": "
     "\"\"}}]}]}",
     "messages",
     "messages[0]: tool_calls[0]: a call needs \"function\" with a \"name\" and \"arguments\", a "
     "string of JSON"},
    {&api_openai_chat, "{" HI ", \"continue_final_message\": true}", "messages",
     "\"continue_final_message\" needs a last message of the assistant, with a content"},
    {&api_openai_chat, "{" HI ", \"max_tokens\": 1, \"max_completion_tokens\": 2}", "max_tokens",
     "\"max_completion_tokens\" and \"max_tokens\" are two names of one limit, but differ"},
    {&api_openai_chat, "{" HI ", \"top_logprobs\": 1}", "top_logprobs",
     "\"top_logprobs\" needs \"logprobs\": true"},
    {&api_openai_chat, "{" HI ", \"n\": 129}", "n", "\"n\" is 129, but must be from 1 to 128"},
    {&api_openai_chat, "{" HI ", \"stream_options\": {\"usage\": true}}", "stream_options",
     "stream_options: unknown field \"usage\""},
    {&api_openai_chat, "{" HI ", \"tools\": [{\"type\": \"web_search\"}]}", "tools",
     "tools[0]: tools of type \"web_search\" are not supported; the server runs no tools, give "
     "functions"},
    {&api_openai_chat, "{" HI ", \"tools\": [" F("f") ", " F("f") "]}", "tools",
     "tools[1]: two functions have the name \"f\""},
    {&api_openai_chat,
     "{" HI
     ", \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": 5}}]}",
     "tools", "tools[0]: \"parameters\" must be a schema, an object"},
    {&api_openai_chat, "{" HI ", \"tool_choice\": \"required\"}", "tool_choice",
     "\"tool_choice\" demands a call, but there are no \"tools\""},
    {&api_openai_chat, "{" HI ", \"tools\": [" F("f") "], \"tool_choice\": " F("g") "}",
     "tool_choice", "\"tool_choice\" names \"g\", which is not in \"tools\""},
    {&api_openai_chat, "{" HI ", \"tools\": [" F("f") "], \"tool_choice\": \"any\"}", "tool_choice",
     "\"tool_choice\" must be \"none\", \"auto\", \"required\", or an object that names a function "
     "or the allowed tools, not \"any\""},
    {&api_openai_chat, "{" HI ", \"tools\": [" F("f") "], \"grammar\": \"root ::= []\"}", "tools",
     "tools cannot be called while the whole answer must fit a grammar; use a schema "
     "(\"response_format\"), leave out one of them, or set \"tool_choice\" to \"none\""},
    {&api_openai_chat, "{" HI ", \"grammar\": \"root ::= []\", \"json_schema\": {}}", "json_schema",
     "more than one field says what the answer must fit; keep one of \"response_format\", "
     "\"json_schema\" and \"grammar\""},
    {&api_openai_chat, "{" HI ", \"response_format\": {\"type\": \"json_schema\"}}",
     "response_format", "response_format: a format of type \"json_schema\" needs a \"schema\""},
    {&api_openai_chat, "{" HI ", \"reasoning_effort\": \"huge\"}", "reasoning_effort",
     "the effort of reasoning must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", "
     "\"xhigh\" or \"max\", not \"huge\""},
    {&api_openai_chat, "{" HI ", \"functions\": []}", "functions",
     "\"functions\" is not supported: use \"tools\""},
    {&api_openai_chat, "{" HI ", \"samplers\": [\"top_k\", \"top_k\"]}", "samplers",
     "samplers: stage top_k is named twice, but can run only once"},
    {&api_openai_chat, "{" HI ", \"mirostat\": 1}", "mirostat",
     "\"mirostat\" 1 is not supported; use 2"},
    {&api_openai_chat, "{" HI ", \"temprature\": 1}", "temprature",
     "unknown field \"temprature\"; did you mean \"temperature\"?"},
    {&api_openai_completions, "{}", "prompt", "\"prompt\" is missing: the text to be continued"},
    {&api_openai_completions, "{\"prompt\": [1, 100]}", "prompt",
     "prompt: 100 is not a token; the vocabulary has 0 to 99"},
    {&api_openai_completions, "{\"prompt\": [\"a\", {}]}", "prompt",
     "prompt[1]: an object must have \"prompt_string\", with \"multimodal_data\" if its text has "
     "pictures or sounds, or \"content\", a list of parts"},
    {&api_openai_completions, "{\"prompt\": \"\", \"best_of\": 3}", "best_of",
     "\"best_of\" is not supported unless it equals \"n\"; ask for \"n\" choices and choose one"},
    {&api_openai_embeddings, "{\"input\": []}", "input", "\"input\" is an empty list"},
    {&api_openai_embeddings, "{\"input\": \"a\", \"dimensions\": 5}", "dimensions",
     "\"dimensions\" must be a number from 1 to 4, which embeddings of this model have"},
    {&api_openai_embeddings, "{\"inptu\": 1}", "inptu",
     "unknown field \"inptu\"; did you mean \"input\"?"},
    {&api_openai_responses, "{\"input\": \"a\", \"max_tokens\": 1}", "max_tokens",
     "unknown field \"max_tokens\""},
    {&api_openai_responses, "{}", "input",
     "\"input\" must be a string, or a list of at least one item"},
    {&api_openai_responses, "{\"input\": [{\"type\": \"item_reference\", \"id\": \"x\"}]}", "input",
     "input[0]: the item \"x\" is not known: the server keeps no answers (--no-store); give the "
     "item "
     "itself, or set \"store\" to false"},
    {&api_openai_responses, "{\"input\": \"a\", \"previous_response_id\": \"resp_1\"}",
     "previous_response_id",
     "\"previous_response_id\" is not supported: the server keeps no answers (--no-store); give "
     "the "
     "whole conversation in \"input\""},
    {&api_openai_responses,
     "{\"input\": \"a\", \"tools\": [{\"type\": \"web_search\"}], \"tool_choice\": \"required\"}",
     "tools", "\"tool_choice\" demands a call, but allows no tool"},
    {&api_openai_responses, "{\"input\": \"a\", \"tools\": [{\"type\": \"file_search\"}]}", "tools",
     "tools[0]: tools of type \"file_search\" are not supported; the server runs no tools, give "
     "functions"},
    {&api_openai_responses, "{\"input\": \"a\", \"tools\": [{\"type\": \"local_shell\"}]}", "tools",
     "tools[0]: tools of type \"local_shell\" are not supported; the server runs no tools, give "
     "functions"},
    {&api_openai_responses,
     "{\"input\": \"a\", \"tools\": [{\"type\": \"custom\", \"name\": \"f\"}, {\"type\": "
     "\"function\", \"name\": \"f\"}]}",
     "tools", "tools[1]: two functions have the name \"f\""},
    {&api_openai_responses,
     "{\"input\": [{\"type\": \"custom_tool_call\", \"call_id\": \"i\", \"name\": \"f\"}]}",
     "input", "input[0]: a call needs the strings \"call_id\", \"name\" and \"input\""},
    {&api_openai_responses, "{\"input\": \"a\", \"reasoning\": {\"effort\": 5}}", "reasoning",
     "the effort of reasoning must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", "
     "\"xhigh\" or \"max\", not 5"},
    {&api_openai_chat, "{" HI ", \"max_tokens\": -5}", "max_tokens",
     "\"max_tokens\" must be a number of tokens from 0, or -1 (until the context is full), not -5"},
    {&api_openai_chat, "{" HI ", \"response_format\": {\"type\": \"xml\"}}", "response_format",
     "response_format: \"type\" must be \"text\", \"json_object\" or \"json_schema\" (for grammars "
     "there is the field \"grammar\"), not \"xml\""},
    {&api_openai_chat, "{" HI ", \"tools\": [{\"type\": \"function\", \"name\": \"f\"}]}", "tools",
     "tools[0]: a function needs a \"name\" of 1 to 256 bytes, which belongs in \"function\": "
     "{\"type\": \"function\", \"function\": {\"name\": ..}}"},
    {&api_openai_chat,
     "{" HI
     ", \"tools\": [" F("f") "], \"tool_choice\": {\"type\": \"function\", \"name\": \"f\"}}",
     "tool_choice",
     "tool_choice: a function needs a \"name\" of 1 to 256 bytes, which belongs in \"function\": "
     "{\"type\": \"function\", \"function\": {\"name\": ..}}"},
    {&api_openai_responses, "{\"input\": \"a\", \"tools\": [" F("f") "]}", "tools",
     "tools[0]: a function needs a \"name\" of 1 to 256 bytes, which belongs beside \"type\", not "
     "in "
     "\"function\""},
    {&api_openai_responses,
     "{\"input\": \"a\", \"tools\": [{\"type\": \"function\", \"name\": \"f\"}], "
     "\"tool_choice\": " F("f") "}",
     "tool_choice",
     "tool_choice: a function needs a \"name\" of 1 to 256 bytes, which belongs beside \"type\", "
     "not "
     "in \"function\""},
    {&api_openai_responses, "{\"input\": \"a\", \"include\": [\"foo\"]}", "include",
     "\"include[0]\" must be \"message.output_text.logprobs\", \"reasoning.encrypted_content\", "
     "\"file_search_call.results\", \"web_search_call.results\", "
     "\"web_search_call.action.sources\", \"message.input_image.image_url\", "
     "\"computer_call_output.output.image_url\" or \"code_interpreter_call.outputs\", not \"foo\""},
    {&api_openai_responses, "{\"input\": \"a\", \"max_output_tokens\": 0}", "max_output_tokens",
     "\"max_output_tokens\" must be a number of tokens, at least 1, not 0"},
    {&api_openai_responses, "{\"input\": \"a\", \"truncation\": \"sometimes\"}", "truncation",
     "\"truncation\" must be \"auto\" or \"disabled\", not \"sometimes\""},
    {&api_openai_responses, "{\"input\": \"a\", \"conversation\": {\"ID\": \"x\"}}", "conversation",
     "\"conversation\" must be a string, or an object with the string \"id\""},
};

TEST(errors) {
    facts.n_embd = 4;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (!CHECK_MSG(!request(wrong[i].d, wrong[i].text), "accepted: %s", wrong[i].text))
            continue;
        CHECK_STR(err.msg, wrong[i].message);
        CHECK_MSG(!param == !wrong[i].param && (!param || strcmp(param, wrong[i].param) == 0),
                  "%s: %s", wrong[i].text, param ? param : "no field");
    }
}
