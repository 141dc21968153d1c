/* docs/numeric.md, section 2: elementwise operators and the composites that are elementwise. */
#include "ggl/internal/math.h"
#include "ggl/internal/types.h"
#include "scalar.h"

#define UNARY(NAME, expression)                                                                    \
    static void unary_##NAME(float *y, const float *p, int64_t n) {                                \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float x = p[i];                                                                        \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }

static float gelu(float x) {
    float cube = (float)0.044715 * x * x * x;
    return 0.5f * x * (1.0f + ggl_tanhf(0x1.9884533d43651p-1f * (x + cube))); /* sqrt(2 / pi) */
}

static float softplus(float x) {
    return max_of(x, 0.0f) + ggl_logf(1.0f + ggl_expf(0.0f - fabsf(x)));
}

UNARY(EXP, ggl_expf(x))
UNARY(LOG, ggl_logf(x))
UNARY(SQRT, sqrtf(x))
UNARY(FLOOR, floorf(x))
UNARY(ABS, fabsf(x))
UNARY(TANH, ggl_tanhf(x))
UNARY(ERF, ggl_erff(x))
UNARY(SIGMOID, ggl_sigmoidf(x))
UNARY(SIN, (float)ggl_sin((double)x))
UNARY(COS, (float)ggl_cos((double)x))
UNARY(RELU, max_of(x, 0.0f))
UNARY(SILU, x *ggl_sigmoidf(x))
UNARY(GELU, gelu(x))
UNARY(GELU_ERF, 0.5f * x * (1.0f + ggl_erff(x / 0x1.6a09e667f3bcdp0f))) /* sqrt 2 */
UNARY(GELU_QUICK, x *ggl_sigmoidf((float)1.702 * x))
UNARY(SOFTPLUS, softplus(x))

#define BINARY(NAME, expression)                                                                   \
    static void binary_##NAME(float *y, const float *p, int step_a, const float *q, int step_b,    \
                              int64_t n) {                                                         \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = p[i * step_a], b = q[i * step_b];                                            \
            y[i] = (expression);                                                                   \
        }                                                                                          \
    }

static float modulo(float a, float b) {
    float whole = b * floorf(a / b);
    return a - whole;
}

BINARY(ADD, a + b)
BINARY(SUB, a - b)
BINARY(MUL, a *b)
BINARY(DIV, a / b)
BINARY(POW, (float)ggl_pow((double)a, (double)b))
BINARY(MOD, modulo(a, b))
BINARY(EQ, a == b)
BINARY(NE, a != b)
BINARY(LT, a < b)
BINARY(LE, a <= b)
BINARY(GT, a > b)
BINARY(GE, a >= b)
BINARY(MIN, min_of(a, b))
BINARY(MAX, max_of(a, b))

static void mul_add(float *y, const float *x, float a, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = x[i] * a;
        y[i] += p;
    }
}

static void f32_to_f16(uint16_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        y[i] = ggl_f32_to_f16(x[i]);
}

void ggl_cpu_kernels_elementwise(cpu_kernels *k) {
#define UNARY_SLOT(NAME, of, where)   k->unary[CPU_##NAME] = unary_##NAME;
#define BINARY_SLOT(NAME, where)      k->binary[CPU_##NAME] = binary_##NAME;
#define ELEMENT_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
    for (int i = 0; ggl_type_at(i); i++)
        k->to_f32[ggl_type_at(i)->type] = ggl_type_at(i)->to_float;
}
