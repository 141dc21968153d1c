/* SHA-1 against the examples of FIPS 180-4, and digests of files against names that Git gives. */
#include "test.h"

#include "hub/file_digest.h"

static const char *sha1_of(const char *text, size_t n, size_t piece) {
    static char hex[SHA1_HEX];
    sha1 s;
    llm_sha1_begin(&s);
    for (size_t i = 0; i < n; i += piece)
        llm_sha1_add(&s, text + i, n - i < piece ? n - i : piece);
    llm_sha1_end(&s, hex);
    return hex;
}

TEST(sha1_examples) {
    enum { N = 1000000 };
    static const struct {
        const char *text, *hex;
    } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "a49b2446a02c645bf419f995b67091253a04a259"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK_STR(sha1_of(cases[i].text, strlen(cases[i].text), 1000), cases[i].hex);
    char *text = malloc(N);
    REQUIRE(text);
    memset(text, 'a', N);
    CHECK_STR(sha1_of(text, N, 65536), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    free(text);
}

/* Lengths around the ends of blocks, where the padding takes one block more. */
TEST(pieces_do_not_matter) {
    char text[200], whole[SHA1_HEX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7);
    for (size_t n = 0; n <= sizeof text; n++) {
        snprintf(whole, sizeof whole, "%s", sha1_of(text, n, n + 1));
        for (size_t piece = 1; piece <= 70; piece++)
            CHECK_STR(sha1_of(text, n, piece), whole);
    }
}

/* `git hash-object` prints these for an empty file and for "hello" with a line feed. */
TEST(git_names) {
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"", "git-e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
        {"hello\n", "git-ce013625030ba8dba906f756967f9e9ca394464a"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    };
    char text[FILE_DIGEST];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        file_digest d;
        llm_file_digest_begin(&d, cases[i].wanted, strlen(cases[i].text));
        llm_file_digest_add(&d, cases[i].text, strlen(cases[i].text));
        llm_file_digest_end(&d, text);
        CHECK_STR(text, cases[i].wanted);
        CHECK(llm_file_digest_is_git(cases[i].wanted) == (i < 2));
        CHECK(llm_file_digest_is_sha256(cases[i].wanted) == (i == 2));
    }
    CHECK(!llm_file_digest_is_git("git-") && !llm_file_digest_is_git("git-ce0136") &&
          !llm_file_digest_is_sha256("") && !llm_file_digest_is_git(""));
}
