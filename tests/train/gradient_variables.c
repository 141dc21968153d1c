/* Variables: gradients that add up over batches, graphs that step, values that are computed again, and when a variable may be written. */
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

/* --- sums over batches, and variables --------------------------------------------------------- */

enum { IN = 70, OUT = 9, TOKENS = 12 };

/* A graph with a matrix, a bias and a table of rows, whose gradients add up in variables. */
typedef struct summing {
    ggl_graph *g;
    ggl_sched *s;
    float w[IN * OUT], bias[OUT], rows[5 * IN], dw[IN * OUT], dbias[OUT], drows[5 * IN];
} summing;

static ggl_status summing_new(summing *m, ggl_backend *on, ggl_error *err) {
    ggl_graph_params params = ggl_graph_default();
    params.n_batch = TOKENS;
    const int64_t in = IN, out = OUT, matrix[2] = {IN, OUT}, table[2] = {IN, 5};
    memset(m, 0, sizeof *m);
    state = 5;
    for (int i = 0; i < IN * OUT; i++)
        m->w[i] = (float)draw() - 0.5f;
    for (int i = 0; i < OUT; i++)
        m->bias[i] = (float)draw();
    for (int i = 0; i < 5 * IN; i++)
        m->rows[i] = (float)draw();
    ggl_graph *g = m->g = ggl_graph_new(&params);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &in, true),
               *target = ggl_graph_input(g, "target", GGL_I32, 0, NULL, true),
               *by[3] = {ggl_graph_variable(g, "w", GGL_F32, 2, matrix, m->w),
                         ggl_graph_variable(g, "bias", GGL_F32, 1, &out, m->bias),
                         ggl_graph_variable(g, "rows", GGL_F32, 2, table, m->rows)},
               *into[3] = {ggl_graph_variable(g, "dw", GGL_F32, 2, matrix, m->dw),
                           ggl_graph_variable(g, "dbias", GGL_F32, 1, &out, m->dbias),
                           ggl_graph_variable(g, "drows", GGL_F32, 2, table, m->drows)},
               *d[3] = {NULL};
    x = ggl_binary(g, GGL_OP_ADD, x, ggl_binary(g, GGL_OP_PICK, by[2], target));
    ggl_tensor *loss = ggl_cross_entropy(g, ggl_linear(g, x, by[0], by[1]), target);
    const ggl_grad_params p = {.size = sizeof p, .into = into};
    ggl_graph_output(g, "loss", loss);
    if (ggl_graph_grad(g, loss, by, 3, &p, d))
        for (int k = 0; k < 3; k++)
            ggl_graph_assign(g, into[k], d[k]);
    ggl_status st = ggl_graph_finish(g, err);
    if (st == GGL_OK)
        st = ggl_sched_new(
            &m->s, g,
            &(ggl_sched_params){.size = sizeof(ggl_sched_params), .backend = &on, .n_backends = 1},
            err);
    return st == GGL_OK ? ggl_sched_alloc(m->s, err) : st;
}

static void summing_free(summing *m) {
    ggl_sched_free(m->s);
    ggl_graph_free(m->g);
    free(m);
}

/* Runs the tokens in pieces of so many; returns the sum of the losses. */
static double run_pieces(summing *m, int piece) {
    static float x[TOKENS][IN];
    int32_t target[TOKENS];
    ggl_error err = {0};
    double sum = 0;
    state = 6;
    for (int i = 0; i < TOKENS; i++) {
        target[i] = i * 7 % 5;
        for (int k = 0; k < IN; k++)
            x[i][k] = (float)draw() - 0.5f;
    }
    for (int i = 0; i < TOKENS; i += piece) {
        const int n = i + piece < TOKENS ? piece : TOKENS - i;
        if (!CHECK_OK(ggl_sched_set(m->s, "x", x[i], (size_t)n * sizeof x[i], n, &err), &err) ||
            !CHECK_OK(ggl_sched_set(m->s, "target", target + i, (size_t)n * 4, n, &err), &err) ||
            !CHECK_OK(ggl_sched_run(m->s, n, NULL, 0, &err), &err))
            return NAN;
        for (int k = 0; k < n; k++)
            sum += (double)ggl_sched_output(m->s, 0)[k];
    }
    return sum;
}

TEST(sums_of_pieces_have_the_bits_of_the_whole) {
    static const struct {
        int threads, piece;
        const char *mask;
    } way[] = {{1, TOKENS, NULL}, {1, 5, NULL}, {2, 1, NULL}, {2, TOKENS, NULL}, {1, 7, "all"}};
    summing *first = NULL;
    test_set_variable("GGL_CPU_SHARE_ALL", "1");
    for (int i = 0; i < 5; i++) {
        ggl_error err = {0};
        ggl_backend *cpu = opened("cpu", way[i].threads, way[i].mask);
        summing *m = calloc(1, sizeof *m);
        REQUIRE(m && cpu);
        if (CHECK_OK(summing_new(m, cpu, &err), &err))
            CHECK(isfinite(run_pieces(m, way[i].piece)));
        if (first) {
            CHECK(memcmp(first->dw, m->dw, sizeof m->dw) == 0);
            CHECK(memcmp(first->dbias, m->dbias, sizeof m->dbias) == 0);
            CHECK(memcmp(first->drows, m->drows, sizeof m->drows) == 0);
        }
        CHECK(m->dw[0] != 0 && m->dbias[0] != 0 && m->drows[0] != 0);
        ggl_sched_free(m->s);
        m->s = NULL;
        ggl_backend_close(cpu);
        if (first)
            summing_free(m);
        else
            first = m;
    }
    test_set_variable("GGL_CPU_SHARE_ALL", NULL);
    summing_free(first);
}

/* One graph adds up gradients, another steps and clears them; both have the same memory. The loss falls. */
TEST(another_graph_steps) {
    static const char *const on[] = {"cpu", "reference"};
    for (int i = 0; i < 2; i++) {
        ggl_error err = {0};
        ggl_backend *b = opened(on[i], 1, NULL);
        summing *m = calloc(1, sizeof *m);
        REQUIRE(m && b);
        CHECK_OK(summing_new(m, b, &err), &err);
        ggl_graph *g = ggl_graph_new(NULL);
        const int64_t matrix[2] = {IN, OUT};
        ggl_tensor *rate = ggl_graph_input(g, "rate", GGL_F32, 0, NULL, false);
        ggl_tensor *w = ggl_graph_variable(g, "w", GGL_F32, 2, matrix, m->w),
                   *dw = ggl_graph_variable(g, "dw", GGL_F32, 2, matrix, m->dw);
        ggl_graph_output(g, "length", sum_all(g, ggl_binary(g, GGL_OP_MUL, dw, dw)));
        ggl_graph_assign(g, w, ggl_binary(g, GGL_OP_SUB, w, ggl_binary(g, GGL_OP_MUL, dw, rate)));
        ggl_graph_assign(g, dw,
                         with(g, GGL_OP_REPEAT, ggl_graph_number(g, 0), 2, (double[]){IN, OUT}));
        ggl_sched *s = NULL;
        CHECK_OK(ggl_graph_finish(g, &err), &err);
        const ggl_sched_params p = {.size = sizeof p, .backend = &b, .n_backends = 1};
        REQUIRE_OK(ggl_sched_new(&s, g, &p, &err), &err);
        REQUIRE_OK(ggl_sched_alloc(s, &err), &err);
        double before = run_pieces(m, TOKENS), loss = before;
        for (int step = 0; step < 10; step++) {
            const float some = 0.02f;
            double length = 0;
            for (int k = 0; k < IN * OUT; k++)
                length += (double)m->dw[k] * (double)m->dw[k];
            REQUIRE_OK(ggl_sched_set(s, "rate", &some, sizeof some, 1, &err), &err);
            REQUIRE_OK(ggl_sched_run(s, 1, NULL, 0, &err), &err);
            CHECK(fabs((double)ggl_sched_output(s, 0)[0] - length) <= 1e-5 * length);
            CHECK(m->dw[3] == 0);
            const double now = run_pieces(m, TOKENS);
            CHECK_MSG(now < loss, "step %d: %g, after %g", step, now, loss);
            loss = now;
        }
        CHECK_MSG(loss < 0.5 * before, "%g, from %g", loss, before);
        ggl_sched_free(s);
        ggl_graph_free(g);
        summing_free(m);
        ggl_backend_close(b);
    }
}

/* --- products in bf16 ------------------------------------------------------------------------- */

enum { WIDE_IN = 71, WIDE_OUT = 67, SOME = 13 };

/* y = W x, whose loss is the sum of c y, so that gradients are single products; `reads_rows`: x has a row of W added to it. */
typedef struct wide {
    ggl_graph *g;
    ggl_sched *s;
    int64_t n_in;
    float w[WIDE_IN * WIDE_OUT], dw[WIDE_IN * WIDE_OUT];
    uint16_t copy[WIDE_IN * WIDE_OUT];
    float loss[SOME], dx[SOME * WIDE_IN];
} wide;

static ggl_status wide_new(wide *m, ggl_backend *on, int64_t n_in, bool bf16, bool reads_rows,
                           ggl_error *err) {
    ggl_graph_params params = ggl_graph_default();
    params.n_batch = SOME;
    const int64_t n_out = WIDE_OUT, ne[2] = {n_in, n_out};
    memset(m, 0, sizeof *m);
    m->n_in = n_in;
    state = 15;
    for (int i = 0; i < n_in * n_out; i++) {
        m->w[i] = (float)draw() - 0.5f;
        m->dw[i] = (float)draw();
    }
    ggl_type_get(GGL_BF16)->from_float(m->w, m->copy, n_in * n_out);
    ggl_graph *g = m->g = ggl_graph_new(&params);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n_in, true),
               *c = ggl_graph_input(g, "c", GGL_F32, 1, &n_out, true),
               *row = ggl_graph_input(g, "row", GGL_I32, 0, NULL, true),
               *w = ggl_graph_variable(g, "w", GGL_F32, 2, ne, m->w),
               *copy[2] = {ggl_graph_variable(g, "w", GGL_BF16, 2, ne, m->copy), NULL},
               *by[2] = {w, x},
               *into[2] = {ggl_graph_variable(g, "dw", GGL_F32, 2, ne, m->dw), NULL},
               *d[2] = {NULL};
    const ggl_grad_params p = {
        .size = sizeof p, .into = into, .copy = bf16 ? copy : NULL, .bf16 = bf16};
    ggl_tensor *all = reads_rows ? ggl_binary(g, GGL_OP_ADD, x, ggl_binary(g, GGL_OP_PICK, w, row))
                                 : x,
               *y = ggl_linear(g, all, bf16 ? copy[0] : w, NULL),
               *loss = ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, y, c));
    ggl_graph_output(g, "loss", loss);
    if (ggl_graph_grad(g, loss, by, 2, &p, d)) {
        ggl_graph_assign(g, into[0], d[0]);
        ggl_graph_output(g, "dx", d[1]);
    }
    ggl_status st = ggl_graph_finish(g, err);
    if (st == GGL_OK)
        st = ggl_sched_new(
            &m->s, g,
            &(ggl_sched_params){.size = sizeof(ggl_sched_params), .backend = &on, .n_backends = 1},
            err);
    return st == GGL_OK ? ggl_sched_alloc(m->s, err) : st;
}

static void wide_free(wide *m) {
    ggl_sched_free(m->s);
    ggl_graph_free(m->g);
    free(m);
}

/* What the runs read. */
static void wide_inputs(int64_t n_in, float *x, float *c, int32_t *row) {
    state = 16;
    for (int i = 0; i < SOME; i++) {
        row[i] = i * 5 % 7;
        for (int64_t k = 0; k < n_in; k++)
            x[i * n_in + k] = (float)draw() - 0.5f;
        for (int k = 0; k < WIDE_OUT; k++)
            c[i * WIDE_OUT + k] = (float)draw() - 0.5f;
    }
}

static bool wide_run(wide *m, int piece) {
    static float x[SOME * WIDE_IN], c[SOME * WIDE_OUT];
    int32_t row[SOME];
    ggl_error err = {0};
    wide_inputs(m->n_in, x, c, row);
    for (int i = 0; i < SOME; i += piece) {
        const int n = i + piece < SOME ? piece : SOME - i;
        const size_t n_x = (size_t)(n * m->n_in);
        if (!CHECK_OK(ggl_sched_set(m->s, "x", x + i * m->n_in, n_x * 4, n, &err), &err) ||
            !CHECK_OK(ggl_sched_set(m->s, "c", c + i * WIDE_OUT, (size_t)n * WIDE_OUT * 4, n, &err),
                      &err) ||
            (ggl_graph_find_input(m->g, "row")->needed &&
             !CHECK_OK(ggl_sched_set(m->s, "row", row + i, (size_t)n * 4, n, &err), &err)) ||
            !CHECK_OK(ggl_sched_run(m->s, n, NULL, 0, &err), &err))
            return false;
        memcpy(m->loss + i, ggl_sched_output(m->s, 0), (size_t)n * sizeof(float));
        memcpy(m->dx + i * m->n_in, ggl_sched_output(m->s, 1), n_x * sizeof(float));
    }
    return true;
}

/* The results are as far from sums in double as rounding each factor to 8 bits allows, 2^-9 of it, and no farther. */
static void check_wide(const wide *m, bool reads_rows, bool bf16, const char *what) {
    static float x[SOME * WIDE_IN], c[SOME * WIDE_OUT];
    static double dw[WIDE_IN * WIDE_OUT], size[WIDE_IN * WIDE_OUT];
    const double share = bf16 ? 1.01 * 0x1p-8 : 200 * 0x1p-24;
    int32_t row[SOME];
    wide_inputs(m->n_in, x, c, row);
    state = 15;
    for (int64_t i = 0; i < m->n_in * WIDE_OUT; i++) {
        (void)draw();
        size[i] = fabs(dw[i] = (double)(float)draw());
    }
    for (int t = 0; t < SOME; t++) {
        double loss = 0, most = 0;
        for (int64_t i = 0; i < m->n_in; i++) {
            double dx = 0, of = 0;
            const float more = reads_rows ? m->w[row[t] * m->n_in + i] : 0;
            const double in = (double)(x[t * m->n_in + i] + more);
            for (int j = 0; j < WIDE_OUT; j++) {
                const double w = (double)m->w[j * m->n_in + i], dy = (double)c[t * WIDE_OUT + j];
                dx += w * dy;
                of += fabs(w * dy);
                loss += w * in * dy;
                most += fabs(w * in * dy);
                dw[j * m->n_in + i] += in * dy;
                size[j * m->n_in + i] += fabs(in * dy);
            }
            if (reads_rows) {
                dw[row[t] * m->n_in + i] += dx;
                size[row[t] * m->n_in + i] += of;
            }
            CHECK_MSG(fabs((double)m->dx[t * m->n_in + i] - dx) <= share * of, "%s: dx %d %d", what,
                      t, (int)i);
        }
        CHECK_MSG(fabs((double)m->loss[t] - loss) <= share * most, "%s: loss %d", what, t);
    }
    for (int64_t i = 0; i < m->n_in * WIDE_OUT; i++)
        CHECK_MSG(fabs((double)m->dw[i] - dw[i]) <= share * size[i], "%s: dw %d", what, (int)i);
}

static wide *wide_on(const char *name, int threads, const char *mask, int piece, int64_t n_in,
                     bool bf16, bool reads_rows) {
    ggl_error err = {0};
    ggl_backend *on = opened(name, threads, mask);
    wide *m = calloc(1, sizeof *m);
    if (on && m && CHECK_OK(wide_new(m, on, n_in, bf16, reads_rows, &err), &err))
        CHECK(wide_run(m, piece));
    if (m)
        ggl_sched_free(m->s);
    if (m)
        m->s = NULL;
    ggl_backend_close(on);
    return m;
}

/* A weight has its gradients by the copy that the product reads, and by itself, of which rows are picked. Sums in pieces have the same bits, but for those
 * of two nodes, which take turns. */
TEST(products_in_bf16) {
    static const struct {
        int threads, piece;
        const char *mask;
    } way[] = {{1, SOME, NULL}, {2, SOME, NULL}, {1, SOME, "all"}, {1, 5, NULL}, {2, 1, NULL}};
    test_set_variable("GGL_CPU_SHARE_ALL", "1");
    for (int rows = 0; rows < 2; rows++) {
        wide *f32 = wide_on("cpu", 1, NULL, SOME, WIDE_IN, false, rows), *first = NULL,
             *reference = wide_on("reference", 1, NULL, SOME, WIDE_IN, true, rows);
        REQUIRE(f32 && reference);
        check_wide(f32, rows, false, "f32");
        check_wide(reference, rows, true, "reference");
        for (int i = 0; i < (rows ? 3 : 5); i++) {
            wide *m =
                wide_on("cpu", way[i].threads, way[i].mask, way[i].piece, WIDE_IN, true, rows);
            REQUIRE(m);
            check_wide(m, rows, true, "bf16");
            first = first ? first : m;
            CHECK_MSG(memcmp(first->dw, m->dw, sizeof m->dw) == 0, "way %d", i);
            CHECK_MSG(memcmp(first->dx, m->dx, sizeof m->dx) == 0, "way %d", i);
            CHECK_MSG(memcmp(first->loss, m->loss, sizeof m->loss) == 0, "way %d", i);
            if (m != first)
                wide_free(m);
        }
        CHECK(memcmp(f32->dw, first->dw, sizeof f32->dw) != 0);
        CHECK(memcmp(f32->dx, first->dx, sizeof f32->dx) != 0);
        wide_free(first);
        wide_free(f32);
        wide_free(reference);
    }
    test_set_variable("GGL_CPU_SHARE_ALL", NULL);
    /* sums for thin matrices stay f32 */
    wide *thin = wide_on("cpu", 1, NULL, SOME, GGL_GRAD_BF16_SIDE - 1, true, false),
         *f32 = wide_on("cpu", 1, NULL, SOME, GGL_GRAD_BF16_SIDE - 1, false, false);
    REQUIRE(thin && f32);
    CHECK(memcmp(thin->dw, f32->dw, sizeof f32->dw) == 0);
    CHECK(memcmp(thin->dx, f32->dx, sizeof f32->dx) != 0); /* by the copy */
    wide_free(thin);
    wide_free(f32);
}

/* Products are in bf16, or not. */
TEST(numbers_that_products_cannot_have) {
    static const double half = 0.5, two[2] = {NAN, 2};
    const int64_t n = 4;
    for (int k = 0; k < 2; k++) {
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
                   *w = ggl_graph_input(g, "w", GGL_F32, 2, (int64_t[]){4, 4}, false);
        if (k == 0)
            ggl_graph_op(g, GGL_OP_LINEAR_BACK, (ggl_tensor *[]){x, w}, 2, &half, 1);
        else
            ggl_graph_op(g, GGL_OP_OUTER_SUM, (ggl_tensor *[]){x, x}, 2, two, 2);
        refused(g, k == 0 ? "linear_back with bf16 = 0.5" : "outer_sum with bf16 = 2");
    }
}

/* A copy has the shape of the weight. */
TEST(copies_of_other_shapes) {
    static float data[16];
    const int64_t n = 4;
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
               *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){4, 4}, data),
               *copy = ggl_graph_weight(g, "w", GGL_BF16, 2, (int64_t[]){4, 2}, data), *d;
    const ggl_grad_params p = {.size = sizeof p, .copy = &copy};
    CHECK(!ggl_graph_grad(g, ggl_linear(g, x, w, NULL), &w, 1, &p, &d));
    refused(g, "a copy of w is <weight> of [4, 2]");
}

/* --- what is computed again ------------------------------------------------------------------- */

enum { WIDTH = 24, LAYERS = 12, ROWS_ = 96 };

/* A chain of layers with attention, a norm, a gate and a composite without a rule. Sets *arena to the bytes of the plan; returns the gradient of the
 * first layer's matrix and of the input, for free(). */
static float *gradients_of_layers(ggl_backend *on, size_t keep, size_t *arena) {
    static float w[LAYERS][3][WIDTH * WIDTH], x0[ROWS_][WIDTH];
    static int32_t pos[ROWS_], slot[ROWS_];
    const int64_t width = WIDTH, matrix[2] = {WIDTH, WIDTH};
    ggl_graph_params params = ggl_graph_default();
    params.n_batch = ROWS_;
    params.n_pos = 128;
    params.type_k = params.type_v = GGL_F32;
    ggl_error err = {0};
    ggl_graph *g = ggl_graph_new(&params);
    state = 3;
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &width, true), *by[2] = {NULL, x},
               *d[2] = {NULL};
    for (int i = 0; i < ROWS_; i++) {
        pos[i] = i;
        for (int k = 0; k < WIDTH; k++)
            x0[i][k] = (float)draw() - 0.5f;
    }
    for (int l = 0; l < LAYERS; l++) {
        ggl_tensor *m[3];
        ggl_graph_set_group(g, l);
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < WIDTH * WIDTH; i++)
                w[l][k][i] = ((float)draw() - 0.5f) * 0.6f;
            m[k] = ggl_graph_weight(g, "w", GGL_F32, 2, matrix, w[l][k]);
        }
        by[0] = l == 0 ? m[0] : by[0];
        ggl_tensor *h = ggl_rms(g, x, 1e-5), *q = ggl_linear(g, h, m[0], NULL);
        ggl_tensor *a = attend(g, q, h, h, NAN, NAN, NAN, NULL, NULL, NULL, NULL);
        x = ggl_binary(g, GGL_OP_ADD, x, a);
        h = ggl_gelu(g, ggl_linear(g, ggl_center(g, x), m[1], NULL));
        h = ggl_binary(g, GGL_OP_MUL, h,
                       ggl_unary(g, GGL_OP_SIGMOID, ggl_linear(g, x, m[2], NULL)));
        x = ggl_binary(g, GGL_OP_ADD, x, h);
    }
    ggl_graph_set_group(g, -1);
    const ggl_grad_params p = {.size = sizeof p, .keep = keep};
    ggl_tensor *loss = ggl_unary(g, GGL_OP_SUM, ggl_unary(g, GGL_OP_SIN, x));
    float *out = calloc(WIDTH * WIDTH + ROWS_ * WIDTH, sizeof *out);
    ggl_sched *s = NULL;
    ggl_memory memory = {0};
    const ggl_sched_params sp = {.size = sizeof sp, .backend = &on, .n_backends = 1};
    bool ok = ggl_graph_grad(g, loss, by, 2, &p, d) && ggl_graph_output(g, "dw", d[0]) &&
              ggl_graph_output(g, "dx", d[1]);
    CHECK_OK(ggl_graph_error(g, &err), &err);
    ok = ok && CHECK_OK(ggl_graph_finish(g, &err), &err) &&
         CHECK_OK(ggl_sched_new(&s, g, &sp, &err), &err) &&
         CHECK_OK(ggl_sched_alloc(s, &err), &err) &&
         CHECK_OK(ggl_sched_set(s, "x", x0, sizeof x0, ROWS_, &err), &err) &&
         CHECK_OK(ggl_sched_set(s, "pos", pos, sizeof pos, ROWS_, &err), &err) &&
         CHECK_OK(ggl_sched_set(s, "slot", slot, sizeof slot, ROWS_, &err), &err) &&
         CHECK_OK(ggl_sched_run(s, ROWS_, NULL, 0, &err), &err);
    if (ok && out) {
        memcpy(out, ggl_sched_output(s, 0), sizeof w[0][0]);
        memcpy(out + WIDTH * WIDTH, ggl_sched_output(s, 1), sizeof x0);
        ggl_sched_memory(s, 0, &memory);
    }
    *arena = memory.arena;
    ggl_sched_free(s);
    ggl_graph_free(g);
    return out;
}

TEST(what_is_computed_again_has_the_same_bits) {
    ggl_backend *cpu = opened("cpu", 1, NULL);
    enum { WAYS = 4 };
    const size_t keep[WAYS] = {SIZE_MAX, 0, 600000, 1},
                 size = sizeof(float) * (WIDTH * WIDTH + ROWS_ * WIDTH);
    size_t arena[WAYS];
    float *d[WAYS];
    REQUIRE(cpu);
    for (int i = 0; i < WAYS; i++) {
        d[i] = gradients_of_layers(cpu, keep[i], &arena[i]);
        REQUIRE(d[i]);
        CHECK(d[i][0] != 0 && d[i][WIDTH * WIDTH] != 0);
        CHECK(memcmp(d[0], d[i], size) == 0);
        CHECK_MSG(i == 0 || arena[i] < arena[i - 1], "keep %zu: %zu bytes, keep %zu: %zu", keep[i],
                  arena[i], keep[i - 1], arena[i - 1]);
    }
    CHECK_MSG(5 * arena[1] < 4 * arena[0] && 3 * arena[3] < 2 * arena[0],
              "%zu bytes, light ones again %zu, all again %zu", arena[0], arena[1], arena[3]);
    for (int i = 0; i < WAYS; i++)
        free(d[i]);
    ggl_backend_close(cpu);
}

/* --- when a variable is written --------------------------------------------------------------- */

/* Nodes that read a variable see what it was before, wherever the step that writes it could run; and a variable is not folded. */
TEST(what_reads_a_variable_runs_before_it_is_written) {
    float v[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
    const int64_t n = 8;
    ggl_error err = {0};
    ggl_backend *cpu = opened("cpu", 2, NULL), *reference = opened("reference", 1, NULL);
    REQUIRE(cpu && reference);
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
               *w = ggl_graph_variable(g, "v", GGL_F32, 1, &n, v);
    ggl_tensor *late = x;
    for (int i = 0; i < 5; i++) /* the reader has to wait for this, but the writer has not */
        late = ggl_unary(g, GGL_OP_ABS, late);
    ggl_tensor *twice = ggl_binary(g, GGL_OP_MUL, w, ggl_graph_number(g, 2)); /* not a constant */
    late = ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_MUL, late, w), twice);
    ggl_graph_output(g, "y", late);
    CHECK(ggl_graph_assign(g, w, ggl_binary(g, GGL_OP_MUL, w, ggl_graph_number(g, 10))));
    ggl_sched *s = NULL;
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    REQUIRE_OK(ggl_graph_fold(g, reference, &err), &err);
    const ggl_sched_params p = {.size = sizeof p, .backend = &cpu, .n_backends = 1};
    REQUIRE_OK(ggl_sched_new(&s, g, &p, &err), &err);
    REQUIRE_OK(ggl_sched_alloc(s, &err), &err);
    for (int run_ = 0; run_ < 3; run_++) {
        for (int i = 0; i < 8; i++)
            out[i] = (float)(i + 1) * (run_ == 0 ? 1 : run_ == 1 ? 10 : 100);
        const float ones_[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        REQUIRE_OK(ggl_sched_set(s, "x", ones_, sizeof ones_, 1, &err), &err);
        REQUIRE_OK(ggl_sched_run(s, 1, NULL, 0, &err), &err);
        for (int i = 0; i < 8; i++) {
            CHECK(ggl_sched_output(s, 0)[i] == 3 * out[i]);
            CHECK(v[i] == 10 * out[i]);
        }
    }
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(cpu);
    ggl_backend_close(reference);
}

/* What is assigned waits for all nodes that were made before the assignment, also for those made after the value; so two variables
 * can change places. */
TEST(assignments_wait_for_later_readers) {
    float v[4] = {1, 2, 3, 4}, a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};
    const float ones_[4] = {1, 1, 1, 1};
    const int64_t n = 4;
    ggl_error err = {0};
    ggl_backend *cpu = opened("cpu", 1, NULL);
    REQUIRE(cpu);
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
               *t = ggl_graph_variable(g, "v", GGL_F32, 1, &n, v),
               *p = ggl_graph_variable(g, "a", GGL_F32, 1, &n, a),
               *q = ggl_graph_variable(g, "b", GGL_F32, 1, &n, b);
    ggl_tensor *value = ggl_binary(g, GGL_OP_MUL, t, ggl_graph_number(g, 10));
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, x, t));
    CHECK(ggl_graph_assign(g, t, value));
    ggl_tensor *of_p = ggl_binary(g, GGL_OP_MUL, p, ggl_graph_number(g, 2)),
               *of_q = ggl_binary(g, GGL_OP_MUL, q, ggl_graph_number(g, 3));
    CHECK(ggl_graph_assign(g, q, of_p));
    CHECK(ggl_graph_assign(g, p, of_q));
    ggl_sched *s = NULL;
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    const ggl_sched_params params = {.size = sizeof params, .backend = &cpu, .n_backends = 1};
    REQUIRE_OK(ggl_sched_new(&s, g, &params, &err), &err);
    REQUIRE_OK(ggl_sched_alloc(s, &err), &err);
    REQUIRE_OK(ggl_sched_set(s, "x", ones_, sizeof ones_, 1, &err), &err);
    REQUIRE_OK(ggl_sched_run(s, 1, NULL, 0, &err), &err);
    for (int i = 0; i < 4; i++)
        CHECK(ggl_sched_output(s, 0)[i] == (float)(i + 1) && v[i] == (float)(10 * (i + 1)) &&
              b[i] == (float)(2 * (i + 1)) && a[i] == (float)(3 * (i + 5)));
    ggl_sched_free(s);
    ggl_graph_free(g);
    ggl_backend_close(cpu);
}

TEST(assignments_that_cannot_be) {
    static float data[8];
    const int64_t n = 8, four = 4;
    for (int k = 0; k < 6; k++) {
        static const char *const words[] = {"'w' is no variable of type f32",
                                            "variable 'v' of [8] is assigned [4]",
                                            "a value for each element of the batch",
                                            "variable 'v' is assigned twice",
                                            "reads the variable 'v' after it is assigned",
                                            "is written to"};
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
                   *w = ggl_graph_weight(g, "w", GGL_F32, 1, &n, data),
                   *v = ggl_graph_variable(g, "v", GGL_F32, 1, &n, data);
        ggl_tensor *small =
                       with(g, GGL_OP_REPEAT, ggl_graph_number(g, 1), 1, (double[]){(double)four}),
                   *right = ggl_unary(g, GGL_OP_EXP, v);
        if (k == 5) { /* an output has memory of its own */
            ggl_graph_output(g, "y", right);
            CHECK(ggl_graph_assign(g, v, right));
            ggl_error err;
            CHECK_OK(ggl_graph_finish(g, &err), &err);
            ggl_graph_free(g);
            continue;
        }
        CHECK(k > 2 || !ggl_graph_assign(g, k == 0 ? w : v, k == 1 ? small : k == 2 ? x : right));
        if (k > 2)
            CHECK(ggl_graph_assign(g, v, right));
        if (k == 3)
            CHECK(!ggl_graph_assign(g, v, right));
        if (k == 4)
            CHECK(!ggl_binary(g, GGL_OP_ADD, x, v));
        refused(g, words[k]);
    }
}
