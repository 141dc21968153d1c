/* vulkan.plan: recordings are made once and replayed, for whatever buffers and batches come; what
 * is computed is the same each time. */
#include <math.h>

#include "alloc_fail.h"
#include "ggl/sched.h"
#include "vulkan_test.h"

enum { WIDTH = 50, MOST_BATCH = 6, DEPTH = 300 };

/* Long chains beside each other, which meet: more dispatches than a pool of descriptors has, more
 * of them between barriers than are kept track of. */
static ggl_graph *chains(int n, int depth) {
    ggl_graph_params gp = ggl_graph_default();
    gp.n_batch = MOST_BATCH;
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true), *sum = x;
    for (int i = 0; i < n; i++) {
        ggl_tensor *y = ggl_binary(g, GGL_OP_MUL, x, ggl_graph_number(g, 1 + 0.01 * i));
        for (int k = 0; k < depth; k++) {
            y = ggl_binary(g, GGL_OP_ADD, y, ggl_graph_number(g, 0.125));
            y = ggl_unary(g, GGL_OP_TANH, y);
        }
        sum = ggl_binary(g, GGL_OP_ADD, sum, y);
    }
    ggl_graph_output(g, "y", sum);
    return g;
}

static bool start(ggl_sched **s, ggl_graph *g, ggl_backend *b, ggl_error *err) {
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    return ggl_sched_new(s, g, &sp, err) == GGL_OK && ggl_sched_alloc(*s, err) == GGL_OK;
}

static bool count_and_cancel(void *ctx) {
    ++*(int *)ctx;
    return true;
}

/* Compiling ends at the next pipeline after the run was cancelled. Another thread may be making one then. */
TEST(cancelled_while_compiling) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    int asked = 0;
    ggl_backend *b = vulkan_open(NULL);
    if (!b)
        return;
    const ggl_sched_params sp = {.size = sizeof sp,
                                 .backend = &b,
                                 .n_backends = 1,
                                 .cancelled = count_and_cancel,
                                 .cancelled_ctx = &asked};
    ggl_graph *g = chains(3, 1);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    CHECK_INT(ggl_sched_new(&s, g, &sp, &err), GGL_CANCELLED);
    CHECK_INT(asked, 1);
    CHECK(!b->cancelled);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

static void values(float *x, uint64_t seed) {
    for (int i = 0; i < WIDTH * MOST_BATCH; i++)
        x[i] = test_random_float(&seed) * 3;
}

/* Runs n of x; false: a failure was reported. */
static bool run(ggl_sched *s, const float *x, int64_t n, float *y) {
    ggl_error err = {0};
    if (!CHECK_OK(ggl_sched_set(s, "x", x, (size_t)n * WIDTH * sizeof *x, n, &err), &err) ||
        !CHECK_OK(ggl_sched_run(s, n, NULL, 0, &err), &err))
        return false;
    memcpy(y, ggl_sched_output(s, 0), (size_t)n * WIDTH * sizeof *y);
    return true;
}

static void check_chains(int n, int depth) {
    ggl_backend *b = vulkan_open(NULL), *reference = NULL;
    ggl_sched *s = NULL, *t = NULL;
    ggl_error err = {0};
    float x[WIDTH * MOST_BATCH], y[WIDTH * MOST_BATCH], want[WIDTH * MOST_BATCH];
    if (!b)
        return;
    ggl_graph *g = chains(n, depth);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    CHECK_MSG(start(&s, g, b, &err) && start(&t, g, reference, &err), "%s", err.msg);
    for (int64_t k = 0; k < 12; k++) {
        const int64_t batch = 1 + k * 5 % MOST_BATCH;
        values(x, (uint64_t)k);
        if (run(s, x, batch, y) && run(t, x, batch, want))
            for (int i = 0; i < WIDTH * batch; i++)
                if (!CHECK_MSG(fabsf(y[i] - want[i]) < 1e-5f * (float)(n + 1),
                               "run %d, element %d: %g, expected %g", (int)k, i, (double)y[i],
                               (double)want[i]))
                    break;
    }
    ggl_sched_free(s);
    ggl_sched_free(t);
    ggl_graph_free(g);
    ggl_backend_close(b);
    ggl_backend_close(reference);
}

TEST(a_long_chain) {
    check_chains(1, DEPTH);
}
TEST(chains_beside_each_other) {
    check_chains(90, 1);
}

TEST(replay_allocates_nothing) {
    ggl_backend *b = vulkan_open(NULL);
    ggl_sched *s = NULL;
    ggl_error err = {0};
    float x[WIDTH * MOST_BATCH], y[WIDTH * MOST_BATCH], first[WIDTH * MOST_BATCH];
    if (!b)
        return;
    ggl_graph *g = chains(3, 5);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    REQUIRE(start(&s, g, b, &err));
    values(x, 1);
    REQUIRE(run(s, x, 1, first) && run(s, x, MOST_BATCH, y));
    long before = alloc_count();
    CHECK(before > 0); /* the count works */
    for (int i = 0; i < 100; i++) {
        CHECK(run(s, x, 1, y) && memcmp(y, first, WIDTH * sizeof *y) == 0);
        CHECK(i % 10 || run(s, x, MOST_BATCH, y));
    }
    CHECK_INT(alloc_count() - before, 0);
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

TEST(equal_bits_each_time) {
    float x[WIDTH * MOST_BATCH], y[WIDTH * MOST_BATCH], first[WIDTH * MOST_BATCH];
    values(x, 2);
    for (int i = 0; i < 3; i++) {
        ggl_backend *b = vulkan_open(NULL);
        ggl_sched *s = NULL;
        ggl_error err = {0};
        if (!b)
            return;
        ggl_graph *g = chains(4, 10);
        REQUIRE_OK(ggl_graph_finish(g, &err), &err);
        REQUIRE(start(&s, g, b, &err));
        for (int k = 0; k < 5; k++) {
            REQUIRE(run(s, x, MOST_BATCH, y));
            if (i == 0 && k == 0)
                memcpy(first, y, sizeof y);
            CHECK(memcmp(first, y, sizeof y) == 0);
        }
        ggl_sched_free(s);
        ggl_graph_free(g);
        ggl_backend_close(b);
    }
}

/* Callers take turns with sets of buffers, here with more than a plan keeps recordings for; a
 * buffer that is freed and made again is another. */
TEST(buffers_in_turn) {
    enum { SETS = 7, MOST = 16 };
    ggl_backend *b = vulkan_open(NULL);
    ggl_error err = {0};
    ggl_plan *plan = NULL;
    ggl_buffer *region[SETS][GGL_REGION_STORES + 1] = {0};
    ggl_loc loc[MOST];
    if (!b)
        return;
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true);
    ggl_tensor *y = ggl_unary(g, GGL_OP_ABS, x), *z = ggl_binary(g, GGL_OP_ADD, y, x);
    ggl_graph_output(g, "z", z);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    loc[x->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = 0};
    loc[y->id] = (ggl_loc){.region = -1, .offset = 0};
    loc[z->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = 4096};
    ggl_tensor *node[] = {y, z};
    const ggl_segment s = {
        .graph = g, .node = node, .n_node = 2, .n_max = 4, .loc = loc, .n_slots = 1};
    REQUIRE_OK(b->v->compile(b, &s, &plan, &err), &err);
    const size_t size[] = {plan->arena_size, 8192, 64};
    for (int round = 0; round < 3 * SETS; round++) {
        ggl_buffer **r = region[round % SETS];
        float in[WIDTH], out[WIDTH];
        for (int i = 0; i <= GGL_REGION_STORES; i++) {
            if (r[i] && round >= 2 * SETS)
                b->v->free(b, r[i]);
            if (!r[i] || round >= 2 * SETS)
                REQUIRE_OK(b->v->alloc(b, i, size[i], NULL, &r[i], &err), &err);
        }
        for (int i = 0; i < WIDTH; i++)
            in[i] = (float)(i - 20) * (float)(round + 1);
        CHECK_OK(b->v->upload(b, r[GGL_REGION_IO], 0, in, sizeof in, &err), &err);
        CHECK_OK(b->v->run(b, plan, r, 1, &err), &err);
        CHECK_OK(b->v->download(b, r[GGL_REGION_IO], 4096, out, sizeof out, &err), &err);
        for (int i = 0; i < WIDTH; i++)
            CHECK(out[i] == (in[i] > 0 ? 2 * in[i] : 0));
    }
    b->v->plan_free(b, plan);
    for (int k = 0; k < SETS; k++)
        for (int i = 0; i <= GGL_REGION_STORES; i++)
            b->v->free(b, region[k][i]);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

/* Results in memory that the host sees are copied only when they are complete, also to memory that
 * the host does not see. */
TEST(a_copy_waits_for_the_run) {
    enum { N = 1 << 20, SIZE = N * sizeof(float), TAIL = 4096 };
    ggl_backend *b = vulkan_open("map");
    ggl_error err = {0};
    ggl_plan *plan = NULL;
    ggl_buffer *region[GGL_REGION_STORES + 1] = {0};
    ggl_loc loc[4];
    float *x = calloc(N, sizeof *x), out[TAIL / sizeof(float)];
    if (b) {
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_tensor *in = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){N}, true);
        ggl_tensor *y = ggl_unary(g, GGL_OP_COS, in); /* of zeros: ones */
        ggl_graph_output(g, "y", y);
        REQUIRE_OK(ggl_graph_finish(g, &err), &err);
        loc[in->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = 0};
        loc[y->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = SIZE};
        const ggl_segment s = {
            .graph = g, .node = &y, .n_node = 1, .n_max = 1, .loc = loc, .n_slots = 1};
        REQUIRE_OK(b->v->compile(b, &s, &plan, &err), &err);
        const size_t size[] = {plan->arena_size, 2 * SIZE, TAIL};
        for (int i = 0; i <= GGL_REGION_STORES; i++)
            REQUIRE_OK(b->v->alloc(b, i, size[i], NULL, &region[i], &err), &err);
        ggl_buffer *io = region[GGL_REGION_IO], *to = region[GGL_REGION_STORES];
        CHECK_OK(b->v->upload(b, io, 0, x, SIZE, &err), &err);
        CHECK_OK(b->v->run(b, plan, region, 1, &err), &err);
        const ggl_copy_range last = {0, 2 * SIZE - TAIL, TAIL};
        CHECK_OK(b->v->copy(b, to, io, &last, 1, &err), &err);
        CHECK_OK(b->v->download(b, to, 0, out, TAIL, &err), &err);
        CHECK(out[0] == 1 && memcmp(out, out + 1, TAIL - sizeof *out) == 0);
        b->v->plan_free(b, plan);
        for (int i = 0; i <= GGL_REGION_STORES; i++)
            b->v->free(b, region[i]);
        ggl_graph_free(g);
        ggl_backend_close(b);
    }
    free(x);
}

/* --- times of steps ------------------------------------------------------------------------- */

typedef struct times {
    int n_steps, n_wrong; /* wrong: before the one before it */
    int64_t n;
    uint64_t last;
} times;

static void add_time(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                     uint64_t end) {
    times *t = ctx;
    t->n_steps++;
    t->n_wrong += begin < t->last || end < begin || prepares || !node;
    t->n = n;
    t->last = end;
}

TEST(steps_are_timed) {
    times t = {0};
    ggl_backend *b = vulkan_open(NULL);
    ggl_sched *s = NULL;
    ggl_error err = {0};
    float x[WIDTH * MOST_BATCH], y[WIDTH * MOST_BATCH];
    if (!b)
        return;
    ggl_backend_close(b);
    const ggl_backend_params params = {
        .size = sizeof params, .profile = add_time, .profile_ctx = &t};
    REQUIRE_OK(ggl_backend_open(&b, "vulkan", &params, &err), &err);
    ggl_graph *g = chains(2, 3); /* each one product, three sums and three of tanh; and two sums */
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    REQUIRE(start(&s, g, b, &err));
    values(x, 3);
    for (int i = 1; i <= 3; i++) {
        CHECK(run(s, x, i, y));
        CHECK(t.n_steps == 0 || t.n_steps == 16 * i); /* 0: the device has no clock */
        CHECK(t.n_steps == 0 || t.n == i);
        CHECK_INT(t.n_wrong, 0);
    }
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

/* --- out of memory -------------------------------------------------------------------------- */

static ggl_error last_error;

static bool open_and_run(void *arg) {
    ggl_graph *g = arg;
    ggl_backend *b = NULL;
    ggl_sched *s = NULL;
    ggl_error err = {0};
    float x[WIDTH] = {1};
    bool ok = ggl_backend_open(&b, "vulkan", NULL, &err) == GGL_OK && start(&s, g, b, &err) &&
              ggl_sched_set(s, "x", x, sizeof x, 1, &err) == GGL_OK &&
              ggl_sched_run(s, 1, NULL, 0, &err) == GGL_OK;
    if (!ok)
        CHECK(err.msg[0]);
    last_error = err;
    ggl_sched_free(s);
    ggl_backend_close(b);
    return ok;
}

TEST(out_of_memory) {
    ggl_backend *b = vulkan_open(NULL);
    ggl_error err = {0};
    if (!b)
        return;
    ggl_backend_close(b);
    ggl_graph *g = chains(1, 2);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    const long n = alloc_fail_each(open_and_run, g);
    CHECK_MSG(n > 10, "%ld: %s", n, last_error.msg);
    ggl_graph_free(g);
}
