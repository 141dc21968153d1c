/* Measures the limit of AVX-512 with VNNI and BF16 in registers. */
#if defined(__x86_64__)
#include "peak_avx512_tmpl.h"

/* vdpbf16ps: 32 products. */
static double bf16(int64_t n) {
    __m512 sum[SUMS];
    __m512i a = _mm512_set1_epi16(0x3f80); /* 1 */
    for (int k = 0; k < SUMS; k++)
        sum[k] = _mm512_setzero_ps();
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < SUMS; k++) {
            __asm__ volatile("" : "+v"(a));
            sum[k] = _mm512_dpbf16_ps(sum[k], (__m512bh)a, (__m512bh)a);
        }
    for (int k = 1; k < SUMS; k++)
        sum[0] = _mm512_add_ps(sum[0], sum[k]);
    kept = (int)_mm512_cvtss_f32(sum[0]);
    return (double)n * SUMS * 32;
}

const bench_peak bench_peak_avx512bf16 = {"avx512bf16", int8, f32, bf16, read_all, read_in_order};
#endif
