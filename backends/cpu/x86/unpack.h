/* Quantized rows as they lie in a file, unpacked by AVX2: a type is one function that gives 32
 * codes as unsigned bytes (quant/quant_types.def: offset), and, if its blocks are of 256, one that
 * gives a row's scales. Blocks: ggml-lite/quant/quant.h and docs/types.md. */
#ifndef CPU_UNPACK_H
#define CPU_UNPACK_H

#include "../quant/rows16.h"
#include "avx2.h"

INLINE __m256i load32(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m256i and8(__m256i v, const int mask) {
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

/* The low halves of 16 bytes, then the high halves. */
INLINE __m256i nibbles(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)p);
    return and8(_mm256_set_m128i(_mm_srli_epi16(v, 4), v), 15);
}

/* --- codes of block k of a file's block ------------------------------------------------------ */

INLINE __m256i unpack_q8_0(const uint8_t *p, const int k) {
    (void)k;
    return _mm256_xor_si256(load32(p + 2), _mm256_set1_epi8(-128));
}

INLINE __m256i unpack_q4_0(const uint8_t *p, const int k) {
    (void)k;
    return nibbles(p + 2);
}

INLINE __m256i unpack_q4_1(const uint8_t *p, const int k) {
    (void)k;
    return nibbles(p + 4);
}

/* 32 bits, one for each element, as bytes of 0 or `value`. */
INLINE __m256i spread_bits(const uint8_t *p, const int value) {
    const __m256i which =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    int32_t bits;
    memcpy(&bits, p, sizeof bits);
    __m256i v = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits), which), bit);
    return and8(_mm256_cmpeq_epi8(v, bit), value);
}

INLINE __m256i unpack_q5_0(const uint8_t *p, const int k) {
    (void)k;
    return _mm256_or_si256(nibbles(p + 6), spread_bits(p + 2, 16));
}

INLINE __m256i unpack_q5_1(const uint8_t *p, const int k) {
    (void)k;
    return _mm256_or_si256(nibbles(p + 8), spread_bits(p + 4, 16));
}

INLINE __m256i lookup(const uint8_t *table, __m256i v) {
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)table));
    return _mm256_shuffle_epi8(t, v);
}

INLINE __m256i unpack_iq4_nl(const uint8_t *p, const int k) {
    (void)k;
    return lookup(cpu_table_IQ4, nibbles(p + 2));
}

INLINE __m256i unpack_mxfp4(const uint8_t *p, const int k) {
    (void)k;
    return lookup(cpu_table_MXFP4, nibbles(p + 1));
}

INLINE __m256i unpack_iq4_xs(const uint8_t *p, const int k) {
    return lookup(cpu_table_IQ4, nibbles(p + 8 + 16 * k));
}

/* Bits `mask` of each byte from place `from` on, put to place `to` on. */
INLINE __m256i bits32(const uint8_t *p, const int from, const int to, const int mask) {
    __m256i v = load32(p);
    v = from > to ? _mm256_srli_epi16(v, from - to) : _mm256_slli_epi16(v, to - from);
    return and8(v, mask << to);
}

INLINE __m256i unpack_q2_k(const uint8_t *p, const int k) {
    return bits32(p + 16 + k / 4 * 32, k % 4 * 2, 0, 3);
}

INLINE __m256i unpack_q3_k(const uint8_t *p, const int k) {
    return _mm256_or_si256(bits32(p + 32 + k / 4 * 32, k % 4 * 2, 0, 3), bits32(p, k, 2, 1));
}

INLINE __m256i unpack_q4_k(const uint8_t *p, const int k) {
    return bits32(p + 16 + k / 2 * 32, k % 2 * 4, 0, 15);
}

INLINE __m256i unpack_q5_k(const uint8_t *p, const int k) {
    return _mm256_or_si256(bits32(p + 48 + k / 2 * 32, k % 2 * 4, 0, 15), bits32(p + 16, k, 4, 1));
}

INLINE __m256i unpack_q6_k(const uint8_t *p, const int k) {
    return _mm256_or_si256(bits32(p + k / 4 * 64 + k % 2 * 32, k % 4 / 2 * 4, 0, 15),
                           bits32(p + 128 + k / 4 * 32, k % 4 * 2, 4, 3));
}

INLINE __m256i unpack_tq2_0(const uint8_t *p, const int k) {
    return bits32(p + k / 4 * 32, k % 4 * 2, 0, 3);
}

/* The highest of five base-3 digits once the byte is multiplied by 3^place: (byte * 3) >> 8. */
INLINE __m256i base3(__m256i v, const int power) {
    const __m256i ff = _mm256_set1_epi16(0xff), three = _mm256_set1_epi16(3);
    const __m256i by = _mm256_set1_epi16((short)power);
    __m256i even = _mm256_and_si256(_mm256_mullo_epi16(_mm256_and_si256(v, ff), by), ff);
    __m256i odd = _mm256_and_si256(_mm256_mullo_epi16(_mm256_srli_epi16(v, 8), by), ff);
    even = _mm256_srli_epi16(_mm256_mullo_epi16(even, three), 8);
    odd = _mm256_andnot_si256(ff, _mm256_mullo_epi16(odd, three));
    return _mm256_or_si256(even, odd);
}

/* | 32 bytes: digits of elements 0..159 | 16 bytes: 160..239 | 4 bytes: 240..255 | d | */
INLINE __m256i unpack_tq1_0(const uint8_t *p, const int k) {
    static const int power[] = {1, 3, 9, 27, 81};
    if (k < 5)
        return base3(load32(p), power[k]);
    if (k < 7) { /* two places of the 16 bytes */
        __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p + 32)));
        return _mm256_blend_epi32(base3(v, power[2 * k - 10]), base3(v, power[2 * k - 9]), 0xf0);
    }
    __m256i v = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(p + 32)));
    int32_t four;
    memcpy(&four, p + 48, sizeof four);
    __m256i last = _mm256_set1_epi32(four), digits = base3(v, power[4]);
    digits = _mm256_blend_epi32(digits, base3(last, 1), 1 << 4);
    digits = _mm256_blend_epi32(digits, base3(last, 3), 1 << 5);
    digits = _mm256_blend_epi32(digits, base3(last, 9), 1 << 6);
    return _mm256_blend_epi32(digits, base3(last, 27), 1 << 7);
}

/* --- scales of a block of 256 ----------------------------------------------------------------- */

/* s: 8, or 16 for types with halves; m likewise if there are minima. Of Q2_K s[0] and m[0] are
 * those of first halves. */
typedef struct row_scales {
    __m256 s[2], m[2];
} row_scales;

INLINE __m256 f16_at(const uint8_t *p) {
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return set8(_cvtsh_ss(h));
}

/* Eight bytes times a scale. */
INLINE __m256 scaled_u8(__m256 d, __m128i v) {
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v)));
}
INLINE __m256 scaled_i8(__m256 d, __m128i v) {
    return _mm256_mul_ps(d, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v)));
}

/* Q4_K and Q5_K: 12 bytes hold eight scales and eight minima of 6 bits: of the first four the low 6
 * bits of bytes 0-3 and 4-7; of the others the halves of bytes 8-11 and the top bits of the former.
 */
INLINE row_scales scales_q4_k(const uint8_t *p) {
    uint32_t a, b, c;
    row_scales r;
    memcpy(&a, p + 4, 4), memcpy(&b, p + 8, 4), memcpy(&c, p + 12, 4);
    uint32_t s4 = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030);
    uint32_t m4 = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
    r.s[0] = scaled_u8(f16_at(p), _mm_set_epi32(0, 0, (int)s4, (int)(a & 0x3f3f3f3f)));
    r.m[0] = scaled_u8(f16_at(p + 2), _mm_set_epi32(0, 0, (int)m4, (int)(b & 0x3f3f3f3f)));
    return r;
}

#define scales_q5_k scales_q4_k

/* 16 bytes: scales in the low halves, minima in the high; even ones are of first halves. */
INLINE row_scales scales_q2_k(const uint8_t *p) {
    const __m128i evens_odds = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    __m128i v = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)p), evens_odds);
    __m128i low = _mm_and_si128(v, _mm_set1_epi8(15));
    __m128i high = _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
    __m256 d = f16_at(p + 80), m = f16_at(p + 82);
    return (row_scales){{scaled_u8(d, low), scaled_u8(d, _mm_srli_si128(low, 8))},
                        {scaled_u8(m, high), scaled_u8(m, _mm_srli_si128(high, 8))}};
}

/* 12 bytes hold 16 scales of 6 bits, less 32: the halves of bytes 0-7 and, two bits each, bytes
 * 8-11. */
INLINE row_scales scales_q3_k(const uint8_t *p) {
    uint32_t a, b, c;
    memcpy(&a, p + 96, 4), memcpy(&b, p + 100, 4), memcpy(&c, p + 104, 4);
    const uint32_t low = 0x0f0f0f0f, top = 0x30303030;
    __m128i v =
        _mm_setr_epi32((int)((a & low) | (c << 4 & top)), (int)((b & low) | (c << 2 & top)),
                       (int)((a >> 4 & low) | (c & top)), (int)((b >> 4 & low) | (c >> 2 & top)));
    v = _mm_sub_epi8(v, _mm_set1_epi8(32));
    __m256 d = f16_at(p + 108);
    return (row_scales){.s = {scaled_i8(d, v), scaled_i8(d, _mm_srli_si128(v, 8))}};
}

INLINE row_scales scales_q6_k(const uint8_t *p) {
    __m128i v = _mm_loadu_si128((const __m128i *)(p + 192));
    __m256 d = f16_at(p + 208);
    return (row_scales){.s = {scaled_i8(d, v), scaled_i8(d, _mm_srli_si128(v, 8))}};
}

/* Eight scales of 6 bits, less 32: the low four in the halves of bytes 4-7, the top two in 16 bits.
 */
INLINE row_scales scales_iq4_xs(const uint8_t *p) {
    const __m256i shift = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14);
    uint16_t top;
    uint32_t low;
    memcpy(&top, p + 2, 2), memcpy(&low, p + 4, 4);
    __m256i l = _mm256_srlv_epi32(_mm256_set1_epi32((int)low), _mm256_slli_epi32(shift, 1));
    __m256i h = _mm256_srlv_epi32(_mm256_set1_epi32(top), shift);
    __m256i v = _mm256_or_si256(_mm256_and_si256(l, _mm256_set1_epi32(15)),
                                _mm256_slli_epi32(_mm256_and_si256(h, _mm256_set1_epi32(3)), 4));
    v = _mm256_sub_epi32(v, _mm256_set1_epi32(32));
    return (row_scales){.s = {_mm256_mul_ps(f16_at(p), _mm256_cvtepi32_ps(v))}};
}

INLINE row_scales scales_tq1_0(const uint8_t *p) {
    return (row_scales){.s = {f16_at(p + 52)}};
}

INLINE row_scales scales_tq2_0(const uint8_t *p) {
    return (row_scales){.s = {f16_at(p + 64)}};
}

typedef __m256i unpack_fn(const uint8_t *block, const int k);
typedef row_scales scales_fn(const uint8_t *block);

/* --- 16 rows side by side --------------------------------------------------------------------- */

/* 8 rows of 32 bytes -> 8 vectors: vector g has bytes 4g..4g+3 of row 0, of row 1, .. of row 7. */
INLINE void transpose_8x8(__m256i v[8]) {
    __m256i t[8];
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        v[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        v[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        v[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        v[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        t[i] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x20);
        t[i + 4] = _mm256_permute2x128_si256(v[i], v[i + 4], 0x31);
    }
    for (int i = 0; i < 8; i++)
        v[i] = t[i];
}

/* Half of the 16 rows: 8 rows from row[0] on, to 32 bytes of each plane. */
INLINE void pack_codes_8(uint8_t *codes, const uint8_t *w, const size_t *row, unpack_fn *unpack,
                         const int k) {
    __m256i v[8];
    for (int r = 0; r < 8; r++)
        v[r] = unpack(w + row[r], k);
    transpose_8x8(v);
    for (int g = 0; g < 8; g++)
        _mm256_storeu_si256((__m256i *)(codes + g * CPU_PLANE), v[g]);
}

/* Eight values of each of 16 rows to out[(first + step * i) * 16 + row]. */
INLINE void put_scales(float *out, const __m256 *v, const int stride, const int first,
                       const int step) {
    for (int h = 0; h < 2; h++) {
        __m256i t[8];
        for (int r = 0; r < 8; r++)
            t[r] = _mm256_castps_si256(v[(8 * h + r) * stride]);
        transpose_8x8(t);
        for (int i = 0; i < 8; i++)
            _mm256_storeu_ps(out + (first + step * i) * CPU_GROUP + 8 * h,
                             _mm256_castsi256_ps(t[i]));
    }
}

/* The f16 at p of 8 rows. */
INLINE __m256 f16_of_8(const uint8_t *p, const size_t *row) {
    uint16_t d[8];
    __m128i v = _mm_setzero_si128();
    for (int r = 0; r < 8; r++)
        memcpy(d + r, p + row[r], 2);
    v = _mm_insert_epi16(v, d[0], 0), v = _mm_insert_epi16(v, d[1], 1);
    v = _mm_insert_epi16(v, d[2], 2), v = _mm_insert_epi16(v, d[3], 3);
    v = _mm_insert_epi16(v, d[4], 4), v = _mm_insert_epi16(v, d[5], 5);
    v = _mm_insert_epi16(v, d[6], 6), v = _mm_insert_epi16(v, d[7], 7);
    return _mm256_cvtph_ps(v);
}

/* Types with blocks of 32: the scale is the f16 at 0, the minimum the one at 2, with the other
 * sign. */
INLINE void pack_32(uint8_t *codes, float *scales, const uint8_t *w, const size_t *row, int64_t n,
                    unpack_fn *unpack, const int size, const int min) {
    for (; n > 0; n--, w += size, codes += 8 * CPU_PLANE)
        for (int h = 0; h < 2; h++) {
            pack_codes_8(codes + 32 * h, w, row + 8 * h, unpack, 0);
            _mm256_storeu_ps(scales + 8 * h, f16_of_8(w, row + 8 * h));
            if (min)
                _mm256_storeu_ps(scales + CPU_GROUP + 8 * h,
                                 _mm256_xor_ps(set8(-0.0f), f16_of_8(w + 2, row + 8 * h)));
            if (h == 1)
                scales += (1 + min) * CPU_GROUP;
        }
}

/* Types with blocks of 256. */
INLINE void pack_256(uint8_t *codes, float *scales, const uint8_t *w, const size_t *row, int64_t n,
                     unpack_fn *unpack, scales_fn *scales_of_row, const int size, const int min,
                     const int halves) {
    for (; n > 0; n -= 8, w += size) {
        row_scales s[CPU_GROUP];
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++, codes += 8 * CPU_PLANE)
            for (int h = 0; h < 2; h++)
                pack_codes_8(codes + 32 * h, w, row + 8 * h, unpack, k);
        for (int r = 0; r < CPU_GROUP; r++)
            s[r] = scales_of_row(w + row[r]);
        const int stride = sizeof *s / sizeof s->s[0];
        if (!halves) { /* a block has s, or s and m */
            put_scales(scales, &s[0].s[0], stride, 0, 1 + min);
            if (min)
                put_scales(scales, &s[0].m[0], stride, 1, 2);
        } else if (!min) { /* a block has both s */
            put_scales(scales, &s[0].s[0], stride, 0, 1);
            put_scales(scales, &s[0].s[1], stride, 8, 1);
        } else { /* a block has both s and both m; here s[0] has the first halves, s[1] the second
                  */
            for (int h = 0; h < 2; h++) {
                put_scales(scales, &s[0].s[h], stride, h, 4);
                put_scales(scales, &s[0].m[h], stride, 2 + h, 4);
            }
        }
        scales += 8 * (1 + min) * (1 + halves) * CPU_GROUP;
    }
}

#define PACK_32(name, size, min)                                                                   \
    static void pack_blocks_##name(uint8_t *codes, float *scales, const uint8_t *w,                \
                                   const size_t *row, int64_t n) {                                 \
        pack_32(codes, scales, w, row, n, unpack_##name, size, min);                               \
    }
#define PACK_256(name, size, min, halves)                                                          \
    static void pack_blocks_##name(uint8_t *codes, float *scales, const uint8_t *w,                \
                                   const size_t *row, int64_t n) {                                 \
        pack_256(codes, scales, w, row, n, unpack_##name, scales_##name, size, min, halves);       \
    }
PACK_32(q4_0, 18, 0)
PACK_32(q4_1, 20, 1)
PACK_32(q5_0, 22, 0)
PACK_32(q5_1, 24, 1)
PACK_32(q8_0, 34, 0)
PACK_32(iq4_nl, 18, 0)
PACK_256(q2_k, 84, 1, 1)
PACK_256(q3_k, 110, 0, 1)
PACK_256(q4_k, 144, 1, 0)
PACK_256(q5_k, 176, 1, 0)
PACK_256(q6_k, 210, 0, 1)
PACK_256(iq4_xs, 136, 0, 0)
PACK_256(tq1_0, 54, 0, 0)
PACK_256(tq2_0, 66, 0, 0)

#define QTYPE(NAME, name, panel, low, high, table, scales, unit)
#define ITYPE(NAME, name, panel, low, high, table, scales, unit)                                   \
    static void pack_blocks_##name(uint8_t *codes, float *to, const uint8_t *w, const size_t *row, \
                                   int64_t n) {                                                    \
        cpu_pack_blocks(GGL_##NAME, codes, to, w, row, n);                                         \
    }
#include "../quant/quant_types.def"

/* The scale of MXFP4 is a byte. */
static void pack_blocks_mxfp4(uint8_t *codes, float *scales, const uint8_t *w, const size_t *row,
                              int64_t n) {
    for (; n > 0; n--, w += 17, codes += 8 * CPU_PLANE, scales += CPU_GROUP) {
        uint8_t e[CPU_GROUP];
        for (int r = 0; r < CPU_GROUP; r++)
            e[r] = w[row[r]];
        for (int h = 0; h < 2; h++)
            pack_codes_8(codes + 32 * h, w, row + 8 * h, unpack_mxfp4, 0);
        float_store(scales, float_e8m0(e), CPU_GROUP);
    }
}

#endif
