/* q6_k: 6 bits, symmetric around code 32, the upper two stored apart from the others; runs of 16
 * with 8-bit scales. Block: blocks.h. */
#include "k_quants.h"
#include "block_rows.h"

enum { RUN = QUANT_SYMMETRIC_RUN, N_RUNS = K_BLOCK / RUN, TOP = 32 };

void ggl_q6_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q6_k *b = block;
    float d = quant_f16(b->d);
    quant_scales(out, d * (float)b->s[2 * k], d * (float)b->s[2 * k + 1]);
    const uint8_t *low = b->b + 64 * (k / 4) + 32 * (k % 2), *high = b->h + 32 * (k / 4);
    int half = k % 4 / 2, at = k % 4;
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)(((low[j] >> 4 * half & 15) | (high[j] >> 2 * at & 3) << 4) - TOP);
}

static void put_codes(struct block_q6_k *b, const uint8_t code[K_BLOCK]) {
    for (int half = 0; half < 2; half++, code += 128) {
        uint8_t *low = b->b + 64 * half, *high = b->h + 32 * half;
        for (int j = 0; j < 32; j++) {
            low[j] = (uint8_t)((code[j] & 15) | (code[j + 64] & 15) << 4);
            low[j + 32] = (uint8_t)((code[j + 32] & 15) | (code[j + 96] & 15) << 4);
            high[j] = (uint8_t)(code[j] >> 4 | code[j + 32] >> 4 << 2 | code[j + 64] >> 4 << 4 |
                                code[j + 96] >> 4 << 6);
        }
    }
}

/* ggml's published encoder (quantize_row_q6_K_ref). The scale largest in magnitude becomes -128; if
 * even that is tiny, the whole block is zeros. */
static void encode_block(const float *x, void *block) {
    struct block_q6_k *b = block;
    float scale[N_RUNS], extreme = 0.0f;
    const quant_search *search = ggl_quant_search();
    uint8_t code[K_BLOCK];
    for (int r = 0; r < N_RUNS; r += QUANT_AT_ONCE)
        search->fit_symmetric(x + RUN * r, TOP, code + RUN * r, scale + r);
    for (int r = 0; r < N_RUNS; r++)
        extreme = fabsf(scale[r]) > fabsf(extreme) ? scale[r] : extreme;
    if (fabsf(extreme) < QUANT_TINY)
        return;
    float inverse = -128.0f / extreme;
    quant_put_f16(b->d, 1.0f / inverse);
    float d = quant_f16(b->d);
    for (int r = 0; r < N_RUNS; r++) {
        int s = quant_round(inverse * scale[r]);
        b->s[r] = (int8_t)(s < 127 ? s : 127);
        quant_codes_for(x + RUN * r, RUN, d * (float)b->s[r], 0.0f, -TOP, TOP - 1, code + RUN * r);
    }
    put_codes(b, code);
}

void ggl_q6_k_from_float(const float *src, void *dst, int64_t n) {
    quant_k_blocks(src, dst, n, sizeof(struct block_q6_k), offsetof(struct block_q6_k, d),
                   encode_block);
}

static void put_q6_k(const fit_block *fit, void *block) {
    struct block_q6_k *b = block;
    for (int r = 0; r < N_RUNS; r++)
        b->s[r] = (int8_t)fit->scale[r];
    quant_put_f16(b->d, fit->d);
    put_codes(b, fit->code);
}

void ggl_q6_k_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {.n = RUN,
                                  .low = -TOP,
                                  .high = TOP - 1,
                                  .scale_low = -128,
                                  .scale_high = 127,
                                  .n_starts = 3,
                                  .first = -4.9f,
                                  .step = 0.4f,
                                  .n_steps = 16};
    ggl_fit_blocks(ggl_fit_scales, &form, src, of, n, sizeof(struct block_q6_k), put_q6_k, dst);
}
