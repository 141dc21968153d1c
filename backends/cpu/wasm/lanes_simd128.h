/* Vectors of 16 rows (quant/kernel_tmpl.h) as four vectors of WebAssembly's SIMD. */
#ifndef CPU_LANES_SIMD128_H
#define CPU_LANES_SIMD128_H

#include <string.h>

#include "fused_simd128.h"

enum {
    LANES_REGISTERS = 4,
    LANES_GROUPS = 1,
    LANES_COLS = 2,
    LANES_MIN_PANEL = 12,
    LANES_SIGNED = 0
};
#define LANES_FEW(X)         X(2) X(1)
#define LANES_MANY(X)        X(2) X(1)
#define LANES_MANY_HALVES(X) X(2) X(1)

typedef struct vcodes {
    v128_t r[4];
} vcodes;
typedef struct vsum {
    v128_t r[4];
} vsum;
typedef struct vfloat {
    v128_t r[4];
} vfloat;
/* Sums need no parts. */
typedef struct vpart {
    char none;
} vpart;
/* Four signed bytes as words, four times: the first and third one, and the second and fourth one. */
typedef struct vfour {
    v128_t even, odd;
} vfour;

#define EACH(expression)                                                                           \
    UNROLL for (int i_ = 0; i_ < 4; i_++) {                                                        \
        expression;                                                                                \
    }

INLINE vcodes codes_load(const uint8_t *p) {
    vcodes v;
    EACH(v.r[i_] = wasm_v128_load(p + 16 * i_));
    return v;
}
INLINE void codes_store(uint8_t *p, vcodes v) {
    EACH(wasm_v128_store(p + 16 * i_, v.r[i_]));
}
INLINE vcodes codes_or(vcodes u, vcodes v) {
    EACH(u.r[i_] = wasm_v128_or(u.r[i_], v.r[i_]));
    return u;
}
/* Returns (byte >> from & mask) << to for each byte. Shifts of words are an instruction of x86, those of bytes are several; bits that
 * come from another byte are masked. */
INLINE v128_t bits_of(v128_t v, const int from, const int to, const int mask) {
    if (from > to)
        v = wasm_u16x8_shr(v, (uint32_t)(from - to));
    else if (to > from)
        v = wasm_i16x8_shl(v, (uint32_t)(to - from));
    return wasm_v128_and(v, wasm_i8x16_splat((int8_t)(mask << to)));
}
INLINE vcodes codes_bits(vcodes v, const int from, const int to, const int mask) {
    EACH(v.r[i_] = bits_of(v.r[i_], from, to, mask));
    return v;
}
INLINE vcodes codes_lookup(vcodes v, const uint8_t *table) {
    const v128_t t = wasm_v128_load(table);
    EACH(v.r[i_] = wasm_i8x16_swizzle(t, v.r[i_]));
    return v;
}
/* The same for bytes below 32, and 32 entries. An index of 16 and more gives 0. */
INLINE vcodes codes_lookup32(vcodes v, const uint8_t *table) {
    const v128_t t = wasm_v128_load(table), u = wasm_v128_load(table + 16);
    EACH(v.r[i_] =
             wasm_v128_or(wasm_i8x16_swizzle(t, v.r[i_]),
                          wasm_i8x16_swizzle(u, wasm_i8x16_sub(v.r[i_], wasm_i8x16_splat(16)))));
    return v;
}
INLINE vfour four_set(int32_t v) {
    const v128_t x = wasm_i32x4_splat(v);
    return (vfour){wasm_i16x8_shr(wasm_i16x8_shl(x, 8), 8), wasm_i16x8_shr(x, 8)};
}

/* Adds codes times x to the sum of the block; step i of n. The sum begins with `start`. Codes are unsigned. Those with even numbers and
 * those with odd ones are words of their own, so that the instruction adds up products of the same row. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    (void)pair, (void)pairs, (void)n;
    UNROLL for (int j = 0; j < 4; j++) {
        const v128_t even = wasm_v128_and(v.r[j], wasm_i16x8_const_splat(255)),
                     odd = wasm_u16x8_shr(v.r[j], 8);
        const v128_t old = i == 0 ? wasm_i32x4_splat(start) : sum->r[j];
        sum->r[j] = wasm_i32x4_add(wasm_i32x4_add(old, wasm_i32x4_dot_i16x8(even, x.even)),
                                   wasm_i32x4_dot_i16x8(odd, x.odd));
    }
}

/* Returns high * 128 + low. */
INLINE vsum sum_join(vsum high, vsum low) {
    EACH(low.r[i_] = wasm_i32x4_add(wasm_i32x4_shl(high.r[i_], 7), low.r[i_]));
    return low;
}

INLINE vfloat float_set(float x) {
    vfloat v;
    EACH(v.r[i_] = wasm_f32x4_splat(x));
    return v;
}
INLINE vfloat float_zero(void) {
    return float_set(0.0f);
}
INLINE vfloat float_load(const float *p) {
    vfloat v;
    EACH(v.r[i_] = wasm_v128_load(p + 4 * i_));
    return v;
}
/* Stores the first n (1..16) lanes. */
INLINE void float_store(float *p, vfloat v, int n) {
    float x[16], *to = n == 16 ? p : x;
    EACH(wasm_v128_store(to + 4 * i_, v.r[i_]));
    if (n < 16)
        memcpy(p, x, (size_t)n * sizeof *x);
}
INLINE vfloat float_of(vsum s) {
    vfloat v;
    EACH(v.r[i_] = wasm_f32x4_convert_i32x4(s.r[i_]));
    return v;
}
INLINE vfloat float_mul(vfloat u, vfloat v) {
    EACH(u.r[i_] = wasm_f32x4_mul(u.r[i_], v.r[i_]));
    return u;
}
INLINE vfloat float_negate(vfloat u) {
    EACH(u.r[i_] = wasm_f32x4_neg(u.r[i_]));
    return u;
}
INLINE vfloat float_fma(vfloat u, vfloat v, vfloat w) { /* u * v + w */
    fused_sums s[4];
    vfloat y;
    EACH(s[i_] = fused_begin(u.r[i_], v.r[i_], w.r[i_]); y.r[i_] = fused_end(s[i_]));
    /* The smallest magnitude, as an integer, up to 2^-126, to which a smaller sum may have been rounded. 0 counts as small here. */
    const v128_t size = wasm_i32x4_const_splat(INT32_MAX);
    v128_t least = wasm_v128_and(y.r[0], size), middle = fused_middle(s[0]);
    UNROLL for (int i = 1; i < 4; i++) {
        least = wasm_u32x4_min(least, wasm_v128_and(y.r[i], size));
        middle = wasm_v128_or(middle, fused_middle(s[i]));
    }
    const v128_t small = wasm_i32x4_lt(least, wasm_i32x4_const_splat(0x00800001));
    if (__builtin_expect(wasm_v128_any_true(wasm_v128_or(middle, small)), 0)) {
        vfloat a = u, b = v, c = w; /* these alone are in memory */
        ggl_cpu_fused_careful_4(c.r, a.r, b.r);
        return c;
    }
    return y;
}
INLINE vfloat float_fnma(vfloat u, vfloat v, vfloat w) { /* w - u * v */
    return float_fma(float_negate(u), v, w);
}
/* Convert 16 f16 numbers, and 16 bytes: unsigned, signed, their low and their high four bits. */
INLINE vfloat float_f16(const uint8_t *p) {
    vfloat v;
    EACH(v.r[i_] = f16_to_floats(wasm_u32x4_load16x4(p + 8 * i_)));
    return v;
}
INLINE vfloat float_of_i16(v128_t a, v128_t b) {
    return float_of((vsum){{wasm_i32x4_extend_low_i16x8(a), wasm_i32x4_extend_high_i16x8(a),
                            wasm_i32x4_extend_low_i16x8(b), wasm_i32x4_extend_high_i16x8(b)}});
}
INLINE vfloat float_of_u8(v128_t v) {
    return float_of_i16(wasm_u16x8_extend_low_u8x16(v), wasm_u16x8_extend_high_u8x16(v));
}
INLINE vfloat float_u8(const uint8_t *p) {
    return float_of_u8(wasm_v128_load(p));
}
INLINE vfloat float_i8(const uint8_t *p) {
    const v128_t v = wasm_v128_load(p);
    return float_of_i16(wasm_i16x8_extend_low_i8x16(v), wasm_i16x8_extend_high_i8x16(v));
}
INLINE vfloat float_low1(const uint8_t *p) {
    return float_of_u8(bits_of(wasm_v128_load(p), 0, 0, 1));
}
INLINE vfloat float_low4(const uint8_t *p) {
    return float_of_u8(bits_of(wasm_v128_load(p), 0, 0, 15));
}
INLINE vfloat float_high4(const uint8_t *p) {
    return float_of_u8(bits_of(wasm_v128_load(p), 4, 0, 15));
}
/* Returns 2^(e - 128) for each byte e; subnormal for e = 0 and 1. */
INLINE vfloat float_e8m0(const uint8_t *p) {
    vfloat v;
    UNROLL for (int i = 0; i < 4; i++) {
        const v128_t e = wasm_u32x4_extend_low_u16x8(
            wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p + 4 * i)));
        const v128_t one = wasm_i32x4_const_splat(1);
        const v128_t tiny =
            wasm_i32x4_add(wasm_i32x4_const_splat(0x200000),
                           wasm_v128_and(wasm_i32x4_eq(e, one), wasm_i32x4_const_splat(0x200000)));
        v.r[i] = wasm_v128_bitselect(wasm_i32x4_shl(wasm_i32x4_sub(e, one), 23), tiny,
                                     wasm_i32x4_gt(e, one));
    }
    return v;
}

#endif
