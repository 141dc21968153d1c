/* Codes whose errors cancel in the products of a row; private to ggml-lite/quant.
 *
 * A row with errors e, multiplied with activations x, changes its product by sum_i e[i] x[i]. The mean square of that is
 * sum_ij e[i] e[j] C[i][j], where C[i][j] is the mean of x[i] x[j]. The searches for scales (fit_block.h) know only C[i][i]. Here the codes of
 * one block after the other are chosen again, with the scales as they are, for the directions u in which activations vary
 * together: C[i][j] = sum_d u[i][d] u[j][d] where i and j differ. So a block makes up for the errors of the blocks before it, and each
 * element for those of the others in its block. Compensation of errors is the idea of GPTQ (Frantar et al. 2022), which
 * needs all of C; a few directions hold most of it, and fit into an importance matrix. */
#ifndef GGL_FEEDBACK_H
#define GGL_FEEDBACK_H

#include "fit_block.h"
#include "grid.h"

typedef struct quant_feedback {
    const ggl_importance *of; /* NULL: there are no directions, and nothing is chosen again */
    vf sum[GGL_MAX_DIRECTIONS / LANES]; /* over the row's elements: error times direction */
} quant_feedback;

void ggl_feedback_start(quant_feedback *f, const ggl_importance *of);
/* Forgets the errors of the row before if a row begins at element `first`. For each block, also one that is not chosen again. */
void ggl_feedback_at(quant_feedback *f, int64_t first);
/* Chooses the codes of n <= 256 elements again, which begin at element `first` of all that are encoded, and become
 * scale[k] * (code + low, or level) + min[k] with k = i / form->n. */
void ggl_feedback_codes(quant_feedback *f, const fit_form *form, const float *src, int64_t first,
                        int n, const float *scale, const float *min, uint8_t *code);
/* The same for a block of vectors from a codebook. */
void ggl_feedback_grid(quant_feedback *f, const grid_form *form, const grid_index *grid,
                       const float *src, int64_t first, grid_block *g);

#endif
