/* Dynamic time warping (Sakoe and Chiba, 1978): the cheapest way through a table, which says when each token was spoken. */
#ifndef LIBRARY_WORD_PATH_H
#define LIBRARY_WORD_PATH_H

#include <stddef.h>

#include "ggl/status.h"

/* Finds the way from cost[0][0] to cost[n_rows - 1][n_columns - 1] whose sum is least, by steps to the next row, the next column or both, and
 * sets first[n_rows] to the column in which it enters each row. Of ways that cost the same, the last steps are to the
 * next column, or else to both. Both numbers are at least 1. GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_word_path(const double *cost, size_t n_rows, size_t n_columns,
                                       size_t *first, ggl_error *err);

#endif
