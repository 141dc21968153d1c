#include "word_path.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "ggl/alloc.h"

/* From where the cheapest way to a place comes. */
enum { BOTH, ROW, COLUMN };

static int choose(double both, double row, double column) {
    return column <= both && column <= row ? COLUMN : both <= row ? BOTH : ROW;
}

/* Fills in where the ways come from. sum [n_columns]: those of the row before, then of the last one. */
static void search(const double *cost, size_t n_rows, size_t n_columns, double *sum,
                   uint8_t *from) {
    for (size_t i = 0; i < n_rows; i++) {
        double both = i == 0 ? 0 : INFINITY, column = INFINITY;
        for (size_t j = 0; j < n_columns; j++) {
            const double row = i == 0 ? INFINITY : sum[j];
            const int k = choose(both, row, column);
            column = cost[i * n_columns + j] + (k == BOTH ? both : k == ROW ? row : column);
            from[i * n_columns + j] = (uint8_t)k;
            sum[j] = column;
            both = row;
        }
    }
}

ggl_status llm_word_path(const double *cost, size_t n_rows, size_t n_columns, size_t *first,
                         ggl_error *err) {
    double *sum = ggl_calloc(n_columns, sizeof *sum);
    uint8_t *from = ggl_calloc(n_rows, n_columns);
    if (sum && from) {
        search(cost, n_rows, n_columns, sum, from);
        size_t i = n_rows - 1, j = n_columns - 1;
        for (first[i] = j; i > 0 || j > 0; first[i] = j) {
            const int k = i == 0 ? COLUMN : j == 0 ? ROW : from[i * n_columns + j];
            i -= k != COLUMN;
            j -= k != ROW;
        }
    }
    const bool ok = sum && from;
    ggl_free(sum);
    ggl_free(from);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for the times of words");
}
