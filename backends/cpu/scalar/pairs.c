/* docs/numeric.md, section 4: products of gradients in bf16. */
#include "scalar.h"
#include "ggl/internal/types.h"

/* A multiple of 2^-126, to nearest even: beyond 2^-103, every f32 is one, and 2^-103 more makes any other one lose what is less. */
static float to_multiple(float x) {
    const float c = copysignf(0x1p-103f, x);
    return fabsf(x) < 0x1p-103f ? (x + c) - c : x;
}

static float first_of(uint32_t pair) {
    return float_of(pair & 0xffff0000);
}

static float second_of(uint32_t pair) {
    return float_of(pair << 16);
}

static void chain_pairs(float *const *y, int n_y, const uint32_t *a, int64_t a_step,
                        const uint32_t *const *b, int64_t b_step, int64_t k, int64_t n) {
    for (int c = 0; c < n_y; c++) {
        for (int64_t i = 0; i < n; i++)
            y[c][i] = to_multiple(y[c][i]);
        for (int64_t e = 0; e < k; e++)
            for (int64_t i = 0; i < n; i++) {
                const uint32_t p = a[e * a_step + i], q = b[c][e * b_step];
                y[c][i] = fused_float(first_of(p), first_of(q), y[c][i]);
                y[c][i] = fused_float(second_of(p), second_of(q), y[c][i]);
            }
    }
}

static uint32_t pair(float first, float second) {
    return float_bits(cut_bf16(first)) | float_bits(cut_bf16(second)) >> 16;
}

static float rounded(float x) {
    return ggl_bf16_to_f32(ggl_f32_to_bf16(x));
}

static void pair_rows(uint32_t *y, const float *first, const float *second, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = pair(rounded(first[i]), second ? rounded(second[i]) : 0.0f);
}

static void pair_bf16_rows(uint32_t *y, const uint16_t *first, const uint16_t *second, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = pair(ggl_bf16_to_f32(load16(first + i)),
                    second ? ggl_bf16_to_f32(load16(second + i)) : 0.0f);
}

static void pair_up(uint32_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 2)
        y[i / 2] = pair(rounded(x[i]), i + 1 < n ? rounded(x[i + 1]) : 0.0f);
}

void ggl_cpu_kernels_pairs(cpu_kernels *k) {
#define PAIR_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
