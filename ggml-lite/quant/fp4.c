/* mxfp4 and nvfp4: 4-bit floats with a common scale, a power of two or a float of 8 bits. Codes are
 * the doubled values, so that they are integers, and the scale is half of what is stored. Blocks:
 * blocks.h. */
#include <math.h>
#include <string.h>

#include "quant.h"
#include "search.h"

enum { BLOCK = 32 };

static const int8_t doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

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

/* --- mxfp4 ------------------------------------------------------------------------------------ */

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

/* --- nvfp4 ------------------------------------------------------------------------------------ */

enum { RUN = 16, RUNS = 4 };

/* Returns half of the float | exponent: 4 bits | mantissa: 3 bits |, with a bias of 7. 0x7f, which
 * is NaN elsewhere, is 0 here, as ggml reads it. */
static float half_ue4m3(uint8_t e) {
    int exponent = e >> 3 & 15, mantissa = e & 7;
    if (e == 0x7f)
        return 0.0f;
    return ldexpf((float)(exponent ? 8 + mantissa : mantissa), (exponent ? exponent : 1) - 11);
}

/* Returns the number of 8 bits for x, rounded half up. Numbers from 256 on become the largest,
 * 448, as ggml's encoder has it. */
static uint8_t ue4m3_of(float x) {
    enum { LARGEST = 0x7e };
    uint32_t u;
    if (!(x > 0.0f))
        return 0;
    if (x < 0x1p-6f) { /* multiples of 2^-9 */
        int m = (int)(x * 512.0f + 0.5f);
        return (uint8_t)(m < 7 ? m : 7);
    }
    if (x >= 256.0f)
        return LARGEST;
    memcpy(&u, &x, sizeof u);
    u = ((u + (1u << 19)) >> 20) - (120u << 3); /* 120: the difference of the biases */
    return (uint8_t)(u < 15u << 3 ? u : LARGEST);
}

void ggl_nvfp4_unpack(const void *block, int k, ggl_codes *out) {
    const struct block_nvfp4 *b = block;
    quant_scales(out, half_ue4m3(b->e[2 * k]), half_ue4m3(b->e[2 * k + 1]));
    for (int h = 0; h < 2; h++)
        for (int j = 0; j < RUN / 2; j++) {
            uint8_t two = b->b[RUN * k + RUN / 2 * h + j];
            out->q[RUN * h + j] = doubled[two & 15];
            out->q[RUN * h + RUN / 2 + j] = doubled[two >> 4];
        }
}

/* ggml's published encoder (quantize_row_nvfp4_ref): the scale of 16 elements is max|x| / 6, and
 * each gets the nearest code. The format has no NaN and no infinity: what is not finite becomes
 * 0. */
void ggl_nvfp4_from_float(const float *src, void *dst, int64_t n) {
    struct block_nvfp4 *b = dst;
    for (int64_t i = 0; i < n / RUN; i++, src += RUN) {
        uint8_t *two = b[i / RUNS].b + RUN / 2 * (i % RUNS);
        float most = 0.0f, d;
        for (int j = 0; j < RUN; j++)
            most = fabsf(src[j]) > most ? fabsf(src[j]) : most;
        b[i / RUNS].e[i % RUNS] = ue4m3_of(most / 6.0f);
        d = half_ue4m3(b[i / RUNS].e[i % RUNS]);
        for (int j = 0; j < RUN / 2; j++)
            two[j] = (uint8_t)(nearest_code(src[j], d) | nearest_code(src[RUN / 2 + j], d) << 4);
    }
}
