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
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
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
    unsetenv("GGL_CPU_SHARE_ALL");
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
