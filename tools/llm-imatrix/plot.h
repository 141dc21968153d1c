/* Describes an importance matrix: a cell for each layer and kind of tensor, darker where fewer columns matter. */
#ifndef TOOLS_IMATRIX_PLOT_H
#define TOOLS_IMATRIX_PLOT_H

#include "common/drawing.h"
#include "stats.h"

/* s[n]: as stats_of makes them. */
void imatrix_plot(drawing *d, const tensor_stats *s, size_t n);

#endif
