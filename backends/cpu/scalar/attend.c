/* docs/numeric.md, section 6: the parts of attention over one page of 64 positions. */
#include "scalar.h"

static float element(const void *p, int64_t i, bool half) {
    return half ? ggl_f16_to_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

static void scores(float (*score)[GGL_PAGE], const float *const *query, int n_q, const void *keys,
                   int64_t d, bool half) {
    for (int q = 0; q < n_q; q++)
        for (int j = 0; j < GGL_PAGE; j++) {
            float a = 0.0f;
            for (int64_t i = 0; i < d; i++)
                a = fmaf(element(keys, i * GGL_PAGE + j, half), query[q][i], a);
            score[q][j] = a;
        }
}

static void values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                   int64_t e, int j0, int j1, bool half) {
    for (int q = 0; q < n_q; q++)
        for (int j = j0; j < j1; j++)
            for (int64_t i = 0; i < e; i++)
                o[q * o_step + i] = fmaf(p[q][j], element(v, j * e + i, half), o[q * o_step + i]);
}

static void scores_f32(float (*score)[GGL_PAGE], const float *const *query, int n_q,
                       const void *keys, int64_t d) {
    scores(score, query, n_q, keys, d, false);
}

static void scores_f16(float (*score)[GGL_PAGE], const float *const *query, int n_q,
                       const void *keys, int64_t d) {
    scores(score, query, n_q, keys, d, true);
}

static void values_f32(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                       int64_t e, int j0, int j1) {
    values(o, o_step, p, n_q, v, e, j0, j1, false);
}

static void values_f16(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                       int64_t e, int j0, int j1) {
    values(o, o_step, p, n_q, v, e, j0, j1, true);
}

static void merge(float *total, const float *part, float a, float b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float p = part[i] * b;
        total[i] = fmaf(total[i], a, p);
    }
}

void cpu_kernels_attend(cpu_kernels *k) {
    k->scores[0] = scores_f32;
    k->scores[1] = scores_f16;
    k->values[0] = values_f32;
    k->values[1] = values_f16;
    k->merge = merge;
}
