/* vulkan.batches: batches of all sizes, which share recordings; long work, which is cut into
 * submissions. */
#include <math.h>

#include "alloc_fail.h"
#include "ggl/sched.h"
#include "vulkan.h"
#include "vulkan_test.h"

enum { WIDTH = 4, MOST_BATCH = 40, N_SLOTS = 3, N_POS = 1024 };

typedef struct fixture {
    ggl_graph *g;
    ggl_backend *b;
    ggl_sched *s;
    int n_past[N_SLOTS];
    double sum[N_SLOTS][WIDTH]; /* of x, by slot */
} fixture;

/* y = sum of x over the sequence, by a state, plus its mean, by attention with equal keys. */
static ggl_graph *sums(void) {
    const ggl_graph_params p = {.size = sizeof p,
                                .n_pos = N_POS,
                                .n_batch = MOST_BATCH,
                                .n_slots = N_SLOTS,
                                .type_k = GGL_F32,
                                .type_v = GGL_F32};
    ggl_graph *g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){WIDTH}, true),
               **param = ggl_body_begin(g, &x, 1), *sum = NULL;
    if (param) {
        ggl_tensor *s = ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){WIDTH}, 1),
                   *next = ggl_binary(g, GGL_OP_ADD, s, param[0]);
        ggl_graph_op(g, GGL_OP_KEEP, (ggl_tensor *[]){s, next}, 2, NULL, 0);
        sum = ggl_body_end(g, NULL, next, NULL, 0);
    }
    ggl_tensor *heads = ggl_graph_op(g, GGL_OP_RESHAPE, &x, 1, (double[]){WIDTH, 1}, 2);
    ggl_tensor *zero = ggl_binary(g, GGL_OP_MUL, heads, ggl_graph_number(g, 0));
    ggl_tensor *mean =
        ggl_graph_op(g, GGL_OP_ATTEND,
                     (ggl_tensor *[]){zero, ggl_binary(g, GGL_OP_CACHE, zero, heads)}, 2, NULL, 0);
    mean = ggl_graph_op(g, GGL_OP_RESHAPE, &mean, 1, (double[]){WIDTH}, 1);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_ADD, sum, mean));
    return g;
}

static bool start(fixture *f, ggl_graph *g, const char *mask) {
    ggl_error err = {0};
    *f = (fixture){.g = g, .b = vulkan_open(mask)};
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &f->b, .n_backends = 1};
    return f->b && CHECK_OK(ggl_graph_finish(g, &err), &err) &&
           CHECK_OK(ggl_sched_new(&f->s, g, &sp, &err), &err) &&
           CHECK_OK(ggl_sched_alloc(f->s, &err), &err);
}

static void stop(fixture *f) {
    ggl_sched_free(f->s);
    ggl_graph_free(f->g);
    ggl_backend_close(f->b);
}

static const vk_backend *vulkan(const fixture *f) {
    return (const vk_backend *)f->b;
}

/* Runs a batch of n, whose tokens are of all slots in turn, and checks all results. */
static bool run_sums(fixture *f, int n, uint64_t *seed) {
    float x[MOST_BATCH][WIDTH];
    double want[MOST_BATCH][WIDTH];
    int32_t slot[MOST_BATCH], pos[MOST_BATCH];
    ggl_error err = {0};
    for (int k = 0; k < n; k++) {
        const int s = slot[k] = (k + n) % N_SLOTS;
        pos[k] = f->n_past[s]++;
        for (int i = 0; i < WIDTH; i++) {
            x[k][i] = test_random_float(seed);
            f->sum[s][i] += (double)x[k][i];
            want[k][i] = f->sum[s][i] * (1 + 1.0 / f->n_past[s]);
        }
    }
    if (!CHECK_OK(ggl_sched_set(f->s, "x", x, (size_t)n * sizeof *x, n, &err), &err) ||
        !CHECK_OK(ggl_sched_set(f->s, "pos", pos, (size_t)n * sizeof *pos, n, &err), &err) ||
        !CHECK_OK(ggl_sched_set(f->s, "slot", slot, (size_t)n * sizeof *slot, n, &err), &err) ||
        !CHECK_OK(ggl_sched_run(f->s, n, NULL, 0, &err), &err))
        return false;
    const float *y = ggl_sched_output(f->s, 0);
    for (int k = 0; k < n * WIDTH; k++) {
        const double one = want[k / WIDTH][k % WIDTH], got = (double)y[k];
        if (!CHECK_MSG(fabs(got - one) < 1e-3, "batch of %d, token %d: %g, expected %g", n,
                       k / WIDTH, got, one))
            return false;
    }
    return true;
}

/* The tokens after a batch's end are of slots that an earlier batch had: they change nothing. */
TEST(smaller_batches_change_no_other_slot) {
    fixture f;
    uint64_t seed = 1;
    if (!start(&f, sums(), NULL))
        return;
    for (int i = 0; i < 12; i++)
        if (!run_sums(&f, i % 3 == 0 ? MOST_BATCH : 1 + i * 7 % MOST_BATCH, &seed))
            break;
    stop(&f);
}

TEST(pipelines_are_made_when_a_plan_is_compiled) {
    fixture f;
    uint64_t seed = 2;
    if (!start(&f, sums(), NULL))
        return;
    const uint64_t before = vulkan(&f)->n_pipelines;
    CHECK(before > 0);
    for (int n = MOST_BATCH; n > 0; n--)
        if (!run_sums(&f, n, &seed))
            break;
    CHECK_INT(vulkan(&f)->n_pipelines - before, 0);
    stop(&f);
}

TEST(batches_of_similar_sizes_share_recordings) {
    static const int warm[] = {7, 8, 1, 17, 40}, after[] = {8, 7, 8, 20, 32, 1, 40, 19, 37};
    fixture f;
    uint64_t seed = 3;
    if (!start(&f, sums(), NULL))
        return;
    for (size_t i = 0; i < sizeof warm / sizeof *warm; i++)
        REQUIRE(run_sums(&f, warm[i], &seed));
    const uint64_t recordings = vulkan(&f)->n_recordings;
    const long allocations = alloc_count();
    CHECK(recordings >= sizeof warm / sizeof *warm); /* for each plan of the graph */
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < sizeof after / sizeof *after; i++)
            REQUIRE(run_sums(&f, after[i], &seed));
    CHECK_INT(vulkan(&f)->n_recordings - recordings, 0);
    CHECK_INT(alloc_count() - allocations, 0);
    stop(&f);
}

/* More sizes than a plan keeps recordings for. */
TEST(recordings_are_replaced) {
    fixture f;
    uint64_t seed = 4;
    ggl_graph *g = sums();
    if (!start(&f, g, "pace"))
        return;
    for (int i = 0; i < 60; i++)
        if (!run_sums(&f, 1 + i * 11 % MOST_BATCH, &seed))
            break;
    stop(&f);
}

/* --- submissions ------------------------------------------------------------------------------ */

enum { N_COLS = 192, N_ROWS = 256, N_PRODUCTS = 3 };

static float weights[N_PRODUCTS][N_ROWS * N_ROWS], columns[N_COLS * N_ROWS];

static ggl_graph *products(void) {
    const ggl_graph_params p = {.size = sizeof p, .n_pos = 1, .n_batch = N_COLS, .n_slots = 1};
    ggl_graph *g = ggl_graph_new(&p);
    ggl_tensor *y = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){N_ROWS}, true);
    for (int i = 0; i < N_PRODUCTS; i++)
        y = ggl_linear(g, y,
                       ggl_graph_weight(g, (const char *[]){"a", "b", "c"}[i], GGL_F32, 2,
                                        (int64_t[]){N_ROWS, N_ROWS}, weights[i]),
                       NULL);
    ggl_graph_output(g, "y", y);
    return g;
}

/* Returns the results, to free(), and the submissions of one run that compute. */
static float *run_products(const char *mask, uint64_t *n_submissions) {
    const size_t size = sizeof columns;
    fixture f;
    ggl_error err = {0};
    float *y = NULL;
    if (start(&f, products(), mask) &&
        CHECK_OK(ggl_sched_set(f.s, "x", columns, size, N_COLS, &err), &err) &&
        CHECK_OK(ggl_sched_run(f.s, N_COLS, NULL, 0, &err), &err)) {
        y = malloc(size);
        *n_submissions = vulkan(&f)->n_submissions;
        const uint64_t recordings = vulkan(&f)->n_recordings;
        CHECK_OK(ggl_sched_run(f.s, N_COLS, NULL, 0, &err), &err);
        *n_submissions = vulkan(&f)->n_submissions - *n_submissions;
        if (!vulkan(&f)->features.map) /* the last one copies the results to the host */
            (*n_submissions)--;
        CHECK_INT(vulkan(&f)->n_recordings - recordings, 0);
        memcpy(y, ggl_sched_output(f.s, 0), size);
    }
    stop(&f);
    return y;
}

/* Work that is too long for one submission is cut, between steps and between tokens. */
TEST(long_work_is_cut) {
    uint64_t seed = 5, whole = 0, cut = 0;
    for (int k = 0; k < N_PRODUCTS; k++)
        for (int i = 0; i < N_ROWS * N_ROWS; i++)
            weights[k][i] = test_random_float(&seed) / 8;
    for (int i = 0; i < N_COLS * N_ROWS; i++)
        columns[i] = test_random_float(&seed);
    float *want = run_products(NULL, &whole), *got = run_products("pace", &cut);
    if (want && got) {
        CHECK_INT(whole, 1);
        CHECK_MSG(cut > 2 * N_PRODUCTS, "%d submissions", (int)cut);
        CHECK(memcmp(got, want, sizeof columns) == 0);
    }
    free(want);
    free(got);
}
