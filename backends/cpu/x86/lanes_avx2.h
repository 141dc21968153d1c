/* Vectors of 16 rows (quant/kernel_tmpl.h) as two registers of AVX2; with LANES_VNNI, uses AVX-VNNI. */
#ifndef CPU_LANES_AVX2_H
#define CPU_LANES_AVX2_H

#include "avx2.h"

enum { LANES_REGISTERS = 2, LANES_GROUPS = 1, LANES_COLS = 3, LANES_MIN_PANEL = 12 };
#define LANES_FEW(X)         X(3) X(2) X(1)
#define LANES_MANY(X)        X(3) X(2) X(1)
#define LANES_MANY_HALVES(X) X(2) X(1)

typedef struct vcodes {
    __m256i a, b;
} vcodes;
typedef struct vsum {
    __m256i a, b;
} vsum;
typedef struct vfloat {
    __m256 a, b;
} vfloat;
typedef vsum vpart;
typedef __m256i vfour;

INLINE vcodes codes_load(const uint8_t *p) {
    return (vcodes){_mm256_loadu_si256((const __m256i *)p),
                    _mm256_loadu_si256((const __m256i *)(p + 32))};
}
INLINE void codes_store(uint8_t *p, vcodes v) {
    _mm256_storeu_si256((__m256i *)p, v.a);
    _mm256_storeu_si256((__m256i *)(p + 32), v.b);
}
INLINE vcodes codes_or(vcodes u, vcodes v) {
    return (vcodes){_mm256_or_si256(u.a, v.a), _mm256_or_si256(u.b, v.b)};
}
INLINE __m256i bits_of_256(__m256i v, const int by, const int mask) {
    v = by > 0 ? _mm256_srli_epi16(v, by) : _mm256_slli_epi16(v, -by);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}
/* Returns (byte >> from & mask) << to for each byte. */
INLINE vcodes codes_bits(vcodes v, const int from, const int to, const int mask) {
    return (vcodes){bits_of_256(v.a, from - to, mask << to),
                    bits_of_256(v.b, from - to, mask << to)};
}
INLINE vcodes codes_lookup(vcodes v, const uint8_t *table) {
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return (vcodes){_mm256_shuffle_epi8(t, v.a), _mm256_shuffle_epi8(t, v.b)};
}
/* The same for bytes below 32, and 32 entries. */
INLINE vcodes codes_lookup32(vcodes v, const uint8_t *table) {
    const __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    const __m256i u = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(table + 16)));
    return (vcodes){_mm256_blendv_epi8(_mm256_shuffle_epi8(t, v.a), _mm256_shuffle_epi8(u, v.a),
                                       _mm256_slli_epi16(v.a, 3)),
                    _mm256_blendv_epi8(_mm256_shuffle_epi8(t, v.b), _mm256_shuffle_epi8(u, v.b),
                                       _mm256_slli_epi16(v.b, 3))};
}

INLINE vfour four_set(int32_t v) {
    return _mm256_set1_epi32(v);
}

#ifdef LANES_VNNI
enum { LANES_SIGNED = 0 };
/* Adds codes times x to the sum of the block; step i of n. The sum begins with `start`. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    (void)pair, (void)pairs, (void)n;
    if (i == 0)
        sum->a = sum->b = _mm256_set1_epi32(start);
    sum->a = LANES_VNNI(sum->a, v.a, x);
    sum->b = LANES_VNNI(sum->b, v.b, x);
}
#else
enum { LANES_SIGNED = 1 };
INLINE __m256i dot_signed(__m256i w, __m256i x) {
    w = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    return _mm256_madd_epi16(_mm256_set1_epi16(1),
                             _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
}
/* Adds codes times x to the sum of the block; step i of n. The sum also gets `start`. Pairs of
 * products are added in 16 bits, `pairs` of them before they are widened to 32. pairs 0: codes are
 * signed, and each pair is widened at once. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    __m256i a, b;
    if (pairs == 0) {
        a = dot_signed(v.a, x), b = dot_signed(v.b, x);
        sum->a = i == 0 ? a : _mm256_add_epi32(sum->a, a);
        sum->b = i == 0 ? b : _mm256_add_epi32(sum->b, b);
        PIN(sum->a);
        PIN(sum->b);
        return;
    }
    a = _mm256_maddubs_epi16(v.a, x), b = _mm256_maddubs_epi16(v.b, x);
    pair->a = i % pairs == 0 ? a : _mm256_add_epi16(pair->a, a);
    pair->b = i % pairs == 0 ? b : _mm256_add_epi16(pair->b, b);
    PIN(pair->a);
    PIN(pair->b);
    if (i % pairs == pairs - 1 || i == n - 1) {
        a = _mm256_madd_epi16(pair->a, _mm256_set1_epi16(1));
        b = _mm256_madd_epi16(pair->b, _mm256_set1_epi16(1));
        sum->a = i < pairs ? a : _mm256_add_epi32(sum->a, a);
        sum->b = i < pairs ? b : _mm256_add_epi32(sum->b, b);
    }
    if (i == n - 1) {
        sum->a = _mm256_add_epi32(sum->a, _mm256_set1_epi32(start));
        sum->b = _mm256_add_epi32(sum->b, _mm256_set1_epi32(start));
    }
}
#endif

/* Returns high * 128 + low. */
INLINE vsum sum_join(vsum high, vsum low) {
    return (vsum){_mm256_add_epi32(_mm256_slli_epi32(high.a, 7), low.a),
                  _mm256_add_epi32(_mm256_slli_epi32(high.b, 7), low.b)};
}

INLINE vfloat float_zero(void) {
    return (vfloat){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
INLINE vfloat float_set(float x) {
    return (vfloat){set8(x), set8(x)};
}
INLINE vfloat float_load(const float *p) {
    return (vfloat){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
/* Stores the first n (1..16) lanes. */
INLINE void float_store(float *p, vfloat v, int n) {
    if (n == 16) {
        _mm256_storeu_ps(p, v.a);
        _mm256_storeu_ps(p + 8, v.b);
    } else {
        _mm256_maskstore_ps(p, mask8(n), v.a);
        if (n > 8)
            _mm256_maskstore_ps(p + 8, mask8(n - 8), v.b);
    }
}
INLINE vfloat float_of(vsum s) {
    return (vfloat){_mm256_cvtepi32_ps(s.a), _mm256_cvtepi32_ps(s.b)};
}
INLINE vfloat float_mul(vfloat u, vfloat v) {
    return (vfloat){_mm256_mul_ps(u.a, v.a), _mm256_mul_ps(u.b, v.b)};
}
INLINE vfloat float_fma(vfloat u, vfloat v, vfloat w) { /* u * v + w */
    return (vfloat){_mm256_fmadd_ps(u.a, v.a, w.a), _mm256_fmadd_ps(u.b, v.b, w.b)};
}
INLINE vfloat float_fnma(vfloat u, vfloat v, vfloat w) { /* w - u * v */
    return (vfloat){_mm256_fnmadd_ps(u.a, v.a, w.a), _mm256_fnmadd_ps(u.b, v.b, w.b)};
}
INLINE vfloat float_negate(vfloat u) {
    return (vfloat){_mm256_xor_ps(u.a, set8(-0.0f)), _mm256_xor_ps(u.b, set8(-0.0f))};
}
/* Convert 16 f16 numbers, and 16 bytes: unsigned, signed, their lowest bit, their low and their high four bits. */
INLINE vfloat float_f16(const uint8_t *p) {
    return (vfloat){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16)))};
}
INLINE vfloat float_of_u8(__m128i v) {
    return (vfloat){_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)),
                    _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(v, 8)))};
}
INLINE vfloat float_u8(const uint8_t *p) {
    return float_of_u8(_mm_loadu_si128((const __m128i *)p));
}
INLINE vfloat float_i8(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    return (vfloat){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)),
                    _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)))};
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
INLINE __m256 e8m0_of_8(__m128i e8) {
    __m256i e = _mm256_cvtepu8_epi32(e8), one = _mm256_set1_epi32(1);
    __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, one), 23);
    __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x200000), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(tiny, normal, _mm256_cmpgt_epi32(e, one)));
}
INLINE vfloat float_e8m0(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    return (vfloat){e8m0_of_8(v), e8m0_of_8(_mm_srli_si128(v, 8))};
}

#endif
