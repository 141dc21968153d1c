/* Lines break between words, however the text is cut into pieces: what a terminal shows is what a plain
 * algorithm gives that knows the whole text. */
#include "common/word_wrap.h"
#include "ggl/internal/os_stream.h"
#include "test.h"

enum { MOST = 4096 };

/* What a terminal shows of bytes: it knows line ends, "n columns left" and "erase to the right". */
static void screen(const char *bytes, size_t n, char *out) {
    char line[MOST];
    size_t at = 0, len = 0, n_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\033' && bytes[i + 1] == '[') {
            char *end;
            const long count = strtol(bytes + i + 2, &end, 10);
            if (*end == 'D')
                at -= (size_t)count;
            if (*end == 'K')
                len = at;
            i = (size_t)(end - bytes);
        } else if (bytes[i] == '\n') {
            memcpy(out + n_out, line, len);
            n_out += len;
            out[n_out++] = '\n';
            at = len = 0;
        } else {
            line[at++] = bytes[i];
            len = at > len ? at : len;
        }
    }
    memcpy(out + n_out, line, len);
    out[n_out + len] = '\0';
}

static void wrap(const char *text, size_t piece, int columns, char *out) {
    os_memory_stream m;
    REQUIRE(ggl_os_memory_stream_open(&m));
    word_wrap w = {.out = m.to, .columns = columns};
    const size_t n = strlen(text);
    for (size_t i = 0; i < n; i += piece)
        CHECK(word_wrap_put(&w, text + i, n - i < piece ? n - i : piece));
    REQUIRE(ggl_os_memory_stream_close(&m));
    screen(m.text, m.n, out);
    free(m.text);
}

TEST(words) {
    const struct {
        const char *text, *want;
    } cases[] = {
        {"one two three", "one two\nthree"},
        {"one two thr", "one two\nthr"},
        {"a b c d e f g", "a b c d e\nf g"},
        {"abcdefghijklmn", "abcdefghi\njklmn"},
        {"a abcdefghijkl", "a \nabcdefghi\njkl"},
        {"ab\ncd ef gh ij", "ab\ncd ef gh \nij"},
        {"\033[2mone two three\033[0m", "one two\nthree"},
        {"abcdefghi jk", "abcdefghi\njk"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 20; piece += 3) {
            char out[MOST], want[MOST];
            if (strchr(cases[i].text, '\033') && piece < 4)
                continue; /* sequences come whole */
            wrap(cases[i].text, piece, 10, out);
            /* a space at the end of a line is not seen */
            size_t n = 0;
            for (const char *s = out; *s; s++)
                if (!(*s == ' ' && s[1] == '\n'))
                    want[n++] = *s;
            want[n] = '\0';
            char expected[MOST];
            n = 0;
            for (const char *s = cases[i].want; *s; s++)
                if (!(*s == ' ' && s[1] == '\n'))
                    expected[n++] = *s;
            expected[n] = '\0';
            CHECK_STR(want, expected);
        }
}

TEST(wide_characters) {
    os_memory_stream m;
    REQUIRE(ggl_os_memory_stream_open(&m));
    word_wrap w = {.out = m.to, .columns = 10};
    CHECK(word_wrap_put(&w, "日本語日本語", 18));
    REQUIRE(ggl_os_memory_stream_close(&m));
    CHECK_STR(m.text, "日本語日\n本語");
    free(m.text);
}

/* Random texts: no line is too long, no character is lost, and words that fit are whole. */
TEST(random_texts) {
    uint64_t seed = 7;
    for (int round = 0; round < 2000; round++) {
        char text[200], out[MOST];
        const size_t n = 1 + test_random(&seed) % 150;
        const int columns = 5 + (int)(test_random(&seed) % 40);
        for (size_t i = 0; i < n; i++)
            text[i] = "abcdefghij    \n"[test_random(&seed) % 15];
        text[n] = '\0';
        wrap(text, 1 + test_random(&seed) % 9, columns, out);
        size_t column = 0, k = 0;
        for (const char *s = out; *s; s++) {
            column = *s == '\n' ? 0 : column + 1;
            if (!CHECK(column < (size_t)columns))
                return;
            if (*s == text[k] ||
                (*s == '\n' && text[k] == ' ')) /* or a space became the line's end */
                k++;
            else if (!CHECK(*s == '\n'))
                return;
        }
        CHECK_INT(k, n);
    }
}
