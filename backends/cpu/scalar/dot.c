/* docs/numeric.md, section 4: one weight row by one column, by type of weight. */
#include "scalar.h"
#include "ggl/internal/types.h"

/* s[i mod 16] = fma(w[i], x[i], s[i mod 16]); then the tree of sums, plus 0. The last makes a zero
 * +0, so that kernels may pad rows with zeros. Four sums at a time stay in registers, of which small
 * processors have few. */
#define DOT(WEIGHT)                                                                                \
    float s[16] = {0};                                                                             \
    const int64_t whole = n / 16 * 16;                                                             \
    for (int64_t l = 0; l < 16 && whole > 0; l += 4) {                                             \
        float s0 = 0, s1 = 0, s2 = 0, s3 = 0;                                                      \
        for (int64_t i = l; i < whole; i += 16) {                                                  \
            s0 = fused_float(WEIGHT(i), x[i], s0);                                                 \
            s1 = fused_float(WEIGHT(i + 1), x[i + 1], s1);                                         \
            s2 = fused_float(WEIGHT(i + 2), x[i + 2], s2);                                         \
            s3 = fused_float(WEIGHT(i + 3), x[i + 3], s3);                                         \
        }                                                                                          \
        s[l] = s0, s[l + 1] = s1, s[l + 2] = s2, s[l + 3] = s3;                                    \
    }                                                                                              \
    for (int64_t i = whole; i < n; i++)                                                            \
        s[i - whole] = fused_float(WEIGHT(i), x[i], s[i - whole]);                                 \
    return tree16(s) + 0.0f;

float ggl_cpu_dot_f32(const float *w, const float *x, int64_t n) {
#define WEIGHT(i) w[i]
    DOT(WEIGHT)
#undef WEIGHT
}

static float dot_f32(const void *w, const void *x, int64_t n) {
    return ggl_cpu_dot_f32(w, x, n);
}

/* Boards may have an instruction for this. */
#ifndef SCALAR_HALF
#define SCALAR_HALF ggl_f16_to_f32
#endif

static float dot_f16(const void *w, const void *column, int64_t n) {
    const uint16_t *h = w;
    const float *x = column;
#define WEIGHT(i) SCALAR_HALF(load16(h + (i)))
    DOT(WEIGHT)
#undef WEIGHT
}

static float dot_f8_e4m3(const void *w, const void *column, int64_t n) {
    const uint8_t *h = w;
    const float *x = column;
#define WEIGHT(i) ggl_f8_e4m3_to_f32(h[i])
    DOT(WEIGHT)
#undef WEIGHT
}

/* Returns element i; 0 from element n on. */
static float weight_bf16(const uint16_t *w, int64_t i, int64_t n) {
    return i < n ? cut_bf16(ggl_bf16_to_f32(load16(w + i))) : 0.0f;
}

static float dot_bf16(const void *w, const void *column, int64_t n) {
    const uint16_t *h = w;
    const float *x = column;
    float s[16] = {0};
    for (int64_t i = 0; i < n; i += 32, x += 32)
        for (int l = 0; l < 16; l++) {
            s[l] = fused_float(weight_bf16(h, i + 2 * l + 1, n), x[l], s[l]);
            s[l] = fused_float(weight_bf16(h, i + 2 * l, n), x[16 + l], s[l]);
        }
    return tree16(s) + 0.0f;
}

/* For each 32 elements, in order: the exact integer sums of both halves, scaled by the rule of the
 * type's form, and added to the chain acc. FUSED_FLOAT: calls between calls of unpack are quicker than
 * a look at what the processor has. */
static float dot_quantized(const ggl_type_info *t, const void *w, const void *column, int64_t n) {
    const char *p = (const char *)w + t->row_meta;
    const float row = ggl_row_scale(t, w);
    const cpu_qblock *x = column;
    const bool halves = t->form == GGL_SCALE16 || t->form == GGL_SCALE16_MIN;
    float acc = 0.0f;
    for (int64_t i = 0; i < n; i += 32, x++) {
        const int k = (int)(i % t->block / 32);
        ggl_codes c;
        int32_t sum[2] = {0, 0};
        t->unpack(p, k, &c);
        c.s[0] *= row, c.s[1] *= row;
        for (int j = 0; j < 32; j++)
            sum[j / 16] += c.q[j] * x->q[j];
        float part = halves ? FUSED_FLOAT((float)sum[1], c.s[1], (float)sum[0] * c.s[0])
                            : (float)(sum[0] + sum[1]) * c.s[0];
        for (int h = 0; t->form == GGL_SCALE16_MIN && h < 2; h++)
            part = FUSED_FLOAT(-c.m[h], (float)x->half[h], part);
        acc = FUSED_FLOAT(part, x->d, acc);
        if (t->form == GGL_SCALE_MIN)
            acc = FUSED_FLOAT(-c.m[0], x->scaled_sum, acc);
        p += (i + 32) % t->block == 0 ? t->size : 0;
    }
    return acc;
}

#define ROWS(type, dot)                                                                            \
    static void rows_##type(float *const *y, const void *const *x, int n_cols, const void *w,      \
                            size_t row_size, int64_t n_rows, int64_t k) {                          \
        for (int c = 0; c < n_cols; c++)                                                           \
            for (int64_t j = 0; j < n_rows; j++)                                                   \
                y[c][j] = dot((const char *)w + (size_t)j * row_size, x[c], k);                    \
    }
ROWS(f32, dot_f32)
ROWS(f16, dot_f16)
ROWS(bf16, dot_bf16)
ROWS(f8_e4m3, dot_f8_e4m3)
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    static float dot_##name(const void *w, const void *x, int64_t n) {                             \
        return dot_quantized(ggl_type_get(GGL_##NAME), w, x, n);                                   \
    }                                                                                              \
    ROWS(name, dot_##name)
#define QUANT_READ QUANT
#include "ggl/types.def"

void ggl_cpu_kernels_dot(cpu_kernels *k) {
    k->product[GGL_F32] = (cpu_product){.columns = CPU_COLUMNS_F32, .rows = rows_f32};
    k->product[GGL_F16] = (cpu_product){.columns = CPU_COLUMNS_F32, .rows = rows_f16};
    k->product[GGL_BF16] = (cpu_product){.columns = CPU_COLUMNS_BF16, .rows = rows_bf16};
    k->product[GGL_F8_E4M3] = (cpu_product){.columns = CPU_COLUMNS_F32, .rows = rows_f8_e4m3};
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    k->product[GGL_##NAME] = (cpu_product){.columns = CPU_COLUMNS_Q8, .rows = rows_##name};
#define QUANT_READ QUANT
#include "ggl/types.def"
}
