/* Attention over a page: keys in the lanes for scores, elements of a value in the lanes for the
 * sum; four queries share each load. */
#include "vector_neon.h"

#include "../simd/functions.h"

enum { AT_ONCE = 4 /* queries */ };

INLINE vf load4(const void *p, int64_t i, const int half) {
    return half ? v_load_half((const uint16_t *)p + i) : v_load((const float *)p + i);
}

INLINE void scores_q(float (*score)[GGL_PAGE], const float *const *query, const int n_q,
                     const void *keys, int64_t d, const int half) {
    for (int j = 0; j < GGL_PAGE; j += 16) {
        vf a[AT_ONCE][4];
        for (int q = 0; q < n_q; q++)
            for (int h = 0; h < 4; h++)
                a[q][h] = v_set(0.0f);
        for (int64_t i = 0; i < d; i++) {
            vf k[4];
            for (int h = 0; h < 4; h++)
                k[h] = load4(keys, i * GGL_PAGE + j + 4 * h, half);
            for (int q = 0; q < n_q; q++) {
                vf x = v_set(query[q][i]);
                for (int h = 0; h < 4; h++)
                    a[q][h] = v_fma(k[h], x, a[q][h]);
            }
        }
        for (int q = 0; q < n_q; q++)
            for (int h = 0; h < 4; h++)
                v_store(score[q] + j + 4 * h, a[q][h]);
    }
}

INLINE void scores(float (*score)[GGL_PAGE], const float *const *query, int n_q, const void *keys,
                   int64_t d, const int half) {
    switch (n_q) {
    case 4:
        scores_q(score, query, 4, keys, d, half);
        break;
    case 3:
        scores_q(score, query, 3, keys, d, half);
        break;
    case 2:
        scores_q(score, query, 2, keys, d, half);
        break;
    default:
        scores_q(score, query, 1, keys, d, half);
        break;
    }
}

/* Elements i .. i + 4 * n_v - 1. */
INLINE void values_block(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q,
                         const void *v, int64_t e, int64_t i, const int n_v, int j0, int j1,
                         const int half) {
    vf a[AT_ONCE][4];
    for (int q = 0; q < n_q; q++)
        for (int h = 0; h < n_v; h++)
            a[q][h] = v_load(o + q * o_step + i + 4 * h);
    for (int j = j0; j < j1; j++) {
        vf x[4];
        for (int h = 0; h < n_v; h++)
            x[h] = load4(v, j * e + i + 4 * h, half);
        for (int q = 0; q < n_q; q++) {
            vf w = v_set(p[q][j]);
            for (int h = 0; h < n_v; h++)
                a[q][h] = v_fma(w, x[h], a[q][h]);
        }
    }
    for (int q = 0; q < n_q; q++)
        for (int h = 0; h < n_v; h++)
            v_store(o + q * o_step + i + 4 * h, a[q][h]);
}

INLINE void values_q(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const void *v,
                     int64_t e, int j0, int j1, const int half) {
    int64_t i = 0;
    for (; i + 16 <= e; i += 16)
        values_block(o, o_step, p, n_q, v, e, i, 4, j0, j1, half);
    for (; i + 4 <= e; i += 4)
        values_block(o, o_step, p, n_q, v, e, i, 1, j0, j1, half);
    for (; i < e; i++)
        for (int q = 0; q < n_q; q++)
            for (int j = j0; j < j1; j++) {
                float x = half ? ggl_f16_to_f32(((const uint16_t *)v)[j * e + i])
                               : ((const float *)v)[j * e + i];
                o[q * o_step + i] = fmaf(p[q][j], x, o[q * o_step + i]);
            }
}

INLINE void values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                   int64_t e, int j0, int j1, const int half) {
    switch (n_q) {
    case 4:
        values_q(o, o_step, p, 4, v, e, j0, j1, half);
        break;
    case 3:
        values_q(o, o_step, p, 3, v, e, j0, j1, half);
        break;
    case 2:
        values_q(o, o_step, p, 2, v, e, j0, j1, half);
        break;
    default:
        values_q(o, o_step, p, 1, v, e, j0, j1, half);
        break;
    }
}

#define BY_TYPE(type, half)                                                                        \
    static void scores_##type(float(*score)[GGL_PAGE], const float *const *query, int n_q,         \
                              const void *keys, int64_t d) {                                       \
        for (; n_q > 0; n_q -= AT_ONCE, score += AT_ONCE, query += AT_ONCE)                        \
            scores(score, query, n_q < AT_ONCE ? n_q : AT_ONCE, keys, d, half);                    \
    }                                                                                              \
    static void values_##type(float *o, int64_t o_step, float(*p)[GGL_PAGE], int n_q,              \
                              const void *v, int64_t e, int j0, int j1) {                          \
        for (; n_q > 0; n_q -= AT_ONCE, o += AT_ONCE * o_step, p += AT_ONCE)                       \
            values(o, o_step, p, n_q < AT_ONCE ? n_q : AT_ONCE, v, e, j0, j1, half);               \
    }
BY_TYPE(f32, 0)
BY_TYPE(f16, 1)

static void merge(float *total, const float *part, float a, float b, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        v_store(total + i, v_fma(v_load(total + i), v_set(a), v_load(part + i) * v_set(b)));
    for (; i < n; i++) {
        float p = part[i] * b;
        total[i] = fmaf(total[i], a, p);
    }
}

void cpu_kernels_attend_neon(cpu_kernels *k) {
    k->scores[GGL_F32] = scores_f32;
    k->scores[GGL_F16] = scores_f16;
    k->values[GGL_F32] = values_f32;
    k->values[GGL_F16] = values_f16;
    k->merge = merge;
}
