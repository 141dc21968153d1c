/* Vectors of simd/functions.h as those of the compiler. */
#ifndef CPU_VECTOR_GNU_H
#define CPU_VECTOR_GNU_H

#include "vectors.h"

enum { V_LANES = 4, V_COLS = 6, V_SUMS = 4 };
#define V_TILE(X) X(6) X(4) X(2) X(1)

INLINE vf v_set(float x) {
    return all_of(x);
}
INLINE vf v_load(const float *p) {
    return LOAD(vf, p);
}
INLINE void v_store(float *p, vf v) {
    memcpy(p, &v, sizeof v);
}
INLINE void v_store_n(float *p, vf v, int64_t n) {
    memcpy(p, &v, (size_t)n * sizeof *p);
}
/* Loads unsigned bytes. */
INLINE vi v_load_bytes(const uint8_t *p) {
    return (vi){p[0], p[1], p[2], p[3]};
}
INLINE vf v_load_half(const uint16_t *p) {
    return halves(LOAD(four_words, p));
}
INLINE void v_store_half(uint16_t *p, vf v) {
    const four_words h = to_halves(v);
    memcpy(p, &h, sizeof h);
}
INLINE vf v_load_bfloat(const uint16_t *p) {
    return (vf)(__builtin_convertvector(LOAD(four_words, p), vu) << 16);
}
INLINE vf v_fma(vf a, vf b, vf c) {
    return fused(a, b, c);
}
INLINE vf v_choose(vi m, vf a, vf b) {
    return (vf)choose(m, (vi)a, (vi)b);
}
INLINE vf v_sqrt(vf x) {
    /* compilers make one instruction of these four */
    return (vf){__builtin_sqrtf(x[0]), __builtin_sqrtf(x[1]), __builtin_sqrtf(x[2]),
                __builtin_sqrtf(x[3])};
}
INLINE vf v_floor(vf x) {
#if defined(__clang__)
    return __builtin_elementwise_floor(x);
#else
    return (vf){__builtin_floorf(x[0]), __builtin_floorf(x[1]), __builtin_floorf(x[2]),
                __builtin_floorf(x[3])};
#endif
}
INLINE vf v_of_int(vi x) {
    return __builtin_convertvector(x, vf);
}
INLINE vi v_to_int(vf x) { /* to nearest even, of less than 2^22 */
    const vf whole = all_of(0x1.8p23f);
    return (vi)(x + whole) - (vi)whole;
}

INLINE vf high_two(vf v) {
    return __builtin_shufflevector(v, v, 2, 3, 2, 3);
}
/* Adds up sixteen sums: sums 4h .. 4h+3 are the lanes of s[h]. */
INLINE float v_tree(const vf *s) {
    const vf a = (s[0] + s[2]) + (s[1] + s[3]), b = a + high_two(a);
    return b[0] + b[1];
}

/* The larger one, and the largest lane, of numbers that are not NaN. */
INLINE vf v_max(vf a, vf b) {
    return v_choose(a > b, a, b);
}
INLINE float v_largest(vf v) {
    v = v_max(v, high_two(v));
    return v[0] > v[1] ? v[0] : v[1];
}
INLINE bool v_any(vi m) {
    const vlongs two = (vlongs)m;
    return (two[0] | two[1]) != 0;
}

INLINE vi v_max_int(vi a, vi b) {
    return choose(a > b, a, b);
}
INLINE int32_t v_largest_int(vi v) {
    v = v_max_int(v, (vi)high_two((vf)v));
    return v[0] > v[1] ? v[0] : v[1];
}
INLINE int32_t v_sum_int(vi v) {
    v += (vi)high_two((vf)v);
    return v[0] + v[1];
}
/* Stores 32 integers that fit into a byte each. */
INLINE void v_store_bytes(int8_t *p, const vi *c) {
    typedef int8_t four_signed __attribute__((vector_size(4)));
    for (int h = 0; h < 8; h++, p += 4) {
        const four_signed v = __builtin_convertvector(c[h], four_signed);
        memcpy(p, &v, sizeof v);
    }
}

/* Splits 64 whole numbers of up to 16256 in magnitude into bytes: high * 128 + low, low from -64 to
 * 63. */
INLINE void v_split_bytes(int8_t *high, int8_t *low, const vi *w) {
    typedef int8_t four_signed __attribute__((vector_size(4)));
    for (int i = 0; i < 16; i++) {
        const vi h = (w[i] + 64) >> 7;
        const four_signed a = __builtin_convertvector(h, four_signed),
                          b = __builtin_convertvector(w[i] - h * 128, four_signed);
        memcpy(high + 4 * i, &a, sizeof a);
        memcpy(low + 4 * i, &b, sizeof b);
    }
}

#include "../simd/lanes4.h"

#endif
