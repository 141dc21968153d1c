/* iq3_xxs and iq3_s: vectors of four from a codebook, with signs. Codes are the signed elements, up
 * to 62. Blocks: blocks.h; codebooks: iq_grids.h. */
#include "iq_grids.h"
#include "quant.h"

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
