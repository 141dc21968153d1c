/* Columns for bf16 and quantized weights. */
#include "avx2.h"

INLINE int32_t sum_epi32(__m256i v) {
    __m128i a = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(a, _mm_shuffle_epi32(a, 0xb1)));
}

INLINE uint32_t max_epi32(__m256i v) { /* of values below 2^31 */
    __m128i a = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    a = _mm_max_epi32(a, _mm_shuffle_epi32(a, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epi32(a, _mm_shuffle_epi32(a, 0xb1)));
}

static void quantize(cpu_qblock *y, const float *x, int64_t n) {
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    for (int64_t i = 0; i < n; i += CPU_QBLOCK, y++) {
        __m256 v[4];
        __m256i m = _mm256_setzero_si256(), c[4];
        for (int h = 0; h < 4; h++) {
            v[h] = _mm256_loadu_ps(x + i + 8 * h);
            m = _mm256_max_epi32(m, _mm256_and_si256(_mm256_castps_si256(v[h]), magnitude));
        }
        uint32_t bits = max_epi32(m);
        float largest;
        memcpy(&largest, &bits, sizeof largest);
        if (bits >= 0x7f800000 || largest < 0x1p-100f) {
            memset(y, 0, sizeof *y);
            y->d = y->scaled_sum = bits >= 0x7f800000 ? NAN : 0.0f;
            continue;
        }
        const __m256 id = set8(127.0f / largest);
        y->d = largest / 127.0f;
        for (int h = 0; h < 4; h++) /* cvtps rounds as MXCSR says: to nearest even */
            c[h] = _mm256_cvtps_epi32(_mm256_mul_ps(v[h], id));
        y->half[0] = (int16_t)sum_epi32(_mm256_add_epi32(c[0], c[1]));
        y->half[1] = (int16_t)sum_epi32(_mm256_add_epi32(c[2], c[3]));
        y->sum = y->half[0] + y->half[1];
        y->scaled_sum = y->d * (float)y->sum;
        __m256i p =
            _mm256_packs_epi16(_mm256_packs_epi32(c[0], c[1]), _mm256_packs_epi32(c[2], c[3]));
        p = _mm256_permutevar8x32_epi32(p, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)y->q, p);
    }
}

/* To nearest even; NaN becomes a quiet one; below 2^-56 zero. */
INLINE __m256 to_bf16(__m256 x) {
    __m256i u = _mm256_castps_si256(x);
    __m256i even = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    u = _mm256_add_epi32(u, _mm256_add_epi32(even, _mm256_set1_epi32(0x7fff)));
    __m256 r = _mm256_castsi256_ps(_mm256_and_si256(u, _mm256_set1_epi32((int)0xffff0000)));
    r = _mm256_andnot_ps(_mm256_cmp_ps(abs8(r), set8(0x1p-56f), _CMP_LT_OQ), r);
    return choose(is_nan(x), set8(NAN), r);
}

static void round_bf16(float *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 32, y += 32) {
        float rest[32] = {0};
        const float *p = x + i;
        if (n - i < 32) {
            memcpy(rest, p, (size_t)(n - i) * sizeof *x);
            p = rest;
        }
        for (int h = 0; h < 2; h++) {
            __m256 a = to_bf16(_mm256_loadu_ps(p + 16 * h)),
                   b = to_bf16(_mm256_loadu_ps(p + 16 * h + 8));
            __m256d odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd)),
                    even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
            _mm256_storeu_ps(y + 8 * h, _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8)));
            _mm256_storeu_ps(y + 16 + 8 * h, _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8)));
        }
    }
}

void cpu_kernels_quantize_avx2(cpu_kernels *k) {
    k->quantize = quantize;
    k->round_bf16 = round_bf16;
}
