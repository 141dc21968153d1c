/* Statistics of few measurements: a middle with its spread, and whether two sets differ.
 *
 *     bench_change c = bench_compare_unpaired(old_ts, 5, new_ts, 5, 0.95);
 *     if (c.p < 0.05 && c.ratio < 1) // slower
 */
#ifndef TOOLS_BENCH_STATS_H
#define TOOLS_BENCH_STATS_H

enum { BENCH_MAX_SAMPLES = 1000 };

typedef struct bench_summary {
    double mean, stddev;             /* of a sample: n - 1; 0 for one */
    double median, q1, q3, min, max; /* quartiles by linear interpolation */
} bench_summary;

/* 1 <= n <= BENCH_MAX_SAMPLES. */
bench_summary bench_summarize(const double *x, int n);

/* b over a, for positive numbers. */
typedef struct bench_change {
    double ratio, low, high; /* the estimate and its confidence interval */
    double p;                /* two-sided; of as much difference if there were none */
} bench_change;

/* Independent samples: the rank test of Mann and Whitney, exact for up to 20 of each without ties,
 * else by the normal distribution with corrections for ties and continuity. The ratio is the median
 * of all ratios of one and another (Hodges and Lehmann), its interval goes with the same test; of
 * samples too small for the confidence it spans all ratios. */
bench_change bench_compare_unpaired(const double *a, int n, const double *b, int m,
                                    double confidence);
/* a[i] and b[i] were taken one after the other: Student's test of the logarithms of the ratios; n
 * >= 2. */
bench_change bench_compare_paired(const double *a, const double *b, int n, double confidence);

/* The two-sided p-values themselves, of any numbers. */
double bench_mann_whitney_p(const double *a, int n, const double *b, int m);
double bench_student_p(double t, double degrees);

#endif
