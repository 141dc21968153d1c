/* Shapes of models as text, and what types their tensors get. */
#include "common/shapes.h"
#include "common/shape_types.h"
#include "test.h"

static const char TEXT[] = "f32 router.weight\n"
                           "values norm.weight 1 0.5\n"
                           "shape one family # a comment\n"
                           "vocab 300 kind pre\n"
                           "with output.weight\n"
                           ".block_count = 3\n"
                           ".eps = 1e-5\n"
                           ".list = [1, 0, -2]\n"
                           "general.flag = true\n"
                           "general.text = \"some words\"\n"
                           "\n"
                           "shape tap-family other\n"
                           "vocab 300 kind\n"
                           "shape tiny-family-1b other\n"
                           "vocab 300 kind\n"
                           "shape two other\n"
                           "vocab 400 kind\n"
                           ".block_count = x\n";
#define T TEXT, sizeof TEXT - 1

TEST(keys) {
    static bench_shape s;
    ggl_error err = {0};
    REQUIRE_OK(bench_shape_find(&s, T, "one", &err), &err);
    CHECK_STR(s.arch, "family");
    CHECK_STR(s.tokenizer, "kind");
    CHECK_STR(s.pre, "pre");
    CHECK_INT(s.n_vocab, 300);
    CHECK_INT(s.n_keys, 5);
    CHECK_STR(s.key[0].name, "family.block_count");
    CHECK(s.key[0].kind == BENCH_KEY_INTEGER && s.key[0].number == 3);
    CHECK(s.key[1].kind == BENCH_KEY_FLOAT && s.key[1].number == 1e-5);
    CHECK(s.key[2].kind == BENCH_KEY_LIST && s.key[2].n == 3 && s.list[2] == -2);
    CHECK(s.key[3].kind == BENCH_KEY_BOOL && s.key[3].number == 1);
    CHECK_STR(s.key[4].string, "some words");
    REQUIRE_OK(bench_shape_set_layers(&s, 2, &err), &err);
    CHECK(s.key[0].number == 2 && s.key[2].n == 2);
    CHECK(bench_shape_set_layers(&s, 3, &err) == GGL_USAGE);
}

TEST(rules) {
    double mean, sigma;
    CHECK(bench_shape_with(T, "one", "output.weight"));
    CHECK(!bench_shape_with(T, "one", "attn_output.weight"));
    CHECK(!bench_shape_with(T, "two", "output.weight"));
    CHECK(bench_shape_f32(T, "blk.3.router.weight"));
    CHECK(!bench_shape_f32(T, "blk.3.router.bias"));
    bench_shape_values(T, "blk.0.norm.weight", &mean, &sigma);
    CHECK(mean == 1 && sigma == 0.5);
    bench_shape_values(T, "blk.0.q_norm.weight", &mean, &sigma);
    CHECK(mean == 0 && sigma == 0.02);
}

TEST(mistakes) {
    static bench_shape s;
    ggl_error err = {0};
    CHECK(bench_shape_find(&s, T, "onne", &err) == GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "did you mean 'one'");
    CHECK(bench_shape_find(&s, T, "tiny-family", &err) == GGL_NOT_FOUND);
    CHECK_HAS(
        err.msg,
        "did you mean 'tiny-family-1b'"); /* not 'tap-family', which has fewer other letters */
    CHECK(bench_shape_find(&s, T, "nonsense", &err) == GGL_NOT_FOUND);
    CHECK_MSG(!strstr(err.msg, "did you mean"), "%s", err.msg);
    CHECK(bench_shape_find(&s, T, "two", &err) == GGL_FORMAT);
    CHECK_HAS(err.msg, "shapes:18");
}

TEST(types) {
    ggl_type t;
    ggl_error err = {0};
    REQUIRE_OK(bench_type_find("q4_0", &t, &err), &err);
    CHECK_INT(t, GGL_Q4_0);
    CHECK(bench_type_find("i32", &t, &err) == GGL_NOT_FOUND);
    CHECK_HAS(err.msg, "q8_0");
    CHECK_INT(bench_type_of(GGL_Q4_0, "w", 2, (int64_t[]){64, 3, 1, 1}), GGL_Q4_0);
    CHECK_INT(bench_type_of(GGL_Q4_0, "w", 2, (int64_t[]){48, 3, 1, 1}), GGL_F16);
    CHECK_INT(bench_type_of(GGL_Q4_0, "w", 1, (int64_t[]){64, 1, 1, 1}), GGL_F32);
}
