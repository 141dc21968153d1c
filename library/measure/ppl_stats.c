#include "ppl_stats.h"

#include <math.h>

#include "ggl/internal/math.h"

void llm_ppl_add(ppl_stats *s, double nll) {
    s->n++;
    s->nll += nll;
    s->nll2 += nll * nll;
}

void llm_ppl_add_compared(ppl_stats *s, const log_compared *c) {
    double p2 = c->p_diff * c->p_diff;
    llm_ppl_add(s, c->nll);
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

mean llm_ppl_value(const ppl_stats *s) {
    return exp_of(mean_of(s->nll, s->nll2, s->n));
}

mean llm_ppl_base_value(const ppl_stats *s) {
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

mean llm_ppl_log_ratio(const ppl_stats *s) {
    mean a = mean_of(s->nll, s->nll2, s->n), b = mean_of(s->base, s->base2, s->n);
    return (mean){a.value - b.value, error_of_difference(a.error, b.error, covariance(s))};
}

double llm_ppl_correlation(const ppl_stats *s) {
    double both = mean_of(s->nll, s->nll2, s->n).error * mean_of(s->base, s->base2, s->n).error;
    return both > 0 ? covariance(s) / both : 0;
}

mean llm_ppl_kld(const ppl_stats *s) {
    return mean_of(s->kld, s->kld2, s->n);
}

mean llm_ppl_p_diff(const ppl_stats *s) {
    return mean_of(s->p, s->p2, s->n);
}

mean llm_ppl_p_rms(const ppl_stats *s) {
    mean square = mean_of(s->p2, s->p4, s->n);
    double rms = sqrt(square.value);
    return (mean){rms, rms > 0 ? 0.5 / rms * square.error : 0};
}

mean llm_ppl_same_top(const ppl_stats *s) {
    double p = s->n ? (double)s->n_same_top / (double)s->n : 0;
    return (mean){p, s->n > 1 ? sqrt(p * (1 - p) / (double)(s->n - 1)) : 0};
}

mean llm_ppl_ratio(const ppl_stats *s) {
    return exp_of(llm_ppl_log_ratio(s));
}

mean llm_ppl_difference(const ppl_stats *s) {
    const mean q = llm_ppl_value(s), base = llm_ppl_base_value(s);
    return (mean){q.value - base.value,
                  error_of_difference(q.error, base.error, q.value * base.value * covariance(s))};
}

double llm_ppl_quantile(const double *x, size_t n, double fraction) {
    double at = fraction * (double)(n - 1);
    size_t i = (size_t)at;
    if (i + 1 >= n)
        return x[n - 1];
    return (1 - (at - (double)i)) * x[i] + (at - (double)i) * x[i + 1];
}
