/* Quantized rows as they lie in a file: how 32 codes of a block become bytes. A new type is one
 * unpack function and one scale offset here, and its row in the tables of quant_avx2.c and
 * quant_avx512vnni.c. */
#ifndef CPU_QUANT_ROWS_H
#define CPU_QUANT_ROWS_H

#include "avx2.h"

enum {
    Q8_0_SIZE = 34,
    Q4_0_SIZE = 18
}; /* bytes of a block of 32; the f16 scale comes first in both */

INLINE __m256i unpack_q8_0(const uint8_t *block) { /* signed */
    return _mm256_loadu_si256((const __m256i *)(block + 2));
}

INLINE __m256i unpack_q4_0(const uint8_t *block) { /* 0..15, the offset of 8 not taken */
    __m128i v = _mm_loadu_si128((const __m128i *)(block + 2));
    return _mm256_and_si256(_mm256_set1_epi8(15), _mm256_set_m128i(_mm_srli_epi16(v, 4), v));
}

typedef __m256i unpack_fn(const uint8_t *block);

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

/* Panel of `height` rows (a multiple of 8): for each block, first all codes, 8 groups of
 * [height][4] bytes, then nothing else; behind all blocks the scales, f32 [block][height]. Rows
 * past n_rows repeat the last. flip: xored to each byte. */
INLINE void pack_panel(void *panel, const uint8_t *w, size_t row_size, int n_rows, int64_t k,
                       const int height, unpack_fn *unpack, const size_t size, const int flip) {
    uint8_t *codes = panel;
    float *scale = (float *)(codes + k * height);
    for (int r0 = 0; r0 < height; r0 += 8) {
        const uint8_t *row[8];
        for (int r = 0; r < 8; r++)
            row[r] = w + (size_t)(r0 + r < n_rows ? r0 + r : n_rows - 1) * row_size;
        for (int64_t b = 0; b < k / 32; b++) {
            __m256i v[8];
            for (int r = 0; r < 8; r++)
                v[r] = _mm256_xor_si256(_mm256_set1_epi8((char)flip),
                                        unpack(row[r] + (size_t)b * size));
            transpose_8x8(v);
            for (int g = 0; g < 8; g++)
                _mm256_storeu_si256((__m256i *)(codes + ((b * 8 + g) * height + r0) * 4), v[g]);
            for (int r = 0; r < 8; r++) {
                uint16_t d;
                memcpy(&d, row[r] + (size_t)b * size, sizeof d);
                scale[b * height + r0 + r] = _cvtsh_ss(d);
            }
        }
    }
}

#endif
