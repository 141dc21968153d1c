/* Rows of blocks: block_rows.h. */
#include "block_rows.h"

#include <math.h>

#include "feedback.h"
#include "grid_fit.h"

static void feed_block(quant_feedback *f, const fit_form *form, const float *src, int64_t first,
                       fit_block *b) {
    float scale[FIT_RUNS], min[FIT_RUNS];
    const float d = ggl_fit_f16(b->d, 0), dmin = ggl_fit_f16(b->dmin, 0);
    for (int r = 0; r < FIT_BLOCK / form->n; r++) {
        scale[r] = d * (float)b->scale[r];
        min[r] = -dmin * (float)b->min[r];
    }
    ggl_feedback_codes(f, form, src, first, FIT_BLOCK, scale, min, b->code);
}

void ggl_fit_blocks(fit_block_fn *fit, const fit_form *f, const float *src,
                    const ggl_importance *of, int64_t n, size_t size,
                    void (*put)(const fit_block *fit, void *block), void *dst) {
    quant_feedback feedback;
    uint8_t *to = dst;
    ggl_feedback_start(&feedback, of);
    memset(dst, 0, (size_t)(n / FIT_BLOCK) * size);
    for (int64_t i = 0; i < n; i += FIT_BLOCK, to += size) {
        fit_block b = {.d = quant_extreme(src + i, FIT_BLOCK)};
        ggl_feedback_at(&feedback, i);
        if (!isnan(b.d)) {
            fit(f, src + i, of ? of->mean + i : NULL, &b);
            feed_block(&feedback, f, src, i, &b);
        }
        put(&b, to);
    }
}

/* Stores block l of rows, which begins at element `first`. */
static void finish_row(quant_feedback *f, const fit_form *form, const float *src, int64_t first,
                       fit_rows *rows, int l,
                       void (*put)(const fit_rows *rows, int l, void *dst, int64_t block),
                       void *dst) {
    const float d = ggl_fit_f16(rows->d[l], 0), m = ggl_fit_f16(rows->m[l], 0);
    ggl_feedback_at(f, first);
    if (isfinite(d) && isfinite(m))
        ggl_feedback_codes(f, form, src, first, FIT_RUN, &d, &m, rows->code + FIT_RUN * l);
    put(rows, l, dst, first / FIT_RUN);
}

void ggl_fit_rows(fit_rows_fn *fit, const fit_form *f, const float *src, const ggl_importance *of,
                  int64_t n, void (*put)(const fit_rows *rows, int l, void *dst, int64_t block),
                  void *dst) {
    enum { WAVE = FIT_AT_ONCE * FIT_RUN };
    fit_rows rows;
    quant_feedback feedback;
    int64_t i = 0;
    ggl_feedback_start(&feedback, of);
    for (; i + WAVE <= n; i += WAVE) {
        fit(f, src + i, of ? of->mean + i : NULL, &rows);
        for (int l = 0; l < FIT_AT_ONCE; l++)
            finish_row(&feedback, f, src, i + FIT_RUN * l, &rows, l, put, dst);
    }
    if (i == n)
        return;
    float x[WAVE] = {0}, w[WAVE] = {0}; /* the rest, with blocks of zeros */
    memcpy(x, src + i, (size_t)(n - i) * sizeof *x);
    for (int64_t k = 0; k < n - i; k++)
        w[k] = of ? of->mean[i + k] : 1.0f;
    fit(f, x, w, &rows);
    for (int l = 0; i + FIT_RUN * l < n; l++)
        finish_row(&feedback, f, src, i + FIT_RUN * l, &rows, l, put, dst);
}

void ggl_grid_rows(const grid_form *f, const float *src, const ggl_importance *of, void *dst,
                   int64_t n, size_t size, void (*put)(const grid_block *g, void *block)) {
    grid_index grid;
    quant_feedback feedback;
    uint8_t *to = dst;
    ggl_feedback_start(&feedback, of);
    ggl_grid_index(&grid, f->grid);
    memset(dst, 0, (size_t)(n / FIT_BLOCK) * size);
    for (int64_t i = 0; i < n; i += FIT_BLOCK, to += size) {
        grid_block g = {.d = quant_extreme(src + i, FIT_BLOCK)};
        ggl_feedback_at(&feedback, i);
        if (!isnan(g.d)) {
            g.d = 0.0f;
            ggl_grid_fit(f, &grid, src + i, of ? of->mean + i : NULL, &g);
            ggl_feedback_grid(&feedback, f, &grid, src, i, &g);
        }
        put(&g, to);
    }
}
