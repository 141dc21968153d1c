/* iq2_xxs, iq2_xs and iq2_s: vectors of eight from a codebook, with signs. Codes are the signed
 * elements, up to 43. Blocks: blocks.h; codebooks: iq_grids.h. */
#include "iq_grids.h"
#include "quant.h"

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
