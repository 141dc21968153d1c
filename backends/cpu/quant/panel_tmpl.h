/* Panels of signed codes, for instructions that multiply matrices of bytes. They replace what is for
 * many columns; a few are multiplied as before. A file of such instructions includes this at its end,
 * and has before:
 *
 *   lanes_<isa>.h, rows16_vectors.h
 *   PANEL_GROUPS            groups of 16 rows in a panel
 *   PANEL_COLS              the most columns that multiply() takes
 *   PANEL_MIN_COLS          the least columns for which a panel pays
 *   record_size(t)          bytes of a block of 32 of a group, with its scales
 *   put_record(panel, j, n_groups, b, n_blocks, v, s, t)
 *                           stores block b of group j: codes v[8], signed, and scales s
 *   codes_less(v, offset)   makes codes signed
 *   multiply(y, x, n_cols, panel, n_rows, k, t) */
#ifndef CPU_QUANT_PANEL_H
#define CPU_QUANT_PANEL_H

#include "rows16_vectors.h"

/* Unpacks n_rows rows of a file, `runs` blocks of 32 at a time, which have `size` bytes. */
INLINE void pack_records(void *panel, const uint8_t *w, size_t row_size, int n_rows, int64_t k,
                         cpu_unpack_fn *unpack, const int runs, const size_t size,
                         const size_t meta, const shape_of t) {
    for (int j = 0; j < groups_of(n_rows); j++, w += CPU_GROUP * row_size) {
        _Alignas(64) uint8_t codes[CPU_MOST_RUNS * 8 * CPU_PLANE];
        _Alignas(64) float scales[CPU_MOST_RUNS * 4 * CPU_GROUP];
        size_t row[CPU_GROUP];
        const int rows = n_rows - j * CPU_GROUP;
        row_offsets(row, row_size, rows < CPU_GROUP ? rows : CPU_GROUP);
        const uint8_t *p = w + meta;
        for (int64_t b = 0; b < k / 32; b += runs, p += size) {
            const int n = (int)(k / 32 - b < runs ? k / 32 - b : runs);
            unpack(codes, scales, w, p, row, n);
            for (int i = 0; i < n; i++) {
                const uint8_t *q = codes + i * 8 * CPU_PLANE;
                const uint8_t *each = (const uint8_t *)scales + i * panel_scales(t);
                vcodes v[8];
                UNROLL for (int g = 0; g < 8; g++) v[g] =
                    codes_less(codes_load(q + g * CPU_PLANE), t.offset);
                put_record(panel, j, groups_of(n_rows), b + i, k / 32, v, scales_of(NULL, each, t),
                           t);
            }
        }
    }
}

/* Unpacks rows of the row-interleaved layout. */
INLINE void pack16_records(void *panel, const uint8_t *w, int n_rows, int64_t k, const shape_of t) {
    const int64_t size = cpu_group_size(k, t.layout), run = cpu_run_size(t.layout);
    for (int j = 0; j < groups_of(n_rows); j++, w += size) {
        const uint8_t *p = w + t.layout.row;
        for (int64_t b = 0; b < k / 32; b += t.layout.runs, p += cpu_block_size(t.layout))
            for (int i = 0; i < t.layout.runs; i++) {
                const uint8_t *q = p + t.layout.once + i * run,
                              *each = q + cpu_codes_size(t.layout);
                vcodes v[8];
                UNROLL for (int g = 0; g < 8; g++) v[g] = block_codes(q, g, t);
                if (t.shift) {
                    _Alignas(64) uint8_t codes[8 * CPU_PLANE];
                    UNROLL for (int g = 0; g < 8; g++) codes_store(codes + g * CPU_PLANE, v[g]);
                    add_shifts(codes, each, t.shift, t.halves);
                    UNROLL for (int g = 0; g < 8; g++) v[g] = codes_load(codes + g * CPU_PLANE);
                }
                UNROLL for (int g = 0; g < 8; g++) v[g] = codes_less(v[g], t.offset);
                put_record(panel, j, groups_of(n_rows), b + i, k / 32, v,
                           scales_of(t.layout.row ? w : p, each, t), t);
            }
    }
}

#define FORM(form)                                                                                 \
    static const shape_of shape_##form = {.min = MIN_##form, .halves = HALVES_##form};             \
    static size_t size_of_##form(int64_t k) {                                                      \
        return (size_t)(k / 32 * PANEL_GROUPS * record_size(shape_##form));                        \
    }                                                                                              \
    static void tile_##form(float *const *y, const void *const *x, int n_cols, const void *panel,  \
                            int n_rows, int64_t k) {                                               \
        for (int c = 0; c < n_cols; c += PANEL_COLS)                                               \
            multiply(y + c, x + c, n_cols - c < PANEL_COLS ? n_cols - c : PANEL_COLS, panel,       \
                     n_rows, k, shape_##form);                                                     \
    }
FORM(SCALE)
FORM(SCALE_MIN)
FORM(SCALE16)
FORM(SCALE16_MIN)

#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    static void pack_##name(void *panel, const void *w, size_t row_size, int n_rows, int64_t k) {  \
        const int runs = CPU_PART_RUNS(RUNS_##NAME);                                               \
        pack_records(panel, w, row_size, n_rows, k, ggl_cpu_unpacking[GGL_##NAME].unpack, runs,    \
                     runs / RUNS_##NAME * sizeof(struct block_##name), META_##NAME,                \
                     panel_##class);                                                               \
    }                                                                                              \
    static void pack16_##name(void *panel, const void *w, int n_rows, int64_t k) {                 \
        pack16_records(panel, w, n_rows, k, rows16_of_##name);                                     \
    }
#include "quant_types.def"

static void set_panel(cpu_product *p, ggl_type_form form,
                      void (*pack)(void *, const void *, size_t, int, int64_t),
                      void (*pack16)(void *, const void *, int, int64_t)) {
#define OF_FORM(form) [GGL_##form] = { size_of_##form, tile_##form }
    static const struct {
        size_t (*size)(int64_t k);
        void (*tile)(float *const *, const void *const *, int, const void *, int, int64_t);
    } of[] = {OF_FORM(SCALE), OF_FORM(SCALE_MIN), OF_FORM(SCALE16), OF_FORM(SCALE16_MIN)};
    p->panel_rows = PANEL_GROUPS * CPU_GROUP;
    p->min_cols = PANEL_MIN_COLS;
    p->panel_size = of[form].size;
    p->pack = pack;
    p->pack16 = pack16;
    p->tile = of[form].tile;
}

static void set_panels(cpu_kernels *k) {
#define QTYPE(NAME, name, class, low, high, table, scales, unit, shift, odd)                       \
    set_panel(&k->product[GGL_##NAME], (ggl_type_form)FORM_##NAME, pack_##name, pack16_##name);
#include "quant_types.def"
}

#endif
