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

/* q6_0, 32 elements in 26 bytes:  | d: f16 | h[0] ... h[7] | b[0] ... b[15] |
 *     x = d * (nibble i + 16 * (two bits of h) - 32)
 *     elements j, j + 16, j + 8 and j + 24 have bits 0, 2, 4 and 6 and up of h[j], j < 8 */
struct block_q6_0 {
    uint8_t d[2];
    uint8_t h[8];
    uint8_t b[16];
};

/* pq2_0, 128 elements in 34 bytes: as q2_0. */
struct block_pq2_0 {
    uint8_t d[2];
    uint8_t b[32];
};

/* ptq1_0, 128 elements in 28 bytes:  | b[0] ... b[23] | h[0] h[1] | d: f16 |     x = d * (trit - 1)
 *     bytes of trits as in tq1_0
 *     b[j], j < 16:    elements j, j + 16, .. j + 64
 *     b[16 + j]:       elements 80 + j, 88 + j, .. 112 + j, j < 8
 *     h[j]:            elements 120 + j, 122 + j, 124 + j, 126 + j; t4 is 0 */
struct block_ptq1_0 {
    uint8_t b[24];
    uint8_t h[2];
    uint8_t d[2];
};

/* iq2_bn, 64 elements in 16 bytes; a row begins with its scale, an f32:  | b[0] ... b[15] |
 *     x = (scale of the row) * (code - 1); element j + 16*l has bits 2*l and up of b[j] */
struct block_iq2_bn {
    uint8_t b[16];
};

/* The types of ik_llama.cpp: codes choose one of 4 to 64 uneven steps (iqk.c). If the bit `shift` of a run is set,
 * all steps of the run are a little higher. In the KS and KL types, scales are multiplied by one of the row, an f16 or
 * f32 before its first block.
 *
 * iq2_k, 76 bytes:  | d: f16 | shifts: 16 bits | s[0] ... s[7] | b[0] ... b[63] |
 *     run r of 16: scale (low or high half of s[r/2]) - 8, shift in bit r; codes of 2 bits as in q2_k */
struct block_iq2_k {
    uint8_t d[2], shifts[2];
    uint8_t s[8];
    uint8_t b[64];
};

/* iq3_k, 110 bytes:  | d: f16 | shifts: 16 bits | minus: 16 bits | s[0..7] | b[0..63] | h[0..31] |
 *     run r of 16: scale 2 * (half of s[r/2]) + 1, negated if bit r of minus is set
 *     codes as in q3_k */
struct block_iq3_k {
    uint8_t d[2], shifts[2], minus[2];
    uint8_t s[8];
    uint8_t b[64];
    uint8_t h[32];
};

/* iq4_k, 144 bytes:  | d: f16 | shifts: 16 bits | sh[0..3] | sl[0..7] | b[0..127] |
 *     run r of 16: scale | bits 2*(r%4) and up of sh[r/4] | half of sl[r/2] | - 32
 *     codes: nibbles of 16 bytes for each 32 */
struct block_iq4_k {
    uint8_t d[2], shifts[2];
    uint8_t sh[4];
    uint8_t sl[8];
    uint8_t b[128];
};

/* iq5_k, 176 bytes:  | d: f16 | shifts: 16 bits | sh[0..3] | sl[0..7] | b[0..127] | h[0..31] |
 *     scales as in iq4_k, codes as in q5_k */
struct block_iq5_k {
    uint8_t d[2], shifts[2];
    uint8_t sh[4];
    uint8_t sl[8];
    uint8_t b[128];
    uint8_t h[32];
};

/* iq6_k, 212 bytes:  | d: f16 | shifts: 16 bits | s[0..15]: i8 | b[0..127] | h[0..63] |
 *     codes: the low 4 bits as in q5_k; element 32*k + j has bits 2*(k%4) and up of h[32*(k/4) + j] */
struct block_iq6_k {
    uint8_t d[2], shifts[2];
    int8_t s[16];
    uint8_t b[128];
    uint8_t h[64];
};

/* iq4_ks, 136 bytes; a row begins with an f32:  | s[0] ... s[7] | b[0] ... b[127] |
 *     run r of 32: scale (s[r] without its lowest bit) - 127; the lowest bit is the shift; codes as in iq4_k */
struct block_iq4_ks {
    uint8_t s[8];
    uint8_t b[128];
};

/* iq5_ks, 168 bytes; a row begins with an f32:  | s[0..7] | b[0..127] | h[0..31] |
 *     scales as in iq4_ks, codes as in q5_k */
struct block_iq5_ks {
    uint8_t s[8];
    uint8_t b[128];
    uint8_t h[32];
};

/* iq4_kss, 128 bytes; a row begins with an f32:  | w[0] ... w[7]: 16 bits each |, for each run of 32
 *     the lowest bits of w[0] .. w[7] are the byte s of iq4_ks, that of w[0] its lowest
 *     v = w without its lowest bit; v ^ v >> 1 are two of the 16 bytes of nibbles */
struct block_iq4_kss {
    uint8_t w[8][8][2];
};

/* iq2_ks, 70 bytes; a row begins with an f16:  | x: 16 bits | s[0] ... s[3] | b[0] ... b[63] |
 *     run r of 32: scale | bit 8 + r of x | half of s[r/2] | - 16, shift in bit r of x; codes as in q2_k */
struct block_iq2_ks {
    uint8_t x[2];
    uint8_t s[4];
    uint8_t b[64];
};

/* iq3_ks, 102 bytes; a row begins with an f16:  | x: 16 bits | s[0..3] | b[0..63] | h[0..31] |
 *     run r of 32: scale | bit r of x | low (r < 4) or high half of s[r%4] | - 16, shift in bit 8 + r of x
 *     codes as in q3_k */
struct block_iq3_ks {
    uint8_t x[2];
    uint8_t s[4];
    uint8_t b[64];
    uint8_t h[32];
};

/* iq2_kl, 86 bytes; a row begins with an f16:  | sh: 16 bits | sl[0..3] | b[0..63] | h[0..15] |
 *     run r of 32: scale | bits 2*r and up of sh | low (r < 4) or high half of sl[r%4] | - 32
 *     elements 2*j and 2*j + 1 of run r are pair | bit r of h[j] | low (r even) or high half of b[16*(r/2) + j] | */
struct block_iq2_kl {
    uint8_t sh[2];
    uint8_t sl[4];
    uint8_t b[64];
    uint8_t h[16];
};

/* The rows of types.def as constants: runs of 32 elements in a block, its form, and the bytes before a row's blocks. A row whose
 * block has other bytes than its struct does not compile. */
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text)                                             \
    QUANT_FOREIGN(id, NAME, name, block, size, 0, form, text)
#define QUANT_FOREIGN(id, NAME, name, block, size, row, form, text)                                \
    enum { RUNS_##NAME = (block) / 32, FORM_##NAME = GGL_##form, META_##NAME = (row) };            \
    _Static_assert((block) > 0 && (block) % 32 == 0,                                               \
                   #name ": the block in types.def must be a multiple of 32");                     \
    _Static_assert(sizeof(struct block_##name) == (size),                                          \
                   #name ": types.def and the struct in blocks.h differ in bytes");
#define QUANT_READ QUANT
#include "ggl/types.def"

#endif
