/* Statistics against values that are known: by counting, from tables. */
#include <math.h>

#include "llm-bench/stats.h"
#include "test.h"

static bool near(double a, double b, double tolerance) {
    return CHECK_MSG(fabs(a - b) <= tolerance, "%.12g, expected %.12g", a, b);
}

TEST(summary) {
    bench_summary s = bench_summarize((double[]){4, 1, 3, 2}, 4);
    near(s.mean, 2.5, 0);
    near(s.stddev, 1.2909944487358056, 1e-15);
    near(s.median, 2.5, 0);
    near(s.q1, 1.75, 0);
    near(s.q3, 3.25, 0);
    CHECK(s.min == 1 && s.max == 4);
    s = bench_summarize((double[]){7}, 1);
    CHECK(s.mean == 7 && s.stddev == 0 && s.median == 7 && s.q1 == 7 && s.q3 == 7);
}

/* One of the 252 orders of 5 and 5 has U = 0: p = 2 / 252. */
TEST(mann_whitney) {
    double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9, 10};
    near(bench_mann_whitney_p(low, 5, high, 5), 2.0 / 252, 1e-15);
    near(bench_mann_whitney_p(high, 5, low, 5), 2.0 / 252, 1e-15);
    near(bench_mann_whitney_p((double[]){1, 2, 4}, 3, (double[]){3, 5, 6}, 3), 4.0 / 20, 1e-15);
    near(bench_mann_whitney_p((double[]){1, 4}, 2, (double[]){2, 3}, 2), 1, 0);
    near(bench_mann_whitney_p((double[]){2, 2, 2}, 3, (double[]){2, 2, 2}, 3), 1, 0);
    /* of 8 and 9, nine pairs the other way: tables have 11 for p < 0.02, 7 for 0.005 */
    double p = bench_mann_whitney_p((double[]){1, 2, 3, 4, 5, 6, 7, 17}, 8,
                                    (double[]){8, 9, 10, 11, 12, 13, 14, 15, 16}, 9);
    CHECK(p > 0.005 && p < 0.02);
}

/* Large samples: the normal distribution is close to the exact one. */
TEST(mann_whitney_normal) {
    double a[25], b[25];
    for (int i = 0; i < 25; i++) {
        a[i] = i;
        b[i] = i + 6.5;
    }
    double u = 0;
    for (int i = 0; i < 25; i++)
        for (int k = 0; k < 25; k++)
            u += a[i] > b[k];
    double z = (312.5 - u - 0.5) / sqrt(625.0 * 51 / 12);
    near(bench_mann_whitney_p(a, 25, b, 25), erfc(z / sqrt(2)), 1e-12);
}

/* Student's distribution with 1 degree is Cauchy's; others from tables of quantiles. */
TEST(student) {
    near(bench_student_p(1, 1), 0.5, 1e-12);
    near(bench_student_p(12.706204736, 1), 0.05, 1e-9);
    near(bench_student_p(2.776445105, 4), 0.05, 1e-9);
    near(bench_student_p(-2.776445105, 4), 0.05, 1e-9);
    near(bench_student_p(4.604094871, 4), 0.01, 1e-9);
    near(bench_student_p(1.983971519, 100), 0.05, 1e-9);
    near(bench_student_p(0, 7), 1, 0);
}

TEST(unpaired) {
    double a[] = {100, 101, 99, 100.5, 99.5}, b[] = {110, 111, 109, 110.5, 109.5};
    bench_change c = bench_compare_unpaired(a, 5, b, 5, 0.95);
    near(c.ratio, 1.1, 0.003);
    CHECK(c.low > 1.08 && c.low < c.ratio && c.high > c.ratio && c.high < 1.12);
    near(c.p, 2.0 / 252, 1e-15);
    c = bench_compare_unpaired(a, 5, a, 5, 0.95);
    near(c.ratio, 1, 1e-12);
    CHECK(c.p > 0.9 && c.low < 1 && c.high > 1);
    c = bench_compare_unpaired((double[]){2}, 1, (double[]){3}, 1, 0.95); /* says nothing */
    near(c.p, 1, 0);
    near(c.ratio, 1.5, 0);
}

/* ln ratios 0.1, 0.2, 0.3: mean 0.2, error 0.1 / sqrt(3), t = 2 sqrt(3) with 2 degrees, for which
 * p = 1 - t / sqrt(2 + t^2). */
TEST(paired) {
    double a[] = {10, 20, 40}, b[3];
    for (int i = 0; i < 3; i++)
        b[i] = a[i] * exp(0.1 * (i + 1));
    bench_change c = bench_compare_paired(a, b, 3, 0.95);
    double t = 2 * sqrt(3);
    near(c.ratio, exp(0.2), 1e-12);
    near(c.p, 1 - t / sqrt(2 + t * t), 1e-12);
    near(log(c.high) - 0.2, 4.302652729911275 * 0.1 / sqrt(3), 1e-9);
    near(log(c.low) - 0.2, -4.302652729911275 * 0.1 / sqrt(3), 1e-9);
    c = bench_compare_paired(a, a, 3, 0.95);
    CHECK(c.ratio == 1 && c.p == 1);
}
