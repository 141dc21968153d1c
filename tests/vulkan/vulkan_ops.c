/* vulkan.ops: every operator and composite that the backend has, against the reference. */
#include "conform_case.h"
#include "vulkan_test.h"

static void check_kind(const conform_kind *k) {
    conform_result r;
    ggl_backend *b = vulkan_open(NULL);
    for (int i = 0; b && i < k->n_cases; i++) {
        const conform_case *info = &k->cases[i];
        for (int v = 0; v < conform_n_variants(info); v++) {
            conform_outcome o = conform_check(info, v, b, &r);
            CHECK_MSG(o == CONFORM_RIGHT || o == CONFORM_REFUSED, "%s, %s: %s", info->name,
                      r.form_text, r.text);
        }
    }
    ggl_backend_close(b);
}

TEST(elementwise) {
    check_kind(&conform_elementwise);
}
TEST(along_rows) {
    check_kind(&conform_rows);
}
TEST(moves) {
    check_kind(&conform_moves);
}
TEST(composites) {
    check_kind(&conform_composites);
}
