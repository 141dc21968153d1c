/* Means over the positions of a text with their standard errors: the same sums as in llama.cpp's
 * perplexity tool, so that results can be compared. */
#ifndef TOOLS_PPL_STATS_H
#define TOOLS_PPL_STATS_H

#include <stddef.h>
#include <stdio.h>

#include "log_softmax.h"

/* A mean, and its standard error: sqrt((mean of squares - mean^2) / (n - 1)). */
typedef struct mean {
    double value, error;
} mean;

/* Set it to zero before the first add. */
typedef struct ppl_stats {
    size_t n, n_same_top;
    double nll, nll2;
    /* only in a comparison */
    double base, base2, nll_base, kld, kld2, p, p2, p4;
} ppl_stats;

void ppl_add(ppl_stats *s, double nll);
void ppl_add_compared(ppl_stats *s, const log_compared *c);

mean ppl_value(const ppl_stats *s); /* exp of the mean of nll */
mean ppl_base_value(const ppl_stats *s);
mean ppl_log_ratio(const ppl_stats *s); /* ln(PPL / PPL of the base), on the same text */
mean ppl_kld(const ppl_stats *s);
mean ppl_p_diff(const ppl_stats *s);
mean ppl_p_rms(const ppl_stats *s);
mean ppl_same_top(const ppl_stats *s);
double ppl_correlation(const ppl_stats *s); /* between the nlls */

/* Returns a quantile of the sorted x[n], interpolated between neighbours; fraction: 0 .. 1. */
double ppl_quantile(const double *x, size_t n, double fraction);
/* Prints all results of a comparison. Sorts kld and p_diff [s->n]. */
void ppl_print_compared(const ppl_stats *s, double *kld, double *p_diff, FILE *to);
void ppl_print_compared_json(const ppl_stats *s, double *kld, double *p_diff, FILE *to);

#endif
