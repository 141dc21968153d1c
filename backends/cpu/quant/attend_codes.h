/* Attention over a page of quantized rows (docs/numeric.md, section 6), written once for all
 * instruction sets. A file includes its lanes_<isa>.h and vector_<isa>.h, and then this file.
 *
 * Both kernels are dot products of bytes in sixteen lanes, with four bytes to a lane in each step:
 *
 *            lanes        four bytes of a lane              are multiplied with
 *   scores   positions    four dimensions of a position     four codes of the rounded query
 *   values   dimensions   four positions of a dimension     the rounded weights of four positions
 *
 * A rounded weight has 15 bits, so it is multiplied as two bytes: weight = high * 128 + low. */
#ifndef CPU_QUANT_ATTEND_CODES_H
#define CPU_QUANT_ATTEND_CODES_H

#include "../prefetch.h"
#include "../simd/functions.h"
#include "../unroll.h"

enum { WORDS = GGL_PAGE / 4, MOST = CPU_QUERIES };

/* What the kernels know of a type. */
typedef struct code_shape {
    int offset;      /* added to codes */
    int pairs;       /* as in quant/kernel_tmpl.h: sums of two products that fit in 16 bits */
    int bytes;       /* code bytes of a position in a block */
    int64_t size;    /* bytes of a block of 64 positions */
    bool has_halves; /* a byte has the codes of dimensions i and i + 16 */
} code_shape;

INLINE code_shape shape_of_codes(const ggl_type type) {
    return type == GGL_Q8_0 ? (code_shape){128, 0, 32, 34 * GGL_PAGE, false}
                            : (code_shape){8, 8, 16, 18 * GGL_PAGE, true};
}

/* Loads 64 codes; high: those in the high halves of the bytes. */
INLINE vcodes page_codes(const uint8_t *p, const int high, const code_shape t) {
    const vcodes v = codes_load(p);
    return t.has_halves ? codes_bits(v, 4 * high, 0, 15) : v;
}

INLINE vfour four_bytes(const int8_t *p, int i) {
    int32_t v;
    memcpy(&v, p + 4 * i, sizeof v);
    return four_set(v);
}

/* Returns what sums of products with codes begin with, so that the codes' offset cancels out;
 * `all`: the sum of the other factors. */
INLINE int32_t start_of(int32_t all, const code_shape t) {
    return LANES_SIGNED && t.pairs == 0 ? 0 : (int32_t)((uint32_t)-t.offset * (uint32_t)all);
}

/* Calls TAKE(n) for n = n_q, or as often as needed if that is more than registers allow. */
#define TAKE_QUERIES(n_q)                                                                          \
    for (int c = 0, taken; c < (n_q); c += taken) {                                                \
        taken = 0;                                                                                 \
        LANES_FEW(TAKE)                                                                            \
    }

/* --- scores --------------------------------------------------------------------------------- */

/* Returns how many groups of sixteen positions are computed side by side. */
INLINE int groups_at_once(const int n_q) {
    return LANES_COLS / n_q >= 4 ? 4 : LANES_COLS / n_q >= 2 ? 2 : 1;
}

/* Computes the scores of 16 n positions, from j on. */
INLINE void scores_of(float (*score)[GGL_PAGE], const cpu_qblock *const *x, const int n_q,
                      const uint8_t *keys, int64_t d, int j, const int n, const char *next,
                      const code_shape t) {
    vfloat acc[LANES_COLS][4];
    UNROLL for (int q = 0; q < n_q; q++) UNROLL for (int g = 0; g < n; g++) acc[q][g] =
        float_zero();
    for (int64_t b = 0; b < d / 32; b++, keys += t.size, next += t.size) {
        vsum sum[LANES_COLS][4];
        vpart pair[LANES_COLS][4];
        UNROLL for (int i = 0; i < 8; i++) {
            const int at = i % (t.bytes / 4) * 4 * GGL_PAGE + 4 * j;
            if (i < t.bytes / 4)
                fetch_far(next + at, 64 * n);
            vcodes v[4];
            UNROLL for (int g = 0; g < n; g++) v[g] =
                page_codes(keys + at + 64 * g, i / (t.bytes / 4), t);
            UNROLL for (int q = 0; q < n_q; q++) {
                const vfour four = four_bytes(x[q][b].q, i);
                UNROLL for (int g = 0; g < n; g++) dot_step(
                    &sum[q][g], &pair[q][g], v[g], four, t.pairs, i, 8, start_of(x[q][b].sum, t));
            }
        }
        const int scales_at = t.bytes * GGL_PAGE + 2 * j;
        fetch_far(next + scales_at, 32 * n);
        UNROLL for (int g = 0; g < n; g++) {
            const vfloat s = float_f16(keys + scales_at + 32 * g);
            UNROLL for (int q = 0; q < n_q; q++) acc[q][g] =
                float_fma(float_mul(float_of(sum[q][g]), s), float_set(x[q][b].d), acc[q][g]);
        }
    }
    UNROLL for (int q = 0; q < n_q; q++) UNROLL for (int g = 0; g < n; g++)
        float_store(score[q] + j + 16 * g, acc[q][g], 16);
}

INLINE void code_scores(float (*score)[GGL_PAGE], const cpu_qblock *const *query, int n_q,
                        const void *keys, int64_t d, const void *next, const ggl_type type) {
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_q - c >= (n)) {                                                            \
        for (int j = 0; j < GGL_PAGE; j += 16 * groups_at_once(n))                                 \
            scores_of(score + c, query + c, n, keys, d, j, groups_at_once(n), next,                \
                      shape_of_codes(type));                                                       \
        taken = (n);                                                                               \
    }
    TAKE_QUERIES(n_q)
#undef TAKE
}

/* --- values --------------------------------------------------------------------------------- */

/* The scales of a block at positions lo .. hi-1, in units of the largest one / CPU_MAX_WEIGHT; 0 at
 * all others. */
typedef struct page_scales {
    float scale[GGL_PAGE], unit;
    int lo, hi;
} page_scales;

/* The weights of a query, times these scales, as whole numbers: high * 128 + low. */
typedef struct page_weights {
    int8_t high[GGL_PAGE], low[GGL_PAGE];
    float unit;
    int32_t sum;
} page_weights;

INLINE void set_scales(page_scales *y, const uint8_t *scales, int lo, int hi) {
    enum { N = GGL_PAGE / V_LANES };
    vf x[N];
    vi m = (vi)v_set(0.0f);
    UNROLL for (int v = 0; v < N; v++) {
        const vi seen = v_first(hi - V_LANES * v) & ~v_first(lo - V_LANES * v);
        x[v] = v_load_half((const uint16_t *)(const void *)scales + V_LANES * v);
        x[v] = (vf)((vi)x[v] & seen);
        m = v_max_int(m, (vi)x[v] & 0x7fffffff);
    }
    const int32_t bits = v_largest_int(m);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    const bool any = bits > 0 && bits < 0x7f800000; /* else all are 0, or the result is NaN */
    const vf inverse = v_set(any ? CPU_MAX_WEIGHT / largest : 0.0f);
    UNROLL for (int v = 0; v < N; v++)
        v_store(y->scale + V_LANES * v, (vf)((vi)(x[v] * inverse) & -(int32_t)any));
    y->unit = bits >= 0x7f800000 ? NAN : largest / CPU_MAX_WEIGHT;
    y->lo = lo;
    y->hi = hi;
}

INLINE void round_weights(page_weights *y, const float *p, const page_scales *s) {
    enum { N = GGL_PAGE / V_LANES };
    vi w[N];
    vu sum = (vu)v_set(0.0f); /* of NaN, which are the least integer, the sums wrap around */
    UNROLL for (int v = 0; v < N; v++) {
        w[v] = v_to_int(v_load(p + V_LANES * v) * v_load(s->scale + V_LANES * v));
        sum += (vu)w[v];
    }
    v_split_bytes(y->high, y->low, w);
    y->sum = v_sum_int((vi)sum);
    y->unit = s->unit;
}

/* Computes sixteen dimensions of a block: the first or the second half. */
INLINE void values_of(float *o, int64_t o_step, const page_weights *w, const int n_q,
                      const uint8_t *codes, const int half, const char *next, const code_shape t) {
    const int step = 4 * t.bytes, at = t.has_halves ? 0 : 64 * half;
    vsum high[LANES_COLS], low[LANES_COLS];
    vpart pair[LANES_COLS][2];
    if (half == 0)
        fetch_far(next + t.bytes * GGL_PAGE, 2 * GGL_PAGE);
    UNROLL for (int i = 0; i < WORDS; i++) {
        if (!t.has_halves || half == 0)
            fetch_far(next + i * step + at, 64);
        const vcodes v = page_codes(codes + i * step + at, half, t);
        UNROLL for (int q = 0; q < n_q; q++) {
            dot_step(&high[q], &pair[q][0], v, four_bytes(w[q].high, i), t.pairs, i, WORDS, 0);
            dot_step(&low[q], &pair[q][1], v, four_bytes(w[q].low, i), t.pairs, i, WORDS,
                     start_of(w[q].sum, t));
        }
    }
    UNROLL for (int q = 0; q < n_q; q++)
        float_store(o + q * o_step + 16 * half,
                    float_mul(float_of(sum_join(high[q], low[q])), float_set(w[q].unit)), 16);
}

INLINE void code_values(float *o, int64_t o_step, float (*p)[GGL_PAGE], int n_q, const void *v,
                        int64_t e, const int *lo, const int *hi, const void *next,
                        const ggl_type type) {
    const code_shape t = shape_of_codes(type);
    const uint8_t *block = v;
    for (int64_t b = 0; b < e / 32; b++, block += t.size, o += 32) {
        const char *after = (const char *)next + b * t.size;
        const uint8_t *scales = block + t.bytes * GGL_PAGE;
        page_weights w[MOST];
        page_scales s;
        for (int q = 0; q < n_q; q++) {
            if (q == 0 || lo[q] != s.lo || hi[q] != s.hi)
                set_scales(&s, scales, lo[q], hi[q]);
            round_weights(&w[q], p[q], &s);
        }
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_q - c >= (n)) {                                                            \
        values_of(o + c * o_step, o_step, w + c, n, block, 0, after, t);                           \
        values_of(o + c * o_step, o_step, w + c, n, block, 1, after, t);                           \
        taken = (n);                                                                               \
    }
        TAKE_QUERIES(n_q)
#undef TAKE
    }
}

#include "../attend_codes_tmpl.h"

#endif
