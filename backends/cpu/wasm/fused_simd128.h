/* Fused multiply-adds and numbers of 16 bits, of which WebAssembly has none: four floats at a time.
 *
 * The product of two floats is exact as a double, and the sum with a third one is rounded to a double, then to a float. Rounding twice
 * gives another result than rounding once only if the double lies in the middle between two floats, which its 29 last bits show; or
 * in another place if the result is subnormal. Both are so rare that a check of all lanes costs less than to be right in every case. */
#ifndef CPU_FUSED_SIMD128_H
#define CPU_FUSED_SIMD128_H

#include <math.h>

#include "wasm.h"

typedef float fused4 __attribute__((vector_size(16)));

/* Sums in double precision: of lanes 0 and 1, and of lanes 2 and 3. */
typedef struct fused_sums {
    v128_t low, high;
} fused_sums;

INLINE v128_t high_two(v128_t v) {
    return wasm_i32x4_shuffle(v, v, 2, 3, 2, 3);
}

/* Returns a * b + c before it is rounded to floats. */
INLINE fused_sums fused_begin(v128_t a, v128_t b, v128_t c) {
    return (fused_sums){wasm_f64x2_add(wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(a),
                                                      wasm_f64x2_promote_low_f32x4(b)),
                                       wasm_f64x2_promote_low_f32x4(c)),
                        wasm_f64x2_add(wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(high_two(a)),
                                                      wasm_f64x2_promote_low_f32x4(high_two(b))),
                                       wasm_f64x2_promote_low_f32x4(high_two(c)))};
}

INLINE v128_t fused_end(fused_sums s) {
    return wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(s.low),
                              wasm_f32x4_demote_f64x2_zero(s.high), 0, 1, 4, 5);
}

/* Returns bits in the lanes whose sum is in the middle between two floats that are not subnormal. */
INLINE v128_t fused_middle(fused_sums s) {
    const v128_t lower = wasm_i32x4_shuffle(s.low, s.high, 0, 2, 4, 6);
    return wasm_i32x4_eq(wasm_v128_and(lower, wasm_i32x4_const_splat(0x1fffffff)),
                         wasm_i32x4_const_splat(0x10000000));
}

/* Returns bits in the lanes whose sum is below 2^-126, but not 0, which is exact: no other sum has only zeros in its upper half. */
INLINE v128_t fused_small(fused_sums s) {
    const v128_t size = wasm_v128_and(wasm_i32x4_shuffle(s.low, s.high, 1, 3, 5, 7),
                                      wasm_i32x4_const_splat(0x7fffffff));
    /* size - 1 < the upper half of 2^-126, less 1, without signs */
    return wasm_i32x4_lt(wasm_i32x4_add(size, wasm_i32x4_const_splat(INT32_MAX)),
                         wasm_i32x4_const_splat(INT32_MIN + 0x380fffff));
}

/* Returns a * b + c where some lane may be rounded twice. */
fused4 ggl_cpu_fused_careful(fused4 a, fused4 b, fused4 c);
/* Adds a * b to c, four vectors of each, likewise. */
void ggl_cpu_fused_careful_4(v128_t *c, const v128_t *a, const v128_t *b);

/* Returns a * b + c, rounded once. */
INLINE fused4 fused_four(fused4 a, fused4 b, fused4 c) {
    const fused_sums s = fused_begin((v128_t)a, (v128_t)b, (v128_t)c);
    if (__builtin_expect(wasm_v128_any_true(wasm_v128_or(fused_middle(s), fused_small(s))), 0))
        return ggl_cpu_fused_careful(a, b, c);
    return (fused4)fused_end(s);
}

/* Converts the f16 numbers in the low halves of four words. The exponent's new bias is a factor, so that subnormal numbers come out right, too. */
INLINE v128_t f16_to_floats(v128_t h) {
    const v128_t size = wasm_i32x4_shl(wasm_v128_and(h, wasm_i32x4_const_splat(0x7fff)), 13);
    const v128_t sign = wasm_i32x4_shl(wasm_v128_and(h, wasm_i32x4_const_splat(0x8000)), 16);
    const v128_t is_special = wasm_i32x4_gt(size, wasm_i32x4_const_splat(0x0f7fffff));
    v128_t y = wasm_f32x4_mul(size, wasm_f32x4_const_splat(0x1p112f));
    y = wasm_v128_or(y, wasm_v128_and(is_special, wasm_i32x4_const_splat(0x7f800000)));
    return wasm_v128_or(y, sign);
}

INLINE v128_t f16_load(const uint16_t *p) {
    return f16_to_floats(wasm_u32x4_load16x4(p));
}

/* Rounds to f16, to nearest even, in the low halves of four words. */
INLINE v128_t f16_of_floats(v128_t x) {
    const v128_t size = wasm_v128_and(x, wasm_i32x4_const_splat(0x7fffffff)),
                 sign = wasm_u32x4_shr(wasm_v128_xor(x, size), 16);
    /* normal: half of the last place, less one if it is even, is added; the bias changes by 112 */
    const v128_t odd = wasm_v128_and(wasm_u32x4_shr(size, 13), wasm_i32x4_const_splat(1));
    const v128_t normal = wasm_u32x4_shr(
        wasm_i32x4_add(wasm_i32x4_add(size, odd), wasm_i32x4_const_splat(0xfff - (112 << 23))), 13);
    /* subnormal: units of 2^-24 are the last places of 0.5 */
    const v128_t half = wasm_f32x4_const_splat(0.5f),
                 subnormal = wasm_i32x4_sub(wasm_f32x4_add(size, half), half);
    const v128_t special =
        wasm_v128_bitselect(wasm_i32x4_const_splat(0x7e00), wasm_i32x4_const_splat(0x7c00),
                            wasm_i32x4_gt(size, wasm_i32x4_const_splat(0x7f800000)));
    v128_t y = wasm_v128_bitselect(subnormal, normal,
                                   wasm_i32x4_lt(size, wasm_i32x4_const_splat(113 << 23)));
    y = wasm_v128_bitselect(special, y,
                            wasm_i32x4_gt(size, wasm_i32x4_const_splat((143 << 23) - 1)));
    return wasm_v128_or(y, sign);
}

#endif
