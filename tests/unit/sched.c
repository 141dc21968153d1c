/* The scheduler: rows of outputs, wrong use, slots, memory known before it is taken. */
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/image.h"
#include "ggl/internal/sched.h"

#include <math.h>

#include "ggl/backends.h"
#include "test.h"

typedef struct fixture {
    ggl_graph *g;
    ggl_backend *b;
    ggl_sched *s;
    ggl_error err;
} fixture;

static float weight[4 * 4] = {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, 1, 0, 1, 0};

static const ggl_backend_params *backend_params; /* for setup(); NULL: defaults */

/* y = W (running mean over the sequence of x, by a state and by attention over all positions). */
static bool setup(fixture *f, const char *backend) {
    *f = (fixture){0};
    ggl_graph_params p = {.size = sizeof p,
                          .n_pos = 200,
                          .n_batch = 8,
                          .n_slots = 3,
                          .type_k = GGL_F32,
                          .type_v = GGL_F32};
    ggl_graph *g = f->g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){4}, true),
               **param = ggl_body_begin(g, &x, 1), *sum = NULL;
    if (param) {
        ggl_tensor *in = param[0], *s = ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){4}, 1);
        ggl_tensor *next = ggl_binary(g, GGL_OP_ADD, s, in);
        ggl_graph_op(g, GGL_OP_KEEP, (ggl_tensor *[]){s, next}, 2, NULL, 0);
        sum = ggl_body_end(g, NULL, next, NULL, 0);
    }
    ggl_tensor *heads = ggl_graph_op(g, GGL_OP_RESHAPE, &x, 1, (double[]){4, 1}, 2);
    ggl_tensor *zero =
        ggl_binary(g, GGL_OP_MUL, heads, ggl_graph_number(g, 0)); /* all keys equal: a plain mean */
    ggl_tensor *a =
        ggl_graph_op(g, GGL_OP_ATTEND,
                     (ggl_tensor *[]){zero, ggl_binary(g, GGL_OP_CACHE, zero, heads)}, 2, NULL, 0);
    a = ggl_graph_op(g, GGL_OP_RESHAPE, &a, 1, (double[]){4}, 1);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){4, 4}, weight);
    ggl_graph_output(g, "y", ggl_linear(g, ggl_binary(g, GGL_OP_ADD, sum, a), w, NULL));
    ggl_sched_params sp = {.size = sizeof sp, .backend = &f->b, .n_backends = 1};
    return CHECK_OK(ggl_graph_finish(g, &f->err), &f->err) &&
           CHECK_OK(ggl_backend_open(&f->b, backend, backend_params, &f->err), &f->err) &&
           CHECK_OK(ggl_sched_new(&f->s, g, &sp, &f->err), &f->err);
}

static void teardown(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    ggl_backend_close(f->b);
}

/* The value of x at a position of a slot, and what y must be. */
static float x_at(int slot, int pos, int i) {
    return (float)((slot + 1) * (pos % 7) + i);
}

static void expect(int slot, int pos, double *y) {
    double v[4] = {0};
    for (int i = 0; i < 4; i++) {
        double sum = 0;
        for (int p = 0; p <= pos; p++)
            sum += (double)x_at(slot, p, i);
        v[i] = sum + sum / (pos + 1);
    }
    for (int j = 0; j < 4; j++) {
        y[j] = 0;
        for (int i = 0; i < 4; i++)
            y[j] += (double)weight[j * 4 + i] * v[i];
    }
}

static ggl_status feed(fixture *f, const int *slot, const int *pos, int n, const int32_t *row,
                       int n_rows) {
    float x[8][4];
    for (int k = 0; k < n; k++)
        for (int i = 0; i < 4; i++)
            x[k][i] = x_at(slot[k], pos[k], i);
    ggl_status st = ggl_sched_set(f->s, "x", x, (size_t)n * sizeof *x, n, &f->err);
    if (st == GGL_OK)
        st = ggl_sched_set(f->s, "pos", pos, (size_t)n * sizeof *pos, n, &f->err);
    if (st == GGL_OK)
        st = ggl_sched_set(f->s, "slot", slot, (size_t)n * sizeof *slot, n, &f->err);
    return st == GGL_OK ? ggl_sched_run(f->s, n, row, n_rows, &f->err) : st;
}

static void check_row(fixture *f, int row, int slot, int pos) {
    double want[4];
    expect(slot, pos, want);
    for (int j = 0; j < 4; j++) {
        double got = (double)ggl_sched_output(f->s, 0)[row * 4 + j];
        CHECK_MSG(fabs(got - want[j]) <= 1e-4 * fmax(1, fabs(want[j])),
                  "slot %d, position %d, y[%d] is %g, expected %g", slot, pos, j, got, want[j]);
    }
}

static void rows_and_slots(const char *backend) {
    fixture f;
    REQUIRE(setup(&f, backend));
    REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
    /* three sequences in one batch, two rows wanted */
    int slot[8] = {0, 1, 0, 2, 1, 0, 2, 0}, pos[8] = {0, 0, 1, 0, 1, 2, 1, 3};
    const int32_t rows[] = {3, 7};
    REQUIRE_OK(feed(&f, slot, pos, 8, rows, 2), &f.err);
    check_row(&f, 0, 2, 0);
    check_row(&f, 1, 0, 3);
    int slot2[3] = {1, 2, 0}, pos2[3] = {2, 2, 4};
    REQUIRE_OK(feed(&f, slot2, pos2, 3, NULL, 0), &f.err);
    for (int k = 0; k < 3; k++)
        check_row(&f, k, slot2[k], pos2[k]);
    /* no row wanted: only what is kept changes */
    REQUIRE_OK(feed(&f, (int[]){1}, (int[]){3}, 1, rows, 0), &f.err);
    REQUIRE_OK(feed(&f, (int[]){1}, (int[]){4}, 1, NULL, 0), &f.err);
    check_row(&f, 0, 1, 4);
    /* a cleared slot starts from the beginning */
    REQUIRE_OK(ggl_sched_clear_slot(f.s, 1, &f.err), &f.err);
    REQUIRE_OK(feed(&f, (int[]){1}, (int[]){0}, 1, NULL, 0), &f.err);
    check_row(&f, 0, 1, 0);
    teardown(&f);
}

TEST(rows_and_slots_on_cpu) {
    rows_and_slots("cpu");
}

TEST(rows_and_slots_on_reference) {
    rows_and_slots("reference");
}

TEST(wrong_use) {
    fixture f;
    REQUIRE(setup(&f, "reference"));
    CHECK_INT(ggl_sched_run(f.s, 1, NULL, 0, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "call ggl_sched_alloc first");
    CHECK_INT(ggl_sched_set(f.s, "x", weight, sizeof weight, 1, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "input 'x' is set before memory is allocated: call ggl_sched_alloc first");
    REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
    float x[9][4] = {{0}};
    CHECK_INT(ggl_sched_set(f.s, "z", x, sizeof x[0], 1, &f.err), GGL_NOT_FOUND);
    CHECK_HAS(f.err.msg, "'z'");
    CHECK_INT(ggl_sched_set(f.s, "x", x, sizeof x, 9, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "input 'x': 9 elements of the batch; 1 to 8 are allowed");
    const double wide[2][4] = {{0}};
    CHECK_INT(ggl_sched_set(f.s, "x", wide, sizeof wide, 2, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg,
              "input 'x': 64 bytes of data, not 32: an element is f32 [4], and 2 are set");
    CHECK_INT(ggl_sched_set(f.s, "x", x, sizeof x[0], 2, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "input 'x': 16 bytes of data, not 32");
    CHECK_INT(ggl_sched_set(f.s, "pos", x, 3, 1, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg,
              "input 'pos': 3 bytes of data, not 4: an element is i32 [], and 1 are set");
    CHECK_INT(ggl_sched_run(f.s, 1, NULL, 0, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "is set for 0 elements of the batch, but the run has 1");
    REQUIRE_OK(feed(&f, (int[]){0, 0}, (int[]){0, 1}, 2, NULL, 0), &f.err);
    CHECK_INT(ggl_sched_run(f.s, 9, NULL, 0, &f.err), GGL_USAGE);
    CHECK_INT(ggl_sched_run(f.s, 2, (int32_t[]){1, 0}, 2, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "ascending");
    CHECK_INT(ggl_sched_run(f.s, 2, (int32_t[]){2}, 1, &f.err), GGL_USAGE);
    CHECK_INT(ggl_sched_clear_slot(f.s, 3, &f.err), GGL_USAGE);
    CHECK_INT(ggl_sched_copy_slot(f.s, 0, -1, 1, &f.err), GGL_USAGE);
    CHECK(ggl_sched_has_states(f.s));
    teardown(&f);
}

TEST(memory_is_known_before) {
    fixture f;
    ggl_memory m;
    REQUIRE(setup(&f, "reference"));
    REQUIRE(ggl_sched_memory(f.s, 0, &m));
    CHECK_INT((long long)m.weights_mapped, 64);
    CHECK_INT((long long)m.weights_copied, 0);
    CHECK_INT((long long)m.stores_rows,
              3 * 256 * 4 * 2 * 4); /* slots, 200 positions in pages, dims, K and V, bytes */
    CHECK_INT((long long)m.stores_states, 3 * 64);
    CHECK(m.arena > 0);
    CHECK(!ggl_sched_memory(f.s, 1, &m));
    teardown(&f);
}

/* A run for one output alone leaves out what only the others need; wrong names and runs are refused. */
TEST(runs_that_end_early) {
    fixture f = {0};
    ggl_graph *g = f.g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){2}, true);
    ggl_tensor *y = ggl_binary(g, GGL_OP_ADD, x, x);
    ggl_graph_output(g, "square", ggl_binary(g, GGL_OP_MUL, y, y));
    ggl_graph_output(g, "twice", y);
    ggl_sched_params sp = {.size = sizeof sp, .backend = &f.b, .n_backends = 1, .early = "thrice"};
    const float in[2][2] = {{1, 2}, {3, 4}}, more[2][2] = {{5, 6}, {7, 8}};
    if (CHECK_OK(ggl_graph_finish(g, &f.err), &f.err) &&
        CHECK_OK(ggl_backend_open(&f.b, "cpu", NULL, &f.err), &f.err)) {
        CHECK_INT(ggl_sched_new(&f.s, g, &sp, &f.err), GGL_NOT_FOUND);
        CHECK(f.s == NULL && strstr(f.err.msg, "'thrice'"));
        sp.early = "twice";
        CHECK_OK(ggl_sched_new(&f.s, g, &sp, &f.err), &f.err);
        CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
        CHECK_OK(ggl_sched_set(f.s, "x", in, sizeof in, 2, &f.err), &f.err);
        CHECK_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
        CHECK(ggl_sched_output(f.s, 0)[3] == 64 && ggl_sched_output(f.s, 1)[3] == 8);
        CHECK_OK(ggl_sched_set(f.s, "x", more, sizeof more, 2, &f.err), &f.err);
        CHECK_OK(ggl_sched_run_early(f.s, 2, (int32_t[]){1}, 1, &f.err), &f.err);
        CHECK(ggl_sched_output(f.s, 0)[3] == 64); /* it was not fetched again */
        CHECK(ggl_sched_output(f.s, 1)[0] == 14 && ggl_sched_output(f.s, 1)[1] == 16);
        ggl_sched_free(f.s);
        f.s = NULL;
        sp.early = NULL;
        CHECK_OK(ggl_sched_new(&f.s, g, &sp, &f.err), &f.err);
        CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
        CHECK_INT(ggl_sched_run_early(f.s, 2, NULL, 0, &f.err), GGL_USAGE);
    }
    teardown(&f);
}

/* Views of a value as outputs: they are copied out, not the whole that they are part of. */
TEST(views_as_outputs) {
    const char *names[] = {"cpu", "reference"};
    for (int k = 0; k < 2; k++) {
        fixture f = {0};
        ggl_graph *g = f.g = ggl_graph_new(NULL);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){6}, true);
        ggl_tensor *y = ggl_binary(g, GGL_OP_ADD, x, x);
        ggl_tensor *tail = ggl_graph_op(g, GGL_OP_SPLIT, &y, 1, (double[]){0, 4, 2}, 3);
        ggl_tensor *head = ggl_graph_op(g, GGL_OP_SPLIT, &y, 1, (double[]){0, 0, 4}, 3);
        head = ggl_graph_op(g, GGL_OP_RESHAPE, &head, 1, (double[]){2, 2}, 2);
        head = ggl_graph_op(g, GGL_OP_SPLIT, &head, 1, (double[]){0, 1, 1}, 3);
        ggl_graph_output(g, "tail", tail);
        ggl_graph_output(g, "odd", head);
        ggl_sched_params sp = {.size = sizeof sp, .backend = &f.b, .n_backends = 1};
        const float in[2][6] = {{1, 2, 3, 4, 5, 6}, {7, 8, 9, 10, 11, 12}};
        bool ok = CHECK_OK(ggl_graph_finish(g, &f.err), &f.err) &&
                  CHECK_OK(ggl_backend_open(&f.b, names[k], NULL, &f.err), &f.err) &&
                  CHECK_OK(ggl_sched_new(&f.s, g, &sp, &f.err), &f.err) &&
                  CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err) &&
                  CHECK_OK(ggl_sched_set(f.s, "x", in, sizeof in, 2, &f.err), &f.err) &&
                  CHECK_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
        if (ok) {
            const float *a = ggl_sched_output(f.s, 0), *b = ggl_sched_output(f.s, 1);
            CHECK(a[0] == 10 && a[1] == 12 && a[2] == 22 && a[3] == 24);
            CHECK(b[0] == 4 && b[1] == 8 && b[2] == 16 && b[3] == 20);
        }
        teardown(&f);
    }
}

/* A value that depends on an input is not a constant, whether batched or not. */
TEST(unbatched_inputs_are_not_folded) {
    fixture f = {0};
    ggl_graph *g = f.g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){2}, true);
    ggl_tensor *c = ggl_graph_input(g, "c", GGL_F32, 1, (int64_t[]){2}, false);
    ggl_tensor *twice =
        ggl_binary(g, GGL_OP_ADD, c,
                   ggl_binary(g, GGL_OP_ADD, ggl_graph_number(g, 1), ggl_graph_number(g, 2)));
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, x, twice));
    ggl_sched_params sp = {.size = sizeof sp, .backend = &f.b, .n_backends = 1};
    const float in[2] = {1, 2}, by[2] = {10, 20};
    bool ok = CHECK_OK(ggl_graph_finish(g, &f.err), &f.err) &&
              CHECK_OK(ggl_backend_open(&f.b, "reference", NULL, &f.err), &f.err) &&
              CHECK_OK(ggl_graph_fold(g, f.b, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_new(&f.s, g, &sp, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_set(f.s, "x", in, sizeof in, 1, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_set(f.s, "c", by, sizeof by, 1, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
    if (ok)
        CHECK(ggl_sched_output(f.s, 0)[0] == 13 && ggl_sched_output(f.s, 0)[1] == 46);
    teardown(&f);
}

typedef struct told {
    int linear, state, n_linear, prepares;
    double ns;
    uint64_t last; /* the end of the step before */
} told;

static void add_time(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                     uint64_t end) {
    told *t = ctx;
    t->prepares += prepares;
    t->linear += !prepares && node->op == GGL_OP_LINEAR;
    t->n_linear += !prepares && node->op == GGL_OP_LINEAR ? (int)n : 0;
    t->state += !prepares && node->op == GGL_OP_KEEP;
    t->ns += (double)(end - begin);
    CHECK(begin >= t->last && end >= begin);
    t->last = end;
}

/* Each step is reported once for a run; one in a loop, once for each element of the batch. */
TEST(profile) {
    fixture f;
    told t = {0};
    backend_params = &(ggl_backend_params){
        .size = sizeof(ggl_backend_params), .profile = add_time, .profile_ctx = &t};
    bool ok = setup(&f, "cpu");
    backend_params = NULL;
    int slot[] = {0, 0, 0}, pos[] = {0, 1, 2};
    if (ok && CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err)) {
        CHECK_OK(feed(&f, slot, pos, 3, (int32_t[]){2}, 1), &f.err);
        CHECK_INT(t.linear, 1);
        CHECK_INT(t.n_linear, 1); /* of the row that is wanted */
        CHECK_INT(t.state, 3);
        CHECK(t.ns > 0);
        check_row(&f, 0, 0, 2);
    }
    teardown(&f);
}

static int on_second(void *ctx, int group, const char *name) {
    (void)ctx, (void)group, (void)name;
    return 1;
}

/* Nodes of a body are those of the backend that runs the call. */
TEST(where_bodies_run) {
    fixture f;
    ggl_backend *other = NULL;
    ggl_sched *s = NULL;
    if (setup(&f, "cpu") && CHECK_OK(ggl_backend_open(&other, "cpu1", NULL, &f.err), &f.err)) {
        ggl_backend *both[] = {f.b, other};
        const ggl_sched_params sp = {
            .size = sizeof sp, .backend = both, .n_backends = 2, .place = on_second};
        REQUIRE_OK(ggl_sched_new(&s, f.g, &sp, &f.err), &f.err);
        ggl_tensor **t = ggl_graph_by_id(f.g);
        int n_in_bodies = 0;
        for (int i = 0; t && i < ggl_graph_n_ids(f.g); i++)
            if (t[i] && t[i]->computed && t[i]->scope > 0) {
                CHECK(ggl_sched_runs_on(s, t[i]) == other);
                n_in_bodies++;
            }
        CHECK(n_in_bodies > 0);
        ggl_free(t);
    }
    ggl_sched_free(s);
    ggl_backend_close(other);
    teardown(&f);
}

/* What products with quantized weights need of a row is made once, also where their results lie
 * right behind the row; two rows next to each other are two. */
TEST(one_preparation_for_many_products) {
    fixture f = {0};
    told t = {0};
    const ggl_backend_params bp = {.size = sizeof bp, .profile = add_time, .profile_ctx = &t};
    static uint8_t bytes[4][64 * 2 * 34];
    ggl_graph *g = f.g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){64}, true), *y[4];
    for (int i = 0; i < 4; i++) {
        ggl_tensor *w = ggl_graph_weight(g, (const char *[]){"q", "k", "v", "o"}[i], GGL_Q8_0, 2,
                                         (int64_t[]){64, 64}, bytes[i]);
        ggl_tensor *from =
            i == 0  ? ggl_graph_op(g, GGL_OP_EXP, &x, 1, NULL, 0)
            : i < 3 ? y[0]->src[0]
                    : ggl_binary(g, GGL_OP_ADD, y[0], ggl_binary(g, GGL_OP_ADD, y[1], y[2]));
        y[i] = ggl_linear(g, from, w, NULL);
    }
    ggl_graph_output(g, "y", y[3]);
    ggl_sched_params sp = {.size = sizeof sp, .backend = &f.b, .n_backends = 1};
    float in[4 * 64] = {0};
    bool ok = CHECK_OK(ggl_graph_finish(g, &f.err), &f.err) &&
              CHECK_OK(ggl_backend_open(&f.b, "cpu", &bp, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_new(&f.s, g, &sp, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
    for (int n = 1; n <= 4 && ok; n += 3) {
        t = (told){0};
        ok =
            CHECK_OK(ggl_sched_set(f.s, "x", in, (size_t)n * 64 * sizeof *in, n, &f.err), &f.err) &&
            CHECK_OK(ggl_sched_run(f.s, n, NULL, 0, &f.err), &f.err);
        CHECK_INT(t.linear, 4);
        CHECK_INT(t.prepares, 2);
    }
    teardown(&f);
}

/* Steps that go by items, some of the batch after the others, where memory of a narrow value is
 * used again for a wide one: each row of a batch is as it is by itself. */
TEST(items_do_not_disturb_each_other) {
    enum { NARROW = 8, WIDE = 32, ROWS = 40 };
    fixture f = {0};
    static float in[ROWS][NARROW + WIDE], unit[WIDE * WIDE], got[ROWS][WIDE];
    uint64_t random = 1;
    for (int i = 0; i < WIDE; i++)
        unit[i * WIDE + i] = 1;
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < NARROW + WIDE; k++)
            in[i][k] = test_random_float(&random);
    ggl_graph *g = f.g = ggl_graph_new(&(ggl_graph_params){
        .size = sizeof(ggl_graph_params), .n_batch = ROWS, .n_pos = ROWS, .n_slots = 1});
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){NARROW + WIDE}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){WIDE, WIDE}, unit);
    ggl_tensor *v = ggl_graph_weight(g, "v", GGL_F32, 1, (int64_t[]){WIDE}, unit);
    ggl_tensor *part[2], *sum[2];
    for (int i = 0; i < 2; i++) { /* the narrow one lies first, and both are free after the sums */
        double cut[] = {0, i * NARROW, i ? WIDE : NARROW};
        part[i] = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, cut, 3);
        part[i] = ggl_graph_op(g, GGL_OP_EXP, &part[i], 1, NULL, 0);
        sum[i] = ggl_graph_op(g, GGL_OP_SUM, &part[i], 1, (double[]){0}, 1);
    }
    ggl_tensor *wide = ggl_binary(g, GGL_OP_ADD, v, ggl_binary(g, GGL_OP_ADD, sum[0], sum[1]));
    ggl_graph_output(g, "y", ggl_linear(g, wide, w, NULL));
    ggl_sched_params sp = {.size = sizeof sp, .backend = &f.b, .n_backends = 1};
    int32_t row[ROWS];
    for (int i = 0; i < ROWS; i++)
        row[i] = i;
    bool ok = CHECK_OK(ggl_graph_finish(g, &f.err), &f.err) &&
              CHECK_OK(ggl_backend_open(&f.b, "cpu", NULL, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_new(&f.s, g, &sp, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_alloc(f.s, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_set(f.s, "x", in, sizeof in, ROWS, &f.err), &f.err) &&
              CHECK_OK(ggl_sched_run(f.s, ROWS, row, ROWS, &f.err), &f.err);
    if (ok)
        memcpy(got, ggl_sched_output(f.s, 0), sizeof got);
    for (int i = 0; i < ROWS && ok; i++) {
        ok = CHECK_OK(ggl_sched_set(f.s, "x", in[i], sizeof in[i], 1, &f.err), &f.err) &&
             CHECK_OK(ggl_sched_run(f.s, 1, (int32_t[]){0}, 1, &f.err), &f.err) &&
             CHECK_MSG(memcmp(got[i], ggl_sched_output(f.s, 0), sizeof got[i]) == 0,
                       "row %d of %d differs from what it is alone", i, ROWS);
    }
    teardown(&f);
}

/* What ggl_graph_output's messages advise: a cast of an input, and of indices, can be an output. */
TEST(casts_are_outputs) {
    static const char *const names[] = {"cpu", "reference"};
    for (int k = 0; k < 2; k++) {
        ggl_error err = {0};
        ggl_backend *b = NULL;
        ggl_sched *s = NULL;
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){3}, true);
        ggl_tensor *i = ggl_graph_input(g, "i", GGL_I32, 0, NULL, true);
        ggl_tensor *top = ggl_graph_op(g, GGL_OP_TOPK, &x, 1, (double[]){2}, 1);
        ggl_graph_output(g, "x", ggl_unary(g, GGL_OP_CAST, x));
        ggl_graph_output(g, "i", ggl_unary(g, GGL_OP_CAST, i));
        ggl_graph_output(g, "top", ggl_unary(g, GGL_OP_CAST, top));
        const float in[2][3] = {{1, 3, 2}, {5, 4, 6}}, want_top[2][2] = {{1, 2}, {2, 0}};
        REQUIRE_OK(ggl_graph_finish(g, &err), &err);
        REQUIRE_OK(ggl_backend_open(&b, names[k], NULL, &err), &err);
        REQUIRE_OK(ggl_sched_new(&s, g,
                                 &(ggl_sched_params){.size = sizeof(ggl_sched_params),
                                                     .backend = &b,
                                                     .n_backends = 1},
                                 &err),
                   &err);
        REQUIRE_OK(ggl_sched_alloc(s, &err), &err);
        REQUIRE_OK(ggl_sched_set(s, "x", in, sizeof in, 2, &err), &err);
        REQUIRE_OK(ggl_sched_set(s, "i", (int32_t[]){7, -8}, 8, 2, &err), &err);
        REQUIRE_OK(ggl_sched_run(s, 2, NULL, 0, &err), &err);
        CHECK(memcmp(ggl_sched_output(s, 0), in, sizeof in) == 0);
        CHECK(ggl_sched_output(s, 1)[0] == 7 && ggl_sched_output(s, 1)[1] == -8);
        CHECK(memcmp(ggl_sched_output(s, 2), want_top, sizeof want_top) == 0);
        ggl_sched_free(s);
        ggl_graph_free(g);
        ggl_backend_close(b);
    }
}
