/* common/pattern.h and common/glob.h: tables of cases, and the C library's functions as judges of random ones. */
#include "common/pattern.h"

#include <fnmatch.h>
#include <regex.h>

#include "alloc_fail.h"
#include "common/glob.h"
#include "seed.h"
#include "steps.h"

static ggl_error err;

static ggl_str str(const char *s) {
    return (ggl_str){s, strlen(s)};
}

/* Whether the expression matches; -1: it is none. */
static int found(const char *expression, const char *text) {
    llm_pattern *p;
    err = (ggl_error){0};
    if (llm_pattern_read(&p, str(expression), &err) != GGL_OK)
        return -1;
    const int first = llm_pattern_matches(p, str(text)), again = llm_pattern_matches(p, str(text));
    llm_pattern_free(p);
    CHECK_INT(again, first); /* what it has learnt changes nothing */
    return first;
}

/* --- tables ----------------------------------------------------------------------------------- */

TEST(expressions) {
    static const struct {
        const char *expression, *texts[4], *others[4];
    } cases[] = {
        {"", {"", "a"}, {NULL}},
        {"attn", {"blk.0.attn_q.weight", "attn"}, {"att", "", "attm"}},
        {"^a.c$",
         {"abc",
          "a\xc3\xa9"
          "c",
          "a\xff"
          "c",
          "a\nc"},
         {"abcd", "ac",
          "a\xc3\xa9\xc3\xa9"
          "c"}},
        {"blk\\.(1[0-9]|2[0-3])\\.ffn_.*_exps",
         {"blk.10.ffn_up_exps.weight", "blk.23.ffn__exps"},
         {"blk.24.ffn_up_exps", "blk.1.ffn_up_exps", "blkx10.ffn_up_exps"}},
        {"blk\\.(?:[0-4]|1\\d)\\.", {"blk.4.x", "blk.12.x"}, {"blk.5.x", "blk.1x.x"}},
        {"^(a|bc|)d$", {"ad", "bcd", "d"}, {"cd", "abcd"}},
        {"a||b", {"", "c"}, {NULL}},
        {"^(ab*)+$", {"a", "abbab"}, {"", "ba"}},
        {"^a{2}$", {"aa"}, {"a", "aaa"}},
        {"^a{2,}$", {"aa", "aaaaa"}, {"a", ""}},
        {"^a{2,3}$", {"aa", "aaa"}, {"a", "aaaa"}},
        {"^a{,2}$", {"", "a", "aa"}, {"aaa"}},
        {"^a{0}b{0,0}(c{1}){1,1}$", {"c"}, {"ac", "bc", ""}},
        {"^(a{2}b){2}$", {"aabaab"}, {"aab", "aabab"}},
        {"^(a|b){3}$", {"aba", "bbb"}, {"ab", "abab"}},
        {"^(a*)*(b*)+$", {"", "aab", "bb"}, {"ba"}},
        {"^a+?b*?c??d{1}?$",
         {"ad", "aabbcd"},
         {"d", "accd", "add"}}, /* lazy marks change nothing */
        {"(^|\\.)up($|\\.)", {"up", "a.up", "up.b", "a.up.b"}, {"aup", "upb"}},
        {"a^|$b|x$", {"x"}, {"a", "b", "ab"}},
        {"(^)*a", {"a", "ba"}, {"b"}},
        {"^[a-c_]$", {"a", "c", "_"}, {"d", "-", ""}},
        {"^[^a-c]$", {"d", "\xc3\xa9", "\xff", "\n"}, {"a", "", "dd"}},
        {"^[]a]$", {"]", "a"}, {"b", "[]"}},
        {"^[^]a]$", {"b", "["}, {"]", "a"}},
        {"^[a-]$", {"a", "-"}, {"b"}},
        {"^[-a]$", {"a", "-"}, {"b"}},
        {"^[!a^]$", {"a", "!", "^"}, {"b"}},
        {"^[+--]$", {"+", ",", "-"}, {"*", "."}},
        {"^[\xc3\xa0-\xc3\xaa]$", {"\xc3\xa0", "\xc3\xa9"}, {"a", "\xc3\xab", "\xc3"}},
        {"^[[:digit:]x]+$", {"12x", "x"}, {"y", ""}},
        {"^[^[:space:][:punct:]]$", {"a", "9"}, {" ", "."}},
        {"^[[.-.][=a=]]$", {"-", "a"}, {".", "="}},
        {"^[\\d\\]\\\\.]$", {"7", "]", "\\", "."}, {"d", "a"}},
        {"^[^\\W\\d]$", {"a", "_"}, {"7", "."}},
        {"^\\d\\D\\w\\W\\s\\S$", {"1a_. x", "9-9-\tx"}, {"aaaaaa", "1a_ax x"}},
        {"\\bq\\b", {"attn.q.weight", "q", "\xc3\xa9q"}, {"attn_q", "qk", "7q"}},
        {"\\Bq", {"attn_q", "qq"}, {"q", ".q"}},
        {"\\<up\\>", {"ffn.up.w", "up"}, {"ffn_up", "ups"}},
        {"\\`a\\'", {"a"}, {"ab", "ba"}},
        {"\\.\\*\\[\\]\\(\\)\\{\\}\\+\\?\\|\\^\\$\\\\\\/", {".*[](){}+?|^$\\/"}, {"a"}},
        {"a]b}", {"a]b}"}, {"ab"}}, /* closing marks alone */
        {"\xc3\xa9+$", {"\xc3\xa9\xc3\xa9", "a\xc3\xa9"}, {"\xc3\xa9\xa9", "\xa9"}},
        {"(a+)+$", {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 4; k++) {
            const char *const s = cases[i].texts[k], *const other = cases[i].others[k];
            CHECK_MSG(!s || found(cases[i].expression, s) == 1, "'%s' does not match '%s' (%s)",
                      cases[i].expression, s, err.msg);
            CHECK_MSG(!other || found(cases[i].expression, other) == 0,
                      "'%s' matches '%s' or fails (%s)", cases[i].expression, other, err.msg);
        }
}

/* A NUL is a character as others, on both sides. */
TEST(any_bytes) {
    llm_pattern *p;
    REQUIRE_OK(llm_pattern_read(&p, (ggl_str){"a\0b|\\\0$", 7}, &err), &err);
    CHECK(llm_pattern_matches(p, (ggl_str){"xa\0by", 5}));
    CHECK(!llm_pattern_matches(p, (ggl_str){"a\0", 1}));
    CHECK(llm_pattern_matches(p, (ggl_str){"a\0", 2}));
    CHECK(!llm_pattern_matches(p, (ggl_str){NULL, 0}));
    llm_pattern_free(p);
    REQUIRE_OK(llm_pattern_read(&p, (ggl_str){NULL, 0}, &err), &err);
    CHECK(llm_pattern_matches(p, (ggl_str){NULL, 0}));
    llm_pattern_free(p);
    llm_pattern_free(NULL);
}

TEST(mistakes) {
    static const struct {
        const char *expression, *message;
    } cases[] = {
        {"a(b", "'a(b' is not a regular expression: column 2: the group is not closed by ')'"},
        {"(a))", "column 4: this ')' closes no group"},
        {"*a", "column 1: there is nothing before it that it could repeat"},
        {"a|+", "column 3: there is nothing before it that it could repeat"},
        {"(?", "column 1: of groups that begin with '(?', only '(?:' is known"},
        {"a(?=b)", "column 2: of groups that begin with '(?', only '(?:' is known"},
        {"^*", "column 2: there is nothing before it that it could repeat"},
        {"\\b+", "column 3: there is nothing before it that it could repeat"},
        {"a{x}", "column 2: after '{' there is a count as in {3}, {3,}, {3,5} or {,5}"},
        {"a{3", "column 2: after '{' there is a count"},
        {"a{-1}", "column 2: after '{' there is a count"},
        {"a{3,2}", "column 2: the first number of the count is larger than the second"},
        {"a\\", "column 2: nothing follows the '\\'"},
        {"a\\1", "column 2: references to groups are not known"},
        {"\\t", "column 1: this letter has no meaning after '\\'"},
        {"x[a", "column 2: the '[' is not closed by ']'"},
        {"x[]", "column 2: the '[' is not closed by ']'"},
        {"[a\\", "column 1: the '[' is not closed by ']'"},
        {"[xb-a]", "column 3: the end of the range is before its beginning"},
        {"[[:digits:]]", "column 9: a class of characters ends with ':]'"},
        {"[[:number:]]", "column 4: no class has this name; classes are alnum"},
        {"[[.ab.]]", "column 5: only a single character can stand between"},
        {"[a\\t]", "column 3: in brackets, this letter or digit has no meaning after '\\'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_INT(found(cases[i].expression, ""), -1);
        CHECK_INT(err.status, GGL_USAGE);
        CHECK_HAS(err.msg, cases[i].message);
    }
}

TEST(globs) {
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"blk.*.ffn_*exps*", "blk.3.ffn_up_exps.weight", true},
        {"blk.*.ffn_*exps*", "xblk.3.ffn_up_exps.weight", false},
        {"a?c",
         "a\xc3\xa9"
         "c",
         true},
        {"a??c",
         "a\xc3\xa9"
         "c",
         false},
        {"*[!\xc3\xa9]", "\xc3\xa9", false}, /* a '*' does not end within a character */
        {"[!a-c]*[^d]", "dbx", true},
        {"[!a-c]*[^d]", "abx", false},
        {"[]]", "]", true},
        {"[a", "[a", true},
        {"[b-a]", "a", false},
        {"\\*[\\]]", "*]", true},
        {"\\*", "a", false},
        {"a\\", "a\\", false},
        {"\\d[\\d]", "dd", true},
        {"", "", true},
        {"", "a", false},
        {"**", "", true},
        {"*a*b", "aabab", true},
        {"*a*b", "ba", false},
        {"a/*", "a/.b/c", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_MSG(llm_glob_matches(str(cases[i].pattern), str(cases[i].text)) == cases[i].matches,
                  "'%s' and '%s'", cases[i].pattern, cases[i].text);
    CHECK(llm_stars_match(str("a.#.*[0]?"), '#', str("a.12.b[0]?")));
    CHECK(!llm_stars_match(str("a.#.*[0]?"), '#', str("a.12.b0?")));
    CHECK(!llm_stars_match(str("a.#.b"), '#', str("a..b")));
    CHECK(llm_stars_match(str("#"), 0, str("#")) && !llm_stars_match(str("#"), 0, str("1")));
}

/* --- against the C library --------------------------------------------------------------------- */

typedef struct words {
    char s[400];
    size_t n;
    uint64_t *seed;
} words;

static void put(words *w, const char *s) {
    const size_t n = strlen(s);
    if (w->n + n < sizeof w->s) {
        memcpy(w->s + w->n, s, n + 1);
        w->n += n;
    }
}

static uint64_t draw(words *w, uint64_t n) {
    return test_random(w->seed) % n;
}

#define PICK(w, list) put(w, list[draw(w, sizeof list / sizeof *list)])

/* Anchors and edges of words stand only where nothing repeats them, since glibc answers wrongly for some of the others; and so do
 * numbers, as glibc takes minutes to read some expressions in which they are nested. */
static void put_expression(words *w, int depth, bool is_repeated) {
    static const char *const items[] = {
        "a",    "b",    "_",     ".",      "a",           "b",
        "[ab]", "[^a]", "[^b_]", "[a-b.]", "[[:alpha:]]", "[^[:punct:]a]",
        "[]a]", "\\.",  "\\w",   "\\W",    "()"};
    static const char *const places[] = {"^", "$", "\\b", "\\<", "\\>"};
    static const char *const marks[] = {"*", "+", "?"};
    static const char *const counts[] = {"*",     "+",    "?",    "{2}", "{0,2}",
                                         "{1,3}", "{2,}", "{,1}", "{0}"};
    const uint64_t n_items = 1 + draw(w, 3), n_alternatives = draw(w, 3) ? 1 : 1 + draw(w, 3);
    for (uint64_t k = 0; k < n_alternatives; k++) {
        put(w, k ? "|" : "");
        for (uint64_t i = draw(w, 8) ? 0 : n_items; i < n_items; i++) {
            const bool repeats = draw(w, 3) == 0;
            if (!is_repeated && draw(w, 6) == 0) {
                PICK(w, places);
                continue;
            }
            if (depth > 0 && draw(w, 3) == 0) {
                put(w, "(");
                put_expression(w, depth - 1, is_repeated || repeats);
                put(w, ")");
            } else {
                PICK(w, items);
            }
            if (repeats && is_repeated)
                PICK(w, marks);
            else if (repeats)
                PICK(w, counts);
        }
    }
}

static void put_text(words *w) {
    static const char *const letters[] = {"a", "b", "a", "b", "_", ".", "]", " "};
    for (uint64_t n = draw(w, 9); n > 0; n--)
        PICK(w, letters);
}

TEST(random_expressions) {
    enum { N = 20000, TEXTS = 12 };
    uint64_t seed = sample_seed() * 1000;
    int n_compared = 0, n_found = 0;
    for (int i = 0; i < (TEST_SANITIZED ? N / 8 : N) && !test_failures; i++) {
        words e = {.seed = &seed};
        put_expression(&e, 3, false);
        if (e.n > sizeof e.s - 16) /* a part may be missing */
            continue;
        regex_t judge;
        llm_pattern *p;
        const bool is_valid = regcomp(&judge, e.s, REG_EXTENDED | REG_NOSUB) == 0;
        const bool is_read = llm_pattern_read(&p, (ggl_str){e.s, e.n}, &err) == GGL_OK;
        CHECK_MSG(is_read == is_valid, "'%s' is %s: %s", e.s, is_valid ? "valid" : "invalid",
                  err.msg);
        for (int k = 0; k < TEXTS && is_read && is_valid; k++) {
            words t = {.seed = &seed};
            put_text(&t);
            const bool want = regexec(&judge, t.s, 0, NULL, 0) == 0;
            CHECK_MSG(llm_pattern_matches(p, (ggl_str){t.s, t.n}) == want, "'%s' %s '%s'", e.s,
                      want ? "matches" : "does not match", t.s);
            n_compared++;
            n_found += want;
        }
        if (is_valid)
            regfree(&judge);
        llm_pattern_free(p);
    }
    CHECK(n_found > n_compared / 10 && n_found < n_compared * 9 / 10);
}

TEST(random_globs) {
    static const char *const items[] = {"a",    "b",           "*",    "*",      "?",
                                        "[ab]", "[!a]",        "[^b]", "[a-b_]", "[]a]",
                                        "[!]]", "[[:alpha:]]", "\\*",  "\\a",    "["};
    static const char *const letters[] = {"a", "b", "a", "b", "*", "_", "[", "]"};
    uint64_t seed = sample_seed() * 1000;
    int n_found = 0;
    const int n = TEST_SANITIZED ? 20000 : 100000;
    for (int i = 0; i < n && !test_failures; i++) {
        words p = {.seed = &seed}, t = {.seed = &seed};
        for (uint64_t k = draw(&p, 5); k > 0; k--)
            PICK(&p, items);
        for (uint64_t k = draw(&t, 5); k > 0; k--)
            PICK(&t, letters);
        const bool want = fnmatch(p.s, t.s, 0) == 0;
        CHECK_MSG(llm_glob_matches((ggl_str){p.s, p.n}, (ggl_str){t.s, t.n}) == want,
                  "'%s' %s '%s'", p.s, want ? "matches" : "does not match", t.s);
        n_found += want;
    }
    CHECK(n_found > n / 50);
}

/* --- hostile ones ------------------------------------------------------------------------------- */

/* Sets s to n times a, then b, then n times c; the result is for free(). */
static char *nested(const char *a, const char *b, const char *c, size_t n) {
    char *s = malloc(n * (strlen(a) + strlen(c)) + strlen(b) + 1), *to = s;
    if (!s)
        abort();
    for (size_t i = 0; i < n; i++)
        to = stpcpy(to, a);
    to = stpcpy(to, b);
    for (size_t i = 0; i < n; i++)
        to = stpcpy(to, c);
    *to = 0;
    return s;
}

LONG_TEST(hostile) {
    static const struct {
        const char *a, *b, *c;
        size_t n;
        int found; /* in "aaa" */
        const char *message;
    } cases[] = {
        {"(", "a{1000}", "){1000}", 1, -1,
         "column 15: with its counts written out, it is longer than 32768 characters and marks"},
        {"(", "a", "){1,1000}", 100, -1, "with its counts written out"},
        {"(", "", "){1000}", 100, 1, ""},
        {"(", "a", ")*", 100, 1, ""},
        {"(", "a", ")", 100, 1, ""},
        {"(", "a", ")", 101, -1, "column 101: groups are nested more than 100 deep"},
        {"(", "a", ")", 1000000, -1, "groups are nested more than 100 deep"},
        {"(", "", "", 1000000, -1, "column 101: groups are nested more than 100 deep"},
        {"a|", "b", "", 10000, 1, ""},
        {"b|", "a", "", 1000000, -1, "with its counts written out"},
        {"", "a", "*", 10000, 1, ""},
        {"", "a", "{1}", 10000, 1, ""},
        {"a", "", "", 1000000, -1, "with its counts written out"},
        {"b?", "", "", 10000, 1, ""},
        {"[", "", "", 1000000, -1, "is not closed by ']'"},
        {"[a", "]", "", 1000000, 1, ""},
        {"", "a{1,1000}b{99999999999999999999}", "", 1, -1, "with its counts written out"},
        {"", "[^x]{1,10000}", "", 1, 1, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *s = nested(cases[i].a, cases[i].b, cases[i].c, cases[i].n);
        const size_t before = alloc_bytes();
        CHECK_MSG(found(s, "aaa") == cases[i].found, "row %zu: %.80s: %s", i, s, err.msg);
        CHECK_HAS(err.msg, cases[i].message);
        CHECK_MSG(alloc_bytes() - before < strlen(s) + (4 << 20), "row %zu: %.80s: %zu bytes", i, s,
                  alloc_bytes() - before);
        free(s);
    }
}

/* The time is linear in the text, also where each character leads to a state that is not known. */
TEST(linear) {
    static const char *const expressions[] = {"(a*)*b", "(a|a)*(a|a)*(a|a)*c", "(x+x+)+y",
                                              "(a|b)*a(a|b){12}c", "(\xc3\xa9*)*[^x]{20}c"};
    for (size_t i = 0; i < sizeof expressions / sizeof *expressions; i++) {
        uint64_t steps[2], seed = 1;
        llm_pattern *p;
        for (int k = 0; k < 2; k++) {
            const size_t n = k ? 16000 : 2000;
            char *s = malloc(2 * n);
            REQUIRE(s);
            size_t used = 0;
            while (used + 1 < n) {
                const char *const c = i == 4                             ? "\xc3\xa9"
                                      : i == 2                           ? "x"
                                      : i == 3 && test_random(&seed) % 2 ? "b"
                                                                         : "a";
                memcpy(s + used, c, strlen(c));
                used += strlen(c);
            }
            REQUIRE_OK(llm_pattern_read(&p, str(expressions[i]), &err), &err);
            ggl_n_steps = 0;
            CHECK(!llm_pattern_matches(p, (ggl_str){s, used}));
            steps[k] = ggl_n_steps;
            llm_pattern_free(p);
            free(s);
        }
        test_linear(expressions[i], steps[0], steps[1], 8);
    }
}

static bool read_and_match(void *arg) {
    (void)arg;
    llm_pattern *p;
    ggl_error e;
    const ggl_status st = llm_pattern_read(&p, str("^(a[bc]{2}|\\d+|x{1,100})*$"), &e);
    if (st != GGL_OK) {
        CHECK_INT(st, GGL_NOMEM);
        CHECK(!p);
        return false;
    }
    const long before = alloc_count();
    CHECK(llm_pattern_matches(p, str("abc12")));
    CHECK_INT(alloc_count(), before);
    llm_pattern_free(p);
    return true;
}

TEST(failing_allocations) {
    CHECK(alloc_fail_each(read_and_match, NULL) >= 6);
}
