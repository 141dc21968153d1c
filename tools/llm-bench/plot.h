/* Draws speeds of backends and splits side by side: a panel for each test of each model, a bar
 * with quartiles for each row. */
#ifndef TOOLS_BENCH_PLOT_H
#define TOOLS_BENCH_PLOT_H

#include <stdio.h>

#include "row.h"

void bench_plot_draw(FILE *out, bench_row *const *row, size_t n);

#endif
