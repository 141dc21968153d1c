/* Draws the perplexity over a text: of each chunk and of all up to it, and of a comparison the
 * divergence's quantiles. */
#ifndef TOOLS_PPL_PLOT_H
#define TOOLS_PPL_PLOT_H

#include <stdint.h>
#include <stdio.h>

/* Perplexities of a chunk. */
typedef struct ppl_chunk {
    double own;            /* of the chunk by itself */
    double running, error; /* of the text up to its end, with the standard error */
} ppl_chunk;

typedef struct ppl_plot {
    const char *title;
    int64_t n_chunk; /* at least 1 */
    const ppl_chunk *chunk;
    const double *kld; /* quantiles, as llm_perplexity_result has them; NULL: no comparison */
} ppl_plot;

void ppl_plot_draw(FILE *out, const ppl_plot *p);

#endif
