/* iq3_xxs and iq3_s: vectors of four from a codebook, with signs. Codes are the signed elements, up
 * to 62. Blocks: blocks.h; codebooks: iq_grids.h. */
#include "iq_grids.h"
#include "quant.h"
#include "block_rows.h"

void ggl_iq3_xxs_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq3_xxs *b = block;
    uint32_t w = quant_u32(b->w[k]);
    quant_scale(out, quant_f16(b->d) * (float)(2 * (w >> 28) + 1) * 0.25f);
    for (int v = 0; v < 8; v++)
        iq_entry(&ggl_iq3_xxs_grid, b->index[8 * k + v], out->q + 4 * v);
    for (int v = 0; v < 4; v++)
        iq_apply_signs(out->q + 8 * v, iq_signs(w >> 7 * v & 127));
}

void ggl_iq3_s_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq3_s *b = block;
    int scale = b->s[k / 2] >> 4 * (k % 2) & 15;
    quant_scale(out, quant_f16(b->d) * (float)(2 * scale + 1));
    for (int v = 0; v < 8; v++)
        iq_entry(&ggl_iq3_s_grid, b->index[8 * k + v] | (b->h[k] >> v & 1u) << 8, out->q + 4 * v);
    for (int v = 0; v < 4; v++)
        iq_apply_signs(out->q + 8 * v, b->signs[4 * k + v]);
}

/* --- encoding --------------------------------------------------------------------------------- */

static const grid_form iq3_xxs_form = {.grid = &ggl_iq3_xxs_grid,
                                       .n = 32,
                                       .scale_high = 15,
                                       .unit = 0.25f,
                                       .signs = GRID_EVEN,
                                       .first = 0.025f,
                                       .ratio = 1.2f,
                                       .n_trials = 5};

static void put_iq3_xxs(const grid_block *g, void *block) {
    struct block_iq3_xxs *b = block;
    quant_put_f16(b->d, g->d);
    for (int v = 0; v < 64; v++)
        b->index[v] = (uint8_t)g->index[v];
    for (int k = 0; k < 8; k++) {
        uint32_t w = (uint32_t)g->scale[k] << 28;
        for (int v = 0; v < 4; v++)
            w |= (g->signs[4 * k + v] & 127u) << 7 * v;
        quant_put_u32(b->w[k], w);
    }
}

void ggl_iq3_xxs_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                     int64_t n) {
    ggl_grid_rows(&iq3_xxs_form, src, of, dst, n, sizeof(struct block_iq3_xxs), put_iq3_xxs);
}

static const grid_form iq3_s_form = {.grid = &ggl_iq3_s_grid,
                                     .n = 32,
                                     .scale_high = 15,
                                     .unit = 1.0f,
                                     .signs = GRID_FREE,
                                     .first = 0.1f,
                                     .ratio = 1.2f,
                                     .n_trials = 5};

static void put_iq3_s(const grid_block *g, void *block) {
    struct block_iq3_s *b = block;
    quant_put_f16(b->d, g->d);
    memcpy(b->signs, g->signs, sizeof b->signs);
    for (int v = 0; v < 64; v++) {
        b->index[v] = (uint8_t)g->index[v];
        b->h[v / 8] |= (uint8_t)(g->index[v] >> 8 << v % 8);
    }
    for (int k = 0; k < 8; k++)
        b->s[k / 2] |= (uint8_t)(g->scale[k] << 4 * (k % 2));
}

void ggl_iq3_s_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                   int64_t n) {
    ggl_grid_rows(&iq3_s_form, src, of, dst, n, sizeof(struct block_iq3_s), put_iq3_s);
}
