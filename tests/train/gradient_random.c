/* Gradients of random compositions of functions, in the same two ways as those of each rule. */
#include "gradient_problem.h"

static uint64_t composition; /* the seed of the one that f_random makes */
static uint64_t composing;
static int choose(int n) {
    composing = composing * 6364136223846793005u + 1442695040888963407u;
    return (int)((composing >> 33) % (uint64_t)n);
}

static ggl_tensor *flat(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = ggl_count(x);
    return ggl_reshape(g, x, 1, &n);
}

/* x in another shape. */
static ggl_tensor *reshaped(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = ggl_count(x), part = n % 4 == 0 ? 4 : n % 3 == 0 ? 3 : 1;
    return ggl_reshape(g, x, 2,
                       choose(2) ? (int64_t[]){part, n / part} : (int64_t[]){n / part, part});
}

/* The halves of x's rows, the second one first. */
static ggl_tensor *swapped(ggl_graph *g, ggl_tensor *x) {
    const int64_t n = x->ne[0], half = n / 2;
    const double dim = 0;
    if (half == 0)
        return x;
    ggl_tensor *b[2] = {
        with(g, GGL_OP_SPLIT, x, 3, (double[]){0, (double)half, (double)(n - half)}),
        with(g, GGL_OP_SPLIT, x, 3, (double[]){0, 0, (double)half})};
    return ggl_graph_op(g, GGL_OP_CONCAT, b, 2, &dim, 1);
}

/* A product with a matrix that is a part of the weight. */
static ggl_tensor *projected(ggl_graph *g, ggl_tensor *x, ggl_tensor *weight) {
    const int64_t n = x->ne[0], out = 2 + choose(3);
    if (n * out > ggl_count(weight))
        return ggl_unary(g, GGL_OP_SIN, x);
    ggl_tensor *w = with(
        g, GGL_OP_SPLIT, weight, 3,
        (double[]){0, (double)choose((int)(ggl_count(weight) - n * out + 1)), (double)(n * out)});
    return ggl_linear(g, x, ggl_reshape(g, w, 2, (int64_t[]){n, out}), NULL);
}

static ggl_tensor *step_of(ggl_graph *g, ggl_tensor *x, ggl_tensor *y, ggl_tensor *weight) {
    switch (choose(15)) {
    case 0:
        return ggl_unary(g, GGL_OP_TANH, x);
    case 1:
        return ggl_unary(g, GGL_OP_SIGMOID, x);
    case 2:
        return ggl_unary(g, GGL_OP_EXP, ggl_unary(g, GGL_OP_TANH, x));
    case 3:
        return ggl_softmax(g, x);
    case 4:
        return ggl_rms(g, x, 0.1);
    case 5:
        return ggl_silu(g, x);
    case 6:
        return with(g, GGL_OP_TRANSPOSE, x, 2, (double[]){0, choose(3)});
    case 7:
        return reshaped(g, x);
    case 8:
        return swapped(g, x);
    case 9: /* a row's sum beside each element */
        return ggl_binary(g, GGL_OP_MUL, x, ggl_unary(g, GGL_OP_SIN, ggl_unary(g, GGL_OP_SUM, x)));
    case 10:
        return ggl_binary(
            g, GGL_OP_DIV, x,
            ggl_binary(g, GGL_OP_ADD, ggl_binary(g, GGL_OP_MUL, x, x), ggl_graph_number(g, 2)));
    case 11:
        return projected(g, x, weight);
    case 12: { /* a part of one beside a part of the other */
        const double dim = 0;
        ggl_tensor *both[2] = {flat(g, x), flat(g, y)};
        return swapped(g, ggl_graph_op(g, GGL_OP_CONCAT, both, 2, &dim, 1));
    }
    case 13:
        return ggl_gelu(g, x);
    default: /* everything with everything's mean */
        return ggl_binary(g, choose(2) ? GGL_OP_MUL : GGL_OP_SUB, x, ggl_mean(g, flat(g, y)));
    }
}

/* Leaves: two values of each element, a row for all, and the numbers of matrices. */
F(f_random) {
    enum { STEPS = 9 };
    ggl_tensor *at[STEPS + 3] = {x[0], x[1], x[2]};
    composing = composition;
    for (int i = 3; i < STEPS + 3; i++) {
        ggl_tensor *a = at[i - 1 - choose(i < 5 ? 3 : 2)], *b = at[choose(i)];
        at[i] = step_of(g, a, b, x[3]);
        if (at[i] && at[i]->n_dims == 0)
            at[i] = ggl_reshape(g, at[i], 1, (int64_t[]){1});
        if (!at[i])
            return NULL;
        if (ggl_count(at[i]) > 200) /* not ever longer */
            at[i] = with(g, GGL_OP_SPLIT, flat(g, at[i]), 3, (double[]){0, 3, 24});
    }
    const double dim = 0;
    ggl_tensor *ends[2] = {flat(g, at[STEPS + 2]), flat(g, at[STEPS + 1])};
    ggl_tensor *y = ggl_graph_op(g, GGL_OP_CONCAT, ends, 2, &dim, 1);
    /* so that all leaves have a part in it */
    for (int k = 0; k < 4; k++)
        y = ggl_binary(g, GGL_OP_ADD, y, ggl_unary(g, GGL_OP_SIN, sum_all(g, x[k])));
    return y;
}

TEST(random_compositions) {
    static const problem p = {"a composition", f_random, {B(4, 3), B(6), W(4), W(60)}};
    ggl_backend *reference = opened("reference", 1, NULL);
    ggl_backend *cpu[2] = {opened("cpu", 1, NULL), opened("cpu", 2, NULL)};
    REQUIRE(reference && cpu[0] && cpu[1]);
    for (composition = 1; composition <= 60; composition++) {
        const int before = test_failures;
        for (int k = 0; k < 4; k++)
            check_leaf(&p, k, reference);
        check_on_cpu(&p, reference, cpu, 2);
        if (test_failures != before)
            printf("composition %d\n", (int)composition);
    }
    ggl_backend_close(reference);
    for (int k = 0; k < 2; k++)
        ggl_backend_close(cpu[k]);
}
