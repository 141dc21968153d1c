/* The sizes that zlib 1.2.13 makes (python: len(zlib.compress(text))). */
#include "speech/zlib_size.h"

#include <string.h>

#include "test.h"

static size_t size_of(const char *s, size_t n) {
    size_t size = 0;
    ggl_error err = {0};
    CHECK_OK(llm_zlib_size(s, n, &size, &err), &err);
    return size;
}

TEST(texts) {
    static const struct {
        const char *text;
        size_t size;
    } known[] = {
        {"", 8},
        {" ", 9},
        {"a", 9},
        {"aaa", 11},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 12},
        {"And so, my fellow Americans, ask not what your country can do for you; ask what you can "
         "do for your country.",
         82},
        {"Thank you. Thank you. Thank you. Thank you. Thank you. Thank you. Thank you. Thank you. "
         "Thank you.",
         22},
        {"xyzxyzxyzxyzxyz", 13},
        {"ご視聴ありがとうございました", 49},
        {"1.5% de baijana 1.5% de baijana 1.5% de baijana 1.5% de baijana 1.5% de baijana 1.5% de "
         "baijana",
         27},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        CHECK_INT(size_of(known[k].text, strlen(known[k].text)), known[k].size);
}

/* Texts that a generator makes: `kind` letters, in words that come again. */
static void make(char *s, size_t n, uint32_t seed, uint32_t kind) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint32_t x = seed >> 16;
        s[i] = i > 40 && x % 7 ? s[i - 1 - (seed >> 8) % 37] : (char)('a' + x % kind);
    }
}

TEST(long_texts) {
    static const size_t want[] = {9,   9,  9,    12,   12,  12,   11,   21,  21,    12,
                                  38,  48, 12,   69,   101, 13,   151,  233, 18,    447,
                                  652, 27, 1295, 1891, 33,  3775, 6044, 53,  11148, 17961};
    static char s[ZLIB_SIZE_MOST];
    size_t k = 0;
    for (uint32_t n = 1; n <= ZLIB_SIZE_MOST; n = n * 3 + 1)
        for (uint32_t kind = 1; kind < 200; kind *= 6) {
            make(s, n, n + kind, kind);
            CHECK_INT(size_of(s, n), want[k]);
            k++;
        }
    CHECK_INT(k, sizeof want / sizeof *want);
}
