/* Means over the positions of a text with their standard errors: the same sums as in llama.cpp's
 * perplexity tool, so that results can be compared. */
#ifndef LIBRARY_PPL_STATS_H
#define LIBRARY_PPL_STATS_H

#include <stddef.h>

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

void llm_ppl_add(ppl_stats *s, double nll);
void llm_ppl_add_compared(ppl_stats *s, const log_compared *c);

mean llm_ppl_value(const ppl_stats *s); /* exp of the mean of nll */
mean llm_ppl_base_value(const ppl_stats *s);
mean llm_ppl_log_ratio(const ppl_stats *s);  /* ln(PPL / PPL of the base), on the same text */
mean llm_ppl_ratio(const ppl_stats *s);      /* PPL / PPL of the base */
mean llm_ppl_difference(const ppl_stats *s); /* PPL - PPL of the base */
mean llm_ppl_kld(const ppl_stats *s);
mean llm_ppl_p_diff(const ppl_stats *s);
mean llm_ppl_p_rms(const ppl_stats *s);
mean llm_ppl_same_top(const ppl_stats *s);
double llm_ppl_correlation(const ppl_stats *s); /* between the nlls */

/* Returns a quantile of the sorted x[n], interpolated between neighbours; fraction: 0 .. 1. */
double llm_ppl_quantile(const double *x, size_t n, double fraction);
#endif
