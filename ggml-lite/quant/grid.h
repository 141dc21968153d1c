/* Encoding vectors from a codebook (iq1_*, iq2_*, iq3_*); private to ggml-lite/quant. The error is
 * that of fit_block.h. For a given scale, the best entry of the codebook is found exactly: the error is a
 * sum over the elements, so it is the sum of two numbers from tables, one for each half of the
 * entry, and most entries need not be looked at. */
#ifndef GGL_GRID_H
#define GGL_GRID_H

#include "fit_block.h"
#include "iq_grids.h"

enum { GRID_MAX_RUNS = 16, GRID_VECTORS = FIT_BLOCK / 8 };

typedef enum grid_signs {
    GRID_SIGNED, /* the entries have signs themselves */
    GRID_FREE,   /* a sign for each element */
    GRID_EVEN,   /* the same, but of eight elements an even number is negative */
} grid_signs;

typedef enum grid_delta { GRID_NO_DELTA, GRID_DELTA_RUN, GRID_DELTA_VECTOR } grid_delta;

/* A type: element = d * (2 * scale + 1) * unit * level. With a delta, the level of an entry is
 * 8 * level + 1, or - 1 if the delta is down. */
typedef struct grid_form {
    const iq_grid *grid;
    int n, scale_high; /* elements of a run; scales are 0 .. scale_high */
    float unit;
    grid_signs signs;
    grid_delta delta;
    /* The scales that are tried: first, first * ratio, first * ratio^2 .. times the root mean square
     * of the run's elements, for a level of 1. */
    float first, ratio;
    int n_trials;
} grid_form;

typedef struct grid_block {
    float d; /* as f16 has it; infinite if it is too large */
    int scale[GRID_MAX_RUNS];
    uint16_t index[FIT_BLOCK / 4];                   /* [vector] */
    uint8_t signs[GRID_VECTORS], down[GRID_VECTORS]; /* [eight elements]: 1 is minus; delta */
} grid_block;

/* An index of a codebook: entries whose upper halves are the same follow one another. */
typedef struct grid_index {
    const iq_grid *grid;
    int n_groups;
    uint16_t first[257]; /* [group]: its first entry; then the number of entries */
    uint8_t high[256];   /* [group]: the code of the upper half */
    uint8_t low[2048];   /* [entry]: the code of the lower half */
} grid_index;
void ggl_grid_index(grid_index *x, const iq_grid *grid);

/* Returns the entry with the least sum of w[j] * (x[j] - level[code of element j])^2. flip: of the
 * elements, one has the opposite sign, whichever costs the least. *error: the sum. */
int ggl_grid_nearest(const grid_index *grid, const float *x, const float *w, const float *level,
                     bool flip, float *error);

#endif
