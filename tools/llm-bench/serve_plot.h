/* Describes the results of `llm-bench serve`: tokens per second, and the times to the first token and
 * between tokens, over the number of clients or the rate. */
#ifndef TOOLS_BENCH_SERVE_PLOT_H
#define TOOLS_BENCH_SERVE_PLOT_H

#include "common/drawing.h"
#include "serve_row.h"

/* Rows of one line of the picture have the same server and lengths. */
void serve_plot(drawing *d, const serve_row *row, size_t n);

#endif
