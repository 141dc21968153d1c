/* The blocks of the quantized types, byte by byte; private to ggml-lite and its backends. The
 * structs have members of bytes only, so that a block may be at any address. */
#ifndef GGL_BLOCKS_H
#define GGL_BLOCKS_H

#include "ggl/types.h"

/* In the pictures, numbers of several bytes are little-endian, as in all of GGUF, and bits are
 * counted from the lowest. "nibble i" of 16 bytes is the low half of byte i for i < 16, and the
 * high half of byte i - 16 for i >= 16. */

/* q8_0, 32 elements in 34 bytes:  | d: f16 | q[0] q[1] ... q[31]: i8 |    x[i] = d * q[i] */
struct block_q8_0 {
    uint8_t d[2];
    int8_t q[32];
};

/* q4_0, 32 elements in 18 bytes:  | d: f16 | b[0] ... b[15] |
 *     b[i] = | element i + 16: high 4 bits | element i: low 4 bits |     x = d * (nibble - 8) */
struct block_q4_0 {
    uint8_t d[2];
    uint8_t b[16];
};

/* q4_1, 32 elements in 20 bytes:  | d: f16 | m: f16 | b[0] ... b[15] |
 *     x[i] = d * nibble i + m */
struct block_q4_1 {
    uint8_t d[2], m[2];
    uint8_t b[16];
};

/* q5_0, 32 elements in 22 bytes:  | d: f16 | h: 32 bits | b[0] ... b[15] |
 *     x[i] = d * (nibble i + 16 * bit i of h - 16) */
struct block_q5_0 {
    uint8_t d[2];
    uint8_t h[4];
    uint8_t b[16];
};

/* q5_1, 32 elements in 24 bytes:  | d: f16 | m: f16 | h: 32 bits | b[0] ... b[15] |
 *     x[i] = d * (nibble i + 16 * bit i of h) + m */
struct block_q5_1 {
    uint8_t d[2], m[2];
    uint8_t h[4];
    uint8_t b[16];
};

/* The K types: blocks of 256. Each run of 16 or 32 elements has a small integer as its scale (and
 * one as its minimum), which is multiplied by the block's f16 d (or dmin).
 *
 * q2_k, 84 bytes:  | sm[0] ... sm[15] | b[0] ... b[63] | d: f16 | dmin: f16 |
 *     run r of 16: scale d * (low 4 bits of sm[r]), minimum dmin * (high 4 bits)
 *     in each half of 128 elements, element 32*k + j is bits 2*k and 2*k + 1 of byte j
 *     of the half's 32 bytes */
struct block_q2_k {
    uint8_t sm[16];
    uint8_t b[64];
    uint8_t d[2], dmin[2];
};

/* q3_k, 110 bytes:  | h[0] ... h[31] | b[0] ... b[63] | s[0] ... s[11] | d: f16 |
 *     x = d * (scale of the run of 16 - 32) * (code - 4)
 *     code: the low 2 bits are in b as in q2_k; the third bit of element 32*k + j is bit k of h[j]
 *     scale r, 6 bits: low 4 are the low (r < 8) or high half of s[r%8],
 *                      high 2 are bits 2*(r/4) and up of s[8 + r%4] */
struct block_q3_k {
    uint8_t h[32];
    uint8_t b[64];
    uint8_t s[12];
    uint8_t d[2];
};

/* q4_k, 144 bytes:  | d: f16 | dmin: f16 | sm[0] ... sm[11] | b[0] ... b[127] |
 *     x = d * scale * nibble - dmin * minimum, runs of 32
 *     elements 64*k .. 64*k + 63 are the nibbles of 32 bytes: the first 32 the low halves
 *     scale and minimum of run r, 6 bits each, for r < 4:
 *     sm[r]     = | high 2 bits of scale r + 4   | scale r                  |
 *     sm[r + 4] = | high 2 bits of minimum r + 4 | minimum r                |
 *     sm[r + 8] = | low 4 bits of minimum r + 4  | low 4 bits of scale r + 4 | */
struct block_q4_k {
    uint8_t d[2], dmin[2];
    uint8_t sm[12];
    uint8_t b[128];
};

/* q5_k, 176 bytes:  | d: f16 | dmin: f16 | sm[0] ... sm[11] | h[0] ... h[31] | b[0] ... b[127] |
 *     as q4_k; element 32*k + j has its fifth bit in bit k of h[j] */
struct block_q5_k {
    uint8_t d[2], dmin[2];
    uint8_t sm[12];
    uint8_t h[32];
    uint8_t b[128];
};

/* q6_k, 210 bytes:  | b[0] ... b[127] | h[0] ... h[63] | s[0] ... s[15]: i8 | d: f16 |
 *     x = d * s[run of 16] * (code - 32)
 *     in each half of 128 elements, element 32*k + j has
 *     its low 4 bits in byte 32*(k%2) + j of the half's 64 of b, low for k < 2, high else,
 *     its high 2 bits in bits 2*k and up of byte j of the half's 32 of h */
struct block_q6_k {
    uint8_t b[128];
    uint8_t h[64];
    int8_t s[16];
    uint8_t d[2];
};

/* iq4_nl, 32 elements in 18 bytes: q4_0 with a table (iq4.c) in place of nibble - 8. */
struct block_iq4_nl {
    uint8_t d[2];
    uint8_t b[16];
};

/* iq4_xs, 256 elements in 136 bytes:  | d: f16 | sh: 16 bits | sl[0] ... sl[3] | b[0] ... b[127] |
 *     x = d * (scale - 32) * table[nibble], runs of 32 of 16 bytes each
 *     scale r, 6 bits: low 4 in the low (r even) or high half of sl[r/2],
 *                      high 2 in bits 2*r and up of sh */
struct block_iq4_xs {
    uint8_t d[2];
    uint8_t sh[2];
    uint8_t sl[4];
    uint8_t b[128];
};

/* The other IQ types: elements are vectors from a codebook (iq_grids.h). Each run of 32 is four
 * vectors of 8, or eight vectors of 4.
 *
 * iq2_xxs, 66 bytes:  | d: f16 | 8 times: | index[0] .. index[3] | w: 32 bits | |
 *     w = | scale: 4 bits | signs of vectors 3, 2, 1, 0: 7 bits each |
 *     x = d * (2*scale + 1)/8 * vector */
struct block_iq2_xxs {
    uint8_t d[2];
    struct {
        uint8_t index[4];
        uint8_t w[4];
    } run[8];
};

/* iq2_xs, 74 bytes:  | d: f16 | v[0] ... v[31]: 16 bits each | s[0] ... s[7] |
 *     v = | signs: 7 bits | index: 9 bits |     x = d * (2*scale + 1)/8 * vector
 *     scales of run r: low 4 bits of s[r] for its first 16 elements, high 4 for the others */
struct block_iq2_xs {
    uint8_t d[2];
    uint8_t v[32][2];
    uint8_t s[8];
};

/* iq2_s, 82 bytes:  | d: f16 | index[0..31] | signs[0..31] | h[0] ... h[7] | s[0] ... s[7] |
 *     vector v of run r: 2 more bits of its index in bits 2*v and up of h[r]
 *     signs: a bit for each element; scales as iq2_xs */
struct block_iq2_s {
    uint8_t d[2];
    uint8_t index[32];
    uint8_t signs[32];
    uint8_t h[8];
    uint8_t s[8];
};

/* iq3_xxs, 98 bytes:  | d: f16 | index[0] ... [63] | w[0] ... w[7]: 32 bits each |
 *     w as in iq2_xxs, signs for two vectors at a time      x = d * (2*scale + 1)/4 * vector */
struct block_iq3_xxs {
    uint8_t d[2];
    uint8_t index[64];
    uint8_t w[8][4];
};

/* iq3_s, 110 bytes:  | d: f16 | index[0..63] | h[0] ... h[7] | signs[0..31] | s[0] ... s[3] |
 *     vector v of run r: a ninth bit of its index in bit v of h[r]
 *     signs: a bit for each element; scale of run r: low (r even) or high half of s[r/2]
 *     x = d * (2*scale + 1) * vector */
struct block_iq3_s {
    uint8_t d[2];
    uint8_t index[64];
    uint8_t h[8];
    uint8_t signs[32];
    uint8_t s[4];
};

/* iq1_s, 50 bytes:  | d: f16 | index[0] ... [31] | h[0] ... h[7]: 16 bits each |
 *     h = | delta: 1 bit | scale: 3 bits | high 3 bits of the indices of vectors 3, 2, 1, 0 |
 *     x = d * (2*scale + 1) * (vector + 1/8, or - 1/8 if delta is set) */
struct block_iq1_s {
    uint8_t d[2];
    uint8_t index[32];
    uint8_t h[8][2];
};

/* iq1_m, 56 bytes:  | index[0] ... [31] | h[0] ... h[15] | s[0] ... s[3]: 16 bits each |
 *     h[i] = | delta | high 3 bits of index 2*i + 1 | delta | high 3 bits of index 2*i |
 *     s[i] = | 4 bits of d | 3 bits each: scales of the runs of 16 from 64*i on, the last first |
 *     d: f16, its lowest 4 bits in s[0]; x as in iq1_s */
struct block_iq1_m {
    uint8_t index[32];
    uint8_t h[16];
    uint8_t s[4][2];
};

/* tq1_0, 256 elements in 54 bytes:  | b[0] ... b[47] | h[0] ... h[3] | d: f16 |
 *     x = d * (trit - 1)
 *     a byte is ceil(n * 256 / 243) of five trits, n = t0*81 + t1*27 + t2*9 + t3*3 + t4, so that
 *     t0 is the first digit of byte / 256 in base 3, and so on
 *     b[j], j < 32:    elements j, j + 32, .. j + 128
 *     b[32 + j]:       elements 160 + j, 176 + j, .. 224 + j
 *     h[j]:            elements 240 + j, 244 + j, 248 + j, 252 + j; t4 is 0 */
struct block_tq1_0 {
    uint8_t b[48];
    uint8_t h[4];
    uint8_t d[2];
};

/* tq2_0, 256 elements in 66 bytes:  | b[0] ... b[63] | d: f16 |    x = d * (code - 1)
 *     codes as in q2_k */
struct block_tq2_0 {
    uint8_t b[64];
    uint8_t d[2];
};

/* mxfp4, 32 elements in 17 bytes:  | e | b[0] ... b[15] |
 *     x[i] = 2^(e - 127) * (nibble i as | sign | exponent: 2 bits | mantissa: 1 bit |)
 *     magnitudes 0 0.5 1 1.5 2 3 4 6    (OCP Microscaling Formats 1.0: E2M1 with E8M0 scales) */
struct block_mxfp4 {
    uint8_t e;
    uint8_t b[16];
};

/* nvfp4, 64 elements in 36 bytes:  | e[0] ... e[3] | b[0] ... b[31] |
 *     x = (e[run of 16] as | 0 | exponent: 4 bits | mantissa: 3 bits |) * (nibble as in mxfp4)
 *     run r of 16: the low halves of the 8 bytes b[8*r] .., then their high halves
 *     the exponent has a bias of 7; 0x7f is 0, the top bit has no meaning  (E2M1, UE4M3) */
struct block_nvfp4 {
    uint8_t e[4];
    uint8_t b[32];
};

/* q1_0, 128 elements in 18 bytes:  | d: f16 | b[0] ... b[15] |
 *     x[i] = d if bit i%8 of b[i/8] is set, else -d */
struct block_q1_0 {
    uint8_t d[2];
    uint8_t b[16];
};

/* q2_0, 64 elements in 18 bytes:  | d: f16 | b[0] ... b[15] |
 *     x[i] = d * ((bits 2*(i%4) and up of b[i/4]) - 1) */
struct block_q2_0 {
    uint8_t d[2];
    uint8_t b[16];
};

/* The rows of types.def as constants: runs of 32 elements in a block, and its form. A row whose
 * block has other bytes than its struct does not compile. */
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    enum { RUNS_##NAME = (block) / 32, FORM_##NAME = GGL_##form };                                 \
    _Static_assert((block) > 0 && (block) % 32 == 0,                                               \
                   #name ": the block in types.def must be a multiple of 32");                     \
    _Static_assert(sizeof(struct block_##name) == (size),                                          \
                   #name ": types.def and the struct in blocks.h differ in bytes");
#define QUANT_READ QUANT
#include "ggl/types.def"

#endif
