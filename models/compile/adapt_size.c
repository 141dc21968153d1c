/* Magnitudes (DoRA; Liu et al., 2024). A pair may have a number for each row of its weight, the length of the changed row:
 *
 *     W' = magnitude * (W + D) / |W + D|,     D = scale * rows * columns,     |..|: the length of each row
 *
 * So the changed product is multiplied by magnitude / |W + D|, a number for each of its results. W + D is never made; with w and b, a row of
 * W and of `rows`,
 *
 *     |w + d|^2 = |w|^2 + 2 scale (columns w) b + scale^2 b (columns columns^T) b.
 *
 * That takes the time of as many tokens as the pair has ranks. A session computes it once, as a constant (ggl/internal/fold.h); where
 * pairs learn, each run does, and gradients take the lengths for constants, as the authors do (4.3). */
#include "adapt.h"
#include "ggl/compose.h"

static ggl_tensor *transposed(ggl_graph *g, ggl_tensor *x, int a, int b) {
    return ggl_graph_op(g, GGL_OP_TRANSPOSE, &x, 1, (double[]){a, b}, 2);
}

static ggl_tensor *times(ggl_graph *g, ggl_tensor *x, double number) {
    return ggl_binary(g, GGL_OP_MUL, x, ggl_graph_number(g, number));
}

/* 2 w d + |d|^2 of each row: [1, out], or of a stack [1, out, n]. w: [in, out] or [in, out, n]; a: [in, rank], of a stack maybe
 * [in, rank, n]; b: [rank, out] or [rank, out, n]. */
static ggl_tensor *increase(ggl_graph *g, ggl_tensor *w, ggl_tensor *a, ggl_tensor *b,
                            double scale) {
    const bool stack = w->n_dims == 3;
    ggl_tensor *vectors = a; /* the rows of a, as vectors of which products are computed */
    if (stack && a->n_dims == 2)
        vectors = ggl_reshape(g, a, 3, (int64_t[]){a->ne[0], 1, a->ne[1]});
    else if (stack)
        vectors = transposed(g, a, 1, 2);
    ggl_tensor *wa = transposed(g, ggl_linear(g, vectors, w, NULL), 0, stack ? 2 : 1),
               *aa = ggl_linear(g, vectors, a, NULL); /* symmetric */
    aa = stack ? transposed(g, aa, 1, 2) : aa;
    b = stack ? transposed(g, b, 1, 2) : b; /* [rank, n, out], as all others */
    ggl_tensor *all = ggl_binary(g, GGL_OP_ADD, times(g, wa, 2 * scale),
                                 times(g, ggl_linear(g, b, aa, NULL), scale * scale));
    all = ggl_unary(g, GGL_OP_SUM, ggl_binary(g, GGL_OP_MUL, b, all));
    return stack ? transposed(g, all, 1, 2) : all;
}

/* |W + D|, as one call, so that what it is made of is gone when it ends. Rows of zeros stay zeros: they are divided by 1e-15. */
static ggl_tensor *lengths(ggl_graph *g, const arch_change *c) {
    ggl_tensor *src[4] = {ggl_sum_squares(g, c->w), c->w, c->columns, c->rows}, **p;
    if (!src[0] || !(p = ggl_body_begin(g, src, 4)))
        return NULL;
    ggl_tensor *squares = ggl_binary(g, GGL_OP_ADD, p[0], increase(g, p[1], p[2], p[3], c->scale));
    squares = ggl_binary(g, GGL_OP_MAX, squares, ggl_graph_number(g, 1e-30));
    return ggl_body_end(g, "adapted_norms", ggl_unary(g, GGL_OP_SQRT, squares), &c->scale, 1);
}

ggl_tensor *llm_arch_adapt_size(arch_eval *ev, arch_place p, arch_change *c) {
    if (c->size)
        return c->size;
    ggl_tensor *src[2] = {c->magnitude, NULL};
    const double num[2] = {(double)c->w->ne[1], (double)c->w->ne[2]};
    for (int k = 0; k < 2; k++) {
        if (!src[k] && !(src[k] = lengths(ev->g, c)))
            return llm_arch_graph_ok(ev, p), NULL;
        src[k] = llm_arch_plain_node(ev, p, GGL_OP_RESHAPE, &src[k], 1, num, c->w->n_dims - 1);
        if (!src[k])
            return NULL;
    }
    return c->size = llm_arch_plain_node(ev, p, GGL_OP_DIV, src, 2, NULL, 0);
}
