/* ggl/internal/number.h: forms, and values to the last bit. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/number.h"
#include "seed.h"
#include "test.h"

static unsigned draw(void) {
    static uint64_t s;
    if (!s)
        s = sample_seed() | 1;
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (unsigned)(s >> 32);
}

static bool same(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

TEST(lengths) {
    static const struct {
        const char *s;
        size_t n;
    } cases[] = {{"", 0},      {"x", 0},       {"+", 0},   {".", 0},     {"-.", 0},   {"e5", 0},
                 {"1", 1},     {"12x", 2},     {"-1", 2},  {"+1.", 3},   {".5", 2},   {"1.5.2", 3},
                 {"1e5", 3},   {"1e", 1},      {"1e+", 1}, {"1E-07", 5}, {"1.e3", 4}, {"0x10", 1},
                 {"1 000", 1}, {"1,5", 1},     {"inf", 0}, {"nan", 0},   {"--1", 0},  {"1e5.5", 3},
                 {".e5", 0},   {"00012.50", 8}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t n = ggl_number_length(cases[k].s, strlen(cases[k].s));
        CHECK_MSG(n == cases[k].n, "'%s': %zu, not %zu", cases[k].s, n, cases[k].n);
    }
    CHECK(ggl_number_length("123", 2) == 2);
}

TEST(values_are_those_of_strtod) {
    char s[64];
    for (int k = 0; k < 20000; k++) {
        const int whole = (int)(draw() % 20), fraction = (int)(draw() % 20);
        int n = 0;
        if (draw() % 3 == 0)
            s[n++] = draw() % 2 ? '-' : '+';
        for (int i = 0; i < whole; i++)
            s[n++] = (char)('0' + draw() % 10);
        if (fraction > 0 || whole == 0)
            s[n++] = '.';
        for (int i = 0; i < fraction + (whole == 0); i++)
            s[n++] = (char)('0' + draw() % 10);
        if (draw() % 2)
            n += snprintf(s + n, sizeof s - (size_t)n, "e%d", (int)(draw() % 700) - 350);
        s[n] = 0;
        CHECK_MSG(ggl_number_length(s, (size_t)n) == (size_t)n, "%s", s);
        CHECK_MSG(same(ggl_number_value(s, (size_t)n), strtod(s, NULL)), "%s: %a, not %a", s,
                  ggl_number_value(s, (size_t)n), strtod(s, NULL));
    }
}

/* 1 + 2^-53 lies between two doubles; a digit far behind decides. */
TEST(many_digits) {
    static char s[4000];
    const char *tie = "1.00000000000000011102230246251565404236316680908203125";
    const size_t n = strlen(tie);
    CHECK(ggl_number_value(tie, n) == 1);
    memset(s, '0', sizeof s);
    memcpy(s, tie, n);
    CHECK(ggl_number_value(s, sizeof s) == 1);
    s[sizeof s - 1] = '1';
    CHECK(ggl_number_value(s, sizeof s) == 1 + 0x1p-52);
    memset(s, '0', sizeof s); /* leading zeros are not significant */
    memcpy(s + sizeof s - 3, "125", 3);
    CHECK(ggl_number_value(s, sizeof s) == 125);
    s[0] = '.';
    CHECK(ggl_number_value(s, sizeof s) == 0);
    s[0] = '1';
    CHECK(isinf(ggl_number_value(s, sizeof s)));
    memcpy(s + sizeof s - 6, "e-3999", 6);
    CHECK(ggl_number_value(s, sizeof s) == strtod("1e-6", NULL));
}

TEST(extremes) {
    CHECK(ggl_number_value("1e999999999999999999999", 23) == INFINITY);
    CHECK(ggl_number_value("-1e400", 6) == -INFINITY);
    CHECK(same(ggl_number_value("-1e-999999999999", 16), -0.0));
    CHECK(same(ggl_number_value("-0", 2), -0.0));
    CHECK(ggl_number_value("4.9e-324", 8) == 0x1p-1074);
    CHECK(ggl_number_value("1.7976931348623157e308", 22) == 0x1.fffffffffffffp+1023);
}

TEST(fewest_digits) {
    char text[GGL_NUMBER_TEXT];
    CHECK(strcmp(ggl_number_shortest(text, (double)0.1f, true), "0.1") == 0);
    CHECK(strcmp(ggl_number_shortest(text, (double)0.1f, false), "0.10000000149011612") == 0);
    CHECK(strcmp(ggl_number_shortest(text, 0.1, false), "0.1") == 0);
    CHECK(strcmp(ggl_number_shortest(text, -1e-5, true), "-1e-05") == 0);
    CHECK(strcmp(ggl_number_shortest(text, INFINITY, true), "inf") == 0);
    for (uint64_t k = 0; k < 10000; k++) {
        const uint32_t bits = (uint32_t)(k * 0x9e3779b9u) & 0x7f7fffff; /* finite */
        float x;
        memcpy(&x, &bits, sizeof x);
        CHECK(strtof(ggl_number_shortest(text, (double)x, true), NULL) == x);
    }
}

TEST(no_locale) {
    const char *names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C"};
    for (size_t k = 0; k < 4; k++)
        if (setlocale(LC_ALL, names[k]))
            CHECK(ggl_number_value("2.5", 3) == 2.5);
    setlocale(LC_ALL, "C");
}
