/* How much the columns of a weight differ in importance. */
#ifndef TOOLS_IMATRIX_STATS_H
#define TOOLS_IMATRIX_STATS_H

#include <stdio.h>

#include "llm/llm.h"

/* Statistics of the mean squares m[i] of all columns, over the matrices that have seen rows. */
typedef struct tensor_stats {
    const llm_imatrix_entry *e;
    int layer;            /* of "blk.N."; -1: none */
    char kind[64];        /* "ffn_down" */
    int64_t n;            /* columns; 0: no matrix has seen a row, and the numbers below are 0 */
    double sum, min, max; /* of m */
    double mean, sigma;
    double active;  /* share of columns above 10^-5 */
    double entropy; /* -sum_i p_i log2 p_i of p = m / sum, in bits */
    double high;    /* share of columns more than sigma above the mean */
    double cosine;  /* of the angle between the sums and those of the layer before; NaN: none */
} tensor_stats;

/* Returns one for each of e[n], which it refers to, by kind, and of one kind the larger sum first; for ggl_free. NULL: out of
 * memory. */
tensor_stats *stats_of(const llm_imatrix_entry *e, size_t n);
/* Returns 2^entropy / n: the share of columns that matter, if each of them mattered the same; 1 if all do.
 * 0 if n is 0. */
double stats_effective(const tensor_stats *s);
/* Prints tables of all tensors and of all layers, at most 100 columns wide. */
void stats_print(const tensor_stats *s, size_t n, FILE *out);

#endif
