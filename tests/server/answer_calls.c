/* Answers that must be calls of tools, whole and cut off. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer_fixture.h"
#include "value_of.h"

static const char two_tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"look\", \"parameters\": {\"type\": "
    "\"object\", \"properties\": {\"at\": {\"enum\": [\"frog\", \"owl\"]}}, \"required\": "
    "[\"at\"], "
    "\"additionalProperties\": false}}}, {\"type\": \"function\", \"function\": {\"name\": "
    "\"sleep\", "
    "\"parameters\": {\"type\": \"object\", \"additionalProperties\": false}}}]";

/* The built-in model was not trained on tools: a template in which llm_calls finds these marks. */
static bool use_template_with(server *s, const char *marks) {
    char text[200];
    const int n = snprintf(text, sizeof text,
                           "{%% for m in messages %%}{{ m.content }}\n{%% endfor %%}"
                           "{%% if tools %%}{# %s #}{%% endif %%}",
                           marks);
    const llm_chat_template with = {"tools", {text, (size_t)n}};
    llm_chat_free(s->chat);
    s->chat = NULL;
    return CHECK_OK(llm_chat_new(&s->chat, NULL, NULL, &with, &s->err), &s->err);
}

static bool use_tool_template(server *s) {
    return use_template_with(s, "<tool_call>");
}

static ask *ask_tools_of(server *s, ask_tools choice, const char *tool) {
    ask *a = ask_chat(s, "hi");
    a->tools = value_of(two_tools);
    a->tool_choice = choice;
    a->tool = (ggl_str){tool, strlen(tool)};
    a->one_call = true;
    a->n_max = 100;
    return a;
}

TEST(tools_that_must_be_called) {
    server s = {0};
    char look[80] = "", end[24];
    REQUIRE(server_open(&s, 0) && use_tool_template(&s));
    for (const char *c = "look"; *c; c++)
        snprintf(look + strlen(look), sizeof look - strlen(look), "%02x", (unsigned)*c);
    snprintf(end, sizeof end, "\nF 0 %d x ", FINISH_CALLS);
    for (int i = 0; i < 4; i++) {
        ask *a = ask_tools_of(&s, i % 2 ? ASK_TOOLS_NAMED : ASK_TOOLS_REQUIRED, "look");
        a->stream = i >= 2;
        http_reply *r = answer_alone(&s, a);
        CHECK_HAS(r->body.s, "C 0 0 x");
        CHECK_HAS(r->body.s, end);
        CHECK(i % 2 == 0 || strstr(r->body.s, look));
        CHECK(strstr(r->body.s, " id\n") && !strstr(r->body.s, "P 0 0"));
        reply_free(r);
    }
    http_reply *r = answer_alone(&s, ask_tools_of(&s, ASK_TOOLS_NAMED, "swim"));
    CHECK_HAS(r->body.s, "X 400 invalid_request");
    CHECK_HAS(r->body.s, "swim");
    reply_free(r);
    server_close(&s);
}

/* A call, or else a text that fits the schema; where calls have no grammar, the request is refused. */
TEST(tools_or_a_form) {
    static const char schema[] = "{\"type\": \"object\", \"properties\": {\"x\": {\"enum\": "
                                 "[\"<tool_call>{\"]}}, \"required\": [\"x\"], "
                                 "\"additionalProperties\": false}";
    static const char thinks[] = "{{ messages[0].content }}{# </think> #}";
    const llm_chat_template with = {"thinks", {thinks, sizeof thinks - 1}};
    server s = {0};
    int n_calls = 0, n_texts = 0;
    REQUIRE(server_open(&s, 0) && use_tool_template(&s));
    for (int i = 0; i < 24; i++) {
        ask *a = ask_tools_of(&s, ASK_TOOLS_AUTO, "");
        a->form = ASK_SCHEMA;
        a->form_text = (ggl_str){schema, sizeof schema - 1};
        a->sampling.temp = 3;
        a->sampling.seed = (uint64_t)i;
        a->has_seed = true;
        a->stream = i % 2;
        http_reply *r = answer_alone(&s, a);
        const bool is_call = strstr(r->body.s, "C 0 0 x");
        CHECK_INT(r->status, 200);
        CHECK(is_call != !!strstr(r->body.s, "P 0 0 x7b")); /* { */
        n_calls += is_call;
        n_texts += !is_call;
        reply_free(r);
    }
    CHECK_MSG(n_calls > 0 && n_texts > 0, "%d calls, %d texts", n_calls, n_texts);
    llm_chat_free(s.chat);
    REQUIRE_OK(llm_chat_new(&s.chat, NULL, NULL, &with, &s.err), &s.err);
    ask *a = ask_tools_of(&s, ASK_TOOLS_AUTO, "");
    a->form = ASK_JSON;
    http_reply *r = answer_alone(&s, a);
    CHECK_HAS(r->body.s, "X 400 unsupported");
    CHECK_HAS(r->body.s, "leave out the tools or the form");
    reply_free(r);
    server_close(&s);
}

/* The built-in model's own template shows tools, calls and results, and a demanded call fits its grammar. */
TEST(the_built_in_model_calls) {
    static const char talk[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"assistant\", "
        "\"content\": "
        "\"\", \"tool_calls\": [{\"id\": \"a\", \"type\": \"function\", \"function\": {\"name\": "
        "\"look\", \"arguments\": {\"at\": \"owl\"}}}]}, {\"role\": \"tool\", \"tool_call_id\": "
        "\"a\", "
        "\"content\": \"asleep\"}], \"tools\": [{\"function\": {\"name\": \"look\"}}]}";
    llm_talk *read = NULL;
    server s = {0};
    char *text = NULL;
    size_t n;
    REQUIRE(server_open(&s, 0));
    REQUIRE_OK(llm_talk_read(&read, (ggl_str){talk, sizeof talk - 1}, NULL, NULL, &s.err), &s.err);
    REQUIRE_OK(llm_chat_prompt(s.chat, read, NULL, &text, &n, &s.err), &s.err);
    llm_talk_free(read);
    CHECK_HAS(text,
              "<|system|>You can call these functions: [{\"function\": {\"name\": \"look\"}}]");
    CHECK_HAS(text, "<|assistant|><tool_call>{\"name\": \"look\", \"arguments\": {\"at\": \"owl\"}}"
                    "</tool_call><|end|><|user|><tool_response>asleep</tool_response><|end|>");
    ggl_free(text);
    http_reply *r = answer_alone(&s, ask_tools_of(&s, ASK_TOOLS_NAMED, "look"));
    CHECK_HAS(r->body.s, "C 0 0 x6c6f6f6b ");
    reply_free(r);
    server_close(&s);
}

/* Reasoning that the prompt begins is ended after so many tokens. */
TEST(reasoning_is_limited) {
    static const char text[] =
        "{% for m in messages %}{{ m.content }}\n{% endfor %}<think>\n{# <tool_call> #}";
    const llm_chat_template with = {"thinks", {text, sizeof text - 1}};
    server s = {0};
    REQUIRE(server_open(&s, 0));
    llm_chat_free(s.chat);
    REQUIRE_OK(llm_chat_new(&s.chat, NULL, NULL, &with, &s.err), &s.err);
    for (int budget = -1; budget < 8; budget += 3) {
        ask *a = ask_chat(&s, "hi");
        a->n_max = 40;
        a->ignore_eos = true;
        a->reasoning_budget = budget;
        http_reply *r = answer_alone(&s, a);
        const bool has_content = strstr(r->body.s, "P 0 0 ") != NULL;
        CHECK_MSG(has_content == (budget >= 0), "budget %d: %s", budget, r->body.s);
        CHECK_MSG((strstr(r->body.s, "P 0 1 ") != NULL) == (budget != 0), "budget %d: %s", budget,
                  r->body.s);
        reply_free(r);
    }
    server_close(&s);
}

/* A demanded call that the limit of tokens cuts off. */
static http_reply *cut_call(server *s, int64_t n_max, bool raw, bool stream) {
    static const char tool[] =
        "[{\"type\": \"function\", \"function\": {\"name\": \"say\", \"parameters\": {\"type\": "
        "\"object\", \"properties\": {\"text\": {\"type\": \"string\", \"maxLength\": 60}}, "
        "\"required\": [\"text\"], \"additionalProperties\": false}}}]";
    ask *a = ask_chat(s, "hi");
    a->tools = value_of(tool);
    a->tool_choice = ASK_TOOLS_REQUIRED;
    a->one_call = true;
    a->raw_marks = raw;
    a->stream = stream;
    a->n_max = n_max;
    return answer_alone(s, a);
}

/* The limit does not change what is drawn before it, and a call that it cuts off is not given: neither
 * a shorter call in its place, nor its marks as content. */
static void check_cut_calls(const char *marks, const char *closing) {
    server s = {0};
    char length[24];
    int n_whole = 0;
    REQUIRE(server_open(&s, 0) && use_template_with(&s, marks));
    http_reply *all = cut_call(&s, 200, true, false), *whole = cut_call(&s, 200, false, false);
    char *text = content_of(all, 0);
    const char *call = strstr(whole->body.s, "C 0 0 ");
    const char *close = closing[0] ? strstr(text, closing) : text + strlen(text);
    snprintf(length, sizeof length, "F 0 %d x ", FINISH_LENGTH);
    REQUIRE(call && close);
    while (close[-1] != '}')
        close--; /* white space and the end of a list may be missing, too */
    const size_t n_call = strcspn(call, "\n");
    for (int n = 1; n < 200 && n_whole < 3; n++) {
        http_reply *raw = cut_call(&s, n, true, false), *r = cut_call(&s, n, false, n % 2);
        char *got = content_of(raw, 0), *content = content_of(r, 0);
        CHECK_MSG(strncmp(got, text, strlen(got)) == 0, "%d tokens: '%s'", n, got);
        CHECK_MSG(content[0] == '\0', "%d tokens: '%s'", n, content);
        const char *at = strstr(r->body.s, "C 0 0 ");
        const bool is_whole = strlen(got) >= strlen(text),
                   has_arguments = strlen(got) >= (size_t)(close - text);
        CHECK(is_whole || strstr(r->body.s, length));
        CHECK(has_arguments || !at);
        CHECK(!at || (strcspn(at, "\n") == n_call && memcmp(at, call, n_call) == 0));
        CHECK(!is_whole || at);
        n_whole += is_whole;
        free(got);
        free(content);
        reply_free(raw);
        reply_free(r);
    }
    CHECK_INT(n_whole, 3);
    free(text);
    reply_free(all);
    reply_free(whole);
    server_close(&s);
}

LONG_TEST(demanded_calls_are_cut_off) {
    check_cut_calls("<tool_call>", "</tool_call>");
}

/* Llama 3's calls have no marks: JSON that is no content nevertheless. */
LONG_TEST(demanded_calls_without_marks_are_cut_off) {
    check_cut_calls("\"parameters\": \"name\":", "");
}
