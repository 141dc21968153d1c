/* mxfp4: 4-bit floats with a common power of two. Codes are the doubled values, so that they are
 * integers, and the scale is half the power of two. Block: blocks.h. */
#include <math.h>

#include "quant.h"
#include "search.h"

enum { BLOCK = 32 };

static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Returns 2^(e - 128). The format's standard defines e = 255 as NaN; ggml does not, and files are
 * read as ggml reads them. */
static float half_scale(uint8_t e) {
    return ldexpf(1.0f, e - 128);
}

void ggl_mxfp4_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_mxfp4 *b = block;
    (void)k;
    quant_scale(out, half_scale(b->e));
    for (int j = 0; j < BLOCK / 2; j++) {
        out->q[j] = doubled[b->b[j] & 15];
        out->q[j + BLOCK / 2] = doubled[b->b[j] >> 4];
    }
}

/* Returns the code whose value is nearest to x, the first of several. */
static uint8_t nearest_code(float x, float d) {
    int best = 0;
    float least = fabsf((float)doubled[0] * d - x);
    for (int i = 1; i < 16; i++) {
        float error = fabsf((float)doubled[i] * d - x);
        if (error < least) {
            best = i;
            least = error;
        }
    }
    return (uint8_t)best;
}

/* Returns the exponent e = floor(log2(x)) + 125, at least 0; so the largest element x is in
 * 2^(e - 127) * [4, 8). The logarithm is rounded to f32, so just below a power of two it is that of
 * the power. */
static uint8_t exponent_of(float x) {
    float e = floorf((float)log2((double)x)) + 125.0f;
    return (uint8_t)(e > 0.0f ? e : 0.0f);
}

/* ggml's published encoder (quantize_row_mxfp4_ref). An infinity or NaN in a block makes the whole
 * block infinite, because the format as ggml reads it has no NaN. */
void ggl_mxfp4_from_float(const float *src, void *dst, int64_t n) {
    struct block_mxfp4 *b = dst;
    for (int64_t i = 0; i < n / BLOCK; i++, b++, src += BLOCK) {
        float extreme = quant_extreme(src, BLOCK);
        uint8_t code[BLOCK];
        b->e = isnan(extreme) ? 255 : extreme == 0.0f ? 0 : exponent_of(fabsf(extreme));
        for (int j = 0; j < BLOCK; j++)
            code[j] = isnan(extreme) ? 7 : nearest_code(src[j], half_scale(b->e));
        quant_put_nibbles(b->b, code);
    }
}
