/* Statistics of a few measurements: median and spread, and whether two sets differ.
 *
 *     bench_change c = bench_compare_unpaired(old_ts, 5, new_ts, 5, 0.95);
 *     if (c.p < 0.05 && c.ratio < 1) // slower */
#ifndef TOOLS_BENCH_STATS_H
#define TOOLS_BENCH_STATS_H

#include <stddef.h>

enum { BENCH_MAX_SAMPLES = 1000 };

typedef struct bench_summary {
    double mean, stddev;             /* sample deviation, by n - 1; 0 for one */
    double median, q1, q3, min, max; /* quartiles by linear interpolation */
} bench_summary;

/* Returns the q-th part of n sorted numbers (0.5: the median), by linear interpolation; n > 0. */
double bench_quantile(const double *sorted, size_t n, double q);
/* n: 1 .. BENCH_MAX_SAMPLES. */
bench_summary bench_summarize(const double *x, int n);

/* The ratio of b to a, for positive numbers. */
typedef struct bench_change {
    double ratio, low, high; /* the estimate and its confidence interval */
    double p;                /* two-sided probability of such a difference if the true one is 0 */
} bench_change;

/* For independent samples: the rank test of Mann and Whitney, exact for up to 20 of each without
 * ties, else by the normal distribution with corrections for ties and continuity. The ratio is
 * the median of all ratios of an element of b to one of a (Hodges and Lehmann); its interval
 * comes from the same test, and spans all ratios if the samples are too small for the
 * confidence. */
bench_change bench_compare_unpaired(const double *a, int n, const double *b, int m,
                                    double confidence);
/* For a[i] and b[i] measured in turn: Student's test on the logarithms of the ratios; n >= 2. */
bench_change bench_compare_paired(const double *a, const double *b, int n, double confidence);

/* The two-sided p-values alone, for any numbers. */
double bench_mann_whitney_p(const double *a, int n, const double *b, int m);
double bench_student_p(double t, double degrees);

#endif
