/* The search for the scales and vectors of a block; private to ggml-lite/quant. */
#ifndef GGL_GRID_FIT_H
#define GGL_GRID_FIT_H

#include "grid.h"

/* Encodes a block of 256 finite elements; leaves *out as it is if they are zeros. importance: as for ggl_fit_read. */
void ggl_grid_fit(const grid_form *f, const grid_index *grid, const float *src,
                  const float *importance, grid_block *out);

#endif
