/* Grammars, as users write them. */
#include "alloc_fail.h"
#include "common/json.h"
#include "llm/internal/grammar.h"
#include "seed.h"
#include "steps.h"
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
        SKIP_NOT_SHIPPED("published grammars");
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

static void expects(const char *grammar, const char *text, const char *words) {
    ggl_error err = {0};
    llm_grammar *g = gbnf(grammar);
    llm_matcher *m = NULL;
    char buf[300], small[8];
    size_t n;
    if (g && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
        CHECK_OK(llm_matcher_accept_bytes(m, text, strlen(text), &n, &err), &err);
        CHECK_INT(llm_matcher_expected(m, buf, sizeof buf), strlen(words));
        CHECK_STR(buf, words);
        CHECK_INT(llm_matcher_expected(m, small, sizeof small), strlen(words));
        CHECK(strncmp(small, words, 7) == 0);
        CHECK_INT(llm_matcher_expected(m, NULL, 0), strlen(words));
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
}

TEST(what_is_expected) {
    expects("root ::= \"true\" | \"false\" | [0-9]+", "", "a digit, 'false' or 'true'");
    expects("root ::= \"true\" | [0-9]+", "12", "a digit or the end of the text");
    expects("root ::= \"a\" [ \\n]? \"b\"", "a", "a line end, a space or 'b'");
    expects("root ::= \"\\\"\" [^\"]* \"\\\"\"", "\"", "any character");
    expects("root ::= [^\"x]", "", "any character but '\"' 'x'");
    expects("root ::= [a-zA-Zé]", "", "a small letter, a capital letter or another character");
    expects("root ::= [a-zé]", "\xc3", "the rest of a character");
    expects("root ::= \"abc\"", "abc", "the end of the text");
}

/* --- long texts ------------------------------------------------------------------------------- */

/* The bytes that a copy of a matcher takes: they grow with what it keeps of the text. */
static size_t size_of(const llm_matcher *m) {
    const size_t before = alloc_bytes();
    ggl_error err = {0};
    llm_matcher *c;
    CHECK_OK(llm_matcher_copy(&c, m, &err), &err);
    llm_matcher_free(c);
    return alloc_bytes() - before;
}

static void accept_often(llm_matcher *m, const char *text, int times) {
    size_t n = 0;
    ggl_error err = {0};
    for (int i = 0; i < times && test_failures == 0; i++) {
        CHECK_OK(llm_matcher_accept_bytes(m, text, strlen(text), &n, &err), &err);
        CHECK_INT(n, strlen(text));
    }
}

/* Frames that were left are freed: neither loops nor recursion at the end of a rule need more memory
 * the longer the text is. */
TEST(memory_of_long_texts) {
    static const char *const grammars[] = {
        "root ::= \"[\" (v \",\")* \"]\"\nv ::= \"[\" v? \"]\"",
        "root ::= \"[\" r\nr ::= v \",\" r | \"]\"\nv ::= \"[\" v? \"]\"",
        "root ::= \"[\" l \"]\"\nl ::= l v \",\" | \"\"\nv ::= \"[\" v? \"]\""};
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++) {
        ggl_error err = {0};
        llm_grammar *g = gbnf(grammars[i]);
        llm_matcher *m = NULL;
        size_t n;
        if (g && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
            CHECK_OK(llm_matcher_accept_bytes(m, "[", 1, &n, &err), &err);
            accept_often(m, "[[[]]],", 30000);
            CHECK_MSG(size_of(m) < 200000, "%s: %zu bytes", grammars[i], size_of(m));
            CHECK_OK(llm_matcher_accept_bytes(m, "]", 1, &n, &err), &err);
            CHECK(llm_matcher_must_end(m));
        }
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
}

/* --- ambiguous grammars ----------------------------------------------------------------------- */

/* The steps for a text of n times the letter a. */
static uint64_t steps_for(const char *grammar, int n) {
    ggl_error err = {0};
    llm_grammar *g = gbnf(grammar);
    llm_matcher *m = NULL;
    ggl_n_steps = 0;
    if (g && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
        accept_often(m, "a", n);
        CHECK(llm_matcher_is_complete(m));
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    return ggl_n_steps;
}

/* The time grows with the cube of the text's length at most: eight times for twice the text. */
TEST(time_of_ambiguous_grammars) {
    static const char *const grammars[] = {"root ::= root root root | root root | \"a\" | \"\"",
                                           "root ::= root root | \"a\"",
                                           "root ::= r root | r\nr ::= root \"a\" | \"a\" | r r"};
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars; i++)
        test_linear(grammars[i], steps_for(grammars[i], 40), steps_for(grammars[i], 80), 8);
}

/* Rules r_i ::= r_{i+1} "b"? r_{i+1} | "a". */
static char *many_ways(int n) {
    char *text = calloc((size_t)n + 2, 40), *at = text;
    at += sprintf(at, "root ::= r0\n");
    for (int i = 0; i < n; i++)
        at += sprintf(at, "r%d ::= r%d \"b\"? r%d | \"a\"\n", i, i + 1, i + 1);
    sprintf(at, "r%d ::= \"a\"", n);
    return text;
}

/* There are so many ways to go on that the matcher gives up. */
LONG_TEST(too_ambiguous_grammars_are_refused) {
    char *text = many_ways(190);
    const char many[] = "aaaaaaaaaaaaaaaaaaaaaaaa";
    ggl_error err = {0};
    llm_matcher *m = NULL, *fresh = NULL;
    size_t n;
    llm_grammar *g = gbnf(text);
    if (g && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err) &&
        CHECK_OK(llm_matcher_copy(&fresh, m, &err), &err)) {
        CHECK_INT(llm_matcher_accept_bytes(m, many, strlen(many), &n, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, "the grammar is too ambiguous: after ");
        /* it stays so, also in copies; another one of the same grammar goes on */
        llm_matcher *like = NULL;
        CHECK_INT(llm_matcher_accept_bytes(m, many, 1, &n, &err), GGL_LIMIT);
        CHECK_OK(llm_matcher_accept_bytes(fresh, many, 1, &n, &err), &err);
        CHECK(llm_matcher_is_complete(fresh));
        CHECK_OK(llm_matcher_copy(&like, m, &err), &err);
        CHECK_INT(llm_matcher_accept_bytes(like, many, 1, &n, &err), GGL_LIMIT);
        llm_matcher_free(like);
        llm_matcher_reset(m);
        CHECK_OK(llm_matcher_accept_bytes(m, many, 1, &n, &err), &err);
        CHECK(llm_matcher_is_complete(m));
    }
    llm_matcher_free(fresh);
    llm_matcher_free(m);
    llm_grammar_free(g);
    free(text);
}

/* --- grammars that look hard ------------------------------------------------------------------ */

/* Appends `part` n times. */
static char *put_often(char *at, const char *part, int n) {
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s ", part);
    return at;
}

/* A text of n letters a fits, within few steps and bytes; more letters do not fit if `ends`. */
static void check_cheap(const char *text, int n, bool ends) {
    enum { MOST_STEPS = 1 << 17, STEPS_BACK = 1 << 12, MOST_BYTES = 1 << 23 };
    ggl_error err = {0};
    llm_grammar *g = NULL;
    llm_matcher *m = NULL;
    const llm_gbnf_params p = {.size = sizeof p, .max_steps = 1 << 17, .max_bytes = MOST_BYTES};
    size_t n_done = 0;
    if (CHECK_OK(llm_grammar_from_gbnf_with(&g, text, strlen(text), "g", &p, &err), &err) &&
        CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
        llm_matcher_limit(m, MOST_STEPS, STEPS_BACK);
        for (int i = 0; i < n && test_failures == 0; i++)
            if (CHECK_OK(llm_matcher_accept_bytes(m, "a", 1, &n_done, &err), &err))
                CHECK_INT(n_done, 1);
        CHECK(llm_matcher_is_complete(m));
        CHECK(llm_matcher_must_end(m) == ends);
        CHECK_MSG(llm_matcher_size(m) > 1000 && llm_matcher_size(m) < MOST_BYTES, "%zu bytes",
                  llm_matcher_size(m));
        CHECK(llm_grammar_size(g) > 1000 && llm_grammar_size(g) < MOST_BYTES);
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
}

TEST(optional_parts_are_cheap) {
    char *text = malloc(1 << 16), *at;
    REQUIRE(text);
    at = put_often(text + sprintf(text, "root ::= "), "\"a\"?", 800);
    check_cheap(text, 800, true);
    put_often(at, "\"a\"", 800);
    check_cheap(text, 1600, true);
    put_often(text + sprintf(text, "root ::= "), "\"a\"? \"b\"?", 400);
    check_cheap(text, 400, false);
    put_often(text + sprintf(text, "root ::= "), "(\"a\" | \"b\" \"c\"?)? \"b\"?", 300);
    check_cheap(text, 300, false);
    at = put_often(text + sprintf(text, "root ::= "), "x", 640);
    sprintf(at, "\nx ::= \"a\" x | \"a\"");
    check_cheap(text, 700, false);
    free(text);
}

/* Rules r_i ::= r_{i+1} r_{i+1} | r_{i+1}, of which the last may be empty: 2^60 ways to read a text. */
TEST(nullable_doubling_is_cheap) {
    static const char *const last[] = {"\"a\" | \"\"", "\"a\" | \"bc\" | \"\"", "\"a\""};
    char text[4096], *at;
    for (size_t k = 0; k < sizeof last / sizeof *last; k++) {
        at = text + sprintf(text, "root ::= r0\n");
        for (int i = 0; i < 60; i++)
            at += sprintf(at, "r%d ::= r%d r%d | r%d\n", i, i + 1, i + 1, i + 1);
        sprintf(at, "r60 ::= %s", last[k]);
        check_cheap(text, 1000, false);
    }
}

/* The tokens that must come next, which leave the matcher where it is. */
TEST(forced_tokens) {
    static const char *const word[] = {"a", "b", "ab", "x", "", "bc", "c"};
    ggl_str token[7];
    for (int i = 0; i < 7; i++)
        token[i] = (ggl_str){word[i], strlen(word[i])};
    const bool is_eog[7] = {[4] = true};
    ggl_error err = {0};
    llm_vocab *v = NULL;
    llm_matcher *m = NULL;
    int32_t id[8], n = 0;
    llm_grammar *g = gbnf("root ::= \"xx\" [ac] \"xxc\" \"x\"? ");
    if (CHECK_OK(llm_vocab_from_texts(&v, token, is_eog, 7, &err), &err) && g &&
        CHECK_OK(llm_matcher_new(&m, g, v, &err), &err)) {
        CHECK_OK(llm_matcher_forced(m, LLM_MATCHER_NO_BUDGET, id, 8, &n, &err), &err);
        CHECK(n == 2 && id[0] == 3 && id[1] == 3); /* then a or c */
        CHECK_OK(llm_matcher_forced(m, LLM_MATCHER_NO_BUDGET, id, 1, &n, &err), &err);
        CHECK_INT(n, 1);
        for (int i = 0; i < 3; i++)
            CHECK_OK(llm_matcher_accept_token(m, i < 2 ? 3 : 0, &err), &err);
        CHECK_OK(llm_matcher_forced(m, LLM_MATCHER_NO_BUDGET, id, 8, &n, &err), &err);
        CHECK(n == 3 && id[0] == 3 && id[1] == 3 && id[2] == 6); /* then x or the end */
        CHECK_OK(llm_matcher_forced(m, 2, id, 8, &n, &err), &err);
        CHECK_INT(n, 2);
        CHECK_OK(llm_matcher_accept_token(m, 3, &err), &err);
        CHECK(!llm_matcher_is_complete(m));
    }
    llm_matcher_free(m);
    llm_vocab_free(v);
    llm_grammar_free(g);
}

/* Beyond its bytes, a compilation or a matcher fails, and says so; nothing more is allocated. */
TEST(bytes_are_limited) {
    const llm_gbnf_params few = {.size = sizeof few, .max_bytes = 20000};
    llm_gbnf_params p = few;
    ggl_error err = {0};
    llm_grammar *g = NULL;
    llm_matcher *m = NULL, *copy = NULL;
    size_t n = 0;
    char text[8192], *at = put_often(text + sprintf(text, "root ::= "), "[ab] \"c\"?", 600);
    *at = 0;
    CHECK_INT(llm_grammar_from_gbnf_with(&g, text, strlen(text), "g", &p, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "takes more than 0 MiB of memory");
    p.max_bytes = 1 << 20;
    p.max_steps = 100;
    CHECK_INT(llm_grammar_from_gbnf_with(&g, text, strlen(text), "g", &p, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "takes more than 100 steps");
    p.max_steps = 0;
    if (CHECK_OK(llm_grammar_from_gbnf_with(&g, text, strlen(text), "g", &p, &err), &err) &&
        CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err) &&
        CHECK_OK(llm_matcher_copy(&copy, m, &err), &err)) {
        const size_t before = llm_matcher_size(m);
        CHECK_INT(llm_matcher_size(copy), before);
        llm_matcher_limit_bytes(m, before + 1000);
        CHECK_INT(llm_matcher_accept_bytes(m, "acbcacbcacbcacbc", 16, &n, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, "the grammar takes too much memory: after ");
        CHECK(llm_matcher_size(m) <= before + 1000);
        llm_matcher_limit_bytes(m, 0);
        llm_matcher_reset(m);
        CHECK_OK(llm_matcher_accept_bytes(m, "acbcacbcacbcacbc", 16, &n, &err), &err);
        llm_matcher_free(copy);
        copy = NULL;
        CHECK(llm_matcher_size(m) > before);
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
}

/* What a matcher may take at once, and in the long run. */
TEST(matchers_keep_to_their_steps) {
    char *text = many_ways(60);
    llm_grammar *g = gbnf(text);
    llm_matcher *m = NULL;
    ggl_error err = {0};
    size_t n = 0, n_more = 0;
    if (g && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
        const char *const many = "aaaaaaaaaaaaaaaaaaaa";
        CHECK_OK(llm_matcher_accept_bytes(m, many, 3, &n, &err), &err);
        llm_matcher_reset(m);
        llm_matcher_limit(m, 20000, 2000);
        ggl_n_steps = 0;
        CHECK_INT(llm_matcher_accept_bytes(m, many, 20, &n, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, "too many ways to go on (more than ");
        CHECK(n < 20);
        CHECK_MSG(ggl_n_steps > 0 && ggl_n_steps < 3 * (20000 + 2000 * (n + 2)),
                  "%" PRIu64 " steps",
                  ggl_n_steps); /* some are searches in tables, which the limit does not count */
        CHECK_INT(llm_matcher_accept_bytes(m, many, 20, &n_more, NULL), GGL_LIMIT);
        llm_matcher_reset(m);
        llm_matcher_limit(m, 0, 0);
        CHECK_OK(llm_matcher_accept_bytes(m, many, 3, &n, &err), &err);
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    free(text);
}

/* --- a vocabulary of a model ------------------------------------------------------------------ */

static llm_vocab *builtin_vocab(void) {
    ggl_error err = {0};
    ggl_gguf *file = NULL;
    llm_tokenizer *t = NULL;
    llm_vocab *v = NULL;
    if (CHECK_OK(ggl_gguf_open(&file, BUILTIN_MODEL, NULL, &err), &err) &&
        CHECK_OK(llm_tokenizer_new(&t, file, &err), &err))
        CHECK_OK(llm_vocab_new(&v, t, &err), &err);
    llm_tokenizer_free(t);
    ggl_gguf_close(file);
    return v;
}

static bool bit(const uint32_t *bits, int32_t id) {
    return bits[id / 32] >> (id % 32) & 1;
}

/* A mask must say of each token what accepting it says. Returns a token that is allowed, at random;
 * -1: none is. */
static int32_t check_mask(llm_matcher *m, const llm_vocab *v, uint64_t *seed, const char *g) {
    const int32_t n = llm_vocab_n(v);
    uint32_t *allowed = calloc((size_t)n / 32 + 1, sizeof *allowed);
    int32_t n_allowed = 0, chosen = -1;
    ggl_error err = {0};
    CHECK_OK(llm_matcher_mask(m, LLM_MATCHER_NO_BUDGET, allowed, &err), &err);
    for (int32_t id = 0; id < n; id++) {
        llm_matcher *c = NULL;
        CHECK_OK(llm_matcher_copy(&c, m, &err), &err);
        const bool accepted = llm_matcher_accept_token(c, id, NULL) == GGL_OK;
        CHECK_MSG(accepted == bit(allowed, id), "%s: token %d is %s", g, (int)id,
                  accepted ? "forbidden" : "allowed");
        if (accepted && !llm_matcher_has_ended(c) &&
            test_random(seed) % (uint64_t)(++n_allowed) == 0)
            chosen = id;
        llm_matcher_free(c);
    }
    free(allowed);
    return chosen;
}

/* Loops over many characters, with and without bounds, in frames and outside. */
TEST(masks_of_a_real_vocabulary) {
    static const char *const grammars[] = {
        "root ::= \"\\\"\" [^\"\\\\\\x00-\\x1f]{0,9} \"\\\"\" [a-z]{1,3}",
        "root ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" [nt]){3,} \"\\\"\"",
        "root ::= [A-Za-z0-9]{2,9} (\" \" root)? \".\"",
        "root ::= \"(\" item* \")\"\nitem ::= [^\"\\x00-\\x1f()]* \"\\\"\" | [a-z]+ | root",
        ("root ::= t (\",\" [ \\n]* t)*\nt ::= [0-9]+ | \"[\" root? \"]\" | .{0,4} \"!\" | \"x\" t "
         "\"y\""),
        "root ::= ([^\\n]* \"\\n\")* | [a-zA-Z0-9 ]* \"end\""};
    llm_vocab *v = builtin_vocab();
    uint64_t seed = sample_seed();
    REQUIRE(v);
    for (size_t i = 0; i < sizeof grammars / sizeof *grammars && test_failures == 0; i++) {
        llm_grammar *g = gbnf(grammars[i]);
        llm_matcher *m = NULL;
        ggl_error err = {0};
        if (g && CHECK_OK(llm_matcher_new(&m, g, v, &err), &err))
            for (int step = 0; step < (TEST_SANITIZED ? 4 : 12) && test_failures == 0; step++) {
                const int32_t id = check_mask(m, v, &seed, grammars[i]);
                if (id < 0)
                    break;
                CHECK_OK(llm_matcher_accept_token(m, id, &err), &err);
            }
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
    llm_vocab_free(v);
}

/* Draws tokens at random within a budget. Returns whether the text was complete at the end. */
static bool finishes(llm_matcher *m, const llm_vocab *v, int32_t left, uint64_t *seed) {
    const int32_t n = llm_vocab_n(v);
    uint32_t *allowed = calloc((size_t)n / 32 + 1, sizeof *allowed);
    int32_t *found = calloc((size_t)n, sizeof *found);
    ggl_error err = {0};
    for (; left > 0 && !llm_matcher_has_ended(m) && test_failures == 0; left--) {
        int32_t n_found = 0;
        CHECK_OK(llm_matcher_mask(m, left, allowed, &err), &err);
        for (int32_t id = 0; id < n; id++)
            if (bit(allowed, id))
                found[n_found++] = id;
        if (n_found == 0)
            break;
        const int32_t id = found[test_random(seed) % (uint64_t)n_found];
        CHECK_OK(llm_matcher_accept_token(m, id, &err), &err);
    }
    free(found);
    free(allowed);
    return llm_matcher_is_complete(m);
}

TEST(texts_are_finished_within_the_budget) {
    static const char *const grammars[] = {
        "root ::= \"{\" k (\",\" k){2} \"}\"\nk ::= \"\\\"name\\\":\" (root | \"[\" k* \"]\" | "
        "[0-9]{3,})",
        "root ::= s (\", \" s)* \".\"\ns ::= [A-Z] [a-z]{2,20} | \"(\" root \")\""};
    llm_vocab *v = builtin_vocab();
    uint64_t seed = sample_seed();
    REQUIRE(v);
    for (int i = 0; i < (TEST_SANITIZED ? 20 : 200) && test_failures == 0; i++) {
        llm_grammar *g = gbnf(grammars[i % 2]);
        llm_matcher *m = NULL;
        const int32_t *id;
        int32_t n = 0;
        ggl_error err = {0};
        if (g && CHECK_OK(llm_matcher_new(&m, g, v, &err), &err) &&
            CHECK_OK(llm_matcher_ending(m, &id, &n, &err), &err)) {
            const int32_t budget = n + (int32_t)(test_random(&seed) % 40);
            CHECK_MSG(finishes(m, v, budget, &seed), "%s: not in %d tokens", grammars[i % 2],
                      (int)budget);
        }
        llm_matcher_free(m);
        llm_grammar_free(g);
    }
    llm_vocab_free(v);
}

/* The steps of 40 masks and their tokens, after the first. The text needs n bytes, far more than fit. */
static uint64_t steps_of_masks(const llm_vocab *v, int n, int32_t budget) {
    char text[80];
    ggl_error err = {0};
    llm_grammar *g = NULL;
    llm_matcher *m = NULL;
    uint32_t *allowed = calloc((size_t)llm_vocab_n(v) / 32 + 1, sizeof *allowed);
    snprintf(text, sizeof text, "{\"type\": \"string\", \"minLength\": %d}", n);
    if (CHECK_OK(llm_grammar_from_schema(&g, text, strlen(text), "s", &err), &err) &&
        CHECK_OK(llm_matcher_new(&m, g, v, &err), &err))
        for (int i = 0; i < 41 && test_failures == 0; i++) {
            int32_t id = 0;
            CHECK_OK(llm_matcher_mask(m, budget < 0 ? budget : budget - i, allowed, &err), &err);
            while (id + 1 < llm_vocab_n(v) && !bit(allowed, id))
                id++;
            CHECK_OK(llm_matcher_accept_token(m, id, &err), &err);
            ggl_n_steps = i == 0 ? 0 : ggl_n_steps;
        }
    llm_matcher_free(m);
    llm_grammar_free(g);
    free(allowed);
    return ggl_n_steps;
}

/* What a mask costs does not depend on how far the ending is, and an ample budget costs nothing. */
TEST(masks_far_from_the_ending) {
    llm_vocab *v = builtin_vocab();
    REQUIRE(v);
    const uint64_t plain = steps_of_masks(v, 20000, LLM_MATCHER_NO_BUDGET);
    CHECK(plain > 0);
    CHECK_INT(steps_of_masks(v, 20000, 30000), plain);
    CHECK(steps_of_masks(v, 20000, 300) <= plain); /* no tokens are as long */
    test_linear("the ending", steps_of_masks(v, 2000, 300), steps_of_masks(v, 4000, 300), 1);
    llm_vocab_free(v);
}

/* --- small vocabularies ------------------------------------------------------------------------ */

/* The characters from space to '~', and C3 and A9, the bytes of an e with an acute accent; but no
 * other bytes within characters. */
static llm_vocab *some_bytes_vocab(void) {
    static char byte[128];
    ggl_str text[128];
    int32_t n = 0;
    for (int c = ' '; c < 0x7f; c++)
        byte[n++] = (char)c;
    byte[n++] = '\xc3';
    byte[n++] = '\xa9';
    for (int32_t i = 0; i < n; i++)
        text[i] = (ggl_str){&byte[i], 1};
    ggl_error err = {0};
    llm_vocab *v = NULL;
    CHECK_OK(llm_vocab_from_texts(&v, text, NULL, n, &err), &err);
    return v;
}

/* Tokens that end within a character are not used unless every character can then be finished, and
 * so the matcher must not count on them either. */
TEST(vocabularies_with_some_bytes_of_characters) {
    llm_vocab *v = some_bytes_vocab();
    llm_grammar *g = gbnf("root ::= \"\xc3\xa9\" | \"xxxxx\"");
    llm_matcher *m = NULL;
    ggl_error err = {0};
    const int32_t *id;
    int32_t n = 0, n_allowed = 0;
    uint32_t allowed[4];
    if (v && g && CHECK_OK(llm_matcher_new(&m, g, v, &err), &err)) {
        CHECK_OK(llm_matcher_ending(m, &id, &n, &err), &err);
        CHECK_INT(n, 5);
        CHECK_OK(llm_matcher_mask(m, 5, allowed, &err), &err);
        for (int32_t i = 0; i < llm_vocab_n(v); i++)
            n_allowed += bit(allowed, i);
        CHECK_INT(n_allowed, 1);
        CHECK(bit(allowed, 'x' - ' '));
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    g = gbnf("root ::= \"\xc3\xa9\"");
    CHECK(v && g && llm_matcher_new(&m, g, v, &err) == GGL_UNSUPPORTED && !m);
    CHECK_HAS(err.msg, "can be written with the model's vocabulary");
    llm_grammar_free(g);
    llm_vocab_free(v);
}

/* --- memory that runs out --------------------------------------------------------------------- */

/* All that a grammar and a matcher do; true if all of it succeeds. */
static bool work(void *arg) {
    const ggl_str text[] = {{"a", 1}, {"b", 1}, {"(", 1}, {")", 1}, {"ab", 2}, {"((", 2}};
    const char *const g_text = "root ::= \"(\" r* \")\"\nr ::= root | [ab]{2,} | \"a\" r \"b\"";
    llm_grammar *g = NULL;
    llm_vocab *v = NULL;
    llm_matcher *m = NULL, *c = NULL;
    const int32_t *id;
    int32_t n;
    uint32_t mask[1];
    (void)arg;
    const bool ok = llm_grammar_from_gbnf(&g, g_text, strlen(g_text), "g", NULL) == GGL_OK &&
                    llm_vocab_from_texts(&v, text, NULL, 6, NULL) == GGL_OK &&
                    llm_matcher_new(&m, g, v, NULL) == GGL_OK &&
                    llm_matcher_accept_token(m, 5, NULL) == GGL_OK &&
                    llm_matcher_mask(m, LLM_MATCHER_NO_BUDGET, mask, NULL) == GGL_OK &&
                    llm_matcher_mask(m, 9, mask, NULL) == GGL_OK &&
                    llm_matcher_copy(&c, m, NULL) == GGL_OK &&
                    llm_matcher_accept_token(c, 4, NULL) == GGL_OK &&
                    llm_matcher_ending(c, &id, &n, NULL) == GGL_OK;
    llm_matcher_free(c);
    llm_matcher_free(m);
    llm_vocab_free(v);
    llm_grammar_free(g);
    return ok;
}

TEST(every_allocation_may_fail) {
    CHECK(work(NULL));
    CHECK(alloc_fail_each(work, NULL) > 50);
}

/* --- hostile grammars ------------------------------------------------------------------------- */

static char *times(const char *first, const char *s, int n, const char *last) {
    char *out = calloc(strlen(first) + (size_t)n * strlen(s) + strlen(last) + 1, 1), *at = out;
    at += sprintf(at, "%s", first);
    for (int i = 0; i < n; i++)
        at += sprintf(at, "%s", s);
    sprintf(at, "%s", last);
    return out;
}

/* Rules with two ways to the next one, which may both be empty: 2^n ways in all. */
static char *ladder(int n, const char *last) {
    char *out = calloc((size_t)n * 40 + 100, 1), *at = out;
    at += sprintf(at, "root ::= r0\n");
    for (int i = 0; i < n; i++)
        at += sprintf(at, "r%d ::= \"x\"? r%d | \"a\"? r%d\n", i, i + 1, i + 1);
    sprintf(at, "r%d ::= %s\n", n, last);
    return out;
}

/* Deep, long or large grammars end soon, with a grammar or an error. */
TEST(hostile_grammars) {
    struct {
        char *text;
        const char *words; /* of the error; NULL: it is a grammar */
    } cases[] = {
        {times("root ::= ", "(", 100000, ""), "nested more than"},
        {times("root ::= ", "\"a\" | ", 50000, "\"b\""), NULL},
        {times("root ::= \"", "a", 100000, "\""), NULL},
        {times("root ::= ", "a? ", 20000, "\na ::= \"x\""), NULL},
        {times("root ::= \"x\"", "{2}", 300, ""), NULL},
        {times("root ::= \"x\"", "*?+", 50000, ""), NULL},
        {times("root ::= ((((\"a\"{0,1000}){0,1000}){0,1000}){0,1000}){0,1000}", "", 0, ""), NULL},
        {ladder(60, "\"y\"?"), NULL},
        {ladder(60, "[^z]* root? [^z]{0,9}"), NULL},
        {times("root ::= ", "root ", 20000, "| \"x\""), NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ggl_error err = {0};
        llm_grammar *g;
        llm_matcher *m = NULL;
        size_t n;
        const char *text = cases[i].text;
        if (llm_grammar_from_gbnf(&g, text, strlen(text), "g", &err) != GGL_OK) {
            CHECK_MSG(cases[i].words, "case %zu: %s", i, err.msg);
            CHECK_HAS(err.msg, cases[i].words ? cases[i].words : "");
        } else if (CHECK(!cases[i].words) && CHECK_OK(llm_matcher_new(&m, g, NULL, &err), &err)) {
            CHECK_OK(llm_matcher_accept_bytes(m, "aaxx", 4, &n, &err), &err);
        }
        llm_matcher_free(m);
        llm_grammar_free(g);
        free(cases[i].text);
    }
}
