#include "common/ppl_stats.h"

#include <math.h>
#include <stdlib.h>

#include "ggl/internal/math.h"

void ppl_add(ppl_stats *s, double nll) {
    s->n++;
    s->nll += nll;
    s->nll2 += nll * nll;
}

void ppl_add_compared(ppl_stats *s, const log_compared *c) {
    double p2 = c->p_diff * c->p_diff;
    ppl_add(s, c->nll);
    s->base += c->nll_base;
    s->base2 += c->nll_base * c->nll_base;
    s->nll_base += c->nll * c->nll_base;
    s->kld += c->kld;
    s->kld2 += c->kld * c->kld;
    s->p += c->p_diff;
    s->p2 += p2;
    s->p4 += p2 * p2;
    s->n_same_top += c->same_top;
}

static mean mean_of(double sum, double sum2, size_t n) {
    if (n == 0)
        return (mean){0, 0};
    double value = sum / (double)n, spread = sum2 / (double)n - value * value;
    return (mean){value, spread > 0 && n > 1 ? sqrt(spread / (double)(n - 1)) : 0};
}

static mean exp_of(mean m) {
    double e = ggl_exp(m.value);
    return (mean){e, e * m.error};
}

mean ppl_value(const ppl_stats *s) {
    return exp_of(mean_of(s->nll, s->nll2, s->n));
}

mean ppl_base_value(const ppl_stats *s) {
    return exp_of(mean_of(s->base, s->base2, s->n));
}

/* Returns the covariance of the two means, not of the values: hence the division by n - 1. */
static double covariance(const ppl_stats *s) {
    double n = (double)s->n;
    return s->n < 10 ? 0 : (s->nll_base / n - s->nll / n * (s->base / n)) / (n - 1);
}

/* Returns sqrt(a^2 + b^2 - 2 cov), or 0 if rounding makes the sum negative. */
static double error_of_difference(double a, double b, double cov) {
    double e2 = a * a + b * b - 2 * cov;
    return e2 > 0 ? sqrt(e2) : 0;
}

mean ppl_log_ratio(const ppl_stats *s) {
    mean a = mean_of(s->nll, s->nll2, s->n), b = mean_of(s->base, s->base2, s->n);
    return (mean){a.value - b.value, error_of_difference(a.error, b.error, covariance(s))};
}

double ppl_correlation(const ppl_stats *s) {
    double both = mean_of(s->nll, s->nll2, s->n).error * mean_of(s->base, s->base2, s->n).error;
    return both > 0 ? covariance(s) / both : 0;
}

mean ppl_kld(const ppl_stats *s) {
    return mean_of(s->kld, s->kld2, s->n);
}

mean ppl_p_diff(const ppl_stats *s) {
    return mean_of(s->p, s->p2, s->n);
}

mean ppl_p_rms(const ppl_stats *s) {
    mean square = mean_of(s->p2, s->p4, s->n);
    double rms = sqrt(square.value);
    return (mean){rms, rms > 0 ? 0.5 / rms * square.error : 0};
}

mean ppl_same_top(const ppl_stats *s) {
    double p = s->n ? (double)s->n_same_top / (double)s->n : 0;
    return (mean){p, s->n > 1 ? sqrt(p * (1 - p) / (double)(s->n - 1)) : 0};
}

/* --- what is printed -------------------------------------------------------------------------- */

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double ppl_quantile(const double *x, size_t n, double fraction) {
    double at = fraction * (double)(n - 1);
    size_t i = (size_t)at;
    if (i + 1 >= n)
        return x[n - 1];
    return (1 - (at - (double)i)) * x[i] + (at - (double)i) * x[i + 1];
}

typedef struct named_quantile {
    double fraction;
    const char *text, *key;
} named_quantile;

static const named_quantile quantiles[] = {
    {1, "Maximum", "max"},      {0.999, "99.9%  ", "q99.9"}, {0.99, "99.0%  ", "q99"},
    {0.95, "95.0%  ", "q95"},   {0.9, "90.0%  ", "q90"},     {0.75, "75.0%  ", "q75"},
    {0.5, "Median ", "median"}, {0.25, "25.0%  ", "q25"},    {0.1, "10.0%  ", "q10"},
    {0.05, " 5.0%  ", "q5"},    {0.01, " 1.0%  ", "q1"},     {0.001, " 0.1%  ", "q0.1"},
    {0, "Minimum", "min"}};
enum { N_QUANTILES = sizeof quantiles / sizeof *quantiles };

void ppl_print_compared(const ppl_stats *s, double *kld, double *p_diff, FILE *to) {
    mean q = ppl_value(s), base = ppl_base_value(s), ratio = ppl_log_ratio(s), m;
    mean by = exp_of(ratio);
    qsort(kld, s->n, sizeof *kld, order);
    qsort(p_diff, s->n, sizeof *p_diff, order);
    fprintf(to, "====== Perplexity statistics ======\n");
    fprintf(to, "Mean PPL(Q)                   : %10.6f ± %10.6f\n", q.value, q.error);
    fprintf(to, "Mean PPL(base)                : %10.6f ± %10.6f\n", base.value, base.error);
    fprintf(to, "Cor(ln(PPL(Q)), ln(PPL(base))): %6.2f%%\n", 100 * ppl_correlation(s));
    fprintf(to, "Mean ln(PPL(Q)/PPL(base))     : %10.6f ± %10.6f\n", ratio.value, ratio.error);
    fprintf(to, "Mean PPL(Q)/PPL(base)         : %10.6f ± %10.6f\n", by.value, by.error);
    fprintf(to, "Mean PPL(Q)-PPL(base)         : %10.6f ± %10.6f\n", q.value - base.value,
            error_of_difference(q.error, base.error, q.value * base.value * covariance(s)));
    m = ppl_kld(s);
    fprintf(to, "\n====== KL divergence statistics ======\n");
    fprintf(to, "Mean    KLD: %10.6f ± %10.6f\n", m.value, m.error);
    for (int k = 0; k < N_QUANTILES; k++)
        if (quantiles[k].fraction != 0.75 && quantiles[k].fraction != 0.25)
            fprintf(to, "%s KLD: %10.6f\n", quantiles[k].text,
                    ppl_quantile(kld, s->n, quantiles[k].fraction));
    m = ppl_p_diff(s);
    fprintf(to, "\n====== Token probability statistics ======\n");
    fprintf(to, "Mean    Δp: %6.3f ± %5.3f %%\n", 100 * m.value, 100 * m.error);
    for (int k = 0; k < N_QUANTILES; k++)
        fprintf(to, "%s Δp: %6.3f%%\n", quantiles[k].text,
                100 * ppl_quantile(p_diff, s->n, quantiles[k].fraction));
    m = ppl_p_rms(s);
    fprintf(to, "RMS Δp    : %6.3f ± %5.3f %%\n", 100 * m.value, 100 * m.error);
    m = ppl_same_top(s);
    fprintf(to, "Same top p: %6.3f ± %5.3f %%\n", 100 * m.value, 100 * m.error);
}

static void print_quantiles(const char *key, const mean *m, const double *x, size_t n, FILE *to) {
    fprintf(to, ",\n  \"%s\": {\"mean\": %.9g, \"mean_error\": %.9g", key, m->value, m->error);
    for (int k = 0; k < N_QUANTILES; k++)
        fprintf(to, ", \"%s\": %.9g", quantiles[k].key, ppl_quantile(x, n, quantiles[k].fraction));
    fprintf(to, "}");
}

void ppl_print_compared_json(const ppl_stats *s, double *kld, double *p_diff, FILE *to) {
    mean base = ppl_base_value(s), ratio = ppl_log_ratio(s), divergence = ppl_kld(s),
         p = ppl_p_diff(s);
    mean rms = ppl_p_rms(s), top = ppl_same_top(s);
    qsort(kld, s->n, sizeof *kld, order);
    qsort(p_diff, s->n, sizeof *p_diff, order);
    fprintf(to, ",\n  \"ppl_base\": %.9g, \"ppl_base_error\": %.9g", base.value, base.error);
    fprintf(to, ",\n  \"ln_ppl_ratio\": %.9g, \"ln_ppl_ratio_error\": %.9g", ratio.value,
            ratio.error);
    fprintf(to, ",\n  \"correlation\": %.9g", ppl_correlation(s));
    print_quantiles("kld", &divergence, kld, s->n, to);
    print_quantiles("delta_p", &p, p_diff, s->n, to);
    fprintf(to, ",\n  \"rms_delta_p\": %.9g, \"rms_delta_p_error\": %.9g", rms.value, rms.error);
    fprintf(to, ",\n  \"same_top_p\": %.9g, \"same_top_p_error\": %.9g", top.value, top.error);
}
