/* What llm-cli prints of a text with stop strings, control tokens among them. */
#include "llm-cli/stops.h"

#include "test.h"

typedef struct piece {
    const char *text;
    bool hidden;
} piece;

/* Puts the pieces until the text ends, and checks what a file then contains. */
static void check(const char **reverse, const char **stop, const piece *pieces,
                  const char *expected, bool found) {
    ggl_error err;
    stops s;
    stops_options o = {.reverse = {reverse, 0}, .stop = {stop, 0}};
    text_stream out = {0};
    size_t n = 0;
    while (reverse[o.reverse.n])
        o.reverse.n++;
    while (stop[o.stop.n])
        o.stop.n++;
    REQUIRE_OK(ggl_new_file_open(&out.file, test_path("text"), &err), &err);
    REQUIRE_OK(stops_init(&s, &o, true, &err), &err);
    for (; pieces->text && !s.found; pieces++)
        CHECK_OK(stops_put(&s, &out, (ggl_str){pieces->text, strlen(pieces->text)}, pieces->hidden,
                           &err),
                 &err);
    stops_end(&s, &out);
    text_stream_end(&out);
    CHECK(s.found == found);
    CHECK_OK(ggl_new_file_commit(out.file, &err), &err);
    char *text = (char *)test_read_file(test_path("text"), &n);
    CHECK_MSG(n == strlen(expected) && memcmp(text, expected, n) == 0, "'%.*s', expected '%s'",
              (int)n, text, expected);
    free(text);
    stops_fini(&s);
}

#define NONE      ((const char *[]){NULL})
#define LIST(...) ((const char *[]){__VA_ARGS__, NULL})
#define TEXT(...) ((const piece[]){__VA_ARGS__, {NULL, false}})

TEST(texts) {
    check(NONE, NONE, TEXT({"a ", false}, {"<end>", true}, {"b", false}), "a b", false);
    check(NONE, LIST("\\nUser:"), TEXT({"Hi\n", false}, {"Us", false}, {"e", false}, {"r", false}),
          "Hi\nUser", false);
    check(NONE, LIST("\\nUser:"), TEXT({"Hi\nUse", false}, {"r: no", false}, {"more", false}), "Hi",
          true);
    check(LIST("\\nUser:"), NONE, TEXT({"Hi\nUse", false}, {"r: no", false}), "Hi\nUser:", true);
    /* a character that is cut by a token, before one that may begin a stop string */
    check(NONE, LIST("\\xa9\\xc3"), TEXT({"\xc3", false}, {"\xa9", false}, {"!", false}),
          "\xc3\xa9!", false);
    /* of equal strings, the one that is printed counts */
    check(LIST("b"), LIST("b"), TEXT({"abc", false}), "ab", true);
}

TEST(control_tokens) {
    check(NONE, LIST("<end>"), TEXT({"a", false}, {"<end>", true}, {"b", false}), "a", true);
    check(LIST("<user>Name:"), NONE,
          TEXT({"a", false}, {"<user>", true}, {"Na", false}, {"me:", false}), "aName:", true);
    check(NONE, LIST("<user>No"), TEXT({"a", false}, {"<user>", true}, {"Na", false}), "aNa",
          false);
    check(NONE, LIST("x<"), TEXT({"ax", false}, {"<user>", true}, {"b", false}), "a", true);
}
