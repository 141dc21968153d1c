/* JSON strings as the tools read them. */
#include "ggl/internal/os_stream.h"
#include "test.h"

#include "common/json_text.h"

TEST(strings) {
    const struct {
        const char *json, *text;
        size_t n;
    } cases[] = {
        {"\"\"", "", 0},
        {" \t\"a b\" ", "a b", 3},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00\"", "Aé€😀", 10},
        {"\"x\\u0000y\"", "x\0y", 3},
        {"\"é\xff\"", "é\xff", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t n = 0, used = 0;
        const char *wrong = json_read_string(cases[i].json, strlen(cases[i].json), out, &n, &used);
        CHECK_MSG(!wrong && n == cases[i].n && memcmp(out, cases[i].text, n) == 0, "%s: %s",
                  cases[i].json, wrong ? wrong : "other bytes");
        CHECK(used > 0 && cases[i].json[used - 1] == '"');
    }
}

TEST(refused) {
    const struct {
        const char *json, *words;
    } cases[] = {
        {"", "a JSON string is expected"},
        {"x", "a JSON string is expected"},
        {"\"a", "not closed"},
        {"\"a\\\"", "not closed"},
        {"\"\\x\"", "this is not a valid escape"},
        {"\"\\", "this is not a valid escape"},
        {"\"\\u12g4\"", "four hex"},
        {"\"\\u12", "four hex"},
        {"\"\\ud800\"", "the other half of a surrogate"},
        {"\"\\ud800x\"", "half"},
        {"\"\\ud800\\u0041\"", "half"},
        {"\"\\udc00\"", "half"},
        {"\"a\nb\"", "control character"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t n, used;
        const char *wrong = json_read_string(cases[i].json, strlen(cases[i].json), out, &n, &used);
        if (CHECK_MSG(wrong != NULL, "'%s' is taken", cases[i].json))
            CHECK_HAS(wrong, cases[i].words);
    }
}

/* What is written is read again; bytes that are no UTF-8 become U+FFFD. */
TEST(written) {
    const struct {
        const char *text;
        size_t n;
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {"a b/", 4, "\"a b/\""},
        {"\"\\\n\t\r\b\f", 7, "\"\\\"\\\\\\n\\t\\r\\b\\f\""},
        {"\0\x1f\x7f", 3, "\"\\u0000\\u001f\\u007f\""},
        {"\xc2\x9b", 2, "\"\\u009b\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff\xe2\x82", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t n = 0, used = 0;
        os_memory_stream m;
        REQUIRE(ggl_os_memory_stream_open(&m));
        json_put_string(m.to, cases[i].text, cases[i].n);
        REQUIRE(ggl_os_memory_stream_close(&m));
        CHECK_STR(m.text, cases[i].json);
        CHECK(!json_read_string(m.text, m.n, out, &n, &used) && used == m.n);
        free(m.text);
    }
}
