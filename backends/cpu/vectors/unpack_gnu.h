/* The functions that quant/unpack_tmpl.h needs, by the compiler's vectors: two for 32 bytes, two for 8 floats. */
#ifndef CPU_UNPACK_GNU_H
#define CPU_UNPACK_GNU_H

#include "../../../ggml-lite/quant/raw_scales.h"
#include "../quant/rows16.h"
#include "lanes_gnu.h"

typedef struct c32 {
    vbytes a, b;
} c32;
typedef struct f8 {
    vf a, b;
} f8;

INLINE c32 c32_load(const uint8_t *p) {
    return (c32){LOAD(vbytes, p), LOAD(vbytes, p + 16)};
}
INLINE c32 c32_both(vbytes v) {
    return (c32){v, v};
}
INLINE c32 c32_set(const unsigned byte) {
    return c32_both((vbytes){0} + (uint8_t)byte);
}
INLINE c32 c32_twice(const uint8_t *p) {
    return c32_both(LOAD(vbytes, p));
}
INLINE c32 c32_fours(const uint8_t *p) {
    return c32_both((vbytes)((vu){0} + LOAD(uint32_t, p)));
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
    const vbytes v = LOAD(vbytes, p);
    return (c32){v & 15, v >> 4};
}
INLINE c32 c32_quarters(c32 v) {
    return (c32){(vbytes)__builtin_shufflevector((vlongs)v.a, (vlongs)v.b, 0, 2),
                 (vbytes)__builtin_shufflevector((vlongs)v.a, (vlongs)v.b, 1, 3)};
}
INLINE c32 c32_bits(c32 v, const int from, const int to, const int mask) {
    return (c32){bits_of(v.a, from, to, mask), bits_of(v.b, from, to, mask)};
}
INLINE c32 c32_spread(uint32_t bits, const int value) {
    const vbytes bit = (vbytes)((vlongs){0} + 0x8040201008040201u), v = (vbytes)((vu){0} + bits);
    const vbytes a = __builtin_shufflevector(v, v, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const vbytes b = __builtin_shufflevector(v, v, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    return (c32){(vbytes)((a & bit) == bit) & (uint8_t)value,
                 (vbytes)((b & bit) == bit) & (uint8_t)value};
}
/* Each 16-bit word is copied to several lanes; a multiplication shifts the pair of elements that a
 * lane is for to its top bits: two (or three) bits for each byte. */
INLINE vbytes twos_of(vwords v) {
    v = v * (vwords)((vlongs){0} + 0x0001001001001000u) >> 12;
    return (vbytes)((v | v << 6) & 0x0303);
}
INLINE c32 c32_twos(uint64_t v) {
    const vwords w = (vwords)(vlongs){v, v};
    return (c32){twos_of(__builtin_shufflevector(w, w, 0, 0, 0, 0, 1, 1, 1, 1)),
                 twos_of(__builtin_shufflevector(w, w, 2, 2, 2, 2, 3, 3, 3, 3))};
}
INLINE vbytes threes_of_words(vwords v) {
    v = v * (vwords)((vu){0} + 0x00100400u) >> 10;
    return (vbytes)((v | v << 5) & 0x0707);
}
INLINE c32 c32_threes(uint64_t v, uint64_t w) {
    const vwords u = (vwords)(vlongs){v, w};
    return (c32){threes_of_words(__builtin_shufflevector(u, u, 0, 0, 1, 1, 2, 2, 3, 3)),
                 threes_of_words(__builtin_shufflevector(u, u, 4, 4, 5, 5, 6, 6, 7, 7))};
}
INLINE c32 c32_lookup(const uint8_t *table, c32 v) {
    const vbytes t = LOAD(vbytes, table);
    return (c32){look_up(t, v.a), look_up(t, v.b)};
}
/* Returns 3 u / 256 for each byte u: the number of thresholds 256/3 and 512/3 that it reaches. */
INLINE vbytes base3_of(vbytes v, vbytes power) {
    v *= power;
    return -((vbytes)(v >= 86) + (vbytes)(v >= 171));
}
INLINE c32 c32_base3(c32 v, const uint8_t *powers) {
    return (c32){base3_of(v.a, LOAD(vbytes, powers)), base3_of(v.b, LOAD(vbytes, powers + 16))};
}

INLINE float f16_value(uint16_t bits) {
    return halves((four_words){bits})[0];
}
INLINE f8 f8_scaled(float d, eight_words v) {
    typedef int16_t four __attribute__((vector_size(8)));
    const four low = {v[0], v[1], v[2], v[3]}, high = {v[4], v[5], v[6], v[7]};
    return (f8){__builtin_convertvector(__builtin_convertvector(low, vi), vf) * d,
                __builtin_convertvector(__builtin_convertvector(high, vi), vf) * d};
}
INLINE f8 f8_scaled_u8(float d, uint64_t bytes) {
    return f8_scaled(d, __builtin_convertvector(LOAD(eight_bytes, &bytes), eight_words));
}
INLINE f8 f8_scaled_i8(float d, uint64_t bytes) {
    return f8_scaled(d, __builtin_convertvector(LOAD(eight_signed, &bytes), eight_words));
}

INLINE void f16_rows(float *out, const uint8_t *p, const size_t *row, raw_fn *raw,
                     const bool minima) {
    for (int h = 0; h < 4; h++, row += 4, out += 4) {
        four_words n;
        for (int r = 0; r < 4; r++)
            n[r] = minima ? raw(p + row[r]).m : raw(p + row[r]).d;
        const vf x = minima ? -halves(n) : halves(n);
        memcpy(out, &x, sizeof x);
    }
}

/* Transposes 4 x 4 words. */
INLINE void transpose_4x4(vu v[4]) {
    const vlongs a = (vlongs)__builtin_shufflevector(v[0], v[1], 0, 4, 1, 5),
                 b = (vlongs)__builtin_shufflevector(v[0], v[1], 2, 6, 3, 7),
                 c = (vlongs)__builtin_shufflevector(v[2], v[3], 0, 4, 1, 5),
                 d = (vlongs)__builtin_shufflevector(v[2], v[3], 2, 6, 3, 7);
    v[0] = (vu)__builtin_shufflevector(a, c, 0, 2);
    v[1] = (vu)__builtin_shufflevector(a, c, 1, 3);
    v[2] = (vu)__builtin_shufflevector(b, d, 0, 2);
    v[3] = (vu)__builtin_shufflevector(b, d, 1, 3);
}

INLINE void pack_codes(uint8_t *codes, const uint8_t *w, const size_t *row,
                       c32 (*unpack)(const uint8_t *, const int), const int k,
                       const uint8_t *table) {
    for (int h = 0; h < 4; h++, row += 4, codes += 16) {
        vu a[4], b[4];
        for (int r = 0; r < 4; r++) {
            const c32 v = table ? c32_lookup(table, unpack(w + row[r], k)) : unpack(w + row[r], k);
            a[r] = (vu)v.a, b[r] = (vu)v.b;
        }
        transpose_4x4(a);
        transpose_4x4(b);
        for (int g = 0; g < 4; g++) {
            memcpy(codes + g * CPU_PLANE, &a[g], sizeof a[g]);
            memcpy(codes + (4 + g) * CPU_PLANE, &b[g], sizeof b[g]);
        }
    }
}

INLINE void put_scales(float *out, const f8 *v, const int step, const int *places) {
    for (int h = 0; h < 4; h++) {
        vu a[4], b[4];
        for (int r = 0; r < 4; r++) {
            a[r] = (vu)v[(4 * h + r) * step].a;
            b[r] = (vu)v[(4 * h + r) * step].b;
        }
        transpose_4x4(a);
        transpose_4x4(b);
        for (int i = 0; i < 4; i++) {
            memcpy(out + places[i] * CPU_GROUP + 4 * h, &a[i], sizeof a[i]);
            memcpy(out + places[4 + i] * CPU_GROUP + 4 * h, &b[i], sizeof b[i]);
        }
    }
}

#endif
