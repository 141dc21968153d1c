/* Cases of operators for any backend: a case builds a small graph; the harness feeds it seeded
 * values and runs it through the scheduler on several backends, thread counts and instruction sets,
 * in one piece and in several. Equal bits are demanded of all CPU runs, a bound of the distance to
 * the reference backend. */
#ifndef BACKEND_CASE_H
#define BACKEND_CASE_H

#include <math.h>

#include "ggl/backends.h"
#include "ggl/sched.h"
#include "test.h"

enum { CASE_INPUTS = 8, CASE_WEIGHTS = 8 };

typedef enum fill_kind {
    FILL_ANY,
    FILL_POSITIVE,
    FILL_SMALL,
    FILL_INDEX,
    FILL_POS,
    FILL_SLOT
} fill_kind;

typedef struct test_input {
    char name[16];
    bool batched, index;
    int64_t count; /* elements of one of the batch */
    void *data;    /* of the whole run */
} test_input;

typedef struct run_case {
    ggl_graph *g;
    uint64_t seed;
    int variant; /* which of the case's forms */
    bool named;  /* composites carry their name */
    int64_t n;   /* of the batch, in all */
    test_input input[CASE_INPUTS];
    int n_inputs;
    void *weight[CASE_WEIGHTS];
    int n_weights;
    int covers[GGL_OP_COUNT]; /* operators that the graph has */
} run_case;

typedef ggl_tensor *case_fn(run_case *c);

typedef struct case_info {
    const char *name;
    ggl_op op;
    case_fn *build;
    int n_variants;
    double bound;     /* of |y - reference|, relative to the largest |y| of the output */
    int64_t n_tokens; /* 0: 5 */
    int64_t n_batch;  /* 0: n_tokens */
    bool composite;   /* with and without the name: equal bits */
    bool kept;        /* variant % 25 says in which types keys and values are kept */
} case_info;

/* --- for builders -------------------------------------------------------------------------- */

#define DIMS(...)                                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) {                       \
        __VA_ARGS__                                                                                \
    }

TEST_UNUSED static float case_number(run_case *c, fill_kind fill) {
    float x = test_random_float(&c->seed);
    return fill == FILL_POSITIVE ? 0.1f + fabsf(x) * 2 : fill == FILL_SMALL ? x * 0.3f : x * 2;
}

TEST_UNUSED static ggl_tensor *case_input(run_case *c, bool batched, fill_kind fill, int64_t range,
                                          int n_dims, const int64_t *ne) {
    test_input *in = &c->input[c->n_inputs];
    int64_t n = batched ? c->n : 1;
    snprintf(in->name, sizeof in->name,
             fill == FILL_POS    ? "pos"
             : fill == FILL_SLOT ? "slot"
                                 : "x%d",
             c->n_inputs);
    c->n_inputs++;
    in->batched = batched;
    in->index = fill >= FILL_INDEX;
    in->count = 1;
    for (int d = 0; d < n_dims; d++)
        in->count *= ne[d];
    in->data = calloc((size_t)(n * in->count), 4);
    for (int64_t i = 0; i < n * in->count; i++)
        if (in->index) /* positions go by `range` slots in turn: 0 0 1 1 .. for two */
            ((int32_t *)in->data)[i] = fill == FILL_POS ? (int32_t)(i / range)
                                       : fill == FILL_SLOT
                                           ? (int32_t)(i % range)
                                           : (int32_t)(test_random(&c->seed) % (uint64_t)range);
        else
            ((float *)in->data)[i] = case_number(c, fill);
    return ggl_graph_input(c->g, in->name, in->index ? GGL_I32 : GGL_F32, n_dims, ne, batched);
}

/* A float value for each of the batch. */
#define VALUE(c, ...) case_input(c, true, FILL_ANY, 0, DIMS(__VA_ARGS__))

/* Blocks of a type without encoder: any bytes, but a small scale, which is an f16 at the front, or
 * in the upper halves of the last four words' upper bytes. */
TEST_UNUSED static void case_any_blocks(run_case *c, char *p, const ggl_type_info *t,
                                        size_t row_size) {
    for (size_t i = 0; i < row_size; i++)
        p[i] = (char)(case_number(c, FILL_SMALL) * 1e4f);
    for (size_t at = 0; at < row_size; at += t->size) {
        const uint16_t d = 0x2400; /* 1/64 */
        if (t->type == GGL_IQ1_M)
            for (int i = 0; i < 4; i++) {
                char *high = p + at + t->size - 7 + 2 * i;
                *high = (char)((*high & 15) | (d >> 4 * i & 15) << 4);
            }
        else
            memcpy(p + at, &d, sizeof d);
    }
}

TEST_UNUSED static ggl_tensor *case_weight(run_case *c, ggl_type type, int n_dims,
                                           const int64_t *ne) {
    int64_t rows = 1;
    char name[16];
    for (int d = 1; d < n_dims; d++)
        rows *= ne[d];
    float *row = calloc((size_t)ne[0], sizeof *row);
    char *data = malloc(ggl_row_size(type, ne[0]) * (size_t)rows);
    const ggl_type_info *t = ggl_type_get(type);
    const size_t row_size = ggl_row_size(type, ne[0]);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < ne[0]; i++)
            row[i] = case_number(c, FILL_SMALL);
        if (t->from_float)
            t->from_float(row, data + (size_t)r * row_size, ne[0]);
        else
            case_any_blocks(c, data + (size_t)r * row_size, t, row_size);
    }
    free(row);
    c->weight[c->n_weights] = data;
    snprintf(name, sizeof name, "w%d", c->n_weights++);
    return ggl_graph_weight(c->g, name, type, n_dims, ne, data);
}

TEST_UNUSED static ggl_tensor *op(run_case *c, ggl_op o, ggl_tensor *a, ggl_tensor *b,
                                  ggl_tensor *d, int n_num, const double *num) {
    ggl_tensor *src[3] = {a, b, d};
    return ggl_graph_op(c->g, o, src, d ? 3 : b ? 2 : a ? 1 : 0, num, n_num);
}
#define OP0(c, o, n_num, ...)        op(c, GGL_OP_##o, NULL, NULL, NULL, n_num, (double[]){__VA_ARGS__})
#define OP1(c, o, a)                 op(c, GGL_OP_##o, a, NULL, NULL, 0, NULL)
#define OP2(c, o, a, b)              op(c, GGL_OP_##o, a, b, NULL, 0, NULL)
#define OP1N(c, o, a, n_num, ...)    op(c, GGL_OP_##o, a, NULL, NULL, n_num, (double[]){__VA_ARGS__})
#define OP2N(c, o, a, b, n_num, ...) op(c, GGL_OP_##o, a, b, NULL, n_num, (double[]){__VA_ARGS__})
#define NUMBER(c, x)                 ggl_graph_number((c)->g, x)

/* --- the harness --------------------------------------------------------------------------- */

typedef struct case_run {
    const char *backend;
    ggl_backend_params params;
    int64_t chunk; /* tokens in a run; 0: as many as possible; negative: so, but the last -chunk one
                      by one */
    bool unnamed;
} case_run;

TEST_UNUSED static void count_ops(run_case *c) {
    for (int i = 0; i < ggl_graph_n_nodes(c->g); i++) {
        const ggl_tensor *t = ggl_graph_node(c->g, i);
        c->covers[t->op]++;
        for (int k = 0; t->body && k < t->body->n_node; k++)
            c->covers[t->body->node[k]->op]++;
        for (int k = 0; t->body && k < t->body->n_param; k++)
            c->covers[t->body->param[k]->op]++;
    }
}

TEST_UNUSED static int64_t next_chunk(const case_run *r, int64_t done, int64_t n, int64_t batch) {
    int64_t left = n - done, take = r->chunk > 0 ? r->chunk : batch;
    if (r->chunk < 0)
        take = left <= -r->chunk ? 1 : left + r->chunk < batch ? left + r->chunk : batch;
    take = take < batch ? take : batch;
    return take < left ? take : left;
}

TEST_UNUSED static ggl_status run_chunks(run_case *c, const case_run *r, ggl_sched *s,
                                         int64_t batch, size_t row, float *out, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int64_t done = 0, n; done < c->n && st == GGL_OK; done += n) {
        n = next_chunk(r, done, c->n, batch);
        for (int i = 0; i < c->n_inputs && st == GGL_OK; i++) {
            const test_input *in = &c->input[i];
            const char *data =
                (const char *)in->data + (in->batched ? (size_t)(done * in->count) * 4 : 0);
            st = ggl_sched_set(s, in->name, data, in->batched ? n : 1, err);
        }
        if (st == GGL_OK)
            st = ggl_sched_run(s, n, NULL, 0, err);
        if (st == GGL_OK)
            memcpy(out + (size_t)done * row, ggl_sched_output(s, 0), (size_t)n * row * sizeof *out);
    }
    return st;
}

/* Builds and runs one form; returns [n][row] values, for free(), or NULL after a failed check. */
TEST_UNUSED static float *case_run_one(const case_info *info, int variant, const case_run *r,
                                       size_t *row, int *covers) {
    static const ggl_type kv[] = {GGL_F16, GGL_F32, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    run_case c = {.seed = 77 + (uint64_t)variant,
                  .variant = variant,
                  .named = !r->unnamed,
                  .n = info->n_tokens ? info->n_tokens : 5};
    int64_t batch = info->n_batch ? info->n_batch : c.n;
    ggl_graph_params gp = {.n_pos = 4096,
                           .n_batch = batch,
                           .n_slots = 3,
                           .type_k = kv[info->kept ? variant % 5 : variant % 2],
                           .type_v = kv[info->kept ? variant / 5 % 5 : variant / 2 % 2]};
    ggl_error err = {0};
    ggl_backend *b = NULL, *reference = NULL;
    ggl_sched *s = NULL;
    float *out = NULL;
    ggl_status st = ggl_backend_open(&b, r->backend, &r->params, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&reference, "reference", NULL, &err);
    c.g = ggl_graph_new(&gp);
    ggl_tensor *y = st == GGL_OK ? info->build(&c) : NULL;
    if (y && y->op <= GGL_OP_PARAM)
        y = ggl_graph_op(c.g, GGL_OP_ABS, &y, 1, NULL, 0);
    if (y && y->type != GGL_F32)
        y = ggl_graph_op(c.g, GGL_OP_CAST, &y, 1, NULL, 0);
    ggl_graph_output(c.g, "y", y);
    if (st == GGL_OK)
        st = ggl_graph_finish(c.g, &err);
    if (st == GGL_OK)
        count_ops(&c);
    if (st == GGL_OK)
        st = ggl_graph_fold(c.g, reference, &err);
    if (st == GGL_OK)
        st = ggl_sched_new(&s, c.g, &(ggl_sched_params){.backend = &b, .n_backends = 1}, &err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, &err);
    if (st == GGL_OK) {
        *row = (size_t)ggl_count(ggl_graph_get_output(c.g, 0));
        out = calloc((size_t)c.n * *row + 1, sizeof *out);
        st = run_chunks(&c, r, s, batch, *row, out, &err);
    }
    CHECK_MSG(st == GGL_OK, "%s, form %d, on %s: %s", info->name, variant, r->backend, err.msg);
    for (int i = 0; covers && i < GGL_OP_COUNT; i++)
        covers[i] += c.covers[i];
    ggl_sched_free(s);
    ggl_graph_free(c.g);
    ggl_backend_close(b);
    ggl_backend_close(reference);
    for (int i = 0; i < c.n_inputs; i++)
        free(c.input[i].data);
    for (int i = 0; i < c.n_weights; i++)
        free(c.weight[i]);
    if (st == GGL_OK)
        return out;
    free(out);
    return NULL;
}

TEST_UNUSED static void compare_bits(const case_info *info, int variant, const case_run *r,
                                     const float *got, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(got + i, want + i, 4) != 0 && !(isnan(got[i]) && isnan(want[i]))) {
            (void)TEST_SAY(
                "%s, form %d: element %zu is %a with %d threads, mask %s, chunk %d%s; expected %a",
                info->name, variant, i, (double)got[i], r->params.n_threads,
                r->params.mask ? r->params.mask : "none", (int)r->chunk,
                r->unnamed ? ", as its body says" : "", (double)want[i]);
            return;
        }
}

TEST_UNUSED static void compare_bound(const case_info *info, int variant, const float *got,
                                      const float *want, size_t n) {
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = isfinite(want[i]) ? fmax(largest, fabs((double)want[i])) : largest;
    for (size_t i = 0; i < n; i++) {
        bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
        if (!same && !(fabs((double)got[i] - (double)want[i]) <= info->bound * largest)) {
            (void)TEST_SAY("%s, form %d: element %zu is %.9g, the reference has %.9g (largest %g)",
                           info->name, variant, i, (double)got[i], (double)want[i], largest);
            return;
        }
    }
}

/* Variants first, first + step, .. */
TEST_UNUSED static void case_check(const case_info *info, int first, int step) {
    const case_run other[] = {
        {"cpu", {.n_threads = 1}, 0, false},
        {"cpu", {.n_threads = 2}, 0, false},
        {"cpu", {.n_threads = 3}, 3, false},
        {"cpu", {.n_threads = 7}, -2, false},
        {"cpu", {.n_threads = 1, .mask = "avx512"}, 1, false},
        {"cpu", {.n_threads = 2}, 2, true},
        {"cpu", {.n_threads = 1, .mask = "all"}, 0, true},
    };
    for (int v = first; v < info->n_variants; v += step) {
        const case_run portable = {"cpu", {.n_threads = 1, .mask = "all"}, 0, false},
                       reference = {"reference", {0}, 0, false};
        size_t row = 0;
        float *want = case_run_one(info, v, &portable, &row, NULL),
              *ref = case_run_one(info, v, &reference, &row, NULL);
        int64_t n = info->n_tokens ? info->n_tokens : 5;
        if (want && ref)
            compare_bound(info, v, want, ref, (size_t)n * row);
        for (size_t i = 0; want && i < sizeof other / sizeof *other; i++) {
            if ((other[i].unnamed && !info->composite) ||
                (n > 100 && (other[i].chunk == 1 || other[i].chunk == 3)))
                continue;
            float *got = case_run_one(info, v, &other[i], &row, NULL);
            if (got)
                compare_bits(info, v, &other[i], got, want, (size_t)n * row);
            free(got);
        }
        free(want);
        free(ref);
    }
}

#endif
