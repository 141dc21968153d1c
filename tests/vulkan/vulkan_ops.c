/* vulkan.ops: every operator and composite that the backend has, against the reference; with the
 * features of the device, and without each. */
#include <math.h>

#include "../conformance/bodies.h"
#include "ggl/sched.h"
#include "vulkan_test.h"

static void check_case(const conform_case *info, ggl_backend *b, const char *mask) {
    conform_result r;
    for (int v = 0; v < conform_n_variants(info); v++) {
        conform_outcome o = conform_check(info, v, b, &r);
        CHECK_MSG(o == CONFORM_RIGHT || (o == CONFORM_REFUSED && !vulkan_decodes(r.form.type)),
                  "%s, %s, without %s: %s", info->name, r.form_text, mask ? mask : "nothing",
                  r.text);
    }
}

static void check_kind(const conform_kind *k, const char *mask) {
    ggl_backend *b = vulkan_open(mask);
    for (int i = 0; b && i < k->n_cases; i++)
        if (!vulkan_refuses(k->cases[i].op))
            check_case(&k->cases[i], b, mask);
    ggl_backend_close(b);
}

TEST(elementwise) {
    check_kind(&conform_elementwise, NULL);
}
TEST(along_rows) {
    check_kind(&conform_rows, NULL);
}
TEST(moves) {
    check_kind(&conform_moves, NULL);
}
TEST(composites) {
    check_kind(&conform_composites, NULL);
}

static void check_mask(const char *mask) {
    check_kind(&conform_rows, mask);
    check_kind(&conform_moves, mask);
    check_kind(&conform_composites, mask);
}
TEST(without_subgroups) {
    check_mask("subgroup");
}
TEST(without_small_storage) {
    check_mask("storage16,storage8");
}
TEST(without_import) {
    check_mask("import");
}
TEST(without_mapping) {
    check_mask("map,import");
}
TEST(without_anything) {
    check_mask("all");
}
/* Operands that are more than one binding holds: a few of the batch at a time. */
TEST(without_large_bindings) {
    check_kind(&conform_elementwise, "range");
    check_mask("range");
}

/* A composite with a kernel runs by it: else what the tests above check would be its body. */
TEST(composites_have_kernels) {
    static const bool by_body[GGL_COMPOSITE_COUNT + 1] = {
        [GGL_COMPOSITE_COUNT] = true,
#define BODY(ID) [GGL_COMPOSITE_##ID] = true,
#include "../../backends/vulkan/ops.def"
    };
    ggl_backend *b = vulkan_open(NULL);
    if (b)
        check_bodies(b, by_body);
    ggl_backend_close(b);
}

/* --- what the cases are too small for ------------------------------------------------------- */

/* y = op(x) for rows of n values; false: a failure was reported. */
static bool run_rows(ggl_backend *b, ggl_op op, double num, const float *x, int64_t n, int64_t rows,
                     float *y, int64_t n_y) {
    ggl_error err = {0};
    ggl_graph_params gp = ggl_graph_default();
    gp.n_batch = rows;
    ggl_graph *g = ggl_graph_new(&gp);
    ggl_sched *s = NULL;
    ggl_tensor *in = ggl_graph_input(g, "x", GGL_F32, 1, &n, true);
    ggl_tensor *out = ggl_graph_op(g, op, &in, 1, &num, isnan(num) ? 0 : 1);
    if (out && out->type != GGL_F32)
        out = ggl_graph_op(g, GGL_OP_CAST, &out, 1, NULL, 0);
    ggl_graph_output(g, "y", out);
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &b, .n_backends = 1};
    ggl_status st = ggl_graph_finish(g, &err);
    if (st == GGL_OK)
        st = ggl_sched_new(&s, g, &sp, &err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, &err);
    if (st == GGL_OK)
        st = ggl_sched_set(s, "x", x, (size_t)(n * rows) * sizeof *x, rows, &err);
    if (st == GGL_OK)
        st = ggl_sched_run(s, rows, NULL, 0, &err);
    if (CHECK_OK(st, &err))
        memcpy(y, ggl_sched_output(s, 0), (size_t)(rows * n_y) * sizeof *y);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return st == GGL_OK;
}

/* Rows that no workgroup can hold, with equals, infinities and NaN; as the reference has them. */
TEST(topk_of_long_rows) {
    enum { N = 5000, ROWS = 4, MOST = 1024 };
    static const double k[] = {1, 8, 1000, MOST};
    ggl_backend *b = vulkan_open(NULL), *reference = NULL;
    ggl_error err = {0};
    if (!b)
        return;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    float *x = calloc(N * ROWS, sizeof *x), *got = calloc(MOST * ROWS, sizeof *got),
          *want = calloc(MOST * ROWS, sizeof *want);
    uint64_t seed = 5;
    for (int i = 0; i < N * ROWS; i++) {
        float v = test_random_float(&seed);
        x[i] = i < N ? v : i < 2 * N ? floorf(v * 20) : i < 3 * N ? floorf(v * 2) * 0.0f : v;
        if (i >= 3 * N && i % 10 != 0) /* all but 500 */
            x[i] = i % 10 == 1 ? -INFINITY : NAN;
    }
    for (size_t i = 0; i < sizeof k / sizeof *k; i++) {
        const int64_t n = (int64_t)k[i];
        if (run_rows(b, GGL_OP_TOPK, k[i], x, N, ROWS, got, n) &&
            run_rows(reference, GGL_OP_TOPK, k[i], x, N, ROWS, want, n))
            CHECK_MSG(memcmp(got, want, (size_t)(ROWS * n) * sizeof *got) == 0, "the best %d",
                      (int)n);
    }
    free(x);
    free(got);
    free(want);
    ggl_backend_close(b);
    ggl_backend_close(reference);
}

/* Angles that need more of 2 / pi than a float has; where float functions meet their ends. */
TEST(functions_at_their_ends) {
    static const ggl_op op[] = {GGL_OP_SIN, GGL_OP_COS,     GGL_OP_EXP, GGL_OP_LOG,
                                GGL_OP_ERF, GGL_OP_SIGMOID, GGL_OP_TANH};
    enum { N = 1 << 14 };
    ggl_backend *b = vulkan_open(NULL), *reference = NULL;
    ggl_error err = {0};
    if (!b)
        return;
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &err), &err);
    float *x = calloc(N, sizeof *x), *got = calloc(N, sizeof *got), *want = calloc(N, sizeof *want);
    uint64_t seed = 7;
    for (size_t k = 0; k < sizeof op / sizeof *op; k++) {
        for (int i = 0; i < N; i++) { /* any bits but subnormal numbers, or numbers up to 100 */
            const uint32_t u = (uint32_t)test_random(&seed);
            memcpy(&x[i], &u, sizeof u);
            x[i] = i % 2 ? test_random_float(&seed) * 100 : fabsf(x[i]) < 1.2e-38f ? 0 : x[i];
        }
        if (!run_rows(b, op[k], NAN, x, N, 1, got, N) ||
            !run_rows(reference, op[k], NAN, x, N, 1, want, N))
            continue;
        int n_wrong = 0;
        for (int i = 0; i < N; i++) {
            const double d = fabs((double)got[i] - (double)want[i]);
            const bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
            const double small = op[k] == GGL_OP_SIN || op[k] == GGL_OP_COS ? 1 : 1e-30;
            if (!same && !(d <= 2e-6 * fmax(fabs((double)want[i]), small)) && n_wrong++ < 5)
                (void)TEST_SAY("%s(%a) is %.9g, the reference has %.9g", ggl_op_get(op[k]).name,
                               (double)x[i], (double)got[i], (double)want[i]);
        }
    }
    free(x);
    free(got);
    free(want);
    ggl_backend_close(b);
    ggl_backend_close(reference);
}
