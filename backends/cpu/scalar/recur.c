/* docs/numeric.md, section 7: one row of a recurrent state through one token. */
#include "scalar.h"

static float delta_row(float *s, const float *k, const float *q, int64_t n, float decay, float v,
                       float beta) {
    for (int64_t i = 0; i < n; i++)
        s[i] *= decay;
    float error = (v - cpu_dot_f32(s, k, n)) * beta;
    for (int64_t i = 0; i < n; i++) {
        float add = k[i] * error;
        s[i] += add;
    }
    return cpu_dot_f32(s, q, n);
}

static float scan_row(float *s, const float *b, const float *c, int64_t n, float decay, float u) {
    for (int64_t i = 0; i < n; i++) {
        float left = s[i] * decay, add = b[i] * u;
        s[i] = left + add;
    }
    return cpu_dot_f32(s, c, n);
}

void cpu_kernels_recur(cpu_kernels *k) {
    k->delta_row = delta_row;
    k->scan_row = scan_row;
}
