/* Describes the perplexity over a text: of each chunk and of all up to it, and of a comparison the
 * divergence's quantiles. */
#ifndef TOOLS_PPL_PLOT_H
#define TOOLS_PPL_PLOT_H

#include <stdint.h>

#include "common/drawing.h"

/* Perplexities of a chunk. */
typedef struct ppl_chunk {
    double own;            /* of the chunk by itself */
    double running, error; /* of the text up to its end, with the standard error */
} ppl_chunk;

/* kld: quantiles, as llm_perplexity_result has them; NULL: no comparison. */
void ppl_plot(drawing *d, const ppl_chunk *chunk, int64_t n_chunk, const double *kld);

#endif
