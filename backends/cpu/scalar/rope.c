/* docs/numeric.md, section 5. */
#include "scalar.h"

static void turn(float *y0, float *y1, float x0, float x1, float c, float s) {
    float a = x1 * s, b = x1 * c;
    *y0 = fused_float(x0, c, -a);
    *y1 = fused_float(x0, s, b);
}

static void rope_half(float *y, const float *x, const float *cs, int64_t r) {
    for (int64_t i = 0; i < r; i++)
        turn(y + i, y + i + r, x[i], x[i + r], cs[2 * i], cs[2 * i + 1]);
}

static void rope_pair(float *y, const float *x, const float *cs, int64_t r) {
    for (int64_t i = 0; i < r; i++)
        turn(y + 2 * i, y + 2 * i + 1, x[2 * i], x[2 * i + 1], cs[2 * i], cs[2 * i + 1]);
}

void ggl_cpu_kernels_rope(cpu_kernels *k) {
#define ROPE_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
