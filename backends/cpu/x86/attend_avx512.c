/* Attention over a page, as attend_avx2.c with 16 lanes: up to four queries meet four registers of
 * stored numbers at a time; of quantized ones, which cost more to decode, up to eight meet two. */
#include "vector_avx2.h"

/* Else gcc keeps four times four sums in memory. */
#define UNROLL _Pragma("GCC unroll 8")

enum { MOST = CPU_QUERIES, WIDE = 4 }; /* queries; registers of a load, at most */

INLINE __m512 set16(float x) {
    return _mm512_set1_ps(x);
}

/* What the codes of q4_0 stand for. A permutation by codes looks at their low four bits only. */
INLINE __m512 nibble_numbers(void) {
    return _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
}

INLINE __m512i load_bytes(const uint8_t *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p));
}

INLINE __m512 from_i8(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

INLINE __m512 load_halves(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

/* Elements i .. of what is not quantized, in the lanes of the mask. */
INLINE __m512 load_some(__mmask16 m, const void *p, int64_t i, const ggl_type type) {
    if (type == GGL_F32)
        return _mm512_maskz_loadu_ps(m, (const float *)p + i);
    __m256i x = _mm256_maskz_loadu_epi16(m, (const uint16_t *)p + i);
    return type == GGL_F16 ? _mm512_cvtph_ps(x)
                           : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

INLINE __m512 load_plain(const void *p, int64_t i, const ggl_type type) {
    return load_some(0xffff, p, i, type);
}

/* --- scores -------------------------------------------------------------------------------- */

INLINE void score_step(__m512 (*a)[WIDE], const float *const *query, const int n_q, int64_t i,
                       const __m512 *k, const int wide) {
    UNROLL
    for (int q = 0; q < n_q; q++) {
        __m512 x = set16(query[q][i]);
        UNROLL
        for (int v = 0; v < wide; v++)
            a[q][v] = _mm512_fmadd_ps(k[v], x, a[q][v]);
    }
}

/* One block of 32 dimensions, lanes j .. j + 16 * wide - 1. */
INLINE void score_q8_0(__m512 (*a)[WIDE], const float *const *query, const int n_q, int64_t i,
                       const uint8_t *block, int j, const int wide) {
    __m512 scale[WIDE], k[WIDE];
    UNROLL
    for (int v = 0; v < wide; v++)
        scale[v] = load_halves((const uint16_t *)(block + 32 * GGL_PAGE) + j + 16 * v);
    for (int r = 0; r < 32; r++) {
        UNROLL
        for (int v = 0; v < wide; v++)
            k[v] = _mm512_mul_ps(from_i8(block + r * GGL_PAGE + j + 16 * v), scale[v]);
        score_step(a, query, n_q, i + r, k, wide);
    }
}

INLINE void score_q4_0(__m512 (*a)[WIDE], const float *const *query, const int n_q, int64_t i,
                       const uint8_t *block, int j, const int wide, const int high) {
    __m512 scale[WIDE], k[WIDE];
    UNROLL
    for (int v = 0; v < wide; v++)
        scale[v] = load_halves((const uint16_t *)(block + 16 * GGL_PAGE) + j + 16 * v);
    for (int r = 0; r < 16; r++) {
        UNROLL
        for (int v = 0; v < wide; v++) {
            __m512i x = load_bytes(block + r * GGL_PAGE + j + 16 * v);
            x = high ? _mm512_srli_epi32(x, 4) : x;
            k[v] = _mm512_mul_ps(_mm512_permutexvar_ps(x, nibble_numbers()), scale[v]);
        }
        score_step(a, query, n_q, i + 16 * high + r, k, wide);
    }
}

INLINE void scores_q(float (*score)[GGL_PAGE], const float *const *query, const int n_q,
                     const void *keys, int64_t d, const ggl_type type) {
    const int wide = n_q > 4 ? 2 : 4;
    for (int j = 0; j < GGL_PAGE; j += 16 * wide) {
        __m512 a[MOST][WIDE];
        const uint8_t *block = keys;
        UNROLL
        for (int q = 0; q < n_q; q++)
            UNROLL
        for (int v = 0; v < wide; v++)
            a[q][v] = _mm512_setzero_ps();
        if (type == GGL_Q8_0)
            for (int64_t i = 0; i < d; i += 32, block += 34 * GGL_PAGE)
                score_q8_0(a, query, n_q, i, block, j, wide);
        else if (type == GGL_Q4_0)
            for (int64_t i = 0; i < d; i += 32, block += 18 * GGL_PAGE) {
                score_q4_0(a, query, n_q, i, block, j, wide, 0);
                score_q4_0(a, query, n_q, i, block, j, wide, 1);
            }
        else
            for (int64_t i = 0; i < d; i++) {
                __m512 k[WIDE];
                UNROLL
                for (int v = 0; v < wide; v++)
                    k[v] = load_plain(keys, i * GGL_PAGE + j + 16 * v, type);
                score_step(a, query, n_q, i, k, wide);
            }
        UNROLL
        for (int q = 0; q < n_q; q++)
            UNROLL
        for (int v = 0; v < wide; v++)
            _mm512_storeu_ps(score[q] + j + 16 * v, a[q][v]);
    }
}

/* --- values -------------------------------------------------------------------------------- */

/* x[0], x[1]: a block of 32 elements. */
INLINE void load_block(__m512 *x, const uint8_t *block, const ggl_type type) {
    int16_t h;
    memcpy(&h, block, sizeof h);
    __m512 scale = _mm512_cvtph_ps(_mm256_set1_epi16(h));
    if (type == GGL_Q8_0) {
        x[0] = _mm512_mul_ps(from_i8(block + 2), scale);
        x[1] = _mm512_mul_ps(from_i8(block + 18), scale);
    } else { /* sixteen numbers are possible: the table takes the scale */
        __m512i codes = load_bytes(block + 2);
        __m512 table = _mm512_mul_ps(nibble_numbers(), scale);
        x[0] = _mm512_permutexvar_ps(codes, table);
        x[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table);
    }
}

/* Elements i .. i + 16 * wide - 1; the last register in the lanes of the mask. */
INLINE void values_at(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const char *v,
                      size_t row_size, int64_t i, const int wide, __mmask16 last, int j0, int j1,
                      const ggl_type type) {
    __m512 a[MOST][WIDE], x[WIDE];
    UNROLL
    for (int q = 0; q < n_q; q++)
        UNROLL
    for (int h = 0; h < wide; h++)
        a[q][h] = _mm512_maskz_loadu_ps(h + 1 < wide ? 0xffff : last, o + q * o_step + i + 16 * h);
    for (int j = j0; j < j1; j++) {
        const char *row = v + (size_t)j * row_size;
        if (type == GGL_Q8_0 || type == GGL_Q4_0)
            for (int h = 0; h < wide; h += 2)
                load_block(x + h,
                           (const uint8_t *)row + (i + 16 * h) / 32 * (type == GGL_Q8_0 ? 34 : 18),
                           type);
        else
            UNROLL
        for (int h = 0; h < wide; h++)
            x[h] = load_some(h + 1 < wide ? 0xffff : last, row, i + 16 * h, type);
        UNROLL
        for (int q = 0; q < n_q; q++) {
            __m512 w = set16(p[q][j]);
            UNROLL
            for (int h = 0; h < wide; h++)
                a[q][h] = _mm512_fmadd_ps(w, x[h], a[q][h]);
        }
    }
    UNROLL
    for (int q = 0; q < n_q; q++)
        UNROLL
    for (int h = 0; h < wide; h++)
        _mm512_mask_storeu_ps(o + q * o_step + i + 16 * h, h + 1 < wide ? 0xffff : last, a[q][h]);
}

INLINE void values_q(float *o, int64_t o_step, float (*p)[GGL_PAGE], const int n_q, const char *v,
                     int64_t e, int j0, int j1, const ggl_type type) {
    const size_t row_size = type == GGL_F32    ? (size_t)e * 4
                            : type == GGL_Q8_0 ? (size_t)e / 32 * 34
                            : type == GGL_Q4_0 ? (size_t)e / 32 * 18
                                               : (size_t)e * 2;
    int64_t i = 0;
    if (n_q <= 4)
        for (; i + 64 <= e; i += 64)
            values_at(o, o_step, p, n_q, v, row_size, i, 4, 0xffff, j0, j1, type);
    for (; i + 32 <= e; i += 32)
        values_at(o, o_step, p, n_q, v, row_size, i, 2, 0xffff, j0, j1, type);
    if (type == GGL_Q8_0 || type == GGL_Q4_0)
        return; /* whole blocks */
    for (; i < e; i += 16)
        values_at(o, o_step, p, n_q, v, row_size, i, 1,
                  e - i < 16 ? (__mmask16)((1u << (e - i)) - 1) : 0xffff, j0, j1, type);
}

/* --- by type, and number of queries -------------------------------------------------------- */

#define COUNTS(X) X(1) X(2) X(3) X(4)
#define MORE(X)   X(5) X(6) X(7) X(8)
_Static_assert(MOST == 8, "COUNTS and MORE have all numbers of queries");

/* Four at a time: what is cheap to decode. */
INLINE bool by_four(const ggl_type type) {
    return type != GGL_Q8_0 && type != GGL_Q4_0;
}

INLINE void scores(float (*score)[GGL_PAGE], const float *const *query, int n_q, const void *keys,
                   int64_t d, const ggl_type type) {
    for (; n_q > 4 && by_four(type); n_q -= 4, score += 4, query += 4)
        scores_q(score, query, 4, keys, d, type);
    switch (n_q) {
#define X(n)                                                                                       \
    case n:                                                                                        \
        scores_q(score, query, n, keys, d, type);                                                  \
        break;
        COUNTS(X)
#undef X
#define X(n)                                                                                       \
    case n:                                                                                        \
        if (!by_four(type))                                                                        \
            scores_q(score, query, n, keys, d, type);                                              \
        break;
        MORE(X)
#undef X
    default:
        break;
    }
}

INLINE void values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                   int64_t e, int j0, int j1, const ggl_type type) {
    for (; n_q > 4 && by_four(type); n_q -= 4, o += 4 * o_step, p += 4)
        values_q(o, o_step, p, 4, v, e, j0, j1, type);
    switch (n_q) {
#define X(n)                                                                                       \
    case n:                                                                                        \
        values_q(o, o_step, p, n, v, e, j0, j1, type);                                             \
        break;
        COUNTS(X)
#undef X
#define X(n)                                                                                       \
    case n:                                                                                        \
        if (!by_four(type))                                                                        \
            values_q(o, o_step, p, n, v, e, j0, j1, type);                                         \
        break;
        MORE(X)
#undef X
    default:
        break;
    }
}

#include "../attend_types.h"

/* --- the rest ------------------------------------------------------------------------------ */

/* As v_exp, of what is at most 0 and no NaN. */
INLINE __m512 exp_of_negative(__m512 x) {
    static const float c[] = {
        0x1.6d11fep-10f, 0x1.120c62p-7f, 0x1.555518p-5f, 0x1.5554dcp-3f, 0.5f, 1.0f, 1.0f};
    const __m512 magic = set16(0x1.8p23f);
    __m512 z = _mm512_fmadd_ps(x, set16(0x1.715476p0f), magic);
    __m512 n = _mm512_sub_ps(z, magic);
    __m512 r = _mm512_fmadd_ps(n, set16(-0x1.62e4p-1f), x);
    r = _mm512_fmadd_ps(n, set16(-0x1.7f7d1cp-20f), r);
    __m512 p = set16(c[0]);
    for (int i = 1; i < 7; i++)
        p = _mm512_fmadd_ps(p, r, set16(c[i]));
    __mmask16 k = _mm512_cmp_ps_mask(x, set16(-0x1.5d589ep6f), _CMP_NLT_UQ);
    return _mm512_castsi512_ps(_mm512_maskz_add_epi32(
        k, _mm512_castps_si512(p), _mm512_slli_epi32(_mm512_castps_si512(z), 23)));
}

/* As v_exp, of anything. */
INLINE __m512 exp_of_any(__m512 x) {
    __m512 y = exp_of_negative(x);
    y = _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, set16(0x1.62e42ep6f), _CMP_GT_OQ),
                           set16(INFINITY));
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}

static float softmax_page(float *s, int lo, int hi, float scale, float *sum) {
    uint64_t seen = (hi < GGL_PAGE ? (UINT64_C(1) << hi) : 0) - (UINT64_C(1) << lo);
    __m512 x[GGL_PAGE / 16], top = set16(-INFINITY), sums = _mm512_setzero_ps();
    __mmask16 nan = 0;
    for (int v = 0; v < GGL_PAGE / 16; v++) {
        __mmask16 k = (__mmask16)(seen >> 16 * v);
        x[v] = _mm512_mul_ps(_mm512_loadu_ps(s + 16 * v), set16(scale));
        nan |= _mm512_mask_cmp_ps_mask(k, x[v], x[v], _CMP_UNORD_Q);
        top = _mm512_mask_max_ps(top, k, top, x[v]);
    }
    float m = nan ? NAN : _mm512_reduce_max_ps(top) + 0.0f;
    bool finite = fabsf(m) < INFINITY; /* else differences may be NaN */
    for (int v = 0; v < GGL_PAGE / 16; v++) {
        __mmask16 k = (__mmask16)(seen >> 16 * v);
        __m512 e = _mm512_sub_ps(x[v], set16(m));
        e = _mm512_maskz_mov_ps(k, finite ? exp_of_negative(e) : exp_of_any(e));
        _mm512_storeu_ps(s + 16 * v, e);
        sums = _mm512_add_ps(sums, e);
    }
    const vf halves[2] = {_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps(sums, 1)};
    *sum = v_tree(halves);
    return m;
}

static void merge(float *total, const float *part, float a, float b, int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
        __mmask16 k = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        __m512 p = _mm512_mul_ps(_mm512_maskz_loadu_ps(k, part + i), set16(b));
        p = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(k, total + i), set16(a), p);
        _mm512_mask_storeu_ps(total + i, k, p);
    }
}

void cpu_kernels_attend_avx512(cpu_kernels *k) {
    fill_by_type(k);
    k->softmax_page = softmax_page;
    k->merge = merge;
}
