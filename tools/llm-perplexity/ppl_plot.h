/* Draws the perplexity over a text: of each chunk and of all up to it, and of a comparison the
 * divergence's quantiles. */
#ifndef TOOLS_PPL_PLOT_H
#define TOOLS_PPL_PLOT_H

#include <stdio.h>

#include "measure/ppl_stats.h"

typedef struct ppl_plot {
    const char *title;
    int64_t n_chunk;     /* at least 1 */
    const double *chunk; /* [n_chunk]: perplexity of each chunk by itself */
    const mean *running; /* [n_chunk]: of the text up to its end, with the standard error */
    const double *kld;   /* [n_kld], ascending; NULL: no comparison */
    size_t n_kld;
} ppl_plot;

void ppl_plot_draw(FILE *out, const ppl_plot *p);

#endif
