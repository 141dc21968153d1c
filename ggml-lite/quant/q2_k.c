/* q2_k: 2 bits; runs of 16 with 4-bit scales and minima. Block: blocks.h. */
#include "k_quants.h"
#include "block_rows.h"

enum { RUN = 16, N_RUNS = K_BLOCK / RUN, TOP = 3 };

void ggl_q2_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q2_k *b = block;
    float d = quant_f16(b->d), dmin = quant_f16(b->dmin);
    for (int h = 0; h < 2; h++) {
        out->s[h] = d * (float)(b->sm[2 * k + h] & 15);
        out->m[h] = dmin * (float)(b->sm[2 * k + h] >> 4);
    }
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)quant_2bits(b->b, k, j);
}

/* ggml's published encoder (quantize_row_q2_K_ref). Absolute errors are weighted by |x|. */
static void encode_block(const float *x, void *block) {
    struct block_q2_k *b = block;
    static const quant_min_search how = {.top = TOP, .first = -0.5f, .n_steps = 15, .absolute = 1};
    float scale[N_RUNS], min[N_RUNS], max_scale = 0.0f, max_min = 0.0f, w[K_BLOCK];
    const quant_search *search = ggl_quant_search();
    uint8_t code[K_BLOCK];
    for (int i = 0; i < K_BLOCK; i++)
        w[i] = fabsf(x[i]);
    for (int r = 0; r < N_RUNS; r += QUANT_AT_ONCE)
        search->fit_min(&how, x + RUN * r, w + RUN * r, RUN, code + RUN * r, scale + r, min + r);
    for (int r = 0; r < N_RUNS; r++) {
        max_scale = scale[r] > max_scale ? scale[r] : max_scale;
        max_min = min[r] > max_min ? min[r] : max_min;
    }

    float inv_scale = max_scale > 0.0f ? 15.0f / max_scale : 0.0f;
    float inv_min = max_min > 0.0f ? 15.0f / max_min : 0.0f;
    quant_put_f16(b->d, max_scale / 15.0f);
    quant_put_f16(b->dmin, max_min / 15.0f);
    float d = quant_f16(b->d), dmin = quant_f16(b->dmin);
    for (int r = 0; r < N_RUNS; r++) {
        /* not clamped: a negative scale, which rounding errors can give, spills into the minimum */
        b->sm[r] = (uint8_t)((unsigned)quant_round(inv_scale * scale[r]) |
                             (unsigned)quant_round(inv_min * min[r]) << 4);
        quant_codes_for(x + RUN * r, RUN, d * (float)(b->sm[r] & 15), dmin * (float)(b->sm[r] >> 4),
                        0, TOP, code + RUN * r);
    }
    quant_put_2bits(b->b, code);
}

void ggl_q2_k_from_float(const float *src, void *dst, int64_t n) {
    quant_k_blocks(src, dst, n, sizeof(struct block_q2_k), offsetof(struct block_q2_k, d),
                   encode_block);
}

static void put_weighted(const fit_block *fit, void *block) {
    struct block_q2_k *b = block;
    for (int r = 0; r < N_RUNS; r++)
        b->sm[r] = (uint8_t)(fit->scale[r] | fit->min[r] << 4);
    quant_put_f16(b->d, fit->d);
    quant_put_f16(b->dmin, fit->dmin);
    quant_put_2bits(b->b, fit->code);
}

void ggl_q2_k_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {.n = RUN,
                                  .high = TOP,
                                  .scale_high = 15,
                                  .min_high = 15,
                                  .n_starts = 4,
                                  .first = -0.9f,
                                  .step = 0.2f,
                                  .n_steps = 14};
    ggl_fit_blocks(ggl_fit_mins, &form, src, of, n, sizeof(struct block_q2_k), put_weighted, dst);
}
