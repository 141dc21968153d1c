/* Blocks of 32 columns of 16 rows as vectors, for the products of quantized weights of all
 * instruction sets: codes and scales of the row-interleaved layout (rows16.h), and what the kernels
 * know of a type. Included after <isa>/lanes_<isa>.h. */
#ifndef CPU_ROWS16_VECTORS_H
#define CPU_ROWS16_VECTORS_H

#include "../unroll.h"
#include "unpack.h"

/* The properties of a type that the kernel needs. */
typedef struct shape_of {
    int min, halves;      /* 1: it has minima; halves of a block have scales of their own */
    int offset, max;      /* added to codes; largest code after that */
    int low, high;        /* bits of a code in the low and high planes */
    cpu_layout layout;    /* of the row-interleaved layout */
    const uint8_t *table; /* turns stored codes into codes; NULL: they are the same */
    cpu_scales scales;
    float unit;
    int shift, odd; /* quant_types.def */
} shape_of;

enum { MIN_SCALE, MIN_SCALE_MIN, MIN_SCALE16 = 0, MIN_SCALE16_MIN };
enum { HALVES_SCALE, HALVES_SCALE_MIN = 0, HALVES_SCALE16, HALVES_SCALE16_MIN = 1 };

/* Returns vector g of a block's codes. */
INLINE vcodes block_codes(const uint8_t *p, const int g, const shape_of t) {
    if (t.low == 8)
        return codes_load(p + g * CPU_PLANE);
    vcodes v;
    if (t.low == 4)
        v = codes_bits(codes_load(p + g % 4 * CPU_PLANE), g / 4 * 4, 0, 15);
    else if (t.low == 2)
        v = codes_bits(codes_load(p + g / 4 * CPU_PLANE), g % 4 * 2, 0, 3);
    else
        v = codes_bits(codes_load(p), g, 0, 1);
    const uint8_t *h = p + t.low * CPU_PLANE;
    if (t.high == 2)
        v = codes_or(v, codes_bits(codes_load(h + g / 4 * CPU_PLANE), g % 4 * 2, t.low, 3));
    if (t.high == 1 && t.low > 0)
        v = codes_or(v, codes_bits(codes_load(h), g, t.low, 1));
    if (t.table && t.low + t.high == 5)
        v = codes_lookup32(v, t.table);
    else if (t.table)
        v = codes_lookup(v, t.table);
    return v;
}

typedef struct block_scales {
    vfloat s[2], m[2];
    vfloat shift[2]; /* added to all codes, if the type has shifts */
} block_scales;

/* Sets the scale, and the shift if the type has shifts, of a part whose 16 bytes are at p. */
INLINE void set_scale(block_scales *r, const int h, vfloat d, const uint8_t *p, const shape_of t) {
    vfloat sc = float_i8(p);
    if (t.shift) {
        const vfloat one = float_set(1.0f), shifted = float_low1(p);
        r->shift[h] = float_mul(shifted, float_set((float)t.shift));
        sc = float_fnma(shifted, one, sc);
        if (t.odd)
            sc = float_fma(one, one, sc);
    }
    r->s[h] = float_mul(d, sc);
}

/* Returns d times the type's unit. */
INLINE vfloat in_units(vfloat d, const float unit) {
    return unit == 1.0f ? d : float_mul(d, float_set(unit));
}

/* Returns 16 scales of the form CPU_SCALES_E4M3 from their bytes << 7: that is an f16 with another
 * bias. */
INLINE vfloat float_e4m3(const uint16_t *shifted) {
    return float_mul(float_f16((const uint8_t *)shifted), float_set(0x1p7f));
}

/* Returns the scales of a run, and its minima if there are any: of the scales that its block, or its rows, have
 * once (unpacked scales have none of these), and of those of the run. */
INLINE block_scales scales_of(const uint8_t *once, const uint8_t *each, const shape_of t) {
    block_scales r;
    switch (t.scales) {
    case CPU_SCALES_F32:
        for (int h = 0; h <= t.halves; h++)
            r.s[h] = float_load((const float *)each + 16 * h);
        for (int h = 0; t.min && h <= t.halves; h++)
            r.m[h] = float_load((const float *)each + 16 * (1 + t.halves + h));
        break;
    case CPU_SCALES_F16:
        r.s[0] = float_f16(once);
        break;
    case CPU_SCALES_F16_MIN:
        r.s[0] = float_f16(once);
        r.m[0] = float_negate(float_f16(once + 32));
        break;
    case CPU_SCALES_E8M0:
        r.s[0] = float_e8m0(once);
        break;
    case CPU_SCALES_E4M3:
        for (int h = 0; h < 2; h++) {
            uint16_t shifted[CPU_GROUP];
            for (int j = 0; j < CPU_GROUP; j++)
                shifted[j] = (uint16_t)(each[16 * h + j] << 7);
            r.s[h] = float_e4m3(shifted);
        }
        break;
    case CPU_SCALES_SC8:
        set_scale(&r, 0, in_units(float_f16(once), t.unit), each, t);
        break;
    case CPU_SCALES_ROW:
        r.s[0] = float_load((const float *)once);
        break;
    case CPU_SCALES_ROW8:
        set_scale(&r, 0, in_units(float_load((const float *)once), t.unit), each, t);
        break;
    case CPU_SCALES_SC8_MIN:
        r.s[0] = float_mul(float_f16(once), float_i8(each));
        r.m[0] = float_mul(float_f16(once + 32), float_i8(each + 16));
        break;
    case CPU_SCALES_SC16:
        for (int h = 0; h < 2; h++)
            set_scale(&r, h, in_units(float_f16(once), t.unit), each + 16 * h, t);
        break;
    case CPU_SCALES_SC16_MIN:
        for (int h = 0; h < 2; h++) {
            r.s[h] = float_mul(float_f16(once), float_low4(each + 16 * h));
            r.m[h] = float_mul(float_f16(once + 32), float_high4(each + 16 * h));
        }
        break;
    }
    return r;
}

/* Adds to each code of n planes the byte of its row, four of which are by[row]. */
INLINE void add_bytes(uint8_t *codes, const uint32_t by[CPU_GROUP], const int n) {
    uint8_t b[CPU_PLANE];
    memcpy(b, by, sizeof b);
    for (int g = 0; g < n; g++, codes += CPU_PLANE)
        for (int i = 0; i < CPU_PLANE; i++)
            codes[i] = (uint8_t)(codes[i] + b[i]);
}

/* Adds the shift to the codes of the parts of a run that are shifted. each: 16 bytes for the run, or for each half, whose
 * lowest bit says so. */
INLINE void add_shifts(uint8_t *codes, const uint8_t *each, const int shift, const int halves) {
    for (int h = 0; shift && h <= halves; h++, codes += 4 * CPU_PLANE, each += CPU_GROUP) {
        uint32_t by[CPU_GROUP];
        for (int r = 0; r < CPU_GROUP; r++)
            by[r] = (each[r] & 1) * (0x01010101u * (unsigned)shift);
        add_bytes(codes, by, halves ? 4 : 8);
    }
}

/* Stores the scales of a run as a panel has them (CPU_SCALES_F32). Returns the place behind them. */
INLINE float *store_scales(float *to, block_scales s, const shape_of t) {
    for (int h = 0; h <= t.halves; h++, to += CPU_GROUP)
        float_store(to, s.s[h], CPU_GROUP);
    for (int h = 0; t.min && h <= t.halves; h++, to += CPU_GROUP)
        float_store(to, s.m[h], CPU_GROUP);
    return to;
}

/* Returns the bytes of a run's scales, unpacked. */
INLINE int64_t panel_scales(const shape_of t) {
    return (1 + t.min) * (1 + t.halves) * CPU_PLANE;
}

INLINE int groups_of(int n_rows) {
    return (n_rows + CPU_GROUP - 1) / CPU_GROUP;
}

/* Sets row[] to the offsets of 16 rows; rows from n_rows on repeat the last one. */
INLINE void row_offsets(size_t *row, size_t row_size, int n_rows) {
    for (int r = 0; r < CPU_GROUP; r++)
        row[r] = (size_t)(r < n_rows ? r : n_rows - 1) * row_size;
}

/* panel_<panel> and rows16_of_<name>: the shapes of panels and of types in the row-interleaved
 * layout. */
#define PANEL(panel, form, offset, max)                                                            \
    enum {                                                                                         \
        offset_##panel = offset,                                                                   \
        max_##panel = max,                                                                         \
        min_##panel = MIN_##form,                                                                  \
        halves_##panel = HALVES_##form                                                             \
    };                                                                                             \
    static const shape_of panel_##panel = {                                                        \
        MIN_##form,      HALVES_##form, offset,         max, 8, 0,                                 \
        {8, 1, 0, 0, 0}, NULL,          CPU_SCALES_F32, 1,   0, 0};
#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    static const shape_of rows16_of_##name = {min_##class,                                         \
                                              halves_##class,                                      \
                                              offset_##class,                                      \
                                              max_##class,                                         \
                                              low,                                                 \
                                              high,                                                \
                                              CPU_LAYOUT(NAME, low, high, scales),                 \
                                              ggl_cpu_table_##table,                               \
                                              CPU_SCALES_##scales,                                 \
                                              unit,                                                \
                                              shift,                                               \
                                              odd};
#include "quant_types.def"

#endif
