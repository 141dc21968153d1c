/* Functions that the portable kernels share. */
#ifndef CPU_SCALAR_H
#define CPU_SCALAR_H

#include <math.h>
#include <string.h>

#include "../kernels.h"
#include "../../../ggml-lite/base/fused.h"
#include "../../../ggml-lite/base/number_bits.h"
#include "../../../ggml-lite/quant/load.h"

/* Adds up sixteen running sums, in the tree order of docs/numeric.md. */
static inline float tree16(float s[16]) {
    for (int step = 8; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            s[i] += s[i + step];
    return s[0];
}

/* Returns the larger (smaller) one: NaN if either is NaN, b if they are equal. */
static inline float max_of(float a, float b) {
    return a > b || a != a ? a : b;
}

static inline float min_of(float a, float b) {
    return a < b || a != a ? a : b;
}

/* Returns a bf16 number as products use it: 0 below 2^-56 (docs/numeric.md, section 4). */
static inline float cut_bf16(float x) {
    return fabsf(x) < 0x1p-56f ? 0.0f : x;
}

/* The f32 rule for products: sixteen sums of fused multiply-adds. */
float ggl_cpu_dot_f32(const float *w, const float *x, int64_t n);

#endif
