/* Vectors of 16 rows (quant/kernel_tmpl.h) as one register of AVX-512; with LANES_VNNI, uses its dot
 * products. */
#ifndef CPU_LANES_AVX512_H
#define CPU_LANES_AVX512_H

#include "avx2.h"

#define PIN512(v) __asm__("" : "+v"(v)) /* as PIN of avx2.h */

enum { LANES_REGISTERS = 1, LANES_GROUPS = 2, LANES_COLS = 8, LANES_MIN_PANEL = 24 };
#define LANES_FEW(X)         X(8) X(4) X(2) X(1)
#define LANES_MANY(X)        X(6) X(4) X(2) X(1)
#define LANES_MANY_HALVES(X) X(4) X(2) X(1)

typedef __m512i vcodes, vsum, vpart, vfour;
typedef __m512 vfloat;

INLINE vcodes codes_load(const uint8_t *p) {
    return _mm512_loadu_si512(p);
}
INLINE void codes_store(uint8_t *p, vcodes v) {
    _mm512_storeu_si512(p, v);
}
INLINE vcodes codes_or(vcodes u, vcodes v) {
    return _mm512_or_si512(u, v);
}
/* Returns (byte >> from & mask) << to for each byte. */
INLINE vcodes codes_bits(vcodes v, const int from, const int to, const int mask) {
    const int by = from - to;
    v = by > 0   ? _mm512_srli_epi16(v, (unsigned)by)
        : by < 0 ? _mm512_slli_epi16(v, (unsigned)-by)
                 : v;
    return _mm512_and_si512(v, _mm512_set1_epi8((char)(mask << to)));
}
INLINE vcodes codes_lookup(vcodes v, const uint8_t *table) {
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table)), v);
}
/* The same for bytes below 32, and 32 entries. */
INLINE vcodes codes_lookup32(vcodes v, const uint8_t *table) {
    const __m512i t = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)table));
    const __m512i u = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(table + 16)));
    return _mm512_mask_shuffle_epi8(_mm512_shuffle_epi8(t, v),
                                    _mm512_test_epi8_mask(v, _mm512_set1_epi8(16)), u, v);
}
INLINE vfour four_set(int32_t v) {
    return _mm512_set1_epi32(v);
}

#ifdef LANES_VNNI
enum { LANES_SIGNED = 0 };
/* Adds codes times x to the sum of the block; step i of n. The sum begins with `start`. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    (void)pair, (void)pairs, (void)n;
    *sum = _mm512_dpbusd_epi32(i == 0 ? _mm512_set1_epi32(start) : *sum, v, x);
}
#else
enum { LANES_SIGNED = 1 };
INLINE __m512i dot_signed(__m512i w, __m512i x) {
    w = _mm512_xor_si512(w, _mm512_set1_epi8(-128));
    __m512i s = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    return _mm512_madd_epi16(_mm512_set1_epi16(1), _mm512_maddubs_epi16(_mm512_abs_epi8(w), s));
}
/* The same as dot_step without LANES_VNNI in lanes_avx2.h. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    __m512i a;
    if (pairs == 0) {
        a = dot_signed(v, x);
        *sum = i == 0 ? a : _mm512_add_epi32(*sum, a);
        return;
    }
    a = _mm512_maddubs_epi16(v, x);
    *pair = i % pairs == 0 ? a : _mm512_add_epi16(*pair, a);
    PIN512(*pair);
    if (i % pairs == pairs - 1 || i == n - 1) {
        a = _mm512_madd_epi16(*pair, _mm512_set1_epi16(1));
        *sum = i < pairs ? a : _mm512_add_epi32(*sum, a);
    }
    if (i == n - 1)
        *sum = _mm512_add_epi32(*sum, _mm512_set1_epi32(start));
}
#endif

/* Returns high * 128 + low. */
INLINE vsum sum_join(vsum high, vsum low) {
    return _mm512_add_epi32(_mm512_slli_epi32(high, 7), low);
}

INLINE vfloat float_zero(void) {
    return _mm512_setzero_ps();
}
INLINE vfloat float_set(float x) {
    return _mm512_set1_ps(x);
}
INLINE vfloat float_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void float_store(float *p, vfloat v, int n) { /* stores the first n (1..16) lanes */
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v);
}
INLINE vfloat float_of(vsum s) {
    return _mm512_cvtepi32_ps(s);
}
INLINE vfloat float_mul(vfloat u, vfloat v) {
    return _mm512_mul_ps(u, v);
}
INLINE vfloat float_fma(vfloat u, vfloat v, vfloat w) { /* u * v + w */
    return _mm512_fmadd_ps(u, v, w);
}
INLINE vfloat float_fnma(vfloat u, vfloat v, vfloat w) { /* w - u * v */
    return _mm512_fnmadd_ps(u, v, w);
}
INLINE vfloat float_negate(vfloat u) {
    return _mm512_xor_ps(u, _mm512_set1_ps(-0.0f));
}
/* Convert 16 f16 numbers, and 16 bytes: unsigned, signed, their low and their high four bits. */
INLINE vfloat float_f16(const uint8_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE vfloat float_of_u8(__m128i v) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v));
}
INLINE vfloat float_u8(const uint8_t *p) {
    return float_of_u8(_mm_loadu_si128((const __m128i *)p));
}
INLINE vfloat float_i8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
INLINE vfloat float_low1(const uint8_t *p) {
    return float_of_u8(_mm_and_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8(1)));
}
INLINE vfloat float_low4(const uint8_t *p) {
    return float_of_u8(_mm_and_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8(15)));
}
INLINE vfloat float_high4(const uint8_t *p) {
    __m128i v = _mm_srli_epi16(_mm_loadu_si128((const __m128i *)p), 4);
    return float_of_u8(_mm_and_si128(v, _mm_set1_epi8(15)));
}
/* Returns 2^(e - 128) for each byte e; subnormal for e = 0 and 1. */
INLINE vfloat float_e8m0(const uint8_t *p) {
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)),
            one = _mm512_set1_epi32(1);
    __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, one), 23);
    __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x200000), e);
    return _mm512_castsi512_ps(
        _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(e, one), tiny, normal));
}

#endif
