/* The row-interleaved layout of quantized weights: 16 rows are interleaved, so that a vector of any
 * instruction set (one register of AVX-512, two of AVX2, four of NEON) has one row in each lane.
 *
 * A matrix consists of groups of 16 rows; missing rows of the last group are zeros. A group
 * consists of the rows' own scales, if the type has any (ggl_type_info.row_meta), as 16 f32, of the blocks of the type along its rows, for 16 rows each, then zeros up to a multiple
 * of 64 bytes. A block is the scales that it has once; then, for each of its runs of 32 columns, the
 * codes of the run and the scales of the run. So a product reads a matrix as one stretch of memory,
 * every byte in its turn: processors foresee nothing else as well.
 *
 * The codes of a run are unsigned bytes (quant_types.def: offset), in 8 vectors of 64 bytes:
 *
 *     vector g = | row 0: columns 4g .. 4g+3 | row 1: the same | .. | row 15 |
 *
 * stored in planes of 64 bytes, `low` bits first, then `high` bits:
 *
 *     low 8    8 planes, plane g = vector g
 *     low 4    4 planes, plane g = vector g in the low halves, vector g + 4 in the high halves
 *     low 2    2 planes, plane h = vectors 4h, 4h+1, 4h+2, 4h+3, two bits each, the first lowest
 *     low 0    none
 *     high 2   2 planes, with the same order as low 2
 *     high 1   1 plane, bit g = vector g */
#ifndef CPU_ROWS16_H
#define CPU_ROWS16_H

#include "../../../ggml-lite/quant/blocks.h"
#include "../kernels.h"

enum { CPU_GROUP = 16 /* rows */, CPU_PLANE = 64 /* bytes */ };

/* The forms in which scales are stored, for 16 rows at a time:
 *
 *     SCALES(NAME, form, row, once, each)   form as in ggl/types.def; `row` bytes for a group, `once` bytes
 *                                      for a block, and `each` bytes for every 32 columns of it
 *
 * d, m: an f16 for each of 16 rows; e, sc, mn, c: a byte for each of 16 rows.
 *
 *     F16        d                s = d
 *     F16_MIN    d, m             s = d, minimum -m
 *     E8M0       e                s = 2^(e - 128)
 *     E4M3       e[2] each 32     s = half of the float | exponent: 4 bits | mantissa: 3 bits |,
 *                                 for each half
 *     SC8        d, sc            s = d * sc, sc signed
 *     SC8_MIN    d, m, sc, mn     s = d * sc, minimum m * mn
 *     SC16       d, sc[2]         s = d * sc, sc signed, for each half
 *     SC16_MIN   d, m, c[2]       s = d * (c & 15), minimum m * (c >> 4), for each half
 *     ROW        row              s = row
 *     ROW8       row, sc          s = row * sc, sc signed
 *
 * If the type has shifts (quant_types.def), the lowest bit of sc says whether this part is shifted, and the scale is the
 * other bits, plus 1 if it is always odd. */
#define CPU_EACH_SCALES(SCALES)                                                                    \
    SCALES(F16, SCALE, 0, 32, 0)                                                                   \
    SCALES(F16_MIN, SCALE_MIN, 0, 64, 0)                                                           \
    SCALES(E8M0, SCALE, 0, 16, 0)                                                                  \
    SCALES(E4M3, SCALE16, 0, 0, 32)                                                                \
    SCALES(SC8, SCALE, 0, 32, 16)                                                                  \
    SCALES(SC8_MIN, SCALE_MIN, 0, 64, 32)                                                          \
    SCALES(SC16, SCALE16, 0, 32, 32)                                                               \
    SCALES(SC16_MIN, SCALE16_MIN, 0, 64, 32)                                                       \
    SCALES(ROW, SCALE, 64, 0, 0)                                                                   \
    SCALES(ROW8, SCALE, 64, 0, 16)

typedef enum cpu_scales {
    CPU_SCALES_F32, /* panels: f32[n][16] a run: s, or s and m, or both s, or both s and both m */
#define SCALES(NAME, form, row, once, each) CPU_SCALES_##NAME,
    CPU_EACH_SCALES(SCALES)
#undef SCALES
} cpu_scales;

enum {
#define SCALES(NAME, form, row, once, each)                                                        \
    CPU_FORM_##NAME = GGL_##form, CPU_ROW_##NAME = row, CPU_ONCE_##NAME = once,                    \
    CPU_EACH_##NAME = each,
    CPU_EACH_SCALES(SCALES)
#undef SCALES
};

/* Return 1 if the form has minima; if each half of a run has its own scale. */
static inline int cpu_form_min(ggl_type_form form) {
    return form == GGL_SCALE_MIN || form == GGL_SCALE16_MIN;
}
static inline int cpu_form_halves(ggl_type_form form) {
    return form == GGL_SCALE16 || form == GGL_SCALE16_MIN;
}

/* The properties of a type that determine the sizes of its layout. */
typedef struct cpu_layout {
    int bits;            /* of a code in the planes */
    int runs;            /* of 32 columns in a block */
    int row, once, each; /* bytes of scales of a group, of a block, and of each run, for 16 rows */
} cpu_layout;

/* The layout of a row of quant_types.def. */
#define CPU_LAYOUT(NAME, low, high, scales)                                                        \
    { (low) + (high), RUNS_##NAME, CPU_ROW_##scales, CPU_ONCE_##scales, CPU_EACH_##scales }

/* The runs of 32 columns that are unpacked or packed at a time: whole blocks of `runs`, of 256
 * columns if there are as many. */
#define CPU_PART_RUNS(runs) ((runs) > 8 ? (runs) : 8 / (runs) * (runs))

/* The most runs in a part, and in a block, of any type. */
union cpu_most_runs {
#define PLAIN(id, NAME, name, size, text)
#define QUANT(id, NAME, name, block, size, form, text) char name[CPU_PART_RUNS(RUNS_##NAME)];
#define QUANT_READ                                     QUANT
#include "ggl/types.def"
};
enum { CPU_MOST_RUNS = sizeof(union cpu_most_runs) };

/* Return the bytes of a run's codes, of a run, of a block, and of a group with k columns. */
static inline int64_t cpu_codes_size(cpu_layout l) {
    return l.bits * CPU_PLANE;
}
static inline int64_t cpu_run_size(cpu_layout l) {
    return cpu_codes_size(l) + l.each;
}
static inline int64_t cpu_block_size(cpu_layout l) {
    return l.once + l.runs * cpu_run_size(l);
}
static inline int64_t cpu_group_size(int64_t k, cpu_layout l) {
    return (l.row + k / 32 / l.runs * cpu_block_size(l) + 63) / 64 * 64;
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
    ggl_cpu_table_IQ2[16], ggl_cpu_table_IQ3[16], ggl_cpu_table_IQ3S[16], ggl_cpu_table_Q1[16],
    ggl_cpu_table_IQ2K[16], ggl_cpu_table_IQ3K[16], ggl_cpu_table_IQ2KL[16], ggl_cpu_table_IQ4K[16],
    ggl_cpu_table_IQ5K[32];
#define ggl_cpu_table_NONE NULL

#endif
