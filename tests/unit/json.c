/* JSON: all of RFC 8259 and nothing else. */
#include "common/json.h"
#include "common/json_write.h"

#include <math.h>

#include "alloc_fail.h"
#include "steps.h"

static llm_json *doc;
static ggl_error err;

static ggl_status parse_n(const char *s, size_t n) {
    llm_json_free(doc);
    err = (ggl_error){0};
    return llm_json_parse(&doc, s, n, "x.json", &err);
}

static ggl_status parse(const char *s) {
    return parse_n(s, strlen(s));
}

static void parse_done(void) {
    llm_json_free(doc);
    doc = NULL;
}

static bool is_text(const json_value *v, const char *s, size_t n) {
    return v->kind == JSON_STRING && v->n == n && memcmp(v->s, s, n) == 0;
}

TEST(values) {
    REQUIRE_OK(
        parse(
            " {\"a\" : [1, -2.5e1, true, false, null, \"x\", {}, []],\r\n\t\"b\":{\"c\":\"d\"}} "),
        &err);
    const json_value *a = llm_json_get(&doc->root, "a");
    REQUIRE(a && a->kind == JSON_ARRAY && a->n == 8);
    CHECK(a->item[0].number == 1 && a->item[0].whole);
    CHECK(a->item[1].number == -25 && !a->item[1].whole);
    CHECK(a->item[2].kind == JSON_BOOL && a->item[2].flag && !a->item[3].flag);
    CHECK(a->item[4].kind == JSON_NULL);
    CHECK(a->item[6].kind == JSON_OBJECT && a->item[6].n == 0);
    CHECK(a->item[7].kind == JSON_ARRAY && a->item[7].n == 0);
    CHECK(llm_json_is(llm_json_get(llm_json_get(&doc->root, "b"), "c"), "d"));
    CHECK(!llm_json_get(&doc->root, "zz") && !llm_json_get(a, "a") && !llm_json_get(NULL, "a"));
    CHECK(!llm_json_get_kind(&doc->root, "a", JSON_NUMBER));
    REQUIRE_OK(parse("3"), &err);
    REQUIRE_OK(parse("\"\""), &err);
    parse_done();
}

TEST(strings) {
    REQUIRE_OK(parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\xc3\xa9\\u0000z\""),
               &err);
    CHECK(
        is_text(&doc->root, "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\0z", 21));
    REQUIRE_OK(parse("\"plain\""), &err);
    CHECK(llm_json_is(&doc->root, "plain"));
    parse_done();
}

TEST(numbers) {
    static const struct {
        const char *s;
        double x;
        bool whole;
    } list[] = {{"0", 0, true},
                {"-0", -0.0, true},
                {"9007199254740991", 9007199254740991.0, true},
                {"9007199254740993", 9007199254740992.0, false},
                {"-9007199254740991", -9007199254740991.0, true},
                {"1e-05", 1e-05, false},
                {"1.0800000429153442", 1.0800000429153442, false},
                {"1000000000000000019884624838656", 1e30, false},
                {"0.1e1", 1, false},
                {"5e-324", 5e-324, false},
                {"1e-999", 0, false},
                {"1.7976931348623157e308", 1.7976931348623157e308, false}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        REQUIRE_OK(parse(list[i].s), &err);
        CHECK_MSG(doc->root.number == list[i].x && doc->root.whole == list[i].whole,
                  "%s gives %.17g", list[i].s, doc->root.number);
    }
    parse_done();
}

TEST(errors) {
    static const struct {
        const char *s, *words;
        ggl_status status;
    } list[] = {
        {"", "x.json:1:1: the text ends where a value is expected", GGL_FORMAT},
        {"{\n \"a\": 1,\n}", "x.json:3:1: a name in quotes is expected here", GGL_FORMAT},
        {"[1,]", "x.json:1:4: a value is expected here", GGL_FORMAT},
        {"[1 2]", "x.json:1:4: ',' or ']' is expected here", GGL_FORMAT},
        {"{\"a\" 1}", "x.json:1:6: ':' is expected after a name", GGL_FORMAT},
        {"{\"a\": 1", "x.json:1:8: the text ends where ',' or '}' is expected", GGL_FORMAT},
        {"{\"a\"", "x.json:1:5: the text ends where ':' is expected after a name", GGL_FORMAT},
        {"{\"a\": 1 ;", "',' or '}' is expected here", GGL_FORMAT},
        {"{", "x.json:1:2: the text ends where a name in quotes is expected", GGL_FORMAT},
        {"{\"a\": 1, ", "x.json:1:10: the text ends where a name in quotes is expected",
         GGL_FORMAT},
        {"[1, ", "the text ends where a value is expected", GGL_FORMAT},
        {"[1", "x.json:1:3: the text ends where ',' or ']' is expected", GGL_FORMAT},
        {"1 2", "x.json:1:3: there is more text after the value", GGL_FORMAT},
        {"\"a", "x.json:1:1: this string is not closed", GGL_FORMAT},
        {"\"a\\\"", "this string is not closed", GGL_FORMAT},
        {"\"\\x\"", "x.json:1:2: this is not a valid escape", GGL_FORMAT},
        {"\"\\u12\"", "this is not a valid escape", GGL_FORMAT},
        {"\"\\ud800\"", "the other half of a surrogate pair is missing", GGL_FORMAT},
        {"\"\\ud800\\u0041\"", "the other half of a surrogate pair is missing", GGL_FORMAT},
        {"\"\\udc00\\ud800\"", "the other half of a surrogate pair is missing", GGL_FORMAT},
        {"\"\n\"", "a control character in a string must be written as an escape", GGL_FORMAT},
        {"\"\xc0\x80\"", "x.json:1:2: this is not valid UTF-8", GGL_FORMAT},
        {"\"\xed\xa0\x80\"", "this is not valid UTF-8", GGL_FORMAT},
        {"01", "a number has no leading zeros", GGL_FORMAT},
        {"-", "a value is expected here", GGL_FORMAT},
        {"1.", "a digit is expected after the point", GGL_FORMAT},
        {"1e+", "a digit is expected in the exponent", GGL_FORMAT},
        {"1e309", "this number is too large", GGL_LIMIT},
        {"+Infinity", "a value is expected here", GGL_FORMAT},
        {"-Inf", "a value is expected here", GGL_FORMAT},
        {"Infinityx", "there is more text after the value", GGL_FORMAT},
        {"[", "x.json:1:2: the text ends where a value is expected", GGL_FORMAT},
        {"{", "x.json:1:2: the text ends where a name in quotes", GGL_FORMAT},
        {"[1}, 2]", "x.json:1:3: ',' or ']' is expected here", GGL_FORMAT},
        {"{\"a\": \"x]", "x.json:1:7: this string is not closed", GGL_FORMAT},
        {"Nan", "a value is expected here", GGL_FORMAT},
        {"+1", "a value is expected here", GGL_FORMAT},
        {"nul", "a value is expected here", GGL_FORMAT},
        {"truex", "there is more text after the value", GGL_FORMAT},
        {"\xef\xbb\xbf{}",
         "x.json: the text begins with a byte order mark: save it as UTF-8 without one",
         GGL_FORMAT},
        {"\xff\xfe{", "x.json: the text is UTF-16: save it as UTF-8", GGL_FORMAT},
        {"\xfe\xff{", "x.json: the text is UTF-16: save it as UTF-8", GGL_FORMAT},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
         "x.json: this is a Git LFS pointer, not the file itself: 'git lfs pull' in its folder "
         "downloads it",
         GGL_FORMAT},
        {"{\"a\": 1,\n \"b\": 2, \"a\": 3}", "x.json:2:10: the name 'a' occurs twice in one object",
         GGL_FORMAT},
        {"[{\"a\": {\"x\": 1, \"\\u0078\": 1}}]",
         "x.json:1:17: the name 'x' occurs twice in one object", GGL_FORMAT},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        CHECK_INT(parse(list[i].s), list[i].status);
        CHECK_HAS(err.msg, list[i].words);
        CHECK(!doc);
    }
    char deep[2 * 65 + 1] = "";
    memset(deep, '[', 65);
    memset(deep + 65, ']', 65);
    CHECK_INT(parse_n(deep, 130), GGL_LIMIT);
    CHECK_HAS(err.msg, "nested more than 64 deep");
    CHECK_OK(parse_n(deep + 1, 128), &err);
    parse_done();
}

/* Python's json writes these for NaN and infinities. */
TEST(odd_numbers) {
    REQUIRE_OK(parse("[NaN, Infinity, -Infinity]"), &err);
    const json_value *v = doc->root.item;
    CHECK(doc->root.n == 3 && v[0].kind == JSON_NUMBER && isnan(v[0].number) && !v[0].whole);
    CHECK(v[1].number == HUGE_VAL && v[2].number == -HUGE_VAL && !v[1].whole &&
          v[2].kind == JSON_NUMBER);
    parse_done();
}

/* A value and a name have 16 bytes each; strings with escapes some more. What grows is counted at each of its sizes here. */
/* Integers of 64 bits, which a double may not hold. */
TEST(integers) {
    static const struct {
        const char *text;
        bool is_one, negative;
        uint64_t magnitude;
    } cases[] = {
        {"0", true, false, 0},
        {"-0", true, true, 0},
        {"9007199254740993", true, false, 9007199254740993u},
        {"-9223372036854775808", true, true, (uint64_t)1 << 63},
        {"18446744073709551615", true, false, UINT64_MAX},
        {"18446744073709551616", false, false, 0},
        {"-99999999999999999999999", false, false, 0},
        {"1.0", false, false, 0},
        {"1e3", false, false, 0},
        {"1E3", false, false, 0},
        {"NaN", false, false, 0},
        {"-Infinity", false, false, 0},
        {"\"7\"", false, false, 0},
        {"[7]", false, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int within = 0; within < 2; within++) { /* alone, at the text's end, and within */
            char text[80];
            uint64_t magnitude = 0;
            bool negative = false;
            snprintf(text, sizeof text, within ? " [1, %s ]" : "%s", cases[i].text);
            REQUIRE_OK(parse(text), &err);
            const json_value *v = within ? &doc->root.item[1] : &doc->root;
            CHECK_MSG(llm_json_integer(v, &magnitude, &negative) == cases[i].is_one, "%s", text);
            CHECK_MSG(!cases[i].is_one ||
                          (magnitude == cases[i].magnitude && negative == cases[i].negative),
                      "%s", text);
        }
    }
    parse_done();
}

TEST(memory) {
    static const char *const element[] = {"1,",  "[],",       "\"\",",  "\"\\n\",",
                                          "{},", "{\"\":1},", "[[1]],", "{\"\\n\":1},"};
    enum { N = 100000 };
    for (size_t k = 0; k < sizeof element / sizeof *element; k++) {
        const size_t n_element = strlen(element[k]), n = n_element * N + 3;
        char *text = malloc(n);
        text[0] = '[';
        for (size_t i = 0; i < N; i++)
            memcpy(text + 1 + i * n_element, element[k], n_element);
        memcpy(text + n - 2, "1]", 2);
        const size_t before = alloc_bytes();
        CHECK_OK(parse_n(text, n), &err);
        const size_t used = alloc_bytes() - before;
        CHECK_MSG(used > n && used < 24 * n, "%s: %zu bytes for a text of %zu", element[k], used,
                  n);
        CHECK_INT(doc->root.n, N + 1);
        parse_done();
        free(text);
    }
}

/* Refused before anything is made of them. */
TEST(too_many_values) {
    const size_t n = 2 * (size_t)LLM_JSON_MAX_VALUES + 2;
    char *text = malloc(n);
    memset(text, '1', n);
    for (size_t i = 2; i < n; i += 2)
        text[i] = ',';
    text[0] = '[';
    text[n - 1] = ']';
    const size_t before = alloc_bytes();
    CHECK_INT(parse_n(text, n), GGL_LIMIT);
    CHECK_HAS(err.msg, "x.json: more than 16777216 values and names");
    CHECK(alloc_bytes() - before < 10000);
    free(text);
}

static uint64_t steps_of_names(int n, bool twice) {
    char *text = malloc((size_t)n * 48 + 64), *to = text;
    for (int i = 0; i < n; i++)
        to += sprintf(to, "%c\"name_%d\": {\"name_%d\": 1}", i ? ',' : '{', i, i);
    to += sprintf(to, twice ? ", \"name_%d\": 0}" : "}", n / 2);
    ggl_n_steps = 0;
    CHECK_INT(parse(text), twice ? GGL_FORMAT : GGL_OK);
    if (twice)
        CHECK_HAS(err.msg, "occurs twice in one object");
    parse_done();
    free(text);
    return ggl_n_steps;
}

/* Names stand once in an object, however many there are; to see that takes linear time. */
TEST(many_names) {
    steps_of_names(17, true);
    for (int twice = 0; twice < 2; twice++)
        test_linear("names", steps_of_names(12500, twice), steps_of_names(100000, twice), 8);
}

/* Every truncated beginning of a valid text is an error, and nothing is read beyond its end. */
TEST(truncated) {
    static const char whole[] =
        "{\"a\": [1.5e3, \"\\ud83d\\ude00\", true, null], \"b\": {\"c\": -0}}";
    for (size_t n = 0; n + 1 < sizeof whole; n++) {
        char *copy = malloc(n + 1);
        memcpy(copy, whole, n);
        CHECK_MSG(parse_n(copy, n) == (n == sizeof whole - 1 ? GGL_OK : GGL_FORMAT),
                  "the first %zu bytes", n);
        parse_done();
        free(copy);
    }
}

static bool parse_once(void *arg) {
    bool ok = parse(arg) == GGL_OK;
    CHECK(ok || (err.status == GGL_NOMEM && !doc));
    parse_done();
    return ok;
}

/* Texts of no bytes may have no address: the sanitizers see what is done with it. */
TEST(texts_without_bytes) {
    llm_json_out out = {0};
    llm_json_put(&out, NULL, 0);
    llm_json_put_string(&out, (ggl_str){0});
    llm_json_put(&out, NULL, 0);
    CHECK(!out.failed && out.n == 2 && strcmp(out.s, "\"\"") == 0);
    ggl_free(out.s);
}

/* As printf writes it, but for apostrophes and strings. */
TEST(formats) {
    static const char word[] = "a \"b\"\n\xff";
    const ggl_str name = {word, sizeof word - 1}, none = {"", 0};
    llm_json_out out = {0};
    llm_json_format(&out, "{'%s': %.*s, 'n': [%d, %ld, %lld, %zu, %2u, '%04lx']", "it's",
                    LLM_JSON_STR(name), -1, -2L, 1LL << 40, (size_t)3, 4u, 255ul);
    llm_json_format(&out, ", 'x': [%.3f, %g, %.17g, %.0f], 'percent': '%%'", 0.5, 1e-9, 0.1, 1e300);
    llm_json_format(&out, ", 'empty': [%.*s, %.*s]}", LLM_JSON_STR(none), LLM_JSON_TEXT("'"));
    CHECK(!out.failed);
    CHECK_HAS(out.s,
              "{\"it's\": \"a \\\"b\\\"\\n\xef\xbf\xbd\", \"n\": [-1, -2, 1099511627776, 3, "
              " 4, \"00ff\"], \"x\": [0.500, 1e-09, 0.10000000000000001, 10000000000000000525");
    CHECK_HAS(out.s, "], \"percent\": \"%\", \"empty\": [\"\", \"'\"]}");
    CHECK_INT(parse_n(out.s, out.n), GGL_OK);
    parse_done();
    ggl_free(out.s);
}

/* A length that does not fit into the int of a format fails; nothing is read at it, and no other length is made of it. */
TEST(strings_too_long_for_formats) {
    static const uint64_t length[] = {(uint64_t)INT_MAX + 1,
                                      UINT32_MAX,
                                      (uint64_t)1 << 32,
                                      ((uint64_t)1 << 32) + 3,
                                      ((uint64_t)3 << 31) - 1,
                                      ((uint64_t)3 << 31) + 5,
                                      SIZE_MAX};
    for (size_t i = 0; i < sizeof length / sizeof *length && length[i] <= SIZE_MAX; i++) {
        const ggl_str s = {"abc", (size_t)length[i]};
        llm_json_out out = {0};
        llm_json_format(&out, "[%.*s]", LLM_JSON_STR(s));
        CHECK_MSG(out.failed, "%zu bytes became '%s'", s.n, out.s ? out.s : "");
        ggl_free(out.s);
    }
    CHECK_INT(llm_json_precision(INT_MAX), INT_MAX);
    static const char begins[256] = "[1]"; /* of which the first bytes are read */
    if (SIZE_MAX > UINT32_MAX)             /* nor is a part of such a text read */
        CHECK_INT(llm_json_parse(&doc, begins, (size_t)((uint64_t)1 << 32), "long", &err),
                  GGL_LIMIT);
}

TEST(out_of_memory) {
    static char text[1024] = "{\"a\": [1, 2, {\"b\": \"\\n\"}], \"c\": []";
    for (int i = 0; i < 40; i++) /* a table of names */
        sprintf(text + strlen(text), ", \"n%d\": 0", i);
    strcat(text, "}");
    CHECK(alloc_fail_each(parse_once, text) > 3);
}
