/* llm-bench ops: all kernels but products of matrices, on data in the inner caches. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/types.h"
#include "ops.h"

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
        s->x[i] = ops_number(&state) * 4;
    for (int i = 0; i < GGL_PAGE * HEAD; i++)
        s->page[i] = ops_number(&state);
    for (int i = 0; i < GGL_PAGE * HEAD * 2; i++)
        s->half[i] = ggl_f32_to_f16(ops_number(&state));
    for (int i = 0; i < CPU_QUERIES * GGL_PAGE; i++)
        s->w[i / GGL_PAGE][i % GGL_PAGE] = ops_number(&state);
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
    ops_row r = {.set = set,
                 .n_cols = 1,
                 .bytes = kind->bytes,
                 .macs = kind->macs,
                 .series = t ? ATTENTION : OTHER_KERNELS,
                 .cached = true};
    if (!ops_wanted_set(o, set) || !ops_wanted(o, kind->name) ||
        !ops_begins(o, false, kind->name, t ? t->name : ""))
        return;
    simple_init(&definition, &o->set[0].k);
    simple_init(&s, &o->set[set].k);
    s.which = definition.which = which;
    s.type = definition.type = t ? t->type : GGL_F32;
    kind->call(&definition);
    kind->call(&s);
    r.equal = ops_same_bits(s.y, definition.y, N);
    r.ns = ops_best_ns(o, call_repeated, &(simple_call){&s, kind->call}) / REPEATS;
    snprintf(r.kernel, sizeof r.kernel, "%s", kind->name);
    snprintf(r.type, sizeof r.type, "%s", t ? t->name : "");
    snprintf(r.shape, sizeof r.shape, "%s", kind->shape);
    ops_add_row(o, r, GGL_F32);
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

void ops_measure_kernels(ops *o) {
    for (int f = 0; f < CPU_N_UNARY; f++)
        for (int s = 0; s < o->n_sets; s++)
            measure_simple(o, s, &(simple_kind){unary[f], "4096", call_unary, 4.0 * N, 0}, NULL, f);
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        for (int s = 0; s < o->n_sets; s++)
            measure_simple(o, s, &simples[i], NULL, 0);
    const ggl_type_info *t;
    for (int i = 0; (t = ggl_type_at(i)) != NULL; i++)
        if ((o->set[0].k.scores[t->type] || o->set[0].k.code_scores[t->type]) &&
            ops_wanted_type(o, t))
            measure_attention(o, t);
}

bool ops_any_kernel(const ops *o) {
    bool any = ops_wanted(o, "scores") || ops_wanted(o, "values");
    for (int f = 0; f < CPU_N_UNARY; f++)
        any |= ops_wanted(o, unary[f]);
    for (size_t i = 0; i < sizeof simples / sizeof *simples; i++)
        any |= ops_wanted(o, simples[i].name);
    return any;
}
