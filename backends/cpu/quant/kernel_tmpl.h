/* Products of quantized weights with quantized columns, written once for all instruction sets. A
 * file of an instruction set includes its lanes_<isa>.h, which defines a vector of 16 rows, and
 * then this file.
 *
 * In the integer sums of a block, and in the chain of fused multiply-adds over the blocks, each
 * lane is a row (docs/numeric.md, section 4). Weights are codes in planes, and scales
 * (rows16.h): either in the row-interleaved layout, or in a panel, to which rows of a file are
 * unpacked with 8-bit codes, and with f32 scales behind all codes.
 *
 *   rows16   multiplies a group of 16 rows in the row-interleaved layout with a few columns
 *   rows     multiplies 16 rows of a file, unpacked a part at a time, with a few columns
 *   tile     multiplies panels of LANES_GROUPS groups with many columns
 *
 * LANES_REGISTERS is the number of registers that hold 16 rows. LANES_FEW and LANES_MANY list the
 * numbers of columns for which code is generated, largest first; LANES_COLS is the largest of all.
 * LANES_SIGNED: codes of types that use more than 7 bits are converted to signed bytes, by
 * subtracting 128. A `const` parameter is a constant where the function is expanded, so that a
 * type's properties cost no branch. */
#ifndef CPU_QUANT_KERNEL_H
#define CPU_QUANT_KERNEL_H

#include <string.h>

#include "../prefetch.h"
#include "../unroll.h"
#include "rows16_vectors.h"

INLINE int32_t four_codes(const cpu_qblock *x, int g) {
    int32_t v;
    memcpy(&v, x->q + 4 * g, sizeof v);
    return v;
}

/* Returns how many sums of two products can be added exactly in 16 bits: 2 * 127 * max * n < 2^15;
 * 0 for codes above 127. */
INLINE int pairs_of(const int max) {
    return max <= 15 ? 8 : max <= 31 ? 4 : max <= 63 ? 2 : max <= 127 ? 1 : 0;
}

/* Multiplies block bx of n_cols columns with a run of n_groups groups, and adds the products to
 * the chains acc[column][group]. The codes and scales are those of the first group; those of
 * the next groups follow, `step` bytes apart. */
INLINE void add_block(vfloat acc[][LANES_GROUPS], const uint8_t *codes, const uint8_t *once,
                      const uint8_t *each, int64_t step, const int n_groups,
                      const cpu_qblock *const *x, const int n_cols, int64_t bx, const shape_of t) {
    const int signed_codes = LANES_SIGNED && t.max > 127, n = t.halves ? 4 : 8;
    block_scales w[LANES_GROUPS];
    vfloat part[LANES_COLS][LANES_GROUPS];
    UNROLL for (int h = 0; h <= t.halves; h++) {
        vsum sum[LANES_COLS][LANES_GROUPS];
        vpart pair[LANES_COLS][LANES_GROUPS];
        UNROLL for (int i = 0; i < n; i++) {
            vcodes v[LANES_GROUPS];
            UNROLL for (int j = 0; j < n_groups; j++) v[j] =
                block_codes(codes + j * step, h * 4 + i, t);
            UNROLL for (int c = 0; c < n_cols; c++) {
                vfour four = four_set(four_codes(&x[c][bx], h * 4 + i));
                int32_t all = t.halves ? x[c][bx].half[h] : x[c][bx].sum;
                UNROLL for (int j = 0; j < n_groups; j++)
                    dot_step(&sum[c][j], &pair[c][j], v[j], four, pairs_of(t.max), i, n,
                             signed_codes ? 0 : -t.offset * all);
            }
        }
        if (h == 0)
            UNROLL for (int j = 0; j < n_groups; j++) w[j] =
                scales_of(once + j * step, each + j * step, t);
        UNROLL for (int c = 0; c < n_cols; c++) UNROLL for (int j = 0; j < n_groups; j++) {
            vfloat f = float_of(sum[c][j]);
            if (t.shift) /* sums of integers below 2^24, so exact */
                f = float_fma(w[j].shift[h],
                              float_set((float)(t.halves ? x[c][bx].half[h] : x[c][bx].sum)), f);
            part[c][j] = h == 0 ? float_mul(f, w[j].s[0]) : float_fma(f, w[j].s[1], part[c][j]);
        }
    }
    UNROLL for (int c = 0; c < n_cols; c++) UNROLL for (int j = 0; j < n_groups; j++) {
        const cpu_qblock *q = &x[c][bx];
        for (int h = 0; t.min && t.halves && h < 2; h++)
            part[c][j] = float_fnma(w[j].m[h], float_set((float)q->half[h]), part[c][j]);
        acc[c][j] = float_fma(part[c][j], float_set(q->d), acc[c][j]);
        if (t.min && !t.halves)
            acc[c][j] = float_fnma(w[j].m[0], float_set(q->scaled_sum), acc[c][j]);
    }
}

/* --- a few columns -------------------------------------------------------------------------- */

/* Multiplies n_groups groups in the row-interleaved layout, the last of which has n_rows rows of y, of
 * which the first is j, with n_cols columns. */
INLINE void groups_rows16(float *const *y, int64_t j, const int n_groups, int n_rows,
                          const void *const *x, const int n_cols, const uint8_t *w, int64_t k,
                          cpu_reading reading, const shape_of t) {
    const int64_t size = cpu_run_size(t.layout), step = cpu_group_size(k, t.layout);
    int64_t ahead = reading.ahead;
    /* Where much is computed between two loads, the processor does not look far enough. */
    if (n_cols * LANES_REGISTERS * (1 + t.halves) > 2 && !reading.apart)
        ahead = AHEAD;
    vfloat acc[LANES_COLS][LANES_GROUPS];
    for (int c = 0; c < n_cols; c++)
        for (int g = 0; g < n_groups; g++)
            acc[c][g] = float_zero();
    const uint8_t *rows = w; /* the scales of rows, if the type has any */
    w += t.layout.row;
    for (int64_t b = 0; b < k / 32; b += t.layout.runs, w += cpu_block_size(t.layout))
        for (int i = 0; i < t.layout.runs; i++) {
            const uint8_t *run = w + t.layout.once + i * size;
            __asm__("" : "+r"(ahead)); /* so that one loop is made for both cases */
            if (__builtin_expect(ahead != 0, 1))
                UNROLL for (int g = 0; g < n_groups; g++) fetch(run + g * step + ahead, size);
            add_block(acc, run, t.layout.row ? rows : w, run + cpu_codes_size(t.layout), step,
                      n_groups, (const cpu_qblock *const *)x, n_cols, b + i, t);
        }
    for (int c = 0; c < n_cols; c++)
        for (int g = 0; g < n_groups; g++)
            float_store(y[c] + j + g * CPU_GROUP, acc[c][g], g < n_groups - 1 ? CPU_GROUP : n_rows);
}

/* The same with any number of columns. */
INLINE void all_columns(float *const *y, int64_t j, const int n_groups, int n_rows,
                        const void *const *x, int n_cols, const uint8_t *w, int64_t k,
                        cpu_reading reading, const shape_of t) {
    for (int c = 0, taken; c < n_cols; c += taken) {
        taken = 0;
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_cols - c >= (n)) {                                                         \
        groups_rows16(y + c, j, n_groups, n_rows, x + c, n, w, k, reading, t);                     \
        taken = (n);                                                                               \
    }
        LANES_FEW(TAKE)
#undef TAKE
    }
}

INLINE void kernel_rows16(float *const *y, const void *const *x, int n_cols, const void *w,
                          int64_t n_rows, int64_t k, cpu_reading reading, const shape_of t) {
    enum { TWO = LANES_GROUPS > 1 ? 2 : 1 };
    const int64_t size = cpu_group_size(k, t.layout);
    const uint8_t *p = w;
    int64_t j = 0;
    for (; TWO > 1 && reading.apart && j + TWO * CPU_GROUP <= n_rows;
         j += TWO * CPU_GROUP, p += TWO * size)
        all_columns(y, j, TWO, CPU_GROUP, x, n_cols, p, k, reading, t);
    for (; j < n_rows; j += CPU_GROUP, p += size)
        all_columns(y, j, 1, (int)(n_rows - j < CPU_GROUP ? n_rows - j : CPU_GROUP), x, n_cols, p,
                    k, reading, t);
}

/* How rows of a file are unpacked: `runs` runs of 32 columns at a time, which have `size` bytes; meta: the bytes
 * before a row's blocks. */
typedef struct file_part {
    cpu_unpack_fn *unpack;
    int runs;
    size_t size, meta;
} file_part;

/* Multiplies up to 16 rows of a file with n_cols columns. */
INLINE void group_rows(float *const *y, int64_t j, int n_rows, const void *const *x,
                       const int n_cols, const uint8_t *w, size_t row_size, int64_t k,
                       const shape_of t, const file_part f) {
    _Alignas(64) uint8_t codes[CPU_MOST_RUNS * 8 * CPU_PLANE];
    _Alignas(64) float scales[CPU_MOST_RUNS * 4 * CPU_GROUP];
    size_t done = 0;
    vfloat acc[LANES_COLS][LANES_GROUPS];
    const uint8_t *rows = w;
    size_t row[CPU_GROUP];
    row_offsets(row, row_size, n_rows);
    for (int c = 0; c < n_cols; c++)
        acc[c][0] = float_zero();
    w += f.meta;
    for (int64_t b = 0; b < k / 32; b += f.runs, w += f.size, done += f.size) {
        int64_t n = k / 32 - b < f.runs ? k / 32 - b : f.runs;
        /* Prefetch the next 16 rows, in step with these, to L2: they would overflow L1. */
        fetch_far(w + CPU_GROUP * row_size + (CPU_GROUP - 1) * done, CPU_GROUP * (int64_t)f.size);
        f.unpack(codes, scales, rows, w, row, n);
        for (int64_t i = 0; i < n; i++)
            add_block(acc, codes + i * 8 * CPU_PLANE, codes,
                      (const uint8_t *)scales + i * panel_scales(t), 0, 1,
                      (const cpu_qblock *const *)x, n_cols, b + i, t);
    }
    for (int c = 0; c < n_cols; c++)
        float_store(y[c] + j, acc[c][0], n_rows);
}

INLINE void kernel_rows(float *const *y, const void *const *x, int n_cols, const void *w,
                        size_t row_size, int64_t n_rows, int64_t k, const shape_of t,
                        const file_part f) {
    for (int64_t j = 0; j < n_rows; j += CPU_GROUP) {
        const uint8_t *p = (const uint8_t *)w + (size_t)j * row_size;
        int rows = (int)(n_rows - j < CPU_GROUP ? n_rows - j : CPU_GROUP);
        for (int c = 0, taken; c < n_cols; c += taken) {
            taken = 0;
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_cols - c >= (n)) {                                                         \
        group_rows(y + c, j, rows, x + c, n, p, row_size, k, t, f);                                \
        taken = (n);                                                                               \
    }
            LANES_FEW(TAKE)
#undef TAKE
        }
    }
}

/* --- panels --------------------------------------------------------------------------------- */

/* Returns the bytes of a group in a panel: 8 planes for each block, then the scales. */
INLINE int64_t panel_step(int64_t k, const shape_of t) {
    return k / 32 * (8 * CPU_PLANE + panel_scales(t));
}

INLINE void panel_columns(float *const *y, const void *const *x, const int n_cols,
                          const uint8_t *panel, int n_rows, int64_t k, const shape_of t) {
    const int64_t step = panel_step(k, t);
    const uint8_t *scales = panel + k / 32 * 8 * CPU_PLANE;
    vfloat acc[LANES_COLS][LANES_GROUPS];
    for (int c = 0; c < n_cols; c++)
        for (int j = 0; j < LANES_GROUPS; j++)
            acc[c][j] = float_zero();
    for (int64_t b = 0; b < k / 32; b++)
        add_block(acc, panel + b * 8 * CPU_PLANE, scales, scales + b * panel_scales(t), step,
                  LANES_GROUPS, (const cpu_qblock *const *)x, n_cols, b, t);
    for (int c = 0; c < n_cols; c++)
        for (int j = 0; j < LANES_GROUPS; j++) {
            int rows = n_rows - j * CPU_GROUP;
            if (rows > 0)
                float_store(y[c] + j * CPU_GROUP, acc[c][j], rows < CPU_GROUP ? rows : CPU_GROUP);
        }
}

INLINE void kernel_tile(float *const *y, const void *const *x, int n_cols, const void *panel,
                        int n_rows, int64_t k, const shape_of t) {
    for (int c = 0, taken; c < n_cols; c += taken) {
        taken = 0;
#define TAKE(n)                                                                                    \
    if (taken == 0 && n_cols - c >= (n)) {                                                         \
        panel_columns(y + c, x + c, n, panel, n_rows, k, t);                                       \
        taken = (n);                                                                               \
    }
        if (t.halves) {
            LANES_MANY_HALVES(TAKE)
        } else {
            LANES_MANY(TAKE)
        }
#undef TAKE
    }
}

/* Unpacks n_rows rows of a file to a panel. */
static void pack_panel(void *panel, const void *w, size_t row_size, int n_rows, int64_t k,
                       int64_t step, cpu_unpack_fn *unpack, size_t meta) {
    for (int j = 0; j < LANES_GROUPS; j++) { /* groups without a row repeat the last row */
        int first = j * CPU_GROUP < n_rows ? j * CPU_GROUP : n_rows - 1;
        uint8_t *p = (uint8_t *)panel + j * step;
        size_t row[CPU_GROUP];
        row_offsets(row, row_size, n_rows - first < CPU_GROUP ? n_rows - first : CPU_GROUP);
        const uint8_t *rows = (const uint8_t *)w + (size_t)first * row_size;
        unpack(p, (float *)(p + k / 32 * 8 * CPU_PLANE), rows, rows + meta, row, k / 32);
    }
}

/* Unpacks rows of the row-interleaved layout to a panel. */
INLINE void kernel_pack16(void *panel, const void *w, int n_rows, int64_t k, const shape_of t) {
    const int64_t size = cpu_group_size(k, t.layout), run = cpu_run_size(t.layout);
    const int n_groups = (n_rows + CPU_GROUP - 1) / CPU_GROUP;
    for (int j = 0; j < LANES_GROUPS; j++) {
        const uint8_t *p = (const uint8_t *)w + (j < n_groups ? j : n_groups - 1) * size;
        uint8_t *codes = (uint8_t *)panel + j * panel_step(k, t);
        float *to = (float *)(codes + k / 32 * 8 * CPU_PLANE);
        const uint8_t *rows = p;
        p += t.layout.row;
        for (int64_t b = 0; b < k / 32; b += t.layout.runs, p += cpu_block_size(t.layout))
            for (int i = 0; i < t.layout.runs; i++, codes += 8 * CPU_PLANE) {
                const uint8_t *q = p + t.layout.once + i * run;
                const uint8_t *each = q + cpu_codes_size(t.layout);
                for (int g = 0; g < 8; g++)
                    codes_store(codes + g * CPU_PLANE, block_codes(q, g, t));
                add_shifts(codes, each, t.shift, t.halves);
                to = store_scales(to, scales_of(t.layout.row ? rows : p, each, t), t);
            }
    }
}

/* --- kernels for each panel and type ---------------------------------------------------------- */

#define PANEL(panel, form, offset, max)                                                            \
    static void rows_of_##panel(float *const *y, const void *const *x, int n_cols, const void *w,  \
                                size_t row_size, int64_t n_rows, int64_t k, file_part f) {         \
        kernel_rows(y, x, n_cols, w, row_size, n_rows, k, panel_##panel, f);                       \
    }                                                                                              \
    static size_t size_of_##panel(int64_t k) {                                                     \
        return (size_t)panel_step(k, panel_##panel) * LANES_GROUPS;                                \
    }                                                                                              \
    static void tile_##panel(float *const *y, const void *const *x, int n_cols, const void *p,     \
                             int n_rows, int64_t k) {                                              \
        kernel_tile(y, x, n_cols, p, n_rows, k, panel_##panel);                                    \
    }
#include "quant_types.def"

#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    static void rows_##name(float *const *y, const void *const *x, int n_cols, const void *w,      \
                            size_t row_size, int64_t n_rows, int64_t k) {                          \
        const int runs = CPU_PART_RUNS(RUNS_##NAME);                                               \
        const size_t size = runs / RUNS_##NAME * sizeof(struct block_##name);                      \
        rows_of_##class(                                                                           \
            y, x, n_cols, w, row_size, n_rows, k,                                                  \
            (file_part){ggl_cpu_unpacking[GGL_##NAME].unpack, runs, size, META_##NAME});           \
    }                                                                                              \
    static void rows16_##name(float *const *y, const void *const *x, int n_cols, const void *w,    \
                              int64_t n_rows, int64_t k, cpu_reading reading) {                    \
        kernel_rows16(y, x, n_cols, w, n_rows, k, reading, rows16_of_##name);                      \
    }                                                                                              \
    static void pack_##name(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        pack_panel(panel, w, row_size, n_rows, k, panel_step(k, panel_##class),                    \
                   ggl_cpu_unpacking[GGL_##NAME].unpack, META_##NAME);                             \
    }                                                                                              \
    static void pack16_##name(void *panel, const void *w, int n_rows, int64_t k) {                 \
        kernel_pack16(panel, w, n_rows, k, rows16_of_##name);                                      \
    }
#include "quant_types.def"

static void fill_products(cpu_kernels *k) {
#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    k->product[GGL_##NAME] = (cpu_product){.columns = CPU_COLUMNS_Q8,                              \
                                           .rows = rows_##name,                                    \
                                           .rows16 = rows16_##name,                                \
                                           .interleave = ggl_cpu_unpacking[GGL_##NAME].interleave, \
                                           .panel_rows = LANES_GROUPS * CPU_GROUP,                 \
                                           .panel_unit = 32,                                       \
                                           .min_cols = LANES_MIN_PANEL,                            \
                                           .panel_size = size_of_##class,                          \
                                           .pack = pack_##name,                                    \
                                           .pack16 = pack16_##name,                                \
                                           .tile = tile_##class};
#include "quant_types.def"
}

#endif
