/* The graph builder: shapes, messages, bodies, what is needed, how stores are sized. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "sched/store_rows.h"
#include "test.h"

static ggl_tensor *input(ggl_graph *g, const char *name, int n_dims, int64_t a, int64_t b,
                         int64_t c) {
    return ggl_graph_input(g, name, GGL_F32, n_dims, (int64_t[]){a, b, c}, true);
}

static ggl_graph *graph_new(void) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    return g;
}

static ggl_tensor *op1(ggl_graph *g, ggl_op op, ggl_tensor *x, int n, const double *num) {
    return ggl_graph_op(g, op, &x, 1, num, n);
}

/* The graph's error has these words, and the graph is freed. */
static void refused(ggl_graph *g, const char *words) {
    ggl_error err = {0};
    CHECK(ggl_graph_error(g, &err) != GGL_OK);
    CHECK_HAS(err.msg, words);
    ggl_graph_free(g);
}

TEST(weight_of_an_unknown_type) {
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_error err;
    REQUIRE(g);
    CHECK(!ggl_graph_weight(g, "w", (ggl_type)99, 1, (int64_t[]){32}, NULL));
    CHECK_INT(ggl_graph_error(g, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "weight 'w' has the type number 99");
    ggl_graph_free(g);
}

TEST(values_that_cannot_be_outputs) {
    static const char *const want[] = {
        "output 'y' is an input, which nothing computes: ggl_unary(g, GGL_OP_CAST",
        "output 'y' is a weight, a part of one, or a constant",
        "output 'y' is a weight, a part of one, or a constant",
        "output 'y' is a weight, a part of one, or a constant",
        "output 'y' is of type i32, and outputs are f32: ggl_unary(g, GGL_OP_CAST",
        "output 'y' has no value: cache and keep only store one"};
    static const float data[8] = {0};
    for (int k = 0; k < 6; k++) {
        ggl_graph *g = graph_new();
        ggl_tensor *x = input(g, "x", 1, 8, 0, 0);
        ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 1, (int64_t[]){8}, data);
        ggl_tensor *at[] = {x,
                            w,
                            op1(g, GGL_OP_RESHAPE, w, 2, (double[]){4, 2}),
                            ggl_graph_number(g, 1),
                            op1(g, GGL_OP_TOPK, x, 1, (double[]){2}),
                            ggl_binary(g, GGL_OP_CACHE, x, x)};
        CHECK(!ggl_graph_output(g, "y", at[k]));
        refused(g, want[k]);
    }
}

TEST(op_table_is_consistent) {
    for (int op = 0; op < GGL_OP_COUNT; op++) {
        ggl_op_info info = ggl_op_get((ggl_op)op);
        CHECK_MSG(ggl_op_find(info.name) == (ggl_op)op, "'%s' is found as another operator",
                  info.name);
        CHECK(info.text[0]);
        for (int k = 0; k < info.n_params; k++)
            CHECK_MSG(ggl_op_param((ggl_op)op, k).name[0], "%s: argument %d has no name", info.name,
                      k);
    }
    ggl_param p = ggl_op_param(GGL_OP_ATTEND, 2);
    CHECK_STR(p.name, "scale");
    CHECK(p.kind == GGL_PARAM_NUMBER && p.optional && isnan(p.fallback));
    p = ggl_op_param(GGL_OP_SUM, 1);
    CHECK(p.kind == GGL_PARAM_NUMBER && p.optional && p.fallback == 0);
    CHECK(ggl_op_param(GGL_OP_RESHAPE, 1).variadic);
    CHECK(ggl_op_param(GGL_OP_CACHE, 3).kind == GGL_PARAM_SUPPLIED);
    CHECK(ggl_op_find("nothing") == GGL_OP_COUNT);
}

TEST(shapes) {
    ggl_graph *g = graph_new();
    ggl_tensor *x = input(g, "x", 2, 6, 4, 1), *y;
    y = op1(g, GGL_OP_SUM, x, 0, NULL);
    CHECK(y->n_dims == 2 && y->ne[0] == 1 && y->ne[1] == 4 && ggl_is_batched(y));
    y = op1(g, GGL_OP_SUM, x, 1, (double[]){1});
    CHECK(y->n_dims == 1 && y->ne[0] == 6);
    y = op1(g, GGL_OP_RESHAPE, x, 3, (double[]){3, 2, 4});
    CHECK(y->n_dims == 3 && y->ne[2] == 4);
    y = op1(g, GGL_OP_TRANSPOSE, x, 0, NULL);
    CHECK(y->ne[0] == 4 && y->ne[1] == 6);
    y = op1(g, GGL_OP_SPLIT, x, 3, (double[]){0, 2, 3});
    CHECK(y->ne[0] == 3 && y->ne[1] == 4);
    y = ggl_graph_op(g, GGL_OP_CONCAT, (ggl_tensor *[]){x, x}, 2, (double[]){1}, 1);
    CHECK(y->ne[0] == 6 && y->ne[1] == 8);
    y = ggl_binary(g, GGL_OP_ADD, x, op1(g, GGL_OP_SPLIT, x, 3, (double[]){0, 0, 1}));
    CHECK(y->ne[0] == 6 && y->ne[1] == 4);
    ggl_tensor *w = ggl_graph_weight(g, "w", GGL_F32, 3, (int64_t[]){6, 5, 4}, "");
    y = ggl_linear(g, x, w, NULL);
    CHECK(y->n_dims == 2 && y->ne[0] == 5 && y->ne[1] == 4);
    ggl_tensor *row = op1(g, GGL_OP_RESHAPE, x, 1, (double[]){24});
    ggl_tensor *best = op1(g, GGL_OP_TOPK, row, 1, (double[]){3});
    CHECK(best->type == GGL_I32 && best->ne[0] == 3);
    y = ggl_binary(g, GGL_OP_PICK, w, best);
    CHECK(y->n_dims == 3 && y->ne[2] == 3);
    y = ggl_linear(g, op1(g, GGL_OP_SPLIT, x, 3, (double[]){1, 0, 1}), y, NULL);
    CHECK(y->ne[0] == 5 && y->ne[1] == 3);
    CHECK_INT(ggl_graph_error(g, NULL), GGL_OK);
    ggl_graph_free(g);
}

TEST(messages_speak_of_names) {
    ggl_graph *g = graph_new();
    ggl_tensor *a = input(g, "a", 1, 96, 1, 1), *b = input(g, "b", 1, 64, 1, 1);
    ggl_tensor_set_dim_name(g, a, 0, "n_ff");
    ggl_tensor_set_dim_name(g, b, 0, "n_embd");
    CHECK(!ggl_binary(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_TANH, a), b));
    CHECK(!ggl_unary(g, GGL_OP_TANH, b)); /* the first error sticks */
    refused(g, "'*' of [n_ff = 96] and [n_embd = 64]");
}

/* ngrams of m numbers, with by of so many, k results and rows. */
static ggl_tensor *ngrams(ggl_graph *g, int64_t m, int64_t n_by, int64_t k, double rows) {
    ggl_tensor *src[] = {input(g, "x", 1, m, 1, 1), input(g, "by", 2, 4, n_by, 1),
                         input(g, "into", 2, 4, k, 1), input(g, "first", 2, 4, k, 1)};
    return ggl_graph_op(g, GGL_OP_NGRAMS, src, 4, &rows, 1);
}

TEST(ngrams_of_tokens) {
    ggl_graph *g = graph_new();
    const ggl_tensor *y = ngrams(g, 3, 3, 4, 1e9);
    CHECK(y && y->type == GGL_I32 && y->n_dims == 1 && y->ne[0] == 4);
    ggl_graph_free(g);
    ngrams(g = graph_new(), 1, 1, 4, 9);
    refused(g, "ngrams of [1]: a row of two numbers");
    ngrams(g = graph_new(), 3, 2, 4, 9);
    refused(g, "four digits of each");
    ngrams(g = graph_new(), 3, 3, 5, 9);
    refused(g, "do not divide among 2 lengths");
    ngrams(g = graph_new(), 3, 3, 4, 0);
    refused(g, "rows = 0");
}

/* choose_rows by `heads` queries of 8 numbers, over a cache that has so many heads of keys, and attention of 4 heads to 2 of keys by the result. */
static ggl_tensor *choose_rows(ggl_graph *g, int64_t heads, int64_t key_heads, bool weighted,
                               const double num[3]) {
    ggl_tensor *k = input(g, "k", 2, 8, key_heads, 1), *rows = input(g, "rows", 2, 8, 2, 1);
    ggl_tensor *src[] = {input(g, "q", 2, 8, heads, 1),
                         ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){k, k}, 2, NULL, 0),
                         weighted ? input(g, "w", 1, heads, 1, 1) : NULL};
    ggl_tensor *to[10] = {input(g, "of", 2, 8, 4, 1),
                          ggl_graph_op(g, GGL_OP_CACHE, (ggl_tensor *[]){rows, rows}, 2, NULL, 0)};
    to[9] = ggl_graph_op(g, GGL_OP_CHOOSE_ROWS, src, 3, num, 3);
    return to[9] && ggl_graph_op(g, GGL_OP_ATTEND, to, 10, (double[]){NAN, NAN, NAN}, 3) ? to[9]
                                                                                         : NULL;
}

TEST(rows_that_are_chosen) {
    const double plain[3] = {5, 4, NAN}, near_two[3] = {5, 4, 2}, near_six[3] = {5, 4, 6};
    ggl_graph *g = graph_new();
    const ggl_tensor *y = choose_rows(g, 3, 1, true, plain);
    CHECK(y && y->n_dims == 1 && y->ne[0] == 23);
    ggl_graph_free(g);
    y = choose_rows(g = graph_new(), 2, 1, false, near_two);
    CHECK(y && y->n_dims == 2 && y->ne[0] == 20 && y->ne[1] == 2);
    ggl_graph_free(g);
    choose_rows(g = graph_new(), 3, 1, false, near_two);
    refused(g, "or one for each of 2 heads of keys");
    choose_rows(g = graph_new(), 2, 1, false, near_six);
    refused(g, "near = 6: a whole number from 0 to 5");
    choose_rows(g = graph_new(), 2, 2, false, plain);
    refused(g, "the keys have one head");
}

TEST(wrong_use) {
    ggl_graph *g = graph_new();
    ggl_linear(g, input(g, "x", 1, 8, 1, 1),
               ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){9, 3}, ""), NULL);
    refused(g, "linear of [8] with the matrix [9, 3]");
    g = graph_new();
    op1(g, GGL_OP_RESHAPE, input(g, "x", 1, 8, 1, 1), 2, (double[]){3, 3});
    refused(g, "8 elements against 9");
    g = graph_new();
    op1(g, GGL_OP_RESHAPE, input(g, "x", 1, 8, 1, 1), 4,
        (double[]){2147483647, 2147483647, 2147483647, 2147483647});
    refused(g, "elements");
    g = graph_new();
    op1(g, GGL_OP_TOPK, input(g, "x", 1, 8, 1, 1), 1, (double[]){9});
    refused(g, "topk with k = 9");
    g = graph_new();
    op1(g, GGL_OP_SPLIT, input(g, "x", 1, 8, 1, 1), 3, (double[]){0, 4, 5});
    refused(g, "size = 5");
    g = graph_new();
    op1(g, GGL_OP_STATE, NULL, 1, (double[]){8});
    refused(g, "");
    g = graph_new();
    ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){8}, 1);
    refused(g, "body");
    g = graph_new();
    ggl_graph_op(g, GGL_OP_LINEAR, (ggl_tensor *[]){input(g, "x", 1, 8, 1, 1)}, 1, NULL, 0);
    refused(g, "'w' is missing");
    g = ggl_graph_new(NULL);
    ggl_tensor *k = input(g, "k", 2, 8, 2, 1);
    ggl_binary(g, GGL_OP_CACHE, k, k);
    refused(g, "an input named 'pos'");
    g = graph_new();
    ggl_graph_weight(g, "w", GGL_Q8_0, 1, (int64_t[]){33}, "");
    refused(g, "q8_0 blocks");
    g = graph_new();
    input(g, "x", 2, INT64_C(1) << 31, 1, 1);
    refused(g, "2^31-1");
    g = graph_new();
    ggl_error err = {0};
    CHECK_INT(ggl_graph_finish(g, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "no output");
    ggl_graph_free(g);
}

TEST(bodies_capture_and_close) {
    ggl_graph *g = graph_new();
    ggl_tensor *x = input(g, "x", 1, 8, 1, 1), *outer = ggl_unary(g, GGL_OP_TANH, x), *inner = NULL,
               *call = NULL;
    ggl_tensor **p = ggl_body_begin(g, &x, 1);
    REQUIRE(p);
    inner = ggl_binary(g, GGL_OP_ADD, p[0], outer);
    call = ggl_body_end(g, "plus", inner, (double[]){3}, 1);
    REQUIRE(call && call->body);
    CHECK(call->n_src == 2 && call->src[1] == outer && call->body->n_param == 2);
    CHECK(call->body->node[0]->src[1] == call->body->param[1]);
    CHECK_STR(call->call, "plus");
    CHECK(call->num[0] == 3 && !call->body->recurrent);
    CHECK(!ggl_unary(g, GGL_OP_TANH, inner));
    refused(g, "used outside");
}

TEST(rings_where_all_readers_have_windows) {
    ggl_graph_params params = ggl_graph_default();
    params.n_pos = 1000;
    params.n_batch = 10;
    ggl_graph *g = ggl_graph_new(&params);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = input(g, "x", 2, 8, 2, 1);
    ggl_tensor *a = ggl_binary(g, GGL_OP_CACHE, x, x), *b = ggl_binary(g, GGL_OP_CACHE, x, x);
    ggl_tensor *c = ggl_binary(g, GGL_OP_CACHE, x, x); /* nobody reads it */
    ggl_tensor *near =
        ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, a}, 2, (double[]){NAN, 100}, 2);
    ggl_tensor *far = ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, b}, 2, NULL, 0);
    ggl_tensor *both =
        ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, b}, 2, (double[]){NAN, 5}, 2);
    ggl_graph_output(g, "y", ggl_binary(g, GGL_OP_ADD, near, ggl_binary(g, GGL_OP_ADD, far, both)));
    ggl_error err = {0};
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    CHECK_INT(ggl_graph_n_stores(g), 4);
    CHECK_INT(a->store[0]->n_pos, 128); /* 100 + 10 - 1, in pages of 64 */
    CHECK_INT(b->store[0]->n_pos, 1024);
    CHECK(!c->needed);
    CHECK(a->store[0]->ring && !b->store[0]->ring && !b->store[1]->ring);
    CHECK_INT((long long)a->store[0]->slot_size, 128 * 8 * 2 * 2);
    CHECK_INT((long long)a->store[0]->page_size, 64 * 8 * 2 * 2);
    CHECK_INT((long long)ggl_store_page(a->store[0], NULL, 3, 128 + 65), 3 * 2 + 1);
    const int32_t table[] = {9, 8, 7, 5};
    CHECK_INT((long long)ggl_store_page(b->store[1], table, 3, 128 + 65), 5);
    ggl_graph_free(g);
}

/* A graph of two caches, one of which is read through a window of 100 positions. */
static ggl_graph *graph_of_caches(int64_t n_slots, int64_t n_pool, ggl_tensor **near,
                                  ggl_tensor **far) {
    ggl_graph_params params = ggl_graph_default();
    params.n_pos = 1000;
    params.n_batch = 10;
    params.n_slots = n_slots;
    params.n_pool = n_pool;
    ggl_graph *g = ggl_graph_new(&params);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = input(g, "x", 2, 8, 2, 1);
    *near = ggl_binary(g, GGL_OP_CACHE, x, x);
    *far = ggl_binary(g, GGL_OP_CACHE, x, x);
    ggl_tensor *y =
        ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, *near}, 2, (double[]){NAN, 100}, 2);
    y = ggl_binary(g, GGL_OP_ADD, y,
                   ggl_graph_op(g, GGL_OP_ATTEND, (ggl_tensor *[]){x, *far}, 2, NULL, 0));
    ggl_graph_output(g, "y", y);
    return g;
}

TEST(slots_share_pages) {
    static const struct {
        int64_t n_slots, n_pool, n_pages;
        bool ring;
    } form[] = {{1, 0, 16, true},  {3, 0, 48, true},     {3, 1000, 16, true},
                {3, 448, 7, true}, {3, 400, 7, true},    {3, 384, 6, false},
                {3, 1, 1, false},  {3, 99999, 48, true}, {3, INT64_MAX, 48, true}};
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        ggl_tensor *near, *far;
        ggl_error err = {0};
        ggl_graph *g = graph_of_caches(form[i].n_slots, form[i].n_pool, &near, &far);
        REQUIRE_OK(ggl_graph_finish(g, &err), &err);
        CHECK_INT(ggl_graph_n_pages(g), form[i].n_pages);
        CHECK_INT(near->store[0]->ring, form[i].ring); /* two pages of each slot */
        CHECK_INT(near->store[0]->n_pos, form[i].ring ? 128 : form[i].n_pages * 64);
        CHECK(!far->store[0]->ring);
        const long long page = 64 * 8 * 2 * 2;
        CHECK_INT((long long)far->store[1]->size, form[i].n_pages * page);
        CHECK_INT((long long)near->store[1]->size,
                  (form[i].ring ? 2 * form[i].n_slots : form[i].n_pages) * page);
        const ggl_tensor *table = ggl_graph_find_input(g, "page");
        REQUIRE(table);
        CHECK_INT(table->ne[0], form[i].n_pages < 16 ? form[i].n_pages : 16);
        CHECK(table->ne[1] == form[i].n_slots && table->needed);
        CHECK(far->src[4] == table && near->src[4] == (form[i].ring ? NULL : table));
        ggl_graph_free(g);
    }
}

/* A graph of main rows that read a stage's rows. The last three of four slots hold the stage's, in 80 positions together. */
TEST(stages_have_pages_of_their_own) {
    ggl_graph_params params = ggl_graph_default();
    ggl_error err = {0};
    params.n_pos = 1000;
    params.n_batch = 10;
    params.n_slots = 4;
    params.n_pool = 400;
    params.n_stage_slots = 3;
    params.n_stage_pool = 80;
    ggl_graph *g = ggl_graph_new(&params);
    static const char *const name[] = {"pos",       "slot",      "stage.pos", "stage.slot",
                                       "stage.end", "read.slot", "read.end"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        ggl_graph_input(g, name[i], GGL_I32, 0, NULL, true);
    ggl_tensor *x = input(g, "x", 2, 8, 2, 1), *text = input(g, "stage.x", 2, 8, 2, 1);
    ggl_tensor *read = ggl_binary(g, GGL_OP_CACHE, text, text),
               *own = ggl_binary(g, GGL_OP_CACHE, x, x);
    ggl_graph_output(g, "y",
                     ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_ATTEND, x, own),
                                ggl_binary(g, GGL_OP_ATTEND, x, read)));
    REQUIRE_OK(ggl_graph_finish(g, &err), &err);
    const long long page = 64 * 8 * 2 * 2;
    CHECK_INT((long long)own->store[1]->size, 7 * page);
    CHECK_INT((long long)read->store[1]->size, 2 * page);
    CHECK_INT(ggl_graph_n_pages(g), 7);
    CHECK_INT(ggl_graph_n_pages_of(g, GGL_ROWS_STAGE), 2);
    const ggl_tensor *table = ggl_graph_find_input(g, "page");
    REQUIRE(table && table->ne[0] == 7 && table->ne[1] == 4);
    int32_t value[28] = {0}, slot = 0;
    CHECK_OK(ggl_rows_check(g, table, value, 1, &err), &err);
    value[6] = 6, value[7 + 6] = 1, value[27] = 1;
    CHECK_OK(ggl_rows_check(g, table, value, 1, &err), &err);
    value[7 + 6] = 2;
    CHECK_INT(ggl_rows_check(g, table, value, 1, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "page 2 of a graph that has 2");
    CHECK_OK(ggl_rows_check(g, ggl_graph_find_input(g, "slot"), &slot, 1, &err), &err);
    CHECK_INT(ggl_rows_check(g, ggl_graph_find_input(g, "stage.slot"), &slot, 1, &err), GGL_USAGE);
    CHECK_INT(ggl_rows_check(g, ggl_graph_find_input(g, "read.slot"), &slot, 1, &err), GGL_USAGE);
    slot = 1;
    CHECK_OK(ggl_rows_check(g, ggl_graph_find_input(g, "stage.slot"), &slot, 1, &err), &err);
    CHECK_OK(ggl_rows_check(g, ggl_graph_find_input(g, "read.slot"), &slot, 1, &err), &err);
    CHECK_INT(ggl_rows_check(g, ggl_graph_find_input(g, "slot"), &slot, 1, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "slot 1 of a graph that has 1");
    CHECK(!ggl_rows_own_pages(g, value)); /* three slots have two pages */
    int32_t pos = 127;
    CHECK_OK(ggl_rows_check(g, ggl_graph_find_input(g, "stage.pos"), &pos, 1, &err), &err);
    pos = 128;
    CHECK_INT(ggl_rows_check(g, ggl_graph_find_input(g, "stage.pos"), &pos, 1, &err), GGL_USAGE);
    CHECK_OK(ggl_rows_check(g, ggl_graph_find_input(g, "read.end"), &pos, 1, &err), &err);
    CHECK_OK(ggl_rows_check(g, ggl_graph_find_input(g, "pos"), &pos, 1, &err), &err);
    pos = 448;
    CHECK_INT(ggl_rows_check(g, ggl_graph_find_input(g, "pos"), &pos, 1, &err), GGL_USAGE);
    ggl_graph_free(g);
    params.n_stage_slots = 4;
    g = ggl_graph_new(&params);
    CHECK_INT(ggl_graph_error(g, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "4 of 4 slots cannot be for the rows of a stage");
    ggl_graph_free(g);
}

TEST(the_name_page_is_taken) {
    ggl_tensor *near, *far;
    ggl_error err = {0};
    ggl_graph *g = graph_of_caches(1, 0, &near, &far);
    ggl_graph_input(g, "page", GGL_F32, 0, NULL, true);
    CHECK_INT(ggl_graph_finish(g, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "an input cannot be named 'page'");
    ggl_graph_free(g);
    g = graph_of_caches(1, -1, &near, &far);
    CHECK_INT(ggl_graph_error(g, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "cannot share -1 positions");
    ggl_graph_free(g);
}

TEST(pages_that_lie_together) {
    const int32_t table[] = {4, 5, 6, 2, 3, 9};
    ggl_store s = {
        .kind = GGL_STORE_KEYS, .type = GGL_F16, .ne = {8, 1, 1}, .n_pos = 384, .page_size = 1024};
    static const struct {
        int first, n_pos, at, size; /* at and size in pages */
    } run[] = {{0, 384, 4, 3}, {64, 384, 5, 2}, {0, 65, 4, 2}, {192, 384, 2, 2}, {320, 321, 9, 1}};
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        size_t at, size = ggl_store_run(&s, 1024, table, 1, run[i].first, run[i].n_pos, &at);
        CHECK_INT((long long)at, run[i].at * 1024);
        CHECK_INT((long long)size, run[i].size * 1024);
    }
    ggl_store state = {.kind = GGL_STORE_STATE, .n_pos = 1, .slot_size = 192};
    size_t at;
    CHECK_INT((long long)ggl_store_run(&state, 0, NULL, 2, 0, 1, &at), 192);
    CHECK_INT((long long)at, 384);
}

/* A store of its own, for rows. */
static ggl_store rows_of(ggl_store_kind kind, ggl_type type, int64_t d) {
    ggl_store s = {.kind = kind, .type = type, .ne = {d, 3, 1}, .n_pos = 128, .ring = true};
    CHECK(ggl_store_size(&s, s.n_pos, &s.slot_size));
    s.page_size = s.slot_size / 2;
    return s;
}

/* The page of a slot that begins at `slot`. */
static char *page_of(const ggl_store *s, char *slot, int64_t pos) {
    return slot + (size_t)ggl_store_page(s, NULL, 0, pos) * s->page_size;
}

TEST(rows_of_a_store) {
    static const ggl_type types[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    uint64_t seed = 5;
    for (int form = 0; form < 20; form++) {
        const ggl_type_info *t = ggl_type_get(types[form / 4]);
        int64_t d = form % 4 < 2 ? 96 : t->quantized ? 32 : 21;
        ggl_store s = rows_of((ggl_store_kind)(form % 2), t->type, d);
        CHECK_INT((long long)s.slot_size, (long long)(2 * 3 * 64 * ggl_row_size(t->type, d)));
        char *slot = calloc(s.slot_size, 1), packed[96 * 4];
        float *x = calloc((size_t)(128 * 3 * d), sizeof *x), got[96], want[96];
        REQUIRE(slot && x);
        for (int64_t i = 0; i < 128 * 3 * d; i++)
            x[i] = test_random_float(&seed) * 4;
        for (int64_t r = 0; r < 128 * 3; r++) /* position 128 is where 0 was */
            ggl_store_put(&s, page_of(&s, slot, 128 + r / 3), 128 + r / 3, r % 3, x + r * d);
        for (int64_t r = 0; r < 128 * 3; r++) {
            t->from_float(x + r * d, packed, d);
            t->to_float(packed, want, d);
            ggl_store_get(&s, page_of(&s, slot, r / 3), r / 3, r % 3, got);
            CHECK_MSG(memcmp(got, want, (size_t)d * 4) == 0, "%s: row %d", t->name, (int)r);
        }
        float part[32][GGL_PAGE];
        for (int64_t i = 0; i < d && s.kind == GGL_STORE_KEYS; i += 32) {
            int n = d - i < 32 ? (int)(d - i) : 32;
            const char *page = page_of(&s, slot, 64);
            ggl_keys_unpack(t->type, page + 2 * s.page_size / 3, i, n, part);
            for (int j = 0; j < GGL_PAGE; j++) {
                ggl_store_get(&s, page, 64 + j, 2, got);
                for (int k = 0; k < n; k++)
                    CHECK(part[k][j] == got[i + k]);
            }
        }
        free(slot);
        free(x);
    }
}

TEST(types_of_a_cache) {
    ggl_graph_params p = ggl_graph_default();
    ggl_error err = {0};
    p.type_v = GGL_Q6_K;
    ggl_graph *g = ggl_graph_new(&p);
    CHECK_INT(ggl_graph_error(g, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "q8_0 or q4_0, not q6_k");
    ggl_graph_free(g);
    p.type_v = GGL_Q4_0;
    g = ggl_graph_new(&p);
    ggl_graph_input(g, "pos", GGL_I32, 0, NULL, true);
    ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
    ggl_tensor *x = input(g, "x", 2, 80, 2, 1);
    CHECK(!ggl_binary(g, GGL_OP_CACHE, x, x));
    CHECK_INT(ggl_graph_error(g, &err), GGL_UNSUPPORTED);
    CHECK_HAS(err.msg, "values with heads of 80 elements cannot be cached as q4_0");
    CHECK_HAS(err.msg, "multiples of 32");
    ggl_graph_free(g);
    /* sizes that no memory has */
    ggl_store s = {.kind = GGL_STORE_VALUES,
                   .type = GGL_F32,
                   .ne = {INT32_MAX, INT32_MAX, 1},
                   .n_pos = INT32_MAX};
    size_t size;
    CHECK(!ggl_store_size(&s, s.n_pos, &size));
}

TEST(leading_part_of_the_keys_is_not_kept_twice) {
    ggl_graph *g = graph_new();
    ggl_tensor *k = input(g, "k", 2, 8, 2, 1), *v = op1(g, GGL_OP_SPLIT, k, 3, (double[]){0, 0, 6});
    ggl_tensor *kv = ggl_binary(g, GGL_OP_CACHE, k, v);
    CHECK(kv && kv->store[0] && !kv->store[1]);
    ggl_graph_free(g);
}
