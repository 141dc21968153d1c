/* Collecting for importance matrices, where no family of models goes: products within operations, stacks of
 * matrices, parts of weights, numbers that are none. tests/models/imatrix.c has the families. */
#include <math.h>

#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/sched.h"
#include "measure/collect.h"

#include "test.h"

enum { N = 3, D = 4 };

static float ones[64];

static ggl_tensor *weight(ggl_graph *g, const char *name, int n_dims, const int64_t *ne) {
    for (int i = 0; i < 64; i++)
        ones[i] = 1;
    return ggl_graph_weight(g, name, GGL_F32, n_dims, ne, ones);
}

/* A graph on one input "x" [D] with these outputs, run for N elements x[i] = 4 e + i + 1; collected. */
static imatrix *run(ggl_tensor *(*make)(ggl_graph *g, ggl_tensor *x), const char **missed,
                    ggl_status *checked, bool bad) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    ggl_sched *s = NULL;
    collector *c = NULL;
    collected *sums = NULL;
    imatrix *m = NULL;
    float in[N * D];
    static char name[64];
    for (int i = 0; i < N * D; i++)
        in[i] = bad && i == 5 ? INFINITY : (float)(i + 1);
    ggl_graph *g = ggl_graph_new(&(ggl_graph_params){
        .size = sizeof(ggl_graph_params), .n_pos = 64, .n_batch = N, .n_slots = 1});
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){D}, true);
    ggl_graph_output(g, "y", make(g, x));
    if (CHECK_OK(llm_collector_new(&c, false, 0, &err), &err) &&
        CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_backend_open(&b, "cpu", NULL, &err), &err) &&
        CHECK_OK(ggl_sched_new(&s, g,
                               &(ggl_sched_params){.size = sizeof(ggl_sched_params),
                                                   .backend = &b,
                                                   .n_backends = 1,
                                                   .watch = llm_collector_watch(c)},
                               &err),
                 &err) &&
        CHECK_OK(ggl_sched_alloc(s, &err), &err) &&
        CHECK_OK(llm_collected_new(&sums, c, &err), &err)) {
        llm_collector_into(c, sums);
        CHECK_OK(ggl_sched_set(s, "x", in, sizeof in, N, &err), &err);
        CHECK_OK(ggl_sched_run(s, N, NULL, 0, &err), &err);
        CHECK_OK(llm_imatrix_new(&m, N, &err), &err);
        *checked = llm_collector_check(c, sums, &err);
        if (*checked != GGL_OK)
            CHECK_HAS(err.msg, "column 1 of what w is multiplied with");
        CHECK_OK(llm_collector_put(c, sums, m, &err), &err);
        const char *which;
        const size_t n = llm_collector_n_missed(c, &which);
        snprintf(name, sizeof name, "%s", n > 0 ? which : "");
        *missed = name;
    }
    ggl_sched_free(s);
    llm_collected_free(sums);
    llm_collector_free(c);
    ggl_graph_free(g);
    ggl_backend_close(b);
    return m;
}

/* Checks the only entry: n_col sums, where column i, of matrix i / D, has those of column i % D; each over the
 * rows 1, 5, 9 and so on. */
static void check(ggl_tensor *(*make)(ggl_graph *g, ggl_tensor *x), int64_t n_col, double factor,
                  int64_t count) {
    const char *missed = NULL;
    ggl_status st = GGL_OK;
    imatrix *m = run(make, &missed, &st, false);
    const imatrix_entry *e = m ? llm_imatrix_find(m, "w") : NULL;
    REQUIRE(e && llm_imatrix_n(m) == 1 && st == GGL_OK);
    CHECK_STR(missed, "");
    CHECK_INT(e->n_col, n_col);
    CHECK_INT(e->n_mat, 1);
    CHECK_INT(e->count[0], count);
    for (int64_t i = 0; i < n_col; i++) {
        double want = 0;
        for (int t = 0; t < N; t++)
            want += pow((double)(t * D + i % D + 1), 2);
        CHECK_MSG((double)e->sum2[i] == factor * want, "column %d: %g, not %g", (int)i,
                  (double)e->sum2[i], factor * want);
    }
    llm_imatrix_free(m);
}

static ggl_tensor *plain(ggl_graph *g, ggl_tensor *x) {
    return ggl_linear(g, x, weight(g, "w", 2, (int64_t[]){D, 2}), NULL);
}

/* Two products of one weight with one value count once; with another value, twice. */
static ggl_tensor *parts_of_rows(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *w = weight(g, "w", 2, (int64_t[]){D, 4});
    ggl_tensor *a = ggl_graph_op(g, GGL_OP_SPLIT, &w, 1, (double[]){1, 0, 2}, 3),
               *b = ggl_graph_op(g, GGL_OP_SPLIT, &w, 1, (double[]){1, 2, 2}, 3);
    return ggl_binary(g, GGL_OP_ADD, ggl_linear(g, x, a, NULL), ggl_linear(g, x, b, NULL));
}

static ggl_tensor *two_values(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *w = weight(g, "w", 2, (int64_t[]){D, 2});
    ggl_tensor *minus = ggl_binary(g, GGL_OP_MUL, x, ggl_graph_number(g, -1));
    return ggl_binary(g, GGL_OP_ADD, ggl_linear(g, x, w, NULL), ggl_linear(g, minus, w, NULL));
}

/* Each of three matrices sees the same row. */
static ggl_tensor *stack(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *one = ggl_graph_op(g, GGL_OP_RESHAPE, &x, 1, (double[]){D, 1}, 2);
    return ggl_linear(g, one, weight(g, "w", 3, (int64_t[]){D, 2, 3}), NULL);
}

/* In the body of an operation: of its argument, in another shape. */
static ggl_tensor *in_body(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *w = weight(g, "w", 2, (int64_t[]){D, 2}), **p = ggl_body_begin(g, &x, 1);
    ggl_tensor *heads = ggl_graph_op(g, GGL_OP_RESHAPE, &p[0], 1, (double[]){D, 1}, 2);
    return ggl_body_end(g, NULL, ggl_linear(g, heads, w, NULL), NULL, 0);
}

TEST(layouts) {
    check(plain, D, 1, N);
    check(parts_of_rows, D, 1, N);
    check(two_values, D, 2, 2 * N);
    check(stack, 3 * D, 1, N);
    check(in_body, D, 1, N);
}

/* What is made within an operation cannot be seen, and half of the columns is not the weight. */
static ggl_tensor *inner_value(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *w = weight(g, "w", 2, (int64_t[]){D, 2}), **p = ggl_body_begin(g, &x, 1);
    return ggl_body_end(g, NULL, ggl_linear(g, ggl_binary(g, GGL_OP_MUL, p[0], p[0]), w, NULL),
                        NULL, 0);
}

static ggl_tensor *half_of_columns(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor *w = weight(g, "w", 2, (int64_t[]){2 * D, 2});
    w = ggl_graph_op(g, GGL_OP_SPLIT, &w, 1, (double[]){0, 0, D}, 3);
    return ggl_linear(g, x, w, NULL);
}

TEST(missed) {
    ggl_tensor *(*const make[])(ggl_graph *, ggl_tensor *) = {inner_value, half_of_columns};
    for (int i = 0; i < 2; i++) {
        const char *missed = NULL;
        ggl_status st = GGL_OK;
        imatrix *m = run(make[i], &missed, &st, false);
        REQUIRE(m);
        CHECK(llm_imatrix_n(m) == 0 && st == GGL_OK);
        CHECK_STR(missed, "w");
        llm_imatrix_free(m);
    }
}

TEST(no_numbers) {
    const char *missed = NULL;
    ggl_status st = GGL_OK;
    llm_imatrix_free(run(plain, &missed, &st, true));
    CHECK(st == GGL_USAGE);
}
