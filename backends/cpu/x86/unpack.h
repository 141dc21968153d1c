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

/* --- scales of a block of 256 ----------------------------------------------------------------- */

/* s: 8, or 16 for types with halves; m likewise if there are minima. */
typedef struct row_scales {
    __m256 s[2], m[2];
} row_scales;

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
PACK_32(q8_0, 34, 0)

#endif
