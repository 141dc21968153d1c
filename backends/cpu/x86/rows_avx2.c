/* Row reductions, rotation, and the rows of recurrent states: sums 0..7 in one register, 8..15 in
 * another. */
#include "avx2.h"

INLINE __m256 square(__m256 x) {
    return _mm256_mul_ps(x, x);
}

INLINE float sum_of(const float *x, int64_t n, int squared) {
    __m256 lo = _mm256_setzero_ps(), hi = lo;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + 8);
        lo = _mm256_add_ps(lo, squared ? square(a) : a);
        hi = _mm256_add_ps(hi, squared ? square(b) : b);
    }
    if (i < n) { /* adding +0 changes nothing: no sum of these is ever -0 */
        __m256 a = _mm256_maskload_ps(x + i, mask8(n - i));
        lo = _mm256_add_ps(lo, squared ? square(a) : a);
        if (i + 8 < n) {
            __m256 b = _mm256_maskload_ps(x + i + 8, mask8(n - i - 8));
            hi = _mm256_add_ps(hi, squared ? square(b) : b);
        }
    }
    return tree(lo, hi);
}

static float sum(const float *x, int64_t n) {
    return sum_of(x, n, 0);
}

static float sum_squares(const float *x, int64_t n) {
    return sum_of(x, n, 1);
}

static float amax(const float *x, int64_t n) {
    __m256 m = set8(-INFINITY), nan = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        nan = _mm256_or_ps(nan, is_nan(v));
        m = _mm256_max_ps(m, v);
    }
    if (i < n) {
        __m256i k = mask8(n - i);
        __m256 v = choose(_mm256_castsi256_ps(k), _mm256_maskload_ps(x + i, k), set8(-INFINITY));
        nan = _mm256_or_ps(nan, is_nan(v));
        m = _mm256_max_ps(m, v);
    }
    if (_mm256_movemask_ps(nan))
        return NAN;
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a))) + 0.0f;
}

/* --- rotation ------------------------------------------------------------------------------ */

INLINE __m256 gather_even(__m256 a, __m256 b) { /* elements 0, 2, .. of a, then of b */
    return _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xd8));
}

INLINE __m256 gather_odd(__m256 a, __m256 b) {
    return _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8));
}

static void turn(float *y0, float *y1, float x0, float x1, float c, float s) {
    float a = x1 * s, b = x1 * c;
    *y0 = fmaf(x0, c, -a);
    *y1 = fmaf(x0, s, b);
}

static void rope_half(float *y, const float *x, const float *cs, int64_t r) {
    int64_t i = 0;
    for (; i + 8 <= r; i += 8) {
        __m256 u = _mm256_loadu_ps(cs + 2 * i), v = _mm256_loadu_ps(cs + 2 * i + 8);
        __m256 c = gather_even(u, v), s = gather_odd(u, v);
        __m256 x0 = _mm256_loadu_ps(x + i), x1 = _mm256_loadu_ps(x + i + r);
        _mm256_storeu_ps(y + i, _mm256_fmsub_ps(x0, c, _mm256_mul_ps(x1, s)));
        _mm256_storeu_ps(y + i + r, _mm256_fmadd_ps(x0, s, _mm256_mul_ps(x1, c)));
    }
    for (; i < r; i++)
        turn(y + i, y + i + r, x[i], x[i + r], cs[2 * i], cs[2 * i + 1]);
}

/* y0 = x0 c - (x1 s), y1 = x0 s + (x1 c), the pairs side by side: fmaddsub subtracts in the even
 * lanes. */
static void rope_pair(float *y, const float *x, const float *cs, int64_t r) {
    int64_t i = 0;
    for (; i + 4 <= r; i += 4) {
        __m256 u = _mm256_loadu_ps(cs + 2 * i), v = _mm256_loadu_ps(x + 2 * i);
        __m256 x0 = _mm256_moveldup_ps(v), x1 = _mm256_movehdup_ps(v);
        __m256 swapped = _mm256_permute_ps(u, 0xb1); /* s, c */
        _mm256_storeu_ps(y + 2 * i, _mm256_fmaddsub_ps(x0, u, _mm256_mul_ps(x1, swapped)));
    }
    for (; i < r; i++)
        turn(y + 2 * i, y + 2 * i + 1, x[2 * i], x[2 * i + 1], cs[2 * i], cs[2 * i + 1]);
}

/* --- states -------------------------------------------------------------------------------- */

/* Vector h (0: elements i..i+7, 1: i+8..i+15) of a row of n; zeros past its end. */
INLINE __m256 part(const float *x, int64_t i, int h, int64_t n) {
    int64_t left = n - i - 8 * h;
    return left >= 8   ? _mm256_loadu_ps(x + i + 8 * h)
           : left <= 0 ? _mm256_setzero_ps()
                       : _mm256_maskload_ps(x + i + 8 * h, mask8(left));
}

INLINE void put(float *y, int64_t i, int h, int64_t n, __m256 v) {
    int64_t left = n - i - 8 * h;
    if (left >= 8)
        _mm256_storeu_ps(y + i + 8 * h, v);
    else if (left > 0)
        _mm256_maskstore_ps(y + i + 8 * h, mask8(left), v);
}

/* v with zeros past the row's end, where 0 * Inf may have made a NaN. */
INLINE __m256 inside(__m256 v, int64_t i, int h, int64_t n) {
    int64_t left = n - i - 8 * h;
    return left >= 8 ? v : _mm256_and_ps(v, _mm256_castsi256_ps(mask8(left)));
}

static float delta_row(float *s, const float *k, const float *q, int64_t n, float decay, float v,
                       float beta) {
    const __m256 d = set8(decay);
    __m256 a[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, b[2] = {a[0], a[0]};
    for (int64_t i = 0; i < n; i += 16)
        for (int h = 0; h < 2; h++)
            a[h] = _mm256_fmadd_ps(inside(_mm256_mul_ps(part(s, i, h, n), d), i, h, n),
                                   part(k, i, h, n), a[h]);
    float error = (v - dot_tree(a[0], a[1])) * beta;
    for (int64_t i = 0; i < n; i += 16)
        for (int h = 0; h < 2; h++) {
            __m256 left = _mm256_mul_ps(part(s, i, h, n), d),
                   add = _mm256_mul_ps(part(k, i, h, n), set8(error));
            left = inside(_mm256_add_ps(left, add), i, h, n);
            put(s, i, h, n, left);
            b[h] = _mm256_fmadd_ps(left, part(q, i, h, n), b[h]);
        }
    return dot_tree(b[0], b[1]);
}

static float scan_row(float *s, const float *b, const float *c, int64_t n, float decay, float u) {
    __m256 a[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    for (int64_t i = 0; i < n; i += 16)
        for (int h = 0; h < 2; h++) {
            __m256 left = _mm256_mul_ps(part(s, i, h, n), set8(decay));
            left = inside(_mm256_add_ps(left, _mm256_mul_ps(part(b, i, h, n), set8(u))), i, h, n);
            put(s, i, h, n, left);
            a[h] = _mm256_fmadd_ps(left, part(c, i, h, n), a[h]);
        }
    return dot_tree(a[0], a[1]);
}

void cpu_kernels_rows_avx2(cpu_kernels *k) {
    k->sum = sum;
    k->sum_squares = sum_squares;
    k->amax = amax;
    k->rope_half = rope_half;
    k->rope_pair = rope_pair;
    k->delta_row = delta_row;
    k->scan_row = scan_row;
}
