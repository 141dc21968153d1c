/* Read the scales of a block in a file: one or two f16, bytes that multiply them, or bytes alone.
 * Each type has one function here, which uses only integer operations of up to 64 bits. Private to
 * ggml-lite and its backends, which make their layouts of weights from these numbers. The form of
 * scales of a type (backends/cpu/quant/rows16.h) defines what its numbers mean. The layout of blocks
 * is in ggml-lite/quant/blocks.h and docs/types.md. */
#ifndef GGL_RAW_SCALES_H
#define GGL_RAW_SCALES_H

#include "load.h"

typedef struct raw_scales {
    uint16_t d, m;      /* E8M0: d is the exponent byte */
    uint64_t sc[2], mn; /* a byte for each run, or for each half of a run, the first one lowest */
} raw_scales;

typedef raw_scales raw_fn(const uint8_t *block);

static inline uint64_t two_32(uint32_t low, uint32_t high) {
    return (uint64_t)high << 32 | low;
}

#define EACH_BYTE(v) (0x0101010101010101u * (v))

/* Subtracts 32 from each of eight bytes 0..63. */
static inline uint64_t less_32(uint64_t v) {
    return ((v | EACH_BYTE(0x80)) - EACH_BYTE(0x20)) ^ EACH_BYTE(0x80);
}

/* Returns 2 v + 1 for each of eight bytes v in 0..15. */
static inline uint64_t odd(uint64_t v) {
    return v << 1 | EACH_BYTE(1);
}

/* Returns the eight nibbles of four bytes as bytes, the low one of each byte first. */
static inline uint64_t halves_of(uint32_t bytes) {
    uint64_t v = bytes;
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    return (v | v << 4) & EACH_BYTE(15);
}

/* Returns the eight pairs of bits of two bytes, as bytes, the lowest first. */
static inline uint64_t bit_pairs(unsigned bits) {
    uint64_t v = bits & 0xffff;
    v = (v | v << 24) & 0x000000ff000000ff;
    v = (v | v << 12) & 0x000f000f000f000f;
    return (v | v << 6) & EACH_BYTE(3);
}

/* Returns (byte >> from) & mask for the eight bytes p[0], p[step], p[2 * step] .. */
static inline uint64_t eight_of(const uint8_t *p, const int step, const int from, const int mask) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v |= (uint64_t)(p[i * step] >> from & mask) << 8 * i;
    return v;
}

/* --- one or two numbers for a block ----------------------------------------------------------- */

static inline raw_scales raw_f16(const uint8_t *p) {
    return (raw_scales){.d = load16(p)};
}
static inline raw_scales raw_f16_min(const uint8_t *p) {
    return (raw_scales){.d = load16(p), .m = load16(p + 2)};
}
static inline raw_scales raw_mxfp4(const uint8_t *p) {
    return (raw_scales){.d = p[0]};
}
#define raw_q4_0   raw_f16
#define raw_q4_1   raw_f16_min
#define raw_q5_0   raw_f16
#define raw_q5_1   raw_f16_min
#define raw_q8_0   raw_f16
#define raw_iq4_nl raw_f16
#define raw_q1_0   raw_f16
#define raw_q2_0   raw_f16
#define raw_q6_0   raw_f16
#define raw_pq2_0  raw_f16

static inline raw_scales raw_ptq1_0(const uint8_t *p) {
    return (raw_scales){.d = load16(p + 26)};
}

/* The row's scale is the only one. */
static inline raw_scales raw_iq2_bn(const uint8_t *p) {
    (void)p;
    return (raw_scales){0};
}

static inline raw_scales raw_tq1_0(const uint8_t *p) {
    return (raw_scales){.d = load16(p + 52)};
}

static inline raw_scales raw_tq2_0(const uint8_t *p) {
    return (raw_scales){.d = load16(p + 64)};
}

/* --- numbers for parts of a block ------------------------------------------------------------- */

/* Bytes without their top bit; 0x7f, which is 0, becomes 0. */
static inline raw_scales raw_nvfp4(const uint8_t *p) {
    const uint64_t v = load32(p), low = v & EACH_BYTE(0x7f);
    const uint64_t zero = (low + EACH_BYTE(1)) & ~v & EACH_BYTE(0x80);
    return (raw_scales){.sc = {low & ~((zero >> 7) * 0x7f) & 0xffffffff}};
}

/* 16 bytes hold 16 scales in their low halves and 16 minima in their high halves. */
static inline raw_scales raw_q2_k(const uint8_t *p) {
    return (raw_scales){.d = load16(p + 80), .m = load16(p + 82), .sc = {load64(p), load64(p + 8)}};
}

/* 12 bytes hold 16 scales of 6 bits, with 32 added: the low 4 bits are the halves of bytes 0-7, the
 * high 2 bits are in bytes 8-11. */
static inline raw_scales raw_q3_k(const uint8_t *p) {
    const uint32_t top = 0x30303030, c = load32(p + 104);
    const uint64_t low = EACH_BYTE(15), ab = load64(p + 96);
    const uint64_t first = (ab & low) | two_32(c << 4 & top, c << 2 & top);
    const uint64_t second = (ab >> 4 & low) | two_32(c & top, c >> 2 & top);
    return (raw_scales){.d = load16(p + 108), .sc = {less_32(first), less_32(second)}};
}

/* Q4_K and Q5_K: 12 bytes hold eight scales and eight minima of 6 bits. The first four scales are
 * the low 6 bits of bytes 0-3, the first four minima those of bytes 4-7. The others have their low
 * 4 bits in the halves of bytes 8-11, and their high 2 bits in the top bits of bytes 0-3 and
 * 4-7. */
static inline raw_scales raw_q4_k(const uint8_t *p) {
    uint32_t a = load32(p + 4), b = load32(p + 8), c = load32(p + 12);
    uint32_t s4 = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030);
    uint32_t m4 = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
    return (raw_scales){.d = load16(p),
                        .m = load16(p + 2),
                        .sc = {two_32(a & 0x3f3f3f3f, s4)},
                        .mn = two_32(b & 0x3f3f3f3f, m4)};
}
#define raw_q5_k raw_q4_k

static inline raw_scales raw_q6_k(const uint8_t *p) {
    return (raw_scales){.d = load16(p + 208), .sc = {load64(p + 192), load64(p + 200)}};
}

/* Eight scales of 6 bits, with 32 added: the low 4 bits are the halves of bytes 4-7, the high 2
 * bits are in the 16 bits of bytes 2-3. */
static inline raw_scales raw_iq4_xs(const uint8_t *p) {
    return (raw_scales){.d = load16(p),
                        .sc = {less_32(halves_of(load32(p + 4)) | bit_pairs(load16(p + 2)) << 4)}};
}

/* Scales are the top four bits of the second 32-bit word of each eight bytes. */
static inline raw_scales raw_iq2_xxs(const uint8_t *p) {
    return (raw_scales){.d = load16(p), .sc = {odd(eight_of(p + 9, 8, 4, 15))}};
}

static inline raw_scales raw_iq2_xs(const uint8_t *p) {
    return (raw_scales){.d = load16(p),
                        .sc = {odd(halves_of(load32(p + 66))), odd(halves_of(load32(p + 70)))}};
}

static inline raw_scales raw_iq2_s(const uint8_t *p) {
    return (raw_scales){.d = load16(p),
                        .sc = {odd(halves_of(load32(p + 74))), odd(halves_of(load32(p + 78)))}};
}

static inline raw_scales raw_iq3_xxs(const uint8_t *p) {
    return (raw_scales){.d = load16(p), .sc = {odd(eight_of(p + 69, 4, 4, 15))}};
}

static inline raw_scales raw_iq3_s(const uint8_t *p) {
    return (raw_scales){.d = load16(p), .sc = {odd(halves_of(load32(p + 106)))}};
}

static inline raw_scales raw_iq1_s(const uint8_t *p) {
    return (raw_scales){.d = load16(p), .sc = {odd(eight_of(p + 35, 2, 4, 7))}};
}

/* --- scales with shifts: the lowest bit of a byte of sc is the shift of its part ---------------- */

/* Returns eight bits as bytes of 0 or 1, the lowest first. */
static inline uint64_t bits_of_byte(unsigned bits) {
    uint64_t v = bits & 255;
    v = (v | v << 28) & 0x0000000f0000000f;
    v = (v | v << 14) & 0x0003000300030003;
    return (v | v << 7) & EACH_BYTE(1);
}

/* Returns 2 * (v - bias) with a shift for each of eight bytes v. */
static inline uint64_t with_shifts(uint64_t v, const unsigned bias, unsigned shifts) {
    v = (v | EACH_BYTE(0x80)) - EACH_BYTE(bias); /* no byte borrows from the next one */
    return (v << 1 & EACH_BYTE(0xfe)) | bits_of_byte(shifts);
}

static inline raw_scales raw_iq2_k(const uint8_t *p) {
    return (raw_scales){.d = load16(p),
                        .sc = {with_shifts(halves_of(load32(p + 4)), 8, p[2]),
                               with_shifts(halves_of(load32(p + 8)), 8, p[3])}};
}

/* Returns 2 v + 1, negated where a bit of `minus` is set, with the shift in place of the lowest bit, which is 1 before. */
static inline uint64_t odd_with_shifts(uint64_t v, unsigned minus, unsigned shifts) {
    const uint64_t m = bits_of_byte(minus) * 0xff;
    /* ~(2 v + 1) + 1 is ~(2 v), and its upper bits are those of ~(2 v + 1) */
    return ((odd(v) ^ m) & EACH_BYTE(0xfe)) | bits_of_byte(shifts);
}

static inline raw_scales raw_iq3_k(const uint8_t *p) {
    return (raw_scales){.d = load16(p),
                        .sc = {odd_with_shifts(halves_of(load32(p + 6)), p[4], p[2]),
                               odd_with_shifts(halves_of(load32(p + 10)), p[5], p[3])}};
}

static inline raw_scales raw_iq4_k(const uint8_t *p) {
    return (raw_scales){
        .d = load16(p),
        .sc = {with_shifts(halves_of(load32(p + 8)) | bit_pairs(load16(p + 4)) << 4, 32, p[2]),
               with_shifts(halves_of(load32(p + 12)) | bit_pairs(load16(p + 6)) << 4, 32, p[3])}};
}
#define raw_iq5_k raw_iq4_k

/* Its codes have their shifts. */
static inline raw_scales raw_iq6_k(const uint8_t *p) {
    return (raw_scales){.d = load16(p), .sc = {load64(p + 4), load64(p + 12)}};
}

/* (v & 254) - 127 is (v & 254) - 128 plus 1. */
static inline raw_scales raw_iq4_ks(const uint8_t *p) {
    return (raw_scales){.sc = {load64(p) ^ EACH_BYTE(0x80)}};
}
#define raw_iq5_ks raw_iq4_ks

/* The eight bits of a run's scale are the lowest ones of eight words of 16 bits. */
static inline raw_scales raw_iq4_kss(const uint8_t *p) {
    raw_scales r = {0};
    for (int k = 0; k < 8; k++, p += 16) {
        uint64_t v = (load64(p) & 0x0001000100010001) | (load64(p + 8) & 0x0001000100010001) << 4;
        v |= v >> 15;
        r.sc[0] |= ((v | v >> 30) & 255) << 8 * k;
    }
    r.sc[0] ^= EACH_BYTE(0x80);
    return r;
}

static inline raw_scales raw_iq2_ks(const uint8_t *p) {
    return (raw_scales){
        .sc = {with_shifts(halves_of(load32(p + 2)) | bits_of_byte(p[1]) << 4, 16, p[0])}};
}

/* Returns the low halves of four bytes, then the high halves. */
static inline uint64_t low_then_high(uint32_t v) {
    return two_32(v & 0x0f0f0f0f, v >> 4 & 0x0f0f0f0f);
}

static inline raw_scales raw_iq3_ks(const uint8_t *p) {
    return (raw_scales){
        .sc = {with_shifts(low_then_high(load32(p + 2)) | bits_of_byte(p[0]) << 4, 16, p[1])}};
}

static inline raw_scales raw_iq2_kl(const uint8_t *p) {
    return (raw_scales){.sc = {less_32(low_then_high(load32(p + 2)) | bit_pairs(load16(p)) << 4)}};
}

/* --- three bits ------------------------------------------------------------------------------- */

/* Returns as bytes the eight 3-bit scales of `bits`: four from bit 0 on and four from bit 16 on. */
static inline uint64_t threes_of(uint32_t bits) {
    uint64_t v = (bits | (uint64_t)bits << 16) & 0x00000fff00000fff;
    return (v & 7 * 0x0000000100000001) | (v << 5 & 7 * 0x0000010000000100) |
           (v << 10 & 7 * 0x0001000000010000) | (v << 15 & 7 * 0x0100000001000000);
}

/* Four words of 16 bits, each with four scales and, in the top four bits, a quarter of d. */
static inline raw_scales raw_iq1_m(const uint8_t *p) {
    uint64_t s = load64(p + 48), d = s >> 12 & 0x000f000f000f000f;
    d |= d >> 12;
    return (raw_scales){.d = (uint16_t)((d & 0xff) | (d >> 24 & 0xff00)),
                        .sc = {odd(threes_of((uint32_t)s)), odd(threes_of((uint32_t)(s >> 32)))}};
}

#endif
