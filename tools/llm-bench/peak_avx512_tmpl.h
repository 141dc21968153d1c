/* Measures the limit of AVX-512 in registers: peak_avx2.c with wider vectors. The file that includes it says by its flags whether
 * there is VNNI. */
#include <immintrin.h>

#include "limits.h"

enum { SUMS = 12 };

static volatile int kept;

/* Adds 64 products of bytes: vpdpbusd; without VNNI vpmaddubsw, vpmaddwd, vpaddd. */
static inline __m512i add_products(__m512i sum, __m512i a, __m512i b) {
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(sum, a, b);
#else
    const __m512i one = _mm512_set1_epi16(1);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), one));
#endif
}

static double int8(int64_t n) {
    __m512i sum[SUMS], a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);
    for (int k = 0; k < SUMS; k++)
        sum[k] = _mm512_setzero_si512();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < SUMS; k++) {
            /* the compiler must assume that it changed, and cannot move work out of the loop */
            __asm__ volatile("" : "+v"(a));
            sum[k] = add_products(sum[k], a, b);
        }
    for (int k = 1; k < SUMS; k++)
        sum[0] = _mm512_xor_si512(sum[0], sum[k]);
    kept = _mm512_reduce_add_epi32(sum[0]);
    return (double)n * SUMS * 64;
}

static double f32(int64_t n) {
    __m512 sum[SUMS], a = _mm512_set1_ps(1), b = _mm512_set1_ps(0x1p-20f);
    for (int k = 0; k < SUMS; k++)
        sum[k] = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < SUMS; k++) {
            __asm__ volatile("" : "+v"(a));
            sum[k] = _mm512_fmadd_ps(a, b, sum[k]);
        }
    for (int k = 1; k < SUMS; k++)
        sum[0] = _mm512_add_ps(sum[0], sum[k]);
    kept = (int)_mm512_cvtss_f32(sum[0]);
    return (double)n * SUMS * 16;
}

enum { STREAMS = 4 };

/* Reads several streams at once, and prefetches each. */
static inline void read_streams(const void *p, size_t size, const int n_streams, const int ahead) {
    enum { LINE = 64 };
    const char *s = p;
    size_t part = size / (size_t)n_streams;
    __m512i sum[STREAMS];
    for (int k = 0; k < n_streams; k++)
        sum[k] = _mm512_setzero_si512();
    for (size_t i = 0; i < part; i += LINE)
        for (int k = 0; k < n_streams; k++) {
            const char *at = s + (size_t)k * part + i;
            _mm_prefetch(at + ahead, _MM_HINT_T0);
            for (size_t j = 0; j < LINE; j += sizeof(__m512i))
                sum[k] = _mm512_xor_si512(sum[k], _mm512_loadu_si512((const __m512i *)(at + j)));
        }
    for (int k = 1; k < n_streams; k++)
        sum[0] = _mm512_xor_si512(sum[0], sum[k]);
    kept = _mm512_reduce_add_epi32(sum[0]);
}

/* Many cache lines are requested at a time. */
static void read_all(const void *p, size_t size) {
    read_streams(p, size, STREAMS, 1024);
}

/* On some processors this is faster, because the memory is read in its order. */
static void read_in_order(const void *p, size_t size) {
    read_streams(p, size, 1, 8192);
}
