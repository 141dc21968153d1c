/* docs/numeric.md, section 4: how columns are prepared for products with bf16 and quantized
 * weights. */
#include "scalar.h"
#include "ggl/internal/types.h"

static void quantize_block(cpu_qblock *y, const float *x) {
    uint32_t largest = 0;
    for (int i = 0; i < CPU_QBLOCK; i++) {
        uint32_t u = float_bits(x[i]) & 0x7fffffff;
        largest = u > largest ? u : largest;
    }
    *y = (cpu_qblock){0};
    float m = float_of(largest);
    if (largest >= 0x7f800000) {
        y->d = y->scaled_sum = NAN;
        return;
    }
    if (m < 0x1p-100f)
        return;
    y->d = m / 127.0f;
    float id = 127.0f / m;
    for (int i = 0; i < CPU_QBLOCK; i++) {
        y->q[i] = (int8_t)rintf(x[i] * id);
        y->half[i / 16] = (int16_t)(y->half[i / 16] + y->q[i]);
    }
    y->sum = y->half[0] + y->half[1];
    y->scaled_sum = y->d * (float)y->sum;
}

static void quantize(cpu_qblock *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += CPU_QBLOCK)
        quantize_block(y++, x + i);
}

static float to_bf16(float x) {
    return cut_bf16(ggl_bf16_to_f32(ggl_f32_to_bf16(x)));
}

/* Stores the odd elements of each 32 first, then the even ones: in this order, the f32 rule of
 * products is the bf16 rule. */
static void round_bf16(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 32, y += 32)
        for (int l = 0; l < 16; l++) {
            y[l] = i + 2 * l + 1 < n ? to_bf16(x[i + 2 * l + 1]) : 0.0f;
            y[16 + l] = i + 2 * l < n ? to_bf16(x[i + 2 * l]) : 0.0f;
        }
}

static void round_bf16_pairs(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < (n + 31) / 32 * 32; i++)
        y[i] = i < n ? ggl_f32_to_bf16(to_bf16(x[i])) : 0;
}

void ggl_cpu_kernels_quantize(cpu_kernels *k) {
#define COLUMN_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
