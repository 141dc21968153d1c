/* Elementwise kernels, 8 lanes at a time; the last lanes by masked loads and stores. */
#include "avx2.h"

#define UNARY(NAME, expression)                                                                    \
    INLINE __m256 lanes_##NAME(__m256 x) {                                                         \
        return (expression);                                                                       \
    }                                                                                              \
    static void unary_##NAME(float *y, const float *x, int64_t n) {                                \
        int64_t i = 0;                                                                             \
        for (; i + 8 <= n; i += 8)                                                                 \
            _mm256_storeu_ps(y + i, lanes_##NAME(_mm256_loadu_ps(x + i)));                         \
        if (i < n) {                                                                               \
            __m256i m = mask8(n - i);                                                              \
            _mm256_maskstore_ps(y + i, m, lanes_##NAME(_mm256_maskload_ps(x + i, m)));             \
        }                                                                                          \
    }

INLINE __m256 gelu8(__m256 x) {
    __m256 cube = _mm256_mul_ps(_mm256_mul_ps(_mm256_mul_ps(set8((float)0.044715), x), x), x);
    __m256 t = tanh8(_mm256_mul_ps(set8(0x1.9884533d43651p-1f), _mm256_add_ps(x, cube)));
    return _mm256_mul_ps(_mm256_mul_ps(set8(0.5f), x), _mm256_add_ps(set8(1.0f), t));
}

INLINE __m256 gelu_erf8(__m256 x) {
    __m256 t = erf8(_mm256_div_ps(x, set8(0x1.6a09e667f3bcdp0f)));
    return _mm256_mul_ps(_mm256_mul_ps(set8(0.5f), x), _mm256_add_ps(set8(1.0f), t));
}

INLINE __m256 softplus8(__m256 x) {
    __m256 e = exp8(_mm256_sub_ps(set8(0.0f), abs8(x)));
    return _mm256_add_ps(max8(x, set8(0.0f)), log8(_mm256_add_ps(set8(1.0f), e)));
}

UNARY(EXP, exp8(x))
UNARY(LOG, log8(x))
UNARY(SQRT, _mm256_sqrt_ps(x))
UNARY(FLOOR, _mm256_floor_ps(x))
UNARY(ABS, abs8(x))
UNARY(TANH, tanh8(x))
UNARY(ERF, erf8(x))
UNARY(SIGMOID, sigmoid8(x))
UNARY(RELU, max8(x, set8(0.0f)))
UNARY(SILU, _mm256_mul_ps(x, sigmoid8(x)))
UNARY(GELU, gelu8(x))
UNARY(GELU_ERF, gelu_erf8(x))
UNARY(GELU_QUICK, _mm256_mul_ps(x, sigmoid8(_mm256_mul_ps(set8((float)1.702), x))))
UNARY(SOFTPLUS, softplus8(x))

/* One loop for all three forms: the steps are 0 or 1, and which is known outside the loop. */
#define BINARY(NAME, expression)                                                                   \
    INLINE __m256 pair_##NAME(__m256 a, __m256 b) {                                                \
        return (expression);                                                                       \
    }                                                                                              \
    INLINE void run_##NAME(float *y, const float *a, int step_a, const float *b, int step_b,       \
                           int64_t n) {                                                            \
        if (n <= 0)                                                                                \
            return;                                                                                \
        const __m256 first_a = set8(a[0]), first_b = set8(b[0]);                                   \
        int64_t i = 0;                                                                             \
        for (; i + 8 <= n; i += 8)                                                                 \
            _mm256_storeu_ps(y + i, pair_##NAME(step_a ? _mm256_loadu_ps(a + i) : first_a,         \
                                                step_b ? _mm256_loadu_ps(b + i) : first_b));       \
        if (i < n) {                                                                               \
            __m256i m = mask8(n - i);                                                              \
            _mm256_maskstore_ps(y + i, m,                                                          \
                                pair_##NAME(step_a ? _mm256_maskload_ps(a + i, m) : first_a,       \
                                            step_b ? _mm256_maskload_ps(b + i, m) : first_b));     \
        }                                                                                          \
    }                                                                                              \
    static void binary_##NAME(float *y, const float *a, int step_a, const float *b, int step_b,    \
                              int64_t n) {                                                         \
        if (step_a && step_b)                                                                      \
            run_##NAME(y, a, 1, b, 1, n);                                                          \
        else if (step_a)                                                                           \
            run_##NAME(y, a, 1, b, 0, n);                                                          \
        else                                                                                       \
            run_##NAME(y, a, 0, b, step_b, n);                                                     \
    }
#define COMPARE(a, b, how) _mm256_and_ps(_mm256_cmp_ps(a, b, how), set8(1.0f))

BINARY(ADD, _mm256_add_ps(a, b))
BINARY(SUB, _mm256_sub_ps(a, b))
BINARY(MUL, _mm256_mul_ps(a, b))
BINARY(DIV, _mm256_div_ps(a, b))
BINARY(MOD, _mm256_sub_ps(a, _mm256_mul_ps(b, _mm256_floor_ps(_mm256_div_ps(a, b)))))
BINARY(EQ, COMPARE(a, b, _CMP_EQ_OQ))
BINARY(NE, COMPARE(a, b, _CMP_NEQ_UQ))
BINARY(LT, COMPARE(a, b, _CMP_LT_OQ))
BINARY(LE, COMPARE(a, b, _CMP_LE_OQ))
BINARY(GT, COMPARE(a, b, _CMP_GT_OQ))
BINARY(GE, COMPARE(a, b, _CMP_GE_OQ))
BINARY(MIN, min8(a, b))
BINARY(MAX, max8(a, b))

static void mul_add(float *y, const float *x, float a, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 p = _mm256_mul_ps(_mm256_loadu_ps(x + i), set8(a));
        _mm256_storeu_ps(y + i, _mm256_add_ps(_mm256_loadu_ps(y + i), p));
    }
    for (; i < n; i++) {
        float p = x[i] * a;
        y[i] += p;
    }
}

static void f16_to_f32(const void *src, float *y, int64_t n) {
    const uint16_t *x = src;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, load_half(x + i));
    for (; i < n; i++)
        y[i] = ggl_f16_to_f32(x[i]);
}

static void f32_to_f16(uint16_t *y, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(y + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; i++)
        y[i] = ggl_f32_to_f16(x[i]);
}

void cpu_kernels_elementwise_avx2(cpu_kernels *k) {
#define X(NAME) k->unary[CPU_##NAME] = unary_##NAME;
    X(EXP)
    X(LOG)
    X(SQRT)
    X(FLOOR) X(ABS) X(TANH) X(ERF) X(SIGMOID) X(RELU) X(SILU) X(GELU) X(GELU_ERF) X(GELU_QUICK)
        X(SOFTPLUS)
#undef X
#define X(NAME) k->binary[CPU_##NAME] = binary_##NAME;
            X(ADD) X(SUB) X(MUL) X(DIV) X(MOD) X(EQ) X(NE) X(LT) X(LE) X(GT) X(GE) X(MIN) X(MAX)
#undef X
                k->mul_add = mul_add;
    k->to_f32[GGL_F16] = f16_to_f32;
    k->f32_to_f16 = f32_to_f16;
}
