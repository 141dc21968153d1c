/* Lists and ranges of a command line. */
#include "llm-bench/lists.h"
#include "test.h"

static void check(const char *s, const char *want) {
    bench_list l = {0};
    char got[256] = "";
    const char *wrong = bench_list_read(&l, s, 0, 1000);
    for (size_t i = 0; i < l.n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%" PRId64, i ? " " : "", l.v[i]);
    CHECK_STR(wrong ? wrong : got, want);
    free(l.v);
}

TEST(lists) {
    check("5", "5");
    check("1,2,4", "1 2 4");
    check("1-4", "1 2 3 4");
    check("1-9+3", "1 4 7");
    check("1-64*2", "1 2 4 8 16 32 64");
    check("0,2-3,8-32*4", "0 2 3 8 32");
    check("7-7", "7");
}

TEST(mistakes) {
    static const char form[] = "is not a list such as 1,2,4 or a range such as 1-8, 1-9+2, 1-64*2";
    const char *bad[] = {"", "x", "1,", "1,,2", "1-", "1-2+", "1 2", "1-2-3", "1+2x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check(bad[i], form);
    check("1-4+0", "is a range without an end");
    check("1-4*1", "is a range without an end");
    check("0-4*2", "is a range without an end");
    check("4-1", "is out of range, or a range that goes down");
    check("1001", "is out of range, or a range that goes down");
    check("-1", "is out of range, or a range that goes down");
    check("99999999999999999999", form);
}
