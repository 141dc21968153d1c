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

void ggl_cpu_kernels_rows(cpu_kernels *k) {
#define ROW_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
