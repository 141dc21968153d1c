/* Products of gradients in bf16 (docs/numeric.md, section 4). A lane has a pair of bf16, the numbers of two terms for the same
 * element, of which the upper one comes first. Where the instruction set multiplies pairs (V_PAIRS), a lane takes both at once, else one
 * after the other; so vectors of pairs are half as many to load as those of chains_tmpl.h. */
#include "functions.h"

#include "../unroll.h"

enum { PAIRS_TALL = V_SUMS / 4 * V_16 }; /* vectors of each row that stay in registers */

INLINE vf first_of(vf pairs) {
    return (vf)((vu)pairs & 0xffff0000);
}

INLINE vf second_of(vf pairs) {
    return (vf)((vu)pairs << 16);
}

INLINE vf pair_of(vf first, vf second) {
    return (vf)((vu)first | (vu)second >> 16);
}

/* --- chains --------------------------------------------------------------------------------- */

INLINE vf to_multiple(vf x) {
    const vf limit = v_set(0x1p-103f), c = v_with_sign(limit, x);
    return v_choose((vi)(v_abs(x) < limit), (x + c) - c, x);
}

/* Loads `many` vectors of pairs, or one whose first `last` lanes count, as they are multiplied: part 0 or 1 of each. */
INLINE void load_terms(vf *x, const uint32_t *a, const int many, const int64_t last,
                       const int part) {
    EACH_OF(v, many) {
        const float *at = (const float *)(const void *)a + V_LANES * v;
        x[v] = last ? v_load_n(at, last) : v_load(at);
#ifndef V_PAIRS
        x[v] = part ? second_of(x[v]) : first_of(x[v]);
#endif
    }
    (void)part;
}

INLINE vf load_factor(const uint32_t *b, const int part) {
    float pair;
    memcpy(&pair, b, sizeof pair);
    vf f = v_set(pair);
#ifndef V_PAIRS
    f = part ? second_of(f) : first_of(f);
#endif
    (void)part;
    return f;
}

/* `many` whole vectors of n_y rows; or one, of which the first `last` lanes count, if last is not 0. */
INLINE void pairs_tile(float *const *y, const int n_y, int64_t at, const uint32_t *a,
                       int64_t a_step, const uint32_t *const *b, int64_t b_step, int64_t k,
                       const int many, const int64_t last) {
#ifdef V_PAIRS
    enum { PARTS = 1 };
#else
    enum { PARTS = 2 };
#endif
    vf sum[CPU_CHAIN_ROWS][PAIRS_TALL];
    EACH_OF(c, n_y) {
        EACH_OF(v, many) {
            sum[c][v] =
                to_multiple(last ? v_load_n(y[c] + at, last) : v_load(y[c] + at + V_LANES * v));
        }
    }
    for (int64_t e = 0; e < k; e++, a += a_step) {
        EACH_OF(part, PARTS) {
            vf x[PAIRS_TALL];
            if (part >
                0) /* The pairs are loaded again: kept, they would take registers from the sums. */
                __asm__("" ::: "memory");
            load_terms(x, a, many, last, part);
            EACH_OF(c, n_y) {
                const vf f = load_factor(b[c] + e * b_step, part);
                EACH_OF(v, many) {
#ifdef V_PAIRS
                    sum[c][v] = v_fma_pairs(x[v], f, sum[c][v]);
#else
                    sum[c][v] = v_fma(x[v], f, sum[c][v]);
#endif
                }
            }
        }
    }
    EACH_OF(c, n_y) {
        EACH_OF(v, many) {
            if (last)
                v_store_n(y[c] + at, sum[c][v], last);
            else
                v_store(y[c] + at + V_LANES * v, sum[c][v]);
        }
    }
}

INLINE void pairs_rows(float *const *y, const int n_y, const uint32_t *a, int64_t a_step,
                       const uint32_t *const *b, int64_t b_step, int64_t k, int64_t n) {
    int64_t i = 0;
    for (; i + PAIRS_TALL * V_LANES <= n; i += PAIRS_TALL * V_LANES)
        pairs_tile(y, n_y, i, a + i, a_step, b, b_step, k, PAIRS_TALL, 0);
    for (; i + V_LANES <= n; i += V_LANES)
        pairs_tile(y, n_y, i, a + i, a_step, b, b_step, k, 1, 0);
    if (i < n)
        pairs_tile(y, n_y, i, a + i, a_step, b, b_step, k, 1, n - i);
}

#define COUNTS_CHAIN(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void chain_pairs(float *const *y, int n_y, const uint32_t *a, int64_t a_step,
                        const uint32_t *const *b, int64_t b_step, int64_t k, int64_t n) {
    switch (n_y) {
#define X(count)                                                                                   \
    case count:                                                                                    \
        pairs_rows(y, count, a, a_step, b, b_step, k, n);                                          \
        break;
        COUNTS_CHAIN(X)
#undef X
    default:
        break;
    }
}

/* --- pairs ---------------------------------------------------------------------------------- */

INLINE void store_pairs(uint32_t *y, vf pairs, int64_t n) {
    float *to = (float *)(void *)y;
    if (n < V_LANES)
        v_store_n(to, pairs, n);
    else
        v_store(to, pairs);
}

INLINE vf rounded_pair(vf first, vf second) {
#ifdef V_ROUND_PAIR
    return v_round_pair(first, second);
#else
    return pair_of(v_to_bf16(first), v_to_bf16(second));
#endif
}

INLINE vf load_some(const float *x, int64_t n) {
    return n < V_LANES ? v_load_n(x, n) : v_load(x);
}

static void pair_rows(uint32_t *y, const float *first, const float *second, int64_t n) {
    for (int64_t i = 0; i < n; i += V_LANES) {
        const vf a = load_some(first + i, n - i),
                 b = second ? load_some(second + i, n - i) : v_set(0.0f);
        store_pairs(y + i, rounded_pair(a, b), n - i);
    }
}

INLINE vf load_cut(const uint16_t *x, int64_t n) {
    uint16_t rest[V_LANES] = {0};
    if (n < V_LANES)
        x = memcpy(rest, x, (size_t)n * sizeof *x);
    return v_cut_bf16(v_load_bfloat(x));
}

static void pair_bf16_rows(uint32_t *y, const uint16_t *first, const uint16_t *second, int64_t n) {
    for (int64_t i = 0; i < n; i += V_LANES) {
        const vf a = load_cut(first + i, n - i),
                 b = second ? load_cut(second + i, n - i) : v_set(0.0f);
        store_pairs(y + i, pair_of(a, b), n - i);
    }
}

static void pair_up(uint32_t *y, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i += 2 * V_LANES) {
        float rest[2 * V_LANES] = {0};
        const float *from = x + i;
        if (n - i < 2 * V_LANES)
            from = memcpy(rest, from, (size_t)(n - i) * sizeof *rest);
        const vf a = v_load(from), b = v_load(from + V_LANES);
        store_pairs(y + i / 2, rounded_pair(v_evens(a, b), v_odds(a, b)), (n - i + 1) / 2);
    }
}

static void fill_pairs(cpu_kernels *k) {
#define PAIR_SLOT(name, fn, where) CPU_SET_##where(k->name, name)
#include "../slots.def"
}
