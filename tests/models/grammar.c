/* Grammars, as users write them. */
#include "common/json.h"
#include "llm/grammar.h"
#include "test.h"

static llm_grammar *gbnf(const char *text) {
    ggl_error err = {0};
    llm_grammar *g;
    CHECK_OK(llm_grammar_from_gbnf(&g, text, strlen(text), "test.gbnf", &err), &err);
    return g;
}

/* -1: accepted to the end but not complete; -2: complete; else where it was refused. */
static int match(const char *grammar, const char *text) {
    ggl_error err = {0};
    llm_grammar *g = gbnf(grammar);
    llm_matcher *m = NULL;
    int result = -3;
    if (g && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
        size_t n = 0;
        CHECK_OK(llm_matcher_accept_bytes(m, text, strlen(text), &n, &err), &err);
        result = n < strlen(text) ? (int)n : llm_matcher_is_complete(m) ? -2 : -1;
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    return result;
}

#define YES(grammar, text) CHECK_INT(match(grammar, text), -2)
#define NO(grammar, text)  CHECK(match(grammar, text) != -2)

TEST(operators) {
    const char *g = "root ::= \"a\"* \"b\"+ \"c\"? (\"d\" | \"e\"){2,3} \"f\"{2} \"g\"{1,}";
    YES(g, "bddffg");
    YES(g, "aaabbbceeeffggg");
    NO(g, "bdffg");
    NO(g, "bddddffg");
    NO(g, "bddfg");
    NO(g, "bddff");
}

TEST(recursion_of_every_kind) {
    const char *left = "root ::= root \"+\" t | t\nt ::= \"x\" | \"(\" root \")\"";
    YES(left, "x+x+(x+x)+x");
    NO(left, "x+");
    NO(left, "x+x)");
    const char *right = "root ::= \"x\" root | \"y\"";
    YES(right, "xxxxxy");
    NO(right, "xxxx");
    const char *both = "root ::= root root | \"a\" | ";
    YES(both, "aaaaaaaaaa");
    YES(both, "");
    NO(both, "aab");
    const char *hidden = "root ::= e root \"b\" | \"a\"\ne ::= \"\" | \"c\"";
    YES(hidden, "abbb");
    YES(hidden, "ccabb");
    NO(hidden, "cccabb");
    YES("root ::= root | \"a\"", "a");
    const char *palindrome = "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"a\" | \"b\" | \"\"";
    YES(palindrome, "abbabba");
    YES(palindrome, "abaaba");
    NO(palindrome, "abab");
}

/* --- the examples of llama.cpp ---------------------------------------------------------------- */

/* The strings of a list of the cases file must match, or must not. */
static void check_list(const llm_json *doc, const char *list, llm_matcher *m, const char *name) {
    const json_value *all = llm_json_get_kind(&doc->root, list, JSON_ARRAY);
    REQUIRE(all);
    for (size_t i = 0; i < all->n; i++) {
        const ggl_str s = json_str(&all->item[i]);
        ggl_error err = {0};
        size_t n = 0;
        llm_matcher_reset(m);
        CHECK_OK(llm_matcher_accept_bytes(m, s.s, s.n, &n, &err), &err);
        const bool matches = n == s.n && llm_matcher_is_complete(m);
        CHECK_MSG(matches == (list[0] == 'm'), "%s: '%.*s' %s", name, (int)s.n, s.s,
                  matches ? "matches" : "does not match");
    }
}

static void check_cases(const char *name) {
    char file[300];
    ggl_error err = {0};
    llm_json *doc;
    llm_grammar *g = NULL;
    llm_matcher *m = NULL;
    size_t n = 0;
    snprintf(file, sizeof file, "json/grammars/%s.cases.json", name);
    REQUIRE_OK(llm_json_read(&doc, test_shared(file), 1 << 20, &err), &err);
    snprintf(file, sizeof file, "json/grammars/%s.gbnf", name);
    unsigned char *text = test_read_file(test_shared(file), &n);
    if (CHECK(text) && CHECK_OK(llm_grammar_from_gbnf(&g, (char *)text, n, name, &err), &err) &&
        CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
        check_list(doc, "match", m, name);
        check_list(doc, "no_match", m, name);
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    free(text);
    llm_json_free(doc);
}

TEST(published_examples) {
    static const char *const names[] = {"arithmetic", "c",    "chess",    "english",
                                        "japanese",   "json", "json_arr", "list"};
    if (!test_shared("json/grammars/list.gbnf"))
        SKIP("no folder json/grammars");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_cases(names[i]);
}

/* --- messages --------------------------------------------------------------------------------- */

static void refused(const char *text, const char *words) {
    ggl_error err = {0};
    llm_grammar *g;
    CHECK(llm_grammar_from_gbnf(&g, text, strlen(text), "bad.gbnf", &err) != GGL_OK);
    CHECK(!g);
    CHECK_HAS(err.msg, words);
}

TEST(faults_have_a_place) {
    refused("root ::= a", "bad.gbnf:1:10: error: rule 'a' is not defined\n    1 | root ::= a\n"
                          "      |          ^");
    refused("a ::= \"x\"", "bad.gbnf:1:10: error: there is no rule 'root'");
    refused("", "there is no rule 'root'");
    refused("root ::= \"x\"\n# again\nroot ::= \"y\"",
            "3:1: error: rule 'root' is already defined in line 1");
    refused("root ::= \"x", "'\"' is missing at the end of the literal");
    refused("root ::= [a", "']' is missing at the end of the class");
    refused("root ::= []", "no characters");
    refused("root ::= [b-a]", "ends before it begins");
    refused("root ::= \"\\q\"", "1:11: error: unknown escape");
    refused("root ::= \"\\x4\"", "needs 2 hexadecimal digits");
    refused("root ::= \"\\ud800\"", "U+D800 is no character");
    refused("root ::= (\"x\"", "')' is missing");
    refused("root ::= (\"x\" ]", "expected ')'");
    refused("root ::= \"x\" )", "1:14: error: expected");
    refused("root ::= * \"x\"", "nothing before '*'");
    refused("root ::= \"x\"{3,2}", "at most 2 repetitions are fewer than at least 3");
    refused("root ::= \"x\"{}", "expected a number");
    refused("root ::= \"x\"{1,2", "'}' is missing");
    refused("root ::= \"x\"{1000000000}", "at most 100000000 repetitions");
    refused("root : \"x\"", "expected '::='");
    refused("root ::= <think>", "not supported");
    refused("root ::= \"\xff\"", "0xff is not valid UTF-8");
    refused("root ::= root", "no text that fits");
    refused("root ::= \"a\" b\nb ::= \"b\" root", "no text that fits");
}

TEST(layout_of_rules) {
    const char *g = "# first\n\nroot ::= # one\n  a |\n  b # two\n | (c\n\n \"!\" # x\n)\r\n"
                    "a ::= \"x\"|\nb ::=\nc ::= \"z\" | ";
    YES(g, "x");
    YES(g, "");
    YES(g, "z!");
    YES(g, "!");
    NO(g, "z");
    YES("root ::= \"\\x41\\u00e9\\U0001F600\\\"\\n\"", "A\xc3\xa9\xf0\x9f\x98\x80\"\n");
    YES("root ::= [^a-c\\]]+ [-x] [x-]", "d\xe2\x82\xac"
                                         "f--");
    NO("root ::= [^a-c]", "b");
    YES("root ::= .{2}", "\xe2\x82\xac\n");
}
