/* Grammars of calls whose arguments stand between marks: texts that are drawn at random from them are read by the parser of answers
 * (llm_calls_new), and the arguments must be valid under the schema of the tool. */
#include "llm/internal/calls.h"

#include "schema_rows.h"

#include "draw_text.h" /* after it: both have an err */
#include "seed.h"
#include "value_of.h"

/* Strings that hold marks or look like other values, and strings within other values. */
#define MANY_KINDS                                                                                 \
    "{\"type\": \"object\", \"properties\": {\"text\": {\"type\": \"string\", \"minLength\": 1, "  \
    "\"maxLength\": 9}, \"word\": {\"enum\": [\"a<b\", \"</parameter>\", \"</arg_value>\", "       \
    "\"</param>\", \"\\n x\\n\", \"5\", \"<![CDATA[\"]}, \"mixed\": {\"type\": [\"string\", "      \
    "\"integer\"], \"maxLength\": 3}, \"maybe\": {\"anyOf\": [{\"type\": \"null\"}, {\"enum\": "   \
    "[\"null\", \"nil\", \" null\", \"7\"]}]}, \"day\": {\"type\": \"string\", \"format\": "       \
    "\"date\"}, \"list\": {\"type\": \"array\", \"items\": {\"type\": \"string\", \"maxLength\": " \
    "3}, \"maxItems\": 3}, \"pair\": {\"type\": \"object\", \"properties\": {\"a<\": {\"enum\": "  \
    "[\"</arg_value>\", \"</parameter>\", 5]}}, \"additionalProperties\": false}, \"any\": "       \
    "{\"description\": \"a number or so\"}, \"ref\": {\"$ref\": \"#/$defs/d\"}}, \"$defs\": "      \
    "{\"d\": {\"type\": \"string\", \"pattern\": \"^[<>a/]{1,4}$\"}}, \"required\": [\"text\", "   \
    "\"list\"], \"additionalProperties\": false}"
static const char many_kinds[] = MANY_KINDS;
static const char many_tools[] = "[{\"name\": \"f\", \"parameters\": " MANY_KINDS "}]";

static const char *const marked[] = {"qwen3-coder", "glm",        "minimax-m2", "seed-oss",
                                     "minicpm5",    "step3",      "muse",       "deepseek-v3.2",
                                     "kimi-k3",     "k2-horizon", "ling3",      NULL};

/* Checks that an answer is one call of f with valid arguments. */
static void check_many(const llm_calls_params *p, const llm_grammar *valid, const char *s,
                       size_t n) {
    llm_calls *c = NULL;
    llm_calls_part part;
    int n_calls = 0;
    must(llm_calls_new(&c, p, &err) == GGL_OK);
    must(llm_calls_add(c, s, n, &err) == GGL_OK && llm_calls_finish(c, &err) == GGL_OK);
    while (llm_calls_next(c, &part)) {
        char *arguments = strndup(part.arguments.s, part.arguments.n);
        n_calls++;
        CHECK_MSG(part.kind == LLM_CALLS_CALL && ggl_str_is(part.name, "f") &&
                      fits(valid, arguments),
                  "%.*s: '%s' of %.*s", (int)p->format.n, p->format.s, arguments, (int)n, s);
        free(arguments);
    }
    CHECK_MSG(n_calls == 1, "%.*s: %d calls in %.*s", (int)p->format.n, p->format.s, n_calls,
              (int)n, s);
    llm_calls_free(c);
}

TEST(arguments_between_marks) {
    llm_vocab *v = byte_vocab();
    llm_grammar *valid = compile(many_kinds);
    char s[BUDGET];
    state = sample_seed();
    for (int k = 0; marked[k]; k++) {
        const llm_calls_params p = {.size = sizeof p,
                                    .format = str(marked[k]),
                                    .template_text = str("no reasoning"),
                                    .tools = value_of(many_tools)};
        llm_grammar *g = NULL;
        REQUIRE_OK(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), &err);
        llm_matcher *m = matcher(g, v);
        for (int i = 0; i < (TEST_SANITIZED ? 20 : 100); i++)
            check_many(&p, valid, s, random_text(m, s));
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
    llm_grammar_free(valid);
    llm_vocab_free(v);
}

/* What models write, up to NULL, then what they must not write. */
TEST(forms_of_marked_arguments) {
    static const struct {
        const char *format, *texts[6];
    } rows[] = {
        {"qwen3-coder",
         {"<tool_call>\n<function=f>\n<parameter=text>\na\nb\n</parameter>\n<parameter=list>\n"
          "[\"<\"]\n</parameter>\n</function>\n</tool_call>",
          NULL,
          "<tool_call>\n<function=f>\n<parameter=text>\na\n</parameter>\n</function>\n</tool_call>",
          NULL}},
        {"qwen3-coder",
         {"<tool_call>\n<function=f>\n<parameter=list>\n[\"\\u003c\"]\n</parameter>\n<parameter="
          "text>\n<b>\n</parameter>\n</function>\n</tool_call>",
          NULL, NULL}},
        {"glm",
         {"<tool_call>f\n<arg_key>list</arg_key>\n<arg_value>[]</arg_value>\n<arg_key>text</"
          "arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
          NULL,
          "<tool_call>f\n<arg_key>list</arg_key>\n<arg_value>x</arg_value>\n<arg_key>text</"
          "arg_key>\n<arg_value>5</arg_value>\n</tool_call>",
          NULL}},
        {"deepseek-v3.2",
         {"<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"text\" string=\"true\">5</"
          "｜DSML｜parameter>\n<｜DSML｜parameter name=\"list\" string=\"false\">[]</"
          "｜DSML｜parameter>\n</｜DSML｜invoke>",
          NULL,
          "<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"text\" string=\"false\">5</"
          "｜DSML｜parameter>\n<｜DSML｜parameter name=\"list\" string=\"false\">[]</"
          "｜DSML｜parameter>\n</｜DSML｜invoke>",
          NULL}}};
    llm_grammar *valid = compile(many_kinds);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const llm_calls_params p = {
            .size = sizeof p, .format = str(rows[i].format), .tools = value_of(many_tools)};
        llm_grammar *g = NULL;
        REQUIRE_OK(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), &err);
        const bool is_first = i == 0; /* its list has '<' as itself, which is not written */
        CHECK_MSG(fits(g, rows[i].texts[0]) == !is_first, "%s", rows[i].texts[0]);
        check_many(&p, valid, rows[i].texts[0], strlen(rows[i].texts[0]));
        for (int k = 2; rows[i].texts[k]; k++)
            CHECK_MSG(!fits(g, rows[i].texts[k]), "%s", rows[i].texts[k]);
        llm_grammar_free(g);
    }
    llm_grammar_free(valid);
}

TEST(what_marks_cannot_hold) {
    static const char *const rows[][2] = {
        {"{\"properties\": {\"a\": {}}, \"allOf\": [{\"required\": [\"a\"]}]}",
         "#/allOf: arguments that are not written as JSON"},
        {"{\"properties\": {\"a\": {}}, \"required\": [\"b\"]}",
         "#/required: 'b' is not one of the 'properties'"},
        {"{\"properties\": {\"a b\": {}}}", "the name \"a b\" cannot be written"},
        {"{\"properties\": {\"a\": {\"type\": 5}}}", "#/properties/a/type"},
        {"{\"type\": \"string\", \"properties\": {}}",
         "#/type: arguments that are not written as JSON"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char tool[400];
        snprintf(tool, sizeof tool, "[{\"name\": \"f\", \"parameters\": %s}]", rows[i][0]);
        const llm_calls_params p = {
            .size = sizeof p, .format = str("glm"), .tools = value_of(tool)};
        llm_grammar *g = NULL;
        CHECK(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err) != GGL_OK && !g);
        CHECK_HAS(err.msg, rows[i][1]);
        CHECK_HAS(err.msg, "parameters of f");
    }
}

/* A name that is there twice, and a number above the largest double, which no grammar forbids, are read as what they are. */
TEST(odd_json) {
    static const char tool[] = "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"o\": "
                               "{\"type\": \"object\"}, \"n\": {\"type\": \"integer\"}}}}]";
    static const char call[] = "<tool_call>f<arg_key>o</arg_key><arg_value>{\"a\":1,\"a\":2}</"
                               "arg_value>\n<arg_key>n</arg_key><arg_value>";
    char s[800], want[800];
    const int n = snprintf(s, sizeof s, "%s%0330d</arg_value></tool_call>", call, 0);
    memset(s + sizeof call - 1, '9', 330);
    snprintf(want, sizeof want, "{\"o\":{\"a\":1,\"a\":2},\"n\":%0330d}", 0);
    memset(strstr(want, "n\":") + 3, '9', 330);
    const llm_calls_params p = {.size = sizeof p, .format = str("glm"), .tools = value_of(tool)};
    llm_calls *c = NULL;
    llm_calls_part part;
    llm_grammar *g = NULL;
    REQUIRE_OK(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), &err);
    CHECK(fits(g, s));
    must(llm_calls_new(&c, &p, &err) == GGL_OK);
    must(llm_calls_add(c, s, (size_t)n, &err) == GGL_OK && llm_calls_finish(c, &err) == GGL_OK);
    CHECK(llm_calls_next(c, &part) && part.kind == LLM_CALLS_CALL &&
          ggl_str_is(part.arguments, want));
    llm_calls_free(c);
    llm_grammar_free(g);
}

/* A call that the prompt has begun goes on at once, though the model may reason before others. */
TEST(no_reasoning_within_a_call) {
    const llm_calls_params p = {
        .size = sizeof p,
        .format = str("qwen3-coder"),
        .template_text = str("<think> <tool_call> <function= > </function> </tool_call>"),
        .prompt = str("<tool_call>\n"),
        .tools = value_of(many_tools)};
    static const char call[] =
        "<function=f>\n<parameter=text>\na\n</parameter>\n<parameter=list>\n[]\n</parameter>\n</"
        "function>\n</tool_call>";
    char s[300];
    llm_grammar *g = NULL;
    REQUIRE_OK(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), &err);
    snprintf(s, sizeof s, "<think>x</think>%s", call);
    CHECK(fits(g, call) && !fits(g, s));
    llm_grammar_free(g);
}

/* Where the arguments of a tool cannot stand between marks, calls are in the format's other form. */
TEST(another_form) {
    const llm_calls_params p = {
        .size = sizeof p,
        .format = str("qwen3-coder"),
        .tools = value_of(
            "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"a b\": {\"const\": 1}}, "
            "\"required\": [\"a b\"]}}]")};
    llm_grammar *g = NULL;
    REQUIRE_OK(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), &err);
    CHECK(fits(g, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a b\": 1}}</tool_call>"));
    llm_grammar_free(g);
}

TEST(names_of_functions) {
    static const char *const rows[][2] = {{"glm", "my tool"}, {"kimi-k2", "a:b"}};
    for (size_t i = 0; i < 2; i++) {
        char tool[100];
        snprintf(tool, sizeof tool, "[{\"name\": \"%s\"}]", rows[i][1]);
        const llm_calls_params p = {
            .size = sizeof p, .format = str(rows[i][0]), .tools = value_of(tool)};
        llm_grammar *g = NULL;
        CHECK_INT(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), GGL_UNSUPPORTED);
        CHECK_HAS(err.msg, rows[i][1]);
    }
}

/* A tool with very many arguments is refused before much time has passed. */
TEST(many_arguments_are_limited) {
    enum { MANY = 16000 };
    char *tool = malloc(64 * MANY), *at = tool;
    REQUIRE(tool);
    at += sprintf(at, "[{\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": {}");
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, ", \"n%d\": {\"type\": \"string\"}", i);
    at += sprintf(at, "}, \"required\": [\"a\"");
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, ", \"n%d\"", i);
    sprintf(at, "]}}]");
    const llm_calls_params p = {
        .size = sizeof p, .format = str("glm"), .tools = value_of(tool), .max_steps = 1 << 20};
    llm_grammar *g = NULL;
    CHECK_INT(llm_calls_grammar(&g, &p, (ggl_str){0}, true, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "1048576 steps");
    free(tool);
}
