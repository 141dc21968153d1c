/* Grammars of calls (llm_calls_grammar): texts that are drawn at random from them are read by the parser of
 * answers (llm_calls_new), which shares no code with them, and must be calls of the tools. */
#include "llm/internal/calls.h"

#include "alloc_fail.h"
#include "common/json.h"
#include "draw_text.h"
#include "seed.h"
#include "test.h"
#include "value_of.h"

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"parameters\": {\"type\": "
    "\"object\", "
    "\"properties\": {\"city\": {\"enum\": [\"Oslo\", \"R\\u00f8st\"]}, \"days\": {\"type\": "
    "\"integer\", "
    "\"minimum\": 1, \"maximum\": 9}}, \"required\": [\"city\"], \"additionalProperties\": "
    "false}}},"
    "{\"type\": \"function\", \"function\": {\"name\": \"stop_all\", \"parameters\": "
    "{\"properties\": {}, "
    "\"additionalProperties\": false}}},"
    "{\"type\": \"function\", \"function\": {\"name\": \"tree\", \"parameters\": {\"$ref\": "
    "\"#/$defs/node\", "
    "\"$defs\": {\"node\": {\"type\": \"object\", \"properties\": {\"kids\": {\"type\": \"array\", "
    "\"items\": "
    "{\"$ref\": \"#/$defs/node\"}, \"maxItems\": 2}}, \"required\": [\"kids\"], "
    "\"additionalProperties\": false}}}}}]";

/* --- what the parser reads ---------------------------------------------------------------------- */

typedef struct found {
    int calls, other, reasoning;
    bool names[3]; /* which tools were called */
} found;

static int tool_number(ggl_str name) {
    static const char *const names[] = {"weather", "stop_all", "tree"};
    for (int i = 0; i < 3; i++)
        if (ggl_str_is(name, names[i]))
            return i;
    return -1;
}

static void check_call(const llm_calls_part *part, found *f) {
    const int k = tool_number(part->name);
    llm_json *doc = NULL;
    f->calls++;
    if (!CHECK_MSG(k >= 0, "called '%.*s'", (int)part->name.n, part->name.s))
        return;
    f->names[k] = true;
    REQUIRE(llm_json_parse(&doc, part->arguments.s, part->arguments.n, "arguments", &err) ==
            GGL_OK);
    CHECK(doc->root.kind == JSON_OBJECT);
    CHECK(k != 0 || llm_json_get_kind(&doc->root, "city", JSON_STRING));
    CHECK(k != 1 || doc->root.n == 0);
    CHECK(k != 2 || llm_json_get_kind(&doc->root, "kids", JSON_ARRAY));
    llm_json_free(doc);
}

static found read_answer(const llm_calls_params *p, const char *s, size_t n) {
    llm_calls *c = NULL;
    llm_calls_part part;
    found f = {0};
    must(llm_calls_new(&c, p, &err) == GGL_OK);
    must(llm_calls_add(c, s, n, &err) == GGL_OK && llm_calls_finish(c, &err) == GGL_OK);
    while (llm_calls_next(c, &part)) {
        if (part.kind == LLM_CALLS_CALL)
            check_call(&part, &f);
        else if (part.kind == LLM_CALLS_REASONING)
            f.reasoning++;
        else
            f.other++;
    }
    llm_calls_free(c);
    return f;
}

/* --- cases -------------------------------------------------------------------------------------- */

static bool is_known_to_lack(ggl_str format) {
    static const char *const lacks[] = {"gemma4",         "functiongemma", "olmo3",
                                        "pythonic",       "reasoning",     "plain",
                                        "reasoning-tags", "minimax-m3"};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        if (ggl_str_is(format, lacks[i]))
            return true;
    return false;
}

/* Each format has a grammar, or is refused by its name. */
TEST(each_format) {
    llm_vocab *v = byte_vocab();
    char s[BUDGET];
    state = sample_seed();
    for (int k = 0; llm_calls_format_name(k).n > 0; k++) {
        const llm_calls_params p = {
            .size = sizeof p, .format = llm_calls_format_name(k), .tools = value_of(tools)};
        llm_grammar *g = NULL;
        const ggl_status st = llm_calls_grammar(&g, &p, (ggl_str){0}, false, &err);
        if (is_known_to_lack(p.format)) {
            CHECK(st == GGL_UNSUPPORTED && !g);
            CHECK(memmem(err.msg, strlen(err.msg), p.format.s, p.format.n));
            continue;
        }
        REQUIRE(CHECK_MSG(st == GGL_OK, "%.*s: %s", (int)p.format.n, p.format.s, err.msg));
        llm_matcher *m = matcher(g, v);
        for (int i = 0; i < 10; i++) {
            const size_t n = random_text(m, s);
            const found f = read_answer(&p, s, n);
            CHECK_MSG(f.calls > 0 && f.other == 0, "%.*s: %.*s", (int)p.format.n, p.format.s,
                      (int)n, s);
        }
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
    llm_vocab_free(v);
}

/* A named tool is the only one, and one call is one call. */
TEST(named_and_one) {
    llm_vocab *v = byte_vocab();
    char s[BUDGET];
    const llm_calls_params p = {
        .size = sizeof p, .format = str("hermes"), .tools = value_of(tools)};
    llm_grammar *g = NULL;
    bool more = false;
    state = sample_seed();
    REQUIRE(llm_calls_grammar(&g, &p, str("stop_all"), true, &err) == GGL_OK);
    llm_matcher *m = matcher(g, v);
    for (int i = 0; i < 25; i++) {
        const found f = read_answer(&p, s, random_text(m, s));
        CHECK(f.calls == 1 && f.names[1]);
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    REQUIRE(llm_calls_grammar(&g, &p, str("stop_all"), false, &err) == GGL_OK);
    m = matcher(g, v);
    for (int i = 0; i < 25; i++)
        more = read_answer(&p, s, random_text(m, s)).calls > 1 || more;
    CHECK(more);
    llm_matcher_free(m);
    llm_grammar_free(g);
    CHECK(llm_calls_grammar(&g, &p, str("tre"), true, &err) == GGL_NOT_FOUND && !g);
    CHECK_STR(err.msg, "there is no tool \"tre\"");
    llm_vocab_free(v);
}

static bool fits(const llm_calls_params *p, const char *text) {
    llm_grammar *g = NULL;
    llm_matcher *m = NULL;
    size_t n = 0;
    must(CHECK_MSG(llm_calls_grammar(&g, p, (ggl_str){0}, false, &err) == GGL_OK, "%s", err.msg));
    must(llm_matcher_new(&m, g, NULL, &err) == GGL_OK);
    must(llm_matcher_accept_bytes(m, text, strlen(text), &n, &err) == GGL_OK);
    const bool yes = n == strlen(text) && llm_matcher_is_complete(m);
    llm_matcher_free(m);
    llm_grammar_free(g);
    return yes;
}

#define CALL                                                                                       \
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>"

/* Reasoning goes on where the prompt began it, and is not begun again after its end. */
TEST(reasoning) {
    llm_calls_params p = {.size = sizeof p, .format = str("hermes"), .tools = value_of(tools)};
    CHECK(fits(&p, CALL));
    CHECK(fits(&p, CALL "\n" CALL));
    CHECK(fits(&p, "<think>\nOslo </thin </think>\n\n" CALL));
    CHECK(!fits(&p, "Oslo.</think>\n\n" CALL));
    CHECK(!fits(&p, "<think>Oslo"));
    CHECK(!fits(&p, "Hello " CALL));
    p.prompt = str("<|im_start|>assistant\n<think>\n");
    CHECK(fits(&p, "Oslo.</think>\n\n" CALL));
    CHECK(fits(&p, "</think>" CALL));
    CHECK(!fits(&p, CALL));
    /* a template that does not know the mark is not of a model that reasons */
    p.prompt = str("<|im_start|>assistant\n");
    p.template_text = str("<tool_call>");
    CHECK(!fits(&p, "<think>Oslo</think>\n\n" CALL));
    CHECK(fits(&p, CALL));
    p.template_text = str("<tool_call> <think>");
    CHECK(fits(&p, "<think>Oslo</think>\n\n" CALL));
    p.template_text = (ggl_str){0};
    p.prompt = str("<|im_start|>assistant\n<think>\n\n</think>\n\n");
    CHECK(fits(&p, CALL));
    CHECK(!fits(&p, "<think></think>" CALL));
}

/* A mark with which the prompt ends is not written again, and reasoning that was begun goes on. */
TEST(prompts_that_begin_calls) {
    llm_calls_params p = {
        .size = sizeof p, .format = str("functionary-v3.2"), .tools = value_of(tools)};
    CHECK(fits(&p, ">>>stop_all\n{}"));
    CHECK(!fits(&p, "stop_all\n{}"));
    p.prompt = str("<|end_header_id|>\n\n>>>");
    CHECK(fits(&p, "stop_all\n{}"));
    CHECK(fits(&p, "stop_all\n{}\n>>>stop_all\n{}"));
    CHECK(!fits(&p, ">>>stop_all\n{}"));
    p = (llm_calls_params){.size = sizeof p, .format = str("hermes"), .tools = value_of(tools)};
    p.prompt = str("assistant\n<think>\nI'm");
    p.n_begun = strlen("<think>\nI'm");
    CHECK(fits(&p, " here</think>" CALL));
    CHECK(!fits(&p, CALL));
}

/* Which of several patterns is used follows from the template. */
/* What an answer that is calls or a text has become. */
typedef struct either {
    int n_calls;
    char text[BUDGET + 1];
} either;

/* Reads an answer in pieces of up to n_piece bytes. */
static either read_either(const llm_calls_params *p, const char *s, size_t n, size_t n_piece) {
    llm_calls *c = NULL;
    llm_calls_part part;
    either e = {0};
    must(llm_calls_new(&c, p, &err) == GGL_OK);
    for (size_t i = 0; i < n; i += n_piece)
        must(llm_calls_add(c, s + i, n - i < n_piece ? n - i : n_piece, &err) == GGL_OK);
    must(llm_calls_finish(c, &err) == GGL_OK);
    while (llm_calls_next(c, &part)) {
        e.n_calls += part.kind == LLM_CALLS_CALL;
        CHECK(part.kind != LLM_CALLS_BROKEN);
        if (part.kind == LLM_CALLS_CONTENT)
            snprintf(e.text + strlen(e.text), sizeof e.text - strlen(e.text), "%.*s",
                     (int)part.text.n, part.text.s);
    }
    llm_calls_free(c);
    return e;
}

/* The text has marks of calls in its strings, and names of tools where calls have them. */
static const char answer_schema[] =
    "{\"type\": \"object\", \"properties\": {\"name\": {\"enum\": [\"<tool_call>{\", "
    "\"<function=f>\", \"[TOOL_CALLS]\", \"nobody\"]}, \"parameters\": {\"type\": \"object\", "
    "\"additionalProperties\": false}, \"arguments\": {\"type\": \"object\", "
    "\"additionalProperties\": false}}, \"required\": [\"name\", \"parameters\", \"arguments\"], "
    "\"additionalProperties\": false}";

TEST(calls_or_a_text) {
    llm_vocab *v = byte_vocab();
    char s[BUDGET];
    state = sample_seed();
    for (int k = 0; llm_calls_format_name(k).n > 0; k++) {
        const llm_calls_params p = {.size = sizeof p,
                                    .format = llm_calls_format_name(k),
                                    .tools = value_of(tools),
                                    .answer = str(answer_schema)};
        llm_grammar *g = NULL;
        const ggl_status st = llm_calls_grammar(&g, &p, (ggl_str){0}, false, &err);
        CHECK_INT(st, is_known_to_lack(p.format) ? GGL_UNSUPPORTED : GGL_OK);
        if (st != GGL_OK) {
            CHECK(strstr(err.msg, "leave out the tools or the form"));
            continue;
        }
        llm_matcher *m = matcher(g, v);
        int n_calls = 0, n_texts = 0;
        for (int i = 0; i < 60; i++) {
            const size_t n = random_text(m, s);
            const either e = read_either(&p, s, n, 1 + rnd((uint32_t)n));
            llm_json *doc = NULL;
            n_calls += e.n_calls > 0;
            n_texts += e.n_calls == 0;
            if (!CHECK_MSG(e.n_calls == 0 || !e.text[0], "%.*s: a call and a text: %.*s",
                           (int)p.format.n, p.format.s, (int)n, s) ||
                e.n_calls > 0)
                continue;
            CHECK_MSG(llm_json_parse(&doc, e.text, strlen(e.text), "text", &err) == GGL_OK &&
                          llm_json_get_kind(&doc->root, "name", JSON_STRING),
                      "%.*s: %s of %.*s", (int)p.format.n, p.format.s, e.text, (int)n, s);
            llm_json_free(doc);
        }
        CHECK_MSG(n_calls > 0 && n_texts > 0, "%.*s: %d calls, %d texts", (int)p.format.n,
                  p.format.s, n_calls, n_texts);
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
    llm_vocab_free(v);
}

TEST(template_decides) {
    llm_calls_params p = {.size = sizeof p, .format = str("mistral"), .tools = value_of(tools)};
    p.template_text = str("[AVAILABLE_TOOLS] [TOOL_CALLS]");
    CHECK(fits(&p, "[TOOL_CALLS] [{\"name\": \"stop_all\", \"arguments\": {}}]"));
    CHECK(!fits(&p, "[TOOL_CALLS]stop_all[ARGS]{}"));
    p.template_text = str("[TOOL_CALLS] [ARGS]");
    CHECK(fits(&p, "[TOOL_CALLS]stop_all[ARGS]{}"));
    p.format = str("llama3");
    CHECK(fits(&p, "{\"name\": \"stop_all\", \"parameters\": {}}"));
    CHECK(!fits(&p, "{\"name\": \"stop_all\", \"arguments\": {}}"));
    CHECK(!fits(&p, "{\"name\": \"stop_all\", \"parameters\": {\"a\": 1}}"));
}

/* Arguments are an object of the properties that the schema names, unless it speaks of others. */
TEST(no_other_arguments) {
    static const struct {
        const char *schema, *arguments;
        bool fits;
    } row[] = {
        {"null", "{}", true},
        {"null", "{\"a\": 1}", false},
        {"{\"properties\": {}}", "{\"a\": 1}", false},
        {"{\"properties\": {\"a\": {}}}", "{\"a\": 1}", true},
        {"{\"properties\": {\"a\": {}}}", "{\"b\": 1}", false},
        {"{\"properties\": {\"a\": {}}, \"additionalProperties\": true}", "{\"b\": 1}", true},
        {"{\"properties\": {\"a\": {}}, \"allOf\": [{\"required\": [\"b\"]}]}", "{\"b\": 1}", true},
        {"{}", "{\"b\": 1}", true},
        {"{}", "5", false},
        {"{\"minProperties\": 1}", "{\"b\": 1}", true},
        {"{\"minProperties\": 1}", "[]", false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char list[300], text[300];
        snprintf(list, sizeof list, "[{\"function\": {\"name\": \"f\", \"parameters\": %s}}]",
                 row[i].schema);
        snprintf(text, sizeof text, "<tool_call>{\"name\": \"f\", \"arguments\": %s}</tool_call>",
                 row[i].arguments);
        const llm_calls_params p = {
            .size = sizeof p, .format = str("hermes"), .tools = value_of(list)};
        CHECK_MSG(fits(&p, text) == row[i].fits, "%s: %s", row[i].schema, row[i].arguments);
    }
}

TEST(wrong_tools) {
    static const struct {
        const char *tools;
        ggl_status st;
        const char *message;
    } row[] = {
        {"{}", GGL_FORMAT, "tools: an object, expected an array of functions"},
        {"[]", GGL_NOT_FOUND, "there are no tools to be called"},
        {"[{\"function\": {}}]", GGL_FORMAT, "tools[0]: the function has no name"},
        {"[{\"function\": {\"name\": \"f\", \"parameters\": {\"type\": 5}}}]", GGL_FORMAT,
         "parameters of f"},
        {"[{\"function\": {\"name\": \"f\", \"parameters\": {\"$dynamicRef\": \"#a\"}}}]",
         GGL_FORMAT, "parameters of f"},
        {"[{\"function\": {\"name\": \"f\", \"parameters\": {\"enum\": []}}}]", GGL_FORMAT,
         "there is no text"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const llm_calls_params p = {
            .size = sizeof p, .format = str("hermes"), .tools = value_of(row[i].tools)};
        llm_grammar *g = NULL;
        const ggl_status st = llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err);
        CHECK_MSG(st == row[i].st && !g, "%s: %d, %s", row[i].tools, st, err.msg);
        CHECK_MSG(strstr(err.msg, row[i].message), "%s", err.msg);
        llm_grammar_free(g);
    }
}

static bool make(void *arg) {
    llm_grammar *g = NULL;
    const ggl_status st = llm_calls_grammar(&g, arg, (ggl_str){0}, true, &err);
    CHECK_MSG(st == GGL_OK || (st == GGL_NOMEM && !g), "%d: %s", st, err.msg);
    llm_grammar_free(g);
    return st == GGL_OK;
}

TEST(allocation_failures) {
    llm_calls_params p = {.size = sizeof p,
                          .format = str("granite-20b"),
                          .tools = value_of("[{\"function\": {\"name\": \"f\"}}]")};
    CHECK(alloc_fail_each(make, &p) > 10);
    p.format = str("glm");
    p.tools =
        value_of("[{\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {\"enum\": [\"b\"]}, "
                 "\"c\": {\"type\": [\"null\", \"string\"], \"maxLength\": 1}}}}]");
    CHECK(alloc_fail_each(make, &p) > 10);
}
