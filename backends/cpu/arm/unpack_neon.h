/* The functions that quant/unpack_tmpl.h needs, for NEON: two registers for 32 bytes, two for 8
 * floats. */
#ifndef CPU_UNPACK_NEON_H
#define CPU_UNPACK_NEON_H

#include "../../../ggml-lite/quant/raw_scales.h"
#include "../quant/rows16.h"
#include "lanes_neon.h"

typedef struct c32 {
    uint8x16_t a, b;
} c32;
typedef struct f8 {
    float32x4_t a, b;
} f8;

INLINE c32 c32_load(const uint8_t *p) {
    return (c32){vld1q_u8(p), vld1q_u8(p + 16)};
}
INLINE c32 c32_set(const unsigned byte) {
    return (c32){vdupq_n_u8((uint8_t)byte), vdupq_n_u8((uint8_t)byte)};
}
INLINE c32 c32_twice(const uint8_t *p) {
    return (c32){vld1q_u8(p), vld1q_u8(p)};
}
INLINE c32 c32_fours(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    uint8x16_t u = vreinterpretq_u8_u32(vdupq_n_u32(v));
    return (c32){u, u};
}
INLINE c32 c32_halves(c32 a, c32 b) {
    return (c32){a.a, b.b};
}
INLINE c32 c32_or(c32 a, c32 b) {
    return (c32){a.a | b.a, a.b | b.b};
}
INLINE c32 c32_xor(c32 a, c32 b) {
    return (c32){a.a ^ b.a, a.b ^ b.b};
}
INLINE c32 c32_nibbles(const uint8_t *p) {
    uint8x16_t v = vld1q_u8(p);
    return (c32){v & 15, v >> 4};
}
INLINE c32 c32_quarters(c32 v) {
    uint64x2_t a = vreinterpretq_u64_u8(v.a), b = vreinterpretq_u64_u8(v.b);
    return (c32){vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b))};
}
INLINE c32 c32_bits(c32 v, const int from, const int to, const int mask) {
    return (c32){bits_of(v.a, from, to, mask), bits_of(v.b, from, to, mask)};
}
INLINE c32 c32_spread(uint32_t bits, const int value) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const uint8x8_t v = vcreate_u8(bits);
    uint8x16_t a = vcombine_u8(vdup_lane_u8(v, 0), vdup_lane_u8(v, 1));
    uint8x16_t b = vcombine_u8(vdup_lane_u8(v, 2), vdup_lane_u8(v, 3));
    return (c32){vtstq_u8(a, bit) & (uint8_t)value, vtstq_u8(b, bit) & (uint8_t)value};
}
/* Each 16-bit word is copied to several lanes; a multiplication shifts the pair of elements that a
 * lane is for to its top bits: two (or three) bits for each byte. */
INLINE uint8x16_t twos_of(uint16x8_t v) {
    v = v * vreinterpretq_u16_u64(vdupq_n_u64(0x0001001001001000)) >> 12;
    return vreinterpretq_u8_u16((v | v << 6) & 0x0303);
}
INLINE c32 c32_twos(uint64_t v) {
    const uint16x4_t w = vcreate_u16(v);
    return (c32){twos_of(vcombine_u16(vdup_lane_u16(w, 0), vdup_lane_u16(w, 1))),
                 twos_of(vcombine_u16(vdup_lane_u16(w, 2), vdup_lane_u16(w, 3)))};
}
INLINE uint8x16_t threes_of_words(uint16x8_t v) {
    v = v * vreinterpretq_u16_u32(vdupq_n_u32(0x00100400)) >> 10;
    return vreinterpretq_u8_u16((v | v << 5) & 0x0707);
}
INLINE c32 c32_threes(uint64_t v, uint64_t w) {
    const uint16x8_t u = vcombine_u16(vcreate_u16(v), vcreate_u16(w));
    return (c32){threes_of_words(vzip1q_u16(u, u)), threes_of_words(vzip2q_u16(u, u))};
}
INLINE c32 c32_lookup(const uint8_t *table, c32 v) {
    const uint8x16_t t = vld1q_u8(table);
    return (c32){vqtbl1q_u8(t, v.a), vqtbl1q_u8(t, v.b)};
}
/* Returns 3 u / 256 for each byte u: the number of thresholds 256/3 and 512/3 that it reaches. */
INLINE uint8x16_t base3_of(uint8x16_t v, uint8x16_t power) {
    v = vmulq_u8(v, power);
    return -(vcgeq_u8(v, vdupq_n_u8(86)) + vcgeq_u8(v, vdupq_n_u8(171)));
}
INLINE c32 c32_base3(c32 v, const uint8_t *powers) {
    return (c32){base3_of(v.a, vld1q_u8(powers)), base3_of(v.b, vld1q_u8(powers + 16))};
}

INLINE float f16_value(uint16_t bits) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(bits))), 0);
}
INLINE f8 f8_scaled(float d, int16x8_t v) {
    return (f8){vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), d),
                vmulq_n_f32(vcvtq_f32_s32(vmovl_high_s16(v)), d)};
}
INLINE f8 f8_scaled_u8(float d, uint64_t bytes) {
    return f8_scaled(d, vreinterpretq_s16_u16(vmovl_u8(vcreate_u8(bytes))));
}
INLINE f8 f8_scaled_i8(float d, uint64_t bytes) {
    return f8_scaled(d, vmovl_s8(vcreate_s8(bytes)));
}

INLINE void f16_rows(float *out, const uint8_t *p, const size_t *row, raw_fn *raw,
                     const bool minima) {
    for (int h = 0; h < 4; h++, row += 4, out += 4) {
        uint16_t n[4];
        for (int r = 0; r < 4; r++)
            n[r] = minima ? raw(p + row[r]).m : raw(p + row[r]).d;
        uint16x4_t d = vdup_n_u16(n[0]);
        d = vset_lane_u16(n[1], d, 1);
        d = vset_lane_u16(n[2], d, 2);
        d = vset_lane_u16(n[3], d, 3);
        float32x4_t x = vcvt_f32_f16(vreinterpret_f16_u16(d));
        vst1q_f32(out, minima ? vnegq_f32(x) : x);
    }
}

/* Transposes 4 x 4 words. */
INLINE void transpose_4x4(uint32x4_t v[4]) {
    uint64x2_t a = vreinterpretq_u64_u32(vtrn1q_u32(v[0], v[1])),
               b = vreinterpretq_u64_u32(vtrn2q_u32(v[0], v[1])),
               c = vreinterpretq_u64_u32(vtrn1q_u32(v[2], v[3])),
               d = vreinterpretq_u64_u32(vtrn2q_u32(v[2], v[3]));
    v[0] = vreinterpretq_u32_u64(vtrn1q_u64(a, c));
    v[1] = vreinterpretq_u32_u64(vtrn1q_u64(b, d));
    v[2] = vreinterpretq_u32_u64(vtrn2q_u64(a, c));
    v[3] = vreinterpretq_u32_u64(vtrn2q_u64(b, d));
}

INLINE void pack_codes(uint8_t *codes, const uint8_t *w, const size_t *row,
                       c32 (*unpack)(const uint8_t *, const int), const int k,
                       const uint8_t *table) {
    for (int h = 0; h < 4; h++, row += 4, codes += 16) {
        uint32x4_t a[4], b[4];
        for (int r = 0; r < 4; r++) {
            c32 v = table ? c32_lookup(table, unpack(w + row[r], k)) : unpack(w + row[r], k);
            a[r] = vreinterpretq_u32_u8(v.a), b[r] = vreinterpretq_u32_u8(v.b);
        }
        transpose_4x4(a);
        transpose_4x4(b);
        for (int g = 0; g < 4; g++) {
            vst1q_u8(codes + g * CPU_PLANE, vreinterpretq_u8_u32(a[g]));
            vst1q_u8(codes + (4 + g) * CPU_PLANE, vreinterpretq_u8_u32(b[g]));
        }
    }
}

INLINE void put_scales(float *out, const f8 *v, const int step, const int *places) {
    for (int h = 0; h < 4; h++) {
        uint32x4_t a[4], b[4];
        for (int r = 0; r < 4; r++) {
            a[r] = vreinterpretq_u32_f32(v[(4 * h + r) * step].a);
            b[r] = vreinterpretq_u32_f32(v[(4 * h + r) * step].b);
        }
        transpose_4x4(a);
        transpose_4x4(b);
        for (int i = 0; i < 4; i++) {
            vst1q_f32(out + places[i] * CPU_GROUP + 4 * h, vreinterpretq_f32_u32(a[i]));
            vst1q_f32(out + places[4 + i] * CPU_GROUP + 4 * h, vreinterpretq_f32_u32(b[i]));
        }
    }
}

#endif
