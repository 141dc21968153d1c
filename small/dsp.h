/* Products by the DSP instructions of Cortex-M4 and later ones: two products of 16 bits are added at once. Sums of whole numbers are exact, so
 * the bits are those of the portable code (docs/numeric.md, section 4). Two rows share what is loaded and unpacked of a column. */
#ifndef SMALL_DSP_H
#define SMALL_DSP_H

#if defined(__ARM_FEATURE_DSP) && !defined(__aarch64__) && !defined(SMALL_NO_DSP)
#define SMALL_DSP

#include <arm_acle.h>

#include "quant/blocks.h"

/* Bytes 0 and 2 of x, and 1 and 3, as two numbers of 16 bits each. */
static inline uint32_t even_bytes(uint32_t x) {
    return (uint32_t)__sxtb16(x);
}

static inline uint32_t odd_bytes(uint32_t x) {
    uint32_t y; /* the intrinsic takes two instructions */
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(y) : "r"(x));
    return y;
}

static inline int32_t add_products(uint32_t x, uint32_t y, int32_t sum) {
    return __smlad((int16x2_t)x, (int16x2_t)y, sum);
}

/* Adds products of codes k .. k+3 of a block with the column's, x. Unrolled, offsets are part of the instructions. */
static inline int32_t part_q8_0(const void *w, int k, const uint32_t x[2], int32_t sum) {
    const uint32_t u = load32(((const struct block_q8_0 *)w)->q + k);
    return add_products(odd_bytes(u), x[1], add_products(even_bytes(u), x[0], sum));
}

/* The same with codes k .. k+3, x[0] and x[1], and k+16 .. k+19, x[2] and x[3]; codes have 8 too much. */
static inline int32_t part_q4_0(const void *w, int k, const uint32_t x[4], int32_t sum) {
    const uint32_t u = load32(((const struct block_q4_0 *)w)->b + k), mask = 0x000f000f;
    sum = add_products(u & mask, x[0], sum);
    sum = add_products(u >> 8 & mask, x[1], sum);
    sum = add_products(u >> 4 & mask, x[2], sum);
    return add_products(u >> 12 & mask, x[3], sum);
}

static inline void unpack(uint32_t to[2], const int8_t *x) {
    const uint32_t u = load32(x);
    to[0] = even_bytes(u);
    to[1] = odd_bytes(u);
}

/* The sums of block w0 of a row, and of w1 of the next. */
static inline void sums_q8_0(const void *w0, const void *w1, const cpu_qblock *x, int32_t *s0,
                             int32_t *s1) {
    int32_t a = 0, b = 0;
#pragma GCC unroll 8
    for (int k = 0; k < 32; k += 4) {
        uint32_t u[2];
        unpack(u, x->q + k);
        a = part_q8_0(w0, k, u, a);
        b = part_q8_0(w1, k, u, b);
    }
    *s0 = a, *s1 = b;
}

static inline void sums_q4_0(const void *w0, const void *w1, const cpu_qblock *x, int32_t *s0,
                             int32_t *s1) {
    int32_t a = -8 * x->sum, b = a;
#pragma GCC unroll 4
    for (int k = 0; k < 16; k += 4) {
        uint32_t u[4];
        unpack(u, x->q + k);
        unpack(u + 2, x->q + 16 + k);
        a = part_q4_0(w0, k, u, a);
        b = part_q4_0(w1, k, u, b);
    }
    *s0 = a, *s1 = b;
}

/* Multiplies n_rows rows of k elements with a column: the chain of section 4. The last of an odd number of rows is computed twice. */
#define DSP_ROWS(name)                                                                             \
    static inline void dsp_rows_##name(float *y, const void *column, const char *w,                \
                                       size_t row_size, int32_t n_rows, int64_t k) {               \
        for (int32_t j = 0; j < n_rows; j += 2, w += 2 * row_size) {                               \
            const bool both = j + 1 < n_rows;                                                      \
            const struct block_##name *p = (const void *)w,                                        \
                                      *q = (const void *)(w + (both ? row_size : 0)),              \
                                      *end = p + (int32_t)k / 32;                                  \
            float a = 0, b = 0;                                                                    \
            for (const cpu_qblock *x = column; p < end; p++, q++, x++) {                           \
                int32_t s, t;                                                                      \
                sums_##name(p, q, x, &s, &t);                                                      \
                a = fused_float((float)s * small_half(load16(p->d)), x->d, a);                     \
                b = fused_float((float)t * small_half(load16(q->d)), x->d, b);                     \
            }                                                                                      \
            y[j] = a;                                                                              \
            if (both)                                                                              \
                y[j + 1] = b;                                                                      \
        }                                                                                          \
    }
DSP_ROWS(q8_0)
DSP_ROWS(q4_0)

#endif
#endif
