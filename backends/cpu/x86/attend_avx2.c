/* Attention over a page: keys in the lanes for scores, elements of a value in the lanes for the
 * sum; four queries share each load. Stored numbers are decoded in registers. */
#include "vector_avx2.h"

#include "../simd/functions.h"

enum { AT_ONCE = 4 }; /* queries */

INLINE __m256 load_bfloat(const uint16_t *p) {
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
}

INLINE __m256 from_i8(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

/* The low or the high half of 8 bytes, minus 8. */
INLINE __m256 from_nibbles(const uint8_t *p, const int high) {
    __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p));
    x = high ? _mm256_srli_epi32(x, 4) : _mm256_and_si256(x, _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(x, _mm256_set1_epi32(8)));
}

/* Elements i .. i + 7 of what is not quantized. */
INLINE __m256 load_plain(const void *p, int64_t i, const ggl_type type) {
    return type == GGL_F32   ? _mm256_loadu_ps((const float *)p + i)
           : type == GGL_F16 ? load_half((const uint16_t *)p + i)
                             : load_bfloat((const uint16_t *)p + i);
}

/* --- scores -------------------------------------------------------------------------------- */

INLINE void score_step(__m256 (*a)[2], const float *const *query, const int n_q, int64_t i,
                       __m256 k0, __m256 k1) {
    for (int q = 0; q < n_q; q++) {
        __m256 x = _mm256_broadcast_ss(query[q] + i);
        a[q][0] = _mm256_fmadd_ps(k0, x, a[q][0]);
        a[q][1] = _mm256_fmadd_ps(k1, x, a[q][1]);
    }
}

/* One block of 32 dimensions, lanes j .. j + 15. */
INLINE void score_q8_0(__m256 (*a)[2], const float *const *query, const int n_q, int64_t i,
                       const uint8_t *block, int j) {
    const uint16_t *scale = (const uint16_t *)(block + 32 * GGL_PAGE);
    __m256 s0 = load_half(scale + j), s1 = load_half(scale + j + 8);
    for (int r = 0; r < 32; r++)
        score_step(a, query, n_q, i + r, _mm256_mul_ps(from_i8(block + r * GGL_PAGE + j), s0),
                   _mm256_mul_ps(from_i8(block + r * GGL_PAGE + j + 8), s1));
}

INLINE void score_q4_0(__m256 (*a)[2], const float *const *query, const int n_q, int64_t i,
                       const uint8_t *block, int j, const int high) {
    const uint16_t *scale = (const uint16_t *)(block + 16 * GGL_PAGE);
    __m256 s0 = load_half(scale + j), s1 = load_half(scale + j + 8);
    for (int r = 0; r < 16; r++) {
        const uint8_t *q = block + r * GGL_PAGE + j;
        score_step(a, query, n_q, i + 16 * high + r, _mm256_mul_ps(from_nibbles(q, high), s0),
                   _mm256_mul_ps(from_nibbles(q + 8, high), s1));
    }
}

INLINE void scores_q(float (*score)[GGL_PAGE], const float *const *query, const int n_q,
                     const void *keys, int64_t d, const ggl_type type) {
    for (int j = 0; j < GGL_PAGE; j += 16) {
        __m256 a[AT_ONCE][2];
        const uint8_t *block = keys;
        for (int q = 0; q < n_q; q++)
            a[q][0] = a[q][1] = _mm256_setzero_ps();
        if (type == GGL_Q8_0)
            for (int64_t i = 0; i < d; i += 32, block += 34 * GGL_PAGE)
                score_q8_0(a, query, n_q, i, block, j);
        else if (type == GGL_Q4_0)
            for (int64_t i = 0; i < d; i += 32, block += 18 * GGL_PAGE) {
                score_q4_0(a, query, n_q, i, block, j, 0);
                score_q4_0(a, query, n_q, i, block, j, 1);
            }
        else
            for (int64_t i = 0; i < d; i++)
                score_step(a, query, n_q, i, load_plain(keys, i * GGL_PAGE + j, type),
                           load_plain(keys, i * GGL_PAGE + j + 8, type));
        for (int q = 0; q < n_q; q++) {
            _mm256_storeu_ps(score[q] + j, a[q][0]);
            _mm256_storeu_ps(score[q] + j + 8, a[q][1]);
        }
    }
}

/* --- values -------------------------------------------------------------------------------- */

/* x[0], x[1]: elements i .. i + 15 of a row; of quantized ones, half is (i % 32) / 16. */
INLINE void load_row(__m256 *x, const char *row, int64_t i, const int half, const ggl_type type) {
    if (type != GGL_Q8_0 && type != GGL_Q4_0) {
        x[0] = load_plain(row, i, type);
        x[1] = load_plain(row, i + 8, type);
        return;
    }
    const uint8_t *block = (const uint8_t *)row + i / 32 * (type == GGL_Q8_0 ? 34 : 18);
    uint16_t h;
    memcpy(&h, block, sizeof h);
    __m256 scale = set8(_cvtsh_ss(h));
    const uint8_t *q = block + 2 + (type == GGL_Q8_0 ? 16 * half : 0);
    for (int k = 0; k < 2; k++)
        x[k] = _mm256_mul_ps(type == GGL_Q8_0 ? from_i8(q + 8 * k) : from_nibbles(q + 8 * k, half),
                             scale);
}

/* Elements i .. i + 15. */
INLINE void values_16(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const char *v,
                      size_t row_size, int64_t i, int j0, int j1, const int half,
                      const ggl_type type) {
    __m256 a[AT_ONCE][2];
    for (int q = 0; q < n_q; q++)
        for (int h = 0; h < 2; h++)
            a[q][h] = _mm256_loadu_ps(o + q * o_step + i + 8 * h);
    for (int j = j0; j < j1; j++) {
        __m256 x[2];
        load_row(x, v + (size_t)j * row_size, i, half, type);
        for (int q = 0; q < n_q; q++) {
            __m256 w = _mm256_broadcast_ss(&p[q][j]);
            a[q][0] = _mm256_fmadd_ps(w, x[0], a[q][0]);
            a[q][1] = _mm256_fmadd_ps(w, x[1], a[q][1]);
        }
    }
    for (int q = 0; q < n_q; q++)
        for (int h = 0; h < 2; h++)
            _mm256_storeu_ps(o + q * o_step + i + 8 * h, a[q][h]);
}

/* Elements i .. i + 7, and one element, of types that are not quantized. */
INLINE void values_8(float *o, float *p, const char *v, size_t row_size, int64_t i, int j0, int j1,
                     const ggl_type type) {
    __m256 a = _mm256_loadu_ps(o + i);
    for (int j = j0; j < j1; j++)
        a = _mm256_fmadd_ps(set8(p[j]), load_plain(v + (size_t)j * row_size, i, type), a);
    _mm256_storeu_ps(o + i, a);
}

INLINE void values_1(float *o, float *p, const char *v, size_t row_size, int64_t i, int j0, int j1,
                     const ggl_type type) {
    for (int j = j0; j < j1; j++) {
        const char *row = v + (size_t)j * row_size;
        float x = type == GGL_F32   ? ((const float *)row)[i]
                  : type == GGL_F16 ? _cvtsh_ss(((const uint16_t *)row)[i])
                                    : ggl_bf16_to_f32(((const uint16_t *)row)[i]);
        o[i] = fmaf(p[j], x, o[i]);
    }
}

INLINE void values_q(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const char *v,
                     int64_t e, int j0, int j1, const ggl_type type) {
    size_t row_size = type == GGL_F32    ? (size_t)e * 4
                      : type == GGL_Q8_0 ? (size_t)e / 32 * 34
                      : type == GGL_Q4_0 ? (size_t)e / 32 * 18
                                         : (size_t)e * 2;
    int64_t i = 0;
    for (; i + 32 <= e; i += 32) {
        values_16(o, o_step, p, n_q, v, row_size, i, j0, j1, 0, type);
        values_16(o, o_step, p, n_q, v, row_size, i + 16, j0, j1, 1, type);
    }
    if (type == GGL_Q8_0 || type == GGL_Q4_0)
        return; /* whole blocks */
    for (; i + 16 <= e; i += 16)
        values_16(o, o_step, p, n_q, v, row_size, i, j0, j1, 0, type);
    for (; i + 8 <= e; i += 8)
        for (int q = 0; q < n_q; q++)
            values_8(o + q * o_step, p[q], v, row_size, i, j0, j1, type);
    for (; i < e; i++)
        for (int q = 0; q < n_q; q++)
            values_1(o + q * o_step, p[q], v, row_size, i, j0, j1, type);
}

/* --- by type, and number of queries -------------------------------------------------------- */

INLINE void scores(float (*score)[GGL_PAGE], const float *const *query, int n_q, const void *keys,
                   int64_t d, const ggl_type type) {
    for (; n_q >= AT_ONCE; n_q -= AT_ONCE, score += AT_ONCE, query += AT_ONCE)
        scores_q(score, query, AT_ONCE, keys, d, type);
    if (n_q == 3)
        scores_q(score, query, 3, keys, d, type);
    else if (n_q == 2)
        scores_q(score, query, 2, keys, d, type);
    else if (n_q == 1)
        scores_q(score, query, 1, keys, d, type);
}

INLINE void values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                   int64_t e, int j0, int j1, const ggl_type type) {
    for (; n_q >= AT_ONCE; n_q -= AT_ONCE, o += AT_ONCE * o_step, p += AT_ONCE)
        values_q(o, o_step, p, AT_ONCE, v, e, j0, j1, type);
    if (n_q == 3)
        values_q(o, o_step, p, 3, v, e, j0, j1, type);
    else if (n_q == 2)
        values_q(o, o_step, p, 2, v, e, j0, j1, type);
    else if (n_q == 1)
        values_q(o, o_step, p, 1, v, e, j0, j1, type);
}

#include "../attend_types.h"

/* --- the rest ------------------------------------------------------------------------------ */

INLINE __m256 seen8(int lo, int hi) { /* lanes lo .. hi - 1 */
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_castsi256_ps(
        _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(lo), lane),
                            _mm256_cmpgt_epi32(_mm256_set1_epi32(hi), lane)));
}

INLINE float softmax_part(float *s, int lo, int hi, float scale, float *sum, const bool whole) {
    __m256 top = set8(-INFINITY), nan = _mm256_setzero_ps(), sums[2];
    for (int v = 0; v < GGL_PAGE; v += 8) {
        __m256 x = _mm256_mul_ps(_mm256_loadu_ps(s + v), set8(scale));
        _mm256_storeu_ps(s + v, x);
        x = whole ? x : v_choose((vi)seen8(lo - v, hi - v), x, set8(-INFINITY));
        nan = _mm256_or_ps(nan, (vf)v_is_nan(x));
        top = _mm256_max_ps(top, x);
    }
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps(top, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    float m =
        _mm256_movemask_ps(nan) ? NAN : _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a))) + 0.0f;
    sums[0] = sums[1] = _mm256_setzero_ps();
    for (int v = 0; v < GGL_PAGE; v += 8) {
        __m256 e = v_exp(_mm256_sub_ps(_mm256_loadu_ps(s + v), set8(m)));
        e = whole ? e : _mm256_and_ps(seen8(lo - v, hi - v), e);
        _mm256_storeu_ps(s + v, e);
        sums[v / 8 % 2] = _mm256_add_ps(sums[v / 8 % 2], e);
    }
    *sum = v_tree(sums);
    return m;
}

static float softmax_page(float *s, int lo, int hi, float scale, float *sum) {
    return lo == 0 && hi == GGL_PAGE ? softmax_part(s, 0, GGL_PAGE, scale, sum, true)
                                     : softmax_part(s, lo, hi, scale, sum, false);
}

static void merge(float *total, const float *part, float a, float b, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 p = _mm256_mul_ps(_mm256_loadu_ps(part + i), set8(b));
        _mm256_storeu_ps(total + i, _mm256_fmadd_ps(_mm256_loadu_ps(total + i), set8(a), p));
    }
    for (; i < n; i++) {
        float p = part[i] * b;
        total[i] = fmaf(total[i], a, p);
    }
}

void cpu_kernels_attend_avx2(cpu_kernels *k) {
    fill_by_type(k);
    k->softmax_page = softmax_page;
    k->merge = merge;
}
