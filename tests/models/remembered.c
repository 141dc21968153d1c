/* Texts that a tokenizer remembers (models/text/remembered.h). */
#include "text/remembered.h"

#include "alloc_fail.h"
#include "ggl/internal/gguf.h"
#include "test.h"

static ggl_error err;
static const char text[] = "a text that is long enough to be remembered";
enum { N = sizeof text - 1 };

/* The ids that are known of a text; "": none. */
static const char *known(remembered *r, const char *s, bool goes_on) {
    static char out[100];
    llm_tokens ids = {0};
    *out = '\0';
    if (llm_remembered_find(r, s, strlen(s), goes_on, &ids))
        for (size_t i = 0; i < ids.n; i++)
            snprintf(out + strlen(out), sizeof out - strlen(out), "%d,", (int)ids.id[i]);
    llm_tokens_fini(&ids);
    return out;
}

TEST(finds_what_was_put) {
    int32_t id[] = {7, 8, 9};
    const llm_tokens ids = {.id = id, .n = 3};
    remembered *r = llm_remembered_new(1000);
    REQUIRE(r);
    CHECK_STR(known(r, text, false), "");
    llm_remembered_put(r, text, N, false, &ids, 1, 2);
    CHECK_STR(known(r, text, false), "8,9,");
    CHECK_STR(known(r, text, true), "");
    CHECK_STR(known(r, "a text that is long enough to be remembereD", false), "");
    llm_tokens out = {0};
    CHECK(llm_remembered_find(r, text, N, false, &out) && out.lost == 2);
    llm_tokens_fini(&out);
    llm_remembered_put(r, text, N, false, &ids, 0, 0); /* again: the last one counts */
    CHECK_STR(known(r, text, false), "7,8,9,");
    llm_remembered_put(r, "short", 5, false, &ids, 0, 0);
    CHECK_STR(known(r, "short", false), "");
    llm_remembered_free(r);
    llm_remembered_free(NULL);
}

/* More than the memory holds: what came last is known, and no more is held. */
TEST(forgets_when_full) {
    int32_t id[10] = {1};
    const llm_tokens ids = {.id = id, .n = 10};
    remembered *r = llm_remembered_new(1000);
    char s[300];
    int n_known = 0;
    REQUIRE(r);
    for (int i = 0; i < 100; i++) {
        snprintf(s, sizeof s, "%s, and it is number %d", text, i);
        llm_remembered_put(r, s, strlen(s), false, &ids, 0, 0);
        CHECK(known(r, s, false)[0]);
    }
    for (int i = 0; i < 100; i++) {
        snprintf(s, sizeof s, "%s, and it is number %d", text, i);
        n_known += known(r, s, false)[0] != '\0';
    }
    CHECK_MSG(n_known >= 1 && n_known <= 10, "%d", n_known);
    memset(s, 'x', sizeof s - 1);
    s[sizeof s - 1] = '\0';
    llm_remembered_put(r, s, strlen(s), false, &ids, 0, 0); /* over a quarter */
    CHECK_STR(known(r, s, false), "");
    llm_remembered_free(r);
}

static bool puts_and_finds(void *arg) {
    int32_t id[] = {7};
    const llm_tokens ids = {.id = id, .n = 1};
    remembered *r = llm_remembered_new(1000);
    (void)arg;
    if (!r)
        return false;
    llm_remembered_put(r, text, N, false, &ids, 0, 0);
    const bool found = known(r, text, false)[0];
    llm_remembered_free(r);
    return found;
}

TEST(without_memory) {
    CHECK_INT(alloc_fail_each(puts_and_finds, NULL), 3);
}

/* A tokenizer gives the same ids, whatever it remembers. */
TEST(same_tokens) {
    static const char *const words[] = {"<s>",        "</s>", "<|user|>", " Once upon a time",
                                        " there was", "\n\n", "x",        " a frog.",
                                        "\xff"};
    static const char *const files[] = {MODELS "/builtin/stories-chat.gguf",
                                        DATA "/stories-qwen2.gguf"};
    uint64_t random = 5;
    for (int f = 0; f < 2; f++) {
        ggl_gguf *file = NULL;
        llm_tokenizer *t = NULL, *plain = NULL;
        REQUIRE_OK(ggl_gguf_open(&file, files[f], NULL, &err), &err);
        REQUIRE_OK(llm_tokenizer_new(&t, file, &err), &err);
        REQUIRE_OK(llm_tokenizer_new(&plain, file, &err), &err);
        REQUIRE_OK(llm_tokenizer_remember(t, 2000, &err), &err);
        for (int i = 0; i < 300; i++) {
            char s[2000] = "";
            for (uint32_t n = test_random(&random) % 60; n > 0; n--)
                strcat(s, words[test_random(&random) % (sizeof words / sizeof *words)]);
            llm_tokens got = {0}, want = {0};
            const unsigned flags =
                i % 2 ? LLM_TOKENIZE_SPECIAL : LLM_TOKENIZE_SPECIAL | LLM_TOKENIZE_BOS;
            for (int again = 0; again < 2; again++) {
                got.n = want.n = got.lost = want.lost = 0;
                CHECK_OK(llm_tokenize(t, s, strlen(s), flags, &got, &err), &err);
                CHECK_OK(llm_tokenize(plain, s, strlen(s), flags, &want, &err), &err);
                CHECK(got.n == want.n && got.lost == want.lost &&
                      (got.n == 0 || memcmp(got.id, want.id, got.n * sizeof *got.id) == 0));
            }
            llm_tokens_fini(&got);
            llm_tokens_fini(&want);
        }
        llm_tokenizer_free(plain);
        llm_tokenizer_free(t);
        ggl_gguf_close(file);
    }
}
