/* Vectors of simd/functions.h as those of WebAssembly's SIMD. */
#ifndef CPU_VECTOR_SIMD128_H
#define CPU_VECTOR_SIMD128_H

#include <string.h>

#include "fused_simd128.h"

enum { V_LANES = 4, V_COLS = 4, V_SUMS = 4 };
#define V_TILE(X) X(4) X(2) X(1)

typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));

INLINE vf v_set(float x) {
    return (vf)wasm_f32x4_splat(x);
}
INLINE vf v_load(const float *p) {
    return (vf)wasm_v128_load(p);
}
INLINE void v_store(float *p, vf v) {
    wasm_v128_store(p, (v128_t)v);
}
INLINE void v_store_n(float *p, vf v, int64_t n) {
    float x[4];
    v_store(x, v);
    memcpy(p, x, (size_t)n * sizeof *x);
}
/* Loads unsigned bytes. */
INLINE vi v_load_bytes(const uint8_t *p) {
    return (vi)wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(p)));
}
INLINE vf v_load_half(const uint16_t *p) {
    return (vf)f16_load(p);
}
INLINE void v_store_half(uint16_t *p, vf v) {
    const v128_t h = f16_of_floats((v128_t)v);
    wasm_v128_store64_lane(p, wasm_u16x8_narrow_i32x4(h, h), 0);
}
INLINE vf v_load_bfloat(const uint16_t *p) {
    return (vf)wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16);
}
INLINE vf v_fma(vf a, vf b, vf c) {
    return (vf)fused_four(a, b, c);
}
INLINE vf v_choose(vi m, vf a, vf b) {
    return (vf)wasm_v128_bitselect((v128_t)a, (v128_t)b, (v128_t)m);
}
INLINE vf v_sqrt(vf x) {
    return (vf)wasm_f32x4_sqrt((v128_t)x);
}
INLINE vf v_floor(vf x) {
    return (vf)wasm_f32x4_floor((v128_t)x);
}
INLINE vf v_of_int(vi x) {
    return (vf)wasm_f32x4_convert_i32x4((v128_t)x);
}
INLINE vi v_to_int(vf x) { /* to nearest even */
    return (vi)wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest((v128_t)x));
}

/* Adds up sixteen sums: sums 4h .. 4h+3 are the lanes of s[h]. */
INLINE float v_tree(const vf *s) {
    const vf a = (s[0] + s[2]) + (s[1] + s[3]), b = a + (vf)high_two((v128_t)a);
    return b[0] + b[1];
}

/* The larger one, and the largest lane, of numbers that are not NaN. */
INLINE vf v_max(vf a, vf b) {
    return (vf)wasm_f32x4_pmax((v128_t)a, (v128_t)b);
}
INLINE float v_largest(vf v) {
    v = v_max(v, (vf)high_two((v128_t)v));
    return v[0] > v[1] ? v[0] : v[1];
}
INLINE bool v_any(vi m) {
    return wasm_v128_any_true((v128_t)m);
}

INLINE vi v_max_int(vi a, vi b) {
    return (vi)wasm_i32x4_max((v128_t)a, (v128_t)b);
}
INLINE int32_t v_largest_int(vi v) {
    v = v_max_int(v, (vi)high_two((v128_t)v));
    return v[0] > v[1] ? v[0] : v[1];
}
INLINE int32_t v_sum_int(vi v) {
    v = v + (vi)high_two((v128_t)v);
    return v[0] + v[1];
}
/* Stores 32 integers that fit into a byte each. */
INLINE void v_store_bytes(int8_t *p, const vi *c) {
    for (int h = 0; h < 8; h += 4, p += 16)
        wasm_v128_store(p, wasm_i8x16_narrow_i16x8(
                               wasm_i16x8_narrow_i32x4((v128_t)c[h], (v128_t)c[h + 1]),
                               wasm_i16x8_narrow_i32x4((v128_t)c[h + 2], (v128_t)c[h + 3])));
}

/* Splits 64 whole numbers of up to 16256 in magnitude into bytes: high * 128 + low, low from -64 to
 * 63. */
INLINE void v_split_bytes(int8_t *high, int8_t *low, const vi *w) {
    for (int i = 0; i < 4; i++, w += 4) {
        v128_t h[2], l[2];
        for (int k = 0; k < 2; k++) {
            const v128_t v = wasm_i16x8_narrow_i32x4((v128_t)w[2 * k], (v128_t)w[2 * k + 1]);
            h[k] = wasm_i16x8_shr(wasm_i16x8_add(v, wasm_i16x8_const_splat(64)), 7);
            l[k] = wasm_i16x8_sub(v, wasm_i16x8_shl(h[k], 7));
        }
        wasm_v128_store(high + 16 * i, wasm_i8x16_narrow_i16x8(h[0], h[1]));
        wasm_v128_store(low + 16 * i, wasm_i8x16_narrow_i16x8(l[0], l[1]));
    }
}

#include "../simd/lanes4.h"

#endif
