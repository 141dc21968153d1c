/* Sketches: which columns of a weight's inputs vary together.
 *
 * For inputs x_t, made as long as each other (a first token can have inputs that are thousands of times as large, and would be all
 * that counts), the sums C = sum_t x_t x_t^T / |x_t|^2 of all products of columns would be n_col^2 numbers. A sketch is C R, for a matrix R
 * [n_col][n] of random signs, the same for all weights, and the diagonal of C: n + 1 numbers for each column, the last C[i][i]. They are sums, too, so that those
 * of several texts can be added. C is about (C R) (R^T C R)^-1 (C R)^T, which is never larger than C (Nystroem's approximation: Tropp,
 * Yurtsever, Udell and Cevher, "Fixed-rank approximation of a positive-semidefinite matrix from streaming data", 2017). */
#ifndef LIBRARY_IMATRIX_SKETCH_H
#define LIBRARY_IMATRIX_SKETCH_H

#include "imatrix.h"

/* Sets sign[n_col][n] to R: 1 or -1. n: at most GGL_MAX_DIRECTIONS. */
void llm_imatrix_signs(float *sign, int64_t n_col, int n);
/* Adds n_row rows of n_col numbers, `step` apart, to sketch[n_col][n + 1]. The rows are added one after the other. */
void llm_imatrix_sketch_rows(double *sketch, const float *sign, int n, const float *x,
                             int64_t n_col, int64_t n_row, int64_t step);
/* Sets dir[n_col][n_sketch], own[n_col] and power[n_col] as in ggl_importance, for an entry that has a sketch. */
void llm_imatrix_directions(const imatrix_entry *e, float *dir, float *own, float *power);

#endif
