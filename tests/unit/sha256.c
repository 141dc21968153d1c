/* SHA-256 against the examples of FIPS 180-4, and in pieces of all lengths. */
#include "test.h"

#include "common/sha256.h"

static const char *digest(const char *text, size_t n, size_t piece) {
    static char hex[SHA256_HEX];
    sha256 s;
    llm_sha256_begin(&s);
    for (size_t i = 0; i < n; i += piece)
        llm_sha256_add(&s, text + i, n - i < piece ? n - i : piece);
    llm_sha256_end(&s, hex);
    return hex;
}

TEST(published_examples) {
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(digest(cases[i].text, strlen(cases[i].text), 1000), cases[i].hex);
}

TEST(a_million_letters) {
    enum { N = 1000000 };
    char *text = malloc(N);
    REQUIRE(text);
    memset(text, 'a', N);
    CHECK_STR(digest(text, N, 65536),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(text);
}

/* Lengths around the ends of blocks, where the padding takes one block more. */
TEST(pieces_do_not_matter) {
    char text[200], whole[SHA256_HEX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    for (size_t n = 0; n <= sizeof text; n++) {
        snprintf(whole, sizeof whole, "%s", digest(text, n, n + 1));
        for (size_t piece = 1; piece <= 70; piece++)
            CHECK_STR(digest(text, n, piece), whole);
    }
}
