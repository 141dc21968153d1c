/* q4_k and q5_k: 4 or 5 bits; runs of 32 with 6-bit scales and minima. They differ only in the
 * fifth bit, which is stored apart. Blocks: blocks.h. */
#include "k_quants.h"
#include "block_rows.h"

enum { RUN = 32, N_RUNS = K_BLOCK / RUN };

static int get_scale(const uint8_t sm[12], int r) {
    return r < 4 ? sm[r] & 63 : (sm[r + 4] & 15) | sm[r - 4] >> 6 << 4;
}

static int get_min(const uint8_t sm[12], int r) {
    return r < 4 ? sm[r + 4] & 63 : sm[r + 4] >> 4 | sm[r] >> 6 << 4;
}

/* Stores the scale and the minimum of run r. sm[] must be zeros at first, and r must ascend. */
static void put_scale_min(uint8_t sm[12], int r, int scale, int min) {
    if (r < 4) {
        sm[r] = (uint8_t)scale;
        sm[r + 4] = (uint8_t)min;
    } else {
        sm[r + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
        sm[r - 4] |= (uint8_t)(scale >> 4 << 6);
        sm[r] |= (uint8_t)(min >> 4 << 6);
    }
}

static void unpack_scale_min(const uint8_t d[2], const uint8_t dmin[2], const uint8_t sm[12], int k,
                             ggl_codes *out) {
    quant_scale_min(out, quant_f16(d) * (float)get_scale(sm, k),
                    quant_f16(dmin) * (float)get_min(sm, k));
}

void ggl_q4_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q4_k *b = block;
    unpack_scale_min(b->d, b->dmin, b->sm, k, out);
    for (int j = 0; j < RUN; j++)
        out->q[j] = (int8_t)(b->b[RUN * (k / 2) + j] >> 4 * (k % 2) & 15);
}

void ggl_q5_k_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q5_k *b = block;
    unpack_scale_min(b->d, b->dmin, b->sm, k, out);
    for (int j = 0; j < RUN; j++)
        out->q[j] =
            (int8_t)((b->b[RUN * (k / 2) + j] >> 4 * (k % 2) & 15) | (b->h[j] >> k & 1) << 4);
}

/* Returns x rounded and clamped to 0 .. 63. A negative scale, which rounding errors can give, wraps
 * around to a byte first. */
static int six_bits(float x) {
    int q = quant_round(x) & 255;
    return q < 63 ? q : 63;
}

/* ggml's published encoders (quantize_row_q4_K_ref, quantize_row_q5_K_ref), except for storing the
 * codes. Squared errors are weighted by |x| plus the run's root mean square. */
static void encode_block(const quant_min_search *how, const float *x, uint8_t d_out[2],
                         uint8_t dmin_out[2], uint8_t sm[12], uint8_t code[K_BLOCK]) {
    const quant_search *search = ggl_quant_search();
    float scale[N_RUNS], min[N_RUNS], max_scale = 0.0f, max_min = 0.0f, w[K_BLOCK];
    for (int r = 0; r < N_RUNS; r++) {
        const float *run = x + RUN * r;
        float sum = 0.0f;
        for (int i = 0; i < RUN; i++)
            sum += run[i] * run[i];
        float rms = sqrtf(sum / (float)RUN);
        for (int i = 0; i < RUN; i++)
            w[RUN * r + i] = rms + fabsf(run[i]);
    }
    for (int r = 0; r < N_RUNS; r += QUANT_AT_ONCE)
        search->fit_min(how, x + RUN * r, w + RUN * r, RUN, code + RUN * r, scale + r, min + r);
    for (int r = 0; r < N_RUNS; r++) {
        max_scale = scale[r] > max_scale ? scale[r] : max_scale;
        max_min = min[r] > max_min ? min[r] : max_min;
    }

    float inv_scale = max_scale > 0.0f ? 63.0f / max_scale : 0.0f;
    float inv_min = max_min > 0.0f ? 63.0f / max_min : 0.0f;
    memset(sm, 0, 12);
    for (int r = 0; r < N_RUNS; r++)
        put_scale_min(sm, r, six_bits(inv_scale * scale[r]), six_bits(inv_min * min[r]));
    quant_put_f16(d_out, max_scale / 63.0f);
    quant_put_f16(dmin_out, max_min / 63.0f);
    float d = quant_f16(d_out), dmin = quant_f16(dmin_out);
    for (int r = 0; r < N_RUNS; r++)
        quant_codes_for(x + RUN * r, RUN, d * (float)get_scale(sm, r), dmin * (float)get_min(sm, r),
                        0, how->top, code + RUN * r);
}

static void put_nibbles(uint8_t b[128], const uint8_t code[K_BLOCK]) {
    for (int i = 0; i < 128; i++)
        b[i] = (uint8_t)((code[i / 32 * 64 + i % 32] & 15) | (code[i / 32 * 64 + 32 + i % 32] & 15)
                                                                 << 4);
}

/* Stores the fifth bits in h, which is zeros. */
static void put_high(uint8_t h[32], const uint8_t code[K_BLOCK]) {
    for (int i = 0; i < K_BLOCK; i++)
        h[i % 32] |= (uint8_t)(code[i] >> 4 << i / 32);
}

static void encode_q4_k(const float *x, void *block) {
    static const quant_min_search how = {.top = 15, .first = -1.0f, .n_steps = 20};
    struct block_q4_k *b = block;
    uint8_t code[K_BLOCK];
    encode_block(&how, x, b->d, b->dmin, b->sm, code);
    put_nibbles(b->b, code);
}

static void encode_q5_k(const float *x, void *block) {
    static const quant_min_search how = {.top = 31, .first = -0.5f, .n_steps = 15};
    struct block_q5_k *b = block;
    uint8_t code[K_BLOCK];
    encode_block(&how, x, b->d, b->dmin, b->sm, code);
    put_nibbles(b->b, code);
    put_high(b->h, code);
}

void ggl_q4_k_from_float(const float *src, void *dst, int64_t n) {
    quant_k_blocks(src, dst, n, sizeof(struct block_q4_k), offsetof(struct block_q4_k, d),
                   encode_q4_k);
}

void ggl_q5_k_from_float(const float *src, void *dst, int64_t n) {
    quant_k_blocks(src, dst, n, sizeof(struct block_q5_k), offsetof(struct block_q5_k, d),
                   encode_q5_k);
}

/* --- with importance -------------------------------------------------------------------------- */

static void put_factors(const fit_block *fit, uint8_t d[2], uint8_t dmin[2], uint8_t sm[12]) {
    for (int r = 0; r < N_RUNS; r++)
        put_scale_min(sm, r, fit->scale[r], fit->min[r]);
    quant_put_f16(d, fit->d);
    quant_put_f16(dmin, fit->dmin);
}

static void put_q4_k(const fit_block *fit, void *block) {
    struct block_q4_k *b = block;
    put_factors(fit, b->d, b->dmin, b->sm);
    put_nibbles(b->b, fit->code);
}

static void put_q5_k(const fit_block *fit, void *block) {
    struct block_q5_k *b = block;
    put_factors(fit, b->d, b->dmin, b->sm);
    put_nibbles(b->b, fit->code);
    put_high(b->h, fit->code);
}

/* The runs of both types, whose codes go up to `top`. */
#define FORM(top)                                                                                  \
    {                                                                                              \
        .n = RUN, .high = (top), .scale_high = 63, .min_high = 63, .n_starts = 5, .first = -3.9f,  \
        .step = 0.35f, .n_steps = 18                                                               \
    }

void ggl_q4_k_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = FORM(15);
    ggl_fit_blocks(ggl_fit_mins, &form, src, of, n, sizeof(struct block_q4_k), put_q4_k, dst);
}

void ggl_q5_k_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = FORM(31);
    ggl_fit_blocks(ggl_fit_mins, &form, src, of, n, sizeof(struct block_q5_k), put_q5_k, dst);
}
