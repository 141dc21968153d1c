/* The functions that quant/unpack_tmpl.h needs, for AVX2. */
#ifndef CPU_UNPACK_AVX2_H
#define CPU_UNPACK_AVX2_H

#include "../../../ggml-lite/quant/raw_scales.h"
#include "../quant/rows16.h"
#include "avx2.h"

typedef __m256i c32;
typedef __m256 f8;

INLINE c32 c32_load(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}
INLINE c32 c32_set(const unsigned byte) {
    return _mm256_set1_epi8((char)byte);
}
INLINE c32 c32_twice(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
}
INLINE c32 c32_fours(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm256_set1_epi32(v);
}
INLINE c32 c32_halves(c32 a, c32 b) {
    return _mm256_blend_epi32(a, b, 0xf0);
}
INLINE c32 c32_and(c32 v, const int byte) {
    return _mm256_and_si256(v, _mm256_set1_epi8((char)byte));
}
INLINE c32 c32_or(c32 a, c32 b) {
    return _mm256_or_si256(a, b);
}
INLINE c32 c32_xor(c32 a, c32 b) {
    return _mm256_xor_si256(a, b);
}
INLINE c32 c32_nibbles(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    return c32_and(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), 15);
}
INLINE c32 c32_quarters(c32 v) {
    return _mm256_permute4x64_epi64(v, 0xd8);
}
INLINE c32 c32_bits(c32 v, const int from, const int to, const int mask) {
    v = from > to ? _mm256_srli_epi16(v, from - to) : _mm256_slli_epi16(v, to - from);
    return c32_and(v, mask << to);
}
INLINE c32 c32_spread(uint32_t bits, const int value) {
    const __m256i which =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), which), bit);
    return c32_and(_mm256_cmpeq_epi8(v, bit), value);
}
/* Each 16-bit word is copied to several lanes; a multiplication shifts the pair of elements that a
 * lane is for to its top bits. */
INLINE c32 c32_twos(uint64_t v) {
    const __m256i which = _mm256_setr_epi64x(0x0100010001000100, 0x0302030203020302,
                                             0x0504050405040504, 0x0706070607060706);
    __m256i w = _mm256_shuffle_epi8(_mm256_set1_epi64x((long long)v), which);
    w = _mm256_mullo_epi16(w, _mm256_set1_epi64x(0x0001001001001000));
    w = _mm256_srli_epi16(w, 12);
    return c32_and(_mm256_or_si256(w, _mm256_slli_epi16(w, 6)), 3);
}
INLINE c32 c32_threes(uint64_t v, uint64_t w) {
    __m128i p = _mm_set_epi64x((long long)w, (long long)v);
    __m256i u = _mm256_set_m128i(_mm_unpackhi_epi16(p, p), _mm_unpacklo_epi16(p, p));
    u = _mm256_mullo_epi16(u, _mm256_set1_epi32(0x00100400));
    u = _mm256_srli_epi16(u, 10);
    return c32_and(_mm256_or_si256(u, _mm256_slli_epi16(u, 5)), 7);
}
INLINE c32 c32_lookup(const uint8_t *table, c32 v) {
    return _mm256_shuffle_epi8(c32_twice(table), v);
}
INLINE c32 c32_base3(c32 v, const uint8_t *powers) {
    const __m256i ff = _mm256_set1_epi16(0xff), three = _mm256_set1_epi16(3), by = c32_load(powers);
    __m256i even = _mm256_and_si256(_mm256_mullo_epi16(v, by), ff);
    __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(v, 8), _mm256_srli_epi16(by, 8));
    even = _mm256_srli_epi16(_mm256_mullo_epi16(even, three), 8);
    odd = _mm256_andnot_si256(ff, _mm256_mullo_epi16(_mm256_and_si256(odd, ff), three));
    return _mm256_or_si256(even, odd);
}

INLINE float f16_value(uint16_t bits) {
    return _cvtsh_ss(bits);
}
INLINE f8 f8_scaled_u8(float d, uint64_t bytes) {
    __m128i v = _mm_cvtsi64_si128((long long)bytes);
    return _mm256_mul_ps(set8(d), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)));
}
INLINE f8 f8_scaled_i8(float d, uint64_t bytes) {
    __m128i v = _mm_cvtsi64_si128((long long)bytes);
    return _mm256_mul_ps(set8(d), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)));
}

INLINE void f16_rows(float *out, const uint8_t *p, const size_t *row, raw_fn *raw,
                     const bool minima) {
    for (int h = 0; h < 2; h++, row += 8, out += 8) {
        uint16_t d[8];
        for (int r = 0; r < 8; r++)
            d[r] = minima ? raw(p + row[r]).m : raw(p + row[r]).d;
        __m128i v = _mm_setzero_si128();
        v = _mm_insert_epi16(v, d[0], 0), v = _mm_insert_epi16(v, d[1], 1);
        v = _mm_insert_epi16(v, d[2], 2), v = _mm_insert_epi16(v, d[3], 3);
        v = _mm_insert_epi16(v, d[4], 4), v = _mm_insert_epi16(v, d[5], 5);
        v = _mm_insert_epi16(v, d[6], 6), v = _mm_insert_epi16(v, d[7], 7);
        __m256 x = _mm256_cvtph_ps(v);
        _mm256_storeu_ps(out, minima ? _mm256_xor_ps(set8(-0.0f), x) : x);
    }
}

INLINE void pack_codes(uint8_t *codes, const uint8_t *w, const size_t *row,
                       c32 (*unpack)(const uint8_t *, const int), const int k,
                       const uint8_t *table) {
    for (int h = 0; h < 2; h++, row += 8, codes += 32) {
        __m256i v[8];
        for (int r = 0; r < 8; r++)
            v[r] = table ? c32_lookup(table, unpack(w + row[r], k)) : unpack(w + row[r], k);
        transpose_8x8(v);
        for (int g = 0; g < 8; g++)
            _mm256_storeu_si256((__m256i *)(codes + g * CPU_PLANE), v[g]);
    }
}

INLINE void put_scales(float *out, const f8 *v, const int step, const int *places) {
    for (int h = 0; h < 2; h++) {
        __m256i t[8];
        for (int r = 0; r < 8; r++)
            t[r] = _mm256_castps_si256(v[(8 * h + r) * step]);
        transpose_8x8(t);
        for (int i = 0; i < 8; i++)
            _mm256_storeu_ps(out + places[i] * CPU_GROUP + 8 * h, _mm256_castsi256_ps(t[i]));
    }
}

#endif
