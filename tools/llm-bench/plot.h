/* Speeds of backends and splits side by side, as one picture: a panel for each test of each model, a
 * bar for each row, with its quartiles. */
#ifndef TOOLS_BENCH_PLOT_H
#define TOOLS_BENCH_PLOT_H

#include <stdio.h>

#include "row.h"

void bench_plot_draw(FILE *out, bench_row *const *row, size_t n);

#endif
