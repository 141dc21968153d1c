/* What the AVX2 files share: loads, the tree, and the elementary functions of
 * docs/numeric-functions.md, 8 lanes at a time, step by step as the scalar definitions in
 * ggml-lite/math_float.c. */
#ifndef CPU_AVX2_H
#define CPU_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "x86.h"

#define INLINE static inline __attribute__((always_inline))
/* Keeps a sum where it is: gcc otherwise reassociates integer vector additions and runs out of
 * registers. */
#define PIN(v) __asm__("" : "+x"(v))

INLINE __m256 set8(float x) {
    return _mm256_set1_ps(x);
}

/* The first n (0..8) lanes. */
INLINE __m256i mask8(int64_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

/* The end of sixteen sums: lanes 0..7 in lo, 8..15 in hi. */
INLINE float tree(__m256 lo, __m256 hi) {
    __m256 a = _mm256_add_ps(lo, hi);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* Likewise of a product: a zero is +0, so that padding with zeros is never visible. */
INLINE float dot_tree(__m256 lo, __m256 hi) {
    return tree(lo, hi) + 0.0f;
}

INLINE __m256 load_half(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

INLINE __m256 abs8(__m256 x) {
    return _mm256_andnot_ps(set8(-0.0f), x);
}

INLINE __m256 is_nan(__m256 x) {
    return _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
}

/* if_true where the mask is set, else if_false */
INLINE __m256 choose(__m256 mask, __m256 if_true, __m256 if_false) {
    return _mm256_blendv_ps(if_false, if_true, mask);
}

INLINE __m256 with_sign(__m256 y, __m256 x) {
    return _mm256_or_ps(y, _mm256_and_ps(set8(-0.0f), x));
}

INLINE __m256 max8(__m256 a, __m256 b) {
    return choose(is_nan(a), a, _mm256_max_ps(a, b));
}

INLINE __m256 min8(__m256 a, __m256 b) {
    return choose(is_nan(a), a, _mm256_min_ps(a, b));
}

/* c[n-1] + x (c[n-2] + x (.. )), highest first in c */
INLINE __m256 horner(__m256 x, const float *c, int n) {
    __m256 p = set8(c[0]);
    for (int i = 1; i < n; i++)
        p = _mm256_fmadd_ps(p, x, set8(c[i]));
    return p;
}

INLINE __m256 exp8(__m256 x) {
    static const float c[] = {
        0x1.6d11fep-10f, 0x1.120c62p-7f, 0x1.555518p-5f, 0x1.5554dcp-3f, 0.5f, 1.0f, 1.0f};
    const __m256 magic = set8(0x1.8p23f);
    __m256 z = _mm256_fmadd_ps(x, set8(0x1.715476p0f), magic);
    __m256 n = _mm256_sub_ps(z, magic);
    __m256 r = _mm256_fmadd_ps(n, set8(-0x1.62e4p-1f), x);
    r = _mm256_fmadd_ps(n, set8(-0x1.7f7d1cp-20f), r);
    __m256i p = _mm256_castps_si256(horner(r, c, 7));
    __m256 y =
        _mm256_castsi256_ps(_mm256_add_epi32(p, _mm256_slli_epi32(_mm256_castps_si256(z), 23)));
    y = _mm256_andnot_ps(_mm256_cmp_ps(x, set8(-0x1.5d589ep6f), _CMP_LT_OQ), y);
    y = choose(_mm256_cmp_ps(x, set8(0x1.62e42ep6f), _CMP_GT_OQ), set8(INFINITY), y);
    return choose(is_nan(x), x, y);
}

INLINE __m256 log8(__m256 x) {
    static const float c[] = {0x1.ebce74p-4f, -0x1.071126p-3f, 0x1.b87ec2p-4f,
                              -0x1.f38ap-4f,  0x1.24f488p-3f,  -0x1.559906p-3f,
                              0x1.99977ep-3f, -0x1.ffff0ep-3f, 0x1.555556p-2f};
    __m256 tiny = _mm256_cmp_ps(x, set8(0x1p-126f), _CMP_LT_OQ);
    __m256 scaled = choose(tiny, _mm256_mul_ps(x, set8(0x1p23f)), x);
    const __m256i two_thirds = _mm256_set1_epi32(0x3f2aaaab);
    __m256i u = _mm256_sub_epi32(_mm256_castps_si256(scaled), two_thirds);
    __m256i k = _mm256_and_si256(u, _mm256_set1_epi32((int)0xff800000));
    __m256 e = _mm256_mul_ps(_mm256_cvtepi32_ps(k), set8(0x1p-23f));
    e = _mm256_sub_ps(e, _mm256_and_ps(tiny, set8(23.0f)));
    __m256i m = _mm256_add_epi32(_mm256_and_si256(u, _mm256_set1_epi32(0x007fffff)), two_thirds);
    __m256 r = _mm256_sub_ps(_mm256_castsi256_ps(m), set8(1.0f));
    __m256 s = _mm256_mul_ps(r, r);
    __m256 p = horner(r, c, 9);
    __m256 t = _mm256_fmadd_ps(_mm256_mul_ps(p, r), s, _mm256_mul_ps(e, set8(0x1.7f7d1cp-20f)));
    t = _mm256_fmadd_ps(s, set8(-0.5f), t);
    __m256 y = _mm256_fmadd_ps(e, set8(0x1.62e4p-1f), _mm256_add_ps(r, t));
    y = choose(_mm256_cmp_ps(x, set8(INFINITY), _CMP_EQ_OQ), x, y);
    y = choose(_mm256_cmp_ps(x, set8(0.0f), _CMP_EQ_OQ), set8(-INFINITY), y);
    y = choose(_mm256_cmp_ps(x, set8(0.0f), _CMP_LT_OQ), set8(NAN), y);
    return choose(is_nan(x), x, y);
}

INLINE __m256 tanh8(__m256 x) {
    static const float c[] = {-0x1.7172cp-8f, 0x1.512decp-6f, -0x1.b8174p-5f, 0x1.110614p-3f,
                              -0x1.55552ep-2f};
    __m256 t = abs8(x), z = _mm256_mul_ps(t, t);
    __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(t, z), horner(z, c, 5), t);
    __m256 e = _mm256_add_ps(exp8(_mm256_add_ps(t, t)), set8(1.0f));
    __m256 large = _mm256_sub_ps(set8(1.0f), _mm256_div_ps(set8(2.0f), e));
    __m256 y = choose(_mm256_cmp_ps(t, set8(0.625f), _CMP_LT_OQ), small, large);
    return choose(is_nan(x), x, with_sign(y, x));
}

INLINE __m256 erf8(__m256 x) {
    static const float c[] = {0x1.4f5636p-14f, -0x1.a606c2p-11f, 0x1.5449e4p-8f, -0x1.b80118p-6f,
                              0x1.ce2d64p-4f,  -0x1.81274p-2f,   0x1.06eba8p-3f};
    static const float d[] = {-0x1.5d824p-16f, 0x1.c46374p-12f, -0x1.1064fap-8f, 0x1.9aed1ap-6f,
                              -0x1.bb45b2p-4f, -0x1.444d16p-1f, -0x1.212628p0f,  0x1.62dadp-13f};
    __m256 t = abs8(x), z = _mm256_mul_ps(t, t);
    __m256 small = _mm256_fmadd_ps(t, horner(z, c, 7), t);
    __m256 clamped = choose(_mm256_cmp_ps(t, set8(4.0f), _CMP_GT_OQ), set8(4.0f), t);
    __m256 large = _mm256_sub_ps(set8(1.0f), exp8(horner(clamped, d, 8)));
    __m256 y = choose(_mm256_cmp_ps(t, set8(0.90625f), _CMP_LT_OQ), small, large);
    return choose(is_nan(x), x, with_sign(y, x));
}

INLINE __m256 sigmoid8(__m256 x) {
    __m256 e = exp8(_mm256_xor_ps(set8(-0.0f), x));
    return _mm256_div_ps(set8(1.0f), _mm256_add_ps(set8(1.0f), e));
}

#endif
