/* Unpack quantized rows of a file. Each type has one function, which returns 32 stored codes as
 * unsigned bytes: those that the planes of rows16.h hold. If the type has a table, it turns them
 * into codes with their offset (quant_types.def). Scales: ggml-lite/quant/raw_scales.h. Blocks: docs/types.md.
 *
 * Included after <isa>/lanes_<isa>.h and <isa>/unpack_<isa>.h, which defines 32 bytes (c32) and 8
 * floats (f8):
 *
 *   c32_load(p), c32_set(byte)     32 bytes; one byte 32 times
 *   c32_twice(p), c32_fours(p)     16 bytes twice; 4 bytes eight times
 *   c32_halves(a, b)               the first half of a, the second half of b
 *   c32_nibbles(p)                 the low halves of 16 bytes, then the high halves
 *   c32_quarters(v)                v with its second and third eight bytes exchanged
 *   c32_bits(v, from, to, mask)    (byte >> from & mask) << to, for each byte
 *   c32_spread(bits, value)        32 bits as bytes of 0 or `value`
 *   c32_twos(v)                    four numbers of 16 bits: eight elements of two bits of each
 *   c32_threes(v, w)               eight numbers of 16 bits: four elements of three bits of each
 *   c32_lookup(table, v)           table[byte] for each byte; bytes are below 16
 *   c32_base3(v, powers)           each byte (v * power mod 256) * 3 / 256
 *   c32_or, c32_xor
 *   f16_value(bits)
 *   f8_scaled_u8(d, bytes), f8_scaled_i8   d times each of eight bytes, the lowest first
 *   f16_rows(out, p, row, raw, minima)     the d of raw(p + row[0..15]), or the negated m
 *   pack_codes(codes, w, row, unpack, k, table)   writes block k of 16 rows to 8 planes, through
 *                                          the table unless that is NULL
 *   put_scales(out, v, step, places)       writes eight values of each of 16 rows (those of row r
 *                                          are in v[r * step]) to out[places[i] * 16 + row] */
#ifndef CPU_QUANT_UNPACK_H
#define CPU_QUANT_UNPACK_H

#include "../../../ggml-lite/quant/iq_grids.h"
#include "../../../ggml-lite/quant/iqk.h"
#include "../../../ggml-lite/quant/raw_scales.h"
#include "../unroll.h"
#include "rows16_vectors.h"

/* --- codes: elements 32 k .. 32 k + 31 of a block -------------------------------------------- */

#define UNPACK(name, expression)                                                                   \
    INLINE c32 unpack_##name(const uint8_t *p, const int k) {                                      \
        (void)k;                                                                                   \
        return (expression);                                                                       \
    }

#define BITS(at, from, to, mask) c32_bits(c32_load(p + (at)), from, to, mask)

UNPACK(q8_0, c32_xor(c32_load(p + 2), c32_set(0x80)))
UNPACK(q4_0, c32_nibbles(p + 2))
UNPACK(q4_1, c32_nibbles(p + 4))
UNPACK(q5_0, c32_or(c32_nibbles(p + 6), c32_spread(load32(p + 2), 16)))
UNPACK(q5_1, c32_or(c32_nibbles(p + 8), c32_spread(load32(p + 4), 16)))
UNPACK(iq4_nl, c32_nibbles(p + 2))
UNPACK(iq4_xs, c32_nibbles(p + 8 + 16 * k))
UNPACK(mxfp4, c32_nibbles(p + 1))
UNPACK(nvfp4, c32_quarters(c32_nibbles(p + 4 + 16 * k)))
UNPACK(q1_0, c32_spread(load32(p + 2 + 4 * k), 1))
UNPACK(q2_0, c32_twos(load64(p + 2 + 8 * k)))
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

/* Six bits: two for each of 8 elements four times, in the order of the elements. */
INLINE c32 unpack_q6_0(const uint8_t *p, const int k) {
    const uint64_t h = load64(p + 2), low = EACH_BYTE(3);
    const uint64_t v[4] = {(h & low) << 4, (h >> 4 & low) << 4, (h >> 2 & low) << 4,
                           (h >> 6 & low) << 4};
    (void)k;
    return c32_or(c32_nibbles(p + 10), c32_load((const uint8_t *)v));
}

UNPACK(pq2_0, c32_twos(load64(p + 2 + 8 * k)))
UNPACK(iq2_bn,
       c32_halves(c32_bits(c32_twice(p), 4 * k, 0, 3), c32_bits(c32_twice(p), 4 * k + 2, 0, 3)))

/* | 16 bytes: digits of elements 0..79 | 8 bytes: 80..119 | 2 bytes: 120..127 | d | */
#define X8(v) X4(v), X4(v)
#define X2(v) v, v
_Alignas(32) static const uint8_t powers_of_3_128[4][32] = {
    {X16(1), X16(3)},
    {X16(9), X16(27)},
    {X16(81), X8(1), X8(3)},
    {X8(9), X8(27), X8(81), X2(1), X2(3), X2(9), X2(27)}};
INLINE c32 unpack_ptq1_0(const uint8_t *p, const int k) {
    uint8_t b[32];
    for (int i = 0; i < 4; i++)
        memcpy(b + 8 * i, p + (k < 2 ? i % 2 * 8 : k == 2 && i < 2 ? 8 * i : 16), 8);
    for (int i = 24; k == 3 && i < 32; i += 2)
        memcpy(b + i, p + 24, 2);
    return c32_base3(c32_load(b), powers_of_3_128[k]);
}

/* --- codes of uneven steps -------------------------------------------------------------------- */

UNPACK(iq2_k, BITS(12 + k / 4 * 32, k % 4 * 2, 0, 3))
UNPACK(iq3_k, c32_or(BITS(14 + k / 4 * 32, k % 4 * 2, 0, 3), BITS(78, k, 2, 1)))
UNPACK(iq4_k, c32_nibbles(p + 16 + 16 * k))
UNPACK(iq5_k, c32_or(BITS(16 + k / 2 * 32, k % 2 * 4, 0, 15), BITS(144, k, 4, 1)))
UNPACK(iq4_ks, c32_nibbles(p + 8 + 16 * k))
UNPACK(iq5_ks, c32_or(BITS(8 + k / 2 * 32, k % 2 * 4, 0, 15), BITS(136, k, 4, 1)))
UNPACK(iq2_ks, BITS(6 + k / 4 * 32, k % 4 * 2, 0, 3))
UNPACK(iq3_ks, c32_or(BITS(6 + k / 4 * 32, k % 4 * 2, 0, 3), BITS(70, k, 2, 1)))

/* Codes of 15 bits for four elements: each bit is that of the nibbles xor the one above it. */
INLINE c32 unpack_iq4_kss(const uint8_t *p, const int k) {
    uint64_t v[2] = {load64(p + 16 * k), load64(p + 16 * k + 8)};
    for (int i = 0; i < 2; i++) {
        v[i] &= 0xfffefffefffefffe;
        v[i] ^= v[i] >> 1 & 0x7fff7fff7fff7fff;
    }
    return c32_nibbles((const uint8_t *)v);
}

/* The steps themselves, with their shifts: the layout has no table for 6 bits. */
INLINE c32 unpack_iq6_k(const uint8_t *p, const int k) {
    const uint8_t *b = p + 20 + k / 2 * 32, *h = p + 148 + k / 4 * 32;
    const unsigned shifts = (unsigned)load16(p + 2) >> 2 * k;
    uint8_t v[32];
    for (int j = 0; j < 32; j++)
        v[j] = (uint8_t)(128 +
                         ggl_iq6_k_steps[(b[j] >> k % 2 * 4 & 15) | (h[j] >> k % 4 * 2 & 3) << 4] +
                         (int)(shifts >> j / 16 & 1));
    return c32_load(v);
}

INLINE c32 unpack_iq2_kl(const uint8_t *p, const int k) {
    const uint8_t *b = p + 6 + k / 2 * 16, *h = p + 70;
    uint8_t v[32];
    for (int j = 0; j < 16; j++)
        memcpy(v + 2 * j, ggl_iq2_kl_pairs[(b[j] >> k % 2 * 4 & 15) | (h[j] >> k & 1) << 4], 2);
    return c32_load(v);
}

/* --- codes of types with codebooks ----------------------------------------------------------- */

/* Returns four codebook entries. The index of entry i is p[i] + 256 * (high >> step * i & mask), so
 * it is always within a codebook of (mask + 1) * 256. */
INLINE uint64_t four_entries(const iq_grid *g, const uint8_t *p, unsigned high, const int step,
                             const unsigned mask) {
    uint64_t v = 0;
    for (int i = 0; i < 4; i++)
        v |= (uint64_t)g->code[p[i] | (high << 8 >> step * i & mask << 8)] << 16 * i;
    return v;
}

/* Adds to each of four bytes, with 7 sign bits, the eighth bit that makes the number of ones
 * even. */
INLINE uint32_t even_signs(uint32_t s) {
    uint32_t parity = s ^ s >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return s | (parity & 0x01010101) << 7;
}

/* Returns the 32 sign bits that are packed as four times 7 bits in the low 28 bits of w. */
INLINE uint32_t signs_of(uint32_t w) {
    return even_signs((w & 0x7f) | (w << 1 & 0x7f00) | (w << 2 & 0x7f0000) | (w << 3 & 0x7f000000));
}

/* Negates the codes whose bit in `signs` is set. The tables have negative codes in reverse order,
 * so inverting a place's `bits` bits negates its code. */
INLINE c32 with_signs(c32 v, uint32_t signs, const int bits) {
    return c32_xor(v, c32_spread(signs, (1 << bits) - 1));
}

INLINE c32 unpack_iq2_xxs(const uint8_t *p, const int k) {
    p += 2 + 8 * k;
    return with_signs(c32_twos(four_entries(&ggl_iq2_xxs_grid, p, 0, 0, 0)),
                      signs_of(load32(p + 4)), 3);
}

INLINE c32 unpack_iq2_xs(const uint8_t *p, const int k) {
    const uint16_t *grid = ggl_iq2_xs_grid.code;
    uint64_t w = load64(p + 2 + 8 * k), s = w >> 9 & 0x007f007f007f007f;
    uint64_t v = grid[w & 511] | (uint64_t)grid[w >> 16 & 511] << 16 |
                 (uint64_t)grid[w >> 32 & 511] << 32 | (uint64_t)grid[w >> 48 & 511] << 48;
    s = (s | s >> 8) & 0x0000ffff0000ffff;
    return with_signs(c32_twos(v), even_signs((uint32_t)(s | s >> 16)), 3);
}

UNPACK(iq2_s, with_signs(c32_twos(four_entries(&ggl_iq2_s_grid, p + 2 + 4 * k, p[66 + k], 2, 3)),
                         load32(p + 34 + 4 * k), 3))

INLINE c32 unpack_iq3_xxs(const uint8_t *p, const int k) {
    const uint8_t *index = p + 2 + 8 * k;
    return with_signs(c32_threes(four_entries(&ggl_iq3_xxs_grid, index, 0, 0, 0),
                                 four_entries(&ggl_iq3_xxs_grid, index + 4, 0, 0, 0)),
                      signs_of(load32(p + 66 + 4 * k)), 4);
}

INLINE c32 unpack_iq3_s(const uint8_t *p, const int k) {
    const uint8_t *index = p + 2 + 8 * k;
    return with_signs(c32_threes(four_entries(&ggl_iq3_s_grid, index, p[66 + k], 1, 1),
                                 four_entries(&ggl_iq3_s_grid, index + 4, p[66 + k] >> 4, 1, 1)),
                      load32(p + 74 + 4 * k), 4);
}

/* Returns 2 * entry, plus 1 where 1/8 is added rather than subtracted. */
INLINE c32 with_eighths(uint64_t entries, c32 plus) {
    return c32_or(c32_bits(c32_twos(entries), 0, 1, 3), plus);
}

INLINE c32 unpack_iq1_s(const uint8_t *p, const int k) {
    const unsigned h = load16(p + 34 + 2 * k);
    return with_eighths(four_entries(&ggl_iq1_grid, p + 2 + 4 * k, h, 3, 7), c32_set(~h >> 15 & 1));
}

INLINE c32 unpack_iq1_m(const uint8_t *p, const int k) {
    const uint32_t h = load16(p + 32 + 2 * k), plus = ~h >> 3;
    const uint32_t bytes =
        (plus & 1) | (plus & 0x10) << 4 | (plus & 0x100) << 8 | (plus & 0x1000) << 12;
    return with_eighths(four_entries(&ggl_iq1_grid, p + 4 * k, h, 4, 7),
                        c32_spread(255 * bytes, 1));
}

typedef c32 unpack_fn(const uint8_t *block, const int k);

/* --- scales ----------------------------------------------------------------------------------- */

/* What is needed of a row besides its blocks: the bytes before them, and whether scales have shifts and are odd. */
typedef struct row_rule {
    size_t meta;
    int shift, odd;
} row_rule;

/* Returns the scale of a row. */
INLINE float row_scale(const uint8_t *row, const size_t meta) {
    float scale = 1.0f;
    if (meta == sizeof(uint16_t))
        return f16_value(load16(row));
    if (meta == sizeof scale)
        memcpy(&scale, row, sizeof scale);
    return scale;
}

/* Puts scales in place of bytes that have a shift in their lowest bit. */
INLINE raw_scales without_shifts(raw_scales r, const row_rule rule) {
    for (int i = 0; rule.shift && i < 2; i++)
        r.sc[i] = (r.sc[i] & EACH_BYTE(0xfe)) | EACH_BYTE((unsigned)rule.odd);
    return r;
}

/* The scales s and minima m (if the type has any) of a block's 8 parts of 32: 8 of each, or, for
 * types with halves, 16 in the order part 0 first half, part 0 second half, part 1 .. */
typedef struct row_scales {
    f8 s[2], m[2];
} row_scales;

INLINE row_scales scaled(raw_scales r, const float row, const cpu_scales s, const float unit) {
    const uint64_t low = EACH_BYTE(15);
    const float d = (s == CPU_SCALES_ROW8 ? row : f16_value(r.d)) * unit, m = f16_value(r.m);
    switch (s) {
    case CPU_SCALES_SC8_MIN:
        return (row_scales){.s = {f8_scaled_u8(d, r.sc[0])}, .m = {f8_scaled_u8(m, r.mn)}};
    case CPU_SCALES_SC16:
        return (row_scales){.s = {f8_scaled_i8(d, r.sc[0]), f8_scaled_i8(d, r.sc[1])}};
    case CPU_SCALES_SC16_MIN:
        return (row_scales){
            .s = {f8_scaled_u8(d, r.sc[0] & low), f8_scaled_u8(d, r.sc[1] & low)},
            .m = {f8_scaled_u8(m, r.sc[0] >> 4 & low), f8_scaled_u8(m, r.sc[1] >> 4 & low)}};
    default: /* CPU_SCALES_SC8, CPU_SCALES_ROW8 */
        return (row_scales){.s = {f8_scaled_i8(d, r.sc[0])}};
    }
}

/* --- 16 rows interleaved ---------------------------------------------------------------------- */

/* Unpacks the codes of a block of 16 rows. For types with a table, `table` is applied to them. */
typedef void codes_fn(uint8_t *codes, const uint8_t *w, const size_t *row, const uint8_t *table);

INLINE void put_codes(uint8_t *codes, const uint8_t *w, const size_t *row, const uint8_t *table,
                      unpack_fn *unpack, const int runs, const bool looked_up,
                      const bool unrolled) {
    if (runs == 1 || !unrolled) { /* k is only used in an address */
        for (int k = 0; k < runs; k++, codes += 8 * CPU_PLANE)
            pack_codes(codes, w, row, unpack, k, looked_up ? table : NULL);
    } else { /* k is a shift count, which must be a constant */
        UNROLL for (int k = 0; k < runs; k++, codes += 8 * CPU_PLANE)
            pack_codes(codes, w, row, unpack, k, looked_up ? table : NULL);
    }
}

/* Returns the lowest bits of eight bytes, the first byte's lowest. */
INLINE unsigned low_bits(uint64_t v) {
    return (unsigned)((v & EACH_BYTE(1)) * 0x0102040810204080u >> 56);
}

/* Turns the stored codes of a block of 16 rows into codes, as far as put_codes has not: by a table of 32 entries, and by shifts. */
INLINE void finish_codes(uint8_t *codes, const uint8_t *w, const size_t *row, raw_fn *raw,
                         const uint8_t *table, const int runs, const int bits, const int halves,
                         const row_rule rule) {
    uint16_t shifted[CPU_GROUP]; /* a bit for each part */
    for (int r = 0; rule.shift && r < CPU_GROUP; r++) {
        const raw_scales s = raw(w + row[r]);
        shifted[r] = (uint16_t)(low_bits(s.sc[0]) | low_bits(s.sc[1]) << 8);
    }
    for (int k = 0; table && bits == 5 && k < 8 * runs; k++)
        codes_store(codes + k * CPU_PLANE,
                    codes_lookup32(codes_load(codes + k * CPU_PLANE), table));
    const int planes = halves ? 4 : 8;
    for (int i = 0; rule.shift && i < runs * (1 + halves); i++) {
        uint32_t by[CPU_GROUP];
        for (int r = 0; r < CPU_GROUP; r++)
            by[r] = (shifted[r] >> i & 1u) * (0x01010101u * (unsigned)rule.shift);
        add_bytes(codes + i * planes * CPU_PLANE, by, planes);
    }
}

/* put_floats for forms with bytes for each run: SC8 and the like, of blocks of 256. */
INLINE void put_scaled(float *to, const uint8_t *rows, const uint8_t *w, const size_t *row,
                       raw_fn *raw, const cpu_scales s, const ggl_type_form form, const float unit,
                       const row_rule rule) {
    const int min = cpu_form_min(form), halves = cpu_form_halves(form);
    const int stride = sizeof(row_scales) / sizeof(f8), per_run = (1 + min) * (1 + halves);
    row_scales v[CPU_GROUP];
    for (int r = 0; r < CPU_GROUP; r++)
        v[r] = scaled(without_shifts(raw(w + row[r]), rule), row_scale(rows + row[r], rule.meta), s,
                      unit);
    for (int h = 0; h <= halves; h++) {
        int place[8];
        for (int i = 0; i < 8; i++)
            place[i] = halves ? (4 * h + i / 2) * per_run + i % 2 : i * per_run;
        put_scales(to, &v[0].s[h], stride, place);
        for (int i = 0; min && i < 8; i++)
            place[i] += 1 + halves;
        if (min)
            put_scales(to, &v[0].m[h], stride, place);
    }
}

/* put_floats for CPU_SCALES_E4M3. */
INLINE void put_e4m3(float *to, const uint8_t *w, const size_t *row, raw_fn *raw, const int runs) {
    for (int i = 0; i < 2 * runs; i += 4) {
        uint32_t e[CPU_GROUP]; /* of each row, scales i .. i + 3 */
        for (int r = 0; r < CPU_GROUP; r++)
            e[r] = (uint32_t)(raw(w + row[r]).sc[i / 8] >> 8 * (i % 8));
        for (int h = 0; h < 4 && i + h < 2 * runs; h++, to += CPU_GROUP) {
            uint16_t shifted[CPU_GROUP];
            for (int r = 0; r < CPU_GROUP; r++)
                shifted[r] = (uint16_t)((e[r] >> 8 * h & 0x7f) << 7);
            float_store(to, float_e4m3(shifted), CPU_GROUP);
        }
    }
}

/* Writes the scales of a block of 16 rows as f32. For each 32 columns: s; s and m; both s; or both
 * s and both m. */
INLINE void put_floats(float *to, const uint8_t *rows, const uint8_t *w, const size_t *row,
                       raw_fn *raw, const cpu_scales s, const ggl_type_form form, const int runs,
                       const float unit, const row_rule rule) {
    const int per_run = (1 + cpu_form_min(form)) * CPU_GROUP;
    uint8_t e[CPU_GROUP];
    switch (s) {
    case CPU_SCALES_E4M3:
        put_e4m3(to, w, row, raw, runs);
        return;
    case CPU_SCALES_E8M0:
        for (int r = 0; r < CPU_GROUP; r++)
            e[r] = (uint8_t)raw(w + row[r]).d;
        float_store(to, float_e8m0(e), CPU_GROUP);
        break;
    case CPU_SCALES_ROW:
        for (int r = 0; r < CPU_GROUP; r++)
            to[r] = row_scale(rows + row[r], rule.meta);
        break;
    case CPU_SCALES_F16:
    case CPU_SCALES_F16_MIN:
        f16_rows(to, w, row, raw, false);
        if (s == CPU_SCALES_F16_MIN)
            f16_rows(to + CPU_GROUP, w, row, raw, true);
        break;
    default:
        put_scaled(to, rows, w, row, raw, s, form, unit, rule);
        return;
    }
    for (int k = 1; k < runs; k++)
        memcpy(to + k * per_run, to, (size_t)per_run * sizeof *to);
}

/* Whether the unpacking of types with the table needs the number of the run as a constant. */
enum {
    UNROLLED_NONE = 1,
    UNROLLED_IQ2K = 1,
    UNROLLED_IQ3K = 1,
    UNROLLED_IQ5K = 1,
    UNROLLED_IQ2KL = 1,
    UNROLLED_IQ4 = 0,
    UNROLLED_IQ4K = 0,
    UNROLLED_MXFP4 = 0,
    UNROLLED_Q1 = 0,
    UNROLLED_IQ1 = 0,
    UNROLLED_IQ2 = 0,
    UNROLLED_IQ3 = 0,
    UNROLLED_IQ3S = 0
};

#define QTYPE(NAME, name, panel, low, high, table, scales, unit, shift, odd)                       \
    static void codes_##name(uint8_t *codes, const uint8_t *w, const size_t *row,                  \
                             const uint8_t *to) {                                                  \
        put_codes(codes, w, row, to, unpack_##name, RUNS_##NAME,                                   \
                  ggl_cpu_table_##table != NULL && (low) + (high) < 5, UNROLLED_##table);          \
    }                                                                                              \
    static void pack_blocks_##name(uint8_t *codes, float *to, const uint8_t *rows,                 \
                                   const uint8_t *w, const size_t *row, int64_t n) {               \
        const row_rule rule = {META_##NAME, shift, odd};                                           \
        const ggl_type_form form = (ggl_type_form)FORM_##NAME;                                     \
        const int runs = RUNS_##NAME;                                                              \
        const int per_run = (1 + cpu_form_min(form)) * (1 + cpu_form_halves(form)) * CPU_GROUP;    \
        for (; n > 0; n -= runs, w += sizeof(struct block_##name)) {                               \
            codes_##name(codes, w, row, ggl_cpu_table_##table);                                    \
            finish_codes(codes, w, row, raw_##name, ggl_cpu_table_##table, runs, (low) + (high),   \
                         cpu_form_halves(form), rule);                                             \
            put_floats(to, rows, w, row, raw_##name, CPU_SCALES_##scales, form, runs, unit, rule); \
            codes += runs * 8 * CPU_PLANE, to += runs * per_run;                                   \
        }                                                                                          \
    }
#include "quant_types.def"

#endif
