/* Vectors of simd/functions.h as registers of AVX-512. Comparisons with C's operators give vectors
 * of ones and zeros, which v_choose takes; the compiler keeps them in mask registers. */
#ifndef CPU_VECTOR_AVX512_H
#define CPU_VECTOR_AVX512_H

#include "avx2.h"

enum { V_LANES = 16, V_COLS = 6, V_SUMS = 16 };
#define V_TILE(X) X(6) X(4) X(2) X(1)

typedef __m512 vf;
typedef int32_t vi __attribute__((vector_size(64)));

INLINE __mmask16 mask16(int64_t n) { /* the first n lanes */
    return (__mmask16)((1u << n) - 1);
}

INLINE vf v_set(float x) {
    return _mm512_set1_ps(x);
}
INLINE vf v_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void v_store(float *p, vf v) {
    _mm512_storeu_ps(p, v);
}
INLINE vf v_load_n(const float *p, int64_t n) {
    return _mm512_maskz_loadu_ps(mask16(n), p);
}
INLINE void v_store_n(float *p, vf v, int64_t n) {
    _mm512_mask_storeu_ps(p, mask16(n), v);
}
/* Loads f8_e4m3 weights, through halves: their exponent's bias is 8 more, and what is NaN here is a number there. */
#define V_LOAD_E4M3
INLINE vf v_load_e4m3(const uint8_t *p) {
    const __m256i number = _mm256_set1_epi16(0x3f80);
    __m256i h = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)), 7);
    h = _mm256_and_si256(h, _mm256_set1_epi16((short)0xbf80));
    const __m256i nan = _mm256_cmpeq_epi16(_mm256_and_si256(h, number), number);
    h = _mm256_or_si256(h, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
    return _mm512_mul_ps(_mm512_cvtph_ps(h), _mm512_set1_ps(0x1p8f));
}
INLINE vf v_load_half(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE void v_store_half(uint16_t *p, vf v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
INLINE vf v_load_bfloat(const uint16_t *p) {
    __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p));
    return (vf)_mm512_slli_epi32(x, 16);
}
INLINE vi v_index(void) {
    return (vi){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
INLINE vf v_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
#ifdef V_PAIRS
/* c + odd * odd + even * even for pairs of bf16, by two fused multiply-adds. The instruction
 * flushes subnormals, which cannot arise if both factors are at least 2^-56: docs/numeric.md,
 * section 4. */
INLINE vf v_fma_pairs(vf a, vf b, vf c) {
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}
/* Rounds both to bf16; numbers below 2^-56 (exponent field below 71) become 0. `first` is the upper half of each lane. */
#define V_ROUND_PAIR
INLINE vf v_round_pair(vf first, vf second) {
    const __m512i from =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i both =
        _mm512_permutexvar_epi16(from, (__m512i)_mm512_cvtne2ps_pbh(first, second));
    const __mmask32 large = _mm512_cmpge_epu16_mask(
        _mm512_and_si512(both, _mm512_set1_epi16(0x7fff)), _mm512_set1_epi16(71 << 7));
    /* A masked move would make clang 16 crash, unless at -O3. */
    return (vf)_mm512_and_si512(both, _mm512_movm_epi16(large));
}
#endif
INLINE vf v_choose(vi m, vf a, vf b) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)m), b, a);
}
INLINE vf v_sqrt(vf x) {
    return _mm512_sqrt_ps(x);
}
INLINE vf v_floor(vf x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
INLINE vf v_of_int(vi x) {
    return _mm512_cvtepi32_ps((__m512i)x);
}
INLINE vi v_to_int(vf x) { /* rounds as MXCSR is set: to nearest even */
    return (vi)_mm512_cvtps_epi32(x);
}

/* Adds up sixteen sums, the lanes of one vector. */
INLINE float v_tree(const vf *s) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(*s), _mm512_extractf32x8_ps(*s, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
/* y[r] = v_tree(s[r]) for four rows at once. */
INLINE void v_four_trees(float *y, const vf (*s)[16 / V_LANES]) {
    const vf a = s[0][0], b = s[1][0], c = s[2][0], d = s[3][0];
    const vf ab = _mm512_shuffle_f32x4(a, b, 0x44) + _mm512_shuffle_f32x4(a, b, 0xee);
    const vf cd = _mm512_shuffle_f32x4(c, d, 0x44) + _mm512_shuffle_f32x4(c, d, 0xee);
    vf t = _mm512_shuffle_f32x4(ab, cd, 0x88) + _mm512_shuffle_f32x4(ab, cd, 0xdd);
    t = t + _mm512_permute_ps(t, 0x4e);
    t = t + _mm512_permute_ps(t, 0xb1);
    _mm_storeu_ps(y, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, t)));
}

/* For panels of floats (simd/outer_tmpl.h). */
#define V_TURN
#define V_TALLS(X, n) X(1, n) X(2, n) X(4, n)
#define V_EACH_SUM
#define V_EACH_STEP UNROLL_4
/* Makes lane r of v[l] what lane l of v[r] was, for sixteen vectors. */
INLINE void v_turn(vf *v) {
    vf t[16], u[16];
    UNROLL for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) {
        for (int e = 0; e < 2; e++) {
            const __m512d a = (__m512d)t[i + e], b = (__m512d)t[i + 2 + e];
            u[i + 2 * e] = (vf)_mm512_unpacklo_pd(a, b);
            u[i + 2 * e + 1] = (vf)_mm512_unpackhi_pd(a, b);
        }
    }
    /* quarter q of u[i] has, of four rows, lane 4 * q + i % 4 */
    UNROLL for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(u[i], u[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(u[i], u[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_f32x4(u[8 + i], u[12 + i], 0xdd);
    }
    UNROLL for (int i = 0; i < 8; i++) {
        v[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
        v[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    }
}

/* The larger one, and the largest lane, of numbers that are not NaN. */
INLINE vf v_max(vf a, vf b) {
    return _mm512_max_ps(a, b);
}
INLINE float v_largest(vf v) {
    return _mm512_reduce_max_ps(v);
}
INLINE bool v_any(vi m) {
    return _mm512_movepi32_mask((__m512i)m) != 0;
}

INLINE vi v_max_int(vi a, vi b) {
    return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
}
INLINE int32_t v_largest_int(vi v) {
    return _mm512_reduce_max_epi32((__m512i)v);
}
INLINE int32_t v_sum_int(vi v) {
    return _mm512_reduce_add_epi32((__m512i)v);
}
/* Stores 32 integers that fit into a byte each. */
INLINE void v_store_bytes(int8_t *p, const vi *c) {
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8((__m512i)c[0]));
    _mm_storeu_si128((__m128i *)(p + 16), _mm512_cvtepi32_epi8((__m512i)c[1]));
}

/* Splits 64 whole numbers of up to 16256 in magnitude into bytes: high * 128 + low, low from -64 to
 * 63. */
INLINE void v_split_bytes(int8_t *high, int8_t *low, const vi *w) {
    const __m512i from = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i h[2], l[2];
    for (int i = 0; i < 2; i++) {
        const __m512i v = _mm512_packs_epi32((__m512i)w[2 * i], (__m512i)w[2 * i + 1]);
        h[i] = _mm512_srai_epi16(_mm512_add_epi16(v, _mm512_set1_epi16(64)), 7);
        l[i] = _mm512_sub_epi16(v, _mm512_slli_epi16(h[i], 7));
    }
    h[0] = _mm512_permutexvar_epi32(from, _mm512_packs_epi16(h[0], h[1]));
    l[0] = _mm512_permutexvar_epi32(from, _mm512_packs_epi16(l[0], l[1]));
    _mm512_storeu_si512(high, h[0]);
    _mm512_storeu_si512(low, l[0]);
}

/* The even and the odd elements of a, then those of b. */
INLINE vf v_evens(vf a, vf b) {
    const __m512i from =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, from, b);
}
INLINE vf v_odds(vf a, vf b) {
    const __m512i from =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(a, from, b);
}
/* For each pair: the first element twice; the second one twice; both swapped. */
INLINE vf v_twice_evens(vf v) {
    return _mm512_moveldup_ps(v);
}
INLINE vf v_twice_odds(vf v) {
    return _mm512_movehdup_ps(v);
}
INLINE vf v_swap_pairs(vf v) {
    return _mm512_permute_ps(v, 0xb1);
}

#endif
