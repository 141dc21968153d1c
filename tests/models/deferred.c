/* Tools that a search finds: they are not in the prompt's list, their definitions stand where results name them, and the prompt before stays as it is. */
#include "llm/internal/chat.h"

#include "alloc_fail.h"
#include "common/json_write.h"
#include "each_template.h"
#include "test.h"

static ggl_error err;

#define TOOL(name, more)                                                                           \
    "{\"type\": \"function\", \"function\": {\"name\": \"" name                                    \
    "\", \"description\": \"does " name                                                            \
    "\", \"parameters\": {\"type\": \"object\", \"properties\": {\"p_" name                        \
    "\": {\"type\": \"string\"}}}}" more "}"
#define LATER ", \"defer_loading\": true"
#define TOOLS                                                                                      \
    "\"tools\": [" TOOL("Search", "") ", " TOOL("Fetch", LATER) ", " TOOL("Ask", LATER) ", " TOOL( \
        "Never", LATER) "]"
#define USER "{\"role\": \"user\", \"content\": \"go\"}"
#define CALL                                                                                       \
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"abcdefghi\", "       \
    "\"type\": \"function\", \"function\": {\"name\": \"Search\", \"arguments\": {}}}]}"
#define RESULT(content)                                                                            \
    "{\"role\": \"tool\", \"name\": \"Search\", \"tool_call_id\": \"abcdefghi\", \"content\": "    \
    "" content "}"
#define REFERENCE(name) "{\"type\": \"tool_reference\", \"tool_name\": \"" name "\"}"
#define FOUND           RESULT("[" REFERENCE("Fetch") "]")

static llm_talk *read_talk(const char *messages) {
    static char json[8192];
    llm_talk *t = NULL;
    snprintf(json, sizeof json, "{\"messages\": [%s], " TOOLS "}", messages);
    CHECK_OK(llm_talk_read(&t, (ggl_str){json, strlen(json)}, NULL, NULL, &err), &err);
    return t;
}

static llm_chat *open_text(const char *text, size_t n) {
    const llm_chat_template with = {"t", {text, n}};
    llm_chat *chat = NULL;
    CHECK_OK(llm_chat_new(&chat, NULL, NULL, &with, &err), &err);
    return chat;
}

/* The prompt of messages; "": it is refused. The caller frees it. */
static char *prompt(const llm_chat *chat, const char *messages) {
    const llm_chat_params ends = {.end = LLM_CHAT_ENDS};
    llm_talk *t = read_talk(messages);
    char *text = NULL;
    size_t n = 0;
    const ggl_status st = llm_chat_prompt(chat, t, &ends, &text, &n, &err);
    llm_talk_free(t);
    return st == GGL_OK ? text : ggl_calloc(1, 1);
}

static const char *names_of(const json_value *tools) {
    static char text[256];
    text[0] = '\0';
    for (uint32_t i = 0; tools && i < tools->n; i++) {
        const json_value *name = llm_json_get(llm_json_get(&tools->item[i], "function"), "name");
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.*s", i ? " " : "",
                 (int)name->n, name->s);
    }
    return text;
}

/* What can be called after some messages. */
TEST(what_can_be_called) {
    static const struct {
        const char *messages, *names;
    } rows[] = {
        {USER, "Search"},
        {USER ", " CALL ", " FOUND, "Search Fetch"},
        {USER ", " CALL
              ", " RESULT("[" REFERENCE("Ask") ", " REFERENCE("Fetch") ", " REFERENCE("None") "]"),
         "Search Fetch Ask"},
        {USER ", " CALL ", " RESULT("\"tool: Fetch\""), "Search"},
        {"{\"role\": \"user\", \"content\": \"go\", \"tool_references\": [\"Fetch\"]}", "Search"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        llm_talk *t = read_talk(rows[i].messages);
        const json_value *tools = NULL;
        CHECK_OK(llm_talk_callable(t, &tools, &err), &err);
        CHECK_STR(names_of(tools), rows[i].names);
        llm_json_out out = {0};
        llm_json_put_value(&out, tools);
        CHECK(out.s && !strstr(out.s, "defer_loading"));
        ggl_free(out.s);
        llm_talk_free(t);
    }
}

/* As templates write them, or else as JSON; each once; also after a conversation was saved. */
TEST(definitions) {
#define LOOP "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{% for t in tools or [] %}[{{ t.function.name }}]\n{% endfor %}" LOOP,
         "[Search]\n<user>go<assistant>[Call of a tool]\nSearch {}\n[End of "
         "call]<tool>Sees:\ntool: "
         "Search\n<functions>\n[Fetch]\n[Ask]\n</functions>"
         "<tool>tool: Fetch\ntool: None"},
        {"<{% for t in tools or [] %}{{ ', ' if not loop.first }}({{ t.function.name }}){% endfor "
         "%}>" LOOP,
         "<(Search)><user>go<assistant>[Call of a tool]\nSearch {}\n[End of "
         "call]<tool>Sees:\ntool: Search\n<functions>\n(Fetch), "
         "(Ask)\n</functions><tool>tool: Fetch\ntool: None"},
        {"{% for t in tools or [] %}{{ t.function.name }},{% endfor %}{% for t in tools or [] "
         "%}({{ t.function.description }}){% endfor %}" LOOP,
         NULL},
        {LOOP, NULL},
    };
    static const char messages[] = USER ", " CALL ", " RESULT(
        "[{\"type\": \"text\", \"text\": \"Sees:\"}, " REFERENCE("Search") ", " REFERENCE("Fetch") ", " REFERENCE(
            "Ask") "]") ", " RESULT("[" REFERENCE("Fetch") ", " REFERENCE("None") "]");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        llm_chat *chat = open_text(rows[i].text, strlen(rows[i].text));
        char *got = prompt(chat, messages), *saved = NULL, *text = NULL;
        size_t n = 0, n_text = 0;
        if (rows[i].want)
            CHECK_STR(got, rows[i].want);
        else
            CHECK_HAS(
                got, "tool: Search\n<functions>\n{\"type\": \"function\", \"function\": {\"name\": "
                     "\"Fetch\", \"description\": \"does Fetch\", \"parameters\": ");
        CHECK(!strstr(got, "Never") && !strstr(got, "defer_loading"));
        llm_talk *t = read_talk(messages), *again = NULL;
        CHECK_OK(llm_talk_json(t, &saved, &n, &err), &err);
        REQUIRE_OK(llm_talk_read(&again, (ggl_str){saved, n}, NULL, NULL, &err), &err);
        const llm_chat_params ends = {.end = LLM_CHAT_ENDS};
        CHECK_OK(llm_chat_prompt(chat, again, &ends, &text, &n_text, &err), &err);
        CHECK_STR(text, got);
        ggl_free(text);
        ggl_free(saved);
        ggl_free(got);
        llm_talk_free(t);
        llm_talk_free(again);
        llm_chat_free(chat);
    }
}

TEST(wrong_references) {
    static const char *const rows[][2] = {
        {RESULT("[{\"type\": \"tool_reference\"}]"),
         "messages[0]: content[0]: a reference to a tool is"},
        {"{\"role\": \"tool\", \"content\": \"\", \"tool_references\": [7]}",
         "messages[0]: tool_references[0]: a reference to a tool is"},
        {"{\"role\": \"user\", \"content\": [" REFERENCE("Fetch") "]}",
         "\"tool_reference\" is not a type of part"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[1024];
        llm_talk *t = NULL;
        snprintf(json, sizeof json, "{\"messages\": [%s]}", rows[i][0]);
        CHECK(llm_talk_read(&t, (ggl_str){json, strlen(json)}, NULL, NULL, &err) != GGL_OK);
        CHECK_HAS(err.msg, rows[i][1]);
    }
}

/* --- all templates ------------------------------------------------------------------------------ */

static int n_shown;

static void check_template(void *ctx, const char *name, ggl_str text) {
    (void)ctx;
    llm_chat *chat = open_text(text.s, text.n);
    if (!chat)
        return;
    char *first = prompt(chat, USER ", " CALL), *later = prompt(chat, USER ", " CALL ", " FOUND),
         *whole = prompt(chat, USER ", " CALL ", " FOUND ", {\"role\": \"assistant\", \"content\": "
                                    "\"ok\"}, " USER),
         *plain = prompt(chat, USER ", " CALL ", " RESULT("\"x\"")),
         *plain_whole =
             prompt(chat, USER ", " CALL ", " RESULT("\"x\"") ", {\"role\": \"assistant\", "
                                                              "\"content\": \"ok\"}, " USER);
    const bool shows = strstr(plain, "x") && strstr(first, "Search");
    if (shows && strstr(later, "p_Fetch")) {
        n_shown++;
        CHECK_MSG(strncmp(plain, first, strlen(first)) != 0 ||
                      strncmp(later, first, strlen(first)) == 0,
                  "%s: %s\n does not begin\n%s", name, first, later);
        CHECK_MSG(strncmp(plain_whole, plain, strlen(plain)) != 0 ||
                      strncmp(whole, later, strlen(later)) == 0,
                  "%s: %s\n does not begin\n%s", name, later, whole);
        CHECK_MSG(!strstr(first, "Fetch") && !strstr(whole, "Never"), "%s: %s", name, whole);
    } else {
        CHECK_MSG(!shows || !plain[0] || strstr(later, "p_Fetch"), "%s: %s", name, later);
    }
    ggl_free(first);
    ggl_free(later);
    ggl_free(whole);
    ggl_free(plain);
    ggl_free(plain_whole);
    llm_chat_free(chat);
}

TEST(built_in_templates) {
    each_built_in(1, check_template, NULL);
}

TEST(published_templates) {
    if (!has_published_templates())
        SKIP_NOT_SHIPPED("published chat templates");
    n_shown = 0;
    each_published(check_template, NULL);
    CHECK_MSG(n_shown >= 3, "%d", n_shown);
}

/* --- memory ------------------------------------------------------------------------------------- */

static bool makes(void *arg) {
    const llm_chat_params ends = {.end = LLM_CHAT_ENDS};
    const char json[] = "{\"messages\": [" USER ", " CALL ", " FOUND "], " TOOLS "}";
    const json_value *tools;
    llm_talk *t = NULL;
    char *text = NULL;
    size_t n = 0;
    ggl_status st = llm_talk_read(&t, (ggl_str){json, sizeof json - 1}, NULL, NULL, &err);
    if (st == GGL_OK)
        st = llm_talk_callable(t, &tools, &err);
    if (st == GGL_OK)
        st = llm_chat_prompt(arg, t, &ends, &text, &n, &err);
    ggl_free(text);
    llm_talk_free(t);
    return st == GGL_OK;
}

TEST(every_allocation_fails_in_turn) {
    static const char text[] =
        "{% for t in tools or [] %}[{{ t.function.name }}]\n{% endfor %}" LOOP;
    llm_chat *chat = open_text(text, sizeof text - 1);
    CHECK(alloc_fail_each(makes, chat) > 20);
    llm_chat_free(chat);
}
