/* ggl_graph_grad: each rule against differences, both computed by the reference backend in double, in one graph: the loss at
 * x + h v and at x - h v, for a random direction v, and the product of the gradient with v. Then the same gradients on the CPU,
 * with several threads. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/gradient.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "ggl/sched.h"
#include "gradient_test.h"
#include "test.h"

enum { MOST = 6, N = 6, N_BATCH = 8 };

/* Something that a function is made of. */
typedef struct leaf {
    int64_t ne[3]; /* up to the first 0 */
    bool batched;
    int index;    /* an index below this one, which has no gradient; 0: a number */
    double least; /* numbers are from least to least + 2; 0: from -1 to 1 */
} leaf;

typedef ggl_tensor *function(ggl_graph *g, ggl_tensor **x);

typedef struct problem {
    const char *name;
    function *f;
    leaf x[MOST];
} problem;

static int n_leaves(const problem *p) {
    int n = 0;
    while (n < MOST && (p->x[n].ne[0] || p->x[n].index))
        n++;
    return n;
}

static int dims(const leaf *x) {
    int n = 0;
    while (n < 3 && x->ne[n])
        n++;
    return n;
}

static int64_t count(const leaf *x) {
    int64_t n = 1;
    for (int d = 0; d < dims(x); d++)
        n *= x->ne[d];
    return n;
}

/* --- graphs ----------------------------------------------------------------------------------- */

/* A graph with leaves, directions and weights of the loss as inputs. */
typedef struct built {
    ggl_graph *g;
    ggl_tensor *x[MOST], *v[MOST];
    ggl_tensor *data_of[3 * MOST + 1]; /* inputs and variables in their order */
    void *data[3 * MOST + 1];
    int64_t n_data[3 * MOST + 1]; /* numbers */
    int n;
} built;

static ggl_tensor *new_input(built *b, const char *what, int k, const leaf *x, bool is_variable) {
    char name[16];
    const int64_t rows = x->batched ? N : 1, n = count(x) * rows;
    snprintf(name, sizeof name, "%s%d", what, k);
    float *v = calloc((size_t)n + 1, sizeof *v);
    for (int64_t i = 0; v && i < n; i++) {
        if (x->index)
            ((int32_t *)v)[i] = (int32_t)(draw() * x->index);
        else
            v[i] = (float)(draw() * 2 + (x->least != 0 ? x->least : -1));
    }
    ggl_tensor *t = is_variable ? ggl_graph_variable(b->g, name, GGL_F32, dims(x), x->ne, v)
                                : ggl_graph_input(b->g, name, x->index ? GGL_I32 : GGL_F32, dims(x),
                                                  x->ne, x->batched);
    b->data_of[b->n] = t;
    b->n_data[b->n] = n;
    b->data[b->n++] = v;
    return t;
}

static void build_leaves(built *b, const problem *p, bool directions) {
    state = 1;
    const ggl_graph_params params = {.size = sizeof params,
                                     .n_pos = 64,
                                     .n_batch = N_BATCH,
                                     .n_slots = 2,
                                     .type_k = GGL_F32,
                                     .type_v = GGL_F32};
    *b = (built){.g = ggl_graph_new(&params)};
    ggl_graph_input(b->g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(b->g, "slot", GGL_I32, 0, NULL, true);
    if (strstr(p->name, "whole texts"))
        ggl_graph_input(b->g, "end", GGL_I32, 0, NULL, true);
    for (int k = 0; k < n_leaves(p); k++)
        b->x[k] = new_input(b, "x", k, &p->x[k], !p->x[k].batched && !p->x[k].index);
    for (int k = 0; k < n_leaves(p) && directions; k++)
        if (!p->x[k].index)
            b->v[k] = new_input(b, "v", k, &p->x[k], false);
}

/* The sum of y, weighted by numbers that the seed chooses: one number for each element of the batch. */
static ggl_tensor *loss_of(ggl_graph *g, ggl_tensor *y) {
    const int64_t n = ggl_count(y);
    double *c = calloc((size_t)n, sizeof *c);
    state = 99;
    for (int64_t i = 0; c && i < n; i++)
        c[i] = draw() * 2 - 1;
    ggl_tensor *weights = ggl_graph_const(g, 1, &n, c);
    free(c);
    y = ggl_reshape(g, y, 1, &n);
    return ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, y, weights));
}

static void built_free(built *b) {
    ggl_graph_free(b->g);
    for (int i = 0; i < b->n; i++)
        free(b->data[i]);
}

static ggl_status set_inputs(const built *b, ggl_sched *s, ggl_error *err) {
    static const char *const name[3] = {"pos", "slot", "end"};
    static const int32_t at[3][N] = {{0, 1, 0, 2, 1, 3}, {0, 0, 1, 0, 1, 0}, {4, 4, 2, 4, 2, 4}};
    ggl_status st = GGL_OK;
    for (int i = 0; i < 3 && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_find_input(b->g, name[i]);
        if (t && t->needed)
            st = ggl_sched_set(s, name[i], at[i], sizeof at[i], N, err);
    }
    for (int i = 0; i < b->n && st == GGL_OK; i++) {
        const ggl_tensor *t = b->data_of[i];
        if (t->op == GGL_OP_INPUT && t->needed)
            st = ggl_sched_set(s, t->name, b->data[i], (size_t)b->n_data[i] * 4,
                               ggl_is_batched(t) ? N : 1, err);
    }
    return st;
}

/* Runs the graph, which is finished, with its outputs one after another in *out. */
static ggl_status run(const built *b, ggl_backend *on, float **out, int64_t *n_out,
                      ggl_error *err) {
    ggl_sched *s = NULL;
    /* that output is part of the trunk, and so nothing is rounded on its way to another segment */
    const ggl_sched_params params = {.size = sizeof params,
                                     .backend = &on,
                                     .n_backends = 1,
                                     .whole = ggl_graph_get_output(b->g, 0)->name};
    ggl_status st = ggl_sched_new(&s, b->g, &params, err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, err);
    if (st == GGL_OK)
        st = set_inputs(b, s, err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, N, NULL, 0, err);
    *n_out = 0;
    for (int k = 0; k < ggl_graph_n_outputs(b->g); k++)
        *n_out += ggl_count(ggl_graph_get_output(b->g, k)) *
                  (ggl_is_batched(ggl_graph_get_output(b->g, k)) ? N : 1);
    *out = calloc((size_t)*n_out + 1, sizeof **out);
    for (int64_t k = 0, at = 0; st == GGL_OK && k < ggl_graph_n_outputs(b->g); k++) {
        const ggl_tensor *t = ggl_graph_get_output(b->g, (int)k);
        const int64_t n = ggl_count(t) * (ggl_is_batched(t) ? N : 1);
        memcpy(*out + at, ggl_sched_output(s, (int)k), (size_t)n * sizeof **out);
        at += n;
    }
    ggl_sched_free(s);
    return st;
}

/* --- against differences ---------------------------------------------------------------------- */

/* The loss with leaf k moved by h times its direction. */
static ggl_tensor *moved(const problem *p, const built *b, int k, double h) {
    ggl_tensor *x[MOST];
    memcpy(x, b->x, sizeof x);
    x[k] = ggl_binary(b->g, GGL_OP_ADD, x[k],
                      ggl_binary(b->g, GGL_OP_MUL, b->v[k], ggl_graph_number(b->g, h)));
    return loss_of(b->g, p->f(b->g, x));
}

static ggl_tensor *differences(const problem *p, const built *b, int k, double h) {
    ggl_tensor *up = moved(p, b, k, h), *down = moved(p, b, k, -h);
    return ggl_binary(b->g, GGL_OP_MUL, ggl_binary(b->g, GGL_OP_SUB, up, down),
                      ggl_graph_number(b->g, 0.5 / h));
}

/* What the gradient by leaf k says, and what differences say: 2 outputs, each an array for the batch or one number. */
static void check_leaf(const problem *p, int k, ggl_backend *reference) {
    built b;
    ggl_error err = {0};
    float *out = NULL;
    int64_t n = 0;
    ggl_tensor *d = NULL;
    /* what caches and states keep is rounded to f32 */
    const bool keeps = strncmp(p->name, "attend", 6) == 0 || strncmp(p->name, "recurrent", 9) == 0;
    const double h = keeps ? 0.05 : 1e-4;
    build_leaves(&b, p, true);
    ggl_tensor *loss = loss_of(b.g, p->f(b.g, b.x));
    ggl_tensor *differ = differences(p, &b, k, h);
    if (keeps) { /* without the part of the error that is of the order of h * h */
        ggl_tensor *half = differences(p, &b, k, h / 2);
        half = ggl_binary(b.g, GGL_OP_MUL, half, ggl_graph_number(b.g, 4 / 3.0));
        differ = ggl_binary(b.g, GGL_OP_MUL, differ, ggl_graph_number(b.g, -1 / 3.0));
        differ = ggl_binary(b.g, GGL_OP_ADD, differ, half);
    }
    ggl_graph_output(b.g, "differences", differ);
    if (!ggl_graph_grad(b.g, loss, &b.x[k], 1, NULL, &d) || !d) {
        ggl_graph_error(b.g, &err);
        (void)TEST_SAY("%s, leaf %d: %s", p->name, k, err.status ? err.msg : "no gradient");
        built_free(&b);
        return;
    }
    CHECK(d->n_dims == b.x[k]->n_dims && memcmp(d->ne, b.x[k]->ne, sizeof d->ne) == 0);
    ggl_graph_output(b.g, "product", sum_all(b.g, ggl_binary(b.g, GGL_OP_MUL, d, b.v[k])));
    ggl_status st = ggl_graph_finish(b.g, &err);
    if (st == GGL_OK)
        st = ggl_graph_fold(b.g, reference, &err);
    if (st == GGL_OK)
        st = run(&b, reference, &out, &n, &err);
    if (CHECK_MSG(st == GGL_OK, "%s, leaf %d: %s", p->name, k, err.msg)) {
        double want = 0, got = 0;
        const int64_t n_want = ggl_is_batched(differ) ? N : 1;
        for (int64_t i = 0; i < n_want; i++)
            want += (double)out[i];
        for (int64_t i = n_want; i < n; i++)
            got += (double)out[i];
        /* a number that is the same for all of the batch may move all of it, or one number that is not batched */
        CHECK_MSG(fabs(got - want) <= 1e-5 * (fabs(want) + 0.01) && want != 0,
                  "%s, leaf %d: the gradient says %.9g, differences %.9g", p->name, k, got, want);
    }
    free(out);
    built_free(&b);
}

/* All gradients on a backend. */
static float *gradients(const problem *p, ggl_backend *on, ggl_backend *fold, int64_t *n) {
    built b;
    ggl_error err = {0};
    ggl_tensor *d[MOST] = {NULL}, *by[MOST];
    float *out = NULL;
    int n_by = 0;
    build_leaves(&b, p, false);
    ggl_tensor *loss = loss_of(b.g, p->f(b.g, b.x));
    for (int k = 0; k < n_leaves(p); k++)
        if (!p->x[k].index)
            by[n_by++] = b.x[k];
    bool ok = ggl_graph_grad(b.g, loss, by, n_by, NULL, d);
    for (int k = 0; k < n_by && ok; k++)
        if (d[k])
            ggl_graph_output(b.g, "d", d[k]);
    ggl_status st = ggl_graph_finish(b.g, &err);
    if (st == GGL_OK)
        st = ggl_graph_fold(b.g, fold, &err);
    if (st == GGL_OK)
        st = run(&b, on, &out, n, &err);
    CHECK_MSG(st == GGL_OK, "%s on %s: %s", p->name, on->name, err.msg);
    built_free(&b);
    return out;
}

static void check_on_cpu(const problem *p, ggl_backend *reference, ggl_backend *const *cpu,
                         int n_cpu) {
    int64_t n = 0, m = 0;
    float *want = gradients(p, reference, reference, &n), *first = NULL;
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs((double)want[i]));
    for (int k = 0; k < n_cpu; k++) {
        float *got = gradients(p, cpu[k], reference, &m);
        double off = 0;
        for (int64_t i = 0; got && i < n && n == m; i++)
            off = isnan(got[i]) ? INFINITY : fmax(off, fabs((double)got[i] - (double)want[i]));
        CHECK_MSG(n == m && off <= 2e-6 * most, "%s: CPU %d is off by %g of %g", p->name, k, off,
                  most);
        CHECK_MSG(!first || memcmp(first, got, (size_t)n * sizeof *got) == 0,
                  "%s: CPU %d has other bits than the first", p->name, k);
        if (first)
            free(got);
        else
            first = got;
    }
    free(first);
    free(want);
}

/* --- functions -------------------------------------------------------------------------------- */

#define F(name) static ggl_tensor *name(ggl_graph *g, ggl_tensor **x)
#define UNARY(name, OP_)                                                                           \
    F(name) {                                                                                      \
        return ggl_unary(g, GGL_OP_##OP_, x[0]);                                                   \
    }
#define BINARY(name, OP_)                                                                          \
    F(name) {                                                                                      \
        return ggl_binary(g, GGL_OP_##OP_, x[0], x[1]);                                            \
    }
UNARY(f_exp, EXP)
UNARY(f_log, LOG)
UNARY(f_sqrt, SQRT)
UNARY(f_abs, ABS)
UNARY(f_tanh, TANH)
UNARY(f_erf, ERF)
UNARY(f_sigmoid, SIGMOID)
UNARY(f_sin, SIN)
UNARY(f_cos, COS)
BINARY(f_add, ADD)
BINARY(f_sub, SUB)
BINARY(f_mul, MUL)
BINARY(f_div, DIV)
BINARY(f_pow, POW)
BINARY(f_mod, MOD)
BINARY(f_min, MIN)
BINARY(f_max, MAX)
BINARY(f_pick, PICK)
F(f_where) {
    return ggl_graph_op(
        g, GGL_OP_WHERE,
        (ggl_tensor *[]){ggl_binary(g, GGL_OP_GT, x[2], ggl_graph_number(g, 0)), x[0], x[1]}, 3,
        NULL, 0);
}
F(f_steps) { /* parts of no consequence */
    ggl_tensor *c = ggl_binary(g, GGL_OP_LT, x[0], x[1]);
    c = ggl_binary(
        g, GGL_OP_ADD, c,
        ggl_unary(g, GGL_OP_FLOOR, ggl_binary(g, GGL_OP_MUL, x[0], ggl_graph_number(g, 3))));
    c = ggl_binary(g, GGL_OP_ADD, c, ggl_unary(g, GGL_OP_RANK, x[0]));
    return ggl_binary(g, GGL_OP_MUL, c, x[1]);
}
F(f_sum0) {
    return with(g, GGL_OP_SUM, x[0], 1, (double[]){0});
}
F(f_sum1) {
    return with(g, GGL_OP_SUM, x[0], 1, (double[]){1});
}
F(f_sum2) {
    return with(g, GGL_OP_SUM, x[0], 1, (double[]){2});
}
F(f_amax0) {
    return with(g, GGL_OP_AMAX, x[0], 1, (double[]){0});
}
F(f_amax1) {
    return with(g, GGL_OP_AMAX, x[0], 1, (double[]){1});
}
F(f_reshape) {
    return ggl_unary(g, GGL_OP_EXP, ggl_reshape(g, x[0], 2, (int64_t[]){2, 12}));
}
F(f_transpose) {
    return ggl_unary(g, GGL_OP_EXP, with(g, GGL_OP_TRANSPOSE, x[0], 2, (double[]){0, 2}));
}
F(f_transpose1) {
    return ggl_unary(g, GGL_OP_EXP, with(g, GGL_OP_TRANSPOSE, x[0], 2, (double[]){0, 1}));
}
F(f_repeat) {
    return ggl_unary(g, GGL_OP_EXP, with(g, GGL_OP_REPEAT, x[0], 3, (double[]){4, 3, 2}));
}
F(f_split) { /* two parts that overlap, and one apart, along two dimensions */
    ggl_tensor *a = with(g, GGL_OP_SPLIT, x[0], 3, (double[]){0, 1, 3});
    ggl_tensor *b = with(g, GGL_OP_SPLIT, x[0], 3, (double[]){0, 2, 3});
    ggl_tensor *c = with(g, GGL_OP_SPLIT, x[0], 3, (double[]){1, 1, 2});
    ggl_tensor *y = ggl_binary(g, GGL_OP_MUL, a, b);
    y = ggl_binary(g, GGL_OP_ADD, sum_all(g, y), sum_all(g, ggl_unary(g, GGL_OP_EXP, c)));
    return ggl_binary(g, GGL_OP_MUL, x[0], y);
}
F(f_concat) {
    const double dim = 1;
    return ggl_unary(g, GGL_OP_EXP, ggl_graph_op(g, GGL_OP_CONCAT, x, 2, &dim, 1));
}
F(f_self) { /* a value with several readers, and one that is its own partner */
    ggl_tensor *y = ggl_binary(g, GGL_OP_MUL, x[0], x[0]);
    return ggl_binary(g, GGL_OP_DIV, ggl_binary(g, GGL_OP_ADD, y, ggl_unary(g, GGL_OP_SIN, x[0])),
                      ggl_unary(g, GGL_OP_EXP, y));
}
F(f_linear) {
    return ggl_linear(g, x[0], x[1], x[2]);
}
F(f_linear_twice) { /* one matrix, two readers, as with embeddings that are outputs, too */
    ggl_tensor *y = ggl_linear(g, x[0], x[1], NULL);
    return ggl_linear(g, ggl_unary(g, GGL_OP_TANH, y), x[1], NULL);
}
F(f_chosen) { /* x, stack, index, bias */
    ggl_tensor *w = ggl_binary(g, GGL_OP_PICK, x[1], x[2]);
    return ggl_linear(g, x[0], w, NULL);
}
F(f_of_part) { /* a product with a part of a weight */
    return ggl_linear(g, x[0], with(g, GGL_OP_SPLIT, x[1], 3, (double[]){1, 2, 3}), NULL);
}
F(f_attend) {
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, NULL, NULL, NULL, NULL);
}
F(f_attend_window) {
    return attend(g, x[0], x[1], x[2], 0.7, 2, NAN, NULL, NULL, NULL, NULL);
}
F(f_attend_cap) {
    return attend(g, x[0], x[1], x[2], 1.5, NAN, 1.2, NULL, NULL, NULL, NULL);
}
F(f_attend_sinks) {
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, x[3], NULL, NULL, NULL);
}
F(f_attend_part) { /* values are a part of the keys */
    ggl_tensor *v = with(g, GGL_OP_SPLIT, x[1], 3, (double[]){0, 0, 3});
    return attend(g, x[0], x[1], v, NAN, NAN, NAN, NULL, NULL, NULL, NULL);
}
F(f_attend_far) { /* what depends on distances */
    ggl_tensor *alibi = ggl_graph_const(g, 1, (int64_t[]){4}, (double[]){0.1, 0.2, 0.5, 1});
    ggl_tensor *bias = ggl_graph_const(g, 2, (int64_t[]){3, 4},
                                       (double[]){1, 0, -1, 0.5, 0.2, 0, -1, 1, 0, 0.3, 0.6, 0.9});
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, NULL, alibi, bias, NULL);
}
F(f_attend_bias) { /* bias, sinks; the outermost distances count for all beyond */
    return attend(g, x[0], x[1], x[2], NAN, NAN, 1.5, x[4], NULL, x[3], NULL);
}
F(f_attend_within) {
    ggl_tensor *first = ggl_unary(g, GGL_OP_CAST, ggl_graph_find_input(g, "pos"));
    first =
        ggl_reshape(g, ggl_binary(g, GGL_OP_SUB, first, ggl_graph_number(g, 1)), 1, (int64_t[]){1});
    ggl_tensor *end = ggl_binary(g, GGL_OP_ADD, first, ggl_graph_number(g, 2));
    const double dim = 0;
    ggl_tensor *within = ggl_graph_op(g, GGL_OP_CONCAT, (ggl_tensor *[]){first, end}, 2, &dim, 1);
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, NULL, NULL, NULL, within);
}
/* With rows of relative positions, of which distances share some, in no order; the outermost distances count for all beyond. x: q, k, v,
 * then rel_k, or NULL, and rel_q, or NULL. */
static ggl_tensor *relative(ggl_graph *g, ggl_tensor **x, ggl_tensor *rel_k, ggl_tensor *rel_q,
                            double scale, double cap, ggl_tensor *sinks, ggl_tensor *bias) {
    ggl_tensor *kv = ggl_binary(g, GGL_OP_CACHE, x[1], x[2]),
               *row = ggl_graph_const(g, 1, (int64_t[]){5}, (double[]){9, 0.5, 2, 3, -1});
    ggl_tensor *src[8] = {x[0], kv, sinks, NULL, bias, rel_k, rel_q, row};
    return ggl_graph_op(g, GGL_OP_ATTEND, src, 8, (double[]){scale, NAN, cap}, 3);
}
F(f_attend_relative) {
    return relative(g, x, x[3], x[4], 0.25, NAN, NULL, NULL);
}
F(f_attend_relative_both) { /* with a scale, a cap, sinks; the table that both have */
    return relative(g, x, x[3], x[3], 0.8, 1.5, x[4], NULL);
}
F(f_attend_relative_bias) {
    return relative(g, x, x[3], x[3], 0.2, NAN, NULL, x[4]);
}
F(f_attend_rel_k) {
    return relative(g, x, x[3], NULL, NAN, NAN, NULL, NULL);
}
F(f_attend_rel_q) {
    return relative(g, x, NULL, x[3], 0.6, NAN, NULL, NULL);
}
F(f_attend_made) { /* tables made of what makes keys and queries, too */
    ggl_tensor *q = ggl_linear(g, x[0], x[2], NULL), *k = ggl_linear(g, x[0], x[3], NULL);
    ggl_tensor *rel_k = ggl_linear(g, x[1], x[3], NULL), *rel_q = ggl_linear(g, x[1], x[2], NULL);
    q = ggl_reshape(g, q, 2, (int64_t[]){3, 2});
    k = ggl_reshape(g, k, 2, (int64_t[]){3, 2});
    rel_k = with(g, GGL_OP_TRANSPOSE, ggl_reshape(g, rel_k, 3, (int64_t[]){3, 2, 5}), 2,
                 (double[]){1, 2});
    rel_q = with(g, GGL_OP_TRANSPOSE, ggl_reshape(g, rel_q, 3, (int64_t[]){3, 2, 5}), 2,
                 (double[]){1, 2});
    return relative(g, (ggl_tensor *[]){q, k, k}, rel_k, rel_q, NAN, NAN, NULL, NULL);
}
static ggl_tensor *freqs(ggl_graph *g) {
    const int64_t n = 2;
    return ggl_graph_const(g, 1, &n, (double[]){1.1, 0.3});
}
F(f_rope_half) {
    return ggl_graph_op(g, GGL_OP_ROPE_HALF, (ggl_tensor *[]){x[0], freqs(g)}, 2, (double[]){1.3},
                        1);
}
F(f_rope_pair) {
    return ggl_graph_op(g, GGL_OP_ROPE_PAIR, (ggl_tensor *[]){x[0], freqs(g)}, 2, NULL, 0);
}
F(f_cast) {
    return ggl_binary(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_CAST, x[0]),
                      ggl_unary(g, GGL_OP_CAST, x[1]));
}
F(f_softmax) {
    return ggl_softmax(g, x[0]);
}
F(f_rms) {
    return ggl_rms(g, x[0], 1e-3);
}
F(f_center) {
    return ggl_center(g, x[0]);
}
F(f_silu) {
    return ggl_silu(g, x[0]);
}
F(f_gelu) {
    return ggl_gelu(g, x[0]);
}
F(f_gelu_erf) {
    return ggl_gelu_erf(g, x[0]);
}
F(f_gelu_quick) {
    return ggl_gelu_quick(g, x[0]);
}
F(f_softplus) {
    return ggl_softplus(g, x[0]);
}
F(f_relu) {
    return ggl_relu(g, x[0]);
}
F(f_l2) {
    return ggl_l2(g, x[0], 1e-3);
}
F(f_normalised) {
    return ggl_normalised(g, x[0]);
}
F(f_sum_squares) {
    return ggl_sum_squares(g, x[0]);
}
F(f_weighted) {
    return ggl_weighted(g, x[0], x[1]);
}
F(f_layer_norm) {
    return ggl_layer_norm(g, x[0], x[1], x[2], 1e-3);
}
F(f_cross_entropy) {
    return ggl_cross_entropy(g, x[0], x[1]);
}
F(f_log_sum_exp) { /* is a part of cross_entropy */
    return ggl_binary(g, GGL_OP_ADD, ggl_cross_entropy(g, x[0], x[1]),
                      ggl_binary(g, GGL_OP_PICK, x[0], x[1]));
}
F(f_route) { /* a mixture: shares of the best experts, which are chosen by topk */
    ggl_tensor *p = ggl_softmax(g, ggl_linear(g, x[0], x[1], NULL));
    ggl_tensor *best = with(g, GGL_OP_TOPK, p, 1, (double[]){2});
    ggl_tensor *share = ggl_normalised(g, ggl_binary(g, GGL_OP_PICK, p, best));
    ggl_tensor *up = ggl_linear(g, x[0], ggl_binary(g, GGL_OP_PICK, x[2], best), NULL);
    ggl_tensor *down = ggl_linear(g, ggl_silu(g, up), ggl_binary(g, GGL_OP_PICK, x[3], best), NULL);
    return ggl_weighted(g, down, share);
}
F(f_recent) {
    return ggl_unary(g, GGL_OP_EXP, ggl_recent(g, x[0], 3));
}
F(f_short_conv) {
    return ggl_short_conv(g, x[0], x[1]);
}
F(f_delta) {
    return ggl_gated_delta_rule(g, x[0], x[1], x[2], x[3], x[4]);
}
F(f_scan) {
    return ggl_ssm_scan(g, x[0], x[1], x[2], x[3], x[4]);
}
F(f_gla) {
    return ggl_gated_linear_attention(g, x[0], x[1], x[2], x[3]);
}
F(f_wkv6) {
    return ggl_wkv6(g, x[0], x[1], x[2], x[3], x[4]);
}
F(f_wkv7) {
    return ggl_wkv7(g, x[0], x[1], x[2], x[3], x[4], x[5]);
}
F(f_own) { /* a composite without a name, which reads a value from outside and a leaf */
    ggl_tensor *y = ggl_unary(g, GGL_OP_TANH, x[0]);
    ggl_tensor **p = ggl_body_begin(g, &x[0], 1);
    if (!p)
        return NULL;
    ggl_tensor *z = ggl_binary(g, GGL_OP_MUL, p[0], y);
    z = ggl_binary(g, GGL_OP_ADD, ggl_silu(g, z), x[1]);
    return ggl_body_end(g, NULL, z, NULL, 0);
}

#define B(...)                                                                                     \
    { .ne = {__VA_ARGS__}, .batched = true }
#define W(...)                                                                                     \
    {                                                                                              \
        .ne = { __VA_ARGS__ }                                                                      \
    }
#define ABOVE(least_, ...)                                                                         \
    { .ne = {__VA_ARGS__}, .batched = true, .least = least_ }
#define INDEX(n, ...)                                                                              \
    { .ne = {__VA_ARGS__}, .batched = true, .index = n }

static const problem problems[] = {
    {"exp", f_exp, {B(5)}},
    {"log", f_log, {ABOVE(0.3, 5)}},
    {"sqrt", f_sqrt, {ABOVE(0.3, 5)}},
    {"abs", f_abs, {B(5)}},
    {"tanh", f_tanh, {B(3, 2)}},
    {"erf", f_erf, {B(5)}},
    {"sigmoid", f_sigmoid, {B(5)}},
    {"sin", f_sin, {B(5)}},
    {"cos", f_cos, {B(5)}},
    {"+", f_add, {B(5), W(5)}},
    {"+ of rows", f_add, {B(5, 3), B(5)}},
    {"-", f_sub, {B(1, 3), W(4, 3)}},
    {"*", f_mul, {B(4, 3), W(4)}},
    {"* of all", f_mul, {W(4, 1, 2), B(1, 3)}},
    {"/", f_div, {B(4), ABOVE(0.5, 4)}},
    {"**", f_pow, {ABOVE(0.5, 4), B(4)}},
    {"%", f_mod, {ABOVE(9, 4), ABOVE(5.9, 4)}},
    {"min", f_min, {B(7), W(7)}},
    {"max", f_max, {B(7), B(7)}},
    {"where", f_where, {B(7), W(7), B(7)}},
    {"steps", f_steps, {B(4), B(4)}},
    {"sum", f_sum0, {B(5, 3)}},
    {"sum of a vector", f_sum0, {B(5)}},
    {"sum 1", f_sum1, {B(5, 3)}},
    {"sum 1 of three", f_sum1, {B(2, 3, 2)}},
    {"sum 2", f_sum2, {B(2, 3, 2)}},
    {"amax", f_amax0, {B(5, 3)}},
    {"amax 1", f_amax1, {B(5, 3)}},
    {"reshape", f_reshape, {B(4, 3, 2)}},
    {"transpose", f_transpose, {B(4, 3, 2)}},
    {"transpose of a vector", f_transpose1, {B(4)}},
    {"repeat", f_repeat, {B(4, 1, 2)}},
    {"repeat of a vector", f_repeat, {W(4)}},
    {"split", f_split, {B(6, 4)}},
    {"split of a weight", f_split, {W(6, 4)}},
    {"concat", f_concat, {B(3, 2), B(3, 4)}},
    {"concat with a weight", f_concat, {W(3, 2), B(3, 4)}},
    {"pick of rows", f_pick, {W(4, 5), INDEX(5)}},
    {"pick of several rows", f_pick, {W(4, 5), INDEX(5, 3)}},
    {"pick of matrices", f_pick, {W(4, 2, 5), INDEX(5, 3)}},
    {"pick of values", f_pick, {B(5), INDEX(5, 3)}},
    {"pick of one value", f_pick, {B(5), INDEX(5)}},
    {"pick of rows of values", f_pick, {B(4, 5), INDEX(5, 3)}},
    {"readers", f_self, {B(5)}},
    {"linear", f_linear, {B(70), W(70, 9), W(9)}},
    {"linear of columns", f_linear, {B(8, 3), W(8, 5), B(5)}},
    {"linear of columns in two dimensions", f_linear, {B(8, 3, 2), W(8, 5), W(5, 3)}},
    {"linear by heads", f_linear, {B(8, 3), W(8, 5, 3), W(5, 3)}},
    {"linear by heads, one column", f_linear, {B(8), W(8, 5, 3), W(5)}},
    {"linear by heads, two dimensions", f_linear, {B(8, 3, 2), W(8, 5, 3), W(5)}},
    {"linear with matrices of each", f_linear, {B(8, 3), B(8, 5, 3), W(5)}},
    {"linear with a matrix of each", f_linear, {B(8, 3), B(8, 5), W(5)}},
    {"linear of what is the same for all", f_linear, {W(8), W(8, 5), B(5)}},
    {"linear twice", f_linear_twice, {B(6), W(6, 6)}},
    {"linear of a part", f_of_part, {B(6), W(6, 7)}},
    {"chosen matrix", f_chosen, {B(8), W(8, 5, 4), INDEX(4)}},
    {"chosen matrices", f_chosen, {B(8), W(8, 5, 4), INDEX(4, 3)}},
    {"chosen matrices, a column each", f_chosen, {B(8, 3), W(8, 5, 4), INDEX(4, 3)}},
    {"rope_half", f_rope_half, {B(5, 2)}},
    {"rope_pair", f_rope_pair, {B(4, 2)}},
    {"cast", f_cast, {B(5), INDEX(5)}},
    {"softmax", f_softmax, {B(5, 2)}},
    {"log_sum_exp", f_log_sum_exp, {B(9), INDEX(9)}},
    {"rms", f_rms, {B(5, 2)}},
    {"center", f_center, {B(5, 2)}},
    {"silu", f_silu, {B(5)}},
    {"gelu", f_gelu, {B(5)}},
    {"gelu_erf", f_gelu_erf, {B(5)}},
    {"gelu_quick", f_gelu_quick, {B(5)}},
    {"softplus", f_softplus, {B(5)}},
    {"relu", f_relu, {B(5)}},
    {"l2", f_l2, {B(5, 2)}},
    {"normalised", f_normalised, {ABOVE(0.5, 5)}},
    {"sum_squares", f_sum_squares, {B(5, 2)}},
    {"weighted", f_weighted, {B(5, 3), B(3)}},
    {"layer_norm", f_layer_norm, {B(5, 2), W(5), W(5)}},
    {"cross_entropy", f_cross_entropy, {B(9), INDEX(9)}},
    {"attend", f_attend, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend of one head", f_attend, {B(5), B(5), B(3)}},
    {"attend with a window", f_attend_window, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend with a cap", f_attend_cap, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend with sinks", f_attend_sinks, {B(5, 4), B(5, 2), B(3, 2), W(4)}},
    {"attend with values of keys", f_attend_part, {B(5, 4), B(5, 2)}},
    {"attend with distances", f_attend_far, {B(5, 4), B(5, 4), B(3, 4)}},
    {"attend with biases", f_attend_bias, {B(5, 4), B(5, 2), B(3, 2), W(3, 4)}},
    {"attend with biases and sinks", f_attend_bias, {B(5, 4), B(5, 4), B(3, 4), W(5, 4), W(4)}},
    {"attend in whole texts with biases", f_attend_bias, {B(5, 4), B(5, 2), B(3, 2), W(3, 4)}},
    {"attend within", f_attend_within, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend in whole texts", f_attend, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend in whole texts with a window", f_attend_window, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend with relative positions",
     f_attend_relative,
     {B(5, 4), B(5, 4), B(3, 4), W(5, 5, 4), W(5, 5, 4)}},
    {"attend with relative positions, one table for all heads",
     f_attend_relative,
     {B(5, 4), B(5, 4), B(3, 4), W(5, 5), W(5, 5, 4)}},
    {"attend with relative positions of groups",
     f_attend_relative,
     {B(4, 6), B(4, 2), B(3, 2), W(4, 5, 2), W(4, 5)}},
    {"attend with relative positions of one head",
     f_attend_relative,
     {B(6), B(6), B(4), W(6, 5), W(6, 5, 1)}},
    {"attend with relative positions, a cap and sinks",
     f_attend_relative_both,
     {B(5, 4), B(5, 2), B(3, 2), W(5, 4, 2), W(4)}},
    {"attend with relative positions and biases",
     f_attend_relative_bias,
     {B(6, 4), B(6, 2), B(4, 2), W(6, 7, 2), W(3, 4)}},
    {"attend with relative positions of queries",
     f_attend_rel_k,
     {B(5, 4), B(5, 2), B(3, 2), W(5, 5, 2)}},
    {"attend with relative positions of keys",
     f_attend_rel_q,
     {B(5, 4), B(5, 2), B(3, 2), W(5, 5, 2)}},
    {"attend in whole texts with relative positions",
     f_attend_relative,
     {B(5, 4), B(5, 4), B(3, 4), W(5, 5, 4), W(5, 5, 4)}},
    {"attend in whole texts with made relative positions",
     f_attend_made,
     {B(7), W(7, 5), W(7, 6), W(7, 6)}},
    {"recurrent: recent", f_recent, {B(4)}},
    {"recurrent: short_conv", f_short_conv, {B(4), W(3, 4)}},
    {"recurrent: gated_delta_rule", f_delta, {B(4, 1), B(4, 1), B(3, 2), B(2), B(2)}},
    {"recurrent: gated_delta_rule with decays",
     f_delta,
     {B(4, 2), B(4, 2), B(3, 2), B(4, 2), B(2)}},
    {"recurrent: ssm_scan", f_scan, {B(3, 2), B(2), W(2), B(4, 1), B(4, 1)}},
    {"recurrent: ssm_scan with decays", f_scan, {B(3, 2), B(2), W(4, 2), B(4, 2), B(4, 2)}},
    {"recurrent: gated_linear_attention", f_gla, {B(4, 2), B(4, 2), B(3, 2), B(4, 2)}},
    {"recurrent: wkv6", f_wkv6, {B(4, 2), B(4, 2), B(4, 2), B(4, 2), W(4, 2)}},
    {"recurrent: wkv7", f_wkv7, {B(4, 2), B(4, 2), B(4, 2), B(4, 2), B(4, 2), B(4, 2)}},
    {"mixture", f_route, {B(6), W(6, 4), W(6, 5, 4), W(5, 6, 4)}},
    {"own composite", f_own, {B(5), W(5)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

/* --- compositions ----------------------------------------------------------------------------- */

static uint64_t composition; /* the seed of the one that f_random makes */
static uint64_t composing;
static int choose(int n) {
    composing = composing * 6364136223846793005u + 1442695040888963407u;
    return (int)((composing >> 33) % (uint64_t)n);
}

static ggl_tensor *flat(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = ggl_count(x);
    return ggl_reshape(g, x, 1, &n);
}

/* x in another shape. */
static ggl_tensor *reshaped(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = ggl_count(x), part = n % 4 == 0 ? 4 : n % 3 == 0 ? 3 : 1;
    return ggl_reshape(g, x, 2,
                       choose(2) ? (int64_t[]){part, n / part} : (int64_t[]){n / part, part});
}

/* The halves of x's rows, the second one first. */
static ggl_tensor *swapped(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = x->ne[0], half = n / 2;
    const double dim = 0;
    if (half == 0)
        return x;
    ggl_tensor *b[2] = {
        with(g, GGL_OP_SPLIT, x, 3, (double[]){0, (double)half, (double)(n - half)}),
        with(g, GGL_OP_SPLIT, x, 3, (double[]){0, 0, (double)half})};
    return ggl_graph_op(g, GGL_OP_CONCAT, b, 2, &dim, 1);
}

/* A product with a matrix that is a part of the weight. */
static ggl_tensor *projected(ggl_graph *g, ggl_tensor *x, ggl_tensor *weight) {
    const int64_t n = x->ne[0], out = 2 + choose(3);
    if (n * out > ggl_count(weight))
        return ggl_unary(g, GGL_OP_SIN, x);
    ggl_tensor *w = with(
        g, GGL_OP_SPLIT, weight, 3,
        (double[]){0, (double)choose((int)(ggl_count(weight) - n * out + 1)), (double)(n * out)});
    return ggl_linear(g, x, ggl_reshape(g, w, 2, (int64_t[]){n, out}), NULL);
}

static ggl_tensor *step_of(ggl_graph *g, ggl_tensor *x, ggl_tensor *y, ggl_tensor *weight) {
    switch (choose(15)) {
    case 0:
        return ggl_unary(g, GGL_OP_TANH, x);
    case 1:
        return ggl_unary(g, GGL_OP_SIGMOID, x);
    case 2:
        return ggl_unary(g, GGL_OP_EXP, ggl_unary(g, GGL_OP_TANH, x));
    case 3:
        return ggl_softmax(g, x);
    case 4:
        return ggl_rms(g, x, 0.1);
    case 5:
        return ggl_silu(g, x);
    case 6:
        return with(g, GGL_OP_TRANSPOSE, x, 2, (double[]){0, choose(3)});
    case 7:
        return reshaped(g, x);
    case 8:
        return swapped(g, x);
    case 9: /* a row's sum beside each element */
        return ggl_binary(g, GGL_OP_MUL, x, ggl_unary(g, GGL_OP_SIN, ggl_unary(g, GGL_OP_SUM, x)));
    case 10:
        return ggl_binary(
            g, GGL_OP_DIV, x,
            ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_MUL, x, x), ggl_graph_number(g, 2)));
    case 11:
        return projected(g, x, weight);
    case 12: { /* a part of one beside a part of the other */
        const double dim = 0;
        ggl_tensor *both[2] = {flat(g, x), flat(g, y)};
        return swapped(g, ggl_graph_op(g, GGL_OP_CONCAT, both, 2, &dim, 1));
    }
    case 13:
        return ggl_gelu(g, x);
    default: /* everything with everything's mean */
        return ggl_binary(g, choose(2) ? GGL_OP_MUL : GGL_OP_SUB, x, ggl_mean(g, flat(g, y)));
    }
}

/* Leaves: two values of each element, a row for all, and the numbers of matrices. */
F(f_random) {
    enum { STEPS = 9 };
    ggl_tensor *at[STEPS + 3] = {x[0], x[1], x[2]};
    composing = composition;
    for (int i = 3; i < STEPS + 3; i++) {
        ggl_tensor *a = at[i - 1 - choose(i < 5 ? 3 : 2)], *b = at[choose(i)];
        at[i] = step_of(g, a, b, x[3]);
        if (at[i] && at[i]->n_dims == 0)
            at[i] = ggl_reshape(g, at[i], 1, (int64_t[]){1});
        if (!at[i])
            return NULL;
        if (ggl_count(at[i]) > 200) /* not ever longer */
            at[i] = with(g, GGL_OP_SPLIT, flat(g, at[i]), 3, (double[]){0, 3, 24});
    }
    const double dim = 0;
    ggl_tensor *ends[2] = {flat(g, at[STEPS + 2]), flat(g, at[STEPS + 1])};
    ggl_tensor *y = ggl_graph_op(g, GGL_OP_CONCAT, ends, 2, &dim, 1);
    /* so that all leaves have a part in it */
    for (int k = 0; k < 4; k++)
        y = ggl_binary(g, GGL_OP_ADD, y, ggl_unary(g, GGL_OP_SIN, sum_all(g, x[k])));
    return y;
}

TEST(rules_against_differences) {
    ggl_backend *reference = opened("reference", 1, NULL);
    REQUIRE(reference);
    for (int i = 0; i < N_PROBLEMS; i++)
        for (int k = 0; k < n_leaves(&problems[i]); k++)
            if (!problems[i].x[k].index && !(problems[i].f == f_where && k == 2) &&
                !(problems[i].f == f_steps && k == 0))
                check_leaf(&problems[i], k, reference);
    ggl_backend_close(reference);
}

TEST(random_compositions) {
    static const problem p = {"a composition", f_random, {B(4, 3), B(6), W(4), W(60)}};
    ggl_backend *reference = opened("reference", 1, NULL);
    ggl_backend *cpu[2] = {opened("cpu", 1, NULL), opened("cpu", 2, NULL)};
    REQUIRE(reference && cpu[0] && cpu[1]);
    for (composition = 1; composition <= 60; composition++) {
        const int before = test_failures;
        for (int k = 0; k < 4; k++)
            check_leaf(&p, k, reference);
        check_on_cpu(&p, reference, cpu, 2);
        if (test_failures != before)
            printf("composition %d\n", (int)composition);
    }
    ggl_backend_close(reference);
    for (int k = 0; k < 2; k++)
        ggl_backend_close(cpu[k]);
}

TEST(rules_on_the_cpu) {
    ggl_backend *reference = opened("reference", 1, NULL);
    ggl_backend *cpu[3] = {opened("cpu", 1, NULL), opened("cpu", 2, NULL), opened("cpu", 1, "all")};
    REQUIRE(reference && cpu[0] && cpu[1] && cpu[2]);
    for (int i = 0; i < N_PROBLEMS; i++)
        check_on_cpu(&problems[i], reference, cpu, 3);
    for (int k = 0; k < 3; k++)
        ggl_backend_close(cpu[k]);
    ggl_backend_close(reference);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Each operator has a row, and each rule of an operator or composite is among the problems. */
TEST(every_operator_has_a_row) {
    enum { NONE, RULE, OTHER };
    static const char row[GGL_OP_COUNT] = {
#define GRADIENT(ID, text)        [GGL_OP_##ID] = RULE,
#define GRADIENT_BY(ID, function) [GGL_OP_##ID] = RULE,
#define FLAT(ID)                  [GGL_OP_##ID] = OTHER,
#define NO_GRADIENT(ID, why)      [GGL_OP_##ID] = OTHER,
#include "ggl/gradients.def"
    };
    static const char *const composites[] = {
#define GRADIENT_OF(name, signature, text) name,
#include "ggl/gradients.def"
    };
    bool used[GGL_OP_COUNT] = {false};
    for (int i = 0; i < N_PROBLEMS; i++) {
        built b;
        build_leaves(&b, &problems[i], false);
        problems[i].f(b.g, b.x);
        for (int k = 0; k < ggl_graph_n_nodes(b.g); k++) {
            const ggl_tensor *t = ggl_graph_node(b.g, k);
            used[t->op] = true;
            for (int j = 0; t->body && j < t->body->n_node; j++)
                used[t->body->node[j]->op] = true;
        }
        built_free(&b);
    }
    for (int op = GGL_OP_PARAM + 1; op < GGL_OP_COUNT; op++) {
        const char *name = ggl_op_get((ggl_op)op).name;
        CHECK_MSG(row[op] != NONE || op == GGL_OP_CALL, "%s has no row in ggl/gradients.def", name);
        CHECK_MSG(row[op] != RULE || used[op], "no problem of this test has the rule of %s", name);
    }
    for (size_t k = 0; k < sizeof composites / sizeof *composites; k++) {
        bool has = false;
        for (int i = 0; i < N_PROBLEMS; i++)
            has |= strcmp(problems[i].name, composites[k]) == 0;
        CHECK_MSG(has, "no problem of this test is named %s", composites[k]);
    }
}

/* --- mistakes --------------------------------------------------------------------------------- */

TEST(gradients_that_cannot_be) {
    static float data[16];
    const int64_t n = 4;
    for (int k = 0; k < 6; k++) {
        static const char *const words[] = {
            "by the weight 'row', which it reads without", "gradients of gradients",
            "a gradient is asked for by <const>",          "gradients are asked for of <input>",
            "cannot be added to a value of [4]",           "'four', a weight of four dimensions"};
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true), *d,
                   *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){4, 4}, data),
                   *row = ggl_graph_weight(g, "row", GGL_F32, 1, &n, data), *by = x,
                   *of = ggl_unary(g, GGL_OP_EXP, x);
        if (k == 0) {
            ggl_tensor **param = ggl_body_begin(g, &x, 1);
            ggl_tensor *kept = with(g, GGL_OP_STATE, NULL, 1, (double[]){4});
            REQUIRE(param);
            kept = ggl_binary(g, GGL_OP_ADD, kept, ggl_binary(g, GGL_OP_MUL, param[0], row));
            of = ggl_body_end(g, NULL, kept, NULL, 0);
            by = row;
        }
        if (k == 1)
            of = ggl_binary(g, GGL_OP_LINEAR_BACK, x, w);
        if (k == 2)
            by = ggl_graph_number(g, 1);
        if (k == 3)
            of = x;
        if (k == 4) {
            of = ggl_linear(g, x, w, NULL);
            by = w;
        }
        if (k == 5)
            by = ggl_graph_weight(g, "four", GGL_F32, 4, (int64_t[]){4, 1, 1, 2}, data);
        const ggl_grad_params p = {.size = sizeof p, .into = k == 4 ? &row : NULL};
        CHECK(!ggl_graph_grad(g, of, &by, 1, &p, &d));
        refused(g, words[k]);
    }
}

/* What does not depend on a value has no gradient by it. */
TEST(no_gradient) {
    static float data[4];
    const int64_t n = 4;
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
               *w = ggl_graph_weight(g, "w", GGL_F32, 1, &n, data),
               *flat = ggl_unary(g, GGL_OP_FLOOR, ggl_binary(g, GGL_OP_MUL, x, w)),
               *y = ggl_binary(g, GGL_OP_MUL, x, flat), *d[2];
    CHECK(ggl_graph_grad(g, y, (ggl_tensor *[]){w, x}, 2, NULL, d));
    CHECK(!d[0] && d[1] && ggl_is_batched(d[1]));
    ggl_graph_free(g);
}
