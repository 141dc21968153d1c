/* `where(c, linear(x, a), linear(x, b))`, with a condition c that is an input: a product of which no row is taken is not computed, and the others have the same bits. */
#include "cpu.h"
#include "graph_facts_test.h"

enum { D = 32, M = 8, N = 4 };

/* Which rows take the first product: each row has a bit. */
static void set_conditions(float *c, int rows) {
    for (int i = 0; i < N; i++)
        c[i] = (float)(rows >> i & 1);
}

static ggl_tensor *weight(fixture *f, const char *name, ggl_type type, int seed) {
    static float w[2][M * D];
    static uint16_t half[2][M * D];
    for (int i = 0; i < M * D; i++) {
        w[seed][i] = (float)((i * i * 37 + i * (5 + seed)) % 23 - 8) / 8;
        half[seed][i] = ggl_f32_to_f16(w[seed][i]);
    }
    return ggl_graph_weight(f->g, name, type, 2, (int64_t[]){D, M},
                            type == GGL_F16 ? (const void *)half[seed] : w[seed]);
}

/* What the graph has beside the choice. */
typedef enum kind { ALONE, OTHER_READER, COMPUTED } kind;

static ggl_tensor *choice(fixture *f, ggl_type type, kind k) {
    ggl_tensor *x = ggl_graph_input(f->g, "x", GGL_F32, 1, (int64_t[]){D}, true),
               *c = ggl_graph_input(f->g, "c", GGL_F32, 1, (int64_t[]){1}, true),
               *a = ggl_linear(f->g, x, weight(f, "a", type, 0), NULL),
               *b = ggl_linear(f->g, x, weight(f, "b", type, 1), NULL);
    if (k == COMPUTED) /* it is not known before the products run */
        c = ggl_binary(f->g, GGL_OP_MUL, c, c);
    ggl_tensor *y = ggl_graph_op(f->g, GGL_OP_WHERE, (ggl_tensor *[]){c, a, b}, 3, NULL, 0);
    return k == OTHER_READER ? ggl_binary(f->g, GGL_OP_ADD, y, ggl_binary(f->g, GGL_OP_MUL, a, b))
                             : y;
}

/* Counts the products that have work (cpu_watch). */
static void count(void *ctx, const cpu_list *list, int n_threads, const cpu_task *task) {
    int *n = ctx;
    (void)n_threads;
    for (int i = 0; task && i < list->n; i++)
        *n += task[i].step->op == &ggl_cpu_op_linear && list->share[i].n_units > 0;
}

static bool set_inputs(fixture *f, int rows, int n) {
    float x[N * D], c[N];
    for (int i = 0; i < N * D; i++)
        x[i] = (float)(i % 7) / 7 - 0.25F;
    set_conditions(c, rows);
    return set(f, "x", x, n) && set(f, "c", c, n);
}

/* Runs n rows. Sets the results, or, if y is NULL, how many products have work. */
static bool run(ggl_type type, kind k, const char *backend, int rows, int n, float *y,
                int *n_products) {
    fixture f;
    bool ok = begin(&f) && start(&f, backend, choice(&f, type, k)) && set_inputs(&f, rows, n);
    if (ok && !y) {
        cpu_backend *b = (cpu_backend *)f.b;
        b->watch = count;
        b->watch_ctx = n_products;
        *n_products = 0;
    }
    ok = ok && CHECK_OK(ggl_sched_run(f.s, n, NULL, 0, &f.err), &f.err);
    if (ok && y)
        memcpy(y, ggl_sched_output(f.s, 0), (size_t)(n * M) * sizeof *y);
    end(&f);
    return ok;
}

TEST(products_without_rows_are_left_out) {
    for (int rows = 0; rows < 1 << N; rows++)
        for (int k = ALONE; k <= COMPUTED; k++) {
            const bool some = rows != 0, others = rows != (1 << N) - 1;
            int n;
            REQUIRE(run(GGL_F32, (kind)k, "cpu", rows, N, NULL, &n));
            CHECK_MSG(n == (k == ALONE ? some + others : 2), "rows %d, kind %d: %d products", rows,
                      k, n);
        }
}

TEST(rows_have_the_same_bits) {
    for (int half = 0; half < 2; half++)
        for (int k = ALONE; k <= COMPUTED; k++) {
            const ggl_type type = half ? GGL_F16 : GGL_F32;
            float of_a[N * M], of_b[N * M], y[N * M];
            /* each product alone, of a batch in which both have rows; row by row, since the kernels' bits do not depend on the batch */
            REQUIRE(run(type, (kind)k, "cpu", 0x5, N, of_a, NULL));
            REQUIRE(run(type, (kind)k, "cpu", 0xa, N, of_b, NULL));
            for (int e = 0; e < N * M; e++)
                if (e / M % 2 == 1) {
                    const float x = of_a[e];
                    of_a[e] = of_b[e];
                    of_b[e] = x;
                }
            for (int rows = 0; rows < 1 << N; rows++)
                for (int n = 1; n <= N; n++) {
                    REQUIRE(run(type, (kind)k, "cpu", rows, n, y, NULL));
                    for (int i = 0; i < n; i++)
                        CHECK_MSG(memcmp(y + i * M, (rows >> i & 1 ? of_a : of_b) + i * M,
                                         M * sizeof *y) == 0,
                                  "kind %d, rows %d of %d: row %d", k, rows, n, i);
                }
        }
}
