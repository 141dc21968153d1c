/* Calls of tools in conversations, as templates take them (tools/llm-server/answer_talk.c). */
#include "llm-server/answer_talk.h"

#include "alloc_fail.h"
#include "test.h"

static ggl_error err;

static ggl_str str(const char *s) {
    return (ggl_str){s, strlen(s)};
}

static llm_chat *chat_of(const char *text) {
    llm_chat *chat = NULL;
    const llm_chat_template with = {.name = "test", .text = str(text)};
    CHECK_MSG(llm_chat_new(&chat, NULL, NULL, &with, &err) == GGL_OK, "%s", err.msg);
    return chat;
}

#define LOOP(body) "{% for m in messages %}" body "{% endfor %}"

static const char talk[] =
    "{\"messages\": [{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"1\", "
    "\"function\": "
    "{\"name\": \"f\", \"arguments\": {\"a\": [1, \"content\"]}}}]}, {\"role\": \"tool\", "
    "\"content\": \"\"}], "
    "\"arguments\": {}, \"tools\": [{\"function\": {\"arguments\": \"x\"}}]}";

/* Templates and what becomes of the talk; NULL: it stays as it is. */
static const struct {
    const char *template_text, *want;
} cases[] = {
    {LOOP("{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}"), NULL},
    {LOOP("{% if m.tool_calls %}{% set a = m.tool_calls[0].function.arguments %}{{ a if a is "
          "string else a | "
          "tojson }}{% endif %}{{ 'x' in m.content }}"),
     NULL},
    {LOOP("{% if m.tool_calls and m.content is none %}{{ m.tool_calls[0].function.arguments | "
          "tojson }}{% endif %}"),
     "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"function\":{"
     "\"name\":\"f\","
     "\"arguments\":{\"a\": [1, \"content\"]}}}]}"},
    {LOOP("{% if m.tool_calls %}{{ '' + m.tool_calls[0].function.arguments }}{% endif %}"),
     "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"1\",\"function\":{"
     "\"name\":\"f\","
     "\"arguments\":\"{\\\"a\\\": [1, \\\"content\\\"]}\"}}]}"},
    {LOOP("{% if m.tool_calls and m.content is none %}{{ '' + m.tool_calls[0].function.arguments "
          "}}{% endif %}"),
     "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"function\":{"
     "\"name\":\"f\","
     "\"arguments\":\"{\\\"a\\\": [1, \\\"content\\\"]}\"}}]}"},
    {LOOP("{{ m.content }}"), NULL},
};

TEST(templates) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        llm_chat *chat = chat_of(cases[i].template_text);
        llm_json_out out;
        CHECK_OK(answer_fit_talk(chat, str(talk), &out, &err), &err);
        if (!cases[i].want)
            CHECK_MSG(out.n == 0, "%zu: %s", i, out.s);
        else if (CHECK_MSG(out.n > 0, "%zu", i)) {
            CHECK_HAS(out.s, cases[i].want);
            CHECK_HAS(out.s, ",{\"role\":\"tool\",\"content\":\"\"}],\"arguments\":{}");
            CHECK_HAS(out.s, "\"tools\":[{\"function\": {\"arguments\": \"x\"}}]}");
        }
        ggl_free(out.s);
        CHECK_OK(answer_fit_talk(chat, str("{\"messages\": [{\"role\": \"user\"}]}"), &out, &err),
                 &err);
        CHECK(out.n == 0);
        llm_chat_free(chat);
    }
}

static bool fits(void *arg) {
    llm_json_out out;
    const ggl_status st = answer_fit_talk(arg, str(talk), &out, &err);
    CHECK(st == GGL_OK || st == GGL_NOMEM);
    const bool same = st == GGL_OK && out.n > 0;
    ggl_free(out.s);
    return same;
}

/* Without memory, no conversation is passed on in the wrong form. */
TEST(no_memory) {
    llm_chat *chat = chat_of(cases[4].template_text);
    CHECK(alloc_fail_each(fits, chat) > 10);
    llm_chat_free(chat);
}
