/* Quantized rows as they lie in a file, unpacked: a type is one function that gives 32 codes as
 * unsigned bytes (quant_types.def: offset), and, if its blocks are of 256, one that gives a row's
 * scales. Blocks: ggml-lite/quant/quant.h and docs/types.md.
 *
 * Included after <isa>/unpack_<isa>.h, which says what 32 bytes (c32) and 8 floats (f8) are:
 *
 *   c32_load(p)                    32 bytes
 *   c32_twice(p), c32_fours(p)     16 bytes twice; 4 bytes eight times
 *   c32_halves(a, b)               the first half of a, the second of b
 *   c32_nibbles(p)                 the low halves of 16 bytes, then the high halves
 *   c32_bits(v, from, to, mask)    bits `mask` of each byte from place `from` on, put to place `to`
 *   c32_spread(p, value)           32 bits as bytes of 0 or `value`
 *   c32_lookup(table, v)           v < 16
 *   c32_base3(v, powers)           each byte (v * power mod 256) * 3 / 256
 *   c32_or, c32_xor(v, byte)
 *   f8_scaled_u8(d, bytes), f8_scaled_i8   d * each of eight bytes, the lowest first
 *   f16_rows(out, p, row, sign)    the f16 at p + row[0..15], times sign, 1 or -1
 *   pack_codes(codes, w, row, unpack, k)   block k of 16 rows to 8 planes
 *   put_scales(out, v, step, places)       eight values of each of 16 rows (row r: v[r * step])
 *                                          to out[places[i] * 16 + row] */
#ifndef CPU_QUANT_UNPACK_H
#define CPU_QUANT_UNPACK_H

/* --- codes of block k of a file's block ------------------------------------------------------ */

#define UNPACK(name, expression)                                                                   \
    INLINE c32 unpack_##name(const uint8_t *p, const int k) {                                      \
        (void)k;                                                                                   \
        return (expression);                                                                       \
    }

#define BITS(at, from, to, mask) c32_bits(c32_load(p + (at)), from, to, mask)

UNPACK(q8_0, c32_xor(c32_load(p + 2), 0x80))
UNPACK(q4_0, c32_nibbles(p + 2))
UNPACK(q4_1, c32_nibbles(p + 4))
UNPACK(q5_0, c32_or(c32_nibbles(p + 6), c32_spread(p + 2, 16)))
UNPACK(q5_1, c32_or(c32_nibbles(p + 8), c32_spread(p + 4, 16)))
UNPACK(iq4_nl, c32_lookup(cpu_table_IQ4, c32_nibbles(p + 2)))
UNPACK(iq4_xs, c32_lookup(cpu_table_IQ4, c32_nibbles(p + 8 + 16 * k)))
UNPACK(mxfp4, c32_lookup(cpu_table_MXFP4, c32_nibbles(p + 1)))
UNPACK(q2_k, BITS(16 + k / 4 * 32, k % 4 * 2, 0, 3))
UNPACK(q3_k, c32_or(BITS(32 + k / 4 * 32, k % 4 * 2, 0, 3), BITS(0, k, 2, 1)))
UNPACK(q4_k, BITS(16 + k / 2 * 32, k % 2 * 4, 0, 15))
UNPACK(q5_k, c32_or(BITS(48 + k / 2 * 32, k % 2 * 4, 0, 15), BITS(16, k, 4, 1)))
UNPACK(q6_k, c32_or(BITS(k / 4 * 64 + k % 2 * 32, k % 4 / 2 * 4, 0, 15),
                    BITS(128 + k / 4 * 32, k % 4 * 2, 4, 3)))
UNPACK(tq2_0, BITS(k / 4 * 32, k % 4 * 2, 0, 3))

/* | 32 bytes: digits of elements 0..159 | 16 bytes: 160..239 | 4 bytes: 240..255 | d | */
#define X4(v)  v, v, v, v
#define X16(v) X4(v), X4(v), X4(v), X4(v)
_Alignas(32) static const uint8_t powers_of_3[8][32] = {
    {X16(1), X16(1)},   {X16(3), X16(3)},
    {X16(9), X16(9)},   {X16(27), X16(27)},
    {X16(81), X16(81)}, {X16(1), X16(3)},
    {X16(9), X16(27)},  {X16(81), X4(1), X4(3), X4(9), X4(27)}};
UNPACK(tq1_0, c32_base3(k < 5   ? c32_load(p)
                        : k < 7 ? c32_twice(p + 32)
                                : c32_halves(c32_twice(p + 32), c32_fours(p + 48)),
                        powers_of_3[k]))

typedef c32 unpack_fn(const uint8_t *block, const int k);

/* --- scales of a block of 256 ----------------------------------------------------------------- */

/* s: 8, or 16 for types with halves: of block 0 the first half, the second, of block 1 .. ; m
 * likewise if there are minima. */
typedef struct row_scales {
    f8 s[2], m[2];
} row_scales;

INLINE uint32_t get32(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE uint64_t get64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE uint64_t two_32(uint32_t low, uint32_t high) {
    return (uint64_t)high << 32 | low;
}

#define EACH_BYTE(v) (0x0101010101010101u * (v))

/* Eight bytes of 0..63, less 32. */
INLINE uint64_t less_32(uint64_t v) {
    return ((v | EACH_BYTE(0x80)) - EACH_BYTE(0x20)) ^ EACH_BYTE(0x80);
}

/* Q4_K and Q5_K: 12 bytes hold eight scales and eight minima of 6 bits: of the first four the low 6
 * bits of bytes 0-3 and 4-7; of the others the halves of bytes 8-11 and the top bits of the former.
 */
INLINE row_scales scales_q4_k(const uint8_t *p) {
    uint32_t a = get32(p + 4), b = get32(p + 8), c = get32(p + 12);
    uint32_t s4 = (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030);
    uint32_t m4 = (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030);
    return (row_scales){.s = {f8_scaled_u8(f16_at(p), two_32(a & 0x3f3f3f3f, s4))},
                        .m = {f8_scaled_u8(f16_at(p + 2), two_32(b & 0x3f3f3f3f, m4))}};
}
#define scales_q5_k scales_q4_k

/* 16 bytes: scales in the low halves, minima in the high. */
INLINE row_scales scales_q2_k(const uint8_t *p) {
    const uint64_t low = EACH_BYTE(15), a = get64(p), b = get64(p + 8);
    return (row_scales){
        .s = {f8_scaled_u8(f16_at(p + 80), a & low), f8_scaled_u8(f16_at(p + 80), b & low)},
        .m = {f8_scaled_u8(f16_at(p + 82), a >> 4 & low),
              f8_scaled_u8(f16_at(p + 82), b >> 4 & low)}};
}

/* 12 bytes hold 16 scales of 6 bits, less 32: the halves of bytes 0-7 and, two bits each, bytes
 * 8-11. */
INLINE row_scales scales_q3_k(const uint8_t *p) {
    const uint32_t top = 0x30303030, c = get32(p + 104);
    const uint64_t low = EACH_BYTE(15), ab = get64(p + 96);
    const uint64_t first = (ab & low) | two_32(c << 4 & top, c << 2 & top);
    const uint64_t second = (ab >> 4 & low) | two_32(c & top, c >> 2 & top);
    return (row_scales){.s = {f8_scaled_i8(f16_at(p + 108), less_32(first)),
                              f8_scaled_i8(f16_at(p + 108), less_32(second))}};
}

INLINE row_scales scales_q6_k(const uint8_t *p) {
    return (row_scales){.s = {f8_scaled_i8(f16_at(p + 208), get64(p + 192)),
                              f8_scaled_i8(f16_at(p + 208), get64(p + 200))}};
}

/* Eight scales of 6 bits, less 32: the low four in the halves of bytes 4-7, the top two in 16 bits.
 */
INLINE row_scales scales_iq4_xs(const uint8_t *p) {
    uint64_t low = get32(p + 4), top = get32(p) >> 16;
    low = (low | low << 16) & 0x0000ffff0000ffff, top = (top | top << 24) & 0x000000ff000000ff;
    low = (low | low << 8) & 0x00ff00ff00ff00ff, top = (top | top << 12) & 0x000f000f000f000f;
    low = (low | low << 4) & EACH_BYTE(15), top = (top | top << 6) & EACH_BYTE(3);
    return (row_scales){.s = {f8_scaled_i8(f16_at(p), less_32(low | top << 4))}};
}

INLINE row_scales scales_tq1_0(const uint8_t *p) {
    return (row_scales){.s = {f8_scaled_u8(f16_at(p + 52), EACH_BYTE(1))}};
}

INLINE row_scales scales_tq2_0(const uint8_t *p) {
    return (row_scales){.s = {f8_scaled_u8(f16_at(p + 64), EACH_BYTE(1))}};
}

typedef row_scales scales_fn(const uint8_t *block);

/* --- 16 rows side by side --------------------------------------------------------------------- */

/* Types with blocks of 32: the scale is the f16 at 0, the minimum the one at 2, with the other
 * sign. */
INLINE void pack_32(uint8_t *codes, float *scales, const uint8_t *w, const size_t *row, int64_t n,
                    unpack_fn *unpack, const int size, const int min) {
    for (; n > 0; n--, w += size, codes += 8 * CPU_PLANE, scales += (1 + min) * CPU_GROUP) {
        pack_codes(codes, w, row, unpack, 0);
        f16_rows(scales, w, row, 1);
        if (min)
            f16_rows(scales + CPU_GROUP, w + 2, row, -1);
    }
}

/* Types with blocks of 256. Of a block: s; s, m; both s; both s, both m. */
INLINE void pack_256(uint8_t *codes, float *scales, const uint8_t *w, const size_t *row, int64_t n,
                     unpack_fn *unpack, scales_fn *scales_of_row, const int size, const int min,
                     const int halves) {
    const int stride = sizeof(row_scales) / sizeof(f8), per_block = (1 + min) * (1 + halves);
    for (; n > 0; n -= 8, w += size) {
        row_scales s[CPU_GROUP];
#pragma GCC unroll 8
        for (int k = 0; k < 8; k++, codes += 8 * CPU_PLANE)
            pack_codes(codes, w, row, unpack, k);
        for (int r = 0; r < CPU_GROUP; r++)
            s[r] = scales_of_row(w + row[r]);
        for (int h = 0; h <= halves; h++) {
            int place[8];
            for (int i = 0; i < 8; i++)
                place[i] = halves ? (4 * h + i / 2) * per_block + i % 2 : i * per_block;
            put_scales(scales, &s[0].s[h], stride, place);
            for (int i = 0; min && i < 8; i++)
                place[i] += 1 + halves;
            if (min)
                put_scales(scales, &s[0].m[h], stride, place);
        }
        scales += 8 * per_block * CPU_GROUP;
    }
}

#define PACK_32(name, size, min)                                                                   \
    static void pack_blocks_##name(uint8_t *codes, float *scales, const uint8_t *w,                \
                                   const size_t *row, int64_t n) {                                 \
        pack_32(codes, scales, w, row, n, unpack_##name, size, min);                               \
    }
#define PACK_256(name, size, min, halves)                                                          \
    static void pack_blocks_##name(uint8_t *codes, float *scales, const uint8_t *w,                \
                                   const size_t *row, int64_t n) {                                 \
        pack_256(codes, scales, w, row, n, unpack_##name, scales_##name, size, min, halves);       \
    }
PACK_32(q4_0, 18, 0)
PACK_32(q4_1, 20, 1)
PACK_32(q5_0, 22, 0)
PACK_32(q5_1, 24, 1)
PACK_32(q8_0, 34, 0)
PACK_32(iq4_nl, 18, 0)
PACK_256(q2_k, 84, 1, 1)
PACK_256(q3_k, 110, 0, 1)
PACK_256(q4_k, 144, 1, 0)
PACK_256(q5_k, 176, 1, 0)
PACK_256(q6_k, 210, 0, 1)
PACK_256(iq4_xs, 136, 0, 0)
PACK_256(tq1_0, 54, 0, 0)
PACK_256(tq2_0, 66, 0, 0)

#define QTYPE(NAME, name, panel, low, high, table, scales, unit)
#define ITYPE(NAME, name, panel, low, high, table, scales, unit)                                   \
    static void pack_blocks_##name(uint8_t *codes, float *to, const uint8_t *w, const size_t *row, \
                                   int64_t n) {                                                    \
        cpu_pack_blocks(GGL_##NAME, codes, to, w, row, n);                                         \
    }
#include "quant_types.def"

/* The scale of MXFP4 is a byte. */
static void pack_blocks_mxfp4(uint8_t *codes, float *scales, const uint8_t *w, const size_t *row,
                              int64_t n) {
    for (; n > 0; n--, w += 17, codes += 8 * CPU_PLANE, scales += CPU_GROUP) {
        uint8_t e[CPU_GROUP];
        for (int r = 0; r < CPU_GROUP; r++)
            e[r] = w[row[r]];
        pack_codes(codes, w, row, unpack_mxfp4, 0);
        float_store(scales, float_e8m0(e), CPU_GROUP);
    }
}

#endif
