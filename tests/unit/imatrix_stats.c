/* Statistics of importance matrices, against numbers worked out by hand. */
#include <math.h>

#include "llm-imatrix/stats.h"

#include "test.h"

static bool near(double got, double want) {
    return CHECK_MSG(fabs(got - want) <= 1e-12 || (isnan(got) && isnan(want)), "%.15g, not %.15g",
                     got, want);
}

/* An entry of 4 columns. Other matrices than the first have seen nothing. */
static llm_imatrix_entry entry(const char *name, int64_t n_mat, const int64_t *count,
                               const float *sum2) {
    return (llm_imatrix_entry){name, 4, n_mat, sum2, count, 0};
}

/* Layer 0: all columns alike. Layer 1: one has all. The experts' second matrix has seen nothing. */
TEST(by_hand) {
    const int64_t two[] = {2, 0}, none[] = {0};
    const llm_imatrix_entry e[] = {
        entry("blk.0.attn_q.weight", 1, two, (const float[]){2, 2, 2, 2}),
        entry("blk.1.attn_q.weight", 1, two, (const float[]){8, 0, 0, 0}),
        entry("blk.1.ffn_up_exps.weight", 2, two, (const float[]){2, 2, 4, 0, 9, 9, 9, 9}),
        entry("output.weight", 1, none, (const float[]){0, 0, 0, 0})};
    tensor_stats *s = stats_of(e, sizeof e / sizeof *e);
    REQUIRE(s);
    CHECK_STR(s[0].kind, "attn_q"); /* sums are alike: the lower layer is first */
    CHECK_INT(s[0].layer, 0);
    CHECK_INT(s[0].n, 4);
    near(s[0].sum, 4);
    near(s[0].sigma, 0);
    near(s[0].active, 1);
    near(s[0].entropy, 2);
    near(s[0].high, 0);
    near(s[0].cosine, NAN);
    near(stats_effective(&s[0]), 1);
    CHECK_INT(s[1].layer, 1);
    near(s[1].max, 4);
    near(s[1].min, 0);
    near(s[1].mean, 1);
    near(s[1].sigma, sqrt(3));
    near(s[1].active, 0.25);
    near(s[1].entropy, 0);
    near(s[1].high, 0.25);
    near(s[1].cosine, 0.5);
    near(stats_effective(&s[1]), 0.25);
    CHECK_STR(s[2].kind, "ffn_up_exps");
    CHECK_INT(s[2].n, 4);
    near(s[2].entropy, 1.5);
    near(s[2].cosine, NAN);
    CHECK_STR(s[3].kind, "output");
    CHECK(s[3].layer == -1 && s[3].n == 0 && stats_effective(&s[3]) == 0);
    free(s);
}
