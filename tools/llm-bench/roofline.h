/* Draws measured kernels against what the machine allows: multiply-adds per byte to the right,
 * multiply-adds per second upwards, both in powers of ten (Williams, Waterman, Patterson 2009). */
#ifndef TOOLS_BENCH_ROOFLINE_H
#define TOOLS_BENCH_ROOFLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "limits.h"

typedef struct bench_roof { /* an instruction set */
    char name[64];
    bench_limits limit;
} bench_roof;

typedef struct bench_point {
    char label[64]; /* "q4_0 rows" */
    int roof;       /* index of the instruction set */
    bool cached;    /* the data was in the caches, so memory is not a limit: drawn hollow */
    double intensity, gmac;
} bench_point;

void bench_roofline_draw(FILE *out, const char *title, const bench_roof *roof, int n_roofs,
                         const bench_point *point, size_t n);

#endif
