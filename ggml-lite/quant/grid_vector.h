/* One vector of eight elements from a codebook, or two of four, with signs; private to ggml-lite/quant. */
#ifndef GGL_GRID_VECTOR_H
#define GGL_GRID_VECTOR_H

#include "grid.h"

enum { MAX_RUN_VECTORS = 4 }; /* of eight elements */

/* A run with its codes. The error for a scale s is xx - 2 s xv + s^2 vv. */
typedef struct grid_coded {
    float xv, vv;
    uint16_t index[2 * MAX_RUN_VECTORS];
    uint8_t signs[MAX_RUN_VECTORS], down[MAX_RUN_VECTORS];
} grid_coded;

/* Elements to be encoded: without their signs, unless the entries have them. */
typedef struct grid_source {
    const grid_form *f;
    const grid_index *grid;
    float x[FIT_BLOCK];
    const float *w;
    uint8_t signs[GRID_VECTORS];
    float xx[GRID_MAX_RUNS];
} grid_source;

/* The levels of the codebook's codes times a scale, and as they are. */
typedef struct grid_levels {
    float scaled[8], plain[8];
} grid_levels;

float ggl_grid_step(
    const grid_form *f); /* from the lowest level to the next one, with a scale of 1 */
float ggl_grid_scale(const grid_form *f, int l, float d); /* of a run whose integer scale is l */
grid_levels ggl_grid_levels(const grid_form *f, float s, bool down);
/* Encodes vector `at` of run r with the given levels. */
void ggl_grid_vector(const grid_source *s, const grid_levels *v, int r, int at, grid_coded *c);
/* Encodes the source's first eight elements as vector `at` of a block. */
void ggl_grid_choose(const grid_source *s, float scale, int down, int at, grid_block *g);
/* Sets y[8] to the elements that vector `at` of a block stands for. */
void ggl_grid_decode(const grid_form *f, const grid_block *g, int at, float scale, float *y);

#endif
