/* The functions that quant/unpack_tmpl.h needs, for WebAssembly's SIMD: two vectors for 32 bytes, two for 8 floats. */
#ifndef CPU_UNPACK_SIMD128_H
#define CPU_UNPACK_SIMD128_H

#include "../../../ggml-lite/quant/raw_scales.h"
#include "../quant/rows16.h"
#include "lanes_simd128.h"

typedef struct c32 {
    v128_t a, b;
} c32;
typedef struct f8 {
    v128_t a, b;
} f8;

INLINE c32 c32_load(const uint8_t *p) {
    return (c32){wasm_v128_load(p), wasm_v128_load(p + 16)};
}
INLINE c32 c32_both(v128_t v) {
    return (c32){v, v};
}
INLINE c32 c32_set(const unsigned byte) {
    return c32_both(wasm_i8x16_splat((int8_t)byte));
}
INLINE c32 c32_twice(const uint8_t *p) {
    return c32_both(wasm_v128_load(p));
}
INLINE c32 c32_fours(const uint8_t *p) {
    return c32_both(wasm_v128_load32_splat(p));
}
INLINE c32 c32_halves(c32 a, c32 b) {
    return (c32){a.a, b.b};
}
INLINE c32 c32_or(c32 a, c32 b) {
    return (c32){wasm_v128_or(a.a, b.a), wasm_v128_or(a.b, b.b)};
}
INLINE c32 c32_xor(c32 a, c32 b) {
    return (c32){wasm_v128_xor(a.a, b.a), wasm_v128_xor(a.b, b.b)};
}
INLINE c32 c32_nibbles(const uint8_t *p) {
    const v128_t v = wasm_v128_load(p);
    return (c32){bits_of(v, 0, 0, 15), bits_of(v, 4, 0, 15)};
}
INLINE c32 c32_quarters(c32 v) {
    return (c32){wasm_i64x2_shuffle(v.a, v.b, 0, 2), wasm_i64x2_shuffle(v.a, v.b, 1, 3)};
}
INLINE c32 c32_bits(c32 v, const int from, const int to, const int mask) {
    return (c32){bits_of(v.a, from, to, mask), bits_of(v.b, from, to, mask)};
}
INLINE c32 c32_spread(uint32_t bits, const int value) {
    const v128_t bit = wasm_i64x2_const_splat((int64_t)0x8040201008040201),
                 v = wasm_i32x4_splat((int32_t)bits), to = wasm_i8x16_splat((int8_t)value);
    const v128_t a = wasm_i8x16_shuffle(v, v, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
                 b = wasm_i8x16_shuffle(v, v, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    return (c32){wasm_v128_and(wasm_i8x16_eq(wasm_v128_and(a, bit), bit), to),
                 wasm_v128_and(wasm_i8x16_eq(wasm_v128_and(b, bit), bit), to)};
}
/* Each 16-bit word is copied to several lanes; a multiplication shifts the pair of elements that a
 * lane is for to its top bits: two (or three) bits for each byte. */
INLINE v128_t twos_of(v128_t v) {
    v = wasm_u16x8_shr(wasm_i16x8_mul(v, wasm_i64x2_const_splat((int64_t)0x0001001001001000)), 12);
    return wasm_v128_and(wasm_v128_or(v, wasm_i16x8_shl(v, 6)), wasm_i16x8_const_splat(0x0303));
}
INLINE c32 c32_twos(uint64_t v) {
    const v128_t w = wasm_i64x2_splat((int64_t)v);
    return (c32){twos_of(wasm_i16x8_shuffle(w, w, 0, 0, 0, 0, 1, 1, 1, 1)),
                 twos_of(wasm_i16x8_shuffle(w, w, 2, 2, 2, 2, 3, 3, 3, 3))};
}
INLINE v128_t threes_of_words(v128_t v) {
    v = wasm_u16x8_shr(wasm_i16x8_mul(v, wasm_i32x4_const_splat(0x00100400)), 10);
    return wasm_v128_and(wasm_v128_or(v, wasm_i16x8_shl(v, 5)), wasm_i16x8_const_splat(0x0707));
}
INLINE c32 c32_threes(uint64_t v, uint64_t w) {
    const v128_t u = wasm_i64x2_make((int64_t)v, (int64_t)w);
    return (c32){threes_of_words(wasm_i16x8_shuffle(u, u, 0, 0, 1, 1, 2, 2, 3, 3)),
                 threes_of_words(wasm_i16x8_shuffle(u, u, 4, 4, 5, 5, 6, 6, 7, 7))};
}
INLINE c32 c32_lookup(const uint8_t *table, c32 v) {
    const v128_t t = wasm_v128_load(table);
    return (c32){wasm_i8x16_swizzle(t, v.a), wasm_i8x16_swizzle(t, v.b)};
}
/* Returns 3 u / 256 for each byte u = (v * power) & 255. */
INLINE v128_t base3_of(v128_t v, v128_t power) {
    const v128_t byte = wasm_i16x8_const_splat(255), three = wasm_i16x8_const_splat(3);
    v128_t low = wasm_u16x8_extmul_low_u8x16(v, power),
           high = wasm_u16x8_extmul_high_u8x16(v, power);
    low = wasm_u16x8_shr(wasm_i16x8_mul(wasm_v128_and(low, byte), three), 8);
    high = wasm_u16x8_shr(wasm_i16x8_mul(wasm_v128_and(high, byte), three), 8);
    return wasm_u8x16_narrow_i16x8(low, high);
}
INLINE c32 c32_base3(c32 v, const uint8_t *powers) {
    return (c32){base3_of(v.a, wasm_v128_load(powers)), base3_of(v.b, wasm_v128_load(powers + 16))};
}

INLINE float f16_value(uint16_t bits) {
    return wasm_f32x4_extract_lane(f16_to_floats(wasm_i32x4_splat(bits)), 0);
}
INLINE f8 f8_scaled(float d, v128_t v) {
    const v128_t by = wasm_f32x4_splat(d);
    return (f8){wasm_f32x4_mul(wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(v)), by),
                wasm_f32x4_mul(wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(v)), by)};
}
INLINE f8 f8_scaled_u8(float d, uint64_t bytes) {
    return f8_scaled(d, wasm_u16x8_extend_low_u8x16(wasm_i64x2_splat((int64_t)bytes)));
}
INLINE f8 f8_scaled_i8(float d, uint64_t bytes) {
    return f8_scaled(d, wasm_i16x8_extend_low_i8x16(wasm_i64x2_splat((int64_t)bytes)));
}

INLINE void f16_rows(float *out, const uint8_t *p, const size_t *row, raw_fn *raw,
                     const bool minima) {
    for (int h = 0; h < 4; h++, row += 4, out += 4) {
        uint16_t n[4];
        for (int r = 0; r < 4; r++)
            n[r] = minima ? raw(p + row[r]).m : raw(p + row[r]).d;
        const v128_t x = f16_load(n);
        wasm_v128_store(out, minima ? wasm_f32x4_neg(x) : x);
    }
}

/* Transposes 4 x 4 words. */
INLINE void transpose_4x4(v128_t v[4]) {
    const v128_t a = wasm_i32x4_shuffle(v[0], v[1], 0, 4, 1, 5),
                 b = wasm_i32x4_shuffle(v[0], v[1], 2, 6, 3, 7),
                 c = wasm_i32x4_shuffle(v[2], v[3], 0, 4, 1, 5),
                 d = wasm_i32x4_shuffle(v[2], v[3], 2, 6, 3, 7);
    v[0] = wasm_i64x2_shuffle(a, c, 0, 2);
    v[1] = wasm_i64x2_shuffle(a, c, 1, 3);
    v[2] = wasm_i64x2_shuffle(b, d, 0, 2);
    v[3] = wasm_i64x2_shuffle(b, d, 1, 3);
}

INLINE void pack_codes(uint8_t *codes, const uint8_t *w, const size_t *row,
                       c32 (*unpack)(const uint8_t *, const int), const int k,
                       const uint8_t *table) {
    for (int h = 0; h < 4; h++, row += 4, codes += 16) {
        v128_t a[4], b[4];
        for (int r = 0; r < 4; r++) {
            const c32 v = table ? c32_lookup(table, unpack(w + row[r], k)) : unpack(w + row[r], k);
            a[r] = v.a, b[r] = v.b;
        }
        transpose_4x4(a);
        transpose_4x4(b);
        for (int g = 0; g < 4; g++) {
            wasm_v128_store(codes + g * CPU_PLANE, a[g]);
            wasm_v128_store(codes + (4 + g) * CPU_PLANE, b[g]);
        }
    }
}

INLINE void put_scales(float *out, const f8 *v, const int step, const int *places) {
    for (int h = 0; h < 4; h++) {
        v128_t a[4], b[4];
        for (int r = 0; r < 4; r++) {
            a[r] = v[(4 * h + r) * step].a;
            b[r] = v[(4 * h + r) * step].b;
        }
        transpose_4x4(a);
        transpose_4x4(b);
        for (int i = 0; i < 4; i++) {
            wasm_v128_store(out + places[i] * CPU_GROUP + 4 * h, a[i]);
            wasm_v128_store(out + places[4 + i] * CPU_GROUP + 4 * h, b[i]);
        }
    }
}

#endif
