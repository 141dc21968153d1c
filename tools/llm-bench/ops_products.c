/* llm-bench ops: products of matrices, in each way that an instruction set has. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backends/cpu/quant/rows16.h"
#include "common/machine.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/types.h"
#include "limits.h"
#include "ops.h"

enum {
    CHECKED_ROWS = 96, /* rows compared with the definition */
    CHECKED_COLS = 19,
    BEYOND_CACHES = 96 << 20, /* bytes of weights that are read for one column */
    COLS_AT_ONCE = 48
};

typedef struct product {
    const ops *o;
    const cpu_product *p;
    ggl_type type;
    char *w, *w16, *x, *panel; /* w16: interleaved, or NULL; panel: one per thread */
    size_t row_size, x_size, panel_size;
    int64_t k, m, n_cols;
    float *y, *column;
} product;

/* Collects the columns from c on, at most COLS_AT_ONCE, and row j of each result; returns how
 * many. */
static int take_columns(const product *p, int64_t c, int64_t j, float **y, const void **x) {
    int n = (int)(p->n_cols - c < COLS_AT_ONCE ? p->n_cols - c : COLS_AT_ONCE);
    for (int i = 0; i < n; i++) {
        y[i] = p->y + (c + i) * p->m + j;
        x[i] = p->x + (size_t)(c + i) * p->x_size;
    }
    return n;
}

static void run_rows(void *ctx, int64_t first, int64_t last, int thread) {
    const product *p = ctx;
    float *y[COLS_AT_ONCE];
    const void *x[COLS_AT_ONCE];
    (void)thread;
    for (int64_t c = 0; c < p->n_cols; c += COLS_AT_ONCE)
        p->p->rows(y, x, take_columns(p, c, first, y, x), p->w + (size_t)first * p->row_size,
                   p->row_size, last - first, p->k);
}

/* As run_rows, with first and last in groups of rows. */
static void run_rows16(void *ctx, int64_t first, int64_t last, int thread) {
    const product *p = ctx;
    float *y[COLS_AT_ONCE];
    const void *x[COLS_AT_ONCE];
    int64_t j = first * CPU_GROUP, end = last * CPU_GROUP < p->m ? last * CPU_GROUP : p->m;
    (void)thread;
    for (int64_t c = 0; c < p->n_cols; c += COLS_AT_ONCE)
        p->p->rows16(y, x, take_columns(p, c, j, y, x),
                     p->w16 + ggl_cpu_rows16_size(p->type, j, p->k), end - j, p->k, p->p->reading);
}

static void run_panels(void *ctx, int64_t first, int64_t last, int thread) {
    const product *p = ctx;
    char *panel = p->panel + (size_t)thread * p->panel_size;
    for (int64_t j = first * p->p->panel_rows; j < last * p->p->panel_rows && j < p->m;
         j += p->p->panel_rows) {
        int n = (int)(p->m - j < p->p->panel_rows ? p->m - j : p->p->panel_rows);
        if (p->w16)
            p->p->pack16(panel, p->w16 + ggl_cpu_rows16_size(p->type, j, p->k), n, p->k);
        else
            p->p->pack(panel, p->w + (size_t)j * p->row_size, p->row_size, n, p->k);
        for (int64_t c = 0; c < p->n_cols; c += COLS_AT_ONCE) {
            float *y[COLS_AT_ONCE];
            const void *x[COLS_AT_ONCE];
            p->p->tile(y, x, take_columns(p, c, j, y, x), panel, n, p->k);
        }
    }
}

static bool has_rows(const cpu_product *p, int64_t k) {
    (void)k;
    return p->rows != NULL;
}

static bool has_rows16(const cpu_product *p, int64_t k) {
    (void)k;
    return p->rows16 != NULL;
}

static bool has_panels(const cpu_product *p, int64_t k) {
    return p->pack && p->tile && k % p->panel_unit == 0;
}

static bool has_panels16(const cpu_product *p, int64_t k) {
    return has_panels(p, k) && p->pack16;
}

static int64_t units_rows(const product *p) {
    return p->m;
}

static int64_t units_groups(const product *p) {
    return (p->m + CPU_GROUP - 1) / CPU_GROUP;
}

static int64_t units_panels(const product *p) {
    return (p->m + p->p->panel_rows - 1) / p->p->panel_rows;
}

typedef struct product_way {
    const char *name;
    int n_cols;       /* 0: the number given */
    bool interleaved; /* whether weights are interleaved */
    bool (*has)(const cpu_product *p, int64_t k);
    cpu_pool_fn *run;
    int64_t (*n_units)(const product *p);
} product_way;

/* The ways to compute a product; each is a row here. */
static const product_way ways[] = {
    {"product rows", 1, false, has_rows, run_rows, units_rows},
    {"product rows", 4, false, has_rows, run_rows, units_rows},
    {"product interleaved", 1, true, has_rows16, run_rows16, units_groups},
    {"product interleaved", 4, true, has_rows16, run_rows16, units_groups},
    {"product interleaved", 16, true, has_rows16, run_rows16, units_groups},
    {"product panels", 0, false, has_panels, run_panels, units_panels},
    {"product interleaved panels", 0, true, has_panels16, run_panels, units_panels},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

typedef struct product_call {
    product *p;
    const product_way *way;
} product_call;

static void call_product(void *ctx) {
    const product_call *c = ctx;
    int n = (int)c->p->o->n_threads;
    int64_t units = c->way->n_units(c->p), chunk = n == 1 ? units : units / (8 * n) + 1;
    ggl_cpu_pool_run(c->p->o->pool, n, c->way->run, c->p, units, chunk, NULL);
}

/* Converts columns to a form, with the portable definition. */
static void prepare_columns(const cpu_kernels *definition, const product *p, cpu_columns form) {
    uint64_t state = 7;
    for (int64_t c = 0; c < p->n_cols; c++) {
        char *x = p->x + (size_t)c * p->x_size;
        for (int64_t i = 0; i < p->k; i++)
            p->column[i] = ops_number(&state);
        ggl_cpu_column_make(definition, form, x, p->column, p->k);
    }
}

static void product_fini(product *p) {
    ggl_aligned_free(p->w);
    ggl_aligned_free(p->w16);
    ggl_aligned_free(p->x);
    ggl_aligned_free(p->y);
    ggl_aligned_free(p->panel);
    free(p->column);
}

static void *aligned(size_t size) {
    return ggl_aligned_calloc(64, size + 128); /* kernels read past the end */
}

static bool product_init(product *p, const ops *o, const cpu_product *kernel,
                         const ggl_type_info *t, int64_t m, int64_t n_cols, bool interleaved) {
    enum { DISTINCT = 64 };
    uint64_t state = 3;
    *p = (product){.o = o, .p = kernel, .type = t->type, .k = o->k, .m = m, .n_cols = n_cols};
    p->row_size = ggl_row_size(t->type, p->k);
    p->x_size = (size_t)(p->k + 64) * 2 * sizeof(float);
    p->panel_size = kernel->pack ? (kernel->panel_size(p->k) + 63) / 64 * 64 : 64;
    p->w = aligned(p->row_size * (size_t)m);
    p->x = aligned(p->x_size * (size_t)n_cols);
    p->y = aligned(sizeof(float) * (size_t)(m * n_cols));
    p->panel = aligned(p->panel_size * (size_t)o->n_threads);
    p->column = malloc((size_t)p->k * sizeof *p->column);
    bool ok = p->w && p->x && p->y && p->panel && p->column;
    for (int64_t r = 0; ok && r < m; r++) {
        char *w = p->w + (size_t)r * p->row_size;
        for (int64_t i = 0; r < DISTINCT && i < p->k; i++)
            p->column[i] = ops_number(&state) * 0.1f;
        if (r < DISTINCT && t->from_float)
            t->from_float(p->column, w, p->k);
        else if (r < DISTINCT)
            for (size_t i = 0; i < p->row_size; i++) /* any bytes are a valid row of such a type */
                w[i] = (char)(ops_number(&state) * 127);
        else
            memcpy(w, w - DISTINCT * p->row_size, p->row_size);
    }
    if (ok && interleaved) {
        p->w16 = aligned(ggl_cpu_rows16_size(t->type, m, p->k));
        ok = p->w16 != NULL;
        if (ok)
            ggl_cpu_rows16_pack(kernel, p->w16, t->type, p->w, p->row_size, m, p->k, 0,
                                units_groups(p));
    }
    if (ok)
        prepare_columns(&o->set[0].k, p, kernel->columns);
    return ok;
}

/* Checks whether a way gives the same bits as the portable rows(). False: out of memory. */
static bool check_product(const ops *o, const cpu_product *kernel, const ggl_type_info *t,
                          const product_way *way, bool *equal) {
    product p;
    int64_t n_cols = way->n_cols ? way->n_cols : CHECKED_COLS;
    bool ok = product_init(&p, o, kernel, t, CHECKED_ROWS, n_cols, way->interleaved);
    float *want = ok ? calloc((size_t)(CHECKED_ROWS * n_cols), sizeof *want) : NULL;
    const cpu_kernels *definition = &o->set[0].k;
    const cpu_product *defined = &definition->product[t->type];
    if (want)
        prepare_columns(definition, &p, defined->columns);
    for (int64_t c = 0; want && c < n_cols; c++)
        defined->rows((float *[]){want + c * CHECKED_ROWS},
                      (const void *[]){p.x + (size_t)c * p.x_size}, 1, p.w, p.row_size,
                      CHECKED_ROWS, p.k);
    if (want) {
        prepare_columns(definition, &p, kernel->columns);
        call_product(&(product_call){&p, way});
        *equal = ops_same_bits(p.y, want, CHECKED_ROWS * n_cols);
    }
    ok = want != NULL;
    free(want);
    product_fini(&p);
    return ok;
}

/* True if that many bytes fit in the caches; those of an unknown size hold 32 MiB. */
static bool fits_caches(double bytes) {
    size_t cache = bench_last_cache();
    return bytes <= (double)(cache > 0 ? cache : (size_t)32 << 20);
}

static bool measure_product(ops *o, int set, const ggl_type_info *t, const product_way *way) {
    const cpu_product *kernel = &o->set[set].k.product[t->type];
    product p;
    if (!ops_begins(o, true, way->name, t->name))
        return true;
    ops_row r = {.set = set, .n_cols = way->n_cols ? way->n_cols : (int)o->n_cols};
    int64_t beyond = (int64_t)(BEYOND_CACHES / ggl_row_size(t->type, o->k));
    int64_t m = way->n_cols && !o->exact && beyond > o->m ? beyond : o->m;
    bool ok = check_product(o, kernel, t, way, &r.equal) &&
              product_init(&p, o, kernel, t, m, r.n_cols, way->interleaved);
    if (!ok)
        return false;
    r.ns = ops_best_ns(o, call_product, &(product_call){&p, way});
    r.bytes = (double)p.row_size * (double)m;
    r.macs = (double)p.k * (double)m * r.n_cols;
    r.cached = fits_caches(r.bytes);
    r.series = way->n_cols == 1    ? ONE_COLUMN
               : way->n_cols == 4  ? FEW_COLUMNS
               : way->n_cols == 16 ? SOME_COLUMNS
                                   : MANY_COLUMNS;
    snprintf(r.kernel, sizeof r.kernel, "%s", way->name);
    snprintf(r.type, sizeof r.type, "%s", t->name);
    snprintf(r.shape, sizeof r.shape, "%" PRId64 "x%" PRId64 "x%d", p.k, m, r.n_cols);
    ops_add_row(o, r, t->type);
    product_fini(&p);
    return true;
}

bool ops_measure_products(ops *o) {
    const ggl_type_info *t;
    const size_t n_types = sizeof o->set[0].k.product / sizeof o->set[0].k.product[0];
    bool ok = true;
    for (int i = 0; ok && i < N_WAYS; i++)
        for (int n = 0; ok && (t = ggl_type_at(n)) != NULL; n++)
            for (int s = 0; ok && s < o->n_sets && (size_t)t->type < n_types; s++)
                if (o->k % t->block == 0 && ops_wanted_set(o, s) && ops_wanted(o, ways[i].name) &&
                    ops_wanted_type(o, t) && ways[i].has(&o->set[s].k.product[t->type], o->k))
                    ok = measure_product(o, s, t, &ways[i]);
    return ok;
}

bool ops_any_product(const ops *o) {
    bool any = false;
    for (int i = 0; i < N_WAYS; i++)
        any |= ops_wanted(o, ways[i].name);
    return any;
}
