#include "ppl_print.h"

#include <stdlib.h>

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
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
    mean q = llm_ppl_value(s), base = llm_ppl_base_value(s), ratio = llm_ppl_log_ratio(s), m;
    mean by = llm_ppl_ratio(s), difference = llm_ppl_difference(s);
    qsort(kld, s->n, sizeof *kld, order);
    qsort(p_diff, s->n, sizeof *p_diff, order);
    fprintf(to, "====== Perplexity statistics ======\n");
    fprintf(to, "Mean PPL(Q)                   : %10.6f ± %10.6f\n", q.value, q.error);
    fprintf(to, "Mean PPL(base)                : %10.6f ± %10.6f\n", base.value, base.error);
    fprintf(to, "Cor(ln(PPL(Q)), ln(PPL(base))): %6.2f%%\n", 100 * llm_ppl_correlation(s));
    fprintf(to, "Mean ln(PPL(Q)/PPL(base))     : %10.6f ± %10.6f\n", ratio.value, ratio.error);
    fprintf(to, "Mean PPL(Q)/PPL(base)         : %10.6f ± %10.6f\n", by.value, by.error);
    fprintf(to, "Mean PPL(Q)-PPL(base)         : %10.6f ± %10.6f\n", difference.value,
            difference.error);
    m = llm_ppl_kld(s);
    fprintf(to, "\n====== KL divergence statistics ======\n");
    fprintf(to, "Mean    KLD: %10.6f ± %10.6f\n", m.value, m.error);
    for (int k = 0; k < N_QUANTILES; k++)
        if (quantiles[k].fraction != 0.75 && quantiles[k].fraction != 0.25)
            fprintf(to, "%s KLD: %10.6f\n", quantiles[k].text,
                    llm_ppl_quantile(kld, s->n, quantiles[k].fraction));
    m = llm_ppl_p_diff(s);
    fprintf(to, "\n====== Token probability statistics ======\n");
    fprintf(to, "Mean    Δp: %6.3f ± %5.3f %%\n", 100 * m.value, 100 * m.error);
    for (int k = 0; k < N_QUANTILES; k++)
        fprintf(to, "%s Δp: %6.3f%%\n", quantiles[k].text,
                100 * llm_ppl_quantile(p_diff, s->n, quantiles[k].fraction));
    m = llm_ppl_p_rms(s);
    fprintf(to, "RMS Δp    : %6.3f ± %5.3f %%\n", 100 * m.value, 100 * m.error);
    m = llm_ppl_same_top(s);
    fprintf(to, "Same top p: %6.3f ± %5.3f %%\n", 100 * m.value, 100 * m.error);
}

static void print_quantiles(const char *key, const mean *m, const double *x, size_t n, FILE *to) {
    fprintf(to, ",\n  \"%s\": {\"mean\": %.9g, \"mean_error\": %.9g", key, m->value, m->error);
    for (int k = 0; k < N_QUANTILES; k++)
        fprintf(to, ", \"%s\": %.9g", quantiles[k].key,
                llm_ppl_quantile(x, n, quantiles[k].fraction));
    fprintf(to, "}");
}

void ppl_print_compared_json(const ppl_stats *s, double *kld, double *p_diff, FILE *to) {
    mean base = llm_ppl_base_value(s), ratio = llm_ppl_log_ratio(s), divergence = llm_ppl_kld(s),
         p = llm_ppl_p_diff(s);
    mean rms = llm_ppl_p_rms(s), top = llm_ppl_same_top(s);
    qsort(kld, s->n, sizeof *kld, order);
    qsort(p_diff, s->n, sizeof *p_diff, order);
    fprintf(to, ",\n  \"ppl_base\": %.9g, \"ppl_base_error\": %.9g", base.value, base.error);
    fprintf(to, ",\n  \"ln_ppl_ratio\": %.9g, \"ln_ppl_ratio_error\": %.9g", ratio.value,
            ratio.error);
    fprintf(to, ",\n  \"correlation\": %.9g", llm_ppl_correlation(s));
    print_quantiles("kld", &divergence, kld, s->n, to);
    print_quantiles("delta_p", &p, p_diff, s->n, to);
    fprintf(to, ",\n  \"rms_delta_p\": %.9g, \"rms_delta_p_error\": %.9g", rms.value, rms.error);
    fprintf(to, ",\n  \"same_top_p\": %.9g, \"same_top_p_error\": %.9g", top.value, top.error);
}
