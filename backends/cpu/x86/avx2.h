/* Functions that the AVX2 and AVX-512 files share. */
#ifndef CPU_AVX2_H
#define CPU_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "../unroll.h"
#include "x86.h"

/* Keeps a sum in its register: otherwise gcc reassociates integer vector additions and runs out of
 * registers. */
#define PIN(v) __asm__("" : "+x"(v))

INLINE __m256 set8(float x) {
    return _mm256_set1_ps(x);
}

/* Returns a mask of the first n (0..8) lanes. */
INLINE __m256i mask8(int64_t n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}

INLINE __m256 load_half(const uint16_t *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

/* Transposes 8 rows of 32 bytes: vector g gets bytes 4g..4g+3 of row 0, of row 1, .. of row 7. */
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

#endif
