/* Fields of requests, read by a table (tools/llm-server/read_fields.c). */
#include "test.h"

#include <math.h>
#include <stddef.h>

#include "alloc_fail.h"
#include "llm-server/dialect.h"

static ggl_error err;
static const char *param;

static server_facts facts = {.n_vocab = 100, .n_predict = -1, .strict_fields = true};

/* Keeps a copy of the value's kind in n_top. */
static ggl_status take_kind(ask *a, const json_value *v, const server_facts *f, ggl_error *e) {
    (void)f;
    if (v->kind == JSON_OBJECT)
        return ggl_fail(e, GGL_FORMAT, "no objects, please");
    a->n_top = (int)v->kind;
    return GGL_OK;
}

static ggl_status take_false(ask *a, const json_value *v, const server_facts *f, ggl_error *e) {
    (void)a, (void)f;
    return v->kind == JSON_BOOL && !v->flag ? GGL_OK : ggl_fail(e, GGL_USAGE, "not false");
}

static const field table[] = {
    {"stream", FIELD_BOOL, .at = FIELD_AT(stream)},
    {"n", FIELD_INT, .at = FIELD_AT(n_choices), .min = 1, .max = 128},
    {"big", FIELD_INT, .at = FIELD_AT(n_max)},
    {"top_k", FIELD_INT32, .at = FIELD_AT(sampling.top_k)},
    {"temperature", FIELD_FLOAT, .at = FIELD_AT(sampling.temp), .max = 100},
    {"seconds", FIELD_DOUBLE, .at = FIELD_AT(seconds), .min = 0, .max = 1e6},
    {"grammar", FIELD_STRING, .at = FIELD_AT(form_text)},
    {"seed", .kind = FIELD_SEED},
    {"stop", .kind = FIELD_STOPS},
    {"logit_bias", .kind = FIELD_BIAS},
    {"kind", FIELD_FN, .fn = take_kind},
    {"kind_or_null", FIELD_FN, .fn = take_kind, .min = 1},
    {"user", .kind = FIELD_IGNORED},
    {"background", FIELD_REFUSED, .why = "send the request without it"},
    {"store", FIELD_REFUSED, .fn = take_false, .why = "answers are not stored here"},
    {0}};

/* Reads a text into a new ask; NULL: it was refused (see `status`, `err`, `param`). */
static ggl_status status;
static ask *last;

static ask *read_text(const char *text) {
    ask_free(last);
    err = (ggl_error){0};
    last = ask_new(&facts);
    status = last ? llm_json_parse(&last->doc, text, strlen(text), "request", &err) : GGL_NOMEM;
    if (status == GGL_OK)
        status = read_fields(last, &last->doc->root, table, &facts, &param, &err);
    return status == GGL_OK ? last : NULL;
}

TEST(each_kind) {
    ask *a =
        read_text("{\"stream\": true, \"n\": 3, \"big\": -9007199254740991, \"top_k\": 7.0, "
                  "\"temperature\": 0.5, \"seconds\": 1e6, \"grammar\": \"root ::= []\", "
                  "\"seed\": 42, \"stop\": [\"a\", \"b\\u0000c\"], \"kind\": [], \"user\": {}, "
                  "\"store\": false, \"background\": null}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->stream && !param);
    CHECK_INT(a->n_choices, 3);
    CHECK_INT(a->n_max, -9007199254740991);
    CHECK_INT(a->sampling.top_k, 7);
    CHECK(a->sampling.temp == 0.5f && a->seconds == 1e6);
    CHECK(ggl_str_is(a->form_text, "root ::= []"));
    CHECK(a->has_seed && a->sampling.seed == 42);
    REQUIRE(a->n_stops == 2);
    CHECK(ggl_str_is(a->stop[0], "a") && a->stop[1].n == 3 && !memcmp(a->stop[1].s, "b\0c", 3));
    CHECK_INT(a->n_top, JSON_ARRAY);
    ask_free(last);
}

TEST(defaults_and_nulls) {
    ask *a =
        read_text("{\"stream\": null, \"n\": null, \"kind\": null, \"stop\": null, \"seed\": -1, "
                  "\"logit_bias\": {}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(!a->stream && a->n_choices == 1 && a->n_max == -1 && a->n_top == -1 && !a->n_stops);
    CHECK(!a->has_seed && a->only_slot == -1);
    a = read_text("{\"kind_or_null\": null, \"stop\": \"x\"}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_INT(a->n_top, JSON_NULL);
    CHECK(a->n_stops == 1 && ggl_str_is(a->stop[0], "x"));
    ask_free(last);
}

/* Seeds have 64 bits, also beyond what a double holds. */
TEST(seeds) {
    static const struct {
        const char *text;
        uint64_t seed;
        bool given;
    } cases[] = {
        {"0", 0, true},
        {"-1", 0, false},
        {"-2", UINT64_MAX - 1, true},
        {"7.0", 7, true},
        {"1e3", 1000, true},
        {"9007199254740993", 9007199254740993u, true},
        {"-9007199254740993", 0u - 9007199254740993u, true},
        {"9223372036854775807", INT64_MAX, true},
        {"-9223372036854775808", (uint64_t)1 << 63, true},
        {"18446744073709551615", UINT64_MAX, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[80];
        snprintf(text, sizeof text, " {\"n\": 1, \"seed\" :%s}", cases[i].text);
        const ask *a = read_text(text);
        if (!CHECK_MSG(a, "%s: %s", text, err.msg))
            continue;
        CHECK_MSG(a->has_seed == cases[i].given, "%s", text);
        CHECK_MSG(!a->has_seed || a->sampling.seed == cases[i].seed, "%s: %llu", text,
                  (unsigned long long)a->sampling.seed);
    }
    ask_free(last);
}

TEST(biases) {
    ask *a = read_text("{\"logit_bias\": {\"5\": -1.5, \"99\": false, \"07\": 100}}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    REQUIRE(a->sampling.n_bias == 3);
    CHECK(a->sampling.bias[0].id == 5 && a->sampling.bias[0].bias == -1.5f);
    CHECK(a->sampling.bias[1].id == 99 && a->sampling.bias[1].bias == -INFINITY);
    CHECK(a->sampling.bias[2].id == 7 && a->sampling.bias[2].bias == 100);
    a = read_text("{\"logit_bias\": [[0, 1], [3, false]]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK(a->sampling.n_bias == 2 && a->sampling.bias[1].id == 3);
    /* those of a token are added up */
    a = read_text(
        "{\"logit_bias\": [[4, 1], [0, 2], [4, 0.5], [3, 1], [3, false], [3, 7], [4, -4]]}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    REQUIRE(a->sampling.n_bias == 3);
    CHECK(a->sampling.bias[0].id == 4 && a->sampling.bias[0].bias == -2.5f);
    CHECK(a->sampling.bias[1].id == 0 && a->sampling.bias[1].bias == 2);
    CHECK(a->sampling.bias[2].id == 3 && a->sampling.bias[2].bias == -INFINITY);
    CHECK(!read_text("{\"logit_bias\": [[4, 3e38], [4, 3e38]]}"));
    CHECK_HAS(err.msg, "the biases of token 4 add up to infinity");
    ask_free(last);
}

/* A request, the field that it is wrong about, and the message. */
static const struct {
    const char *text, *param, *message;
    ggl_status status;
} wrong[] = {
    {"[]", NULL, "a JSON object is expected, not an array", GGL_USAGE},
    {"{\"temprature\": 1}", "temprature",
     "unknown field \"temprature\"; did you mean \"temperature\"?", GGL_USAGE},
    {"{\"qqqqqq\": 1}", "qqqqqq", "unknown field \"qqqqqq\"", GGL_USAGE},
    {"{\"stream\": 1}", "stream", "\"stream\" must be true or false, not a number", GGL_USAGE},
    {"{\"n\": 0}", "n", "\"n\" is 0, but must be from 1 to 128", GGL_USAGE},
    {"{\"n\": 1.5}", "n", "\"n\" is 1.5, but must be an integer", GGL_USAGE},
    {"{\"n\": \"1\"}", "n", "\"n\" must be an integer, not a string", GGL_USAGE},
    {"{\"n\": NaN}", "n", "but must be from 1 to 128", GGL_USAGE},
    {"{\"big\": 9007199254740993}", "big", "must be from -9007199254740991 to 9007199254740991",
     GGL_USAGE},
    {"{\"top_k\": 2147483648}", "top_k", "\"top_k\" is 2147483648, but must be from -2147483648",
     GGL_USAGE},
    {"{\"temperature\": -0.1}", "temperature", "\"temperature\" is -0.1, but must be from 0 to 100",
     GGL_USAGE},
    {"{\"temperature\": []}", "temperature", "\"temperature\" must be a number, not an array",
     GGL_USAGE},
    {"{\"seconds\": Infinity}", "seconds", "\"seconds\" is inf, but must be from 0 to 1000000",
     GGL_USAGE},
    {"{\"grammar\": 1}", "grammar", "\"grammar\" must be a string, not a number", GGL_USAGE},
    {"{\"seed\": \"x\"}", "seed", "\"seed\" must be an integer, not a string", GGL_USAGE},
    {"{\"seed\": 18446744073709551616}", "seed",
     "\"seed\" must be an integer from -9223372036854775808 to 18446744073709551615", GGL_USAGE},
    {"{\"seed\": -9223372036854775809}", "seed", "\"seed\" must be an integer from", GGL_USAGE},
    {"{\"seed\": 1e18}", "seed", "\"seed\" must be an integer from", GGL_USAGE},
    {"{\"seed\": 1.5}", "seed", "\"seed\" is 1.5, but must be an integer", GGL_USAGE},
    {"{\"stop\": {}}", "stop", "\"stop\" must be a string or a list of strings, not an object",
     GGL_USAGE},
    {"{\"stop\": [\"a\", \"\"]}", "stop",
     "\"stop\": string 2 is empty, and would end every answer at once", GGL_USAGE},
    {"{\"stop\": [\"a\", 1]}", "stop", "\"stop\": string 2 is a number", GGL_USAGE},
    {"{\"logit_bias\": {\"100\": 1}}", "logit_bias",
     "\"logit_bias\": 100 is not a token; the vocabulary has 0 to 99", GGL_USAGE},
    {"{\"logit_bias\": [[-1, 1]]}", "logit_bias", "-1 is not a token", GGL_USAGE},
    {"{\"logit_bias\": [[1.5, 1]]}", "logit_bias", "1.5 is not a token", GGL_USAGE},
    {"{\"logit_bias\": [[1]]}", "logit_bias", "each element must be a pair such as", GGL_USAGE},
    {"{\"logit_bias\": [[1, true]]}", "logit_bias", "must be a number or false, not true",
     GGL_USAGE},
    {"{\"logit_bias\": [[1, 1e39]]}", "logit_bias", "a bias is 1e+39, but must be finite",
     GGL_USAGE},
    {"{\"logit_bias\": {\"1\": NaN}}", "logit_bias", "a bias is nan, but must be finite",
     GGL_USAGE},
    {"{\"logit_bias\": {\"a\": 1}}", "logit_bias", "no tokenizer for texts; give ids",
     GGL_UNSUPPORTED},
    {"{\"kind\": {}}", "kind", "no objects, please", GGL_FORMAT},
    {"{\"background\": true}", "background",
     "\"background\" is not supported: send the request without it", GGL_UNSUPPORTED},
    {"{\"store\": true}", "store", "\"store\" is not supported: answers are not stored here",
     GGL_UNSUPPORTED},
};

TEST(wrong_fields) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (!CHECK_MSG(!read_text(wrong[i].text), "%s was read", wrong[i].text))
            continue;
        CHECK_INT(status, wrong[i].status);
        CHECK_HAS(err.msg, wrong[i].message);
        if (wrong[i].param)
            CHECK_STR(param, wrong[i].param);
        else
            CHECK(!param);
    }
    ask_free(last);
}

/* A field's name in an error is cut, and not in the middle of a character. */
TEST(long_names) {
    char text[1000] = "{\"";
    for (int i = 0; i < 200; i++)
        strcat(text, "\xc3\xa4");
    strcat(text, "\": 1}");
    CHECK(!read_text(text));
    CHECK_HAS(err.msg, "\xc3\xa4..\"");
    CHECK(strlen(err.msg) < 130);
    ask_free(last);
}

/* Without strict fields a name that is not known is written down, once, as a header may carry it; null is absent. */
TEST(unknown_names_are_ignored) {
    static char many[1 << 20];
    size_t n = 0;
    facts.strict_fields = false;
    const ask *a =
        read_text("{\"n\": 2, \"temprature\": 1, \"gone\": null, \"a\\r\\nb, \\u00e4\": 1}");
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    CHECK_INT(a->n_choices, 2);
    CHECK_STR(a->ignored.names, "temprature, a??b????");
    CHECK_OK(fields_ignore(&last->ignored, NULL, (ggl_str){"temprature", 10}, &err), &err);
    CHECK_OK(fields_ignore(&last->ignored, NULL, (ggl_str){"temp", 4}, &err), &err);
    CHECK_OK(fields_ignore(&last->ignored, "tools", (ggl_str){"temp", 4}, &err), &err);
    CHECK_STR(a->ignored.names, "temprature, a??b????, temp, tools.temp");
    for (int i = 0; i < 60000; i++)
        n += (size_t)snprintf(many + n, sizeof many - n, "%s\"x%d\": 1", i ? ", " : "{", i);
    memcpy(many + n, "}", 2);
    a = read_text(many);
    REQUIRE(CHECK_MSG(a, "%s", err.msg));
    n = strlen(a->ignored.names);
    CHECK(n > 200 && n < sizeof a->ignored.names && strcmp(a->ignored.names + n - 4, ", ..") == 0);
    CHECK(!strstr(a->ignored.names, "......"));
    last->ignored.n = 1 << 16;
    CHECK_INT(fields_ignore(&last->ignored, NULL, (ggl_str){"y", 1}, &err), GGL_LIMIT);
    CHECK(!read_text("{\"n\": 0, \"temprature\": 1}"));
    CHECK_STR(param, "n");
    facts.strict_fields = true;
    ask_free(last);
}

static bool read_once(void *text) {
    const bool good = read_text(text) != NULL;
    ask_free(last);
    last = NULL;
    return good;
}

TEST(no_memory) {
    CHECK(alloc_fail_each(read_once, "{\"stop\": [\"a\", \"b\"], \"logit_bias\": [[1, 2]]}") > 5);
}
