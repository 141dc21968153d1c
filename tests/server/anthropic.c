/* Anthropic's API: requests and answers. */
#include "dialect_test.h"
#include "llm-server/api_anthropic.h"
#include "seed.h"

#define D (&api_anthropic_messages)

#define HI "\"max_tokens\": 10, \"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]"

/* The conversation of a request; "": it was refused. */
static const char *talk_of(const char *text) {
    const ask *a = request(D, text);
    return CHECK_OK(status, &err) ? talk_text(a) : "";
}

TEST(reads_all_fields) {
    const ask *a =
        request(D, "{\"model\": \"some-model\", \"max_tokens\": 77, \"stream\": true, "
                   "\"stop_sequences\": [\"a\", \"bc\"], \"temperature\": 0.25, "
                   "\"top_p\": 0.5, \"top_k\": 7, \"metadata\": {\"user_id\": \"x\"}, "
                   "\"service_tier\": \"auto\", \"cache_control\": {\"type\": "
                   "\"ephemeral\"}, \"system\": \"Be brief.\", \"messages\": [{\"role\": \"user\", "
                   "\"content\": \"Hi\"}], \"thinking\": {\"type\": "
                   "\"enabled\", \"budget_tokens\": 1024}, \"output_config\": {\"effort\": "
                   "\"low\"}, \"container\": null, \"mcp_servers\": [], "
                   "\"context_management\": {\"edits\": [{\"type\": \"clear_thinking_20251015\", "
                   "\"keep\": \"all\"}]}}");
    REQUIRE_OK(status, &err);
    CHECK(a->kind == ASK_CHAT && a->stream && a->n_max == 77 && a->n_stops == 2);
    CHECK(str_is(a->stop[1], "bc"));
    CHECK_STR(a->model, "some-model");
    CHECK(a->sampling.temp == 0.25f && a->sampling.top_p == 0.5f && a->sampling.top_k == 7);
    CHECK_STR(talk_text(a), "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, "
                            "{\"role\": \"user\", \"content\": \"Hi\"}], "
                            "\"enable_thinking\": true, \"reasoning_effort\": \"low\"}");
}

TEST(reads_blocks) {
    CHECK_STR(talk_of("{\"max_tokens\": 1, \"system\": [{\"type\": \"text\", \"text\": \"A\", "
                      "\"cache_control\": {\"type\": \"ephemeral\"}}, "
                      "{\"type\": \"text\", \"text\": \"B\"}], \"messages\": [{\"role\": \"user\", "
                      "\"content\": [{\"type\": \"text\", "
                      "\"text\": \"one\"}, {\"type\": \"text\", \"text\": \"two\"}]}]}"),
              "{\"messages\": [{\"role\": \"system\", \"content\": \"A\\nB\"}, {\"role\": "
              "\"user\", \"content\": \"one\\ntwo\"}]}");
    CHECK_STR(talk_of("{\"max_tokens\": 1, \"thinking\": {\"type\": \"disabled\"}, \"messages\": ["
                      "{\"role\": \"user\", \"content\": \"weather?\"},"
                      "{\"role\": \"assistant\", \"content\": [{\"type\": \"thinking\", "
                      "\"thinking\": \"hm\", \"signature\": \"s\"}, "
                      "{\"type\": \"redacted_thinking\", \"data\": \"d\"}, {\"type\": \"text\", "
                      "\"text\": \"I \"}, {\"type\": \"text\", "
                      "\"text\": \"look\"}, {\"type\": \"tool_use\", \"id\": \"t2\", \"name\": "
                      "\"f\", \"input\": {\"a\": [1]}}, {\"type\": "
                      "\"tool_use\", \"id\": \"t1\", \"name\": \"g\", \"input\": {}}]},"
                      "{\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", "
                      "\"tool_use_id\": \"t1\", \"content\": \"ok\"}, {\"type\": "
                      "\"tool_result\", \"tool_use_id\": \"t2\", \"is_error\": true, \"content\": "
                      "[{\"type\": \"text\", \"text\": \"no\"}]}, "
                      "{\"type\": \"text\", \"text\": \"go on\"}]}]}"),
              "{\"messages\": [{\"role\": \"user\", \"content\": \"weather?\"}, {\"role\": "
              "\"assistant\", \"content\": \"I look\", "
              "\"reasoning_content\": \"hm\", \"tool_calls\": [{\"id\": \"t2\", \"type\": "
              "\"function\", \"function\": {\"name\": \"f\", "
              "\"arguments\": {\"a\": [1]}}}, {\"id\": \"t1\", \"type\": \"function\", "
              "\"function\": {\"name\": \"g\", \"arguments\": {}}}]}, "
              "{\"role\": \"tool\", \"content\": \"ok\", \"name\": \"g\", \"tool_call_id\": "
              "\"t1\"}, {\"role\": \"tool\", \"content\": "
              "\"Error: no\", \"name\": \"f\", \"tool_call_id\": \"t2\"}, {\"role\": \"user\", "
              "\"content\": \"go on\"}], \"enable_thinking\": "
              "false}");
}

TEST(continues_an_answer) {
    const ask *a = request(D, "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", "
                              "\"content\": \"1+1?\"}, {\"role\": \"assistant\", "
                              "\"content\": \"It is\"}]}");
    REQUIRE_OK(status, &err);
    CHECK(a->continues);
    a = request(D, "{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": "
                   "\"1+1?\"}, {\"role\": \"assistant\", \"content\": \"\"}]}");
    REQUIRE_OK(status, &err);
    CHECK(!a->continues);
    CHECK_STR(talk_text(a), "{\"messages\": [{\"role\": \"user\", \"content\": \"1+1?\"}]}");
    a = request(D, "{" HI "}");
    CHECK(a && !a->continues);
}

TEST(keeps_messages_of_which_nothing_is_shown) {
    CHECK_STR(talk_of("{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": "
                      "\"a\"}, {\"role\": \"assistant\", \"content\": "
                      "[{\"type\": \"redacted_thinking\", \"data\": \"d\"}]}, {\"role\": \"user\", "
                      "\"content\": \"b\"}]}"),
              "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "
              "\"content\": \"\"}, {\"role\": \"user\", "
              "\"content\": \"b\"}]}");
}

#define TOOLS                                                                                      \
    "\"tools\": [{\"name\": \"f\", \"description\": \"does f\", \"input_schema\": {\"type\": "     \
    "\"object\"}, \"strict\": true}]"

TEST(reads_tools) {
    const ask *a = request(D, "{" HI ", " TOOLS "}");
    REQUIRE_OK(status, &err);
    CHECK(a->tool_choice == ASK_TOOLS_AUTO && !a->one_call);
    CHECK_STR(line_of(a->tools),
              "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
              "\"description\": \"does f\", \"parameters\": {\"type\": \"object\"}}}]");
    CHECK_HAS(talk_text(a), ", \"tools\": [{\"type\"");
    a = request(D, "{\"tool_choice\": {\"type\": \"tool\", \"name\": \"f\", "
                   "\"disable_parallel_tool_use\": true}, " HI ", " TOOLS "}");
    REQUIRE_OK(status, &err);
    CHECK(a->tool_choice == ASK_TOOLS_NAMED && a->one_call && str_is(a->tool, "f"));
    a = request(D, "{" HI ", " TOOLS ", \"tool_choice\": {\"type\": \"any\"}}");
    CHECK(a && a->tool_choice == ASK_TOOLS_REQUIRED);
    a = request(D, "{" HI ", " TOOLS ", \"tool_choice\": {\"type\": \"none\"}}");
    REQUIRE_OK(status, &err);
    CHECK(a->tool_choice == ASK_TOOLS_NONE && !strstr(talk_text(a), "tools"));
}

#define SEARCH "{\"type\": \"web_search_20250305\", \"name\": \"web_search\", \"max_uses\": 8}"

/* What a coding agent sends. */
TEST(reads_an_agent) {
    const ask *a = request(
        D, "{" HI ", \"tools\": [" SEARCH ", {\"name\": \"f\", \"input_schema\": {\"type\": "
           "\"object\"}, \"input_examples\": [{\"a\": 1}], \"defer_loading\": true}, " SEARCH
           "], \"context_management\": {\"edits\": [{\"type\": \"clear_tool_uses_20250919\", "
           "\"keep\": {\"type\": \"tool_uses\", \"value\": 3}}]}}");
    REQUIRE_OK(status, &err);
    CHECK(!a->tools && a->tool_choice == ASK_TOOLS_NONE); /* the one that is left is deferred */
    CHECK(strstr(talk_text(a), "\"defer_loading\": true"));
    facts.strict_fields = false;
    a = request(D, "{" HI ", \"tools\": [{\"type\": \"tool_search_tool_bm25_20251119\", "
                   "\"name\": \"s\"}, {\"name\": \"f\", \"input_schema\": {\"type\": "
                   "\"object\"}, \"defer_loading\": true}]}");
    REQUIRE_OK(status, &err);
    CHECK_STR(line_of(a->tools), "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                                 "\"parameters\": {\"type\": \"object\"}}}]");
    facts.strict_fields = true;
    a = request(D, "{" HI ", \"tools\": [" SEARCH "]}");
    REQUIRE_OK(status, &err);
    CHECK(!a->tools && !strstr(talk_text(a), "tools"));
#define FOUND                                                                                      \
    "\"max_tokens\": 1, \"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": "        \
    "\"tool_use\", \"id\": \"t\", \"name\": \"ToolSearch\", \"input\": {}}]}, {\"role\": "         \
    "\"user\", "                                                                                   \
    "\"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"t\", \"content\": [{\"type\": "  \
    "\"tool_reference\", \"tool_name\": \"f\"}]}]}]"
    a = request(D, "{" FOUND ", \"tools\": [{\"name\": \"f\", \"input_schema\": {}, "
                   "\"defer_loading\": true}, {\"name\": \"DeferredToolPlaceholder\", "
                   "\"input_schema\": {}, \"defer_loading\": true}]}");
    REQUIRE_OK(status, &err);
    CHECK_STR(line_of(a->tools), "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                                 "\"parameters\": {}}}]");
    CHECK_STR(talk_of("{\"max_tokens\": 1, \"messages\": [{\"role\": \"assistant\", \"content\": "
                      "[{\"type\": \"tool_use\", \"id\": \"t\", \"name\": \"ToolSearch\", "
                      "\"input\": {}}]}, {\"role\": \"user\", \"content\": [{\"type\": "
                      "\"tool_result\", \"tool_use_id\": \"t\", \"content\": [{\"type\": "
                      "\"tool_reference\", \"tool_name\": \"f\"}, {\"type\": "
                      "\"tool_reference\", \"tool_name\": \"g\"}]}]}]}"),
              "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": "
              "[{\"id\": \"t\", \"type\": \"function\", \"function\": {\"name\": "
              "\"ToolSearch\", \"arguments\": {}}}]}, {\"role\": \"tool\", \"content\": "
              "\"\", \"name\": \"ToolSearch\", \"tool_call_id\": \"t\", \"tool_references\": "
              "[\"f\", \"g\"]}]}");
}

/* The count of a request's tokens takes the whole request. */
TEST(reads_counts) {
    static const char text[] =
        "{" HI ", \"stream\": true, \"temperature\": 1, \"top_k\": 0, \"top_p\": 1, "
        "\"stop_sequences\": [\"a\"], \"metadata\": {}, \"service_tier\": \"auto\"}";
    ask *a = ask_new(&facts);
    REQUIRE(a);
    REQUIRE_OK(llm_json_parse(&a->doc, text, sizeof text - 1, "request", &err), &err);
    CHECK_OK(anthropic_read_count(a, &facts, &param, &err), &err);
    ask_free(a);
}

TEST(reads_a_schema) {
    const ask *a = request(D, "{" HI ", \"output_config\": {\"format\": {\"type\": "
                              "\"json_schema\", \"schema\": {\"type\": \"array\"}}}}");
    REQUIRE_OK(status, &err);
    CHECK(a->form == ASK_SCHEMA && str_is(a->form_text, "{\"type\": \"array\"}"));
}

TEST(refuses_what_it_does_not_do) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"[]", "object"},
        {"{}", "\"messages\" must be a list"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}",
         "\"max_tokens\" is missing"},
        {"{" HI ", \"temprature\": 1}", "did you mean \"temperature\""},
        {"{" HI ", \"temperature\": \"1\"}", "\"temperature\" must be a number"},
        {"{" HI ", \"top_k\": 1.5}", "top_k"},
        {"{" HI ", \"stream\": 1}", "\"stream\" must be true or false"},
        {"{" HI ", \"stop_sequences\": [\"\"]}", "is empty"},
        {"{" HI ", \"model\": 3}", "\"model\" must be a string"},
        {"{" HI ", \"system\": 3}", "\"system\" must be a string or a list"},
        {"{" HI ", \"system\": [{\"type\": \"image\"}]}",
         "system: content[0]: image input is not supported"},
        {"{" HI ", \"container\": \"c\"}",
         "\"container\" is not supported: this server runs no code"},
        {"{" HI ", \"mcp_servers\": [{}]}", "\"mcp_servers\" is not supported"},
        {"{" HI ", \"context_management\": {\"edits\": [{\"type\": \"compact_2026\"}]}}",
         "edits[0]"},
        {"{" HI ", \"thinking\": {\"type\": \"on\"}}",
         "\"enabled\", \"disabled\", \"adaptive\" or \"between_tools\""},
        {"{" HI ", \"thinking\": {\"tpye\": \"on\"}}",
         "thinking: unknown field \"tpye\"; did you mean \"type\"?"},
        {"{" HI ", \"output_config\": {\"effort\": \"huge\"}}", "output_config: \"effort\""},
        {"{" HI ", \"output_config\": {\"format\": {\"type\": \"text\", \"schema\": {}}}}",
         "json_schema"},
        {"{" HI ", \"output_config\": {\"task_budget\": {\"total\": 3}}}", "limit the answer"},
        {"{" HI ", \"tools\": {}}", "\"tools\" must be a list"},
        {"{" HI ", \"tools\": [{\"type\": \"bash_20250124\", \"name\": \"bash\"}]}",
         "tools[0]: the tool \"bash_20250124\" of Anthropic's own is not supported"},
        {"{" HI ", \"tools\": [" SEARCH "], \"tool_choice\": {\"type\": \"tool\", \"name\": "
         "\"web_search\"}}",
         "tool_choice: there is no tool \"web_search\""},
        {"{" HI ", \"tools\": [" SEARCH "], \"tool_choice\": {\"type\": \"any\"}}",
         "there are no tools"},
        {"{" HI ", \"tools\": [{\"name\": \"f\"}]}", "tools[0]: \"input_schema\" is missing"},
        {"{" HI ", " TOOLS ", \"tool_choice\": {\"type\": \"tool\", \"name\": \"g\"}}",
         "there is no tool \"g\""},
        {"{" HI ", " TOOLS ", \"tool_choice\": {\"type\": \"tool\"}}", "\"name\" is missing"},
        {"{" HI ", \"tool_choice\": {\"type\": \"any\"}}", "there are no tools"},
        {"{" HI ", \"tool_choice\": \"any\"}", "tool_choice: an object is expected, not a string"},
        {"{\"max_tokens\": -1, \"messages\": []}", "\"max_tokens\" is -1"},
        {"{\"max_tokens\": 1, \"messages\": []}", "at least one message"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": []}]}",
         "messages[0]: \"content\" is an empty list"},
        {"{\"max_tokens\": 1, \"messages\": [3]}",
         "messages[0]: an object is expected, not a number"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"tool\", \"content\": \"\"}]}",
         "\"role\" must be \"user\", \"assistant\" or \"system\", not \"tool\""},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"txt\"}]}]}",
         "messages[0]: content[0]: a block of type \"txt\" is not supported: this server reads "
         "text, "
         "image, document, search_result, tool_use"},
        {"{" HI ", \"system\": [{\"type\": \"txt\"}]}",
         "system: content[0]: a block of type \"txt\" is not supported: this server reads text "
         "here"},
        {"{" HI ", \"thinking\": {\"type\": \"on\"}}", "\"between_tools\", not \"on\""},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\"}]}",
         "messages[0]: \"content\" is missing"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": 3}]}",
         "\"content\" must be a string or an array, not a number"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"image\", \"source\": {}}]}]}",
         "messages[0]: content[0]: image input is not supported"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"document\"}]}]}",
         "\"source\" is missing"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"text\", \"text\": \"\", \"x\": 1}]}]}",
         "unknown field \"x\""},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"tool_result\", \"tool_use_id\": \"t\"}]}]}",
         "tool_use_id \"t\" is not the id of a tool_use block"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
         "\"tool_use\", \"id\": \"t\", \"name\": \"f\", "
         "\"input\": {}}]}]}",
         "only an assistant's message"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": "
         "\"tool_use\", \"id\": \"t\", \"name\": \"f\", "
         "\"input\": {}}]}]}",
         "the last message has tool_use"},
        {"{\"max_tokens\": 1, \"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": "
         "\"tool_use\", \"id\": \"t\", \"name\": \"f\", "
         "\"input\": {}}]}, {\"role\": \"user\", \"content\": [{\"type\": \"tool_result\", "
         "\"tool_use_id\": \"t\", \"content\": [{\"type\": "
         "\"sound\"}]}]}]}",
         "messages[1]: content[0]: content[0]: a result of type \"sound\" is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(refuses(D, cases[i].text, cases[i].words));
}

/* A picture in a result is part of each further request; tools of Anthropic's own are left out. */
TEST(leaves_out_what_it_cannot_read) {
    facts.strict_fields = false;
    const ask *a = request(
        D,
        "{\"max_tokens\": 1, \"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": "
        "\"tool_use\", \"id\": \"t\", \"name\": \"f\", \"input\": {}}]}, {\"role\": \"user\", "
        "\"content\": [{\"type\": \"tool_result\", \"tool_use_id\": \"t\", \"content\": "
        "[{\"type\": "
        "\"text\", \"text\": \"a\"}, {\"type\": \"image\"}, {\"type\": \"document\"}]}]}], "
        "\"tools\": [{\"type\": \"tool_search_tool_regex_20251119\", \"name\": \"s\"}, {\"name\": "
        "\"f\", \"input_schema\": {}, \"new\": 1}]}");
    facts.strict_fields = true;
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    static const char want[] =
        "a\\n[picture left out: this model reads only text]\\n[file left out";
    CHECK(strstr(talk_text(a), want));
    CHECK(!strstr(line_of(a->tools), "tool_search"));
    CHECK_STR(a->ignored.names, "tools.tool_search_tool_regex_20251119, tools.new");
}

#define TALK(messages)     "{\"max_tokens\": 0, \"messages\": [" messages "]"
#define SAYS(role, blocks) "{\"role\": \"" role "\", \"content\": [" blocks "]}"
#define TEXT(text)         "{\"type\": \"text\", \"text\": \"" text "\"}"
#define THINKS             "{\"type\": \"thinking\", \"thinking\": \"hm\", \"signature\": \"\"}"
#define CALL(id, name)                                                                             \
    "{\"type\": \"tool_use\", \"id\": \"" id "\", \"name\": \"" name                               \
    "\", \"input\": {\"of\": \"" id "\"}}"
#define RESULT(id, text)                                                                           \
    "{\"type\": \"tool_result\", \"tool_use_id\": \"" id "\", \"content\": \"" text "\"}"
#define EDITS(edits)     ", \"context_management\": {\"edits\": [" edits "]}}"
#define DOCUMENT(source) "{\"type\": \"document\", \"source\": " source ", "
#define SUMMARY(more)    "{\"type\": \"compaction\", \"content\": \"sum\"" more "}"

/* A request, what its conversation has and lacks, and which edits the answer names. */
static const struct {
    const char *body, *has, *lacks, *applied;
} edited[] = {
    /* documents */
    {TALK(SAYS("user", DOCUMENT("{\"type\": \"text\", \"media_type\": \"text/plain\", \"data\": "
                                "\"D\"}") "\"title\": \"T\", \"context\": \"C\", \"citations\": "
                                          "{\"enabled\": false}}, " TEXT("q"))) "}",
     "\"<document>\\n<title>T</title>\\n<context>C</context>\\nD\\n</document>\\nq\"", "zzz", NULL},
    {TALK(SAYS("user", DOCUMENT("{\"type\": \"content\", \"content\": [" TEXT("a") ", " TEXT(
                           "b") "]}") "\"title\": null}")) "}",
     "\"<document>\\na\\nb\\n</document>\"", "zzz", NULL},
    {TALK(SAYS("user", "{\"type\": \"search_result\", \"source\": \"S\", \"title\": \"T\", "
                       "\"content\": [" TEXT("a") "]}")) "}",
     "<title>T</title>\\n<source>S</source>\\na", "zzz", NULL},
    {TALK(SAYS("assistant", CALL("c1", "f")) ", " SAYS(
         "user",
         "{\"type\": \"tool_result\", \"tool_use_id\": \"c1\", \"content\": [" DOCUMENT(
             "{\"type\": \"content\", \"content\": \"D\"}") "\"title\": \"T\"}, "
                                                            "{\"type\": \"document\"}]}")) "}",
     "<document>\\n<title>T</title>\\nD\\n</document>\\n[file left out", "zzz", NULL},
    /* compactions */
    {TALK(SAYS("user", TEXT("old")) ", " SAYS(
         "assistant", TEXT("x") ", " SUMMARY("") ", " TEXT("rest")) ", " SAYS("user",
                                                                              TEXT("new"))) "}",
     "[{\"role\": \"user\", \"content\": \"Summary of the conversation before this "
     "point:\\n\\nsum\"}, "
     "{\"role\": \"assistant\", \"content\": \"rest\"}, {\"role\": \"user\", \"content\": "
     "\"new\"}]",
     "old", NULL},
    {TALK(SAYS("user", TEXT("old")) ", " SAYS("assistant", SUMMARY("")) ", " SAYS("user",
                                                                                  TEXT("new"))) "}",
     "sum\"}, {\"role\": \"user\", \"content\": \"new\"}]", "old", NULL},
    {TALK(SAYS("user", TEXT("old")) ", " SAYS(
         "assistant", "{\"type\": \"compaction\", \"content\": null}, " TEXT("x"))) "}",
     "old", "sum", NULL},
    {TALK(SAYS("user", TEXT("a")) ", " SAYS(
         "assistant", "{\"type\": \"mcp_tool_listing\", \"mcp_server_name\": \"s\", \"tools\": "
                      "[]}, " TEXT("b"))) "}",
     "\"b\"", "zzz", NULL},
    /* edits */
    {TALK(SAYS("user", TEXT("q")) ", " SAYS("assistant", THINKS ", " CALL("c1", "f")) ", " SAYS(
         "user", RESULT("c1", "one")) ", " SAYS("assistant", THINKS ", " TEXT("a")))
         EDITS("{\"type\": \"clear_thinking_20251015\"}"),
     "\"reasoning_content\": \"hm\", \"tool_calls\"", "zzz", "{\"applied_edits\": []}"},
    {TALK(SAYS("user", TEXT("q")) ", " SAYS("assistant", THINKS ", " TEXT("a")) ", " SAYS(
         "user", TEXT("r")) ", " SAYS("assistant", THINKS) ", " SAYS("user", TEXT("s")))
         EDITS("{\"type\": \"clear_thinking_20251015\", \"keep\": {\"type\": \"thinking_turns\", "
               "\"value\": 1}}"),
     "\"content\": \"a\"}, {\"role\": \"user\", \"content\": \"r\"}, {\"role\": \"assistant\", "
     "\"content\": \"\", \"reasoning_content\": \"hm\"}",
     "\"a\", \"reasoning", "\"cleared_thinking_turns\": 1"},
    {TALK(SAYS("user", TEXT("q")) ", " SAYS("assistant", THINKS) ", " SAYS("user", TEXT("r")))
         EDITS("{\"type\": \"clear_thinking_20251015\", \"keep\": {\"type\": \"thinking_turns\", "
               "\"value\": 0}}"),
     "[{\"role\": \"user\", \"content\": \"q\"}, {\"role\": \"user\", \"content\": \"r\"}]", "hm",
     "\"cleared_thinking_turns\": 1"},
#define USES                                                                                       \
    SAYS("user", TEXT("q"))                                                                        \
    ", " SAYS("assistant", CALL("c1", "f") ", " CALL("c2", "g") ", " CALL("c3", "f")) ", " SAYS(   \
        "user", RESULT("c1", "one") ", " RESULT("c2", "two") ", " RESULT("c3", "three"))
    {TALK(USES)
         EDITS("{\"type\": \"clear_tool_uses_20250919\", \"trigger\": {\"type\": \"tool_uses\", "
               "\"value\": 2}, \"keep\": {\"type\": \"tool_uses\", \"value\": 1}, "
               "\"exclude_tools\": [\"g\"], \"clear_tool_inputs\": true}"),
     "\"content\": \"[result cleared to save room]\", \"name\": \"f\", \"tool_call_id\": \"c1\"}, "
     "{\"role\": \"tool\", \"content\": \"two\", \"name\": \"g\", \"tool_call_id\": \"c2\"}, "
     "{\"role\": \"tool\", \"content\": \"three\"",
     "\"of\": \"c1\"", "\"cleared_tool_uses\": 1"},
    {TALK(USES)
         EDITS("{\"type\": \"clear_tool_uses_20250919\", \"trigger\": {\"type\": \"tool_uses\", "
               "\"value\": 3}, \"keep\": {\"type\": \"tool_uses\", \"value\": 0}}"),
     "one", "cleared", "{\"applied_edits\": []}"},
    {TALK(USES) EDITS("{\"type\": \"clear_tool_uses_20250919\", \"trigger\": {\"type\": "
                      "\"input_tokens\", \"value\": 0}, \"keep\": {\"type\": \"tool_uses\", "
                      "\"value\": 0}, \"clear_at_least\": {\"type\": \"input_tokens\", \"value\": "
                      "9}}"),
     "one", "cleared", "{\"applied_edits\": []}"},
    {TALK(USES) EDITS("{\"type\": \"clear_tool_uses_20250919\"}, {\"type\": \"compact_20260112\"}"),
     "one", "cleared", "{\"applied_edits\": []}"},
    /* a wish for a summary */
    {TALK(SAYS("user", TEXT("q")) ", " SAYS("assistant", TEXT("a"))) ", \"compaction\": {\"type\": "
                                                                     "\"summarize\"}, " TOOLS "}",
     "{\"role\": \"user\", \"content\": \"Sum up this conversation", "tools", NULL},
    {TALK(SAYS("user", TEXT("q"))) ", \"compaction\": {\"type\": \"summarize\", \"instructions\": "
                                   "\"In one word.\"}}",
     "{\"role\": \"user\", \"content\": \"In one word.\"}]", "Sum up", NULL},
    /* when it thinks, and hints */
    {TALK(
         SAYS("user", TEXT("q"))) ", \"thinking\": {\"type\": \"between_tools\"}, \"diagnostics\": "
                                  "{\"previous_message_id\": \"msg_1\"}}",
     "\"enable_thinking\": false", "zzz", NULL},
    {TALK(USES) ", \"thinking\": {\"type\": \"between_tools\"}}", "\"enable_thinking\": true",
     "zzz", NULL},
    {TALK(SAYS("user", TEXT("q"))) ", \"thinking\": {\"type\": \"adaptive\", \"display\": "
                                   "\"updates\", \"block_binding\": {}}}",
     "\"enable_thinking\": true", "zzz", NULL},
};

TEST(edits_conversations) {
    for (size_t i = 0; i < sizeof edited / sizeof *edited; i++) {
        facts.strict_fields = false;
        const ask *a = request(D, edited[i].body);
        facts.strict_fields = true;
        if (!CHECK_MSG(a, "%s: %s", edited[i].body, err.msg))
            continue;
        const anthropic_ask *own = a->own;
        CHECK_HAS(talk_text(a), edited[i].has);
        CHECK_MSG(!strstr(talk_text(a), edited[i].lacks), "%s in %s", edited[i].lacks,
                  talk_text(a));
        CHECK_MSG((own->applied.s != NULL) == (edited[i].applied != NULL), "%s", edited[i].body);
        if (own->applied.s && edited[i].applied)
            CHECK_HAS(own->applied.s, edited[i].applied);
        CHECK(a->n_max == 0);
    }
}

#define ADDS(tool)    "{\"type\": \"tool_addition\", \"tool\": " tool "}"
#define REMOVES(name) "{\"type\": \"tool_removal\", \"tool\": " NAMED(name) "}"
#define NAMED(name)   "{\"type\": \"tool_reference\", \"name\": \"" name "\"}"
#define DEFINED(name)                                                                              \
    "{\"type\": \"tool_definition\", \"definition\": {\"name\": \"" name                           \
    "\", \"input_schema\": {\"type\": \"object\"}}}"

TEST(changes_of_tools) {
    static const struct {
        const char *messages, *choice, *has, *lacks;
    } rows[] = {
        {SAYS("user", TEXT("q")) ", " SAYS("system", ADDS(DEFINED("g"))), "g", "\"g\"", "zzz"},
        {SAYS("user", TEXT("q")) ", " SAYS("system", ADDS(DEFINED("g")) ", " REMOVES("f")), "g",
         "\"g\"", "\"f\""},
        {SAYS("user", TEXT("q")) ", " SAYS("system", REMOVES("f")) ", " SAYS(
             "system", ADDS(NAMED("f")) ", " TEXT("It is back.")),
         "f", "It is back.", "zzz"},
        {SAYS("user", SUMMARY(", \"tool_changes\": [" ADDS(DEFINED("g")) "]")) ", " SAYS("user",
                                                                                         TEXT("q")),
         "g", "sum", "zzz"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[2000];
        snprintf(text, sizeof text,
                 TALK("%s") ", \"tool_choice\": {\"type\": \"tool\", \"name\": \"%s\"}, " TOOLS "}",
                 rows[i].messages, rows[i].choice);
        const ask *a = request(D, text);
        if (!CHECK_MSG(a, "%s: %s", text, err.msg))
            continue;
        CHECK_HAS(talk_text(a), rows[i].has);
        CHECK_MSG(!strstr(talk_text(a), rows[i].lacks), "%s", talk_text(a));
    }
    const ask *a =
        request(D, TALK(SAYS("user", TEXT("q")) ", " SAYS("system", REMOVES("f"))) ", " TOOLS "}");
    CHECK(a && !a->tools);
    a = request(D, TALK(SAYS("user", TEXT("q")) ", " SAYS("system", ADDS(DEFINED("g")))) "}");
    CHECK(a && a->tools && a->tools->n == 1);
    refuses(D, TALK(SAYS("user", REMOVES("g"))) ", " TOOLS "}",
            "messages[0]: tool_removal: there is no tool \"g\"");
    refuses(D, TALK(SAYS("user", ADDS("{\"type\": \"mcp_toolset_reference\"}"))) "}",
            "messages[0]: tool_addition: this server asks no MCP servers");
    refuses(D, TALK(SAYS("user", ADDS("7"))) "}", "tool_addition: \"tool\" must be");
    refuses(D, TALK(SAYS("user", TEXT("q"))) ", \"tools\": 7}", "\"tools\" must be a list");
}

TEST(refuses_edits) {
    static const struct {
        const char *body, *words;
    } rows[] = {
        {TALK(SAYS("user", DOCUMENT("{\"type\": \"base64\", \"media_type\": \"application/pdf\", "
                                    "\"data\": \"\"}") "\"title\": \"T\"}")) "}",
         "messages[0]: content[0]: a document must be a text"},
        {TALK(SAYS("user", DOCUMENT("{\"type\": \"text\", \"data\": \"a\"}") "\"citations\": "
                                                                             "{\"enabled\": "
                                                                             "true}}")) "}",
         "messages[0]: content[0]: \"citations\" are not supported"},
        {TALK(SAYS("user",
                   DOCUMENT("{\"type\": \"content\", \"content\": [{\"type\": \"x\"}]}") "\"title\""
                                                                                         ": "
                                                                                         "null"
                                                                                         "}")) "}",
         "content[0]: content[0]: a document has blocks"},
        {TALK(SAYS("user", TEXT("q"))) EDITS("{\"type\": \"x\"}"),
         "context_management: edits[0]: \"type\" must be \"clear_thinking_20251015\""},
        {TALK(SAYS("user", TEXT("q")))
             EDITS("{\"type\": \"clear_tool_uses_20250919\", \"keep\": {\"type\": \"tool_uses\"}}"),
         "context_management: edits[0]: \"keep\" must be {\"type\": \"tool_uses\", \"value\": N}"},
        {TALK(SAYS("user", TEXT("q")))
             EDITS("{\"type\": \"clear_tool_uses_20250919\", \"exclude_tools\": [7]}"),
         "names of tools must be strings"},
        {TALK(SAYS("user", TEXT("a long text")))
             EDITS("{\"type\": \"compact_20260112\", \"trigger\": {\"type\": \"input_tokens\", "
                   "\"value\": 1}}"),
         "more than the edit's \"trigger\""},
        {TALK(SAYS("user", TEXT("q"))) EDITS("1, 2, 3, 4, 5"),
         "context_management: there are 5 edits; at most 4"},
        {TALK(SAYS("user", TEXT("q"))) ", \"context_management\": {\"edits\": 7}}",
         "\"context_management\" must be an object with a list \"edits\""},
        {TALK(SAYS("user", TEXT("q"))) ", \"compaction\": {\"type\": \"x\"}}",
         "compaction: \"type\" must be \"summarize\""},
        {TALK(SAYS("user", TEXT("q"))) ", \"compaction\": {\"type\": \"summarize\"}" EDITS(
             "{\"type\": \"compact_20260112\"}"),
         "compaction: it cannot be used together with \"context_management\""},
        {TALK(SAYS("user", TEXT("q"))) ", \"thinking\": {\"type\": \"x\"}}",
         "\"adaptive\" or \"between_tools\""},
        {"{\"messages\": [" SAYS("user", TEXT("q")) "]}", "\"max_tokens\" is missing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuses(D, rows[i].body, rows[i].words);
}

TEST(writes_a_summary) {
    made_up *m = make_answer(
        request(D, TALK(SAYS("user", TEXT("q"))) ", \"compaction\": {\"type\": \"summarize\"}}"));
    add_part(m, PART_REASONING, "hm");
    add_part(m, PART_CONTENT, "in ");
    add_part(m, PART_CONTENT, "short");
    CHECK_HAS(whole_text(D, m), "\"content\": [{\"type\": \"compaction\", \"content\": \"in "
                                "short\"}], \"stop_reason\": \"compaction\"");
    const char *stream = stream_text(D, m);
    CHECK_HAS(stream, "\"content_block\": {\"type\": \"compaction\", \"content\": null}}");
    CHECK_HAS(stream, "\"delta\": {\"type\": \"compaction_delta\", \"content\": \"in short\"}}");
    CHECK_HAS(stream, "\"stop_reason\": \"compaction\"");
    m = make_answer(
        request(D, TALK(SAYS("user", TEXT("q"))) EDITS("{\"type\": \"clear_thinking_20251015\"}")));
    add_part(m, PART_CONTENT, "a");
    CHECK_HAS(whole_text(D, m), "\"context_management\": {\"applied_edits\": []}, \"usage\"");
    CHECK_HAS(stream_text(D, m), "}, \"context_management\": {\"applied_edits\": []}, \"usage\"");
}

TEST(writes_a_message) {
    made_up *m = make_answer(request(D, "{\"model\": \"m\", " HI "}"));
    add_part(m, PART_REASONING, "hm");
    add_part(m, PART_CONTENT, "A \"b\"\n");
    add_call(m, "toolu_1", "f", "{\"a\": 1}");
    m->choice.finish = FINISH_CALLS;
    m->x.counts.n_reasoning = 2;
    const char *text = whole_text(D, m);
    CHECK_STR(text, "{\"id\": \"msg_abc\", \"type\": \"message\", \"role\": \"assistant\", "
                    "\"model\": \"m\", \"content\": [{\"type\": "
                    "\"thinking\", \"signature\": \"\", \"thinking\": \"hm\"}, {\"type\": "
                    "\"text\", \"text\": \"A \\\"b\\\"\\n\"}, {\"type\": "
                    "\"tool_use\", \"id\": \"toolu_1\", \"name\": \"f\", \"input\": {\"a\": 1}}], "
                    "\"stop_reason\": \"tool_use\", "
                    "\"stop_sequence\": null, \"usage\": {\"input_tokens\": 8, "
                    "\"cache_creation_input_tokens\": 0, "
                    "\"cache_read_input_tokens\": 12, \"output_tokens\": 5, "
                    "\"output_tokens_details\": {\"thinking_tokens\": 2}}}");
}

TEST(writes_why_it_ended) {
    static const struct {
        finish f;
        bool full;
        const char *reason;
    } cases[] = {{FINISH_STOP, false, "\"end_turn\""},
                 {FINISH_LENGTH, false, "\"max_tokens\""},
                 {FINISH_LENGTH, true, "\"model_context_window_exceeded\""},
                 {FINISH_STOP_STRING, false, "\"stop_sequence\""},
                 {FINISH_CALLS, false, "\"tool_use\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made_up *m = make_answer(request(D, "{" HI "}"));
        m->choice.finish = cases[i].f;
        m->choice.context_full = cases[i].full;
        m->choice.stop = str("END");
        const char *text = whole_text(D, m);
        const json_value *v = parsed(text, strlen(text));
        CHECK(at_is(v, "stop_reason", cases[i].reason));
        CHECK(at_is(v, "stop_sequence", cases[i].f == FINISH_STOP_STRING ? "\"END\"" : "null"));
        CHECK(at_is(v, "model", "\"toy\""));
    }
}

/* Joins a stream as clients do; the text of the content as JSON goes to *out. */
static void join_stream(const char *text, llm_json_out *out) {
    llm_json_out block = {0};
    int n_blocks = 0;
    bool open = false;
    for (const char *at = text; *at;) {
        const char *end = strstr(at, "\n\n"), *data = strstr(at, "\ndata: ");
        REQUIRE(end && data && data < end && strncmp(at, "event: ", 7) == 0);
        const json_value *v = parsed(data + 7, (size_t)(end - data - 7));
        REQUIRE(v);
        const json_value *type = llm_json_get(v, "type");
        CHECK(type->n == (size_t)(data - at - 7) && memcmp(type->s, at + 7, type->n) == 0);
        if (llm_json_is(type, "content_block_start")) {
            CHECK(!open && at_path(v, "index")->number == n_blocks);
            open = true;
            const json_value *b = at_path(v, "content_block"), *kind = llm_json_get(b, "type");
            llm_json_put_text(out, n_blocks++ ? ", " : "");
            if (llm_json_is(kind, "tool_use")) {
                llm_json_put_value(out, at_path(b, "id"));
                llm_json_put_value(out, at_path(b, "name"));
            }
            block.n = 0;
        } else if (llm_json_is(type, "content_block_delta")) {
            CHECK(open && at_path(v, "index")->number == n_blocks - 1);
            const json_value *d = at_path(v, "delta");
            const char *const names[] = {"text", "thinking", "partial_json"};
            for (int i = 0; i < 3; i++) {
                const json_value *piece = llm_json_get(d, names[i]);
                if (piece)
                    llm_json_put(&block, piece->s, piece->n);
            }
        } else if (llm_json_is(type, "content_block_stop")) {
            CHECK(open);
            open = false;
            llm_json_put_string(out, (ggl_str){block.s ? block.s : "", block.n});
        }
        at = end + 2;
    }
    CHECK(!open);
    ggl_free(block.s);
}

/* What the parts say, joined by kinds, in the same form. */
static void join_parts(const made_up *m, llm_json_out *out) {
    llm_json_out block = {0};
    int n_blocks = 0;
    for (size_t i = 0; i < m->n_parts; i++) {
        const answer_part *p = &m->part[i];
        const bool follows = i > 0 && p->kind != PART_CALL && m->part[i - 1].kind == p->kind;
        if (!follows) {
            if (n_blocks)
                llm_json_put_string(out, (ggl_str){block.s ? block.s : "", block.n});
            llm_json_put_text(out, n_blocks++ ? ", " : "");
            block.n = 0;
        }
        if (p->kind == PART_CALL) {
            llm_json_put_string(out, p->id);
            llm_json_put_string(out, p->name);
        }
        const ggl_str s = p->kind == PART_CALL ? p->arguments : p->text;
        llm_json_put(&block, s.s, s.n);
    }
    if (n_blocks)
        llm_json_put_string(out, (ggl_str){block.s ? block.s : "", block.n});
    ggl_free(block.s);
}

TEST(streams_say_the_same) {
    static const char *const words[] = {"a", "b\n", "\xc3\xa9", "\"", "\\", "</x>"};
    uint64_t state = sample_seed();
    for (int i = 0; i < 300; i++) {
        made_up *m = make_answer(request(D, "{\"stream\": true, " HI "}"));
        const int n = (int)next_number(&state, 12);
        for (int k = 0; k < n; k++) {
            const uint32_t kind = next_number(&state, 5);
            if (kind == 0)
                add_call(m, "id", "f", "{\"x\": \"\\u0001\"}");
            else
                add_part(m, kind == 1 ? PART_REASONING : PART_CONTENT,
                         words[next_number(&state, 6)]);
        }
        llm_json_out got = {0}, want = {0};
        call_piece = next_number(&state, 4);
        const char *text = stream_text(D, m);
        join_stream(text, &got);
        join_parts(m, &want);
        CHECK_STR(got.s ? got.s : "", want.s ? want.s : "");
        CHECK_HAS(text, "event: message_start\ndata: {\"type\": \"message_start\", \"message\": "
                        "{\"id\": \"msg_abc\"");
        CHECK_HAS(text, "event: ping\ndata: {\"type\": \"ping\"}\n\n");
        CHECK_HAS(text, "\"delta\": {\"stop_reason\": \"end_turn\", \"stop_sequence\": null}, "
                        "\"usage\": {\"input_tokens\": 8");
        CHECK_HAS(text, "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\n");
        ggl_free(got.s);
        ggl_free(want.s);
    }
}

TEST(hides_thinking) {
    made_up *m = make_answer(
        request(D, "{\"thinking\": {\"type\": \"adaptive\", \"display\": \"omitted\"}, " HI "}"));
    add_part(m, PART_REASONING, "secret");
    add_part(m, PART_CONTENT, "open");
    CHECK(!strstr(whole_text(D, m), "secret"));
    const char *text = stream_text(D, m);
    CHECK(!strstr(text, "secret"));
    CHECK_HAS(text, "\"type\": \"thinking\"");
}

TEST(writes_errors) {
    const api_error e = {.status = 429, .type = "rate_limit", .message = "too \"many\""};
    llm_json_out out = {0};
    D->error(&e, false, &out);
    CHECK_STR(written(&out), "{\"type\": \"error\", \"error\": {\"type\": \"rate_limit_error\", "
                             "\"message\": \"too \\\"many\\\"\"}, \"request_id\": null}");
    D->error(&e, true, &out);
    CHECK_STR(written(&out), "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": "
                             "\"rate_limit_error\", \"message\": \"too "
                             "\\\"many\\\"\"}, \"request_id\": null}\n\n");
    const api_error named = {
        .status = 404, .type = "not_found", .message = "no", .request_id = "req_7"};
    D->error(&named, false, &out);
    CHECK_STR(written(&out), "{\"type\": \"error\", \"error\": {\"type\": \"not_found_error\", "
                             "\"message\": \"no\"}, \"request_id\": \"req_7\"}");
}
