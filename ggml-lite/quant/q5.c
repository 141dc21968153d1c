/* q5_0 and q5_1: 5 bits, the fifth stored apart from the others. q5_0 is symmetric around code 16,
 * q5_1 has a minimum. Blocks: blocks.h. */
#include <math.h>

#include "quant.h"
#include "block_rows.h"
#include "search.h"

enum { BLOCK = 32, HALF = BLOCK / 2, TOP = 31 };

static void unpack_codes(const uint8_t b[16], const uint8_t high[4], int offset, int8_t q[32]) {
    uint32_t h = quant_u32(high);
    for (int j = 0; j < HALF; j++) {
        q[j] = (int8_t)((int)((b[j] & 15) | (h >> j & 1) << 4) - offset);
        q[j + HALF] = (int8_t)((int)(b[j] >> 4 | (h >> (j + HALF) & 1) << 4) - offset);
    }
}

static void pack_codes(const uint8_t code[32], uint8_t b[16], uint8_t high[4]) {
    uint8_t low[BLOCK];
    memset(high, 0, 4);
    for (int j = 0; j < BLOCK; j++) {
        low[j] = code[j] & 15;
        high[j / 8] |= (uint8_t)(code[j] >> 4 << j % 8);
    }
    quant_put_nibbles(b, low);
}

void ggl_q5_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q5_0 *b = block;
    (void)k;
    quant_scale(out, quant_f16(b->d));
    unpack_codes(b->b, b->h, 16, out->q);
}

/* ggml's published encoder (quantize_row_q5_0_ref), which is like that of q4_0 (see there):
 * d = extreme / -16, q = x/d + 16.5 truncated, and 32 clamped to 31. */
void ggl_q5_0_from_float(const float *src, void *dst, int64_t n) {
    struct block_q5_0 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        float d = quant_extreme(src, BLOCK) / -16.0f;
        float id = d != 0.0f ? 1.0f / d : 0.0f;
        uint8_t code[BLOCK];
        for (int j = 0; j < BLOCK; j++)
            code[j] =
                (uint8_t)(isfinite(id) ? quant_clamp((int)(src[j] * id + 16.5f), 0, TOP) : 16);
        quant_put_f16(b->d, d);
        pack_codes(code, b->b, b->h);
    }
}

void ggl_q5_1_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q5_1 *b = block;
    (void)k;
    quant_scale_min(out, quant_f16(b->d), -quant_f16(b->m));
    unpack_codes(b->b, b->h, 0, out->q);
}

/* ggml's published encoder (quantize_row_q5_1_ref): like that of q4_1, with 32 steps. */
void ggl_q5_1_from_float(const float *src, void *dst, int64_t n) {
    struct block_q5_1 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        quant_steps s = ggl_quant_even_steps(src, BLOCK, TOP);
        uint8_t code[BLOCK];
        for (int j = 0; j < BLOCK; j++)
            code[j] = (uint8_t)quant_step_of(&s, src[j], TOP);
        quant_put_f16(b->d, s.d);
        quant_put_f16(b->m, s.min);
        pack_codes(code, b->b, b->h);
    }
}

/* --- with importance -------------------------------------------------------------------------- */

static void put_q5_0(const fit_rows *rows, int l, void *dst, int64_t block) {
    struct block_q5_0 *b = (struct block_q5_0 *)dst + block;
    quant_put_f16(b->d, rows->d[l]);
    pack_codes(rows->code + BLOCK * l, b->b, b->h);
}

void ggl_q5_0_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {
        .n = BLOCK, .low = -16, .high = 15, .first = -0.9f, .step = 0.2f, .n_steps = 14};
    ggl_fit_rows(ggl_fit_rows_scales, &form, src, of, n, put_q5_0, dst);
}

static void put_q5_1(const fit_rows *rows, int l, void *dst, int64_t block) {
    struct block_q5_1 *b = (struct block_q5_1 *)dst + block;
    quant_put_f16(b->d, rows->d[l]);
    quant_put_f16(b->m, rows->m[l]);
    pack_codes(rows->code + BLOCK * l, b->b, b->h);
}

void ggl_q5_1_from_float_weighted(const float *src, const ggl_importance *of, void *dst,
                                  int64_t n) {
    static const fit_form form = {
        .n = BLOCK, .high = TOP, .first = -3.9f, .step = 0.35f, .n_steps = 18};
    ggl_fit_rows(ggl_fit_rows_mins, &form, src, of, n, put_q5_1, dst);
}
