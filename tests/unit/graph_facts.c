/* Facts that the graph derives about its nodes, seen in results: states in nested bodies, values of at most three dimensions, and bounds
 * on sizes. Each case ran wrong, or crashed, before these were decided in one place. */
#include "graph_facts_test.h"

/* --- states ----------------------------------------------------------------------------------- */

/* The sum of x over the sequence so far. */
static ggl_tensor *running_sum(ggl_graph *g, ggl_tensor *x) {
    ggl_tensor **param = ggl_body_begin(g, &x, 1);
    if (!param)
        return NULL;
    ggl_tensor *s = ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){4}, 1);
    ggl_tensor *y = ggl_binary(g, GGL_OP_ADD, s, param[0]);
    ggl_graph_op(g, GGL_OP_KEEP, (ggl_tensor *[]){s, y}, 2, NULL, 0);
    return ggl_body_end(g, NULL, y, NULL, 0);
}

static ggl_tensor *nested_sum(ggl_graph *g, ggl_tensor *x, int depth) {
    if (depth == 0)
        return running_sum(g, x);
    ggl_tensor **param = ggl_body_begin(g, &x, 1);
    return param ? ggl_body_end(g, NULL, nested_sum(g, param[0], depth - 1), NULL, 0) : NULL;
}

TEST(states_in_nested_bodies_see_every_token) {
    for (int k = 0; k < 2; k++)
        for (int depth = 0; depth < 4; depth++) {
            fixture f;
            REQUIRE(begin(&f));
            ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){4}, true);
            ggl_tensor *sum = nested_sum(f.g, x, depth);
            REQUIRE(
                start(&f, backends[k], ggl_binary(f.g, GGL_OP_ADD, sum, ggl_graph_number(f.g, 0))));
            float ones[16];
            for (int i = 0; i < 16; i++)
                ones[i] = 1;
            const int32_t row = 3;
            REQUIRE(set(&f, "x", ones, 4) && set_places(&f, 4));
            REQUIRE_OK(ggl_sched_run(f.s, 4, &row, 1, &f.err), &f.err);
            CHECK_MSG(ggl_sched_output(f.s, 0)[0] == 4, "%s, depth %d: four ones sum to %g",
                      backends[k], depth, (double)ggl_sched_output(f.s, 0)[0]);
            end(&f);
        }
}

/* A state that nothing reads does not exist, and takes no memory of one that does. */
TEST(states_that_nothing_reads) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){4}, true);
        ggl_tensor **param = ggl_body_begin(f.g, &x, 1);
        REQUIRE(param);
        ggl_tensor *p = param[0];
        CHECK(running_sum(f.g, p) && running_sum(f.g, p));
        ggl_tensor *call = ggl_body_end(f.g, NULL, ggl_binary(f.g, GGL_OP_ADD, p, p), NULL, 0);
        REQUIRE(start(&f, backends[k], ggl_binary(f.g, GGL_OP_ADD, call, running_sum(f.g, x))));
        CHECK_INT(ggl_graph_n_stores(f.g), 1);
        CHECK_INT((long long)ggl_sched_slot_size(f.s, 64, false), 64);
        float ones[16];
        for (int i = 0; i < 16; i++)
            ones[i] = 1;
        REQUIRE(set(&f, "x", ones, 4) && set_places(&f, 4));
        REQUIRE_OK(ggl_sched_run(f.s, 4, NULL, 0, &f.err), &f.err);
        for (int i = 0; i < 4; i++)
            CHECK(ggl_sched_output(f.s, 0)[4 * i] == (float)(2 + i + 1));
        end(&f);
    }
}

/* A body, inside another one, with a state that is not read, in a graph without any other. */
TEST(a_state_that_nothing_reads_stays_out_of_its_body) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){4}, true);
        ggl_tensor **outer = ggl_body_begin(f.g, &x, 1);
        REQUIRE(outer);
        ggl_tensor *p = outer[0], **inner = ggl_body_begin(f.g, &p, 1);
        REQUIRE(inner);
        ggl_tensor *q = inner[0], *s = ggl_graph_op(f.g, GGL_OP_STATE, NULL, 0, (double[]){4}, 1);
        CHECK(ggl_binary(f.g, GGL_OP_ADD, s, q));
        ggl_tensor *twice = ggl_body_end(f.g, NULL, ggl_binary(f.g, GGL_OP_ADD, q, q), NULL, 0);
        ggl_tensor *call = ggl_body_end(f.g, NULL, twice, NULL, 0);
        REQUIRE(call && twice);
        CHECK_INT(twice->body->n_node, 1);
        REQUIRE(start(&f, backends[k], call));
        CHECK_INT(ggl_graph_n_stores(f.g), 0);
        REQUIRE(set(&f, "x", (float[]){1, 2, 3, 4}, 1) && set_places(&f, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        for (int i = 0; i < 4; i++)
            CHECK(ggl_sched_output(f.s, 0)[i] == (float)(2 * (i + 1)));
        end(&f);
    }
}

/* A call that is batched by its state, with a result that is not. */
TEST(a_call_whose_result_is_a_constant) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){2}, true);
        ggl_tensor *c = ggl_graph_const(f.g, 1, (int64_t[]){2}, (double[]){3, 4});
        ggl_tensor **param = ggl_body_begin(f.g, &x, 1);
        REQUIRE(param);
        ggl_tensor *s = ggl_graph_op(f.g, GGL_OP_STATE, NULL, 0, (double[]){2}, 1);
        ggl_graph_op(f.g, GGL_OP_KEEP, (ggl_tensor *[]){s, param[0]}, 2, NULL, 0);
        REQUIRE(start(&f, backends[k], ggl_body_end(f.g, NULL, c, NULL, 0)));
        REQUIRE(set(&f, "x", (float[]){1, 2, 3, 4}, 2) && set_places(&f, 2));
        REQUIRE_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
        for (int i = 0; i < 4; i++)
            CHECK(ggl_sched_output(f.s, 0)[i] == (float)(3 + i % 2));
        end(&f);
    }
}

TEST(a_recurrent_body_holds_no_other_at_any_depth) {
    ggl_error err = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){4}, true);
    ggl_tensor **param = ggl_body_begin(g, &x, 1);
    REQUIRE(param);
    ggl_tensor *s = ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){4}, 1);
    ggl_tensor *y = ggl_binary(g, GGL_OP_ADD, s, nested_sum(g, param[0], 2));
    CHECK(!ggl_body_end(g, NULL, y, NULL, 0));
    CHECK_INT(ggl_graph_error(g, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "cannot call another");
    ggl_graph_free(g);
}

/* --- dimensions and sizes --------------------------------------------------------------------- */

static void refused(ggl_graph *g, ggl_status status, const char *words) {
    ggl_error err = {0};
    CHECK_INT(ggl_graph_error(g, &err), status);
    CHECK_HAS(err.msg, words);
    ggl_graph_free(g);
}

static ggl_tensor *op(ggl_graph *g, ggl_op o, ggl_tensor *x, const double *num, int n) {
    return ggl_graph_op(g, o, &x, 1, num, n);
}

TEST(values_have_three_dimensions) {
    const double five[5] = {0};
    const int64_t ne[4] = {1, 1, 1, 5};
    ggl_graph *g = ggl_graph_new(NULL);
    CHECK(!ggl_graph_const(g, 4, ne, five));
    refused(g, GGL_SHAPE, "4 dimensions; inputs and constants have at most 3");
    g = ggl_graph_new(NULL);
    CHECK(!ggl_graph_input(g, "x", GGL_F32, 4, ne, false));
    refused(g, GGL_SHAPE, "at most 3");
    g = ggl_graph_new(NULL);
    ggl_tensor *i = ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, (double[]){120}, 1);
    CHECK(!op(g, GGL_OP_RESHAPE, i, (double[]){2, 3, 4, 5}, 4));
    refused(g, GGL_SHAPE, "at most three dimensions");
    g = ggl_graph_new(NULL);
    i = ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, (double[]){1}, 1);
    CHECK(!op(g, GGL_OP_REPEAT, i, (double[]){2, 1, 1, 3}, 4));
    refused(g, GGL_SHAPE, "at most three dimensions");
}

static float deep[2 * 3 * 4 * 5];

static ggl_tensor *deep_weight(ggl_graph *g) {
    for (int i = 0; i < 120; i++)
        deep[i] = (float)i;
    return ggl_graph_weight(g, "w", GGL_F32, 4, (int64_t[]){2, 3, 4, 5}, deep);
}

TEST(weights_have_four) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *part = op(g, GGL_OP_SPLIT, deep_weight(g), (double[]){2, 1, 2}, 3);
    CHECK(part && part->n_dims == 4 && part->view_of && !part->dense);
    CHECK(!op(g, GGL_OP_RESHAPE, part, (double[]){60}, 1)); /* it has gaps: that would be a copy */
    refused(g, GGL_SHAPE, "at most three dimensions");
    g = ggl_graph_new(NULL);
    CHECK(!ggl_unary(g, GGL_OP_TANH, deep_weight(g)));
    refused(g, GGL_SHAPE, "at most three dimensions");
    /* the last of five stacks, flat, plus x */
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){24}, true);
        ggl_tensor *last = op(f.g, GGL_OP_SPLIT, deep_weight(f.g), (double[]){3, 4, 1}, 3);
        ggl_tensor *flat = op(f.g, GGL_OP_RESHAPE, last, (double[]){24}, 1);
        REQUIRE(start(&f, backends[k], ggl_binary(f.g, GGL_OP_ADD, flat, x)));
        float zero[24] = {0};
        REQUIRE(set(&f, "x", zero, 1));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        for (int e = 0; e < 24; e++)
            CHECK(ggl_sched_output(f.s, 0)[e] == (float)(96 + e));
        end(&f);
    }
}

/* Stacks of stacks: an index of the batch takes one, a second index a matrix of that. */
TEST(gathers_of_four_dimensions) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 2, (int64_t[]){2, 4}, true);
        ggl_tensor *m = ggl_binary(f.g, GGL_OP_PICK, deep_weight(f.g), i); /* [2, 3, 4] */
        REQUIRE(start(&f, backends[k], ggl_linear(f.g, x, m, NULL)));
        float ones[16];
        for (int e = 0; e < 16; e++)
            ones[e] = 1;
        REQUIRE(set(&f, "x", ones, 2) && set(&f, "i", (int32_t[]){4, 1}, 2));
        REQUIRE_OK(ggl_sched_run(f.s, 2, NULL, 0, &f.err), &f.err);
        for (int e = 0; e < 24; e++) {
            int first = (e < 12 ? 4 : 1) * 24 + e % 12 * 2;
            CHECK_MSG(ggl_sched_output(f.s, 0)[e] == (float)(2 * first + 1), "%s: y[%d] is %g",
                      backends[k], e, (double)ggl_sched_output(f.s, 0)[e]);
        }
        end(&f);
    }
}

TEST(sizes_do_not_wrap) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *one = ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, (double[]){1}, 1);
    CHECK(!op(g, GGL_OP_REPEAT, one, (double[]){1048576, 1048576, 1048576}, 3));
    refused(g, GGL_LIMIT, "at most 2^48");
    /* a value that fits once, and not for the largest batch */
    g = ggl_graph_new(&(ggl_graph_params){.size = sizeof(ggl_graph_params),
                                          .n_pos = 1,
                                          .n_batch = INT32_MAX,
                                          .n_slots = 1,
                                          .type_k = GGL_F32,
                                          .type_v = GGL_F32});
    CHECK(!ggl_graph_input(g, "x", GGL_F32, 2, (int64_t[]){1 << 20, 1 << 10}, true));
    refused(g, GGL_LIMIT, "for the largest batch");
    /* sizes that only a sum makes too large */
    g = ggl_graph_new(NULL);
    ggl_error err = {0};
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 0, NULL, true), *sum = x;
    for (int i = 0; i < 5; i++) {
        ggl_tensor *c = ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, (double[]){1}, 1);
        c = op(g, GGL_OP_REPEAT, c, (double[]){1 << 20, 1 << 20, 256}, 3);
        c = c ? op(g, GGL_OP_SUM, c, (double[]){2}, 1) : NULL;
        c = c ? op(g, GGL_OP_SUM, c, (double[]){1}, 1) : NULL;
        c = c ? op(g, GGL_OP_SUM, c, (double[]){0}, 1) : NULL;
        sum = ggl_binary(g, GGL_OP_ADD, sum, c);
    }
    ggl_graph_output(g, "y", sum);
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    ggl_backend *b = NULL;
    REQUIRE_OK(ggl_backend_open(&b, "reference", NULL, &err), &err);
    CHECK_INT(ggl_graph_fold(g, b, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "MiB of constants");
    ggl_graph_free(g);
    ggl_backend_close(b);
    /* bytes for a batch that nobody has memory for */
    ggl_tensor big = {.type = GGL_F32, .ne = {INT32_MAX, 1 << 17, 1, GGL_N}};
    size_t size;
    CHECK(ggl_value_bytes(&big, 1, &size) && size == (size_t)INT32_MAX * 4 << 17);
    CHECK(!ggl_value_bytes(&big, INT32_MAX, &size));
    big.type = GGL_Q8_0;
    CHECK(!ggl_value_bytes(&big, 1, &size)); /* rows of no whole number of blocks */
}

/* A number picked from outside of a list of indices is -1 as an index: no matrix. */
TEST(indices_from_outside_of_a_list) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 1, (int64_t[]){4}, true);
        ggl_tensor *i = ggl_graph_input(f.g, "i", GGL_I32, 0, NULL, true);
        ggl_tensor *list = ggl_graph_op(f.g, GGL_OP_TOPK, &x, 1, (double[]){2}, 1);
        ggl_tensor *picked = ggl_binary(f.g, GGL_OP_PICK, list, i);
        REQUIRE(start(&f, backends[k], ggl_unary(f.g, GGL_OP_CAST, picked)));
        REQUIRE(set(&f, "x", (float[]){1, 9, 5, 2, 1, 9, 5, 2, 1, 9, 5, 2}, 3) &&
                set(&f, "i", (int32_t[]){1, 2, -7}, 3));
        REQUIRE_OK(ggl_sched_run(f.s, 3, NULL, 0, &f.err), &f.err);
        const float *y = ggl_sched_output(f.s, 0);
        CHECK_MSG(y[0] == 2 && y[1] == -1 && y[2] == -1, "%s: %g %g %g", backends[k], (double)y[0],
                  (double)y[1], (double)y[2]);
        end(&f);
    }
}

/* --- misuse by backends and callers ----------------------------------------------------------- */

static const char *takes_all(const ggl_backend *b, const ggl_tensor *t) {
    (void)b;
    (void)t;
    return NULL;
}

TEST(a_call_with_more_sources_than_a_step_has) {
    enum { WIDE = 40 };
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x[WIDE];
    for (int i = 0; i < WIDE; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        x[i] = ggl_graph_input(g, name, GGL_F32, 1, (int64_t[]){4}, true);
    }
    ggl_tensor **p = ggl_body_begin(g, x, WIDE), *sum = p ? p[0] : NULL;
    for (int i = 1; i < WIDE; i++)
        sum = ggl_binary(g, GGL_OP_ADD, sum, p[i]);
    ggl_tensor *y = ggl_body_end(g, "mine", sum, NULL, 0);
    ggl_graph_output(g, "y", y);
    ggl_error err = {0};
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    ggl_loc *loc = calloc((size_t)ggl_graph_n_ids(g), sizeof *loc);
    REQUIRE(loc);
    ggl_segment s = {.graph = g, .node = &y, .n_node = 1, .n_max = 1, .loc = loc, .n_slots = 1};
    ggl_program program;
    const ggl_program_params params = {.refuses = takes_all, .value_type = GGL_F32};
    CHECK_INT(ggl_program_build(&program, &s, &params, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "mine has 40 sources; at most 14");
    free(loc);
    ggl_graph_free(g);
}

static ggl_status no_memory(ggl_backend *b, int region, size_t size, const void *host,
                            ggl_buffer **out, ggl_error *err) {
    (void)b, (void)region, (void)size, (void)host, (void)out;
    return ggl_fail(err, GGL_NOMEM, "none");
}

TEST(an_import_fails_and_nobody_wants_the_message) {
    static float w[64];
    ggl_backend *b = NULL;
    REQUIRE_OK(ggl_backend_open(&b, "reference", NULL, NULL), NULL);
    ggl_backend_vtable v = *b->v;
    v.alloc = no_memory;
    ggl_backend full = *b, *list = &full;
    full.v = &v;
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, (int64_t[]){8}, true);
    ggl_tensor *m = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){8, 8}, w);
    ggl_graph_output(g, "y", ggl_linear(g, x, m, NULL));
    REQUIRE_OK(ggl_graph_finish(g, NULL), NULL);
    ggl_sched *s = NULL;
    CHECK_INT(ggl_sched_new(&s, g,
                            &(ggl_sched_params){.size = sizeof(ggl_sched_params),
                                                .backend = &list,
                                                .n_backends = 1},
                            NULL),
              GGL_NOMEM);
    CHECK(!s);
    ggl_graph_free(g);
    ggl_backend_close(b);
}

TEST(positions_and_slots_are_checked) {
    for (int k = 0; k < 2; k++) {
        fixture f;
        REQUIRE(begin(&f));
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 2, (int64_t[]){16, 1}, true);
        ggl_tensor *kv = ggl_binary(f.g, GGL_OP_CACHE, x, x);
        REQUIRE(start(&f, backends[k],
                      ggl_graph_op(f.g, GGL_OP_ATTEND, (ggl_tensor *[]){x, kv}, 2, NULL, 0)));
        const struct {
            const char *name;
            int32_t value;
            const char *words;
        } wrong[] = {{"slot", 1, "slot 1"},
                     {"slot", -1, "slot -1"},
                     {"slot", INT32_MAX, "slot 2147483647"},
                     {"pos", -1, "position -1"},
                     {"pos", 64, "position 64"}};
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            const int32_t two[2] = {0, wrong[i].value};
            CHECK_INT(ggl_sched_set(f.s, wrong[i].name, two, sizeof two, 2, &f.err), GGL_USAGE);
            CHECK_HAS(f.err.msg, wrong[i].words);
        }
        CHECK(set(&f, "slot", (int32_t[]){0}, 1) && set(&f, "pos", (int32_t[]){63}, 1));
        end(&f);
    }
}

static const char *no_power(const ggl_backend *b, const ggl_tensor *node) {
    (void)b;
    return node->op == GGL_OP_POW ? "it has no powers" : NULL;
}

/* y = x + (a large product of constants + 1) + exp of a small one. What the second backend computes is what a run computes, in f32
 * from the weight in its own type. */
TEST(large_products_of_constants) {
    enum { IN = 1024, OUT = 256, ROWS = 64 };
    static uint16_t w[IN * OUT];
    static float r[IN * ROWS], out[3][ROWS * OUT];
    uint64_t seed = 5;
    for (int i = 0; i < IN * OUT; i++)
        w[i] = ggl_f32_to_bf16(test_random_float(&seed));
    for (int i = 0; i < IN * ROWS; i++)
        r[i] = test_random_float(&seed);
    for (int how = 0; how < 3;
         how++) { /* by the reference; by the CPU; as an input's product in a run */
        fixture f;
        ggl_backend *reference = NULL;
        REQUIRE(begin(&f));
        ggl_tensor *matrix = ggl_graph_weight(f.g, "w", GGL_BF16, 2, (int64_t[]){IN, OUT}, w);
        ggl_tensor *rows = how < 2
                               ? ggl_graph_weight(f.g, "r", GGL_F32, 2, (int64_t[]){IN, ROWS}, r)
                               : ggl_graph_input(f.g, "r", GGL_F32, 2, (int64_t[]){IN, ROWS}, true);
        ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 0, NULL, true);
        ggl_tensor *large = ggl_linear(f.g, rows, matrix, NULL);
        ggl_tensor *sum = ggl_binary(f.g, GGL_OP_ADD, large, ggl_graph_number(f.g, 1));
        ggl_tensor *small = ggl_unary(f.g, GGL_OP_EXP, ggl_graph_number(f.g, -2));
        sum = ggl_binary(f.g, GGL_OP_ADD, sum, small);
        ggl_graph_output(f.g, "y", ggl_binary(f.g, GGL_OP_ADD, sum, x));
        REQUIRE_OK(ggl_graph_finish(f.g, &f.err), &f.err);
        REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &f.err), &f.err);
        REQUIRE_OK(ggl_backend_open(&f.b, "cpu", NULL, &f.err), &f.err);
        REQUIRE_OK(ggl_graph_fold_by(f.g, reference, how == 1 ? f.b : NULL, &f.err), &f.err);
        CHECK((large->op == GGL_OP_LINEAR) == (how == 2) || !large->needed);
        const ggl_sched_params p = {.size = sizeof p, .backend = &f.b, .n_backends = 1};
        REQUIRE_OK(ggl_sched_new(&f.s, f.g, &p, &f.err), &f.err);
        REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
        const float zero = 0;
        REQUIRE(set(&f, "x", &zero, 1) && (how < 2 || set(&f, "r", r, 1)));
        REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
        memcpy(out[how], ggl_sched_output(f.s, 0), sizeof out[how]);
        end(&f);
        ggl_backend_close(reference);
    }
    CHECK(memcmp(out[1], out[2], sizeof out[1]) == 0);
    double far = 0;
    for (int i = 0; i < ROWS * OUT; i++)
        far = fmax(far, fabs((double)out[0][i] - (double)out[1][i]));
    CHECK(far > 0 &&
          far < 0.5); /* sums of 1024 numbers below 1, of which the CPU rounds one side to bf16 */
}

/* Sums of squares of weights: of large ones by the backend for products, row by row, with the same bits for any threads; near the
 * reference's. The weight is read where it is. */
TEST(squares_of_weights) {
    enum { IN = 1024, ROWS = 256 };
    static const ggl_type types[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q4_0, GGL_Q8_0, GGL_Q6_K};
    static float number[IN * ROWS], out[3][ROWS];
    uint64_t seed = 11;
    for (int i = 0; i < IN * ROWS; i++)
        number[i] = test_random_float(&seed);
    test_set_variable("GGL_CPU_SHARE_ALL", "1");
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        const ggl_type_info *type = ggl_type_get(types[k]);
        void *w = malloc(ggl_row_size(types[k], IN) * ROWS);
        REQUIRE(w);
        if (types[k] == GGL_F32)
            memcpy(w, number, sizeof number);
        else
            type->from_float(number, w, IN * ROWS);
        for (int how = 0; how < 3; how++) { /* the reference; 1 and 2 threads */
            fixture f;
            REQUIRE(begin(&f));
            ggl_backend *reference = NULL;
            const ggl_backend_params on = {.size = sizeof on, .n_threads = how == 2 ? 2 : 1};
            ggl_tensor *x = ggl_graph_input(f.g, "x", GGL_F32, 0, NULL, true);
            ggl_tensor *matrix = ggl_graph_weight(f.g, "w", types[k], 2, (int64_t[]){IN, ROWS}, w);
            ggl_tensor *all = ggl_sum_squares(f.g, matrix);
            ggl_graph_output(f.g, "y", ggl_binary(f.g, GGL_OP_ADD, all, x));
            REQUIRE_OK(ggl_graph_finish(f.g, &f.err), &f.err);
            REQUIRE_OK(ggl_backend_open(&reference, "reference", NULL, &f.err), &f.err);
            REQUIRE_OK(ggl_backend_open(&f.b, "cpu", &on, &f.err), &f.err);
            CHECK(!f.b->v->refuses(f.b, all)); /* its body would unpack the whole weight */
            REQUIRE_OK(ggl_graph_fold_by(f.g, reference, how ? f.b : NULL, &f.err), &f.err);
            CHECK(all->op == GGL_OP_CONST || !all->needed);
            const ggl_sched_params p = {.size = sizeof p, .backend = &f.b, .n_backends = 1};
            REQUIRE_OK(ggl_sched_new(&f.s, f.g, &p, &f.err), &f.err);
            REQUIRE_OK(ggl_sched_alloc(f.s, &f.err), &f.err);
            const float zero = 0;
            REQUIRE(set(&f, "x", &zero, 1));
            REQUIRE_OK(ggl_sched_run(f.s, 1, NULL, 0, &f.err), &f.err);
            memcpy(out[how], ggl_sched_output(f.s, 0), sizeof out[how]);
            end(&f);
            ggl_backend_close(reference);
        }
        free(w);
        CHECK_MSG(memcmp(out[1], out[2], sizeof out[1]) == 0, "%s by two threads", type->name);
        for (int i = 0; i < ROWS; i++)
            if (!CHECK_MSG(out[0][i] > 1 && fabsf(out[1][i] - out[0][i]) < 2e-6f * out[0][i],
                           "%s, row %d: %g, not %g", type->name, i, (double)out[1][i],
                           (double)out[0][i]))
                break;
    }
    test_set_variable("GGL_CPU_SHARE_ALL", NULL);
}

/* More than is allowed of them. */
TEST(too_many_large_products) {
    enum { IN = 1 << 14, ROWS = 1 << 14, OUT = 1 << 15 };
    ggl_error err = {0};
    ggl_backend *b = NULL;
    REQUIRE_OK(ggl_backend_open(&b, "reference", NULL, &err), &err);
    ggl_graph *g = ggl_graph_new(NULL);
    static const float none[1];
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){IN, OUT}, none);
    ggl_tensor *r = ggl_graph_weight(g, "r", GGL_F32, 2, (int64_t[]){IN, ROWS}, none);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 0, NULL, true);
    ggl_tensor *y = ggl_linear(g, r, w, NULL);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_ADD, y, x));
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    CHECK_INT(ggl_graph_fold_by(g, b, b, &err), GGL_LIMIT);
    CHECK_HAS(err.msg, "computes 2048 MiB of constants at load, at most 1024 are allowed");
    ggl_graph_free(g);
    ggl_backend_close(b);
}

/* Folding asks the backend first: one that lacks an operator would be handed a node that it cannot
 * run. */
TEST(constants_that_the_backend_refuses) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    REQUIRE_OK(ggl_backend_open(&b, "reference", NULL, &err), &err);
    ggl_backend_vtable poor = *b->v;
    poor.refuses = no_power;
    ggl_backend without = *b;
    without.v = &poor;
    ggl_graph *g = ggl_graph_new(NULL);
    const int64_t n = 3;
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true);
    ggl_tensor *count = ggl_graph_op(g, GGL_OP_IOTA, NULL, 0, (double[]){3}, 1);
    ggl_tensor *power = ggl_binary(g, GGL_OP_POW, ggl_graph_number(g, 2), count);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_MUL, x, power));
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    CHECK_INT(ggl_graph_fold(g, &without, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "**");
    CHECK_HAS(err.msg, "does not run on reference, which computes constants: it has no powers");
    ggl_graph_free(g);
    ggl_backend_close(b);
}
