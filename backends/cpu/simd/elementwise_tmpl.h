/* Elementwise kernels: docs/numeric.md, section 2. */
#include "functions.h"
#include "ggl/internal/types.h"

#define UNARY(NAME, expression)                                                                    \
    INLINE vf lanes_##NAME(vf x) {                                                                 \
        return (expression);                                                                       \
    }                                                                                              \
    static void unary_##NAME(float *y, const float *x, int64_t n) {                                \
        int64_t i = 0;                                                                             \
        for (; i + V_LANES <= n; i += V_LANES)                                                     \
            v_store(y + i, lanes_##NAME(v_load(x + i)));                                           \
        if (i < n)                                                                                 \
            v_store_n(y + i, lanes_##NAME(v_load_n(x + i, n - i)), n - i);                         \
    }

INLINE vf v_gelu(vf x) {
    vf cube = v_set((float)0.044715) * x * x * x;
    vf t = v_tanh(v_set(0x1.9884533d43651p-1f) * (x + cube));
    return v_set(0.5f) * x * (v_set(1.0f) + t);
}

INLINE vf v_gelu_erf(vf x) {
    vf t = v_erf(x / v_set(0x1.6a09e667f3bcdp0f));
    return v_set(0.5f) * x * (v_set(1.0f) + t);
}

INLINE vf v_softplus(vf x) {
    const vf zero = v_set(0.0f);
    return v_max_of(x, zero) + v_log(v_set(1.0f) + v_exp(zero - v_abs(x)));
}

UNARY(EXP, v_exp(x))
UNARY(LOG, v_log(x))
UNARY(SQRT, v_sqrt(x))
UNARY(FLOOR, v_floor(x))
UNARY(ABS, v_abs(x))
UNARY(TANH, v_tanh(x))
UNARY(ERF, v_erf(x))
UNARY(SIGMOID, v_sigmoid(x))
UNARY(RELU, v_max_of(x, v_set(0.0f)))
UNARY(SILU, x *v_sigmoid(x))
UNARY(GELU, v_gelu(x))
UNARY(GELU_ERF, v_gelu_erf(x))
UNARY(GELU_QUICK, x *v_sigmoid(v_set((float)1.702) * x))
UNARY(SOFTPLUS, v_softplus(x))

/* One loop, expanded for each combination of steps (0 or 1), which are constants in it. */
#define BINARY(NAME, expression)                                                                   \
    INLINE vf pair_##NAME(vf a, vf b) {                                                            \
        return (expression);                                                                       \
    }                                                                                              \
    INLINE void run_##NAME(float *y, const float *a, int step_a, const float *b, int step_b,       \
                           int64_t n) {                                                            \
        if (n <= 0)                                                                                \
            return;                                                                                \
        const vf first_a = v_set(a[0]), first_b = v_set(b[0]);                                     \
        int64_t i = 0;                                                                             \
        for (; i + V_LANES <= n; i += V_LANES)                                                     \
            v_store(y + i, pair_##NAME(step_a ? v_load(a + i) : first_a,                           \
                                       step_b ? v_load(b + i) : first_b));                         \
        if (i < n)                                                                                 \
            v_store_n(y + i,                                                                       \
                      pair_##NAME(step_a ? v_load_n(a + i, n - i) : first_a,                       \
                                  step_b ? v_load_n(b + i, n - i) : first_b),                      \
                      n - i);                                                                      \
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
#define COMPARE(a, how, b) ((vf)((vi)(a how b) & (vi)v_set(1.0f)))

BINARY(ADD, a + b)
BINARY(SUB, a - b)
BINARY(MUL, a *b)
BINARY(DIV, a / b)
BINARY(MOD, a - b * v_floor(a / b))
BINARY(EQ, COMPARE(a, ==, b))
BINARY(NE, COMPARE(a, !=, b))
BINARY(LT, COMPARE(a, <, b))
BINARY(LE, COMPARE(a, <=, b))
BINARY(GT, COMPARE(a, >, b))
BINARY(GE, COMPARE(a, >=, b))
BINARY(MIN, v_min_of(a, b))
BINARY(MAX, v_max_of(a, b))

static void mul_add(float *y, const float *x, float a, int64_t n) {
    int64_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES)
        v_store(y + i, v_load(y + i) + v_load(x + i) * v_set(a));
    for (; i < n; i++) {
        float p = x[i] * a;
        y[i] += p;
    }
}

static void f16_to_f32(const void *src, float *y, int64_t n) {
    const uint16_t *x = src;
    int64_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES)
        v_store(y + i, v_load_half(x + i));
    for (; i < n; i++)
        y[i] = ggl_f16_to_f32(x[i]);
}

static void f32_to_f16(uint16_t *y, const float *x, int64_t n) {
    int64_t i = 0;
    for (; i + V_LANES <= n; i += V_LANES)
        v_store_half(y + i, v_load(x + i));
    for (; i < n; i++)
        y[i] = ggl_f32_to_f16(x[i]);
}

static void fill_elementwise(cpu_kernels *k) {
#define UNARY_SLOT(NAME, of, where)   CPU_SET_##where(k->unary[CPU_##NAME], unary_##NAME)
#define BINARY_SLOT(NAME, where)      CPU_SET_##where(k->binary[CPU_##NAME], binary_##NAME)
#define ELEMENT_SLOT(name, fn, where) CPU_SET_##where(k->name, name)
#include "../slots.def"
    k->to_f32[GGL_F16] = f16_to_f32;
}
