/* The text of a generation with stop texts, special tokens among them. */
#include "stopped_text.h"

#include "test.h"

typedef struct piece {
    const char *text;
    bool hidden;
} piece;

static void take(stopped_text *t, bool all, char *to) {
    const char *s;
    size_t n;
    while ((all || llm_stopped_text_has(t)) && (s = llm_stopped_text_give(t, all, &n)) != NULL)
        strncat(to, s, n);
}

/* Puts the pieces until the text ends, and checks what was returned. shown, stop: the stop texts. */
static void check(const char **shown, const char **stop, const piece *pieces, const char *expected,
                  bool found) {
    ggl_error err;
    stopped_text t = {.found = -1};
    ggl_str all[8];
    char text[100] = "";
    size_t n = 0;
    for (; shown[t.n_shown]; t.n_shown++, n++)
        all[n] = (ggl_str){shown[n], strlen(shown[n])};
    for (; *stop; stop++, n++)
        all[n] = (ggl_str){*stop, strlen(*stop)};
    if (n > 0)
        REQUIRE_OK(llm_stop_new(&t.stop, all, n, &err), &err);
    for (; pieces->text && t.found < 0; pieces++) {
        const ggl_str s = {pieces->text, strlen(pieces->text)};
        CHECK_OK(llm_stopped_text_put(&t, s, pieces->hidden, &err), &err);
        take(&t, false, text);
    }
    CHECK_OK(llm_stopped_text_end(&t, &err), &err);
    take(&t, true, text);
    CHECK((t.found >= 0) == found);
    CHECK_STR(text, expected);
    llm_stopped_text_fini(&t);
    llm_stop_free(t.stop);
}

#define NONE      ((const char *[]){NULL})
#define LIST(...) ((const char *[]){__VA_ARGS__, NULL})
#define TEXT(...) ((const piece[]){__VA_ARGS__, {NULL, false}})

TEST(texts) {
    check(NONE, NONE, TEXT({"a ", false}, {"<end>", true}, {"b", false}), "a b", false);
    check(NONE, LIST("\nUser:"), TEXT({"Hi\n", false}, {"Us", false}, {"e", false}, {"r", false}),
          "Hi\nUser", false);
    check(NONE, LIST("\nUser:"), TEXT({"Hi\nUse", false}, {"r: no", false}, {"more", false}), "Hi",
          true);
    check(LIST("\nUser:"), NONE, TEXT({"Hi\nUse", false}, {"r: no", false}), "Hi\nUser:", true);
    /* a character that is cut by a token, before one that may begin a stop string */
    check(NONE, LIST("\xa9\xc3"), TEXT({"\xc3", false}, {"\xa9", false}, {"!", false}), "\xc3\xa9!",
          false);
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
