/* Vectors of 16 rows (quant/kernel_tmpl.h) as four vectors of the compiler. */
#ifndef CPU_LANES_GNU_H
#define CPU_LANES_GNU_H

#include "vectors.h"

enum {
    LANES_REGISTERS = 4,
    LANES_GROUPS = 1,
    LANES_COLS = 2,
    LANES_MIN_PANEL = 12,
    LANES_SIGNED = 1
};
#define LANES_FEW(X)         X(2) X(1)
#define LANES_MANY(X)        X(2) X(1)
#define LANES_MANY_HALVES(X) X(2) X(1)

typedef struct vcodes {
    vbytes r[4];
} vcodes;
typedef struct vsum {
    vi r[4];
} vsum;
typedef struct vfloat {
    vf r[4];
} vfloat;
typedef struct vpart {
    vwide r[4];
} vpart;
typedef vsigned vfour;

#define EACH(expression)                                                                           \
    UNROLL for (int i_ = 0; i_ < 4; i_++) {                                                        \
        expression;                                                                                \
    }

INLINE vcodes codes_load(const uint8_t *p) {
    vcodes v;
    EACH(v.r[i_] = LOAD(vbytes, p + 16 * i_));
    return v;
}
INLINE void codes_store(uint8_t *p, vcodes v) {
    memcpy(p, v.r, sizeof v.r);
}
INLINE vcodes codes_or(vcodes u, vcodes v) {
    EACH(u.r[i_] |= v.r[i_]);
    return u;
}
/* Returns (byte >> from & mask) << to for each byte. */
INLINE vbytes bits_of(vbytes v, const int from, const int to, const int mask) {
    v = from > to ? v >> (from - to) : v << (to - from);
    return v & (uint8_t)(mask << to);
}
INLINE vcodes codes_bits(vcodes v, const int from, const int to, const int mask) {
    EACH(v.r[i_] = bits_of(v.r[i_], from, to, mask));
    return v;
}
INLINE vcodes codes_lookup(vcodes v, const uint8_t *table) {
    EACH(v.r[i_] = look_up(LOAD(vbytes, table), v.r[i_]));
    return v;
}
/* The same for bytes below 32, and 32 entries. */
INLINE vbytes look_up_32(const uint8_t *table, vbytes v) {
    const vbytes low = v & 15, high = (vbytes)(v >= 16);
    return (look_up(LOAD(vbytes, table), low) & ~high) |
           (look_up(LOAD(vbytes, table + 16), low) & high);
}
INLINE vcodes codes_lookup32(vcodes v, const uint8_t *table) {
    EACH(v.r[i_] = look_up_32(table, v.r[i_]));
    return v;
}
INLINE vfour four_set(int32_t v) {
    return (vsigned)((vi){0} + v);
}

/* Adds codes times x to the sum of the block; step i of n. The sum also gets `start`. Products are
 * added in 16 bits, 2 * pairs of them before they are widened to 32; pairs 0: codes are signed with
 * 128 added, and only two products fit. */
INLINE void dot_step(vsum *sum, vpart *pair, vcodes v, vfour x, const int pairs, const int i,
                     const int n, int32_t start) {
    const int room = pairs == 0 ? 2 : pairs > 4 ? 8 : 2 * pairs;
    const vwide y = __builtin_convertvector(x, vwide);
    if (i == 0)
        EACH(sum->r[i_] = (vi){0} + start);
    UNROLL for (int j = 0; j < 4; j++) {
        const vsigned w = (vsigned)(pairs == 0 ? v.r[j] ^ 0x80 : v.r[j]);
        const vwide product = __builtin_convertvector(w, vwide) * y;
        pair->r[j] = i % room == 0 ? product : pair->r[j] + product;
        if (i % room == room - 1 || i == n - 1) { /* four products of a row are adjacent */
            const vpairs both = (vpairs)pair->r[j], two = (both << 16 >> 16) + (both >> 16);
            sum->r[j] += __builtin_shufflevector(two, two, 0, 2, 4, 6) +
                         __builtin_shufflevector(two, two, 1, 3, 5, 7);
        }
    }
}

/* Returns high * 128 + low. */
INLINE vsum sum_join(vsum high, vsum low) {
    EACH(low.r[i_] += high.r[i_] << 7);
    return low;
}

INLINE vfloat float_set(float x) {
    vfloat v;
    EACH(v.r[i_] = all_of(x));
    return v;
}
INLINE vfloat float_zero(void) {
    return float_set(0.0f);
}
INLINE vfloat float_load(const float *p) {
    vfloat v;
    EACH(v.r[i_] = LOAD(vf, p + 4 * i_));
    return v;
}
/* Stores the first n (1..16) lanes. */
INLINE void float_store(float *p, vfloat v, int n) {
    memcpy(p, v.r, (size_t)n * sizeof *p);
}
INLINE vfloat float_of(vsum s) {
    vfloat v;
    EACH(v.r[i_] = __builtin_convertvector(s.r[i_], vf));
    return v;
}
INLINE vfloat float_mul(vfloat u, vfloat v) {
    EACH(u.r[i_] *= v.r[i_]);
    return u;
}
INLINE vfloat float_fma(vfloat u, vfloat v, vfloat w) { /* u * v + w */
    EACH(w.r[i_] = fused(u.r[i_], v.r[i_], w.r[i_]));
    return w;
}
INLINE vfloat float_negate(vfloat u) {
    EACH(u.r[i_] = -u.r[i_]);
    return u;
}
INLINE vfloat float_fnma(vfloat u, vfloat v, vfloat w) { /* w - u * v */
    return float_fma(float_negate(u), v, w);
}
/* Convert 16 f16 numbers, and 16 bytes: unsigned, signed, their low and their high four bits. */
INLINE vfloat float_f16(const uint8_t *p) {
    vfloat v;
    EACH(v.r[i_] = halves(LOAD(four_words, p + 8 * i_)));
    return v;
}
INLINE vfloat float_of_u8(vbytes b) {
    vfloat v;
    UNROLL for (int i = 0; i < 4; i++) {
        const word_bytes four = {b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]};
        v.r[i] = __builtin_convertvector(__builtin_convertvector(four, vi), vf);
    }
    return v;
}
INLINE vfloat float_u8(const uint8_t *p) {
    return float_of_u8(LOAD(vbytes, p));
}
INLINE vfloat float_i8(const uint8_t *p) {
    typedef int8_t four_signed __attribute__((vector_size(4)));
    vfloat v;
    EACH(v.r[i_] = __builtin_convertvector(
             __builtin_convertvector(LOAD(four_signed, p + 4 * i_), vi), vf));
    return v;
}
INLINE vfloat float_low1(const uint8_t *p) {
    return float_of_u8(LOAD(vbytes, p) & 1);
}
INLINE vfloat float_low4(const uint8_t *p) {
    return float_of_u8(LOAD(vbytes, p) & 15);
}
INLINE vfloat float_high4(const uint8_t *p) {
    return float_of_u8(LOAD(vbytes, p) >> 4);
}
/* Returns 2^(e - 128) for each byte e; subnormal for e = 0 and 1. */
INLINE vfloat float_e8m0(const uint8_t *p) {
    vfloat v;
    UNROLL for (int i = 0; i < 4; i++) {
        const vi e = __builtin_convertvector(LOAD(word_bytes, p + 4 * i), vi),
                 tiny = 0x200000 + ((e == 1) & 0x200000);
        v.r[i] = (vf)choose(e > 1, (e - 1) << 23, tiny);
    }
    return v;
}

#endif
