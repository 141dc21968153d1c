/* Vectors of 16 rows (quant/kernel_tmpl.h) as four registers of NEON. With LANES_DOT, uses its dot
 * products of four signed bytes; with LANES_USDOT, those of unsigned by signed bytes. */
#ifndef CPU_LANES_NEON_H
#define CPU_LANES_NEON_H

#include <string.h>

#include "../unroll.h"
#include "arm.h"

#ifdef LANES_DOT
enum { LANES_REGISTERS = 4, LANES_GROUPS = 1, LANES_COLS = 4, LANES_MIN_PANEL = 12 };
#define LANES_FEW(X)         X(4) X(2) X(1)
#define LANES_MANY(X)        X(3) X(2) X(1)
#define LANES_MANY_HALVES(X) X(3) X(2) X(1)
#else
enum { LANES_REGISTERS = 4, LANES_GROUPS = 1, LANES_COLS = 2, LANES_MIN_PANEL = 12 };
#define LANES_FEW(X)         X(2) X(1)
#define LANES_MANY(X)        X(2) X(1)
#define LANES_MANY_HALVES(X) X(2) X(1)
#endif

typedef struct vcodes {
    uint8x16_t r[4];
} vcodes;
typedef struct vsum {
    int32x4_t r[4];
} vsum;
typedef struct vfloat {
    float32x4_t r[4];
} vfloat;
typedef struct vpart {
    int16x8_t low[4], high[4];
} vpart;
typedef int8x16_t vfour;

#define EACH(expression)                                                                           \
    UNROLL for (int i_ = 0; i_ < 4; i_++) {                                                        \
        expression;                                                                                \
    }

INLINE vcodes codes_load(const uint8_t *p) {
    vcodes v;
    EACH(v.r[i_] = vld1q_u8(p + 16 * i_));
    return v;
}
INLINE void codes_store(uint8_t *p, vcodes v) {
    EACH(vst1q_u8(p + 16 * i_, v.r[i_]));
}
INLINE vcodes codes_or(vcodes u, vcodes v) {
    EACH(u.r[i_] = vorrq_u8(u.r[i_], v.r[i_]));
    return u;
}
/* Returns (byte >> from & mask) << to for each byte. */
INLINE uint8x16_t bits_of(uint8x16_t v, const int from, const int to, const int mask) {
    v = from > to ? v >> (from - to) : v << (to - from);
    return v & (uint8_t)(mask << to);
}
INLINE vcodes codes_bits(vcodes v, const int from, const int to, const int mask) {
    EACH(v.r[i_] = bits_of(v.r[i_], from, to, mask));
    return v;
}
INLINE vcodes codes_lookup(vcodes v, const uint8_t *table) {
    const uint8x16_t t = vld1q_u8(table);
    EACH(v.r[i_] = vqtbl1q_u8(t, v.r[i_]));
    return v;
}
/* The same for bytes below 32, and 32 entries. */
INLINE vcodes codes_lookup32(vcodes v, const uint8_t *table) {
    const uint8x16x2_t t = {{vld1q_u8(table), vld1q_u8(table + 16)}};
    EACH(v.r[i_] = vqtbl2q_u8(t, v.r[i_]));
    return v;
}
INLINE vfour four_set(int32_t v) {
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

#ifdef LANES_DOT
/* Adds codes times x to the sum of the block; step i of n. The sum begins with `start`. Codes are
 * below 128, or, if pairs is 0, signed codes with 128 added. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    (void)pair, (void)n;
    if (i == 0)
        EACH(sum->r[i_] = vdupq_n_s32(start));
#ifdef LANES_USDOT
    (void)pairs;
    EACH(sum->r[i_] = vusdotq_s32(sum->r[i_], v.r[i_], x));
#else
    if (pairs == 0)
        EACH(v.r[i_] = veorq_u8(v.r[i_], vdupq_n_u8(0x80)));
    EACH(sum->r[i_] = vdotq_s32(sum->r[i_], vreinterpretq_s8_u8(v.r[i_]), x));
#endif
}
#else
/* Adds codes times x to the sum of the block; step i of n. The sum also gets `start`. Products are
 * added in 16 bits, 2 * pairs of them before they are widened to 32; pairs 0: codes are signed with
 * 128 added, and only two products fit. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    const int room = pairs == 0 ? 2 : pairs > 4 ? 8 : 2 * pairs;
    if (i == 0)
        EACH(sum->r[i_] = vdupq_n_s32(start));
    for (int j = 0; j < 4; j++) {
        if (pairs == 0)
            v.r[j] = veorq_u8(v.r[j], vdupq_n_u8(0x80));
        int8x16_t w = vreinterpretq_s8_u8(v.r[j]);
        if (i % room == 0) {
            pair->low[j] = vmull_s8(vget_low_s8(w), vget_low_s8(x));
            pair->high[j] = vmull_high_s8(w, x);
        } else {
            pair->low[j] = vmlal_s8(pair->low[j], vget_low_s8(w), vget_low_s8(x));
            pair->high[j] = vmlal_high_s8(pair->high[j], w, x);
        }
        if (i % room == room - 1 || i == n - 1) { /* four products of a row are adjacent */
            int32x4_t two = vpaddq_s32(vpaddlq_s16(pair->low[j]), vpaddlq_s16(pair->high[j]));
            sum->r[j] = vaddq_s32(sum->r[j], two);
        }
    }
}
#endif
#ifdef LANES_USDOT
enum { LANES_SIGNED = 0 };
#else
enum { LANES_SIGNED = 1 };
#endif

/* Returns high * 128 + low. */
INLINE vsum sum_join(vsum high, vsum low) {
    EACH(low.r[i_] = vaddq_s32(vshlq_n_s32(high.r[i_], 7), low.r[i_]));
    return low;
}

INLINE vfloat float_set(float x) {
    vfloat v;
    EACH(v.r[i_] = vdupq_n_f32(x));
    return v;
}
INLINE vfloat float_zero(void) {
    return float_set(0.0f);
}
INLINE vfloat float_load(const float *p) {
    vfloat v;
    EACH(v.r[i_] = vld1q_f32(p + 4 * i_));
    return v;
}
/* Stores the first n (1..16) lanes. */
INLINE void float_store(float *p, vfloat v, int n) {
    float x[16], *to = n == 16 ? p : x;
    EACH(vst1q_f32(to + 4 * i_, v.r[i_]));
    if (n < 16)
        memcpy(p, x, (size_t)n * sizeof *x);
}
INLINE vfloat float_of(vsum s) {
    vfloat v;
    EACH(v.r[i_] = vcvtq_f32_s32(s.r[i_]));
    return v;
}
INLINE vfloat float_mul(vfloat u, vfloat v) {
    EACH(u.r[i_] = vmulq_f32(u.r[i_], v.r[i_]));
    return u;
}
INLINE vfloat float_fma(vfloat u, vfloat v, vfloat w) { /* u * v + w */
    EACH(w.r[i_] = vfmaq_f32(w.r[i_], u.r[i_], v.r[i_]));
    return w;
}
INLINE vfloat float_fnma(vfloat u, vfloat v, vfloat w) { /* w - u * v */
    EACH(w.r[i_] = vfmsq_f32(w.r[i_], u.r[i_], v.r[i_]));
    return w;
}
INLINE vfloat float_negate(vfloat u) {
    EACH(u.r[i_] = vnegq_f32(u.r[i_]));
    return u;
}
/* Convert 16 f16 numbers, and 16 bytes: unsigned, signed, their low and their high four bits. */
INLINE vfloat float_f16(const uint8_t *p) {
    vfloat v;
    EACH(v.r[i_] = vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p + 8 * i_))));
    return v;
}
INLINE vfloat float_of_i16(int16x8_t a, int16x8_t b) {
    return float_of((vsum){{vmovl_s16(vget_low_s16(a)), vmovl_high_s16(a),
                            vmovl_s16(vget_low_s16(b)), vmovl_high_s16(b)}});
}
INLINE vfloat float_of_u8(uint8x16_t v) {
    return float_of_i16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(v))),
                        vreinterpretq_s16_u16(vmovl_high_u8(v)));
}
INLINE vfloat float_u8(const uint8_t *p) {
    return float_of_u8(vld1q_u8(p));
}
INLINE vfloat float_i8(const uint8_t *p) {
    int8x16_t v = vreinterpretq_s8_u8(vld1q_u8(p));
    return float_of_i16(vmovl_s8(vget_low_s8(v)), vmovl_high_s8(v));
}
INLINE vfloat float_low1(const uint8_t *p) {
    return float_of_u8(vld1q_u8(p) & 1);
}
INLINE vfloat float_low4(const uint8_t *p) {
    return float_of_u8(vld1q_u8(p) & 15);
}
INLINE vfloat float_high4(const uint8_t *p) {
    return float_of_u8(vld1q_u8(p) >> 4);
}
/* Returns 2^(e - 128) for each byte e; subnormal for e = 0 and 1. */
INLINE vfloat float_e8m0(const uint8_t *p) {
    vfloat v;
    for (int i = 0; i < 4; i++) {
        uint32_t four;
        memcpy(&four, p + 4 * i, sizeof four);
        uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(four));
        uint32x4_t e = vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
        uint32x4_t tiny = vshlq_u32(vdupq_n_u32(0x200000), vreinterpretq_s32_u32(e));
        v.r[i] =
            vreinterpretq_f32_u32(vbslq_u32(vcgtq_u32(e, vdupq_n_u32(1)), (e - 1) << 23, tiny));
    }
    return v;
}

#endif
