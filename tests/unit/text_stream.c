/* Text as it comes, token by token: what is written ends between characters, and nothing is lost. */
#include <fcntl.h>
#include <unistd.h>

#include "llm-cli/text_stream.h"
#include "test.h"

/* Puts text[0..n) in parts of `part` bytes, and collects in out what has been written after each.
 * Returns how often that ended inside a character. */
static int stream(const char *text, size_t n, size_t part, char *out, size_t *n_out) {
    int ends[2], halves = 0, saved = dup(1);
    text_stream s = {0};
    *n_out = 0;
    if (!CHECK(saved >= 0 && pipe(ends) == 0))
        return -1;
    fflush(stdout);
    dup2(ends[1], 1);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (size_t i = 0; i <= n; i += part) {
        if (i < n)
            text_stream_put(&s, text + i, n - i < part ? n - i : part);
        if (i + part > n)
            text_stream_end(&s);
        ssize_t got = read(ends[0], out + *n_out, 256);
        *n_out += got > 0 ? (size_t)got : 0;
        halves += *n_out < n && (text[*n_out] & 0xc0) == 0x80;
    }
    dup2(saved, 1);
    close(saved);
    close(ends[0]);
    close(ends[1]);
    return halves;
}

TEST(characters_stay_whole) {
    static const char text[] =
        "aé日本\xf0\x9f\x98\x81\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7!";
    char out[512];
    size_t n;
    for (size_t part = 1; part < 7; part++) {
        CHECK_INT(stream(text, sizeof text - 1, part, out, &n), 0);
        CHECK(n == sizeof text - 1 && memcmp(out, text, n) == 0);
    }
}

TEST(stray_bytes_are_not_lost) {
    static const char *const texts[] = {"\xff\xfe",
                                        "a\x80\x80",
                                        "\xe6\x97",
                                        "\xf0\x9f\x98",
                                        "\xe6\xe6\xe6z",
                                        "\xc3\xc3\xa9",
                                        "\xf8\x88\x80\x80\x80",
                                        "\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0\xf0",
                                        "\xe6\xf0\x9f\xf0\x9f\xe6\xf0\xc3\xf0z"};
    char out[512];
    size_t n;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t part = 1; part < 5; part++) {
            (void)stream(texts[i], strlen(texts[i]), part, out, &n);
            CHECK_MSG(n == strlen(texts[i]) && memcmp(out, texts[i], n) == 0,
                      "text %zu in parts of %zu: %zu bytes", i, part, n);
        }
}
