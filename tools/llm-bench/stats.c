#include "stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { EXACT = 20 }; /* the exact distribution is computed for up to this number of each */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(const double *sorted, size_t n, double q) {
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

bench_summary bench_summarize(const double *x, int n) {
    double sorted[BENCH_MAX_SAMPLES], sum = 0, squares = 0;
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int i = 0; i < n; i++)
        sum += x[i];
    double mean = sum / n;
    for (int i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    return (bench_summary){.mean = mean,
                           .stddev = n > 1 ? sqrt(squares / (n - 1)) : 0,
                           .median = bench_quantile(sorted, (size_t)n, 0.5),
                           .q1 = bench_quantile(sorted, (size_t)n, 0.25),
                           .q3 = bench_quantile(sorted, (size_t)n, 0.75),
                           .min = sorted[0],
                           .max = sorted[n - 1]};
}

/* --- Mann and Whitney ------------------------------------------------------------------------- */

/* count[u]: in how many orders of n and m values u pairs are in the wrong order. These are the
 * coefficients of prod_i (1 - q^(m+i)) / (1 - q^i), i = 1 .. n. Exact: below 2^53 for 20 of
 * each. */
static void count_orders(int n, int m, double count[EXACT * EXACT + 1]) {
    int top = n * m;
    memset(count, 0, (size_t)(top + 1) * sizeof *count);
    count[0] = 1;
    for (int i = 1; i <= n; i++) {
        for (int u = top; u >= m + i; u--)
            count[u] -= count[u - m - i];
        for (int u = i; u <= top; u++)
            count[u] += count[u - i];
    }
}

/* Returns P(U <= u). */
static double exact_tail(int n, int m, int u) {
    double count[EXACT * EXACT + 1], below = 0, all = 0;
    count_orders(n, m, count);
    for (int i = 0; i <= n * m; i++) {
        all += count[i];
        below += i <= u ? count[i] : 0;
    }
    return below / all;
}

/* Returns the sum of t^3 - t over groups of t equal values. */
static double tie_sum(const double *a, int n, const double *b, int m) {
    double all[2 * BENCH_MAX_SAMPLES], sum = 0;
    memcpy(all, a, (size_t)n * sizeof *a);
    memcpy(all + n, b, (size_t)m * sizeof *b);
    qsort(all, (size_t)(n + m), sizeof *all, by_value);
    for (int i = 0, k; i < n + m; i = k) {
        for (k = i; k < n + m && all[k] == all[i]; k++)
            ;
        double t = k - i;
        sum += t * t * t - t;
    }
    return sum;
}

double bench_mann_whitney_p(const double *a, int n, const double *b, int m) {
    double u = 0, ties = tie_sum(a, n, b, m);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++)
            u += a[i] < b[k] ? 1 : a[i] == b[k] ? 0.5 : 0;
    double nm = (double)n * m, total = n + m;
    if (ties == 0 && n <= EXACT && m <= EXACT) {
        double p = 2 * exact_tail(n, m, (int)fmin(u, nm - u));
        return p < 1 ? p : 1;
    }
    double variance = nm / 12 * (total + 1 - ties / (total * (total - 1)));
    double away = fabs(u - nm / 2) - 0.5;
    return variance <= 0 || away <= 0 ? 1 : erfc(away / sqrt(variance) / sqrt(2));
}

/* Returns how many of the smallest and of the largest differences are outside of the interval;
 * -1: the samples are too small for the confidence. */
static int left_out(int n, int m, double alpha) {
    int k = -1;
    if (n <= EXACT && m <= EXACT) {
        while (k + 1 < n * m / 2 && exact_tail(n, m, k + 1) <= alpha / 2)
            k++;
        return k;
    }
    double nm = (double)n * m, sd = sqrt(nm * (n + m + 1) / 12), low = 0, high = 10;
    for (int i = 0; i < 60; i++) { /* find z with P(|Z| > z) = alpha */
        double z = (low + high) / 2;
        *(erfc(z / sqrt(2)) > alpha ? &low : &high) = z;
    }
    return (int)floor(nm / 2 - high * sd) - 1;
}

bench_change bench_compare_unpaired(const double *a, int n, const double *b, int m,
                                    double confidence) {
    int all = n * m, k = left_out(n, m, 1 - confidence);
    double *ratio = malloc((size_t)all * sizeof *ratio);
    bench_change c = {.ratio = NAN, .low = NAN, .high = NAN, .p = bench_mann_whitney_p(a, n, b, m)};
    if (!ratio)
        return c;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++)
            ratio[i * m + j] = b[j] / a[i];
    qsort(ratio, (size_t)all, sizeof *ratio, by_value);
    k = k < 0 ? 0 : k;
    c.ratio = all % 2 ? ratio[all / 2] : sqrt(ratio[all / 2 - 1] * ratio[all / 2]);
    c.low = ratio[k];
    c.high = ratio[all - 1 - k];
    free(ratio);
    return c;
}

/* --- Student ---------------------------------------------------------------------------------- */

/* Returns the continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8),
 * computed by Lentz's method. */
static double beta_fraction(double x, double a, double b) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int i = 1; i <= 300; i++) {
        double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
        double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));
        double term[2] = {even, odd}, step = 1;
        for (int k = 0; k < 2; k++) {
            d = 1 + term[k] * d;
            c = 1 + term[k] / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            step = c * d;
            h *= step;
        }
        if (fabs(step - 1) < 1e-14)
            break;
    }
    return h;
}

static double incomplete_beta(double x, double a, double b) {
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
                                     : 1 - front * beta_fraction(1 - x, b, a) / b;
}

double bench_student_p(double t, double degrees) {
    return incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5);
}

bench_change bench_compare_paired(const double *a, const double *b, int n, double confidence) {
    double sum = 0, squares = 0;
    for (int i = 0; i < n; i++)
        sum += log(b[i] / a[i]);
    double mean = sum / n, low = 0, high = 1e6;
    for (int i = 0; i < n; i++)
        squares += pow(log(b[i] / a[i]) - mean, 2);
    double error = sqrt(squares / (n - 1) / n);
    for (int i = 0; i < 100; i++) {
        double t = (low + high) / 2;
        *(bench_student_p(t, n - 1) > 1 - confidence ? &low : &high) = t;
    }
    return (bench_change){.ratio = exp(mean),
                          .low = exp(mean - high * error),
                          .high = exp(mean + high * error),
                          .p = error > 0     ? bench_student_p(mean / error, n - 1)
                               : mean == 0.0 ? 1
                                             : 0};
}
