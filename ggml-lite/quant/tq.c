/* tq1_0, tq2_0, q2_0, pq2_0 and ptq1_0: -1, 0 or 1 times an f16 scale for each 256, 64 or 128, and iq2_bn, with one
 * scale for each row; for models that are trained with such weights (BitNet b1.58). Blocks: blocks.h. */
#include <math.h>
#include <string.h>

#include "k_quants.h"

/* Returns trit t of a byte, less 1: the trits are the digits of byte / 256 in base 3. */
static int8_t trit(uint8_t byte, int t) {
    static const uint8_t pow3[5] = {1, 3, 9, 27, 81};
    return (int8_t)(((byte * pow3[t] & 255) * 3 >> 8) - 1);
}

/* Packs five trits (0 .. 2), n of them given, into a byte, rounded up so that trit() recovers
 * them. */
static uint8_t pack_trits(const uint8_t *code, int stride, int n) {
    int v = 0;
    for (int t = 0; t < 5; t++)
        v = 3 * v + (t < n ? code[t * stride] : 0);
    return (uint8_t)((v * 256 + 242) / 243);
}

void ggl_tq1_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_tq1_0 *b = block;
    quant_scale(out, quant_f16(b->d));
    for (int j = 0; j < 32; j++) {
        int i = 32 * k + j;
        out->q[j] = i < 160   ? trit(b->b[j], k)
                    : i < 240 ? trit(b->b[32 + (i - 160) % 16], (i - 160) / 16)
                              : trit(b->h[(i - 240) % 4], (i - 240) / 4);
    }
}

void ggl_tq2_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_tq2_0 *b = block;
    quant_scale(out, quant_f16(b->d));
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)((int)quant_2bits(b->b, k, j) - 1);
}

void ggl_ptq1_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_ptq1_0 *b = block;
    quant_scale(out, quant_f16(b->d));
    for (int j = 0; j < 32; j++) {
        int i = 32 * k + j;
        out->q[j] = i < 80    ? trit(b->b[i % 16], i / 16)
                    : i < 120 ? trit(b->b[16 + i % 8], (i - 80) / 8)
                              : trit(b->h[i % 2], (i - 120) / 2);
    }
}

void ggl_iq2_bn_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_iq2_bn *b = block;
    quant_scale(out, 1.0f);
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)((b->b[j % 16] >> (4 * k + 2 * (j / 16)) & 3) - 1);
}

/* Run k of a block of codes of two bits, four in a byte. */
static void unpack_quarters(const uint8_t *d, const uint8_t *b, int k, ggl_codes *out) {
    quant_scale(out, quant_f16(d));
    for (int j = 0; j < 32; j++)
        out->q[j] = (int8_t)((b[8 * k + j / 4] >> j % 4 * 2 & 3) - 1);
}

void ggl_pq2_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_pq2_0 *b = block;
    unpack_quarters(b->d, b->b, k, out);
}

void ggl_q2_0_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_q2_0 *b = block;
    unpack_quarters(b->d, b->b, k, out);
}

/* ggml's published encoders (quantize_row_tq1_0_ref, quantize_row_tq2_0_ref and
 * quantize_row_q2_0_ref): d = max|x|, code = round(x/d) + 1, half away from zero; so none makes a
 * code of 3. If 1/d overflows, all elements become 0. Returns d, which may be NaN. */
static float encode(const float *x, uint8_t *code, int n) {
    float d = fabsf(quant_extreme(x, n)), id = d != 0.0f ? 1.0f / d : 0.0f;
    for (int i = 0; i < n; i++)
        code[i] = (uint8_t)(isfinite(id) ? (int)roundf(x[i] * id) + 1 : 1);
    return d;
}

void ggl_tq1_0_from_float(const float *src, void *dst, int64_t n) {
    struct block_tq1_0 *b = dst;
    for (int64_t i = 0; i < n / K_BLOCK; i++, b++, src += K_BLOCK) {
        uint8_t code[K_BLOCK];
        quant_put_f16(b->d, encode(src, code, K_BLOCK));
        for (int j = 0; j < 32; j++)
            b->b[j] = pack_trits(code + j, 32, 5);
        for (int j = 0; j < 16; j++)
            b->b[32 + j] = pack_trits(code + 160 + j, 16, 5);
        for (int j = 0; j < 4; j++)
            b->h[j] = pack_trits(code + 240 + j, 4, 4);
    }
}

void ggl_tq2_0_from_float(const float *src, void *dst, int64_t n) {
    struct block_tq2_0 *b = dst;
    for (int64_t i = 0; i < n / K_BLOCK; i++, b++, src += K_BLOCK) {
        uint8_t code[K_BLOCK];
        quant_put_f16(b->d, encode(src, code, K_BLOCK));
        quant_put_2bits(b->b, code);
    }
}

void ggl_q2_0_from_float(const float *src, void *dst, int64_t n) {
    enum { BLOCK = 64 };
    struct block_q2_0 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        uint8_t code[BLOCK];
        quant_put_f16(b->d, encode(src, code, BLOCK));
        for (int j = 0; j < BLOCK / 4; j++)
            b->b[j] = (uint8_t)(code[4 * j] | code[4 * j + 1] << 2 | code[4 * j + 2] << 4 |
                                code[4 * j + 3] << 6);
    }
}
