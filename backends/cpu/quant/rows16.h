/* The row-interleaved layout of quantized weights: 16 rows side by side, so that a vector of any
 * instruction set (one register of AVX-512, two of AVX2, four of NEON) has rows in its lanes.
 *
 * A matrix is groups of 16 rows, one after the other; rows past the last are zeros. A group is
 * parts of 256 columns, the last of what is left; a part is its codes, then its scales, then zeros
 * up to a multiple of 64 bytes. So whoever goes through a matrix reads one stretch of memory.
 *
 * Codes of a block, as unsigned bytes (quant_types.def: offset), in 8 vectors of 64 bytes:
 *
 *     vector g = | row 0: columns 4g .. 4g+3 | row 1: the same | .. | row 15 |
 *
 * stored in planes of 64 bytes, `low` bits first, then `high` bits:
 *
 *     low 8    8 planes, plane g = vector g
 *     low 4    4 planes, plane g = vector g in the low halves, vector g + 4 in the high halves
 *     low 2    2 planes, plane h = vectors 4h, 4h+1, 4h+2, 4h+3, two bits each, the first lowest
 *     high 2   2 planes likewise
 *     high 1   1 plane, bit g = vector g
 *
 * Scales: see cpu_scales. */
#ifndef CPU_ROWS16_H
#define CPU_ROWS16_H

#include "../kernels.h"

enum { CPU_GROUP = 16 /* rows */, CPU_PART = 256 /* columns */, CPU_PLANE = 64 /* bytes */ };

/* What a part's scales are, for each block of 32 or, of types with blocks of 256, for
 * each 256. d, m: f16 of 16 rows; sc, mn: bytes of 16 rows. */
typedef enum cpu_scales {
    CPU_SCALES_F32, /* panels: f32[n][16] a block: s, or s and m, or both s, or both s and both m */
    CPU_SCALES_F16, /* d                      s = d */
    CPU_SCALES_F16_MIN,  /* d, m                   s = d, minimum -m */
    CPU_SCALES_E8M0,     /* u8 e[16]               s = 2^(e - 128) */
    CPU_SCALES_D,        /* d                      s = d in all 8 blocks */
    CPU_SCALES_SC8,      /* d, i8 sc[8]            s = d * sc */
    CPU_SCALES_SC8_MIN,  /* d, m, u8 sc[8], mn[8]  s = d * sc, minimum m * mn */
    CPU_SCALES_SC16,     /* d, i8 sc[16]           s = d * sc, for each half */
    CPU_SCALES_SC16_MIN, /* d, m, u8 c[16]         s = d * (c & 15), minimum m * (c >> 4), for each
                            half */
} cpu_scales;

/* Whether there are minima, and whether each half of a block has its own. */
static inline int cpu_scales_min(cpu_scales s) {
    return s == CPU_SCALES_F16_MIN || s == CPU_SCALES_SC8_MIN || s == CPU_SCALES_SC16_MIN;
}
static inline int cpu_scales_halves(cpu_scales s) {
    return s == CPU_SCALES_SC16 || s == CPU_SCALES_SC16_MIN;
}

/* Bytes for 32 columns and for 256 (one is 0). */
static inline int cpu_scales_per_32(cpu_scales s) {
    return s == CPU_SCALES_F16 ? 32 : s == CPU_SCALES_F16_MIN ? 64 : s == CPU_SCALES_E8M0 ? 16 : 0;
}
static inline int cpu_scales_per_256(cpu_scales s) {
    return s == CPU_SCALES_D          ? 32
           : s == CPU_SCALES_SC8      ? 32 + 128
           : s == CPU_SCALES_SC8_MIN  ? 64 + 256
           : s == CPU_SCALES_SC16     ? 32 + 256
           : s == CPU_SCALES_SC16_MIN ? 64 + 256
                                      : 0;
}

/* Bytes of the codes of a part of n columns of a group, of the part with its scales, and of a group
 * of k columns. bits: low + high. */
static inline int64_t cpu_codes_size(int64_t n, int bits) {
    return n / 32 * bits * CPU_PLANE;
}
static inline int64_t cpu_part_size(int64_t n, int bits, cpu_scales s) {
    int64_t scales = n / 32 * cpu_scales_per_32(s) + n / 256 * cpu_scales_per_256(s);
    return (cpu_codes_size(n, bits) + scales + 63) / 64 * 64;
}
static inline int64_t cpu_group_size(int64_t k, int bits, cpu_scales s) {
    return k / CPU_PART * cpu_part_size(CPU_PART, bits, s) + cpu_part_size(k % CPU_PART, bits, s);
}

/* Bytes of n_rows rows of a type with k columns; 0: the type has no such layout. */
size_t ggl_cpu_rows16_size(ggl_type type, int64_t n_rows, int64_t k);
/* Writes groups first .. last-1 of the matrix w to their places in dst. Blocks of w may lie at any
 * address; dst is 64-byte aligned. By p->interleave; if p or that is NULL, by the definition of the
 * type: the same bytes, slowly. */
void ggl_cpu_rows16_pack(const cpu_product *p, void *dst, ggl_type type, const void *w,
                         size_t row_size, int64_t n_rows, int64_t k, int64_t first, int64_t last);

/* Tables of codes, as bytes with the type's offset added; what no code uses is 0. */
extern const uint8_t ggl_cpu_table_IQ4[16], ggl_cpu_table_MXFP4[16], ggl_cpu_table_IQ1[16],
    ggl_cpu_table_IQ2[16], ggl_cpu_table_IQ3[16], ggl_cpu_table_IQ3S[16];

#endif
