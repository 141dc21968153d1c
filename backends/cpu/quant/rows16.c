#include "rows16.h"

#include <string.h>

#include "../scalar/scalar.h"

#define INLINE static inline __attribute__((always_inline))

/* The codes that a type can have, plus its offset. */
const uint8_t cpu_table_IQ4[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                   129, 141, 153, 166, 181, 197, 217, 241};
const uint8_t cpu_table_MXFP4[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};
const uint8_t cpu_table_IQ1[16] = {16 - 9, 16 - 7, 16 - 1, 16 + 1, 16 + 7, 16 + 9};
const uint8_t cpu_table_IQ2[16] = {64 - 43, 64 - 25, 64 - 8, 64 + 8, 64 + 25, 64 + 43};
const uint8_t cpu_table_IQ3[16] = {64 - 62, 64 - 52, 64 - 44, 64 - 36, 64 - 28, 64 - 20,
                                   64 - 12, 64 - 4,  64 + 4,  64 + 12, 64 + 20, 64 + 28,
                                   64 + 36, 64 + 44, 64 + 52, 64 + 62};
const uint8_t cpu_table_IQ3S[16] = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
#define cpu_table_NONE NULL

typedef struct layout {
    int offset, low, high; /* low 0: the type has no such layout */
    const uint8_t *table;
    cpu_scales scales;
    float unit;
} layout;

#define PANEL(panel, form, offset, max) enum { offset_##panel = offset };
#include "quant_types.def"

static const layout layouts[GGL_TYPE_LIMIT] = {
#define QTYPE(NAME, name, panel, low, high, table, scales, unit)                                   \
    [GGL_##NAME] = {offset_##panel, low, high, cpu_table_##table, CPU_SCALES_##scales, unit},
#include "quant_types.def"
};

size_t cpu_rows16_size(ggl_type type, int64_t n_rows, int64_t k) {
    const layout *l = &layouts[type];
    if (l->low == 0)
        return 0;
    return (size_t)((n_rows + CPU_GROUP - 1) / CPU_GROUP) *
           (size_t)cpu_group_size(k, l->low + l->high, l->scales);
}

/* --- codes ---------------------------------------------------------------------------------- */

/* Vectors v of a block, 8 of 64 bytes, into planes; low and high are known where it is expanded. */
INLINE void put_planes_of(uint8_t *restrict planes, const uint8_t *restrict v, const int low,
                          const int high) {
    enum { N = CPU_PLANE };
    uint8_t *restrict top = planes + low * N;
    if (low == 8)
        memcpy(planes, v, 8 * (size_t)N);
    for (int i = 0; low == 4 && i < 4 * N; i++)
        planes[i] = (uint8_t)((v[i] & 15) | v[i + 4 * N] << 4);
    for (int h = 0; low == 2 && h < 2; h++)
        for (int i = h * 4 * N; i < (h * 4 + 1) * N; i++)
            planes[i - h * 3 * N] = (uint8_t)((v[i] & 3) | (v[i + N] & 3) << 2 |
                                              (v[i + 2 * N] & 3) << 4 | (v[i + 3 * N] & 3) << 6);
    for (int h = 0; high == 2 && h < 2; h++)
        for (int i = h * 4 * N; i < (h * 4 + 1) * N; i++)
            top[i - h * 3 * N] =
                (uint8_t)((v[i] >> low & 3) | (v[i + N] >> low & 3) << 2 |
                          (v[i + 2 * N] >> low & 3) << 4 | (v[i + 3 * N] >> low & 3) << 6);
    for (int i = 0; high == 1 && i < N; i++) {
        int bits = 0;
        for (int g = 0; g < 8; g++)
            bits |= (v[i + g * N] >> low & 1) << g;
        top[i] = (uint8_t)bits;
    }
}

static void put_planes(uint8_t *planes, const uint8_t *v, const layout *l) {
    switch (10 * l->low + l->high) {
    case 80:
        put_planes_of(planes, v, 8, 0);
        break;
    case 42:
        put_planes_of(planes, v, 4, 2);
        break;
    case 41:
        put_planes_of(planes, v, 4, 1);
        break;
    case 40:
        put_planes_of(planes, v, 4, 0);
        break;
    case 21:
        put_planes_of(planes, v, 2, 1);
        break;
    default:
        put_planes_of(planes, v, 2, 0);
        break;
    }
}

/* The place of a code in a table; the first of equals. */
static uint8_t table_index(const uint8_t *table, uint8_t code) {
    uint8_t i = 0;
    while (i < 15 && table[i] != code)
        i++;
    return i;
}

/* --- scales --------------------------------------------------------------------------------- */

/* What one row's block brings to the stream: two halves and up to 32 bytes. */
typedef struct raw_scales {
    uint16_t d, m;
    uint8_t sc[16], mn[8];
} raw_scales;

/* Byte i of four packed in a word. */
static uint8_t byte_of(uint32_t word, int i) {
    return (uint8_t)(word >> 8 * i);
}

/* Of types without a case below: with a scale of 1 in its place, the block's scales are the bytes.
 */
static raw_scales raw_by_unpacking(ggl_type type, const uint8_t *p) {
    const ggl_type_info *info = ggl_type_get((int)type);
    const layout *l = &layouts[type];
    const int per_32 = l->scales == CPU_SCALES_SC16 ? 2 : 1;
    uint8_t block[256];
    raw_scales r = {.d = load16(p)};
    memcpy(block, p, info->size);
    if (type == GGL_IQ1_M) { /* the f16 lies in the upper four bits of the last four words */
        r.d = 0;
        for (int i = 0; i < 4; i++) {
            uint8_t *high = &block[info->size - 7 + 2 * (size_t)i];
            r.d |= (uint16_t)((*high >> 4) << 4 * i);
            *high = (uint8_t)((*high & 15) | (0x3c00 >> 4 * i & 15) << 4);
        }
    } else {
        block[0] = 0, block[1] = 0x3c;
    }
    for (int i = 0; i < 8 * per_32; i++) {
        ggl_codes c;
        info->unpack(block, i / per_32, &c);
        r.sc[i] = (uint8_t)(int8_t)(c.s[i % per_32] / l->unit);
    }
    return r;
}

/* The layouts of scales: ggml-lite/quant/quant.h. */
INLINE raw_scales raw_of(ggl_type type, const uint8_t *p) {
    raw_scales r = {0};
    uint32_t a, b, c;
    switch (type) {
    case GGL_Q4_1:
    case GGL_Q5_1:
        r.m = load16(p + 2);
        break;
    case GGL_MXFP4:
        r.sc[0] = p[0];
        return r;
    case GGL_Q2_K:
        r.d = load16(p + 80), r.m = load16(p + 82);
        memcpy(r.sc, p, 16);
        return r;
    case GGL_Q3_K:
        r.d = load16(p + 108);
        memcpy(&a, p + 96, 4), memcpy(&b, p + 100, 4), memcpy(&c, p + 104, 4);
        for (int i = 0; i < 16; i++) {
            uint8_t low = byte_of(i % 8 < 4 ? a : b, i % 4);
            r.sc[i] = (uint8_t)((i < 8 ? low & 15 : low >> 4) | (byte_of(c, i % 4) >> i / 4 * 2 & 3)
                                                                    << 4) -
                      32;
        }
        return r;
    case GGL_Q4_K:
    case GGL_Q5_K:
        r.m = load16(p + 2);
        memcpy(&a, p + 4, 4), memcpy(&b, p + 8, 4), memcpy(&c, p + 12, 4);
        for (int i = 0; i < 4; i++) {
            r.sc[i] = byte_of(a, i) & 63, r.mn[i] = byte_of(b, i) & 63;
            r.sc[4 + i] = (byte_of(c, i) & 15) | (byte_of(a, i) >> 6) << 4;
            r.mn[4 + i] = (uint8_t)(byte_of(c, i) >> 4 | (byte_of(b, i) >> 6) << 4);
        }
        break;
    case GGL_Q6_K:
        r.d = load16(p + 208);
        memcpy(r.sc, p + 192, 16);
        return r;
    case GGL_IQ4_XS:
        a = load16(p + 2);
        for (int i = 0; i < 8; i++)
            r.sc[i] = (uint8_t)(((p[4 + i / 2] >> i % 2 * 4 & 15) | (a >> 2 * i & 3) << 4) - 32);
        break;
    case GGL_TQ1_0:
        r.d = load16(p + 52);
        return r;
    case GGL_TQ2_0:
        r.d = load16(p + 64);
        return r;
    case GGL_Q4_0:
    case GGL_Q5_0:
    case GGL_Q8_0:
    case GGL_IQ4_NL:
        break;
    default:
        return raw_by_unpacking(type, p);
    }
    r.d = load16(p);
    return r;
}

static void put16(uint8_t *p, int row, uint16_t h) {
    memcpy(p + 2 * row, &h, sizeof h);
}

/* Row `row` of what the stream holds for one block of the type. */
INLINE void put_scales(uint8_t *p, int row, const raw_scales *r, const cpu_scales s) {
    const int with_min =
        s == CPU_SCALES_F16_MIN || s == CPU_SCALES_SC8_MIN || s == CPU_SCALES_SC16_MIN;
    const int n_sc = s == CPU_SCALES_SC8 || s == CPU_SCALES_SC8_MIN     ? 8
                     : s == CPU_SCALES_SC16 || s == CPU_SCALES_SC16_MIN ? 16
                                                                        : 0;
    if (s == CPU_SCALES_E8M0) {
        p[row] = r->sc[0];
        return;
    }
    put16(p, row, r->d);
    if (with_min)
        put16(p + 32, row, r->m);
    p += 32 * (1 + with_min);
    for (int i = 0; i < n_sc; i++)
        p[16 * i + row] = r->sc[i];
    for (int i = 0; s == CPU_SCALES_SC8_MIN && i < 8; i++)
        p[128 + 16 * i + row] = r->mn[i];
}

/* --- unpacked ------------------------------------------------------------------------------- */

void cpu_pack_blocks(ggl_type type, uint8_t *codes, float *scales, const uint8_t *w,
                     const size_t *row, int64_t n_blocks) {
    const ggl_type_info *info = ggl_type_get((int)type);
    const int n_sub = (int)info->block / 32;
    const bool halves = info->form == GGL_SCALE16 || info->form == GGL_SCALE16_MIN;
    const bool min = info->form == GGL_SCALE_MIN || info->form == GGL_SCALE16_MIN;
    for (int64_t b = 0; b < n_blocks; b++, codes += 8 * CPU_PLANE) {
        for (int r = 0; r < CPU_GROUP; r++) {
            ggl_codes c;
            info->unpack(w + row[r] + (size_t)(b / n_sub) * info->size, (int)(b % n_sub), &c);
            for (int i = 0; i < 32; i++)
                codes[i / 4 * CPU_PLANE + 4 * r + i % 4] = (uint8_t)(c.q[i] + layouts[type].offset);
            for (int h = 0; h <= halves; h++) {
                scales[h * CPU_GROUP + r] = c.s[h];
                if (min)
                    scales[(1 + halves + h) * CPU_GROUP + r] = c.m[h];
            }
        }
        scales += (1 + min) * (1 + halves) * CPU_GROUP;
    }
}

/* --- 256 columns at a time: they stay in the inner cache -------------------------------------- */

/* Some rows and columns of a matrix, and the groups that they become. */
typedef struct part {
    ggl_type type;
    const uint8_t *w; /* the first row's first column */
    size_t row_size;
    int n_rows;
    int64_t n;          /* columns */
    uint8_t *codes;     /* of the first group, for the first column */
    uint8_t *scales;    /* likewise */
    int64_t group_size; /* from one group to the next */
} part;

static int rows_of_group(const part *p, int group) {
    int n = p->n_rows - group * CPU_GROUP;
    return n < CPU_GROUP ? n : CPU_GROUP;
}

/* Codes by the definition of their type. */
static void codes_by_definition(const part *p) {
    const ggl_type_info *info = ggl_type_get((int)p->type);
    const layout *l = &layouts[p->type];
    const int n_sub = (int)info->block / 32;
    uint8_t *to = p->codes;
    for (int64_t b = 0; b < p->n / 32; b++, to += (l->low + l->high) * CPU_PLANE) {
        _Alignas(64) uint8_t v[8 * CPU_PLANE] = {0};
        for (int r = 0; r < p->n_rows; r++) {
            ggl_codes c;
            info->unpack(p->w + (size_t)r * p->row_size + (size_t)(b / n_sub) * info->size,
                         (int)(b % n_sub), &c);
            for (int i = 0; i < 32; i++) {
                uint8_t code = (uint8_t)(c.q[i] + l->offset);
                v[i / 4 * CPU_PLANE + 4 * r + i % 4] =
                    l->table ? table_index(l->table, code) : code;
            }
        }
        put_planes(to, v, l);
    }
}

/* Codes by the panels of an instruction set, which have them as bytes already. */
enum { MOST_GROUPS = 4, PANEL_SIZE = CPU_PART / 32 * (8 + 4) * CPU_PLANE * MOST_GROUPS };

static bool has_panels(const cpu_product *f) {
    return f && f->pack && f->panel_size(CPU_PART) <= PANEL_SIZE;
}

/* n blocks of a group of a panel; rows from n_rows on, which repeat another there, become zeros.
 * index: where a byte stands in the type's table. */
static void squeeze(uint8_t *to, uint8_t *panel, int64_t n, int n_rows, const layout *l,
                    const uint8_t *index) {
    for (; n > 0; n--, panel += 8 * CPU_PLANE) {
        for (int i = 0; l->table && i < 8 * CPU_PLANE; i++)
            panel[i] = index[panel[i]];
        put_planes(to, panel, l);
        for (int g = 0; g < l->low + l->high; g++, to += CPU_PLANE)
            if (n_rows < CPU_GROUP)
                memset(to + 4 * n_rows, 0, (size_t)(CPU_PLANE - 4 * n_rows));
    }
}

static void codes_by_panels(const cpu_product *f, const part *p, const uint8_t *index) {
    _Alignas(64) uint8_t panel[PANEL_SIZE];
    size_t group = f->panel_size(p->n) / (size_t)(f->panel_rows / CPU_GROUP);
    f->pack(panel, p->w, p->row_size, p->n_rows, p->n);
    for (int j = 0; j * CPU_GROUP < p->n_rows; j++)
        squeeze(p->codes + j * p->group_size, panel + (size_t)j * group, p->n / 32,
                rows_of_group(p, j), &layouts[p->type], index);
}

INLINE void scales_of(const part *p, const cpu_scales s) {
    const ggl_type_info *info = ggl_type_get((int)p->type);
    const int size = info->block == 32 ? cpu_scales_per_32(s) : cpu_scales_per_256(s);
    const int64_t n = p->n / info->block;
    for (int j = 0; j * CPU_GROUP < p->n_rows; j++) {
        uint8_t *to = p->scales + j * p->group_size;
        const uint8_t *row = p->w + (size_t)(j * CPU_GROUP) * p->row_size;
        for (int r = 0; r < rows_of_group(p, j); r++, row += p->row_size)
            for (int64_t b = 0; b < n; b++) {
                raw_scales raw = raw_of(p->type, row + (size_t)b * info->size);
                put_scales(to + b * size, r, &raw, s);
            }
    }
}

/* The usual kind by itself, known to the compiler. */
static void put_all_scales(const part *p) {
    if (layouts[p->type].scales == CPU_SCALES_F16)
        scales_of(p, CPU_SCALES_F16);
    else
        scales_of(p, layouts[p->type].scales);
}

/* --- all columns ------------------------------------------------------------------------------ */

void cpu_rows16_pack_by(const cpu_product *f, void *dst, ggl_type type, const void *w,
                        size_t row_size, int64_t n_rows, int64_t k, int64_t first, int64_t last) {
    const layout *l = &layouts[type];
    const int64_t size = cpu_group_size(k, l->low + l->high, l->scales);
    const int bits = l->low + l->high;
    const int64_t together = has_panels(f) ? f->panel_rows / CPU_GROUP : 1;
    uint8_t index[256];
    for (int i = 0; l->table && i < 256; i++)
        index[i] = table_index(l->table, (uint8_t)i);
    for (int64_t j = first; j < last; j += together) {
        const int64_t n_groups = last - j < together ? last - j : together;
        const int64_t rows = n_rows - j * CPU_GROUP;
        uint8_t *to = (uint8_t *)dst + j * size;
        part p = {.type = type, .row_size = row_size, .group_size = size};
        p.n_rows = (int)(rows < n_groups * CPU_GROUP ? rows : n_groups * CPU_GROUP);
        for (int64_t c = 0; c < k; c += CPU_PART) {
            p.w = (const uint8_t *)w + (size_t)(j * CPU_GROUP) * row_size + ggl_row_size(type, c);
            p.n = k - c < CPU_PART ? k - c : CPU_PART;
            p.codes = to + c / CPU_PART * cpu_part_size(CPU_PART, bits, l->scales);
            p.scales = p.codes + cpu_codes_size(p.n, bits);
            for (int64_t i = 0; i < n_groups; i++)
                memset(p.scales + i * size, 0,
                       (size_t)(cpu_part_size(p.n, bits, l->scales) - cpu_codes_size(p.n, bits)));
            if (has_panels(f))
                codes_by_panels(f, &p, index);
            else
                codes_by_definition(&p);
            put_all_scales(&p);
        }
    }
}

void cpu_rows16_pack(void *dst, ggl_type type, const void *w, size_t row_size, int64_t n_rows,
                     int64_t k, int64_t first, int64_t last) {
    cpu_rows16_pack_by(NULL, dst, type, w, row_size, n_rows, k, first, last);
}
