/* llm-bench ops: measures every kernel of every instruction set of this machine: its speed, its
 * part of what the machine allows, and whether its bits equal those of the portable definition. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../backends/cpu/cpu_features.h"
#include "../../backends/cpu/kernels.h"
#include "../../backends/cpu/quant/rows16.h"
#include "../../backends/cpu/threads.h"
#include "common/amounts.h"
#include "common/machine.h"
#include "common/paths.h"
#include "common/progress.h"
#include "ggl/file.h"
#include "limits.h"
#include "roofline.h"
#include "tool.h"

#define TOOL "llm-bench ops"

#define LARGE_SECONDS                                                                              \
    0.3 /* that a product takes beside its measurement: to make its weights, and check it */
#define LIMIT_SECONDS 1.5 /* of a set of instructions, for the machine's limits */

enum {
    MAX_ROWS = 4096,
    MAX_COLS = 512,
    CHECKED_ROWS = 96, /* rows compared with the definition */
    CHECKED_COLS = 19,
    BEYOND_CACHES = 96 << 20, /* bytes of weights that are read for one column */
    COLS_AT_ONCE = 48
};

typedef struct isa_set { /* a table of kernels, and the machine's limits with its features */
    uint32_t features;
    cpu_kernels k;
    bench_roof roof;
} isa_set;

typedef enum op_series { /* the picture's colors */
                         ONE_COLUMN,
                         FEW_COLUMNS,
                         SOME_COLUMNS,
                         MANY_COLUMNS,
                         ATTENTION,
                         OTHER_KERNELS,
                         N_SERIES
} op_series;

typedef struct row {
    char kernel[48], type[16], shape[48];
    int set, n_cols;
    double ns, bytes, macs; /* per call; macs 0: it does not multiply */
    double percent;         /* of the limit; 0: not known */
    op_series series;
    bench_peak_kind peak; /* of its arithmetic */
    bool equal, cached;   /* cached: its data fits in the caches */
} row;

typedef struct ops {
    isa_set set[CPU_MAX_SETS];
    int n_sets;
    row row[MAX_ROWS];
    size_t n_rows;
    cpu_pool *pool;
    int64_t n_threads, k, m, n_cols;
    double seconds;
    const char *only, *type; /* a part of kernels' names; types' names, with commas; NULL: all */
    bool exact;              /* the matrix has the size given, even for one column */
    bool counts;             /* nothing is measured, only counted: */
    size_t n_planned, n_planned_large, n_done; /* measurements; those of products */
} ops;

/* --- instruction sets ------------------------------------------------------------------------- */

/* Lists the tables of kernels, from the portable one to the best that GGL_CPU_MASK leaves. */
static void find_sets(ops *o) {
    uint32_t set[CPU_MAX_SETS];
    int n = ggl_cpu_features_sets(set);
    for (int i = 0; i < n; i++) {
        uint32_t f = ggl_cpu_features_mask(set[i], getenv("GGL_CPU_MASK"));
        isa_set *s = &o->set[o->n_sets];
        int k = 0;
        while (k < o->n_sets && o->set[k].features != f)
            k++;
        if (k < o->n_sets) /* same features as an earlier set, because of the mask */
            continue;
        s->features = f;
        ggl_cpu_kernels_init(&s->k, f);
        ggl_cpu_features_text(f, s->roof.name, sizeof s->roof.name);
        o->n_sets++;
    }
}

static void find_limits(ops *o) {
    progress_begin("sets of instructions", o->n_sets, "limits of this machine");
    for (int i = 0; i < o->n_sets; i++) {
        progress_set(i);
        o->set[i].roof.limit = bench_limits_measure((int)o->n_threads, o->set[i].features);
    }
    progress_end();
}

/* --- rows ------------------------------------------------------------------------------------- */

/* Returns the name after the next comma; NULL: there is none. */
static const char *next_name(const char *at) {
    const char *comma = strchr(at, ',');
    return comma ? comma + 1 : NULL;
}

/* Whether the list of --type has a name; true if it was not given. */
static bool wanted_type(const ops *o, const char *name) {
    size_t n = strlen(name);
    for (const char *at = o->type; at; at = next_name(at))
        if (strcspn(at, ",") == n && memcmp(at, name, n) == 0)
            return true;
    return !o->type;
}

/* Checks the names of --type. Returns -1, or an exit code. */
static int check_types(const ops *o) {
    for (const char *at = o->type; at; at = next_name(at)) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (!ggl_type_find(name))
            return tool_error(TOOL, 2, "--type: there is no type '%s'", name);
    }
    return -1;
}

static bool wanted(const ops *o, const char *kernel) {
    return !o->only || strstr(kernel, o->only);
}

/* Returns whether a measurement is to be made now; if only counted: counts it. */
static bool begins(ops *o, bool large, const char *kernel, const char *type) {
    if (o->counts) {
        o->n_planned++;
        o->n_planned_large += large;
        return false;
    }
    progress_say("%s%s%s", kernel, *type ? " " : "", type);
    progress_set((double)o->n_done++);
    return true;
}

static void add_row(ops *o, row r, ggl_type type) {
    r.peak = bench_peak_of(type);
    if (o->n_rows < MAX_ROWS)
        o->row[o->n_rows++] = r;
}

static void keep_most(double *a, double b) {
    *a = fmax(*a, b);
}

/* Measures the limits once more, and keeps the higher ones: on a shared machine a moment can be
 * bad. */
static void measure_limits_again(ops *o) {
    for (int s = 0; s < o->n_sets; s++) {
        bench_limits *l = &o->set[s].roof.limit;
        const bench_limits more = bench_limits_measure((int)o->n_threads, o->set[s].features);
        keep_most(&l->read_gb, more.read_gb);
        keep_most(&l->int8_gmac, more.int8_gmac);
        keep_most(&l->f32_gmac, more.f32_gmac);
        keep_most(&l->bf16_gmac, more.bf16_gmac);
    }
}

/* Sets each row's part of what the machine allows. */
static void find_percents(ops *o) {
    for (size_t i = 0; i < o->n_rows; i++) {
        row *r = &o->row[i];
        const bench_limits *limit = &o->set[r->set].roof.limit;
        double peak = bench_peak_gmac(limit, r->peak);
        if (r->macs > 0 && peak > 0) {
            double memory = r->cached ? peak : r->macs / r->bytes * limit->read_gb;
            r->percent = 100 * r->macs / r->ns / fmin(peak, memory);
        }
    }
}

static float number(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(*state >> 32) * 0x1p-31f;
}

static bool same_bits(const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

/* Returns the shortest time of a call, in nanoseconds, of those within the time allowed. */
static double best_ns(const ops *o, void (*call)(void *ctx), void *ctx) {
    double least = INFINITY;
    int64_t begin = bench_now_ns(), at = begin;
    do {
        call(ctx);
        int64_t now = bench_now_ns();
        least = fmin(least, (double)(now - at));
        at = now;
    } while ((double)(at - begin) < o->seconds * 1e9);
    return fmax(least, 1);
}

/* --- products --------------------------------------------------------------------------------- */

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
                     p->w16 + ggl_cpu_rows16_size(p->type, j, p->k), end - j, p->k);
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
    ggl_cpu_pool_run(c->p->o->pool, n, c->way->run, c->p, units, chunk);
}

/* Converts columns to a form, with the portable definition. */
static void prepare_columns(const cpu_kernels *definition, const product *p, cpu_columns form) {
    uint64_t state = 7;
    for (int64_t c = 0; c < p->n_cols; c++) {
        char *x = p->x + (size_t)c * p->x_size;
        for (int64_t i = 0; i < p->k; i++)
            p->column[i] = number(&state);
        ggl_cpu_column_make(definition, form, x, p->column, p->k);
    }
}

static void product_fini(product *p) {
    free(p->w);
    free(p->w16);
    free(p->x);
    free(p->y);
    free(p->panel);
    free(p->column);
}

static void *aligned(size_t size) {
    void *p = aligned_alloc(64, (size + 63) / 64 * 64 + 64);
    if (p)
        memset(p, 0, (size + 63) / 64 * 64 + 64);
    return p;
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
            p->column[i] = number(&state) * 0.1f;
        if (r < DISTINCT && t->from_float)
            t->from_float(p->column, w, p->k);
        else if (r < DISTINCT)
            for (size_t i = 0; i < p->row_size; i++) /* any bytes are a valid row of such a type */
                w[i] = (char)(number(&state) * 127);
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
        *equal = same_bits(p.y, want, CHECKED_ROWS * n_cols);
    }
    ok = want != NULL;
    free(want);
    product_fini(&p);
    return ok;
}

/* Whether that many bytes fit in the caches; those of an unknown size hold 32 MiB. */
static bool fits_caches(double bytes) {
    size_t cache = bench_last_cache();
    return bytes <= (double)(cache > 0 ? cache : (size_t)32 << 20);
}

static bool measure_product(ops *o, int set, const ggl_type_info *t, const product_way *way) {
    const cpu_product *kernel = &o->set[set].k.product[t->type];
    product p;
    if (!begins(o, true, way->name, t->name))
        return true;
    row r = {.set = set, .n_cols = way->n_cols ? way->n_cols : (int)o->n_cols};
    int64_t beyond = (int64_t)(BEYOND_CACHES / ggl_row_size(t->type, o->k));
    int64_t m = way->n_cols && !o->exact && beyond > o->m ? beyond : o->m;
    bool ok = check_product(o, kernel, t, way, &r.equal) &&
              product_init(&p, o, kernel, t, m, r.n_cols, way->interleaved);
    if (!ok)
        return false;
    r.ns = best_ns(o, call_product, &(product_call){&p, way});
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
    add_row(o, r, t->type);
    product_fini(&p);
    return true;
}

static bool measure_products(ops *o) {
    const ggl_type_info *t;
    const size_t n_types = sizeof o->set[0].k.product / sizeof o->set[0].k.product[0];
    bool ok = true;
    for (int i = 0; ok && i < N_WAYS; i++)
        for (int n = 0; ok && (t = ggl_type_at(n)) != NULL; n++)
            for (int s = 0; ok && s < o->n_sets && (size_t)t->type < n_types; s++)
                if (o->k % t->block == 0 && wanted(o, ways[i].name) && wanted_type(o, t->name) &&
                    ways[i].has(&o->set[s].k.product[t->type], o->k))
                    ok = measure_product(o, s, t, &ways[i]);
    return ok;
}

/* --- the other kernels, on data in the inner caches ------------------------------------------- */

enum { N = 4096, HEAD = 128, REPEATS = 16 };

typedef struct simple {
    const cpu_kernels *k;
    int which; /* the function, or the number of queries */
    ggl_type type;
    float x[N], y[N], page[GGL_PAGE * HEAD], w[CPU_QUERIES][GGL_PAGE];
    /* a page of any type; as f16 and bf16 the numbers are finite */
    uint16_t half[GGL_PAGE * HEAD * 2];
    cpu_qblock q[N / CPU_QBLOCK];
} simple;

static void call_unary(simple *s) {
    s->k->unary[s->which](s->y, s->x, N);
}

static void call_mul(simple *s) {
    s->k->binary[CPU_MUL](s->y, s->x, 1, s->x, 1, N);
}

static void call_div(simple *s) {
    s->k->binary[CPU_DIV](s->y, s->x, 1, s->x, 0, N);
}

static void call_mul_add(simple *s) {
    s->k->mul_add(s->y, s->x, 0.5f, N);
}

static void call_sum(simple *s) {
    s->y[0] = s->k->sum_squares(s->x, N);
}

static void call_amax(simple *s) {
    s->y[0] = s->k->amax(s->x, N);
}

static void call_quantize(simple *s) {
    s->k->quantize(s->q, s->x, N);
    for (int i = 0; i < N / CPU_QBLOCK; i++)
        s->y[i] = s->q[i].d * (float)s->q[i].sum;
}

static void call_rope(simple *s) {
    s->k->rope_half(s->y, s->x, s->x + N / 2, N / 4);
}

static void call_scores(simple *s) {
    const float *query[CPU_QUERIES];
    const cpu_qblock *rounded[CPU_QUERIES];
    float(*score)[GGL_PAGE] = (float(*)[GGL_PAGE])(void *)s->y;
    for (int q = 0; q < s->which; q++) {
        query[q] = s->x + q * HEAD;
        rounded[q] = s->q + q * (HEAD / CPU_QBLOCK);
    }
    if (s->k->code_scores[s->type])
        s->k->code_scores[s->type](score, rounded, s->which, s->half, HEAD, s->half);
    else
        s->k->scores[s->type](score, query, s->which, s->half, HEAD, s->half);
}

static void call_values(simple *s) {
    static const int lo[CPU_QUERIES];
    int hi[CPU_QUERIES];
    for (int q = 0; q < s->which; q++)
        hi[q] = GGL_PAGE;
    if (s->k->code_values[s->type])
        s->k->code_values[s->type](s->y, HEAD, s->w, s->which, s->half, HEAD, lo, hi, s->half);
    else
        s->k->values[s->type](s->y, HEAD, s->w, s->which, s->half, HEAD, 0, GGL_PAGE, s->half);
}

static void call_softmax_page(simple *s) {
    float *sum = s->y + N / 2;
    memcpy(s->y, s->w, sizeof s->w);
    for (int q = 0; q < CPU_QUERIES; q++)
        sum[2 * q] = s->k->softmax_page(s->y + q * GGL_PAGE, 0, GGL_PAGE, 0.1f, sum + 2 * q + 1);
}

static void call_softmax_pages(simple *s) {
    memcpy(s->y, s->w, sizeof s->w);
    s->k->softmax_pages((float(*)[GGL_PAGE])(void *)s->y, CPU_QUERIES, 0.1f, s->y + N / 2,
                        s->y + N / 2 + CPU_QUERIES);
}

static void call_merge(simple *s) {
    for (int q = 0; q < CPU_QUERIES; q++)
        s->k->merge(s->y + q * HEAD, s->x + q * HEAD, 0.5f, 0.5f, HEAD);
}

static void call_panel_scores(simple *s) {
    const float *query[CPU_TILE];
    for (int q = 0; q < CPU_TILE; q++)
        query[q] = s->x + q * HEAD;
    s->k->panel_scores((float(*)[GGL_PAGE])(void *)s->y, query, CPU_TILE, s->page, HEAD);
}

static void call_panel_values(simple *s) {
    s->k->panel_values(s->y, HEAD, s->w, CPU_TILE, s->page, NULL);
}

/* Runs the rows of a state of 128 elements through one token; `kind`: the recurrence. */
static void call_recur(simple *s, cpu_recur_kind kind) {
    const cpu_recur r = {.n = HEAD,
                         .w = s->w[0],
                         .k = s->x,
                         .q = s->x + HEAD,
                         .a = kind == CPU_SELECT ? s->x : s->x + 2 * HEAD,
                         .b = s->x + 3 * HEAD,
                         .v = s->x + 4 * HEAD,
                         .rate = 0.1f};
    s->k->recur[kind](s->page, s->y, kind == CPU_SELECT ? N / HEAD : GGL_PAGE, &r);
}
#define RECUR_SLOT(NAME, where)                                                                    \
    static void call_##NAME(simple *s) {                                                           \
        call_recur(s, CPU_##NAME);                                                                 \
    }
#include "../../backends/cpu/slots.def"

static void call_conv(simple *s) {
    const float *x[4] = {s->x, s->x + N / 4, s->x + N / 2, s->x + 3 * N / 4};
    s->k->conv(s->y, x, s->page, N / 4, 4);
}

typedef struct simple_kind {
    const char *name, *shape;
    void (*call)(simple *s);
    double bytes, macs; /* bytes read; macs 0: it does not multiply rows */
} simple_kind;

static const simple_kind simples[] = {
    {"multiply", "4096", call_mul, 8.0 * N, 0},
    {"divide by one", "4096", call_div, 4.0 * N, 0},
    {"multiply and add", "4096", call_mul_add, 8.0 * N, N},
    {"sum of squares", "4096", call_sum, 4.0 * N, N},
    {"largest", "4096", call_amax, 4.0 * N, 0},
    {"quantize", "4096", call_quantize, 4.0 * N, 0},
    {"rope_half", "1024 pairs", call_rope, 16.0 * N / 4, N},
    {"gated delta rule", "128x64", call_DELTA, 4.0 * GGL_PAGE *HEAD, 2.0 * GGL_PAGE *HEAD},
    {"ssm_scan", "128x64", call_SCAN, 4.0 * GGL_PAGE *HEAD, GGL_PAGE *HEAD},
    {"ssm_scan of channels", "128x32", call_SELECT, 8.0 * N, N},
    {"wkv6", "128x64", call_WKV6, 4.0 * GGL_PAGE *HEAD, GGL_PAGE *HEAD},
    {"wkv7", "128x64", call_WKV7, 4.0 * GGL_PAGE *HEAD, 2.0 * GGL_PAGE *HEAD},
    {"short convolution", "1024x4", call_conv, 8.0 * N, N},
    {"softmax of a page", "64x8", call_softmax_page, 4.0 * GGL_PAGE *CPU_QUERIES, 0},
    {"softmax of whole pages", "64x8", call_softmax_pages, 4.0 * GGL_PAGE *CPU_QUERIES, 0},
    {"scores of a panel", "128x64x6", call_panel_scores, 4.0 * GGL_PAGE *HEAD,
     (double)GGL_PAGE *HEAD *CPU_TILE},
    {"values of a panel", "128x64x6", call_panel_values, 4.0 * GGL_PAGE *HEAD,
     (double)GGL_PAGE *HEAD *CPU_TILE},
    {"merge of pages", "128x8", call_merge, 8.0 * HEAD *CPU_QUERIES, 2.0 * HEAD *CPU_QUERIES},
};

static void simple_init(simple *s, const cpu_kernels *k) {
    uint64_t state = 5;
    memset(s, 0, sizeof *s);
    s->k = k;
    for (int i = 0; i < N; i++)
        s->x[i] = number(&state) * 4;
    for (int i = 0; i < GGL_PAGE * HEAD; i++)
        s->page[i] = number(&state);
    for (int i = 0; i < GGL_PAGE * HEAD * 2; i++)
        s->half[i] = ggl_f32_to_f16(number(&state));
    for (int i = 0; i < CPU_QUERIES * GGL_PAGE; i++)
        s->w[i / GGL_PAGE][i % GGL_PAGE] = number(&state);
}

typedef struct simple_call {
    simple *s;
    void (*call)(simple *s);
} simple_call;

static void call_repeated(void *ctx) {
    const simple_call *c = ctx;
    for (int i = 0; i < REPEATS; i++)
        c->call(c->s);
}

/* Measures a kernel and compares it with the definition. t: type of the stored rows, NULL:
 * always f32; which: the function, or the number of queries. */
static void measure_simple(ops *o, int set, const simple_kind *kind, const ggl_type_info *t,
                           int which) {
    static simple s, definition;
    row r = {.set = set,
             .n_cols = 1,
             .bytes = kind->bytes,
             .macs = kind->macs,
             .series = t ? ATTENTION : OTHER_KERNELS,
             .cached = true};
    if (!wanted(o, kind->name) || !begins(o, false, kind->name, t ? t->name : ""))
        return;
    simple_init(&definition, &o->set[0].k);
    simple_init(&s, &o->set[set].k);
    s.which = definition.which = which;
    s.type = definition.type = t ? t->type : GGL_F32;
    kind->call(&definition);
    kind->call(&s);
    r.equal = same_bits(s.y, definition.y, N);
    r.ns = best_ns(o, call_repeated, &(simple_call){&s, kind->call}) / REPEATS;
    snprintf(r.kernel, sizeof r.kernel, "%s", kind->name);
    snprintf(r.type, sizeof r.type, "%s", t ? t->name : "");
    snprintf(r.shape, sizeof r.shape, "%s", kind->shape);
    add_row(o, r, GGL_F32);
}

/* Measures a page of 64 positions with rows of a type, for one query and for all. */
static void measure_attention(ops *o, const ggl_type_info *t) {
    double bytes = (double)ggl_row_size(t->type, HEAD) * GGL_PAGE;
    for (int i = 0; i < 2; i++)
        for (int n_q = 1; n_q <= CPU_QUERIES; n_q *= 2) {
            char shape[48];
            snprintf(shape, sizeof shape, "%dx%dx%d", HEAD, GGL_PAGE, n_q);
            const simple_kind kind = {i ? "values" : "scores", shape, i ? call_values : call_scores,
                                      bytes, (double)GGL_PAGE * HEAD * n_q};
            for (int s = 0; s < o->n_sets; s++)
                measure_simple(o, s, &kind, t, n_q);
        }
}

static const char *const unary[] = {
#define UNARY_SLOT(NAME, of, where) #NAME,
#include "../../backends/cpu/slots.def"
};

/* Whether any kernel is selected; checked before anything is measured. */
static bool any_wanted(const ops *o) {
    bool any = wanted(o, "scores") || wanted(o, "values");
    for (int i = 0; i < N_WAYS; i++)
        any |= wanted(o, ways[i].name);
    for (int f = 0; f < CPU_N_UNARY; f++)
        any |= wanted(o, unary[f]);
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        any |= wanted(o, simples[i].name);
    return any;
}

static void measure_simples(ops *o) {
    for (int f = 0; f < CPU_N_UNARY; f++)
        for (int s = 0; s < o->n_sets; s++)
            measure_simple(o, s, &(simple_kind){unary[f], "4096", call_unary, 4.0 * N, 0}, NULL, f);
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        for (int s = 0; s < o->n_sets; s++)
            measure_simple(o, s, &simples[i], NULL, 0);
    const ggl_type_info *t;
    for (int i = 0; (t = ggl_type_at(i)) != NULL; i++)
        if ((o->set[0].k.scores[t->type] || o->set[0].k.code_scores[t->type]) &&
            wanted_type(o, t->name))
            measure_attention(o, t);
}

/* Measures everything. False: out of memory. */
static bool measure_all(ops *o) {
    const bool ok = measure_products(o);
    measure_simples(o);
    return ok;
}

/* Says how long the measurements will take. */
static void say_time(ops *o, bool limits) {
    char text[AMOUNT_TEXT];
    o->counts = true;
    (void)measure_all(o);
    o->counts = false;
    const double seconds = o->seconds * (double)o->n_planned +
                           LARGE_SECONDS * (double)o->n_planned_large +
                           (limits && !bench_brief() ? LIMIT_SECONDS * o->n_sets : 0);
    if (o->n_planned > 0)
        tool_say(TOOL, "%zu measurements of %g s (--seconds), about %s in all", o->n_planned,
                 o->seconds, amount_time(text, seconds));
}

/* --- printing --------------------------------------------------------------------------------- */

/* The width of a column. */
static int wider(int width, const char *text) {
    return (int)strlen(text) > width ? (int)strlen(text) : width;
}

/* Prints the sets of instructions above the table, with the numbers that they have in it, so that a line fits 100
 * columns. */
static void print_sets(const ops *o) {
    for (int s = 0; s < o->n_sets; s++) {
        const bench_limits *l = &o->set[s].roof.limit;
        printf("%d: %s\n", s + 1, o->set[s].roof.name);
        if (l->read_gb > 0)
            printf(
                "   limits: memory %.1f GB/s, int8 %.1f, f32 %.1f, bf16 %.1f GMAC/s (0: unknown)\n",
                l->read_gb, l->int8_gmac, l->f32_gmac, l->bf16_gmac);
    }
    printf("%" PRId64 " thread%s\n", o->n_threads, o->n_threads == 1 ? "" : "s");
}

static void print_md(const ops *o) {
    static const char rule[] = "----------------------------------------------";
    int kernel = 6, shape = 5;
    bool differ = false;
    for (size_t i = 0; i < o->n_rows; i++) {
        kernel = wider(kernel, o->row[i].kernel);
        shape = wider(shape, o->row[i].shape);
        differ = differ || !o->row[i].equal;
    }
    print_sets(o);
    if (!differ)
        puts("all results have the bits of the portable definition");
    printf("\n| %-*s | %-5s | set | %-*s | %9s | %5s | %6s | %5s |%s\n", kernel, "kernel", "type",
           shape, "shape", "us", "GB/s", "GMAC/s", "limit", differ ? " equal |" : "");
    printf("| %.*s | ----- | --: | %.*s | --------: | ----: | -----: | ----: |%s\n", kernel, rule,
           shape, rule, differ ? " ----- |" : "");
    for (size_t i = 0; i < o->n_rows; i++) {
        const row *r = &o->row[i];
        char gmac[32] = "", percent[32] = "";
        if (r->macs > 0)
            snprintf(gmac, sizeof gmac, "%.1f", r->macs / r->ns);
        if (r->percent > 0)
            snprintf(percent, sizeof percent, r->percent < 999.5 ? "%.0f %%" : ">999%%",
                     r->percent);
        printf("| %-*s | %-5s | %3d | %-*s | %9.*f | %5.1f | %6s | %5s |%s\n", kernel, r->kernel,
               r->type, r->set + 1, shape, r->shape, r->ns < 1e6 ? 3 : 0, r->ns * 1e-3,
               r->bytes / r->ns, gmac, percent,
               !differ    ? ""
               : r->equal ? " yes   |"
                          : " NO    |");
    }
}

static void print_csv(const ops *o) {
    puts("kernel,type,isa,shape,n_threads,ns,gb_per_s,gmac_per_s,percent_of_limit,equal");
    for (size_t i = 0; i < o->n_rows; i++) {
        const row *r = &o->row[i];
        printf("\"%s\",\"%s\",\"%s\",\"%s\",%" PRId64 ",%.1f,%.4f,%.4f,%.2f,%d\n", r->kernel,
               r->type, o->set[r->set].roof.name, r->shape, o->n_threads, r->ns, r->bytes / r->ns,
               r->macs / r->ns, r->percent, r->equal);
    }
}

static void print_json(const ops *o) {
    for (size_t i = 0; i < o->n_rows; i++) {
        const row *r = &o->row[i];
        printf("%s\n  {\"kernel\": \"%s\", \"type\": \"%s\", \"isa\": \"%s\", \"shape\": \"%s\", "
               "\"n_threads\": %" PRId64
               ", \"ns\": %.1f, \"gb_per_s\": %.4f, \"gmac_per_s\": %.4f, "
               "\"percent_of_limit\": %.2f, \"equal\": %s}",
               i ? "," : "[", r->kernel, r->type, o->set[r->set].roof.name, r->shape, o->n_threads,
               r->ns, r->bytes / r->ns, r->macs / r->ns, r->percent, r->equal ? "true" : "false");
    }
    puts(o->n_rows ? "\n]" : "[]");
}

static int draw(const ops *o, const char *path) {
    static bench_point point[MAX_ROWS];
    char many[64];
    const char *const series[N_SERIES] = {[ONE_COLUMN] = "products with 1 column",
                                          [FEW_COLUMNS] = "4 columns",
                                          [SOME_COLUMNS] = "16 columns",
                                          [MANY_COLUMNS] = many,
                                          [ATTENTION] = "attention",
                                          [OTHER_KERNELS] = "other kernels"};
    bench_roof roof[CPU_MAX_SETS];
    char title[128], cpu[96];
    size_t n = 0;
    for (size_t i = 0; i < o->n_rows; i++) {
        const row *r = &o->row[i];
        if (r->macs <= 0 || r->bytes <= 0)
            continue;
        bench_point *p = &point[n++];
        *p = (bench_point){.roof = r->set,
                           .series = (int)r->series,
                           .peak = r->peak,
                           .cached = r->cached,
                           .intensity = r->macs / r->bytes,
                           .gmac = r->macs / r->ns};
        const char *kernel = r->kernel; /* that it is a product is said by its color */
        kernel += strncmp(kernel, "product ", 8) == 0 ? 8 : 0;
        snprintf(p->label, sizeof p->label, "%s%s%s", r->type, r->type[0] ? " " : "", kernel);
    }
    for (int s = 0; s < o->n_sets; s++)
        roof[s] = o->set[s].roof;
    bench_cpu_name(cpu, sizeof cpu);
    snprintf(many, sizeof many, "%" PRId64 " columns", o->n_cols);
    snprintf(title, sizeof title, "Kernels on %.80s, %" PRId64 " thread%s", cpu, o->n_threads,
             o->n_threads == 1 ? "" : "s");
    ggl_error err = {0};
    ggl_new_file *f = NULL;
    ggl_status st = ggl_new_file_open(&f, path, &err);
    if (st == GGL_OK) {
        const bench_roofline picture = {title, roof, o->n_sets, series, N_SERIES, point, n};
        bench_roofline_draw(ggl_new_file_stream(f), &picture);
        st = ggl_new_file_commit(f, &err);
    }
    return st == GGL_OK ? 0 : tool_error(TOOL, 1, "--svg: %s", err.msg);
}

static bool read_shape(const char *s, ops *o) {
    char more;
    return sscanf(s, "%" SCNd64 "x%" SCNd64 "%c", &o->k, &o->m, &more) == 2 && o->k >= 32 &&
           o->k <= 1 << 20 && o->k % 32 == 0 && o->m >= 1 && o->m <= 1 << 20;
}

int bench_ops(int argc, char **argv) {
    static const char *const formats[] = {"md", "csv", "json", NULL};
    static ops o = {.n_threads = 1, .n_cols = MAX_COLS, .seconds = 0.1};
    const char *shape = NULL, *svg = NULL;
    int format = 0;
    bool no_limits = false;
    const arg_option options[] = {
        {"-t --threads", ARG_INT, &o.n_threads, .value = "N",
         .help = "threads for matrix products; other kernels run on one thread (default 1)",
         .min = 1, .max = TOOL_MAX_THREADS},
        {"--shape", ARG_STRING, &shape, .value = "KxM",
         .help = "size of the matrices: M rows of K elements (default 2048x2048; products with few "
                 "columns use 96 MiB of such matrices)"},
        {"--type", ARG_STRING, &o.type, .value = "TYPE,..",
         .help = "only weights and stores of these types"},
        {"--columns", ARG_INT, &o.n_cols, .value = "N",
         .help = "columns in products with many columns (default 512)", .min = 2, .max = MAX_COLS},
        {"--kernel", ARG_STRING, &o.only, .value = "TEXT",
         .help = "only kernels whose name contains this"},
        {"--seconds", ARG_FLOAT, &o.seconds, .value = "S",
         .help = "duration of each measurement (default 0.1)", .min = 0.0001, .max = 60},
        {"--no-limits", ARG_FLAG, &no_limits, .help = "do not measure the machine's limits"},
        {"-o --output", ARG_CHOICE, &format, .value = "FORMAT", .help = "md (default), csv, json",
         .choices = formats},
        {"--svg", ARG_STRING, &svg, .value = "FILE", .help = "draw the roofline"},
        {0}};
    static const args_example examples[] = {
        {"llm-bench ops --kernel linear --type q4_K -t 8",
         "products with weights in q4_K, on 8 threads"},
        {"llm-bench ops --svg roofline.svg", "times all, and draws the roofline"},
        {0}};
    const args_spec spec = {
        TOOL,
        "[options]",
        "Times every kernel of every instruction set that this machine has, and "
        "compares its bits with the portable definition. Exit code 1: they differ.",
        options,
        NULL,
        NULL,
        .examples = examples};
    ggl_error err = {0};
    int code = args_parse(&spec, argc, argv);
    if (code >= 0)
        return code;
    o.exact = shape != NULL;
    code = check_types(&o);
    if (code >= 0)
        return code;
    if (!read_shape(shape ? shape : "2048x2048", &o))
        return tool_error(TOOL, 2,
                          "--shape: '%s' is not a shape such as 2048x5632: the length of rows must "
                          "be a multiple of 32, and there are at most 1048576 rows",
                          shape);
    if (!any_wanted(&o))
        return tool_error(TOOL, 2, "--kernel: no kernel's name contains '%s'", o.only);
    code = tool_check_paths(TOOL, &(tool_path){"--svg", svg, .written = true}, 1);
    if (code >= 0)
        return code;
    if (ggl_cpu_pool_open(&o.pool, (int)o.n_threads, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    find_sets(&o);
    say_time(&o, !no_limits);
    if (!no_limits)
        find_limits(&o);
    progress_begin("measurements", (double)o.n_planned, "measuring");
    const bool ok = measure_all(&o);
    progress_end();
    ggl_cpu_pool_close(o.pool);
    if (!no_limits)
        measure_limits_again(&o);
    find_percents(&o);
    if (!ok)
        return tool_error(TOOL, 1, "out of memory");
    if (o.n_rows == 0)
        return tool_error(TOOL, 2, "nothing to measure: no kernel%s%s%s%s%s", o.type ? " of " : "",
                          o.type ? o.type : "", o.only ? " has '" : "", o.only ? o.only : "",
                          o.only ? "' in its name" : "");
    (format == 0 ? print_md : format == 1 ? print_csv : print_json)(&o);
    code = svg ? draw(&o, svg) : 0;
    for (size_t i = 0; i < o.n_rows; i++)
        code = o.row[i].equal ? code : 1;
    return code;
}
