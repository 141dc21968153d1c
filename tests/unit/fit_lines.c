/* Lines of tables that are broken where a terminal ends. */
#include "common/fit_lines.h"
#include "ggl/internal/os_stream.h"
#include "test.h"

static void check(const char *line, int width, const char *want) {
    os_memory_stream m;
    REQUIRE(ggl_os_memory_stream_open(&m));
    fit_line(m.to, line, strlen(line), width);
    REQUIRE(ggl_os_memory_stream_close(&m));
    CHECK_STR(m.text, want);
    free(m.text);
}

TEST(lines_that_fit_stay) {
    check("", 40, "\n");
    check("  one two", 9, "  one two\n");
    check("a table of numbers", 9, "a table of numbers\n");
    check("  \u4e2d\u6587 \u4e2d", 9, "  \u4e2d\u6587 \u4e2d\n"); /* two columns each */
}

TEST(what_does_not_fit_goes_on_below) {
    check("  one two three", 9, "  one two\n      three\n");
    check("  \u4e2d\u6587 \u4e2d", 8, "  \u4e2d\u6587\n      \u4e2d\n");
    check("  one   two  three", 40, "  one   two  three\n");
    check("  one   a text that is longer than it", 32,
          "  one   a text that is longer\n        than it\n");
    check("  one                a text that is long", 32,
          "  one                a text that\n      is long\n");
    check("  averylongword another", 8, "  averylongword\n      another\n");
    check("  a  averylongword", 8, "  a\n      averylongword\n");
}

TEST(only_terminals_break_lines) {
    os_memory_stream m;
    fit_lines l;
    REQUIRE(ggl_os_memory_stream_open(&m));
    CHECK(fit_lines_begin(&l, m.to) == m.to);
    fputs("  a line\n", m.to);
    fit_lines_end(&l);
    REQUIRE(ggl_os_memory_stream_close(&m));
    CHECK_STR(m.text, "  a line\n");
    free(m.text);
}
