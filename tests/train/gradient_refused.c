/* Gradients that ggl_graph_grad refuses, and values that have none. */
#include "ggl/internal/gradient.h"
#include "ggl/compose.h"
#include "gradient_test.h"

TEST(gradients_that_cannot_be) {
    static float data[16];
    const int64_t n = 4;
    for (int k = 0; k < 6; k++) {
        static const char *const words[] = {
            "by the weight 'row', which it reads without", "gradients of gradients",
            "a gradient is asked for by <const>",          "gradients are asked for of <input>",
            "cannot be added to a value of [4]",           "'four', a weight of four dimensions"};
        ggl_graph *g = ggl_graph_new(NULL);
        ggl_graph_input(g, "slot", GGL_I32, 0, NULL, true);
        ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true), *d,
                   *w = ggl_graph_weight(g, "w", GGL_F32, 2, (int64_t[]){4, 4}, data),
                   *row = ggl_graph_weight(g, "row", GGL_F32, 1, &n, data), *by = x,
                   *of = ggl_unary(g, GGL_OP_EXP, x);
        if (k == 0) {
            ggl_tensor **param = ggl_body_begin(g, &x, 1);
            ggl_tensor *kept = with(g, GGL_OP_STATE, NULL, 1, (double[]){4});
            REQUIRE(param);
            kept = ggl_binary(g, GGL_OP_ADD, kept, ggl_binary(g, GGL_OP_MUL, param[0], row));
            of = ggl_body_end(g, NULL, kept, NULL, 0);
            by = row;
        }
        if (k == 1)
            of = ggl_binary(g, GGL_OP_LINEAR_BACK, x, w);
        if (k == 2)
            by = ggl_graph_number(g, 1);
        if (k == 3)
            of = x;
        if (k == 4) {
            of = ggl_linear(g, x, w, NULL);
            by = w;
        }
        if (k == 5)
            by = ggl_graph_weight(g, "four", GGL_F32, 4, (int64_t[]){4, 1, 1, 2}, data);
        const ggl_grad_params p = {.size = sizeof p, .into = k == 4 ? &row : NULL};
        CHECK(!ggl_graph_grad(g, of, &by, 1, &p, &d));
        refused(g, words[k]);
    }
}

/* What does not depend on a value has no gradient by it. */
TEST(no_gradient) {
    static float data[4];
    const int64_t n = 4;
    ggl_graph *g = ggl_graph_new(NULL);
    ggl_tensor *x = ggl_graph_input(g, "x", GGL_F32, 1, &n, true),
               *w = ggl_graph_weight(g, "w", GGL_F32, 1, &n, data),
               *flat = ggl_unary(g, GGL_OP_FLOOR, ggl_binary(g, GGL_OP_MUL, x, w)),
               *y = ggl_binary(g, GGL_OP_MUL, x, flat), *d[2];
    CHECK(ggl_graph_grad(g, y, (ggl_tensor *[]){w, x}, 2, NULL, d));
    CHECK(!d[0] && d[1] && ggl_is_batched(d[1]));
    ggl_graph_free(g);
}
