/* The most that AVX2 with FMA does in registers: twelve sums at once, so that no instruction waits
 * for another. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "bench_limits.h"

enum { SUMS = 12 };

static volatile int kept;

/* vpmaddubsw, vpmaddwd, vpaddd: 32 products of bytes. */
static double int8(int64_t n) {
    __m256i sum[SUMS], a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2), one = _mm256_set1_epi16(1);
    for (int k = 0; k < SUMS; k++)
        sum[k] = _mm256_setzero_si256();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < SUMS; k++) {
            __asm__ volatile("" : "+x"(a)); /* as if it were another: nothing is done only once */
            sum[k] = _mm256_add_epi32(sum[k], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), one));
        }
    for (int k = 1; k < SUMS; k++)
        sum[0] = _mm256_xor_si256(sum[0], sum[k]);
    kept = _mm256_extract_epi32(sum[0], 0);
    return (double)n * SUMS * 32;
}

static double f32(int64_t n) {
    __m256 sum[SUMS], a = _mm256_set1_ps(1), b = _mm256_set1_ps(0x1p-20f);
    for (int k = 0; k < SUMS; k++)
        sum[k] = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < SUMS; k++) {
            __asm__ volatile("" : "+x"(a));
            sum[k] = _mm256_fmadd_ps(a, b, sum[k]);
        }
    for (int k = 1; k < SUMS; k++)
        sum[0] = _mm256_add_ps(sum[0], sum[k]);
    kept = (int)_mm256_cvtss_f32(sum[0]);
    return (double)n * SUMS * 8;
}

static void read_all(const void *p, size_t size) {
    const __m256i *s = p;
    __m256i sum[8];
    for (int k = 0; k < 8; k++)
        sum[k] = _mm256_setzero_si256();
    for (size_t i = 0; i < size / sizeof *s; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] = _mm256_xor_si256(sum[k], _mm256_loadu_si256(s + i + k));
    for (int k = 1; k < 8; k++)
        sum[0] = _mm256_xor_si256(sum[0], sum[k]);
    kept = _mm256_extract_epi32(sum[0], 0);
}

const bench_peak bench_peak_avx2 = {"avx2", int8, f32, read_all};
#endif
