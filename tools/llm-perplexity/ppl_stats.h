/* Means over the positions of a text, and how far they may be off: the sums that llama.cpp's
 * perplexity tool takes, so that numbers compare. */
#ifndef TOOLS_PPL_STATS_H
#define TOOLS_PPL_STATS_H

#include <stddef.h>
#include <stdio.h>

#include "log_softmax.h"

/* A mean, and its standard error: sqrt((mean of squares - mean^2) / (n - 1)). */
typedef struct mean {
    double value, error;
} mean;

/* Zero it before the first add. */
typedef struct ppl_stats {
    size_t n, n_same_top;
    double nll, nll2;
    /* of a comparison only */
    double base, base2, nll_base, kld, kld2, p, p2, p4;
} ppl_stats;

void ppl_add(ppl_stats *s, double nll);
void ppl_add_compared(ppl_stats *s, const log_compared *c);

mean ppl_value(const ppl_stats *s); /* exp of the mean of nll */
mean ppl_base_value(const ppl_stats *s);
mean ppl_log_ratio(const ppl_stats *s); /* ln(PPL / PPL of the base): both on the same text */
mean ppl_kld(const ppl_stats *s);
mean ppl_p_diff(const ppl_stats *s);
mean ppl_p_rms(const ppl_stats *s);
mean ppl_same_top(const ppl_stats *s);
double ppl_correlation(const ppl_stats *s); /* of the nlls */

/* x[0..n) sorted, 0 <= fraction <= 1: between the two neighbours. */
double ppl_quantile(const double *x, size_t n, double fraction);
/* All that a comparison tells; kld and p_diff [s->n] are sorted here. */
void ppl_print_compared(const ppl_stats *s, double *kld, double *p_diff, FILE *to);
void ppl_print_compared_json(const ppl_stats *s, double *kld, double *p_diff, FILE *to);

#endif
