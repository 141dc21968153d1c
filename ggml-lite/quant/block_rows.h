/* Encoding of rows with importance, block by block; private to ggml-lite/quant. Where the importance has directions, the codes
 * of each block are chosen again, so that the errors of a row cancel (feedback.h). */
#ifndef GGL_BLOCK_ROWS_H
#define GGL_BLOCK_ROWS_H

#include "fit_block.h"
#include "grid.h"

/* Encodes n elements by ggl_fit_rows_scales or ggl_fit_rows_mins; `put` stores block l of FIT_AT_ONCE. */
typedef void fit_rows_fn(const fit_form *, const float *, const float *, fit_rows *);
void ggl_fit_rows(fit_rows_fn *fit, const fit_form *f, const float *src, const ggl_importance *of,
                  int64_t n, void (*put)(const fit_rows *rows, int l, void *dst, int64_t block),
                  void *dst);
/* Encodes n elements by ggl_fit_scales or ggl_fit_mins; `put` stores a block, of `size` bytes, which are zeros. A block with an
 * element that is not finite gets d NaN, and nothing else. */
typedef void fit_block_fn(const fit_form *, const float *, const float *, fit_block *);
void ggl_fit_blocks(fit_block_fn *fit, const fit_form *f, const float *src,
                    const ggl_importance *of, int64_t n, size_t size,
                    void (*put)(const fit_block *fit, void *block), void *dst);

/* Encodes n elements. `put` stores a block, of `size` bytes, which are zeros. A block of zeros has
 * d = 0; one with an element that is not finite has d = NaN, and nothing else. */
void ggl_grid_rows(const grid_form *f, const float *src, const ggl_importance *of, void *dst,
                   int64_t n, size_t size, void (*put)(const grid_block *g, void *block));

#endif
