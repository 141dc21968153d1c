/* The best approximation of a matrix by one of low rank: a truncated singular value decomposition
 * D ~ U S V^T, of a matrix that is given row by row and never held as a whole.
 *
 * Randomized range finder with power iterations (Halko, Martinsson, Tropp 2011, algorithms 4.4 and
 * 5.1): Y = D W for a random W with k columns, k a little more than the rank; Y = D (D^T Y), repeated,
 * with an orthonormal basis Q of the columns each time; then the exact decomposition of the small
 * matrix Q^T D. If k reaches the smaller side of D, the result is exact except for rounding. */
#ifndef TOOLS_LORA_LOW_RANK_H
#define TOOLS_LORA_LOW_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct low_rank_source {
    int64_t n_rows, n_columns;
    /* Sets out[n][n_columns] to rows first .. first + n - 1. False: stop. */
    bool (*rows)(void *ctx, int64_t first, int64_t n, float *out);
    void *ctx;
    int n_threads; /* the result does not depend on it */
} low_rank_source;

typedef struct low_rank {
    int64_t rank;  /* at most what was asked for, and at most the smaller side */
    double *sigma; /* [rank], the largest first */
    double *u;     /* [rank][n_rows]: orthonormal */
    double *v;     /* [rank][n_columns]: orthonormal */
    double norm2;  /* the sum of the squares of D's elements */
    double kept;   /* the part of it that the first `rank` values have, 0 to 1 */
} low_rank;

/* Decomposes the source with at most max_rank values. energy: the least rank with this part of norm2
 * is chosen, if max_rank suffices; 1 or more: max_rank. Returns false if out of memory or stopped;
 * *out is then empty. */
bool low_rank_new(low_rank *out, const low_rank_source *source, int64_t max_rank, double energy);
void low_rank_fini(low_rank *x);

#endif
