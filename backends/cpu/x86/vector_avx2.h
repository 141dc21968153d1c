/* Vectors of simd/functions.h as registers of AVX2. */
#ifndef CPU_VECTOR_AVX2_H
#define CPU_VECTOR_AVX2_H

#include "avx2.h"

enum { V_LANES = 8, V_COLS = 3, V_SUMS = 4 };
#define V_TILE(X) X(3) X(2) X(1)

typedef __m256 vf;
typedef int32_t vi __attribute__((vector_size(32)));

INLINE vf v_set(float x) {
    return _mm256_set1_ps(x);
}
INLINE vf v_load(const float *p) {
    return _mm256_loadu_ps(p);
}
INLINE void v_store(float *p, vf v) {
    _mm256_storeu_ps(p, v);
}
INLINE vf v_load_n(const float *p, int64_t n) {
    return _mm256_maskload_ps(p, mask8(n));
}
INLINE void v_store_n(float *p, vf v, int64_t n) {
    _mm256_maskstore_ps(p, mask8(n), v);
}
/* Loads f8_e4m3 weights, through halves: their exponent's bias is 8 more, and what is NaN here is a number there. */
#define V_LOAD_E4M3
INLINE vf v_load_e4m3(const uint8_t *p) {
    const __m128i number = _mm_set1_epi16(0x3f80);
    __m128i h = _mm_slli_epi16(_mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)p)), 7);
    h = _mm_and_si128(h, _mm_set1_epi16((short)0xbf80));
    const __m128i nan = _mm_cmpeq_epi16(_mm_and_si128(h, number), number);
    h = _mm_or_si128(h, _mm_and_si128(nan, _mm_set1_epi16(0x7e00)));
    return _mm256_mul_ps(_mm256_cvtph_ps(h), set8(0x1p8f));
}
INLINE vf v_load_half(const uint16_t *p) {
    return load_half(p);
}
INLINE void v_store_half(uint16_t *p, vf v) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
INLINE vf v_load_bfloat(const uint16_t *p) {
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    return (vf)_mm256_slli_epi32(x, 16);
}
INLINE vi v_index(void) {
    return (vi){0, 1, 2, 3, 4, 5, 6, 7};
}
/* Keeps v in a register. gcc would load it in each product that reads it: of 12 products by 7 vectors it made 16
 * loads, and the processor does two in a cycle. */
#define V_KEEPS
INLINE vf v_keep(vf v) {
    __asm__("" : "+x"(v));
    return v;
}
INLINE vf v_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
INLINE vf v_choose(vi m, vf a, vf b) {
    return _mm256_blendv_ps(b, a, (__m256)m);
}
INLINE vf v_sqrt(vf x) {
    return _mm256_sqrt_ps(x);
}
INLINE vf v_floor(vf x) {
    return _mm256_floor_ps(x);
}
INLINE vf v_of_int(vi x) {
    return _mm256_cvtepi32_ps((__m256i)x);
}
INLINE vi v_to_int(vf x) { /* rounds as MXCSR is set: to nearest even */
    return (vi)_mm256_cvtps_epi32(x);
}

/* For panels of floats (simd/outer_tmpl.h). */
#define V_TURN
#define V_TALLS(X, n) X(1, n) X(2, n)
#define V_EACH_SUM                                                                                 \
    UNROLL /* a sum of 384 numbers takes 24 steps: unforeseen jumps between sums cost as much */
#define V_EACH_STEP
/* Makes lane r of v[l] what lane l of v[r] was, for eight vectors. */
INLINE void v_turn(vf *v) {
    __m256i t[8];
    UNROLL for (int i = 0; i < 8; i++) t[i] = (__m256i)v[i];
    transpose_8x8(t);
    UNROLL for (int i = 0; i < 8; i++) v[i] = (vf)t[i];
}

/* Adds up sixteen sums: sums 0..7 are the lanes of s[0], 8..15 those of s[1]. */
INLINE float v_tree(const vf *s) {
    __m256 a = _mm256_add_ps(s[0], s[1]);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
/* y[r] = v_tree(s[r]) for four rows at once. */
INLINE void v_four_trees(float *y, const vf (*s)[16 / V_LANES]) {
    const vf a = s[0][0] + s[0][1], b = s[1][0] + s[1][1], c = s[2][0] + s[2][1],
             d = s[3][0] + s[3][1];
    const vf ab = _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31);
    const vf cd = _mm256_permute2f128_ps(c, d, 0x20) + _mm256_permute2f128_ps(c, d, 0x31);
    vf t = _mm256_shuffle_ps(ab, cd, 0x44) + _mm256_shuffle_ps(ab, cd, 0xee);
    t = t + _mm256_permute_ps(t, 0xb1); /* a a c c | b b d d */
    const __m128 ac = _mm256_castps256_ps128(t), bd = _mm256_extractf128_ps(t, 1);
    _mm_storeu_ps(y, _mm_movelh_ps(_mm_unpacklo_ps(ac, bd), _mm_unpackhi_ps(ac, bd)));
}

/* The larger one, and the largest lane, of numbers that are not NaN. */
INLINE vf v_max(vf a, vf b) {
    return _mm256_max_ps(a, b);
}
INLINE float v_largest(vf v) {
    __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    a = _mm_max_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_max_ss(a, _mm_movehdup_ps(a)));
}
INLINE bool v_any(vi m) {
    return _mm256_movemask_ps((__m256)m) != 0;
}

INLINE vi v_max_int(vi a, vi b) {
    return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
}
INLINE int32_t v_largest_int(vi v) {
    __m256i u = (__m256i)v;
    __m128i a = _mm_max_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
    a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(a, _mm_shuffle_epi32(a, 0xb1)));
}
INLINE int32_t v_sum_int(vi v) {
    __m256i u = (__m256i)v;
    __m128i a = _mm_add_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
    a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(a, _mm_shuffle_epi32(a, 0xb1)));
}
/* Stores 32 integers that fit into a byte each. */
INLINE void v_store_bytes(int8_t *p, const vi *c) {
    __m256i a = _mm256_packs_epi32((__m256i)c[0], (__m256i)c[1]);
    __m256i b = _mm256_packs_epi32((__m256i)c[2], (__m256i)c[3]);
    a = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(a, b),
                                    _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_storeu_si256((__m256i *)p, a);
}

/* Splits 64 whole numbers of up to 16256 in magnitude into bytes: high * 128 + low, low from -64 to
 * 63. */
INLINE void v_split_bytes(int8_t *high, int8_t *low, const vi *w) {
    const __m256i from = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int part = 0; part < 2; part++, w += 4) {
        __m256i h[2], l[2];
        for (int i = 0; i < 2; i++) {
            const __m256i v = _mm256_packs_epi32((__m256i)w[2 * i], (__m256i)w[2 * i + 1]);
            h[i] = _mm256_srai_epi16(_mm256_add_epi16(v, _mm256_set1_epi16(64)), 7);
            l[i] = _mm256_sub_epi16(v, _mm256_slli_epi16(h[i], 7));
        }
        h[0] = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(h[0], h[1]), from);
        l[0] = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(l[0], l[1]), from);
        _mm256_storeu_si256((__m256i *)(high + 32 * part), h[0]);
        _mm256_storeu_si256((__m256i *)(low + 32 * part), l[0]);
    }
}

/* The even and the odd elements of a, then those of b. */
INLINE vf v_evens(vf a, vf b) {
    __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8));
}
INLINE vf v_odds(vf a, vf b) {
    __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8));
}
/* For each pair: the first element twice; the second one twice; both swapped. */
INLINE vf v_twice_evens(vf v) {
    return _mm256_moveldup_ps(v);
}
INLINE vf v_twice_odds(vf v) {
    return _mm256_movehdup_ps(v);
}
INLINE vf v_swap_pairs(vf v) {
    return _mm256_permute_ps(v, 0xb1);
}

#endif
