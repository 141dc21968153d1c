/* Conversations: what is read is written again, and what is wrong is refused. */
#include "llm/internal/talk.h"

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "test.h"

static ggl_error err;

static ggl_str str(const char *s) {
    return (ggl_str){s, strlen(s)};
}

/* The conversation as JSON; valid until the next call. */
static const char *json(const llm_talk *t, size_t first) {
    static char *text;
    size_t n = 0;
    ggl_free(text);
    CHECK_OK(llm_talk_json(t, first, &text, &n, &err), &err);
    CHECK(text && strlen(text) == n);
    return text;
}

static llm_talk *read_text(const char *text) {
    llm_talk *t = NULL;
    CHECK_OK(llm_talk_read(&t, str(text), "talk.json", &err), &err);
    return t;
}

TEST(messages) {
    llm_talk *t;
    REQUIRE_OK(llm_talk_new(&t, &err), &err);
    CHECK_STR(json(t, 0), "{\"messages\": []}\n");
    CHECK_OK(llm_talk_add(t, "user", str("Hi \"there\"\n\x01\xff\xc3\xa9"), &err), &err);
    CHECK_OK(llm_talk_add(t, "assistant", (ggl_str){NULL, 0}, &err), &err);
    CHECK_STR(
        json(t, 0),
        "{\"messages\": [\n"
        "  {\"role\": \"user\", \"content\": \"Hi \\\"there\\\"\\n\\u0001\xef\xbf\xbd\xc3\xa9\"},\n"
        "  {\"role\": \"assistant\", \"content\": \"\"}\n ]}\n");
    CHECK_INT(llm_talk_n(t), 2);
    CHECK(ggl_str_is(llm_talk_role(t, 1), "assistant"));
    CHECK(llm_talk_content(t, 1).s && llm_talk_content(t, 1).n == 0);
    llm_talk_cut(t, 1);
    CHECK_INT(llm_talk_n(t), 1);
    llm_talk_free(t);
    llm_talk_free(NULL);
}

TEST(messages_as_json) {
    llm_talk *t;
    REQUIRE_OK(llm_talk_new(&t, &err), &err);
    CHECK_OK(llm_talk_add_json(t, str("{\"role\": \"assistant\", \"x\": [1]}"), "m", &err), &err);
    CHECK_STR(json(t, 0), "{\"messages\": [\n  {\"role\": \"assistant\", \"x\": [1]}\n ]}\n");
    CHECK_INT(llm_talk_add_json(t, str("{}"), "m", &err), GGL_FORMAT);
    CHECK_INT(llm_talk_add_json(t, str("{"), "m", &err), GGL_FORMAT);
    CHECK_INT(llm_talk_n(t), 1);
    llm_talk_free(t);
}

TEST(system_message) {
    llm_talk *t;
    REQUIRE_OK(llm_talk_new(&t, &err), &err);
    CHECK_OK(llm_talk_set_system(t, str(""), &err), &err);
    CHECK_INT(llm_talk_n(t), 0);
    CHECK_OK(llm_talk_add(t, "user", str("Hi"), &err), &err);
    CHECK_INT(llm_talk_begin(t), 0);
    CHECK_OK(llm_talk_set_system(t, str("Be brief."), &err), &err);
    CHECK(llm_talk_n(t) == 2 && llm_talk_begin(t) == 1);
    CHECK_OK(llm_talk_set_system(t, str("Be long."), &err), &err);
    CHECK(ggl_str_is(llm_talk_content(t, 0), "Be long.") &&
          ggl_str_is(llm_talk_content(t, 1), "Hi"));
    CHECK_OK(llm_talk_set_system(t, str(""), &err), &err);
    CHECK(llm_talk_n(t) == 1 && ggl_str_is(llm_talk_content(t, 0), "Hi"));
    llm_talk_free(t);
}

static const char whole[] =
    "{\"tools\": [{\"a\": 1.5, \"b\": [null, true, -3]}],\n"
    " \"messages\": [\n"
    "  {\"role\": \"system\", \"content\": \"S\"},\n"
    "  {\"role\": \"user\", \"content\": \"a\"},\n"
    "  {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"name\": \"f\"}]},\n"
    "  {\"role\": \"tool\", \"content\": \"7\"},\n"
    "  {\"role\": \"assistant\", \"content\": \"b\"},\n"
    "  {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"c\"}]}\n ]}\n";

TEST(what_is_read_is_written) {
    llm_talk *t = read_text(whole);
    REQUIRE(t != NULL);
    CHECK_STR(json(t, 0), whole);
    CHECK(llm_talk_content(t, 2).s == NULL && llm_talk_content(t, 5).s == NULL);
    llm_talk *again = read_text(json(t, 0));
    CHECK_STR(json(again, 0), whole);
    llm_talk_free(again);
    llm_talk_free(t);
}

TEST(calls_are_listed) {
    llm_talk *t = read_text("{\"messages\": [{\"role\": \"assistant\", \"content\": \"x\", "
                            "\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": "
                            "\"f\", \"arguments\": {\"a\": 1}}}, {\"name\": \"g\"}, 3]}, "
                            "{\"role\": \"user\", \"content\": \"y\"}]}");
    REQUIRE(t != NULL);
    const ggl_str calls = llm_talk_calls(t, 0);
    CHECK(ggl_str_is(calls, "{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n"
                            "{\"name\": \"g\", \"arguments\": {}}\n"
                            "{\"name\": null, \"arguments\": {}}\n"));
    CHECK(llm_talk_calls(t, 1).n == 0);
    llm_talk_free(t);
}

TEST(turns) {
    llm_talk *t = read_text(whole);
    REQUIRE(t != NULL);
    CHECK_INT(llm_talk_begin(t), 1);
    CHECK_INT(llm_talk_next_turn(t, 1), 5);
    CHECK_INT(llm_talk_next_turn(t, 5), 6);
    llm_talk_cut(t, 5);
    CHECK_STR(json(t, 4), "{\"tools\": [{\"a\": 1.5, \"b\": [null, true, -3]}],\n \"messages\": [\n"
                          "  {\"role\": \"system\", \"content\": \"S\"},\n"
                          "  {\"role\": \"assistant\", \"content\": \"b\"}\n ]}\n");
    llm_talk_free(t);
}

TEST(variables) {
    llm_talk *t = read_text("{\"x\": 1, \"messages\": []}");
    REQUIRE(t != NULL);
    CHECK_OK(llm_talk_set(t, str("{\"y\": \"z\", \"x\": 2}"), "vars", &err), &err);
    CHECK_STR(json(t, 0), "{\"x\": 2,\n \"y\": \"z\",\n \"messages\": []}\n");
    CHECK_INT(llm_talk_set(t, str("{\"messages\": []}"), "vars", &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "vars: \"messages\" is the conversation itself");
    CHECK_INT(llm_talk_set(t, str("[1]"), "vars", &err), GGL_FORMAT);
    CHECK_HAS(err.msg, "vars: a JSON object is expected, not an array");
    CHECK_INT(llm_talk_set(t, str("{x}"), "vars", &err), GGL_FORMAT);
    llm_talk_free(t);
}

TEST(refused) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "talk.json:1:1: "},
        {"{\"messages\": [", "talk.json:1:"},
        {"[]", "talk.json: a JSON object is expected, not an array"},
        {"{}", "talk.json: there is no list \"messages\": this is not a conversation"},
        {"{\"messages\": {}}", "there is no list \"messages\""},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"\"}, 7]}",
         "talk.json: message 2 has no \"role\""},
        {"{\"messages\": [{\"role\": \"user\"}]}", "talk.json: message 1 has no \"content\""},
        {"{\"messages\": [{\"role\": \"user\", \"content\": 5}]}",
         "the \"content\" of message 1 is a number"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": null}]}",
         "the \"content\" of message 1 is null"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"tool_calls\": []}]}",
         "the \"content\" of message 1 is null"},
        {"{\"messages\": [{\"role\": 7}]}", "message 1 has no \"role\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        llm_talk *t = NULL;
        err = (ggl_error){0};
        CHECK_INT(llm_talk_read(&t, str(cases[i].text), "talk.json", &err), GGL_FORMAT);
        CHECK(t == NULL);
        CHECK_HAS(err.msg, cases[i].words);
    }
}

static bool all_of_it(void *unused) {
    (void)unused;
    llm_talk *t = NULL;
    char *text = NULL;
    size_t n;
    ggl_status st = llm_talk_read(&t, str(whole), "talk.json", &err);
    if (st == GGL_OK)
        st = llm_talk_set_system(t, str("Other."), &err);
    if (st == GGL_OK)
        st = llm_talk_add(t, "user", str("x"), &err);
    if (st == GGL_OK)
        st = llm_talk_set(t, str("{\"x\": 2}"), "vars", &err);
    if (st == GGL_OK)
        st = llm_talk_json(t, 0, &text, &n, &err);
    ggl_free(text);
    llm_talk_free(t);
    CHECK(st == GGL_OK || st == GGL_NOMEM);
    return st == GGL_OK;
}

TEST(out_of_memory) {
    CHECK(alloc_fail_each(all_of_it, NULL) > 20);
}

/* Setting a variable again must not use the list from before it grew, whatever its length. */
TEST(many_variables) {
    llm_talk *t;
    char text[64];
    REQUIRE_OK(llm_talk_new(&t, &err), &err);
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "{\"v%d\": 1}", i);
        REQUIRE_OK(llm_talk_set(t, str(text), "m", &err), &err);
        CHECK_OK(llm_talk_set(t, str("{\"v0\": 2}"), "m", &err), &err);
    }
    CHECK_HAS(json(t, 0), "\"v0\": 2");
    CHECK_INT(llm_talk_set(t, str("{\"one more\": 1}"), "m", &err), GGL_LIMIT);
    CHECK_OK(llm_talk_set(t, str("{\"v999\": 3}"), "m", &err), &err);
    llm_talk_free(t);
}
