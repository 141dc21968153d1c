/* conformance.cpu.trial_*: which kernels of panels a trial leaves. */
#include "../../backends/cpu/trial.h"

#include "kernels.h"

static cpu_kernels best, changed;
static void (*right)(float *const *y, const void *const *x, int n_cols, const void *panel,
                     int n_rows, int64_t k);

static void wrong(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                  int64_t k) {
    uint32_t bits;
    right(y, x, n_cols, panel, n_rows, k);
    memcpy(&bits, &y[n_cols - 1][n_rows - 1], sizeof bits);
    bits ^= 1;
    memcpy(&y[n_cols - 1][n_rows - 1], &bits, sizeof bits);
}

static void slow(float *const *y, const void *const *x, int n_cols, const void *panel, int n_rows,
                 int64_t k) {
    for (int i = 0; i < 50; i++)
        right(y, x, n_cols, panel, n_rows, k);
}

/* Sets `best` to this machine's kernels, and `changed` to them with another one for two types of the
 * same panel, but not for Q5_0, which has this panel, too. False: there are no panels. */
static bool tables_with(void (*tile)(float *const *, const void *const *, int, const void *, int,
                                     int64_t)) {
    uint32_t set[CPU_MAX_SETS];
    ggl_cpu_kernels_init(&best, set[ggl_cpu_features_sets(set) - 1]);
    right = best.product[GGL_IQ3_S].tile;
    changed = best;
    changed.product[GGL_IQ3_S].tile = changed.product[GGL_MXFP4].tile = tile;
    changed.product[GGL_IQ3_S].min_cols = changed.product[GGL_MXFP4].min_cols = 1;
    return CHECK(best.product[GGL_MXFP4].tile == right) && right != NULL;
}

static void check_both(const cpu_kernels *got, const cpu_kernels *want) {
    static const ggl_type types[] = {GGL_IQ3_S, GGL_MXFP4};
    for (int i = 0; i < 2; i++) {
        const cpu_product *a = &got->product[types[i]], *b = &want->product[types[i]];
        CHECK_MSG(a->tile == b->tile && a->min_cols == b->min_cols, "%s has the other kernel",
                  ggl_type_get(types[i])->name);
    }
}

TEST(trial_drops_what_has_other_bits) {
    if (!tables_with(wrong))
        SKIP("no vector kernels");
    cpu_kernels other = best, k = changed;
    other.product[GGL_IQ3_S].tile = other.product[GGL_MXFP4].tile = slow;
    const cpu_kernels want = other;
    CHECK_INT(ggl_cpu_trial(&k, &other, true), 0); /* wrong and faster */
    check_both(&k, &want);
}

TEST(trial_drops_what_is_slower) {
    if (!tables_with(slow))
        SKIP("no vector kernels");
    cpu_kernels k = changed;
    CHECK_INT(ggl_cpu_trial(&k, &best, true), 0);
    check_both(&k, &best);
}

TEST(trial_keeps_what_is_faster) {
    if (!tables_with(slow))
        SKIP("no vector kernels");
    cpu_kernels k = best;
    CHECK_INT(ggl_cpu_trial(&k, &changed, true), 2);
    check_both(&k, &best);
}

TEST(mask_takes_what_builds_on_it) {
    const uint32_t all = ~0u;
    CHECK_INT(ggl_cpu_features_mask(all, "sme"), all & ~(uint32_t)CPU_SME);
    CHECK_INT(ggl_cpu_features_mask(all, "smmla, bf16"), all & ~(uint32_t)(CPU_SMMLA | CPU_BF16));
    CHECK_INT(ggl_cpu_features_mask(all, "i8mm"),
              all & ~(uint32_t)(CPU_I8MM | CPU_SMMLA | CPU_SME));
    CHECK_INT(ggl_cpu_features_mask(all, "sve"), all & ~(uint32_t)CPU_SVE);
    CHECK_INT(ggl_cpu_features_mask(all, "avx512vnni"),
              all & ~(uint32_t)(CPU_AVX512VNNI | CPU_AMX));
}
