/* Compares two sets of results row by row, to find what became slower. */
#ifndef TOOLS_BENCH_COMPARE_H
#define TOOLS_BENCH_COMPARE_H

#include <stdio.h>

#include "ggl/status.h"
#include "row.h"

/* the values of a row that are compared, and those that must be equal */
typedef struct bench_result {
    char model[160], file[320], test[96], cache[32], alternation[64], backend[96];
    double n_threads, n_batch, n_ubatch;
    double ts[BENCH_MAX_SAMPLES];
    int n;
} bench_result;

typedef struct bench_results {
    bench_result *row;
    size_t n;
} bench_results;

/* Read results: from a file as `-o json` and `-o jsonl` write it, or from rows. GGL_FORMAT,
 * GGL_IO, GGL_NOMEM; the message names the file. */
GGL_NODISCARD ggl_status bench_results_read(bench_results *out, const char *path, ggl_error *err);
GGL_NODISCARD ggl_status bench_results_take(bench_results *out, bench_row *const *rows, size_t n,
                                            const char *alternation, ggl_error *err);
void bench_results_fini(bench_results *r);

/* Prints a table. Returns 0: nothing is slower; 1: something is; -1: no row is in both. Rows in
 * only one of them are listed on standard error. */
int bench_compare_print(FILE *out, const bench_results *old, const bench_results *new_,
                        double confidence, double tolerance);

#endif
