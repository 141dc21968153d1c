/* Describes measured kernels against what the machine allows: multiply-adds per byte to the right,
 * multiply-adds per second upwards, both in powers of ten (Williams, Waterman, Patterson 2009). A
 * panel for each instruction set.
 *
 * A point is below a roof: the peak of its kind of arithmetic and, unless its data was in the caches,
 * the memory's rate times its multiply-adds per byte. Limits are measured like kernels, at another
 * moment; a kernel that passes one shows that it was measured too low, so that the roof is drawn at
 * the fastest kernel, and the picture says by how much it was raised. */
#ifndef TOOLS_BENCH_ROOFLINE_H
#define TOOLS_BENCH_ROOFLINE_H

#include <stdbool.h>

#include "common/drawing.h"
#include "limits.h"

typedef struct bench_roof { /* an instruction set */
    char name[64];
    bench_limits limit;
} bench_roof;

typedef struct bench_point {
    char label[64];       /* "q4_0 rows"; the fastest of each series is labelled */
    int roof;             /* index of the instruction set */
    int series;           /* index of its name */
    bench_peak_kind peak; /* of its arithmetic */
    bool cached;          /* the data fits in the caches, so memory is no limit: drawn hollow */
    double intensity, gmac;
} bench_point;

typedef struct bench_roofline {
    const char *title;
    const bench_roof *roof;
    int n_roofs;
    const char *const *series; /* names */
    int n_series;
    const bench_point *point; /* those with numbers that are not positive and finite are left out */
    size_t n_points;
} bench_roofline;

void bench_roofline_plot(drawing *d, const bench_roofline *r);

#endif
