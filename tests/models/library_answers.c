/* Calls of llm/llm.h for answers: the sampler's stages, tools, messages; and the keys of a model. */
#include "library_test.h"

#include <math.h>
#include <stddef.h>

/* --- sampling --------------------------------------------------------------------------------- */

TEST(stages_of_the_sampler) {
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    written plain, t;
    llm_generate_params p = llm_generate_default();
    p.n_max = 40;
    p.seed = 7;
    p.temp = 1.5f;
    generate(c, "Once upon a time", &p, &plain);
    /* each changes the text of this seed; 0 changes nothing */
    static const struct {
        size_t at;
        float value;
    } change[] = {
        {offsetof(llm_generate_params, frequency_penalty), 2},
        {offsetof(llm_generate_params, presence_penalty), 2},
        {offsetof(llm_generate_params, dynatemp_range), 1.4f},
        {offsetof(llm_generate_params, typical_p), 0.1f},
        {offsetof(llm_generate_params, top_n_sigma), 0.1f},
        {offsetof(llm_generate_params, xtc_probability), 1},
        {offsetof(llm_generate_params, dry_multiplier), 20},
    };
    for (size_t i = 0; i < sizeof change / sizeof *change; i++) {
        llm_generate_params q = p;
        if (change[i].at == offsetof(llm_generate_params, dry_multiplier))
            q.dry_allowed_length = 1, q.temp = 0, q.repeat_penalty = 1;
        written before;
        generate(c, "Once upon a time", &q, &before);
        *(float *)((char *)&q + change[i].at) = change[i].value;
        generate(c, "Once upon a time", &q, &t);
        CHECK_MSG(strcmp(t.s, before.s) != 0, "row %zu has no effect", i);
    }
    llm_generate_params q = p;
    q.mirostat = 2;
    q.mirostat_tau = 1;
    generate(c, "Once upon a time", &q, &t);
    CHECK(strcmp(t.s, plain.s) != 0);
    q = p;
    q.samplers = "top_k";
    q.top_k = 1;
    generate(c, "Once upon a time", &q, &t);
    q = greedy(40);
    generate(c, "Once upon a time", &q, &plain);
    CHECK_STR(t.s, plain.s);
    llm_close(c);
}

/* Numbers by name give the text of the members, and have priority over them. */
TEST(numbers_by_name) {
    static const llm_number numbers[] = {{"temperature", 1.5}, {"typical_p", 0.1}, {"top_k", 0}},
                            unknown = {"typicl_p", 0.1}, too_large = {"top_p", 2}, nameless = {0};
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    written by_member, by_name, plain;
    llm_generate_params p = llm_generate_default(), q = p;
    p.n_max = q.n_max = 40;
    generate(c, "Once upon a time", &q, &plain);
    p.temp = 1.5f, p.typical_p = 0.1f, p.top_k = 0;
    generate(c, "Once upon a time", &p, &by_member);
    q.number = numbers, q.n_numbers = 3;
    q.typical_p = 0.9f;
    generate(c, "Once upon a time", &q, &by_name);
    CHECK_STR(by_name.s, by_member.s);
    CHECK(strcmp(by_name.s, plain.s) != 0);
    const llm_number *wrong[] = {&unknown, &too_large, &nameless, NULL};
    static const char *const words[] = {
        "no number 'typicl_p'; did you mean 'typical_p'?", "top_p is 2, but must be from 0 to 1",
        "number[0] is NULL; n_numbers is 1", "number[0] is NULL; n_numbers is 1"};
    for (size_t i = 0; i < 4; i++) {
        q.number = wrong[i], q.n_numbers = 1;
        CHECK_INT(llm_generate(c, "Once", &q, NULL, NULL, &err), GGL_USAGE);
        CHECK_HAS(err.msg, words[i]);
    }
    size_t n = 0;
    while (llm_number_name(n))
        n++;
    CHECK(n > 20 && strcmp(llm_number_name(0), "temperature") == 0);
    llm_close(c);
}

TEST(bias_and_breakers) {
    ggl_error err;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 128});
    REQUIRE(c);
    written t;
    int32_t *id;
    size_t n;
    REQUIRE_OK(llm_encode(c, ",", 1, 0, &id, &n, &err), &err);
    const llm_token_bias bias = {id[n - 1], -INFINITY};
    const char *const breakers[] = {"a", "time"};
    llm_generate_params p = greedy(20);
    generate(c, "Once upon a time", &p, &t);
    CHECK(strchr(t.s, ','));
    p.bias = &bias;
    p.n_bias = 1;
    generate(c, "Once upon a time", &p, &t);
    CHECK(!strchr(t.s, ','));
    p.dry_multiplier = 1;
    p.dry_breakers = breakers;
    p.n_dry_breakers = 2;
    generate(c, "Once upon a time", &p, &t);
    CHECK(t.n > 0);
    p.bias = NULL;
    CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "n_bias is 1");
    p = greedy(1);
    p.n_dry_breakers = 1;
    CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "dry_breakers[0]");
    p = greedy(1);
    p.samplers = "top_k;none";
    CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "none");
    p = greedy(1);
    p.typical_p = 2;
    CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "typ_p");
    ggl_free(id);
    llm_close(c);
}

/* --- tools ------------------------------------------------------------------------------------ */

/* A template with the marks of a published format. */
#define TEMPLATE                                                                                   \
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}"                          \
    "{% if tools %}Answer with <tool_call>{\"name\": .., \"arguments\": ..}</tool_call>\n{% "      \
    "endif %}"
#define TOOLS                                                                                      \
    "[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": {\"type\": "  \
    "\"object\", \"properties\": {\"day\": {\"enum\": [\"today\", \"tomorrow\"]}}, \"required\": " \
    "[\"day\"], "                                                                                  \
    "\"additionalProperties\": false}}}]"
#define TALK(more)                                                                                 \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"Rain?\"}], \"tools\": " TOOLS more "}"

static llm_context *open_tools(void) {
    return open_with("builtin:chat", (llm_open_params){.chat_template = TEMPLATE, .n_ctx = 400});
}

typedef struct parts {
    written part[2];
} parts;

static bool take_part(void *user, llm_part part, const char *piece, size_t n) {
    return take(&((parts *)user)->part[part], piece, n);
}

TEST(demanded_calls) {
    ggl_error err;
    char *message;
    size_t n;
    llm_context *c = open_tools();
    REQUIRE(c);
    const llm_generate_params p = greedy(120);
    static const char *const talks[] = {
        TALK(", \"tool_choice\": \"required\""),
        TALK(", \"tool_choice\": {\"type\": \"function\", \"function\": {\"name\": \"weather\"}}")};
    for (int i = 0; i < 2; i++) {
        parts got = {.part = {{.n = 0}}};
        if (!CHECK_OK(llm_chat_answer(c, talks[i], &p, take_part, &got, &message, &n, &err), &err))
            continue;
        CHECK_HAS(message, "\"tool_calls\": [{\"id\": \"call_0\"");
        CHECK_HAS(message, "\"name\": \"weather\"");
        CHECK_HAS(message, "\\\"day\\\"");
        CHECK_HAS(message, "\"content\": null");
        CHECK(strlen(message) == n && got.part[0].n == 0);
        ggl_free(message);
    }
    CHECK_INT(llm_chat_answer(c, TALK(", \"tool_choice\": \"other\""), &p, NULL, NULL, &message, &n,
                              &err),
              GGL_NOT_FOUND);
    CHECK(!message);
    CHECK_INT(llm_chat_answer(c, TALK(", \"tool_choice\": 5"), &p, NULL, NULL, &message, &n, &err),
              GGL_USAGE);
    CHECK_HAS(err.msg, "tool_choice");
    llm_generate_params q = greedy(10);
    q.tool_choice = "required";
    CHECK_INT(llm_generate(c, "x", &q, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "needs tools");
    q.tools = TOOLS;
    q.json_schema = "{}";
    CHECK_INT(llm_generate(c, "x", &q, NULL, NULL, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "together");
    llm_close(c);
}

/* As for llm-server and llm-cli, a call is text where there are no tools, and one that a limit cuts off is none where there are. */
TEST(calls_without_tools) {
    static const char call[] = "<tool_call>{\"name\": \"weather\", \"arguments\": {}}</tool_call>";
    char grammar[200], *message;
    size_t n, at = 0;
    ggl_error err;
    llm_context *c = open_tools();
    REQUIRE(c);
    at += (size_t)sprintf(grammar, "root ::= \"");
    for (const char *s = call; *s; s++)
        at += (size_t)sprintf(grammar + at, *s == '"' ? "\\%c" : "%c", *s);
    sprintf(grammar + at, "\"");
    llm_generate_params p = greedy(120);
    p.grammar = grammar;
    static const char *const talks[] = {
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}",
        TALK(", \"tool_choice\": \"none\"")};
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(llm_chat_answer(c, talks[i], &p, NULL, NULL, &message, &n, &err), &err);
        CHECK_HAS(message, "\"content\": \"<tool_call>{");
        CHECK(!strstr(message, "tool_calls\""));
        ggl_free(message);
    }
    REQUIRE_OK(llm_chat_answer(c, TALK(""), &p, NULL, NULL, &message, &n, &err), &err);
    CHECK_HAS(message, "\"tool_calls\": [{\"id\": \"call_0\"");
    ggl_free(message);
    llm_close(c);
}

/* Elements of "tools" that are no tools are refused, and so is a schema under a name that is not read: "input_schema". */
TEST(wrong_tools) {
    static const struct {
        const char *tools, *words;
    } row[] = {
        {"{\"name\": \"f\"}", "tools: an object, expected an array"},
        {"[5]", "tools[0]: a number, expected an object"},
        {"[{\"name\": \"f\"}, {\"a\": 1}]", "tools[1]: the function has no name"},
        {"[{\"type\": \"function\"}]", "tools[0]: the function has no name"},
        {"[{\"name\": 5}]", "tools[0]: the function has no name"},
        {"[{\"name\": \"f\", \"input_schema\": {}}]",
         "tools[0]: \"input_schema\" is not read; write"},
        {"[{\"function\": {\"name\": \"f\", \"inputSchema\": {}}}]", "\"inputSchema\" is not read"},
        {"[{\"name\": \"f\", \"parameters\": []}]",
         "\"parameters\" is an array, expected a schema"},
    };
    ggl_error err;
    char *text, talk[400];
    size_t n;
    llm_context *c = open_tools();
    REQUIRE(c);
    llm_generate_params p = greedy(1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int demanded = 0; demanded < 2; demanded++) {
            snprintf(talk, sizeof talk, "{\"messages\": [], \"tools\": %s%s}", row[i].tools,
                     demanded ? ", \"tool_choice\": \"required\"" : "");
            CHECK_INT(llm_chat_answer(c, talk, &p, NULL, NULL, &text, &n, &err), GGL_FORMAT);
            CHECK_HAS(err.msg, row[i].words);
            CHECK_INT(llm_chat_format(c, talk, true, &text, &n, NULL, &err), GGL_FORMAT);
            CHECK_HAS(err.msg, row[i].words);
            p.tools = row[i].tools;
            p.tool_choice = demanded ? "required" : NULL;
            CHECK_INT(llm_generate(c, "x", &p, NULL, NULL, &err), GGL_FORMAT);
            CHECK_HAS(err.msg, row[i].words);
        }
    p = greedy(1);
    p.tools = "{";
    CHECK_INT(llm_check_params(c, &p, &err), GGL_FORMAT);
    p.tools = "[{\"name\": \"f\"}, {\"name\": \"g\", \"parameters\": null}]";
    CHECK_OK(llm_check_params(c, &p, &err), &err);
    llm_close(c);
}

TEST(answers_without_calls) {
    ggl_error err;
    char *message;
    size_t n;
    llm_context *c = open_with("builtin:chat", (llm_open_params){.n_ctx = 400});
    REQUIRE(c);
    const llm_generate_params p = greedy(40);
    static const char talk[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"Who are "
                               "you?\"}], \"tool_choice\": \"none\"}";
    parts got = {.part = {{.n = 0}}};
    REQUIRE_OK(llm_chat_answer(c, talk, &p, take_part, &got, &message, &n, &err), &err);
    CHECK_HAS(message, "{\"role\": \"assistant\", \"content\": \"");
    CHECK(got.part[LLM_PART_CONTENT].n > 5 && !strstr(message, "tool_calls"));
    CHECK_HAS(message, "Fable");
    written t = {.n = 0};
    const llm_message said = {"user", "Who are you?"};
    CHECK_OK(llm_reply(c, &said, 1, &p, take, &t, &err), &err);
    CHECK_STR(got.part[LLM_PART_CONTENT].s, t.s);
    ggl_free(message);
    CHECK_INT(llm_chat_answer(c, NULL, &p, NULL, NULL, &message, &n, &err), GGL_USAGE);
    llm_run_info run = {.size = sizeof run};
    REQUIRE_OK(llm_last_run(c, &run, &err), &err);
    CHECK(run.finish == LLM_FINISH_ERROR && run.n_generated == 0); /* not of the answer before */
    CHECK_INT(llm_chat_answer(c, "{", &p, NULL, NULL, &message, &n, &err), GGL_FORMAT);
    /* a call is demanded, but there is nothing to call */
    CHECK_INT(llm_chat_answer(c,
                              "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
                              "\"tool_choice\": \"required\"}",
                              &p, NULL, NULL, &message, &n, &err),
              GGL_USAGE);
    CHECK_HAS(err.msg, "tool_choice 'required' needs tools");
    /* both come from the conversation, not from the parameters */
    llm_generate_params q = p;
    q.tools = "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]";
    q.tool_choice = "required";
    REQUIRE_OK(llm_chat_answer(c, talk, &q, NULL, NULL, &message, &n, &err), &err);
    CHECK(!strstr(message, "tool_calls") && strstr(message, "Fable"));
    ggl_free(message);
    /* a prompt of no tokens is an error, also if the end of it is looked at */
    CHECK(generate_ids(c, NULL, 0, &q, NULL, NULL, &err) != GGL_OK);
    CHECK(!llm_logits(c));
    llm_close(c);
}

TEST(parsed) {
    ggl_error err;
    char *json;
    size_t n;
    llm_context *c = open_tools();
    REQUIRE(c);
    const char answer[] = "<think>Hm.</think>I look.\n<tool_call>\n{\"name\": \"weather\", "
                          "\"arguments\": {\"day\": \"today\"}}\n</tool_call>";
    REQUIRE_OK(llm_chat_parse(c, answer, strlen(answer), NULL, &json, &n, &err), &err);
    CHECK_STR(
        json,
        "{\"role\": \"assistant\", \"reasoning_content\": \"Hm.\", \"content\": \"I look.\", "
        "\"tool_calls\": [{\"id\": \"call_0\", \"type\": \"function\", \"function\": {\"name\": "
        "\"weather\", \"arguments\": \"{\\\"day\\\":\\\"today\\\"}\"}}]}");
    CHECK(strlen(json) == n);
    ggl_free(json);
    const llm_parse_params cut = {.size = sizeof cut, .is_cut = true, .tools = TOOLS};
    REQUIRE_OK(llm_chat_parse(c, answer, strlen(answer) - 20, &cut, &json, &n, &err), &err);
    CHECK(!strstr(json, "tool_calls"));
    CHECK_HAS(json, "\"content\": \"I look.\"");
    ggl_free(json);
    const llm_parse_params wrong = {.size = sizeof wrong, .tools = "{"};
    CHECK_INT(llm_chat_parse(c, answer, strlen(answer), &wrong, &json, &n, &err), GGL_FORMAT);
    CHECK(!json && n == 0);
    CHECK_INT(llm_chat_parse(c, answer, 3, &(llm_parse_params){.is_cut = true}, &json, &n, &err),
              GGL_USAGE);
    llm_close(c);
}

/* --- keys of a file --------------------------------------------------------------------------- */

TEST(keys) {
    ggl_error err;
    char *json;
    size_t n, k = 0;
    bool found = false;
    llm_context *c = open_with("builtin:stories", (llm_open_params){.n_ctx = 64});
    REQUIRE(c);
    const char *key;
    for (; (key = llm_context_key(c, k, &n)) != NULL; k++) {
        char name[128];
        if (!CHECK(n < sizeof name))
            continue;
        memcpy(name, key, n);
        name[n] = 0;
        found = found || strcmp(name, "llama.block_count") == 0;
        CHECK_OK(llm_context_json(c, name, &json, &n, &err), &err);
        CHECK(json && strlen(json) == n && n > 0);
        ggl_free(json);
    }
    CHECK(found && k > 10 && n == 0);
    static const struct {
        const char *key, *json;
    } rows[] = {{"llama.block_count", "5"},
                {"general.architecture", "\"llama\""},
                {"llama.rope.freq_base", "10000"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_OK(llm_context_json(c, rows[i].key, &json, &n, &err), &err);
        CHECK_STR(json, rows[i].json);
        ggl_free(json);
    }
    CHECK_OK(llm_context_json(c, "tokenizer.ggml.tokens", &json, &n, &err), &err);
    CHECK(json[0] == '[' && json[n - 1] == ']' && strstr(json, "\"<s>\", "));
    ggl_free(json);
    CHECK_INT(llm_context_json(c, "none", &json, &n, &err), GGL_NOT_FOUND);
    CHECK_INT(llm_context_json(c, NULL, &json, &n, &err), GGL_USAGE);
    llm_close(c);
}
