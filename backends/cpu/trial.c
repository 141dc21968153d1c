#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_features.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/types.h"

enum { ROWS = 96, COLS = 48, K = 1536, ROUNDS = 5 };

/* A problem for one type, and the results of two kernels, each of which reads columns in its own form. */
typedef struct trial {
    ggl_type type;
    size_t row_size, column_size[2];
    char *w, *columns[2];
    void *panel;
    float (*y)[COLS][ROWS];
    bool ready; /* there was memory for all */
} trial;

static uint64_t random_bits(uint64_t *seed) {
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return *seed >> 33;
}

enum { MOST_BYTES = 512 }; /* of a block and what is before it */

/* Fills a row of one block with random bytes that are no NaN, infinity or huge number. */
static void make_block(const ggl_type_info *t, char *row, uint64_t *seed) {
    float v[256];
    bool usable = false;
    for (int tries = 0; !usable && tries < 1000; tries++) {
        for (size_t i = t->row_meta; i < t->row_meta + t->size; i++)
            row[i] = (char)random_bits(seed);
        usable = true;
        t->to_float(row, v, t->block);
        for (int i = 0; i < t->block; i++)
            usable = usable && fabsf(v[i]) < 1000;
    }
    if (!usable)
        memset(row, 0, t->row_meta + t->size);
}

/* Fills a row of single numbers with ones below 1024 of either sign, whose exponents are as likely as each other. Drawn like blocks, they
 * would take longer than their products. */
static void make_numbers(const ggl_type_info *t, char *row, uint64_t *seed) {
    float x[K];
    for (int i = 0; i < K; i++) {
        const uint32_t bits = (uint32_t)random_bits(seed), exponent = (bits >> 23) % 137,
                       number = bits << 31 | exponent << 23 | (bits & 0x7fffff);
        memcpy(&x[i], &number, sizeof number);
    }
    t->from_float(x, row, K);
}

static void make_row(const ggl_type_info *t, char *row, size_t row_size, uint64_t *seed) {
    if (t->block == 1) {
        make_numbers(t, row, seed);
        return;
    }
    char block[MOST_BYTES] = {0};
    const float scale = 0x1p-6f;
    const uint16_t half = ggl_f32_to_f16(scale);
    if (t->row_meta > 0) /* an f16, or an f32 */
        memcpy(block, t->row_meta == sizeof half ? (const void *)&half : (const void *)&scale,
               t->row_meta);
    memcpy(row, block, t->row_meta);
    for (size_t at = t->row_meta; at < row_size; at += t->size) {
        make_block(t, block, seed);
        memcpy(row + at, block + t->row_meta, t->size);
    }
}

static void trial_free(trial *t) {
    ggl_free(t->w);
    ggl_free(t->columns[0]);
    ggl_free(t->columns[1]);
    ggl_free(t->y);
    ggl_aligned_free(t->panel);
}

static trial trial_new(ggl_type type, const cpu_kernels *k, const cpu_product *const p[2]) {
    const ggl_type_info *info = ggl_type_get(type);
    const size_t a = p[0]->panel_size(K), b = p[1]->panel_size(K);
    trial t = {.type = type, .row_size = ggl_row_size(type, K)};
    uint64_t seed = 1;
    t.w = ggl_calloc(ROWS, t.row_size);
    t.y = ggl_calloc(2, sizeof *t.y);
    t.panel = ggl_aligned_calloc(64, a > b ? a : b);
    t.ready = t.w && t.y && t.panel;
    for (int i = 0; i < 2; i++) {
        t.column_size[i] = ggl_cpu_column_size(p[i]->columns, K);
        t.columns[i] = ggl_calloc(COLS, t.column_size[i]);
        t.ready = t.ready && t.columns[i];
    }
    for (size_t i = 0; t.ready && i < ROWS; i++)
        make_row(info, t.w + i * t.row_size, t.row_size, &seed);
    for (size_t c = 0; t.ready && c < COLS; c++) {
        float x[K];
        for (int i = 0; i < K; i++)
            x[i] = (float)random_bits(&seed) * 0x1p-30f - 1;
        for (int i = 0; i < 2; i++)
            ggl_cpu_column_make(k, p[i]->columns, t.columns[i] + c * t.column_size[i], x, K);
    }
    return t;
}

/* Multiplies as op_linear.c does, by the kernel that reads columns i. Returns the time in nanoseconds. */
static double time_of(const trial *t, const cpu_product *p, int i) {
    float(*result)[ROWS] = t->y[i];
    float *y[COLS];
    const void *x[COLS];
    const uint64_t begin = ggl_os_clock();
    for (int j = 0; j < ROWS; j += p->panel_rows) {
        const int n = ROWS - j < p->panel_rows ? ROWS - j : p->panel_rows;
        for (int c = 0; c < COLS; c++) {
            y[c] = result[c] + j;
            x[c] = t->columns[i] + (size_t)c * t->column_size[i];
        }
        p->pack(t->panel, t->w + (size_t)j * t->row_size, t->row_size, n, K);
        p->tile(y, x, COLS, t->panel, n, K);
    }
    return (double)(ggl_os_clock() - begin);
}

/* True if p is to be preferred to `other`. */
static bool passes(const cpu_kernels *k, ggl_type type, const cpu_product *p,
                   const cpu_product *other, bool timed) {
    const cpu_product *const both[] = {other, p};
    trial t = trial_new(type, k, both);
    double old = INFINITY, new = INFINITY;
    for (int round = 0; t.ready && round < (timed ? ROUNDS : 1); round++) {
        old = fmin(old, time_of(&t, other, 0));
        new = fmin(new, time_of(&t, p, 1));
    }
    const bool better =
        t.ready && (new < old || !timed) && memcmp(t.y[0], t.y[1], sizeof *t.y) == 0;
    trial_free(&t);
    return better;
}

/* Takes the panel, or all, if columns have another form. */
static void take_panel(cpu_product *p, const cpu_product *from) {
    if (p->columns != from->columns) {
        *p = *from;
        return;
    }
    p->panel_rows = from->panel_rows;
    p->panel_unit = from->panel_unit;
    p->min_cols = from->min_cols;
    p->panel_size = from->panel_size;
    p->pack = from->pack;
    p->pack16 = from->pack16;
    p->tile = from->tile;
}

static bool differ(const cpu_product *p, const cpu_product *other) {
    return other->tile && p->tile != other->tile;
}

int ggl_cpu_trial(cpu_kernels *k, const cpu_kernels *other, bool timed) {
    /* Types share kernels, so the verdict on a type holds for those after it with the same one. */
    const cpu_kernels all = *k;
    bool passed[GGL_TYPE_LIMIT] = {false};
    int kept = 0;
    for (int type = 0; type < GGL_TYPE_LIMIT; type++) {
        const cpu_product *p = &all.product[type];
        int first = 0;
        if (!differ(p, &other->product[type]))
            continue;
        while (all.product[first].tile != p->tile ||
               !differ(&all.product[first], &other->product[first]))
            first++;
        passed[type] = first < type ? passed[first]
                                    : passes(k, (ggl_type)type, p, &other->product[type], timed);
        kept += passed[type];
        if (!passed[type])
            take_panel(&k->product[type], &other->product[type]);
    }
    return kept;
}

uint32_t ggl_cpu_kernels_choose(cpu_kernels *k, uint32_t features, bool timed) {
    uint32_t chosen = features & ~(uint32_t)CPU_TRIED;
    ggl_cpu_kernels_init(k, chosen);
    for (uint32_t f = 1; f != 0; f <<= 1) {
        cpu_kernels with;
        if (!(features & f & CPU_TRIED))
            continue;
        ggl_cpu_kernels_init(&with, chosen | f);
        if (ggl_cpu_trial(&with, k, timed) > 0) {
            *k = with;
            chosen |= f;
        }
    }
    return chosen;
}
