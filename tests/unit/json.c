/* JSON: all of RFC 8259 and nothing else. */
#include "json.h"

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
    return v->kind == JSON_STRING && v->str.n == n && memcmp(v->str.s, s, n) == 0;
}

TEST(values) {
    REQUIRE_OK(
        parse(
            " {\"a\" : [1, -2.5e1, true, false, null, \"x\", {}, []],\r\n\t\"b\":{\"c\":\"d\"}} "),
        &err);
    const json_value *a = json_get(&doc->root, "a");
    REQUIRE(a && a->kind == JSON_ARRAY && a->of.n == 8);
    CHECK(a->of.item[0].number == 1 && a->of.item[0].whole);
    CHECK(a->of.item[1].number == -25 && !a->of.item[1].whole);
    CHECK(a->of.item[2].kind == JSON_BOOL && a->of.item[2].flag && !a->of.item[3].flag);
    CHECK(a->of.item[4].kind == JSON_NULL);
    CHECK(a->of.item[6].kind == JSON_OBJECT && a->of.item[6].of.n == 0);
    CHECK(a->of.item[7].kind == JSON_ARRAY && a->of.item[7].of.n == 0);
    CHECK(json_is(json_get(json_get(&doc->root, "b"), "c"), "d"));
    CHECK(!json_get(&doc->root, "zz") && !json_get(a, "a") && !json_get(NULL, "a"));
    CHECK(!json_get_kind(&doc->root, "a", JSON_NUMBER));
    REQUIRE_OK(parse("3"), &err);
    REQUIRE_OK(parse("\"\""), &err);
    parse_done();
}

TEST(strings) {
    REQUIRE_OK(parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\xc3\xa9\\u0000z\""), &err);
    CHECK(is_text(&doc->root, "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\0z", 21));
    REQUIRE_OK(parse("\"plain\""), &err);
    CHECK(json_is(&doc->root, "plain"));
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
        CHECK_MSG(doc->root.number == list[i].x && doc->root.whole == list[i].whole, "%s gives %.17g", list[i].s,
                  doc->root.number);
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
        {"{\"a\": 1", "',' or '}' is expected here", GGL_FORMAT},
        {"1 2", "x.json:1:3: the value has ended, and more follows", GGL_FORMAT},
        {"\"a", "x.json:1:1: this string does not end", GGL_FORMAT},
        {"\"a\\\"", "this string does not end", GGL_FORMAT},
        {"\"\\x\"", "x.json:1:2: no escape begins like this", GGL_FORMAT},
        {"\"\\u12\"", "no escape begins like this", GGL_FORMAT},
        {"\"\\ud800\"", "half of a surrogate pair stands alone", GGL_FORMAT},
        {"\"\\ud800\\u0041\"", "half of a surrogate pair stands alone", GGL_FORMAT},
        {"\"\\udc00\\ud800\"", "half of a surrogate pair stands alone", GGL_FORMAT},
        {"\"\n\"", "a control character in a string is written as an escape", GGL_FORMAT},
        {"\"\xc0\x80\"", "x.json:1:2: this is no UTF-8", GGL_FORMAT},
        {"\"\xed\xa0\x80\"", "this is no UTF-8", GGL_FORMAT},
        {"01", "a number has no leading zeros", GGL_FORMAT},
        {"-", "a value is expected here", GGL_FORMAT},
        {"1.", "a digit is expected after the point", GGL_FORMAT},
        {"1e+", "a digit is expected in the exponent", GGL_FORMAT},
        {"1e309", "this number is too large", GGL_LIMIT},
        {"NaN", "x.json:1:1: JSON has no NaN: a number that is not one was written", GGL_FORMAT},
        {"[1, Infinity]", "x.json:1:5: JSON has no Infinity", GGL_FORMAT},
        {"[-Infinity]", "x.json:1:2: JSON has no -Infinity", GGL_FORMAT},
        {"Nan", "a value is expected here", GGL_FORMAT},
        {"+1", "a value is expected here", GGL_FORMAT},
        {"nul", "a value is expected here", GGL_FORMAT},
        {"truex", "more follows", GGL_FORMAT},
        {"\xef\xbb\xbf{}",
         "x.json: the text begins with a byte order mark: save it as UTF-8 without one",
         GGL_FORMAT},
        {"\xff\xfe{", "x.json: the text is UTF-16: save it as UTF-8", GGL_FORMAT},
        {"\xfe\xff{", "x.json: the text is UTF-16: save it as UTF-8", GGL_FORMAT},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
         "x.json: this is Git LFS's pointer to the file, not the file: 'git lfs pull' in its "
         "folder fetches it",
         GGL_FORMAT},
        {"{\"a\": 1,\n \"b\": 2, \"a\": 3}", "x.json:2:10: the name 'a' stands twice in one object",
         GGL_FORMAT},
        {"[{\"a\": {\"x\": 1, \"\\u0078\": 1}}]",
         "x.json:1:17: the name 'x' stands twice in one object", GGL_FORMAT},
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

static uint64_t steps_of_names(int n, bool twice) {
    char *text = malloc((size_t)n * 48 + 64), *to = text;
    for (int i = 0; i < n; i++)
        to += sprintf(to, "%c\"name_%d\": {\"name_%d\": 1}", i ? ',' : '{', i, i);
    to += sprintf(to, twice ? ", \"name_%d\": 0}" : "}", n / 2);
    ggl_n_steps = 0;
    CHECK_INT(parse(text), twice ? GGL_FORMAT : GGL_OK);
    if (twice)
        CHECK_HAS(err.msg, "stands twice in one object");
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

/* Every beginning of a text that is whole is an error, and reads nothing behind itself. */
TEST(truncated) {
    static const char whole[] = "{\"a\": [1.5e3, \"\\ud83d\\ude00\", true, null], \"b\": {\"c\": -0}}";
    for (size_t n = 0; n + 1 < sizeof whole; n++) {
        char *copy = malloc(n + 1);
        memcpy(copy, whole, n);
        CHECK_MSG(parse_n(copy, n) == (n == sizeof whole - 1 ? GGL_OK : GGL_FORMAT), "the first %zu bytes", n);
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

TEST(out_of_memory) {
    static char text[1024] = "{\"a\": [1, 2, {\"b\": \"\\n\"}], \"c\": []";
    for (int i = 0; i < 40; i++) /* a table of names */
        sprintf(text + strlen(text), ", \"n%d\": 0", i);
    strcat(text, "}");
    CHECK(alloc_fail_each(parse_once, text) > 3);
}
