/* Measures the limit of AVX2 with FMA in registers: twelve sums at once, so that no instruction
 * waits for another. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "limits.h"

enum { SUMS = 12 };

static volatile int kept;

/* vpmaddubsw, vpmaddwd, vpaddd: 32 products of bytes. */
static double int8(int64_t n) {
    __m256i sum[SUMS], a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2), one = _mm256_set1_epi16(1);
    for (int k = 0; k < SUMS; k++)
        sum[k] = _mm256_setzero_si256();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < SUMS; k++) {
            /* the compiler must assume that it changed, and cannot move work out of the loop */
            __asm__ volatile("" : "+x"(a));
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

enum { STREAMS = 4 };

/* Reads several streams at once, and prefetches each. */
static inline void read_streams(const void *p, size_t size, const int n_streams, const int ahead) {
    enum { LINE = 64 };
    const char *s = p;
    size_t part = size / (size_t)n_streams;
    __m256i sum[STREAMS];
    for (int k = 0; k < n_streams; k++)
        sum[k] = _mm256_setzero_si256();
    for (size_t i = 0; i < part; i += LINE)
        for (int k = 0; k < n_streams; k++) {
            const char *at = s + (size_t)k * part + i;
            _mm_prefetch(at + ahead, _MM_HINT_T0);
            for (size_t j = 0; j < LINE; j += sizeof(__m256i))
                sum[k] = _mm256_xor_si256(sum[k], _mm256_loadu_si256((const __m256i *)(at + j)));
        }
    for (int k = 1; k < n_streams; k++)
        sum[0] = _mm256_xor_si256(sum[0], sum[k]);
    kept = _mm256_extract_epi32(sum[0], 0);
}

/* Many cache lines are requested at a time. */
static void read_all(const void *p, size_t size) {
    read_streams(p, size, STREAMS, 1024);
}

/* On some processors this is faster, because the memory is read in its order. */
static void read_in_order(const void *p, size_t size) {
    read_streams(p, size, 1, 8192);
}

const bench_peak bench_peak_avx2 = {"avx2", int8, f32, NULL, read_all, read_in_order};
#endif
