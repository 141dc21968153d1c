/* Functions of one number. The including file declares KIND, which of them (kinds.h). */
#include "functions.glsl"
#include "kinds.h"

float unary(float x) {
    switch (KIND) {
    case EW_EXP: return exp_of(x);
    case EW_LOG: return log_of(x);
    case EW_SQRT: return sqrt_of(x);
    case EW_FLOOR: return is_nan(x) ? x : floor(x);
    case EW_ABS: return uintBitsToFloat(floatBitsToUint(x) & 0x7fffffffu);
    case EW_TANH: return tanh_of(x);
    case EW_ERF: return erf_of(x);
    case EW_SIGMOID: return sigmoid_of(x);
    case EW_SIN: return sin_of(x);
    case EW_COS: return cos_of(x);
    case EW_RELU: return max_of(x, 0.0);
    case EW_SILU: return x * sigmoid_of(x);
    case EW_GELU: return 0.5 * x * (1.0 + tanh_of(0.797884561 * (x + 0.044715 * x * x * x)));
    case EW_GELU_ERF: return 0.5 * x * (1.0 + erf_of(x * 0.707106781));
    case EW_GELU_QUICK: return x * sigmoid_of(1.702 * x);
    default: return max_of(x, 0.0) + log_of(1.0 + exp_of(-abs(x))); /* EW_SOFTPLUS */
    }
}
