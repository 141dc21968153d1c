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

#endif
