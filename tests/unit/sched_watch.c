/* Watched nodes: what they have read is shown, for the whole batch, on every backend and on several,
 * and outputs have the same bits as without. */
#include <math.h>

#include "ggl/backends.h"
#include "ggl/compose.h"
#include "ggl/sched.h"

#include "test.h"

enum { N = 4, N_BATCH = 5, N_GROUPS = 3 };

static const float weight[N * N] = {1, 0.5F, 0, -1, 0.25F, 1, 1, 0, -0.5F, 0, 1, 2, 0, 1, 0, 0.75F};

typedef struct seen {
    int n_begun, n_calls;
    const ggl_tensor *wanted[N_GROUPS]; /* by group */
    float x[N_GROUPS][N_BATCH][N];      /* what the product of each group has read */
    int64_t n[N_GROUPS];
} seen;

static void begin(void *ctx) {
    seen *s = ctx;
    CHECK(!s->wanted[0]); /* before anything is asked for */
    s->n_begun++;
}

static bool wants(void *ctx, const ggl_tensor *node) {
    seen *s = ctx;
    if (node->op != GGL_OP_LINEAR)
        return false;
    s->wanted[node->group] = node;
    return true;
}

static void see(void *ctx, const ggl_tensor *node, const void *const *operand, int64_t n) {
    seen *s = ctx;
    s->n_calls++;
    CHECK(s->wanted[node->group] == node && n <= N_BATCH);
    CHECK(operand[0] && !operand[1]); /* the value, but not the weight */
    memcpy(s->x[node->group], operand[0], (size_t)n * N * sizeof(float));
    s->n[node->group] = n;
}

/* Three groups of y = W (y * y + c): the last product is of the tail. */
static ggl_graph *make_graph(void) {
    ggl_graph *g = ggl_graph_new(&(ggl_graph_params){
        .size = sizeof(ggl_graph_params), .n_pos = 64, .n_batch = N_BATCH, .n_slots = 1});
    ggl_tensor *y = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){N}, true);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){N, N}, weight);
    for (int i = 0; i < N_GROUPS; i++) {
        ggl_graph_set_group(g, i);
        ggl_tensor *x = ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_MUL, y, y),
                                   ggl_graph_number(g, 0.25 * i));
        y = ggl_linear(g, x, w, NULL);
    }
    ggl_graph_output(g, "y", y);
    return g;
}

static int place_by_group(void *ctx, int group, const char *name) {
    (void)ctx;
    (void)name;
    return group == 1;
}

/* What the product of a group reads, and the result, for the element with these inputs. */
static void expect(const float *in, double x[N_GROUPS][N], double *y) {
    double at[N];
    for (int i = 0; i < N; i++)
        at[i] = (double)in[i];
    for (int k = 0; k < N_GROUPS; k++) {
        for (int i = 0; i < N; i++)
            x[k][i] = at[i] * at[i] + 0.25 * k;
        for (int j = 0; j < N; j++) {
            at[j] = 0;
            for (int i = 0; i < N; i++)
                at[j] += (double)weight[j * N + i] * x[k][i];
        }
    }
    memcpy(y, at, sizeof at);
}

static bool is_near(float got, double want) {
    return fabs((double)got - want) <= 1e-5 * (1 + fabs(want));
}

static void check_values(const seen *s, const float in[N_BATCH][N], const float *out, int row) {
    double x[N_GROUPS][N], y[N];
    for (int e = 0; e < N_BATCH; e++) {
        expect(in[e], x, y);
        for (int k = 0; k < N_GROUPS; k++)
            for (int i = 0; i < N; i++)
                CHECK_MSG(is_near(s->x[k][e][i], x[k][i]), "group %d, element %d: %g, not %g", k, e,
                          (double)s->x[k][e][i], x[k][i]);
        for (int i = 0; i < N && e == row; i++)
            CHECK_MSG(is_near(out[i], y[i]), "output %d: %g, not %g", i, (double)out[i], y[i]);
    }
}

/* Runs a batch of which only one row is wanted. out: that row. */
static void run(ggl_backend **b, int n_backends, const ggl_watch *w, const float in[N_BATCH][N],
                int row, float out[N]) {
    ggl_error err = {0};
    ggl_sched *s = NULL;
    ggl_graph *g = make_graph();
    const ggl_sched_params p = {.size = sizeof p,
                                .backend = b,
                                .n_backends = n_backends,
                                .place = n_backends > 1 ? place_by_group : NULL,
                                .watch = w};
    bool ok =
        CHECK_OK(ggl_graph_finish(g, &err), &err) &&
        CHECK_OK(ggl_sched_new(&s, g, &p, &err), &err) &&
        CHECK_OK(ggl_sched_alloc(s, &err), &err) &&
        CHECK_OK(ggl_sched_set(s, "x", in, N_BATCH * N * sizeof(float), N_BATCH, &err), &err) &&
        CHECK_OK(ggl_sched_run(s, N_BATCH, &(int32_t){row}, 1, &err), &err);
    if (ok)
        memcpy(out, ggl_sched_output(s, 0), N * sizeof *out);
    ggl_sched_free(s);
    ggl_graph_free(g);
}

static void check(const char *first, const char *second) {
    ggl_error err = {0};
    ggl_backend *b[2] = {NULL, NULL};
    const int n = second ? 2 : 1, row = 3;
    float in[N_BATCH][N], out[N] = {0}, plain[N] = {0};
    uint64_t seed = 7;
    seen s = {0};
    const ggl_watch w = {wants, see, &s, begin};
    for (int i = 0; i < N_BATCH * N; i++)
        in[i / N][i % N] = test_random_float(&seed);
    if (ggl_backend_open(&b[0], first, NULL, &err) != GGL_OK)
        SKIP("%s", err.msg);
    if (second)
        REQUIRE_OK(ggl_backend_open(&b[1], second, NULL, &err), &err);
    run(b, n, &w, in, row, out);
    CHECK_INT(s.n_calls, N_GROUPS);
    for (int k = 0; k < N_GROUPS; k++)
        CHECK_INT(s.n[k], N_BATCH); /* though only one row was wanted */
    CHECK_INT(s.n_begun, 1);
    check_values(&s, in, out, row);
    run(b, n, NULL, in, row, plain);
    CHECK(strcmp(first, "reference") == 0 || memcmp(out, plain, sizeof out) == 0);
    ggl_backend_close(b[0]);
    ggl_backend_close(b[1]);
}

TEST(watch_cpu) {
    check("cpu", NULL);
}

TEST(watch_reference) {
    check("reference", NULL); /* shown values are f32, others double: outputs may differ */
}

TEST(watch_two_backends) {
    check("cpu", "cpu");
}

TEST(watch_device) {
    check("vulkan", NULL);
}

TEST(watch_device_and_cpu) {
    check("vulkan", "cpu");
}
