/* XXH64 against published values, and in pieces of all lengths. */
#include "test.h"

#include "ggl/internal/xxh64.h"

static uint64_t digest(const char *text, size_t n, size_t piece) {
    ggl_xxh64 s;
    ggl_xxh64_begin(&s);
    for (size_t i = 0; i < n; i += piece)
        ggl_xxh64_add(&s, text + i, n - i < piece ? n - i : piece);
    return ggl_xxh64_end(&s);
}

TEST(published_examples) {
    static const struct {
        const char *text;
        uint64_t h;
    } cases[] = {
        {"", 0xef46db3751d8e999},
        {"a", 0xd24ec4f1a98c6e5b},
        {"abc", 0x44bc2cf5ad770999},
        {"Nobody inspects the spammish repetition", 0xfbcea83c8a378bf1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(digest(cases[i].text, strlen(cases[i].text), 1000) == cases[i].h);
}

TEST(pieces) {
    char text[300];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 37);
    for (size_t piece = 1; piece < 70; piece++)
        CHECK(digest(text, sizeof text, piece) == digest(text, sizeof text, sizeof text));
}
