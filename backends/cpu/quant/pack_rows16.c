#include <string.h>

#include "scales.h"

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
#define ggl_cpu_table_NONE NULL

/* Up to 16 rows and 256 columns of a matrix, and their destination. They fit in the L1 cache. */
typedef struct part {
    ggl_type type;
    const uint8_t *w; /* the first row's first column */
    size_t row_size;
    int n_rows;
    int64_t n; /* columns */
    uint8_t *codes, *scales;
} part;

/* --- scales ----------------------------------------------------------------------------------- */

static inline void put16(uint8_t *p, int row, uint16_t h) {
    memcpy(p + 2 * row, &h, sizeof h);
}

/* Writes the scales of one block of row `row` to p, the place for 16 rows of scales of this
 * block. */
static inline void put_raw(uint8_t *p, int row, raw_scales r, cpu_scales s) {
    if (s == CPU_SCALES_E8M0) {
        p[row] = (uint8_t)r.d;
        return;
    }
    put16(p, row, r.d);
    if (cpu_scales_min(s))
        put16(p + 32, row, r.m);
    if (cpu_scales_per_32(s) || s == CPU_SCALES_D)
        return;
    p += 32 * (1 + cpu_scales_min(s)) + row;
    for (int i = 0; i < 8; i++)
        p[16 * i] = (uint8_t)(r.sc[0] >> 8 * i);
    for (int i = 0; cpu_scales_halves(s) && i < 8; i++)
        p[128 + 16 * i] = (uint8_t)(r.sc[1] >> 8 * i);
    for (int i = 0; s == CPU_SCALES_SC8_MIN && i < 8; i++)
        p[128 + 16 * i] = (uint8_t)(r.mn >> 8 * i);
}

/* Writes all scales of the part. Expanded for each type, with all arguments but p constant. */
static inline __attribute__((always_inline)) void put_all(const part *p, raw_fn *raw,
                                                          const cpu_scales s, const size_t block) {
    const int per_32 = cpu_scales_per_32(s), size = per_32 ? per_32 : cpu_scales_per_256(s);
    const int64_t n = p->n / (per_32 ? 32 : 256);
    for (int r = 0; r < p->n_rows; r++)
        for (int64_t b = 0; b < n; b++)
            put_raw(p->scales + b * size, r,
                    raw(p->w + (size_t)r * p->row_size + (size_t)b * block), s);
}

#define PANEL(panel, form, offset, max) enum { offset_##panel = offset };
#define QTYPE(NAME, name, panel, low, high, table, scales, unit)                                   \
    static void put_scales_##name(const part *p) {                                                 \
        put_all(p, raw_##name, CPU_SCALES_##scales, sizeof(struct block_##name));                  \
    }
#include "quant_types.def"

typedef struct layout {
    int offset, low, high; /* low 0: the type has no such layout */
    const uint8_t *table;
    cpu_scales scales;
    void (*put_scales)(const part *p);
} layout;

static const layout layouts[GGL_TYPE_LIMIT] = {
#define QTYPE(NAME, name, panel, low, high, table, scales, unit)                                   \
    [GGL_##NAME] = {offset_##panel,   low, high, ggl_cpu_table_##table, CPU_SCALES_##scales,       \
                    put_scales_##name},
#include "quant_types.def"
};

/* --- codes by the type's unpack() ------------------------------------------------------------- */

/* Returns the first index of the code in the table. */
static uint8_t table_index(const uint8_t *table, uint8_t code) {
    uint8_t i = 0;
    while (i < 15 && table[i] != code)
        i++;
    return i;
}

/* Writes byte i of vector g of a block to the planes, whose bits for it are 0 before. */
static void put_code(uint8_t *planes, const layout *l, int g, int i, uint8_t code) {
    uint8_t *top = planes + l->low * CPU_PLANE + i;
    uint8_t high = (uint8_t)(code >> l->low);
    planes += i;
    if (l->low == 8)
        planes[g * CPU_PLANE] = code;
    else if (l->low == 4)
        planes[g % 4 * CPU_PLANE] |= (uint8_t)((code & 15) << g / 4 * 4);
    else
        planes[g / 4 * CPU_PLANE] |= (uint8_t)((code & 3) << g % 4 * 2);
    if (l->high == 2)
        top[g / 4 * CPU_PLANE] |= (uint8_t)(high << g % 4 * 2);
    if (l->high == 1)
        *top |= (uint8_t)(high << g);
}

/* Writes all codes of the part. */
static void codes_by_definition(const part *p) {
    const ggl_type_info *info = ggl_type_get((int)p->type);
    const layout *l = &layouts[p->type];
    const int n_sub = (int)info->block / 32;
    const int64_t size = (l->low + l->high) * CPU_PLANE;
    memset(p->codes, 0, (size_t)(p->n / 32 * size));
    for (int64_t b = 0; b < p->n / 32; b++)
        for (int r = 0; r < p->n_rows; r++) {
            ggl_codes c;
            info->unpack(p->w + (size_t)r * p->row_size + (size_t)(b / n_sub) * info->size,
                         (int)(b % n_sub), &c);
            for (int i = 0; i < 32; i++) {
                uint8_t code = (uint8_t)(c.q[i] + l->offset);
                put_code(p->codes + b * size, l, i / 4, 4 * r + i % 4,
                         l->table ? table_index(l->table, code) : code);
            }
        }
}

/* --- whole matrices --------------------------------------------------------------------------- */

size_t ggl_cpu_rows16_size(ggl_type type, int64_t n_rows, int64_t k) {
    const layout *l = &layouts[type];
    if (l->low == 0)
        return 0;
    return (size_t)((n_rows + CPU_GROUP - 1) / CPU_GROUP) *
           (size_t)cpu_group_size(k, l->low + l->high, l->scales);
}

void ggl_cpu_rows16_pack(const cpu_product *f, void *dst, ggl_type type, const void *w,
                         size_t row_size, int64_t n_rows, int64_t k, int64_t first, int64_t last) {
    const layout *l = &layouts[type];
    const int bits = l->low + l->high;
    for (int64_t j = first; j < last; j++) {
        const uint8_t *row = (const uint8_t *)w + (size_t)(j * CPU_GROUP) * row_size;
        const int64_t rows = n_rows - j * CPU_GROUP;
        part p = {.type = type, .row_size = row_size};
        p.n_rows = (int)(rows < CPU_GROUP ? rows : CPU_GROUP);
        p.codes = (uint8_t *)dst + j * cpu_group_size(k, bits, l->scales);
        for (int64_t c = 0; c < k; c += CPU_PART) {
            p.w = row + ggl_row_size(type, c);
            p.n = k - c < CPU_PART ? k - c : CPU_PART;
            p.scales = p.codes + cpu_codes_size(p.n, bits);
            uint8_t *end = p.codes + cpu_part_size(p.n, bits, l->scales);
            memset(p.scales, 0, (size_t)(end - p.scales));
            if (f && f->interleave)
                f->interleave(p.codes, p.w, row_size, p.n_rows, p.n);
            else
                codes_by_definition(&p);
            l->put_scales(&p);
            p.codes = end;
        }
    }
}
