/* Chains of fused multiply-adds, for the products of gradients; part of rows_tmpl.h. The results of CHAIN_ROWS rows by
 * CHAIN_TALL vectors stay in registers over all terms, so that each vector of a that is loaded serves all rows. */
#include "../unroll.h"

enum { CHAIN_TALL = V_SUMS / 4 * V_16 };

/* `many` whole vectors of n_y rows; or one, of which the first `last` lanes count, if last is not 0. */
INLINE void chain_tile(float *const *y, const int n_y, int64_t at, const float *a, int64_t a_step,
                       const float *const *b, int64_t b_step, int64_t k, const int many,
                       const int64_t last) {
    vf sum[CPU_CHAIN_ROWS][CHAIN_TALL];
    EACH_OF(c, n_y) {
        EACH_OF(v, many) {
            sum[c][v] = last ? v_load_n(y[c] + at, last) : v_load(y[c] + at + V_LANES * v);
        }
    }
    for (int64_t e = 0; e < k; e++, a += a_step) {
        vf x[CHAIN_TALL];
        EACH_OF(v, many) {
            x[v] = last ? v_load_n(a, last) : v_load(a + V_LANES * v);
        }
        EACH_OF(c, n_y) {
            const vf f = v_set(b[c][e * b_step]);
            EACH_OF(v, many) {
                sum[c][v] = v_fma(x[v], f, sum[c][v]);
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

INLINE void chain_rows(float *const *y, const int n_y, const float *a, int64_t a_step,
                       const float *const *b, int64_t b_step, int64_t k, int64_t n) {
    int64_t i = 0;
    for (; i + CHAIN_TALL * V_LANES <= n; i += CHAIN_TALL * V_LANES)
        chain_tile(y, n_y, i, a + i, a_step, b, b_step, k, CHAIN_TALL, 0);
    for (; i + V_LANES <= n; i += V_LANES)
        chain_tile(y, n_y, i, a + i, a_step, b, b_step, k, 1, 0);
    if (i < n)
        chain_tile(y, n_y, i, a + i, a_step, b, b_step, k, 1, n - i);
}

#define COUNTS_CHAIN(X) X(1) X(2) X(3) X(4) X(5) X(6)

static void chains(float *const *y, int n_y, const float *a, int64_t a_step, const float *const *b,
                   int64_t b_step, int64_t k, int64_t n) {
    switch (n_y) {
#define X(count)                                                                                   \
    case count:                                                                                    \
        chain_rows(y, count, a, a_step, b, b_step, k, n);                                          \
        break;
        COUNTS_CHAIN(X)
#undef X
    default:
        break;
    }
}
