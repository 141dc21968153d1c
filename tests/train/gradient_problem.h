/* A function of some leaves, and its gradients: against differences, and on the CPU against the reference. */
#ifndef GRADIENT_PROBLEM_H
#define GRADIENT_PROBLEM_H

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

static inline int n_leaves(const problem *p) {
    int n = 0;
    while (n < MOST && (p->x[n].ne[0] || p->x[n].index))
        n++;
    return n;
}

static inline int dims(const leaf *x) {
    int n = 0;
    while (n < 3 && x->ne[n])
        n++;
    return n;
}

static inline int64_t count(const leaf *x) {
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

static inline ggl_tensor *new_input(built *b, const char *what, int k, const leaf *x,
                                    bool is_variable) {
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

static inline void build_leaves(built *b, const problem *p, bool directions) {
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
static inline ggl_tensor *loss_of(ggl_graph *g, ggl_tensor *y) {
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

static inline void built_free(built *b) {
    ggl_graph_free(b->g);
    for (int i = 0; i < b->n; i++)
        free(b->data[i]);
}

static inline ggl_status set_inputs(const built *b, ggl_sched *s, ggl_error *err) {
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
static inline ggl_status run(const built *b, ggl_backend *on, float **out, int64_t *n_out,
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
static inline ggl_tensor *moved(const problem *p, const built *b, int k, double h) {
    ggl_tensor *x[MOST];
    memcpy(x, b->x, sizeof x);
    x[k] = ggl_binary(b->g, GGL_OP_ADD, x[k],
                      ggl_binary(b->g, GGL_OP_MUL, b->v[k], ggl_graph_number(b->g, h)));
    return loss_of(b->g, p->f(b->g, x));
}

static inline ggl_tensor *differences(const problem *p, const built *b, int k, double h) {
    ggl_tensor *up = moved(p, b, k, h), *down = moved(p, b, k, -h);
    return ggl_binary(b->g, GGL_OP_MUL, ggl_binary(b->g, GGL_OP_SUB, up, down),
                      ggl_graph_number(b->g, 0.5 / h));
}

/* What the gradient by leaf k says, and what differences say: 2 outputs, each an array for the batch or one number. */
static inline void check_leaf(const problem *p, int k, ggl_backend *reference) {
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
static inline float *gradients(const problem *p, ggl_backend *on, ggl_backend *fold, int64_t *n) {
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

static inline void check_on_cpu(const problem *p, ggl_backend *reference, ggl_backend *const *cpu,
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
#define F(name) static ggl_tensor *name(ggl_graph *g, ggl_tensor **x)
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

#endif
