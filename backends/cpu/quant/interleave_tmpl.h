/* Writes codes of rows of a file to the row-interleaved layout (rows16.h), and defines ggl_cpu_unpacking. One file of a
 * processor includes it, after lanes_<isa>.h and unpack_<isa>.h. */
#ifndef CPU_QUANT_INTERLEAVE_H
#define CPU_QUANT_INTERLEAVE_H

#include "unpack_tmpl.h"

/* Packs two bits of 8 vectors, those from bit `from` on, into 2 planes. */
INLINE void put_twos(uint8_t *planes, const vcodes *v, const int from) {
    UNROLL for (int h = 0; h < 2; h++) {
        vcodes u = codes_bits(v[4 * h], from, 0, 3);
        UNROLL for (int i = 1; i < 4; i++) u =
            codes_or(u, codes_bits(v[4 * h + i], from, 2 * i, 3));
        codes_store(planes + h * CPU_PLANE, u);
    }
}

/* Packs a block's 8 vectors of stored codes into its planes. */
INLINE void put_planes(uint8_t *planes, const uint8_t *codes, const shape_of t) {
    uint8_t *top = planes + t.low * CPU_PLANE;
    vcodes v[8];
    UNROLL for (int g = 0; g < 8; g++) v[g] = codes_load(codes + g * CPU_PLANE);
    if (t.low == 8)
        UNROLL for (int g = 0; g < 8; g++) codes_store(planes + g * CPU_PLANE, v[g]);
    if (t.low == 4)
        UNROLL for (int g = 0; g < 4; g++)
            codes_store(planes + g * CPU_PLANE,
                        codes_or(codes_bits(v[g], 0, 0, 15), codes_bits(v[g + 4], 0, 4, 15)));
    if (t.low == 2)
        put_twos(planes, v, 0);
    if (t.high == 2)
        put_twos(top, v, t.low);
    if (t.high == 1) {
        vcodes u = codes_bits(v[0], t.low, 0, 1);
        UNROLL for (int g = 1; g < 8; g++) u = codes_or(u, codes_bits(v[g], t.low, g, 1));
        codes_store(top, u);
    }
}

/* Tables for storing codes unchanged. MXFP4 has a positive and a negative zero, stored as one. */
static const uint8_t places[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t places_MXFP4[16] = {0, 1, 2, 3, 4, 5, 6, 7, 0, 9, 10, 11, 12, 13, 14, 15};

/* Writes the codes of up to 16 rows of a file to the blocks at `to`; those of missing rows become
 * zeros. */
INLINE void kernel_interleave(uint8_t *to, const uint8_t *w, size_t row_size, int n_rows, int64_t k,
                              const shape_of t, codes_fn *put, const size_t block_size) {
    _Alignas(64) uint8_t codes[CPU_MOST_RUNS * 8 * CPU_PLANE];
    size_t row[CPU_GROUP];
    row_offsets(row, row_size, n_rows);
    for (int64_t b = 0; b < k / 32;
         b += t.layout.runs, w += block_size, to += cpu_block_size(t.layout)) {
        put(codes, w, row, t.table == ggl_cpu_table_MXFP4 ? places_MXFP4 : places);
        for (int i = 0; i < t.layout.runs; i++) {
            uint8_t *planes = to + t.layout.once + i * cpu_run_size(t.layout);
            put_planes(planes, codes + i * 8 * CPU_PLANE, t);
            for (int g = 0; g < t.low + t.high; g++, planes += CPU_PLANE)
                if (n_rows < CPU_GROUP)
                    memset(planes + 4 * n_rows, 0, (size_t)(CPU_PLANE - 4 * n_rows));
        }
    }
}

#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    static void interleave_##name(uint8_t *to, const void *w, size_t row_size, int n_rows,         \
                                  int64_t k) {                                                     \
        kernel_interleave(to, w, row_size, n_rows, k, rows16_of_##name, codes_##name,              \
                          sizeof(struct block_##name));                                            \
    }
#include "quant_types.def"

const cpu_unpacking ggl_cpu_unpacking[GGL_TYPE_LIMIT] = {
#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    [GGL_##NAME] = {pack_blocks_##name, interleave_##name},
#include "quant_types.def"
};

#endif
