/* The basis of llm-bench conform: it must find a faulty backend, at the operator that has the
 * fault, and report the smallest failing form. */
#include <math.h>

#include "conform/table.h"
#include "faulty.h"
#include "test.h"

typedef struct fixture {
    ggl_backend *cpu, *b;
} fixture;

static bool setup(fixture *f, fault_kind kind, ggl_op op, ggl_type type) {
    ggl_error err = {0};
    *f = (fixture){0};
    if (!CHECK_OK(ggl_backend_open(
                      &f->cpu, "cpu",
                      &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1},
                      &err),
                  &err))
        return false;
    f->b = faulty_open(f->cpu, kind, op, type);
    return CHECK(f->b != NULL);
}

static void teardown(fixture *f) {
    faulty_close(f->b);
    ggl_backend_close(f->cpu);
}

/* The one row of an operator and a type. */
static conform_row row_of(const fixture *f, const char *op, const char *type, bool quick) {
    const conform_selection s = {.op = op, .type = type, .quick = quick};
    static conform_row row[64];
    int n = conform_rows_of(&s, row, 64), k = 0;
    while (k < n && strcmp(row[k].type, type) != 0)
        k++;
    if (!CHECK_MSG(k < n, "there is no row %s, %s", op, type))
        return (conform_row){0};
    conform_row_run(&s, &row[k], f->b, NULL);
    return row[k];
}

static void check_right(const fixture *f, const char *op, const char *type) {
    conform_row r = row_of(f, op, type, true);
    CHECK_MSG(r.n_right == r.n_cases && r.n_cases > 0, "%s, %s: %d of %d are right; %s%s %s", op,
              type, r.n_right, r.n_cases, r.reason, r.wrong.form_text, r.wrong.text);
}

/* Elementwise f32 operators, rows and moves with other names are right. */
static void check_others_right(const fixture *f, const char *but) {
    static const char *const ops[] = {"+", "max", "exp", "tanh", "sum", "<concat>", "linear"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(ops[i], but) != 0)
            check_right(f, ops[i], "f32");
}

/* The row is wrong, with this report. */
static void check_least(const fixture *f, const char *op, const char *type, const char *least) {
    conform_row r = row_of(f, op, type, false);
    CHECK(r.n_wrong > 0);
    CHECK_STR(r.wrong.form_text, least);
}

TEST(wrong_in_a_batch) {
    fixture f;
    REQUIRE(setup(&f, FAULT_BATCH, GGL_OP_TANH, GGL_TYPE_LIMIT));
    check_least(&f, "tanh", "f32", "tanh(one x 2), of ones");
    check_others_right(&f, "tanh");
    teardown(&f);
}

TEST(wrong_in_the_tail) {
    fixture f;
    REQUIRE(setup(&f, FAULT_TAIL, GGL_OP_LINEAR, GGL_Q5_0));
    check_least(&f, "linear", "q5_0", "linear([32] x 1, q5_0 [32, 1]), whole numbers");
    check_right(&f, "linear", "q5_1");
    check_right(&f, "linear", "q4_0");
    check_others_right(&f, "");
    teardown(&f);
}

TEST(wrong_with_a_slice) {
    fixture f;
    REQUIRE(setup(&f, FAULT_VIEW, GGL_OP_ADD, GGL_TYPE_LIMIT));
    check_least(&f, "+", "f32", "one x 1 + [1] x 1, slices from 1, of ones");
    check_others_right(&f, "+");
    teardown(&f);
}

TEST(wrong_with_a_bias) {
    fixture f;
    REQUIRE(setup(&f, FAULT_BIAS, GGL_OP_LINEAR, GGL_TYPE_LIMIT));
    check_least(&f, "linear", "f32", "linear([1] x 1, [1, 1], [1]), of ones");
    teardown(&f);
}

TEST(wrong_with_nan) {
    fixture f;
    REQUIRE(setup(&f, FAULT_NAN, GGL_OP_MAX, GGL_TYPE_LIMIT));
    check_least(&f, "max", "f32", "max(one x 1, one x 1), NaN among the values");
    conform_row r = row_of(&f, "max", "f32", false);
    CHECK(r.wrong.got == 0 && isnan(r.wrong.want) && r.wrong.at == 0 && r.wrong.n_wrong == 1);
    CHECK_HAS(r.wrong.text, "1 of 1 elements; element [0] of item 0 is 0, the reference has nan");
    CHECK(r.n_wrong < r.n_cases);
    check_others_right(&f, "max");
    teardown(&f);
}

TEST(fails) {
    fixture f;
    REQUIRE(setup(&f, FAULT_FAILS, GGL_OP_SUM, GGL_TYPE_LIMIT));
    conform_row r = row_of(&f, "sum", "f32", false);
    CHECK(r.n_wrong > 0 && r.wrong.outcome == CONFORM_FAILED && r.wrong.form.n == 4);
    CHECK_HAS(r.wrong.text, "the device is tired");
    check_others_right(&f, "sum");
    teardown(&f);
}

TEST(refuses_a_type) {
    fixture f;
    REQUIRE(setup(&f, FAULT_REFUSES, GGL_OP_LINEAR, GGL_Q5_0));
    conform_row r = row_of(&f, "linear", "q5_0", true);
    CHECK(r.n_refused == r.n_cases && r.n_wrong == 0 && r.n_right == 0);
    CHECK_STR(r.reason, "no such weights today");
    check_right(&f, "linear", "q4_0");
    teardown(&f);
}

/* Other operators of a case may run elsewhere. */
TEST(refuses_an_operator) {
    fixture f;
    REQUIRE(setup(&f, FAULT_UNKNOWN, GGL_OP_TANH, GGL_TYPE_LIMIT));
    conform_row r = row_of(&f, "tanh", "f32", true);
    CHECK(r.n_refused == r.n_cases);
    CHECK_STR(r.reason, "not written yet");
    r = row_of(&f, "of_my_own", "f32", true);
    CHECK(r.n_refused == r.n_cases);
    CHECK_STR(r.reason, "tanh: not written yet");
    check_others_right(&f, "tanh");
    teardown(&f);
}

/* A product picks matrices for itself, so it goes where its pick can run. */
TEST(refuses_a_pick) {
    fixture f;
    REQUIRE(setup(&f, FAULT_UNKNOWN, GGL_OP_PICK, GGL_TYPE_LIMIT));
    conform_row r = row_of(&f, "linear", "q4_0", false);
    CHECK(r.n_wrong == 0 && r.n_right > 0 && r.n_refused > 0);
    CHECK_STR(r.reason, "<pick>: not written yet");
    teardown(&f);
}

TEST(what_is_allowed) {
    fixture f;
    REQUIRE(setup(&f, FAULT_FLUSH, GGL_OP_MUL, GGL_TYPE_LIMIT));
    check_right(&f, "\\*", "f32");
    teardown(&f);
    REQUIRE(setup(&f, FAULT_ASYNC, GGL_OP_MUL, GGL_TYPE_LIMIT));
    check_others_right(&f, "");
    check_right(&f, "softmax", "f32");
    teardown(&f);
}

/* If another operator of a case is wrong, the case is reported as right without it. */
TEST(another_operator) {
    fixture f;
    REQUIRE(setup(&f, FAULT_CONFUSED, GGL_OP_TANH, GGL_TYPE_LIMIT));
    check_least(&f, "tanh", "f32", "tanh(one x 1), of ones");
    conform_row r = row_of(&f, "tanh", "f32", true);
    CHECK(r.n_wrong == r.n_cases && !r.right_alone);
    r = row_of(&f, "linear", "f32", true);
    CHECK(r.n_wrong == 1 && r.right_alone);
    teardown(&f);
}

/* The first form of each case, all of its graph on the backend, and its operator alone: what picks
 * matrices then stands in another group than the product, and still runs with it. */
TEST(alone) {
    fixture f;
    REQUIRE(setup(&f, FAULT_NONE, GGL_OP_TANH, GGL_TYPE_LIMIT));
    for (int k = 0; conform_kind_at(k); k++)
        for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
            const conform_case *info = &conform_kind_at(k)->cases[i];
            conform_result r;
            conform_form form = conform_variant(info, 0);
            form.n = form.n < 20 ? form.n : 20;
            form.n_batch = form.n_batch < form.n ? form.n_batch : form.n;
            for (int alone = 0; alone < 2; alone++) {
                form.alone = alone;
                CHECK_MSG(conform_check_form(info, &form, f.b, &r) == CONFORM_RIGHT, "%s, %s: %s",
                          info->name, r.form_text, r.text);
            }
        }
    teardown(&f);
}

/* A form that cannot be built is reported as such, and not reduced. */
TEST(no_such_form) {
    fixture f;
    conform_result r;
    const conform_case *add = &conform_elementwise.cases[0];
    conform_form form = conform_variant(add, 0);
    REQUIRE(setup(&f, FAULT_NONE, GGL_OP_TANH, GGL_TYPE_LIMIT));
    form.size[0] = 5;
    CHECK(conform_check_form(add, &form, f.b, &r) == CONFORM_INVALID);
    CHECK_HAS(r.text, "[5, 3]");
    CHECK(conform_shrink(add, f.b, &r, 100) == 0);
    teardown(&f);
}

/* Edge values come after all forms with ordinary ones, and only where the case wants them. */
TEST(variants) {
    for (int k = 0; conform_kind_at(k); k++)
        for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
            const conform_case *info = &conform_kind_at(k)->cases[i];
            CHECK(conform_n_variants(info) >= info->n_forms);
            for (int v = 0; v < conform_n_variants(info); v++) {
                conform_form f = conform_variant(info, v);
                CHECK(f.n > 0 && f.n_batch > 0 && f.n_batch <= f.n && f.n_slots > 0);
                CHECK(!f.alone && !f.unnamed && f.chunk == 0);
                CHECK(f.values == CONFORM_ORDINARY || (info->edges >> f.values & 1));
            }
        }
}

/* Times are of the operator, and shares of limits of the same backend. */
TEST(speed) {
    fixture f;
    REQUIRE(setup(&f, FAULT_ASYNC, GGL_OP_LINEAR, GGL_TYPE_LIMIT));
    conform_limits l = conform_measure_limits(f.b, 0.001);
    CHECK(l.memory_gb > 0 && l.product_gmac > 0);
    static conform_row row[4];
    const conform_selection s = {.op = "linear", .type = "f32", .quick = true, .seconds = 0.001};
    REQUIRE(conform_rows_of(&s, row, 4) == 1);
    conform_row_run(&s, &row[0], f.b, &l);
    CHECK(row[0].speed.ns > 0 && row[0].speed.reference_ns > 0 && row[0].percent > 0);
    CHECK(row[0].speed.macs == 2048.0 * 2048 * 256);
    CHECK_HAS(row[0].speed.text, "[2048, 2048]");
    teardown(&f);
}
