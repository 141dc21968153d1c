#include <string.h>

#include "../../../ggml-lite/quant/raw_scales.h"
#include "ggl/internal/types.h"
#include "../unroll.h"
#include "rows16.h"

/* The codes that a type can have, plus its offset. For types that store signs separately: positive
 * codes ascend, and the negative of entry i is at the complement of i, all its bits inverted. */
const uint8_t ggl_cpu_table_IQ4[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                       129, 141, 153, 166, 181, 197, 217, 241};
const uint8_t ggl_cpu_table_MXFP4[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                         16, 15, 14, 13, 12, 10, 8,  4};
const uint8_t ggl_cpu_table_IQ1[16] = {16 - 9, 16 - 7, 16 - 1, 16 + 1, 16 + 7, 16 + 9};
const uint8_t ggl_cpu_table_IQ2[16] = {64 + 8, 64 + 25, 64 + 43, 0, 0, 64 - 43, 64 - 25, 64 - 8};
const uint8_t ggl_cpu_table_IQ3[16] = {64 + 4,  64 + 12, 64 + 20, 64 + 28, 64 + 36, 64 + 44,
                                       64 + 52, 64 + 62, 64 - 62, 64 - 52, 64 - 44, 64 - 36,
                                       64 - 28, 64 - 20, 64 - 12, 64 - 4};
const uint8_t ggl_cpu_table_IQ3S[16] = {16 + 1,  16 + 3,  16 + 5,  16 + 7,  16 + 9,  16 + 11,
                                        16 + 13, 16 + 15, 16 - 15, 16 - 13, 16 - 11, 16 - 9,
                                        16 - 7,  16 - 5,  16 - 3,  16 - 1};
const uint8_t ggl_cpu_table_Q1[16] = {1 - 1, 1 + 1};
const uint8_t ggl_cpu_table_IQ2K[16] = {32 - 31, 32 - 13, 32 + 1, 32 + 17};
const uint8_t ggl_cpu_table_IQ3K[16] = {64 - 63, 64 - 40, 64 - 23, 64 - 10,
                                        64 + 1,  64 + 13, 64 + 28, 64 + 47};
const uint8_t ggl_cpu_table_IQ2KL[16] = {64 - 63, 64 - 40, 64 - 23, 64 - 10,
                                         64 + 1,  64 + 13, 64 + 28, 64 + 47};
const uint8_t ggl_cpu_table_IQ4K[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                        129, 141, 153, 166, 181, 197, 217, 241};
const uint8_t ggl_cpu_table_IQ5K[32] = {2,   14,  25,  36,  45,  54,  63,  71,  78,  85,  92,
                                        98,  104, 110, 116, 122, 127, 133, 139, 145, 151, 157,
                                        164, 171, 179, 187, 196, 205, 215, 225, 237, 249};

/* Up to 16 rows of a part of a matrix, and their destination. They fit in the L1 cache. */
typedef struct part {
    ggl_type type;
    const uint8_t *w; /* the first row's first column */
    size_t row_size;
    int n_rows;
    int64_t n;   /* columns */
    uint8_t *to; /* blocks (rows16.h) */
} part;

/* --- scales ----------------------------------------------------------------------------------- */

static inline void put16(uint8_t *p, int row, uint16_t h) {
    memcpy(p + 2 * row, &h, sizeof h);
}

/* Writes the scales of one block of row `row` to p, the place of this block of 16 rows. */
INLINE void put_raw(uint8_t *p, int row, raw_scales r, const cpu_scales s, const cpu_layout l) {
    if (s == CPU_SCALES_E8M0)
        p[row] = (uint8_t)r.d;
    if (l.once >= 32)
        put16(p, row, r.d);
    if (l.once >= 64)
        put16(p + 32, row, r.m);
    const int n_min = s == CPU_SCALES_SC8_MIN, n_sc = l.each / 16 - n_min; /* of a run */
    p += l.once + cpu_codes_size(l) + row;
    UNROLL for (int i = 0; i < l.runs; i++, p += cpu_run_size(l)) {
        UNROLL for (int h = 0; h < n_sc; h++) {
            const int at = i * n_sc + h;
            p[16 * h] = (uint8_t)(r.sc[at / 8] >> at % 8 * 8);
        }
        if (n_min)
            p[16 * n_sc] = (uint8_t)(r.mn >> 8 * i);
    }
}

/* Writes all scales of the part. Expanded for each type, with all arguments but p constant. */
INLINE void put_all(const part *p, raw_fn *raw, const cpu_scales s, const cpu_layout l,
                    const size_t block) {
    const int64_t n = p->n / (32 * l.runs);
    for (int r = 0; r < p->n_rows; r++)
        for (int64_t b = 0; b < n; b++)
            put_raw(p->to + b * cpu_block_size(l), r,
                    raw(p->w + (size_t)r * p->row_size + (size_t)b * block), s, l);
}

#define PANEL(panel, form, offset, max) enum { offset_##panel = offset, form_##panel = GGL_##form };
/* A row of quant_types.def that types.def contradicts does not compile. The last check finds too
 * few bits or scales: the layout must have room for all that a block stores. */
#define QTYPE(NAME, name, panel, low, high, table, scales, unit, shift, odd)                       \
    _Static_assert((int)FORM_##NAME == (int)form_##panel,                                          \
                   #name ": types.def and the panel " #panel " differ in their form");             \
    _Static_assert((int)FORM_##NAME == (int)CPU_FORM_##scales,                                     \
                   #name ": types.def and the scales " #scales " differ in their form");           \
    _Static_assert(CPU_ONCE_##scales + CPU_ROW_##scales < 32 || CPU_EACH_##scales == 0 ||          \
                       RUNS_##NAME == 8,                                                           \
                   #name ": the scales " #scales " are those of blocks of 256");                   \
    _Static_assert((META_##NAME > 0) == (CPU_ROW_##scales > 0), #name                              \
                   ": types.def and the scales " #scales " differ in whether rows have one");      \
    _Static_assert(CPU_EACH_##scales / 16 * RUNS_##NAME <= 16,                                     \
                   #name ": raw_scales has room for 16 scales");                                   \
    _Static_assert(RUNS_##NAME * (((low) + (high)) * CPU_PLANE + CPU_EACH_##scales) +              \
                           CPU_ONCE_##scales >=                                                    \
                       CPU_GROUP * sizeof(struct block_##name),                                    \
                   #name ": its bits and scales are fewer than a block has");                      \
    static void put_scales_##name(const part *p) {                                                 \
        put_all(p, raw_##name, CPU_SCALES_##scales,                                                \
                (cpu_layout)CPU_LAYOUT(NAME, low, high, scales), sizeof(struct block_##name));     \
    }
#include "quant_types.def"

typedef struct type_layout {
    int offset, low, high, shift;
    const uint8_t *table;
    cpu_layout size;
    raw_fn *raw;
    void (*put_scales)(const part *p); /* NULL: the type has no such layout */
} type_layout;

static const type_layout layouts[GGL_TYPE_LIMIT] = {
#define QTYPE(NAME, name, panel, low, high, table, scales, unit, shift, odd)                       \
    [GGL_##NAME] = {offset_##panel,                                                                \
                    low,                                                                           \
                    high,                                                                          \
                    shift,                                                                         \
                    ggl_cpu_table_##table,                                                         \
                    CPU_LAYOUT(NAME, low, high, scales),                                           \
                    raw_##name,                                                                    \
                    put_scales_##name},
#include "quant_types.def"
};

/* --- codes by the type's unpack() ------------------------------------------------------------- */

/* Returns the first index of the code in the table, whose last entry is `last`. */
static uint8_t table_index(const uint8_t *table, uint8_t code, int last) {
    uint8_t i = 0;
    while (i < last && table[i] != code)
        i++;
    return i;
}

/* Returns what is added to the codes of half h of run i of a block, as its scales say. */
static int shift_of(const type_layout *l, const uint8_t *block, int i, int h) {
    const int n_sc = l->size.each / 16, at = i * n_sc + (n_sc > 1 ? h : 0);
    return l->shift && l->raw(block).sc[at / 8] >> at % 8 * 8 & 1 ? l->shift : 0;
}

/* Writes byte i of vector g of a block to the planes, whose bits for it are 0 before. */
static void put_code(uint8_t *planes, const type_layout *l, int g, int i, uint8_t code) {
    uint8_t *top = planes + l->low * CPU_PLANE + i;
    uint8_t high = (uint8_t)(code >> l->low);
    planes += i;
    if (l->low == 8)
        planes[g * CPU_PLANE] = code;
    else if (l->low == 4)
        planes[g % 4 * CPU_PLANE] |= (uint8_t)((code & 15) << g / 4 * 4);
    else if (l->low == 2)
        planes[g / 4 * CPU_PLANE] |= (uint8_t)((code & 3) << g % 4 * 2);
    if (l->high == 2)
        top[g / 4 * CPU_PLANE] |= (uint8_t)(high << g % 4 * 2);
    if (l->high == 1)
        *top |= (uint8_t)(high << g);
}

/* Writes all codes of the part. */
static void codes_by_definition(const part *p) {
    const ggl_type_info *info = ggl_type_get((int)p->type);
    const type_layout *l = &layouts[p->type];
    const int runs = l->size.runs;
    for (int64_t b = 0; b < p->n / 32; b++) {
        uint8_t *planes = p->to + b / runs * cpu_block_size(l->size) + l->size.once +
                          b % runs * cpu_run_size(l->size);
        memset(planes, 0, (size_t)cpu_codes_size(l->size));
        for (int r = 0; r < p->n_rows; r++) {
            const uint8_t *block = p->w + (size_t)r * p->row_size + (size_t)(b / runs) * info->size;
            const int entries = l->low + l->high == 5 ? 32 : 16;
            ggl_codes c;
            info->unpack(block, (int)(b % runs), &c);
            for (int i = 0; i < 32; i++) {
                uint8_t code =
                    (uint8_t)(c.q[i] + l->offset - shift_of(l, block, (int)(b % runs), i / 16));
                put_code(planes, l, i / 4, 4 * r + i % 4,
                         l->table ? table_index(l->table, code, entries - 1) : code);
            }
        }
    }
}

/* --- whole matrices --------------------------------------------------------------------------- */

size_t ggl_cpu_rows16_size(ggl_type type, int64_t n_rows, int64_t k) {
    const type_layout *l = &layouts[type];
    if (!l->put_scales)
        return 0;
    return (size_t)((n_rows + CPU_GROUP - 1) / CPU_GROUP) * (size_t)cpu_group_size(k, l->size);
}

void ggl_cpu_rows16_pack(const cpu_product *f, void *dst, ggl_type type, const void *w,
                         size_t row_size, int64_t n_rows, int64_t k, int64_t first, int64_t last) {
    const type_layout *l = &layouts[type];
    const int64_t columns = 32 * CPU_PART_RUNS(l->size.runs), size = cpu_group_size(k, l->size);
    const int64_t used = l->size.row + k / 32 / l->size.runs * cpu_block_size(l->size);
    const ggl_type_info *info = ggl_type_get((int)type);
    for (int64_t j = first; j < last; j++) {
        const uint8_t *row = (const uint8_t *)w + (size_t)(j * CPU_GROUP) * row_size;
        const int64_t rows = n_rows - j * CPU_GROUP;
        part p = {.type = type, .row_size = row_size};
        p.n_rows = (int)(rows < CPU_GROUP ? rows : CPU_GROUP);
        p.to = (uint8_t *)dst + j * size;
        const int64_t from = p.n_rows < CPU_GROUP ? 0 : used; /* scales of missing rows, too */
        memset(p.to + from, 0, (size_t)(size - from));
        for (int r = 0; l->size.row > 0 && r < p.n_rows; r++)
            ((float *)(void *)p.to)[r] = ggl_row_scale(info, row + (size_t)r * row_size);
        p.to += l->size.row;
        for (int64_t c = 0; c < k; c += columns) {
            p.w = row + ggl_row_size(type, c);
            p.n = k - c < columns ? k - c : columns;
            if (f && f->interleave)
                f->interleave(p.to, p.w, row_size, p.n_rows, p.n);
            else
                codes_by_definition(&p);
            l->put_scales(&p);
            p.to += p.n / 32 / l->size.runs * cpu_block_size(l->size);
        }
    }
}
