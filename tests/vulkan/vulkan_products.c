/* vulkan.products: products, rotations, attention and recurrences against the reference. Weights are
 * decoded and activations not rounded, so that products of all types are held to the bound of floats. */
#include "conform_case.h"
#include "vulkan_test.h"

static void check_variant(const conform_case *info, int v, ggl_backend *b) {
    conform_case strict = *info;
    conform_result r;
    strict.bound = info->bound > 0 ? 1e-5 : 0;
    strict.bound_bf16 = strict.bound_quantized = 0;
    conform_outcome o = conform_check(&strict, v, b, &r);
    CHECK_MSG(o == CONFORM_RIGHT, "%s, %s: %s", info->name, r.form_text, r.text);
}

/* Variants first, first + step, .. */
static void check_case(const conform_case *info, int first, int step) {
    ggl_backend *b = vulkan_open(NULL);
    for (int v = first; b && v < conform_n_variants(info); v += step)
        check_variant(info, v, b);
    ggl_backend_close(b);
}

static void check_kind(const conform_kind *k) {
    for (int i = 0; i < k->n_cases; i++)
        check_case(&k->cases[i], 0, 1);
}

TEST(linear) {
    check_kind(&conform_products);
}
TEST(rope_and_attend) {
    check_kind(&conform_attention);
}
TEST(attend_kept) {
    check_kind(&conform_kept);
}
TEST(attend_spans) {
    check_kind(&conform_spans);
}
TEST(recurrences) {
    check_kind(&conform_recurrences);
}
