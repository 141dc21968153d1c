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
static const char *json(const llm_talk *t) {
    static char *text;
    size_t n = 0;
    ggl_free(text);
    CHECK_OK(llm_talk_json(t, &text, &n, &err), &err);
    CHECK(text && strlen(text) == n);
    return text;
}

static llm_talk *read_text(const char *text) {
    llm_talk *t = NULL;
    CHECK_OK(llm_talk_read(&t, str(text), "talk.json", NULL, &err), &err);
    return t;
}

TEST(messages) {
    llm_talk *t;
    REQUIRE_OK(llm_talk_new(&t, &err), &err);
    CHECK_STR(json(t), "{\"messages\": []}\n");
    CHECK_OK(llm_talk_add(t, "user", str("Hi \"there\"\n\x01\xff\xc3\xa9"), &err), &err);
    CHECK_OK(llm_talk_add(t, "assistant", (ggl_str){NULL, 0}, &err), &err);
    CHECK_STR(
        json(t),
        "{\"messages\": [\n"
        "  {\"role\": \"user\", \"content\": \"Hi \\\"there\\\"\\n\\u0001\xef\xbf\xbd\xc3\xa9\"},\n"
        "  {\"role\": \"assistant\", \"content\": \"\"}\n ]}\n");
    CHECK_INT(llm_talk_n(t), 2);
    CHECK(ggl_str_is(llm_talk_at(t, 1)->role, "assistant"));
    CHECK(llm_talk_at(t, 1)->content.s && llm_talk_at(t, 1)->content.n == 0);
    llm_talk_cut(t, 1);
    CHECK_INT(llm_talk_n(t), 1);
    llm_talk_free(t);
    llm_talk_free(NULL);
}

TEST(messages_as_json) {
    llm_talk *t;
    REQUIRE_OK(llm_talk_new(&t, &err), &err);
    CHECK_OK(llm_talk_add_json(
                 t, str("{\"role\": \"assistant\", \"content\": \"\", \"x\": [1], \"y\": null}"),
                 "m", &err),
             &err);
    CHECK_STR(
        json(t),
        "{\"messages\": [\n  {\"role\": \"assistant\", \"content\": \"\", \"x\": [1]}\n ]}\n");
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
    CHECK(ggl_str_is(llm_talk_at(t, 0)->content, "Be long.") &&
          ggl_str_is(llm_talk_at(t, 1)->content, "Hi"));
    CHECK_OK(llm_talk_set_system(t, str(""), &err), &err);
    CHECK(llm_talk_n(t) == 1 && ggl_str_is(llm_talk_at(t, 0)->content, "Hi"));
    llm_talk_free(t);
}

static const char whole[] = "{\"tools\": [{\"a\": 1.5, \"b\": [null, true, -3]}],\n"
                            " \"messages\": [\n"
                            "  {\"role\": \"system\", \"content\": \"S\"},\n"
                            "  {\"role\": \"user\", \"content\": \"a\"},\n"
                            "  {\"role\": \"assistant\", \"content\": null, \"tool_calls\": "
                            "[{\"type\": \"function\", \"function\": {\"name\": \"f\", "
                            "\"arguments\": {\"x\": 1.50}}}]},\n"
                            "  {\"role\": \"tool\", \"content\": \"7\"},\n"
                            "  {\"role\": \"assistant\", \"content\": \"b\"},\n"
                            "  {\"role\": \"user\", \"content\": \"c\"}\n ]}\n";

TEST(what_is_read_is_written) {
    llm_talk *t = read_text(whole);
    REQUIRE(t != NULL);
    CHECK_STR(json(t), whole);
    CHECK(llm_talk_at(t, 2)->content.s == NULL && llm_talk_at(t, 2)->n_calls == 1);
    llm_talk *again = read_text(json(t));
    CHECK_STR(json(again), whole);
    llm_talk_free(again);
    llm_talk_free(t);
}

/* The forms in which messages are given, and the one in which they are kept. */
TEST(one_form) {
    static const char *const rows[][2] = {
        {"\"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": "
         "\"b\"}]",
         "\"content\": \"a\\nb\""},
        {"\"content\": null, \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\", "
         "\"arguments\": \"{\\\"a\\\": 1}\", \"x\": 2}}]",
         "\"content\": null, \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\", "
         "\"arguments\": {\"a\": 1}, \"x\": 2}, \"type\": \"function\"}]"},
        {"\"tool_calls\": [{\"name\": \"f\", \"id\": \"1\"}, {\"name\": \"g\", \"arguments\": "
         "\"g(\"}]",
         "\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"f\", "
         "\"arguments\": {}}}, {\"type\": \"function\", \"function\": {\"name\": \"g\", "
         "\"arguments\": \"g(\"}}]"},
        {"\"refusal\": \"no\", \"content\": null, \"tool_calls\": [], \"x\": null",
         "\"content\": \"no\""},
        {"\"reasoning\": \"so\", \"y\": [null]", "\"reasoning\": \"so\", \"y\": [null]"},
    };
    char given[512], want[512];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(given, sizeof given, "{\"messages\": [{\"role\": \"assistant\", %s}]}",
                 rows[i][0]);
        snprintf(want, sizeof want, "{\"messages\": [\n  {\"role\": \"assistant\", %s}\n ]}\n",
                 rows[i][1]);
        llm_talk *t = read_text(given);
        REQUIRE(t != NULL);
        CHECK_STR(json(t), want);
        llm_talk_free(t);
    }
}

/* A text of arguments as deep as JSON may be stays one, so that what was saved can be read again. */
TEST(deep_arguments) {
    for (int depth = 50; depth < 66; depth++) {
        char text[400] =
            "{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"f\", "
            "\"arguments\": \"{\\\"a\\\": ";
        for (int i = 1; i < depth; i++)
            strcat(text, "[");
        for (int i = 1; i < depth; i++)
            strcat(text, "]");
        strcat(text, "}\"}]}]}");
        llm_talk *t = read_text(text), *again = t ? read_text(json(t)) : NULL;
        REQUIRE(again != NULL);
        CHECK(llm_talk_at(again, 0)->n_calls == 1);
        llm_talk_free(again);
        llm_talk_free(t);
    }
}

/* What readers ask a message for. */
TEST(members) {
    llm_talk *t =
        read_text("{\"messages\": [{\"role\": \"assistant\", \"reasoning_content\": \"\", "
                  "\"thinking\": \"so\", \"tool_calls\": [{\"id\": \"1\", \"function\": "
                  "{\"name\": \"f\"}}]}, {\"role\": \"tool\", \"tool_call_id\": \"1\", "
                  "\"name\": \"f\", \"content\": \"y\"}], \"n\": null, \"b\": true}");
    REQUIRE(t != NULL);
    const llm_talk_message *m = llm_talk_at(t, 0);
    CHECK(!m->content.s && ggl_str_is(m->reasoning, "so") && !m->name.s && m->n_calls == 1);
    CHECK(ggl_str_is(m->call[0].id, "1") && ggl_str_is(m->call[0].name, "f"));
    m = llm_talk_at(t, 1);
    CHECK(ggl_str_is(m->call_id, "1") && ggl_str_is(m->name, "f") && !m->reasoning.s);
    CHECK(!llm_talk_get(t, "n") && llm_talk_get(t, "b") && !llm_talk_get(t, "messages"));
    llm_talk_free(t);
}

/* A copy changes apart from what it was made of. */
TEST(copies) {
    llm_talk *t = read_text(whole), *copy = NULL;
    REQUIRE(t != NULL);
    REQUIRE_OK(llm_talk_copy(&copy, t, 5, &err), &err);
    CHECK_OK(llm_talk_append(copy, str("!"), &err), &err);
    CHECK(ggl_str_is(llm_talk_at(copy, 4)->content, "b!") && llm_talk_n(t) == 6);
    CHECK_HAS(json(copy), "{\"role\": \"assistant\", \"content\": \"b!\"}");
    llm_talk_cut(copy, 3);
    CHECK_INT(llm_talk_append(copy, str("!"), &err), GGL_USAGE);
    CHECK_HAS(err.msg,
              "messages[2] (assistant): the last message cannot be continued: it has no text");
    llm_talk_free(copy);
    CHECK_STR(json(t), whole);
    llm_talk_free(t);
}

TEST(turns) {
    llm_talk *t = read_text(whole);
    REQUIRE(t != NULL);
    CHECK_INT(llm_talk_begin(t), 1);
    CHECK_INT(llm_talk_next_turn(t, 1), 5);
    CHECK_INT(llm_talk_next_turn(t, 5), 6);
    llm_talk_cut(t, 5);
    CHECK(llm_talk_n(t) == 5 && llm_talk_next_turn(t, 1) == 5);
    llm_talk_free(t);
}

TEST(variables) {
    llm_talk *t = read_text("{\"x\": 1, \"messages\": []}");
    REQUIRE(t != NULL);
    CHECK_OK(llm_talk_set(t, str("{\"y\": \"z\", \"x\": 2}"), "vars", &err), &err);
    CHECK_STR(json(t), "{\"x\": 2,\n \"y\": \"z\",\n \"messages\": []}\n");
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
        {"{}", "talk.json: there is no list \"messages\": write {\"messages\": [{"},
        {"{\"messages\": {}}", "there is no list \"messages\""},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"\"}, 7]}",
         "talk.json: messages[1]: a message must be an object with a \"role\""},
        {"{\"messages\": [{\"role\": \"user\"}]}",
         "talk.json: messages[0]: \"content\" is missing"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": 5}]}",
         "messages[0]: \"content\" must be a string or a list of parts, not a number"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": null}]}",
         "messages[0]: \"content\" must be a string or a list of parts, not null"},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"f\"}, 3]}]}",
         "messages[0]: tool_calls[1]: a call needs \"function\" with a \"name\""},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"f\", "
         "\"arguments\": [1]}]}]}",
         "messages[0]: tool_calls[0]: a call needs \"function\" with a \"name\" and \"arguments\""},
        {"{\"messages\": [{\"role\": \"assistant\", \"tool_calls\": {}}]}",
         "messages[0]: \"tool_calls\" must be a list, not an object"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]}",
         "messages[0]: content[0]: a part of type \"text\" needs \"text\", a string"},
        {"{\"messages\": [{\"role\": 7}]}",
         "messages[0]: a message must be an object with a \"role\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        llm_talk *t = NULL;
        err = (ggl_error){0};
        const ggl_status st = llm_talk_read(&t, str(cases[i].text), "talk.json", NULL, &err);
        CHECK(st == GGL_FORMAT || st == GGL_USAGE);
        CHECK(t == NULL);
        CHECK_HAS(err.msg, cases[i].words);
    }
}

/* An answer that said nothing and called nothing comes back in a history. */
TEST(an_empty_answer) {
    llm_talk *t = NULL;
    static const char text[] =
        "{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"tool_calls\": []}]}";
    REQUIRE(CHECK_OK(llm_talk_read(&t, str(text), "talk.json", NULL, &err), &err));
    CHECK(llm_talk_at(t, 0)->content.s && llm_talk_at(t, 0)->content.n == 0);
    llm_talk_free(t);
}

static bool all_of_it(void *unused) {
    (void)unused;
    llm_talk *t = NULL;
    char *text = NULL;
    size_t n;
    ggl_status st = llm_talk_read(&t, str(whole), "talk.json", NULL, &err);
    if (st == GGL_OK)
        st = llm_talk_set_system(t, str("Other."), &err);
    if (st == GGL_OK)
        st = llm_talk_add(t, "user", str("x"), &err);
    if (st == GGL_OK)
        st = llm_talk_set(t, str("{\"x\": 2}"), "vars", &err);
    if (st == GGL_OK)
        st = llm_talk_json(t, &text, &n, &err);
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
    CHECK_HAS(json(t), "\"v0\": 2");
    CHECK_INT(llm_talk_set(t, str("{\"one more\": 1}"), "m", &err), GGL_LIMIT);
    CHECK_OK(llm_talk_set(t, str("{\"v999\": 3}"), "m", &err), &err);
    llm_talk_free(t);
}
