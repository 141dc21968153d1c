/* iq1_s and iq1_m: vectors of eight from a codebook of -1, 0 and 1, with 1/8 added to, or
 * subtracted from, all elements. Codes are integers, in units of 1/8: 8 * element + 1 or - 1.
 * Blocks: blocks.h; codebook: iq_grids.h. */
#include "iq_grids.h"
#include "quant.h"
#include "block_rows.h"

/* (2*scale + 1) * d, in units of 1/8 */
static float scale_of(float d, unsigned scale) {
    return d * (float)(2 * scale + 1) * 0.125f;
}

static void unpack_vector(unsigned index, bool down, int8_t q[8]) {
    iq_entry(&ggl_iq1_grid, index, q);
    for (int j = 0; j < 8; j++)
        q[j] = (int8_t)(8 * q[j] + (down ? -1 : 1));
}

void ggl_iq1_s_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq1_s *b = block;
    uint32_t h = quant_u16(b->h[k]);
    quant_scale(out, scale_of(quant_f16(b->d), h >> 12 & 7));
    for (int v = 0; v < 4; v++)
        unpack_vector(b->index[4 * k + v] | (h >> 3 * v & 7) << 8, h >> 15, out->q + 8 * v);
}

void ggl_iq1_m_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq1_m *b = block;
    uint32_t d = 0, s = quant_u16(b->s[k / 2]) >> 6 * (k % 2);
    for (int i = 0; i < 4; i++)
        d |= quant_u16(b->s[i]) >> 12 << 4 * i;
    float scale = ggl_f16_to_f32((uint16_t)d);
    quant_scales(out, scale_of(scale, s & 7), scale_of(scale, s >> 3 & 7));
    for (int v = 0; v < 4; v++) {
        unsigned h = b->h[2 * k + v / 2] >> 4 * (v % 2);
        unpack_vector(b->index[4 * k + v] | (h & 7) << 8, h & 8, out->q + 8 * v);
    }
}

/* --- encoding --------------------------------------------------------------------------------- */

static const grid_form iq1_s_form = {.grid = &ggl_iq1_grid,
                                     .n = 32,
                                     .scale_high = 7,
                                     .unit = 0.125f,
                                     .delta = GRID_DELTA_RUN,
                                     .first = 0.1f,
                                     .ratio = 1.3f,
                                     .n_trials = 3};

static void put_iq1_s(const grid_block *g, void *block) {
    struct block_iq1_s *b = block;
    quant_put_f16(b->d, g->d);
    for (int k = 0; k < 8; k++) {
        unsigned h = (unsigned)(g->scale[k] << 12 | g->down[4 * k] << 15);
        for (int v = 0; v < 4; v++) {
            b->index[4 * k + v] = (uint8_t)g->index[4 * k + v];
            h |= (unsigned)g->index[4 * k + v] >> 8 << 3 * v;
        }
        quant_put_u16(b->h[k], h);
    }
}

void ggl_iq1_s_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                   int64_t n) {
    ggl_grid_rows(&iq1_s_form, src, of, dst, n, sizeof(struct block_iq1_s), put_iq1_s);
}

static const grid_form iq1_m_form = {.grid = &ggl_iq1_grid,
                                     .n = 16,
                                     .scale_high = 7,
                                     .unit = 0.125f,
                                     .delta = GRID_DELTA_VECTOR,
                                     .first = 0.1f,
                                     .ratio = 1.3f,
                                     .n_trials = 3};

static void put_iq1_m(const grid_block *g, void *block) {
    struct block_iq1_m *b = block;
    const unsigned d = ggl_f32_to_f16(g->d);
    for (int i = 0; i < 4; i++) {
        unsigned s = (d >> 4 * i & 15) << 12;
        for (int r = 0; r < 4; r++)
            s |= (unsigned)g->scale[4 * i + r] << 3 * r;
        quant_put_u16(b->s[i], s);
    }
    for (int v = 0; v < 32; v++) {
        const unsigned h = (unsigned)g->index[v] >> 8 | (unsigned)g->down[v] << 3;
        b->index[v] = (uint8_t)g->index[v];
        b->h[v / 2] |= (uint8_t)(h << 4 * (v % 2));
    }
}

void ggl_iq1_m_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                   int64_t n) {
    ggl_grid_rows(&iq1_m_form, src, of, dst, n, sizeof(struct block_iq1_m), put_iq1_m);
}
