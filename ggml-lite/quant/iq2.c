/* iq2_xxs, iq2_xs and iq2_s: vectors of eight from a codebook, with signs. Codes are the signed
 * elements, up to 43. Blocks: blocks.h; codebooks: iq_grids.h. */
#include "iq_grids.h"
#include "quant.h"
#include "block_rows.h"

/* d * (scale + 1/2) / 4 */
static float scale_of(const uint8_t d[2], unsigned scale) {
    return quant_f16(d) * (float)(2 * scale + 1) * 0.125f;
}

void ggl_iq2_xxs_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_xxs *b = block;
    uint32_t w = quant_u32(b->run[k].w);
    quant_scale(out, scale_of(b->d, w >> 28));
    for (int v = 0; v < 4; v++) {
        iq_entry(&ggl_iq2_xxs_grid, b->run[k].index[v], out->q + 8 * v);
        iq_apply_signs(out->q + 8 * v, iq_signs(w >> 7 * v & 127));
    }
}

void ggl_iq2_xs_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_xs *b = block;
    quant_scales(out, scale_of(b->d, b->s[k] & 15), scale_of(b->d, b->s[k] >> 4));
    for (int v = 0; v < 4; v++) {
        uint32_t w = quant_u16(b->v[4 * k + v]);
        iq_entry(&ggl_iq2_xs_grid, w & 511, out->q + 8 * v);
        iq_apply_signs(out->q + 8 * v, iq_signs(w >> 9));
    }
}

void ggl_iq2_s_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_s *b = block;
    quant_scales(out, scale_of(b->d, b->s[k] & 15), scale_of(b->d, b->s[k] >> 4));
    for (int v = 0; v < 4; v++) {
        iq_entry(&ggl_iq2_s_grid, b->index[4 * k + v] | (b->h[k] >> 2 * v & 3u) << 8,
                 out->q + 8 * v);
        iq_apply_signs(out->q + 8 * v, b->signs[4 * k + v]);
    }
}

/* --- encoding --------------------------------------------------------------------------------- */

static void put_scales(const grid_block *g, uint8_t s[8]) {
    for (int k = 0; k < 8; k++)
        s[k] = (uint8_t)(g->scale[2 * k] | g->scale[2 * k + 1] << 4);
}

static const grid_form iq2_xxs_form = {.grid = &ggl_iq2_xxs_grid,
                                       .n = 32,
                                       .scale_high = 15,
                                       .unit = 0.125f,
                                       .signs = GRID_EVEN,
                                       .first = 0.03f,
                                       .ratio = 1.15f,
                                       .n_trials = 6};

static void put_iq2_xxs(const grid_block *g, void *block) {
    struct block_iq2_xxs *b = block;
    quant_put_f16(b->d, g->d);
    for (int k = 0; k < 8; k++) {
        uint32_t w = (uint32_t)g->scale[k] << 28;
        for (int v = 0; v < 4; v++) {
            b->run[k].index[v] = (uint8_t)g->index[4 * k + v];
            w |= (g->signs[4 * k + v] & 127u) << 7 * v;
        }
        quant_put_u32(b->run[k].w, w);
    }
}

void ggl_iq2_xxs_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                     int64_t n) {
    ggl_grid_rows(&iq2_xxs_form, src, of, dst, n, sizeof(struct block_iq2_xxs), put_iq2_xxs);
}

static const grid_form iq2_xs_form = {.grid = &ggl_iq2_xs_grid,
                                      .n = 16,
                                      .scale_high = 15,
                                      .unit = 0.125f,
                                      .signs = GRID_EVEN,
                                      .first = 0.03f,
                                      .ratio = 1.15f,
                                      .n_trials = 6};

static void put_iq2_xs(const grid_block *g, void *block) {
    struct block_iq2_xs *b = block;
    quant_put_f16(b->d, g->d);
    put_scales(g, b->s);
    for (int v = 0; v < 32; v++) {
        b->v[v][0] = (uint8_t)g->index[v];
        b->v[v][1] = (uint8_t)(g->index[v] >> 8 | (g->signs[v] & 127) << 1);
    }
}

void ggl_iq2_xs_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                    int64_t n) {
    ggl_grid_rows(&iq2_xs_form, src, of, dst, n, sizeof(struct block_iq2_xs), put_iq2_xs);
}

static const grid_form iq2_s_form = {.grid = &ggl_iq2_s_grid,
                                     .n = 16,
                                     .scale_high = 15,
                                     .unit = 0.125f,
                                     .signs = GRID_FREE,
                                     .first = 0.03f,
                                     .ratio = 1.15f,
                                     .n_trials = 6};

static void put_iq2_s(const grid_block *g, void *block) {
    struct block_iq2_s *b = block;
    quant_put_f16(b->d, g->d);
    put_scales(g, b->s);
    memcpy(b->signs, g->signs, sizeof b->signs);
    for (int v = 0; v < 32; v++) {
        b->index[v] = (uint8_t)g->index[v];
        b->h[v / 4] |= (uint8_t)(g->index[v] >> 8 << 2 * (v % 4));
    }
}

void ggl_iq2_s_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                   int64_t n) {
    ggl_grid_rows(&iq2_s_form, src, of, dst, n, sizeof(struct block_iq2_s), put_iq2_s);
}
