/* Text for terminals: ggl/internal/show.h. */
#include "ggl/internal/show.h"

#include "test.h"

static const char *shown(const char *s, size_t n) {
    static char buf[256];
    size_t size = ggl_show(buf, sizeof buf, s, n);
    CHECK_INT(size, strlen(buf));
    return buf;
}

#define SHOWN(s) shown(s, sizeof(s) - 1)

TEST(strings) {
    CHECK_STR(SHOWN(""), "");
    CHECK_STR(SHOWN("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
    CHECK_STR(SHOWN("\x1b[31mred\n\r\t\x7f\0x"), "\\x1b[31mred\\x0a\\x0d\\x09\\x7f\\x00x");
    CHECK_STR(SHOWN("größer 中 😁 \xc2\xa0"), "größer 中 😁 \xc2\xa0");
    CHECK_STR(SHOWN("\xc2\x9b"
                    "31m"),
              "\\xc2\\x9b31m"); /* C1: CSI */
    CHECK_STR(SHOWN("\xff\xc0\x80\xed\xa0\x80z"), "\\xff\\xc0\\x80\\xed\\xa0\\x80z");
    CHECK_STR(SHOWN("ab\xe4\xb8"), "ab"); /* the end of a cut string */
    CHECK_STR(SHOWN("ab\xe4\xb8z"), "ab\\xe4\\xb8z");
    char few[4];
    CHECK_INT(ggl_show(few, sizeof few, "a\nb", 3), 6);
    CHECK_STR(few, "a\\x");
    CHECK_INT(ggl_show(NULL, 0, "a\nb", 3), 6);
}

TEST(valid_utf8) {
    CHECK(ggl_utf8_is_valid("", 0) && ggl_utf8_is_valid("a\0b", 3));
    CHECK(ggl_utf8_is_valid("a\xc3\xb6\xf0\x9f\x98\x81", 7));
    CHECK(!ggl_utf8_is_valid("a\xc3\xb6\xf0\x9f\x98\x81", 6)); /* ends within a character */
    CHECK(!ggl_utf8_is_valid("a\xffz", 3) && !ggl_utf8_is_valid("\xc0\x80", 2));
}

/* Half a character is never left. */
TEST(cut) {
    static const char s[] = "a\xc3\xb6\xf0\x9f\x98\x81z"; /* 1, 2, 4, 1 bytes */
    static const size_t want[] = {0, 1, 1, 3, 3, 3, 3, 7, 8, 8};
    for (size_t most = 0; most < sizeof want / sizeof *want; most++)
        CHECK_INT(ggl_utf8_cut(s, 8, most), want[most]);
    CHECK_INT(ggl_utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 2); /* no UTF-8 */
}

static const char *format(const char *fmt, ...) {
    static char buf[512];
    va_list args;
    va_start(args, fmt);
    int size = ggl_vformat(buf, sizeof buf, fmt, args);
    va_end(args);
    CHECK_INT(size, strlen(buf));
    return buf;
}

#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"

/* As printf does it, but for strings. */
#define SAME(...)                                                                                  \
    do {                                                                                           \
        char want_[512];                                                                           \
        snprintf(want_, sizeof want_, __VA_ARGS__);                                                \
        CHECK_STR(format(__VA_ARGS__), want_);                                                     \
    } while (0)

TEST(formats) {
    SAME("plain %% text");
    SAME("%d|%5d|%-5d|%05d|%+d|%.3d|% d", 1, 2, 3, 4, 5, 6, 7);
    SAME("%u %x %X %o %#x %c", 1u, 255u, 255u, 8u, 255u, 'c');
    SAME("%ld %lu %lld %llu", -1l, 1ul, -2ll, 2ull);
    SAME("%zu %zd %jd %td %hd %hhd", (size_t)3, (ssize_t)-3, (intmax_t)4, (ptrdiff_t)-5, 6, 7);
    SAME("%" PRId64 " %" PRIu64 " %" PRIu32 " %12" PRIu64, INT64_MIN, UINT64_MAX, UINT32_MAX, 5ul);
    SAME("%f %.2f %10.3e %g %.12g %-9g| %G %a", 1.5, 2.25, 1e100, 0.1, 1 / 3.0, 7.0, 1e-9, 1.0);
    SAME("%*d|%-*d|%.*f|%*.*f|%*d", 5, 1, 5, 2, 2, 3.14159, 8, 3, 2.71828, -6, 9);
    SAME("%s|%10s|%-10s|%.2s|%.*s|%-6.2s|", "ab", "cd", "ef", "ghi", 1, "jk", "lmn");
    SAME("%p", (void *)&format);
    CHECK_STR(format("%s|%8s|%-8s|%.*s|", "\n", "\x1b", "\x1b", 2, "a\tb"),
              "\\x0a|    \\x1b|\\x1b    |a\\x09|");
    CHECK_STR(format("a\nb %s", "c"), "a\nb c"); /* the format is the program's own */
    CHECK_STR(format("%.2s|", "a\xc3\xa9"), "a|");
    CHECK_STR(format("%s", (const char *)NULL), "(null)");
}

TEST(messages) {
    ggl_error err = {0};
    ggl_fail(&err, GGL_FORMAT, "%s: key '%.*s'", "m\x1b.gguf", 3, "a\nbc");
    CHECK_STR(err.msg, "m\\x1b.gguf: key 'a\\x0ab'");
    ggl_within(&err, GGL_FORMAT, "%s", "\x1b[2J");
    CHECK_STR(err.msg, "\\x1b[2J: m\\x1b.gguf: key 'a\\x0ab'");
    strcpy(err.msg, "x.arch:1:2: error\n    1 | x"); /* several lines, as descriptors' errors */
    ggl_within(&err, GGL_FORMAT, "%s", "file");
    CHECK_STR(err.msg, "file: x.arch:1:2: error\n    1 | x");
    ggl_fail(&err, GGL_FORMAT, "(%s)", err.msg);
    CHECK_STR(err.msg, "(file: x.arch:1:2: error\n    1 | x)");
}

TEST(files) {
    const char *path = test_path("out");
    FILE *f = fopen(path, "wb");
    char *large = calloc(3000, 1);
    memset(large, '\n', 2000);
    REQUIRE(f && large);
    CHECK(ggl_fprint(f, "%s\n", "a\x1b"));
    CHECK(ggl_fprint(f, "%s", large));
    fclose(f);
    size_t n = 0;
    unsigned char *got = test_read_file(path, &n);
    CHECK_INT(n, 6 + 4 * 2000);
    CHECK(got && memcmp(got, "a\\x1b\n\\x0a", 10) == 0 && memcmp(got + n - 4, "\\x0a", 4) == 0);
    free(got);
    free(large);
}
