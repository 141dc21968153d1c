/* The row-interleaved layout of quantized weights: 16 rows are interleaved, so that a vector of any
 * instruction set (one register of AVX-512, two of AVX2, four of NEON) has one row in each lane.
 *
 * A matrix consists of groups of 16 rows; missing rows of the last group are zeros. A group
 * consists of parts of 256 columns (the last part may have fewer). A part is its codes, then its
 * scales, then zeros up to a multiple of 64 bytes. So a product reads a matrix as one stretch of
 * memory.
 *
 * The codes of a block are unsigned bytes (quant_types.def: offset), in 8 vectors of 64 bytes:
 *
 *     vector g = | row 0: columns 4g .. 4g+3 | row 1: the same | .. | row 15 |
 *
 * stored in planes of 64 bytes, `low` bits first, then `high` bits:
 *
 *     low 8    8 planes, plane g = vector g
 *     low 4    4 planes, plane g = vector g in the low halves, vector g + 4 in the high halves
 *     low 2    2 planes, plane h = vectors 4h, 4h+1, 4h+2, 4h+3, two bits each, the first lowest
 *     high 2   2 planes, with the same order as low 2
 *     high 1   1 plane, bit g = vector g
 *
 * Scales: see cpu_scales. */
#ifndef CPU_ROWS16_H
#define CPU_ROWS16_H

#include "../kernels.h"

enum { CPU_GROUP = 16 /* rows */, CPU_PART = 256 /* columns */, CPU_PLANE = 64 /* bytes */ };

/* The form of a part's scales: for each 32 columns, or, for types with blocks of 256, for the whole
 * part. d, m: an f16 for each of 16 rows; sc, mn, c: a byte for each of 16 rows. */
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

/* Return 1 if the form has minima; if each half of a block has its own scale. */
static inline int cpu_scales_min(cpu_scales s) {
    return s == CPU_SCALES_F16_MIN || s == CPU_SCALES_SC8_MIN || s == CPU_SCALES_SC16_MIN;
}
static inline int cpu_scales_halves(cpu_scales s) {
    return s == CPU_SCALES_SC16 || s == CPU_SCALES_SC16_MIN;
}

/* Return the bytes of scales for 32 columns, and for 256 columns; one of them is 0. */
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

/* Return the bytes of the codes of a part with n columns, of the whole part, and of a group with k
 * columns. bits: low + high. */
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

/* Returns the bytes of n_rows rows with k columns; 0: the type has no such layout. */
size_t ggl_cpu_rows16_size(ggl_type type, int64_t n_rows, int64_t k);
/* Writes groups first .. last-1 of the matrix w to their places in dst, which is 64-byte aligned; w
 * need not be aligned. Uses p->interleave, or, if p or that is NULL, the type's unpack(), which is
 * slow and writes the same bytes. */
void ggl_cpu_rows16_pack(const cpu_product *p, void *dst, ggl_type type, const void *w,
                         size_t row_size, int64_t n_rows, int64_t k, int64_t first, int64_t last);

/* Tables of codes, as bytes with the type's offset added; unused entries are 0. */
extern const uint8_t ggl_cpu_table_IQ4[16], ggl_cpu_table_MXFP4[16], ggl_cpu_table_IQ1[16],
    ggl_cpu_table_IQ2[16], ggl_cpu_table_IQ3[16], ggl_cpu_table_IQ3S[16];

#endif
