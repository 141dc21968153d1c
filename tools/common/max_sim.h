/* How similar a text is to a query if each of their tokens has a vector. */
#ifndef TOOLS_MAX_SIM_H
#define TOOLS_MAX_SIM_H

#include <stdbool.h>
#include <stddef.h>

/* Returns ColBERT's MaxSim: the sum, over the n_query vectors of a query, of the largest product with one of the n_text vectors of the
 * text, all of n numbers. cosine: of the vectors brought to length 1. */
double tool_max_sim(const float *query, size_t n_query, const float *text, size_t n_text, size_t n,
                    bool cosine);

#endif
