/* docs/numeric.md, section 7: updates of the rows of a recurrent state for one token, and the short
 * convolution. */
#include "ggl/internal/math.h"
#include "scalar.h"

static void delta_row(float *s, float *y, float v, const cpu_recur *r) {
    for (int64_t i = 0; i < r->n; i++)
        s[i] *= r->w[i];
    float error = (v - ggl_cpu_dot_f32(s, r->k, r->n)) * r->rate;
    for (int64_t i = 0; i < r->n; i++) {
        float add = r->k[i] * error;
        s[i] += add;
    }
    *y = ggl_cpu_dot_f32(s, r->q, r->n);
}

static void scan_row(float *s, float *y, float v, const cpu_recur *r) {
    float in = v * r->rate;
    for (int64_t i = 0; i < r->n; i++) {
        float left = s[i] * r->w[i], add = r->k[i] * in;
        s[i] = left + add;
    }
    *y = ggl_cpu_dot_f32(s, r->q, r->n);
}

static void select_row(float *s, float *y, int64_t j, const cpu_recur *r) {
    float in = r->v[j] * r->b[j];
    for (int64_t i = 0; i < r->n; i++) {
        float rate = r->a[j * r->n + i] * r->b[j];
        float left = s[i] * ggl_expf(rate), add = r->k[i] * in;
        s[i] = left + add;
    }
    *y = ggl_cpu_dot_f32(s, r->q, r->n);
}

/* The sum of section 4, of numbers that are computed on the way. */
static float wkv6_row(float *s, float v, const cpu_recur *r) {
    float sums[16] = {0};
    for (int64_t i = 0; i < r->n; i++) {
        float now = r->k[i] * v, extra = now * r->b[i], left = s[i] * r->w[i];
        sums[i % 16] = fused_float(s[i] + extra, r->q[i], sums[i % 16]);
        s[i] = left + now;
    }
    return tree16(sums) + 0.0f;
}

static void wkv7_row(float *s, float *y, float v, const cpu_recur *r) {
    float e = ggl_cpu_dot_f32(s, r->a, r->n);
    for (int64_t i = 0; i < r->n; i++) {
        float left = s[i] * r->w[i], back = r->b[i] * e, add = r->k[i] * v;
        s[i] = (left + back) + add;
    }
    *y = ggl_cpu_dot_f32(s, r->q, r->n);
}

#define ROWS(NAME, of_row)                                                                         \
    static void rows_##NAME(float *s, float *y, int64_t n_rows, const cpu_recur *r) {              \
        for (int64_t j = 0; j < n_rows; j++, s += r->n)                                            \
            of_row;                                                                                \
    }
ROWS(DELTA, delta_row(s, y + j, r->v[j], r))
ROWS(SCAN, scan_row(s, y + j, r->v[j], r))
ROWS(SELECT, select_row(s, y + j, j, r))
ROWS(WKV6, y[j] = wkv6_row(s, r->v[j], r))
ROWS(WKV7, wkv7_row(s, y + j, r->v[j], r))

static void conv(float *y, const float *const *x, const float *w, int64_t n, int64_t k) {
    for (int64_t i = 0; i < n; i++) {
        float sums[16] = {0};
        for (int64_t j = 0; j < k; j++) {
            float product = x[j][i] * w[i * k + j];
            sums[j % 16] += product;
        }
        y[i] = tree16(sums);
    }
}

void ggl_cpu_kernels_recur(cpu_kernels *k) {
#define RECUR_SLOT(NAME, where)     k->recur[CPU_##NAME] = rows_##NAME;
#define STATE_SLOT(name, fn, where) k->name = name;
#include "../slots.def"
}
