/* docs/numeric.md, section 3: sums and the largest of a row. */
#include "scalar.h"

static float sum(const float *x, int64_t n) {
    float s[16] = {0};
    for (int64_t i = 0; i < n; i++)
        s[i % 16] += x[i];
    return tree16(s);
}

static float sum_squares(const float *x, int64_t n) {
    float s[16] = {0};
    for (int64_t i = 0; i < n; i++) {
        float square = x[i] * x[i];
        s[i % 16] += square;
    }
    return tree16(s);
}

static float amax(const float *x, int64_t n) {
    float m = x[0];
    for (int64_t i = 1; i < n; i++)
        m = max_of(m, x[i]);
    return m + 0.0f;
}

static void hadamard(float *y, const float *x, int64_t n, float scale) {
    if (y != x)
        memcpy(y, x, (size_t)n * sizeof *y);
    for (int64_t h = 1; h < n; h *= 2)
        for (int64_t i = 0; i < n; i++)
            if ((i & h) == 0) {
                float a = y[i], b = y[i + h];
                y[i] = a + b;
                y[i + h] = a - b;
            }
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

static void chains(float *const *y, int n_y, const float *a, int64_t a_step, const float *const *b,
                   int64_t b_step, int64_t k, int64_t n) {
    for (int c = 0; c < n_y; c++)
        for (int64_t e = 0; e < k; e++)
            for (int64_t i = 0; i < n; i++)
                y[c][i] = fused_float(a[e * a_step + i], b[c][e * b_step], y[c][i]);
}

void ggl_cpu_kernels_rows(cpu_kernels *k) {
#define ROW_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
