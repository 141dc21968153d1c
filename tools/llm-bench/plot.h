/* Describes speeds of backends and splits side by side: a panel for each test of each model, a bar
 * with quartiles for each row. */
#ifndef TOOLS_BENCH_PLOT_H
#define TOOLS_BENCH_PLOT_H

#include "common/drawing.h"
#include "row.h"

void bench_plot(drawing *d, bench_row *const *row, size_t n);

#endif
