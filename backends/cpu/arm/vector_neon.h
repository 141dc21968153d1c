/* Vectors of simd/functions.h as registers of NEON. */
#ifndef CPU_VECTOR_NEON_H
#define CPU_VECTOR_NEON_H

#include <string.h>

#include "arm.h"

enum { V_LANES = 4, V_COLS = 6, V_SUMS = 4 };
#define V_TILE(X) X(6) X(4) X(2) X(1)

typedef float32x4_t vf;
typedef int32x4_t vi;

INLINE vf v_set(float x) {
    return vdupq_n_f32(x);
}
INLINE vf v_load(const float *p) {
    return vld1q_f32(p);
}
INLINE void v_store(float *p, vf v) {
    vst1q_f32(p, v);
}
INLINE vf v_load_n(const float *p, int64_t n) {
    float x[4] = {0};
    memcpy(x, p, (size_t)n * sizeof *x);
    return vld1q_f32(x);
}
INLINE void v_store_n(float *p, vf v, int64_t n) {
    float x[4];
    vst1q_f32(x, v);
    memcpy(p, x, (size_t)n * sizeof *x);
}
/* Loads unsigned bytes. */
INLINE vi v_load_bytes(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const uint16x8_t h = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return (vi)vmovl_u16(vget_low_u16(h));
}
INLINE vf v_load_half(const uint16_t *p) {
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
INLINE void v_store_half(uint16_t *p, vf v) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}
INLINE vf v_load_bfloat(const uint16_t *p) {
    return (vf)vshll_n_u16(vld1_u16(p), 16);
}
INLINE vi v_index(void) {
    return (vi){0, 1, 2, 3};
}
INLINE vf v_fma(vf a, vf b, vf c) {
    return vfmaq_f32(c, a, b);
}
#ifdef V_PAIRS
/* c + odd * odd + even * even for pairs of bf16, by two fused multiply-adds in FPCR's mode. */
INLINE vf v_fma_pairs(vf a, vf b, vf c) {
    const bfloat16x8_t w = vreinterpretq_bf16_f32(a), x = vreinterpretq_bf16_f32(b);
    return vbfmlalbq_f32(vbfmlaltq_f32(c, w, x), w, x);
}
#endif
INLINE vf v_choose(vi m, vf a, vf b) {
    return vbslq_f32((uint32x4_t)m, a, b);
}
INLINE vf v_sqrt(vf x) {
    return vsqrtq_f32(x);
}
INLINE vf v_floor(vf x) {
    return vrndmq_f32(x);
}
INLINE vf v_of_int(vi x) {
    return vcvtq_f32_s32(x);
}
INLINE vi v_to_int(vf x) { /* to nearest even */
    return vcvtnq_s32_f32(x);
}

/* Adds up sixteen sums: sums 4h .. 4h+3 are the lanes of s[h]. */
INLINE float v_tree(const vf *s) {
    float32x4_t a = vaddq_f32(vaddq_f32(s[0], s[2]), vaddq_f32(s[1], s[3]));
    float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}
/* y[r] = v_tree(s[r]) for four rows at once. */
INLINE void v_four_trees(float *y, const vf (*s)[16 / V_LANES]) {
    for (int r = 0; r < 4; r++)
        y[r] = v_tree(s[r]);
}

/* The larger one, and the largest lane, of numbers that are not NaN. */
INLINE vf v_max(vf a, vf b) {
    return vmaxq_f32(a, b);
}
INLINE float v_largest(vf v) {
    return vmaxvq_f32(v);
}
INLINE bool v_any(vi m) {
    return vmaxvq_u32((uint32x4_t)m) != 0;
}

INLINE vi v_max_int(vi a, vi b) {
    return vmaxq_s32(a, b);
}
INLINE int32_t v_largest_int(vi v) {
    return vmaxvq_s32(v);
}
INLINE int32_t v_sum_int(vi v) {
    return vaddvq_s32(v);
}
/* Stores 32 integers that fit into a byte each. */
INLINE void v_store_bytes(int8_t *p, const vi *c) {
    for (int h = 0; h < 4; h++, p += 8) {
        int16x8_t v = vcombine_s16(vmovn_s32(c[2 * h]), vmovn_s32(c[2 * h + 1]));
        vst1_s8(p, vmovn_s16(v));
    }
}

/* Splits 64 whole numbers of up to 16256 in magnitude into bytes: high * 128 + low, low from -64 to
 * 63. */
INLINE void v_split_bytes(int8_t *high, int8_t *low, const vi *w) {
    for (int i = 0; i < 8; i++) {
        const int16x8_t v = vcombine_s16(vmovn_s32(w[2 * i]), vmovn_s32(w[2 * i + 1])),
                        h = vrshrq_n_s16(v, 7);
        vst1_s8(high + 8 * i, vmovn_s16(h));
        vst1_s8(low + 8 * i, vmovn_s16(vsubq_s16(v, vshlq_n_s16(h, 7))));
    }
}

/* The even and the odd elements of a, then those of b. */
INLINE vf v_evens(vf a, vf b) {
    return vuzp1q_f32(a, b);
}
INLINE vf v_odds(vf a, vf b) {
    return vuzp2q_f32(a, b);
}
/* For each pair: the first element twice; the second one twice; both swapped. */
INLINE vf v_twice_evens(vf v) {
    return vtrn1q_f32(v, v);
}
INLINE vf v_twice_odds(vf v) {
    return vtrn2q_f32(v, v);
}
INLINE vf v_swap_pairs(vf v) {
    return vrev64q_f32(v);
}

#endif
