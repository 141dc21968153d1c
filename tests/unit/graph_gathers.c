/* Facts that the graph derives about matrices gathered from a stack, seen in results. Each case ran wrong, or crashed, before these were
 * decided in one place. */
#include "graph_facts_test.h"

enum { D = 8, N_MATRICES = 4, N = 4 };

static ggl_tensor *stack_of(fixture *f, ggl_type type) {
    static float w[D * D * N_MATRICES];
    static uint16_t half[D * D * N_MATRICES];
    for (int i = 0; i < D * D * N_MATRICES; i++) {
        w[i] = (float)((i * i * 37 + i * 5) % 23 - 8) / 8;
        half[i] = ggl_f32_to_f16(w[i]);
    }
    const void *data = type == GGL_F16 ? (const void *)half : w;
    return ggl_graph_weight(f->g, "w", type, 3, (int64_t[]){D, D, N_MATRICES}, data);
}

/* A matrix that an index chooses is used on the way to a cache and on the way to the output: gathered
 * once under a name, or twice. The rows of the output, with all of them wanted or one by one. */
static bool cache_and_output(ggl_type type, const char *backend, bool twice, bool by_rows,
                             float out[N * D]) {
    fixture f;
    if (!begin(&f))
        return false;
    ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){D}, true);
    ggl_tensor *w = stack_of(&f, type), *m = ggl_binary(f.g, GGL_OP_PICK, w, i);
    ggl_tensor *k = ggl_linear(f.g, x, m, NULL), *kv = ggl_binary(f.g, GGL_OP_CACHE, k, k);
    ggl_tensor *a = ggl_graph_op(f.g, GGL_OP_ATTEND, (ggl_tensor *[]){x, kv}, 2, NULL, 0);
    ggl_tensor *y = ggl_linear(f.g, ggl_unary(f.g, GGL_OP_TANH, a),
                               twice ? ggl_binary(f.g, GGL_OP_PICK, w, i) : m, NULL);
    float v[N * D];
    for (int e = 0; e < N * D; e++)
        v[e] = (float)(e % 5) / 5;
    bool ok = start(&f, backend, y) && set(&f, "x", v, N) && set_places(&f, N) &&
              set(&f, "i", (int32_t[]){3, 1, 2, 0}, N);
    for (int32_t row = 0; ok && row < (by_rows ? N : 1); row++) {
        ok = CHECK_OK(ggl_sched_run(f.s, N, by_rows ? &row : NULL, 1, &f.err), &f.err);
        if (ok)
            memcpy(out + row * D, ggl_sched_output(f.s, 0), (by_rows ? D : N * D) * sizeof(float));
    }
    end(&f);
    return ok;
}

TEST(a_gather_read_in_both_phases) {
    for (int k = 0; k < 2; k++)
        for (int half = 0; half < 2; half++) {
            ggl_type type = half ? GGL_F16 : GGL_F32;
            float want[N * D], got[N * D];
            REQUIRE(cache_and_output(type, backends[k], true, false, want));
            for (int way = 0; way < 3; way++) {
                REQUIRE(cache_and_output(type, backends[k], way > 1, way > 0, got));
                CHECK_MSG(memcmp(got, want, sizeof want) == 0,
                          "%s, %s, gathered %s, %s: %g, expected %g", backends[k],
                          half ? "f16" : "f32", way > 1 ? "twice" : "once",
                          way > 0 ? "row by row" : "all rows", (double)got[0], (double)want[0]);
            }
        }
}

TEST(an_index_that_is_not_of_the_batch) {
    for (int k = 0; k < 2; k++) {
        static float w[3 * 2 * 4];
        for (int i = 0; i < 24; i++)
            w[i] = (float)(i / 6 + 1);
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){3}, true);
        ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, false);
        ggl_tensor *m = ggl_graph_weight(f.g, "w", GGL_F32, 3, (int64_t[]){3, 2, 4}, w);
        ggl_tensor *y = ggl_linear(f.g, x, ggl_binary(f.g, GGL_OP_PICK, m, i), NULL);
        REQUIRE(start(&f, backends[k], y));
        REQUIRE(set(&f, "x", (float[]){1, 1, 1, 2, 2, 2}, 2) && set(&f, "i", (int32_t[]){2}, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
        const float *out = ggl_sched_output(f.s, 0), want[] = {9, 9, 18, 18};
        for (int e = 0; e < 4; e++)
            CHECK_MSG(out[e] == want[e], "%s: y[%d] is %g", backends[k], e, (double)out[e]);
        end(&f);
    }
}

/* A gather that a sum reads, too, has memory of its own, and is f32 whatever the weight is. */
/* An index that is a constant, and a value that reads the matrix, too: the product still multiplies
 * with the weight in its own type, by its own rule. */
TEST(a_gather_by_a_constant_index) {
    uint16_t bf16[2 * 32 * 4];
    for (int i = 0; i < 2 * 32 * 4; i++)
        bf16[i] = ggl_f32_to_bf16((float)(i % 13) / 7);
    float out[2][4];
    for (int fold = 0; fold < 2; fold++) {
        fixture f;
        ggl_backend *reference = NULL;
        REQUIRE(begin(&f));
        ggl_tensor *w = ggl_graph_weight(f.g, "w", GGL_BF16, 3, (int64_t[]){32, 4, 2}, bf16);
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){32}, true);
        ggl_tensor *c = ggl_graph_const(f.g, 1, (int64_t[]){2}, (double[]){1, 5});
        ggl_tensor *top = ggl_graph_op(f.g, GGL_OP_TOPK, &c, 1, (double[]){1}, 1);
        ggl_tensor *m = ggl_binary(f.g, GGL_OP_PICK, w, top); /* [32, 4, 1] */
        ggl_tensor *sum = ggl_graph_op(f.g, GGL_OP_SUM, &m, 1, (double[]){0}, 1);
        sum = ggl_graph_op(f.g, GGL_OP_RESHAPE, &sum, 1, (double[]){4}, 1);
        ggl_tensor *y =
            ggl_graph_op(f.g, GGL_OP_RESHAPE, (ggl_tensor *[]){ggl_linear(f.g, x, m, NULL)}, 1,
                         (double[]){4}, 1);
        ggl_graph_output(f.g, "y", ggl_binary(f.g, GGL_OP_SUB, y, sum));
        REQUIRE_OK(ggl_graph_finish(f.g, &f.err), &f.err);
        REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &f.err), &f.err);
        REQUIRE_OK(ggl_backend_open(&f.b, "cpu", NULL, &f.err), &f.err);
        if (fold)
            REQUIRE_OK(ggl_graph_fold(f.g, reference, &f.err), &f.err);
        const ggl_sched_params p = {.size = sizeof p, .backend = &f.b, .n_backends = 1};
        REQUIRE_OK(ggl_sched_new(&f.s, f.g, &p, &f.err), &f.err);
        REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
        float v[32];
        for (int i = 0; i < 32; i++)
            v[i] = 1 + (float)i / 1000; /* bf16 rounds it */
        REQUIRE(set(&f, "x", v, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        memcpy(out[fold], ggl_sched_output(f.s, 0), sizeof out[fold]);
        CHECK(!fold || (m->op == GGL_OP_PICK && top->op == GGL_OP_CONST));
        end(&f);
        ggl_backend_close(reference);
    }
    CHECK(memcmp(out[0], out[1], sizeof out[0]) == 0);
}

static ggl_tensor *op_split(ggl_graph *g, ggl_tensor *x, int i) {
    x = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){1, i, 1}, 3);
    return x ? ggl_graph_op(g, GGL_OP_RESHAPE, &x, 1, (double[]){1}, 1) : NULL;
}

TEST(a_gather_from_a_constant) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){2}, true);
        ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, true);
        const double stack[8] = {1, 2, 3, 4, 5, 6, 7, 8};
        ggl_tensor *c = ggl_graph_const(f.g, 3, (int64_t[]){2, 2, 2}, stack);
        REQUIRE(
            start(&f, backends[k], ggl_linear(f.g, x, ggl_binary(f.g, GGL_OP_PICK, c, i), NULL)));
        REQUIRE(set(&f, "x", (float[]){1, 1, 1, 1}, 2) && set(&f, "i", (int32_t[]){1, 0}, 2));
        REQUIRE_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
        const float *y = ggl_sched_output(f.s, 0);
        CHECK(y[0] == 11 && y[1] == 15 && y[2] == 3 && y[3] == 7);
        end(&f);
    }
}

/* Constants that are not computed do not count: ten times the same matrix would be 80 MiB. */
TEST(gathers_that_fold_leaves_alone) {
    fixture f;
    ggl_backend *reference = NULL;
    uint16_t *w = calloc((size_t)1 << 20, sizeof *w);
    REQUIRE(w && begin(&f));
    ggl_tensor *m = ggl_graph_weight(f.g, "w", GGL_F16, 3, (int64_t[]){1024, 1024, 1}, w);
    ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){1024}, true);
    const double none[10] = {0};
    ggl_tensor *c = ggl_graph_const(f.g, 2, (int64_t[]){1, 10}, none), *row[10], *top = NULL;
    for (int i = 0; i < 10; i++)
        row[i] = op_split(f.g, c, i);
    for (int i = 0; i < 10; i++) {
        top = ggl_graph_op(f.g, GGL_OP_TOPK, &row[i], 1, (double[]){1}, 1);
        ggl_tensor *y = ggl_linear(f.g, x, ggl_binary(f.g, GGL_OP_PICK, m, top), NULL);
        ggl_graph_output(f.g, "y", y);
    }
    REQUIRE_OK(ggl_graph_finish(f.g, &f.err), &f.err);
    REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &f.err), &f.err);
    CHECK_OK(ggl_graph_fold(f.g, reference, &f.err), &f.err);
    end(&f);
    ggl_backend_close(reference);
    free(w);
}

/* Parts of a quantized weight that have to be copied are f32 on every backend. */
TEST(a_copy_of_parts_of_a_quantized_weight) {
    enum { ROWS = 4, STACKS = 3 };
    uint8_t w[ROWS * STACKS * 34];
    float values[32];
    for (int r = 0; r < ROWS * STACKS; r++) {
        for (int i = 0; i < 32; i++)
            values[i] = i == 0 ? 127 : (float)r;
        ggl_type_get(GGL_Q8_0)->from_float(values, w + r * 34, 32);
    }
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){32}, true);
        ggl_tensor *t = ggl_graph_weight(f.g, "w", GGL_Q8_0, 3, (int64_t[]){32, ROWS, STACKS}, w);
        t = ggl_graph_op(f.g, GGL_OP_SPLIT, &t, 1, (double[]){1, 1, 2}, 3);
        t = ggl_graph_op(f.g, GGL_OP_RESHAPE, &t, 1, (double[]){32, 6}, 2);
        REQUIRE(start(&f, backends[k], ggl_linear(f.g, x, t, NULL)));
        CHECK(t->computed && t->type == GGL_F32);
        float one[32] = {0, 1};
        REQUIRE(set(&f, "x", one, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        for (int r = 0; r < 6; r++)
            CHECK_MSG(ggl_sched_output(f.s, 0)[r] == (float)(r / 2 * ROWS + 1 + r % 2),
                      "%s: row %d is %g", backends[k], r, (double)ggl_sched_output(f.s, 0)[r]);
        end(&f);
    }
}

TEST(a_gather_that_is_also_a_value) {
    for (int k = 0; k < 2; k++)
        for (int half = 0; half < 2; half++) {
            fixture f;
            REQUIRE(begin(&f));
            ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, true);
            ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){D}, true);
            ggl_tensor *w = stack_of(&f, half ? GGL_F16 : GGL_F32);
            ggl_tensor *m = ggl_binary(f.g, GGL_OP_PICK, w, i);
            ggl_tensor *sum = ggl_graph_op(f.g, GGL_OP_SUM, &m, 1, (double[]){0}, 1);
            sum = ggl_graph_op(f.g, GGL_OP_RESHAPE, &sum, 1, (double[]){D}, 1);
            REQUIRE(start(&f, backends[k],
                          ggl_binary(f.g, GGL_OP_ADD, sum, ggl_linear(f.g, x, m, NULL))));
            CHECK_INT(m->type, GGL_F32);
            float one[D];
            for (int e = 0; e < D; e++)
                one[e] = 1;
            REQUIRE(set(&f, "x", one, 1) && set(&f, "i", (int32_t[]){2}, 1));
            REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
            for (int j = 0; j < D; j++) {
                double want = 0;
                for (int e = 0; e < D; e++) {
                    int at = 2 * D * D + j * D + e;
                    want += 2 * (double)((at * at * 37 + at * 5) % 23 - 8) / 8;
                }
                CHECK_MSG(fabs((double)ggl_sched_output(f.s, 0)[j] - want) < 1e-5,
                          "%s: row %d is %g, expected %g", backends[k], j,
                          (double)ggl_sched_output(f.s, 0)[j], want);
            }
            end(&f);
        }
}

TEST(gathers_of_other_types_meet_arithmetic) {
    for (int k = 0; k < 2; k++)
        for (int output = 0; output < 2; output++) {
            fixture f;
            REQUIRE(begin(&f));
            ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, true);
            ggl_tensor *m = ggl_binary(f.g, GGL_OP_PICK, stack_of(&f, GGL_F16), i);
            REQUIRE(start(&f, backends[k], output ? m : ggl_unary(f.g, GGL_OP_ABS, m)));
            REQUIRE(set(&f, "i", (int32_t[]){3}, 1));
            REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
            for (int e = 0; e < D * D; e++) {
                int at = 3 * D * D + e;
                float w = (float)((at * at * 37 + at * 5) % 23 - 8) / 8;
                CHECK(ggl_sched_output(f.s, 0)[e] == (output ? w : fabsf(w)));
            }
            end(&f);
        }
}

/* A part of a weight's part that comes into a body: a kernel for the composite reads f32, and this is f16. */
TEST(a_composite_of_a_part_of_a_weight_in_a_body) {
    enum { FIRST = 2, PART = 4 };
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){PART}, true);
        ggl_tensor *t = stack_of(&f, GGL_F16);
        t = ggl_graph_op(f.g, GGL_OP_SPLIT, &t, 1, (double[]){2, 1, 2}, 3);
        ggl_tensor **param = ggl_body_begin(f.g, &x, 1);
        REQUIRE(param);
        x = param[0];
        t = ggl_graph_op(f.g, GGL_OP_SPLIT, &t, 1, (double[]){0, FIRST, PART}, 3);
        t = ggl_binary(f.g, GGL_OP_ADD, ggl_silu(f.g, t), x);
        REQUIRE(start(&f, backends[k], ggl_body_end(f.g, NULL, t, NULL, 0)));
        REQUIRE(set(&f, "x", (float[PART]){0}, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        for (int e = 0; e < PART * D * 2; e++) {
            const int at = D * D + e / PART * D + FIRST + e % PART;
            const double w = ((at * at * 37 + at * 5) % 23 - 8) / 8.0, want = w / (1 + exp(-w)),
                         got = (double)ggl_sched_output(f.s, 0)[e];
            CHECK_MSG(fabs(got - want) < 1e-6, "%s: %d is %g, expected %g", backends[k], e, got,
                      want);
        }
        end(&f);
    }
}

/* Without folding, constants that only change places are rounded like any other. */
TEST(parts_of_constants) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){2}, true);
        ggl_tensor *c = ggl_graph_const(f.g, 1, (int64_t[]){4}, (double[]){1, 2, 3, 4});
        c = ggl_graph_op(f.g, GGL_OP_SPLIT, &c, 1, (double[]){0, 1, 2}, 3);
        REQUIRE(
            start(&f, backends[k],
                  ggl_graph_op(f.g, GGL_OP_CONCAT, (ggl_tensor *[]){c, x}, 2, (double[]){0}, 1)));
        REQUIRE(set(&f, "x", (float[]){8, 9}, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        const float *y = ggl_sched_output(f.s, 0);
        CHECK(y[0] == 2 && y[1] == 3 && y[2] == 8 && y[3] == 9);
        end(&f);
    }
}

/* Rows that are the same for the whole batch are kept for each of its tokens. */
TEST(a_cache_of_what_is_not_batched) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *q = ggl_graph_input(f.g, "q", GGL_F32, 1, (int64_t[]){4}, true);
        ggl_tensor *v = ggl_graph_input(f.g, "v", GGL_F32, 1, (int64_t[]){4}, false);
        ggl_tensor *kv = ggl_binary(f.g, GGL_OP_CACHE, q, v);
        REQUIRE(start(&f, backends[k],
                      ggl_graph_op(f.g, GGL_OP_ATTEND, (ggl_tensor *[]){q, kv}, 2, NULL, 0)));
        const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        REQUIRE(set(&f, "q", ones, 4) && set(&f, "v", (float[]){5, 6, 7, 8}, 1) &&
                set_places(&f, 4));
        REQUIRE_OK(ggl_sched_run(f.s, 4, NULL, 0, &f.err), &f.err);
        for (int e = 0; e < 16; e++)
            CHECK_MSG(ggl_sched_output(f.s, 0)[e] == (float)(5 + e % 4), "%s: y[%d] is %g",
                      backends[k], e, (double)ggl_sched_output(f.s, 0)[e]);
        end(&f);
    }
}
