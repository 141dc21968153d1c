/* q3_k: 3 bits, symmetric around code 4, the third stored apart from the others; runs of 16 with
 * 6-bit scales. Block: blocks.h. */
#include "k_quants.h"
#include "block_rows.h"

enum { RUN = QUANT_SYMMETRIC_RUN, N_RUNS = K_BLOCK / RUN, TOP = 4 };

static int get_scale(const uint8_t s[12], int r) {
    int low = r < 8 ? s[r] & 15 : s[r - 8] >> 4;
    return (low | (s[8 + r % 4] >> 2 * (r / 4) & 3) << 4) - 32;
}

static void put_scale(uint8_t s[12], int r, int scale) {
    int v = scale + 32;
    s[r % 8] |= (uint8_t)((v & 15) << 4 * (r / 8));
    s[8 + r % 4] |= (uint8_t)(v >> 4 << 2 * (r / 4));
}

void ggl_q3_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q3_k *b = block;
    float d = quant_f16(b->d);
    quant_scales(out, d * (float)get_scale(b->s, 2 * k), d * (float)get_scale(b->s, 2 * k + 1));
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)((int)(quant_2bits(b->b, k, j) | (b->h[j] >> k & 1u) << 2) - TOP);
}

/* Stores the codes in a block whose h is zeros. */
static void put_codes(struct block_q3_k *b, uint8_t code[K_BLOCK]) {
    for (int i = 0; i < K_BLOCK; i++) {
        b->h[i % 32] |= (uint8_t)(code[i] >> 2 << i / 32);
        code[i] &= 3;
    }
    quant_put_2bits(b->b, code);
}

/* ggml's published encoder (quantize_row_q3_K_ref). The scale largest in magnitude becomes -32. */
static void encode_block(const float *x, void *block) {
    struct block_q3_k *b = block;
    float scale[N_RUNS], extreme = 0.0f;
    const quant_search *search = ggl_quant_search();
    uint8_t code[K_BLOCK];
    for (int r = 0; r < N_RUNS; r += QUANT_AT_ONCE)
        search->fit_greedy(x + RUN * r, TOP, code + RUN * r, scale + r);
    for (int r = 0; r < N_RUNS; r++)
        extreme = fabsf(scale[r]) > fabsf(extreme) ? scale[r] : extreme;

    if (extreme != 0.0f) {
        float inverse = -32.0f / extreme;
        quant_put_f16(b->d, 1.0f / inverse);
        for (int r = 0; r < N_RUNS; r++)
            put_scale(b->s, r, quant_clamp((int8_t)quant_round(inverse * scale[r]), -32, 31));
    }
    float d = quant_f16(b->d);
    for (int r = 0; r < N_RUNS; r++)
        quant_codes_for(x + RUN * r, RUN, d * (float)get_scale(b->s, r), 0.0f, -TOP, TOP - 1,
                        code + RUN * r);

    put_codes(b, code);
}

void ggl_q3_k_from_float(const float *src, void *dst, int64_t n) {
    quant_k_blocks(src, dst, n, sizeof(struct block_q3_k), offsetof(struct block_q3_k, d),
                   encode_block);
}

static void put_q3_k(const fit_block *fit, void *block) {
    struct block_q3_k *b = block;
    uint8_t code[K_BLOCK];
    memcpy(code, fit->code, sizeof code);
    for (int r = 0; r < N_RUNS && !isnan(fit->d); r++)
        put_scale(b->s, r, fit->scale[r]);
    quant_put_f16(b->d, fit->d);
    put_codes(b, code);
}

void ggl_q3_k_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {.n = RUN,
                                  .low = -TOP,
                                  .high = TOP - 1,
                                  .scale_low = -32,
                                  .scale_high = 31,
                                  .n_starts = 6,
                                  .first = -2.9f,
                                  .step = 0.3f,
                                  .n_steps = 19};
    ggl_fit_blocks(ggl_fit_scales, &form, src, of, n, sizeof(struct block_q3_k), put_q3_k, dst);
}
