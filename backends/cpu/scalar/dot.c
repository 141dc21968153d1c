/* docs/numeric.md, section 4: one weight row by one column, by type of weight. */
#include "scalar.h"

/* s[i mod 16] = fma(w[i], x[i], s[i mod 16]), the tree, and + 0: a zero is +0, so that kernels may
 * pad rows with zeros. */
float cpu_dot_f32(const float *w, const float *x, int64_t n) {
    float s[16] = {0};
    for (int64_t i = 0; i < n; i++)
        s[i % 16] = fmaf(w[i], x[i], s[i % 16]);
    return tree16(s) + 0.0f;
}

static float dot_f32(const void *w, const void *x, int64_t n) {
    return cpu_dot_f32(w, x, n);
}

static float dot_f16(const void *w, const void *column, int64_t n) {
    const uint16_t *h = w;
    const float *x = column;
    float s[16] = {0};
    for (int64_t i = 0; i < n; i++)
        s[i % 16] = fmaf(ggl_f16_to_f32(load16(h + i)), x[i], s[i % 16]);
    return tree16(s) + 0.0f;
}

static float dot_bf16(const void *w, const void *column, int64_t n) {
    const uint16_t *h = w;
    const float *x = column;
    float s[16] = {0};
    for (int64_t i = 0; i < n; i += 32, x += 32)
        for (int l = 0; l < 16; l++) {
            int64_t even = i + 2 * l, odd = even + 1;
            s[l] = fmaf(odd < n ? ggl_bf16_to_f32(load16(h + odd)) : 0.0f, x[l], s[l]);
            s[l] = fmaf(even < n ? ggl_bf16_to_f32(load16(h + even)) : 0.0f, x[16 + l], s[l]);
        }
    return tree16(s) + 0.0f;
}

/* | d: f16 | q[32]: i8 |, 34 bytes */
static float dot_q8_0(const void *w, const void *column, int64_t n) {
    const uint8_t *p = w;
    const cpu_qblock *x = column;
    float acc = 0.0f;
    for (int64_t i = 0; i < n; i += 32, p += 34, x++) {
        int32_t sum = 0;
        for (int j = 0; j < 32; j++)
            sum += (int8_t)p[2 + j] * x->q[j];
        acc = fmaf((float)sum * ggl_f16_to_f32(load16(p)), x->d, acc);
    }
    return acc;
}

/* | d: f16 | b[16] |, 18 bytes; the low half of b[j] is element j, the high half j + 16 */
static float dot_q4_0(const void *w, const void *column, int64_t n) {
    const uint8_t *p = w;
    const cpu_qblock *x = column;
    float acc = 0.0f;
    for (int64_t i = 0; i < n; i += 32, p += 18, x++) {
        int32_t sum = 0;
        for (int j = 0; j < 16; j++)
            sum += ((p[2 + j] & 15) - 8) * x->q[j] + ((p[2 + j] >> 4) - 8) * x->q[16 + j];
        acc = fmaf((float)sum * ggl_f16_to_f32(load16(p)), x->d, acc);
    }
    return acc;
}

#define ROWS(type)                                                                                 \
    static void rows_##type(float *y, const void *w, size_t row_size, int64_t n_rows,              \
                            const void *x, int64_t k) {                                            \
        for (int64_t j = 0; j < n_rows; j++)                                                       \
            y[j] = dot_##type((const char *)w + (size_t)j * row_size, x, k);                       \
    }
ROWS(f32)
ROWS(f16)
ROWS(bf16)
ROWS(q8_0)
ROWS(q4_0)

void cpu_kernels_dot(cpu_kernels *k) {
    k->product[GGL_F32] = (cpu_product){.columns = CPU_COLUMNS_F32, .rows = rows_f32};
    k->product[GGL_F16] = (cpu_product){.columns = CPU_COLUMNS_F32, .rows = rows_f16};
    k->product[GGL_BF16] = (cpu_product){.columns = CPU_COLUMNS_BF16, .rows = rows_bf16};
    k->product[GGL_Q8_0] = (cpu_product){.columns = CPU_COLUMNS_Q8, .rows = rows_q8_0};
    k->product[GGL_Q4_0] = (cpu_product){.columns = CPU_COLUMNS_Q8, .rows = rows_q4_0};
}
