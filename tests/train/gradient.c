/* ggl_graph_grad: each rule against differences, both computed by the reference backend in double, in one graph: the loss at
 * x + h v and at x - h v, for a random direction v, and the product of the gradient with v. Then the same gradients on the CPU,
 * with several threads. */
#include "gradient_problem.h"

/* --- functions -------------------------------------------------------------------------------- */

#define UNARY(name, OP_)                                                                           \
    F(name) {                                                                                      \
        return ggl_unary(g, GGL_OP_##OP_, x[0]);                                                   \
    }
#define BINARY(name, OP_)                                                                          \
    F(name) {                                                                                      \
        return ggl_binary(g, GGL_OP_##OP_, x[0], x[1]);                                            \
    }
UNARY(f_exp, EXP)
UNARY(f_log, LOG)
UNARY(f_sqrt, SQRT)
UNARY(f_abs, ABS)
UNARY(f_tanh, TANH)
UNARY(f_erf, ERF)
UNARY(f_sigmoid, SIGMOID)
UNARY(f_sin, SIN)
UNARY(f_cos, COS)
BINARY(f_add, ADD)
BINARY(f_sub, SUB)
BINARY(f_mul, MUL)
BINARY(f_div, DIV)
BINARY(f_pow, POW)
BINARY(f_mod, MOD)
BINARY(f_min, MIN)
BINARY(f_max, MAX)
BINARY(f_pick, PICK)
F(f_where) {
    return ggl_graph_op(
        g, GGL_OP_WHERE,
        (ggl_tensor *[]){ggl_binary(g, GGL_OP_GT, x[2], ggl_graph_number(g, 0)), x[0], x[1]}, 3,
        NULL, 0);
}
F(f_steps) { /* parts of no consequence */
    ggl_tensor *c = ggl_binary(g, GGL_OP_LT, x[0], x[1]);
    c = ggl_binary(
        g, GGL_OP_ADD, c,
        ggl_unary(g, GGL_OP_FLOOR, ggl_binary(g, GGL_OP_MUL, x[0], ggl_graph_number(g, 3))));
    c = ggl_binary(g, GGL_OP_ADD, c, ggl_unary(g, GGL_OP_RANK, x[0]));
    return ggl_binary(g, GGL_OP_MUL, c, x[1]);
}
F(f_sum0) {
    return with(g, GGL_OP_SUM, x[0], 1, (double[]){0});
}
F(f_sum1) {
    return with(g, GGL_OP_SUM, x[0], 1, (double[]){1});
}
F(f_sum2) {
    return with(g, GGL_OP_SUM, x[0], 1, (double[]){2});
}
F(f_amax0) {
    return with(g, GGL_OP_AMAX, x[0], 1, (double[]){0});
}
F(f_amax1) {
    return with(g, GGL_OP_AMAX, x[0], 1, (double[]){1});
}
F(f_reshape) {
    return ggl_unary(g, GGL_OP_EXP, ggl_reshape(g, x[0], 2, (int64_t[]){2, 12}));
}
F(f_transpose) {
    return ggl_unary(g, GGL_OP_EXP, with(g, GGL_OP_TRANSPOSE, x[0], 2, (double[]){0, 2}));
}
F(f_transpose1) {
    return ggl_unary(g, GGL_OP_EXP, with(g, GGL_OP_TRANSPOSE, x[0], 2, (double[]){0, 1}));
}
F(f_repeat) {
    return ggl_unary(g, GGL_OP_EXP, with(g, GGL_OP_REPEAT, x[0], 3, (double[]){4, 3, 2}));
}
F(f_split) { /* two parts that overlap, and one apart, along two dimensions */
    ggl_tensor *a = with(g, GGL_OP_SPLIT, x[0], 3, (double[]){0, 1, 3});
    ggl_tensor *b = with(g, GGL_OP_SPLIT, x[0], 3, (double[]){0, 2, 3});
    ggl_tensor *c = with(g, GGL_OP_SPLIT, x[0], 3, (double[]){1, 1, 2});
    ggl_tensor *y = ggl_binary(g, GGL_OP_MUL, a, b);
    y = ggl_binary(g, GGL_OP_ADD, sum_all(g, y), sum_all(g, ggl_unary(g, GGL_OP_EXP, c)));
    return ggl_binary(g, GGL_OP_MUL, x[0], y);
}
F(f_concat) {
    const double dim = 1;
    return ggl_unary(g, GGL_OP_EXP, ggl_graph_op(g, GGL_OP_CONCAT, x, 2, &dim, 1));
}
F(f_self) { /* a value with several readers, and one that is its own partner */
    ggl_tensor *y = ggl_binary(g, GGL_OP_MUL, x[0], x[0]);
    return ggl_binary(g, GGL_OP_DIV, ggl_binary(g, GGL_OP_ADD, y, ggl_unary(g, GGL_OP_SIN, x[0])),
                      ggl_unary(g, GGL_OP_EXP, y));
}
F(f_linear) {
    return ggl_linear(g, x[0], x[1], x[2]);
}
F(f_linear_twice) { /* one matrix, two readers, as with embeddings that are outputs, too */
    ggl_tensor *y = ggl_linear(g, x[0], x[1], NULL);
    return ggl_linear(g, ggl_unary(g, GGL_OP_TANH, y), x[1], NULL);
}
F(f_chosen) { /* x, stack, index, bias */
    ggl_tensor *w = ggl_binary(g, GGL_OP_PICK, x[1], x[2]);
    return ggl_linear(g, x[0], w, NULL);
}
F(f_of_part) { /* a product with a part of a weight */
    return ggl_linear(g, x[0], with(g, GGL_OP_SPLIT, x[1], 3, (double[]){1, 2, 3}), NULL);
}
F(f_attend) {
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, NULL, NULL, NULL, NULL);
}
F(f_attend_window) {
    return attend(g, x[0], x[1], x[2], 0.7, 2, NAN, NULL, NULL, NULL, NULL);
}
F(f_attend_cap) {
    return attend(g, x[0], x[1], x[2], 1.5, NAN, 1.2, NULL, NULL, NULL, NULL);
}
F(f_attend_sinks) {
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, x[3], NULL, NULL, NULL);
}
F(f_attend_part) { /* values are a part of the keys */
    ggl_tensor *v = with(g, GGL_OP_SPLIT, x[1], 3, (double[]){0, 0, 3});
    return attend(g, x[0], x[1], v, NAN, NAN, NAN, NULL, NULL, NULL, NULL);
}
F(f_attend_far) { /* what depends on distances */
    ggl_tensor *alibi = ggl_graph_const(g, 1, (int64_t[]){4}, (double[]){0.1, 0.2, 0.5, 1});
    ggl_tensor *bias = ggl_graph_const(g, 2, (int64_t[]){3, 4},
                                       (double[]){1, 0, -1, 0.5, 0.2, 0, -1, 1, 0, 0.3, 0.6, 0.9});
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, NULL, alibi, bias, NULL);
}
F(f_attend_bias) { /* bias, sinks; the outermost distances count for all beyond */
    return attend(g, x[0], x[1], x[2], NAN, NAN, 1.5, x[4], NULL, x[3], NULL);
}
F(f_attend_within) {
    ggl_tensor *first = ggl_unary(g, GGL_OP_CAST, ggl_graph_find_input(g, "pos"));
    first =
        ggl_reshape(g, ggl_binary(g, GGL_OP_SUB, first, ggl_graph_number(g, 1)), 1, (int64_t[]){1});
    ggl_tensor *end = ggl_binary(g, GGL_OP_ADD, first, ggl_graph_number(g, 2));
    const double dim = 0;
    ggl_tensor *within = ggl_graph_op(g, GGL_OP_CONCAT, (ggl_tensor *[]){first, end}, 2, &dim, 1);
    return attend(g, x[0], x[1], x[2], NAN, NAN, NAN, NULL, NULL, NULL, within);
}
/* With rows of relative positions, of which distances share some, in no order; the outermost distances count for all beyond. x: q, k, v,
 * then rel_k, or NULL, and rel_q, or NULL. */
static ggl_tensor *relative(ggl_graph *g, ggl_tensor **x, ggl_tensor *rel_k, ggl_tensor *rel_q,
                            double scale, double cap, ggl_tensor *sinks, ggl_tensor *bias) {
    ggl_tensor *kv = ggl_binary(g, GGL_OP_CACHE, x[1], x[2]),
               *row = ggl_graph_const(g, 1, (int64_t[]){5}, (double[]){9, 0.5, 2, 3, -1});
    ggl_tensor *src[8] = {x[0], kv, sinks, NULL, bias, rel_k, rel_q, row};
    return ggl_graph_op(g, GGL_OP_ATTEND, src, 8, (double[]){scale, NAN, cap}, 3);
}
F(f_attend_relative) {
    return relative(g, x, x[3], x[4], 0.25, NAN, NULL, NULL);
}
F(f_attend_relative_both) { /* with a scale, a cap, sinks; the table that both have */
    return relative(g, x, x[3], x[3], 0.8, 1.5, x[4], NULL);
}
F(f_attend_relative_bias) {
    return relative(g, x, x[3], x[3], 0.2, NAN, NULL, x[4]);
}
F(f_attend_rel_k) {
    return relative(g, x, x[3], NULL, NAN, NAN, NULL, NULL);
}
F(f_attend_rel_q) {
    return relative(g, x, NULL, x[3], 0.6, NAN, NULL, NULL);
}
F(f_attend_made) { /* tables made of what makes keys and queries, too */
    ggl_tensor *q = ggl_linear(g, x[0], x[2], NULL), *k = ggl_linear(g, x[0], x[3], NULL);
    ggl_tensor *rel_k = ggl_linear(g, x[1], x[3], NULL), *rel_q = ggl_linear(g, x[1], x[2], NULL);
    q = ggl_reshape(g, q, 2, (int64_t[]){3, 2});
    k = ggl_reshape(g, k, 2, (int64_t[]){3, 2});
    rel_k = with(g, GGL_OP_TRANSPOSE, ggl_reshape(g, rel_k, 3, (int64_t[]){3, 2, 5}), 2,
                 (double[]){1, 2});
    rel_q = with(g, GGL_OP_TRANSPOSE, ggl_reshape(g, rel_q, 3, (int64_t[]){3, 2, 5}), 2,
                 (double[]){1, 2});
    return relative(g, (ggl_tensor *[]){q, k, k}, rel_k, rel_q, NAN, NAN, NULL, NULL);
}
static ggl_tensor *freqs(ggl_graph *g) {
    const int64_t n = 2;
    return ggl_graph_const(g, 1, &n, (double[]){1.1, 0.3});
}
F(f_rope_half) {
    return ggl_graph_op(g, GGL_OP_ROPE_HALF, (ggl_tensor *[]){x[0], freqs(g)}, 2, (double[]){1.3},
                        1);
}
F(f_rope_pair) {
    return ggl_graph_op(g, GGL_OP_ROPE_PAIR, (ggl_tensor *[]){x[0], freqs(g)}, 2, NULL, 0);
}
F(f_cast) {
    return ggl_binary(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_CAST, x[0]),
                      ggl_unary(g, GGL_OP_CAST, x[1]));
}
F(f_softmax) {
    return ggl_softmax(g, x[0]);
}
F(f_rms) {
    return ggl_rms(g, x[0], 1e-3);
}
F(f_center) {
    return ggl_center(g, x[0]);
}
F(f_silu) {
    return ggl_silu(g, x[0]);
}
F(f_gelu) {
    return ggl_gelu(g, x[0]);
}
F(f_gelu_erf) {
    return ggl_gelu_erf(g, x[0]);
}
F(f_gelu_quick) {
    return ggl_gelu_quick(g, x[0]);
}
F(f_softplus) {
    return ggl_softplus(g, x[0]);
}
F(f_relu) {
    return ggl_relu(g, x[0]);
}
F(f_l2) {
    return ggl_l2(g, x[0], 1e-3);
}
F(f_normalised) {
    return ggl_normalised(g, x[0]);
}
F(f_sum_squares) {
    return ggl_sum_squares(g, x[0]);
}
F(f_weighted) {
    return ggl_weighted(g, x[0], x[1]);
}
F(f_layer_norm) {
    return ggl_layer_norm(g, x[0], x[1], x[2], 1e-3);
}
F(f_cross_entropy) {
    return ggl_cross_entropy(g, x[0], x[1]);
}
F(f_log_sum_exp) { /* is a part of cross_entropy */
    return ggl_binary(g, GGL_OP_ADD, ggl_cross_entropy(g, x[0], x[1]),
                      ggl_binary(g, GGL_OP_PICK, x[0], x[1]));
}
F(f_route) { /* a mixture: shares of the best experts, which are chosen by topk */
    ggl_tensor *p = ggl_softmax(g, ggl_linear(g, x[0], x[1], NULL));
    ggl_tensor *best = with(g, GGL_OP_TOPK, p, 1, (double[]){2});
    ggl_tensor *share = ggl_normalised(g, ggl_binary(g, GGL_OP_PICK, p, best));
    ggl_tensor *up = ggl_linear(g, x[0], ggl_binary(g, GGL_OP_PICK, x[2], best), NULL);
    ggl_tensor *down = ggl_linear(g, ggl_silu(g, up), ggl_binary(g, GGL_OP_PICK, x[3], best), NULL);
    return ggl_weighted(g, down, share);
}
F(f_ngrams) { /* rows that hashes choose */
    static const double number[] = {5, 9}, digits[] = {7, 0, 0, 0, 3, 0, 0, 0};
    const int64_t size[] = {4, 2};
    ggl_tensor *by = ggl_graph_const(g, 2, size, digits),
               *src[] = {ggl_graph_const(g, 1, &size[1], number), by, by, by};
    return ggl_unary(g, GGL_OP_EXP,
                     ggl_binary(g, GGL_OP_PICK, x[0],
                                ggl_graph_op(g, GGL_OP_NGRAMS, src, 4, (double[]){12}, 1)));
}
F(f_recent) {
    return ggl_unary(g, GGL_OP_EXP, ggl_recent(g, x[0], 3));
}
F(f_short_conv) {
    return ggl_short_conv(g, x[0], x[1]);
}
F(f_delta) {
    return ggl_gated_delta_rule(g, x[0], x[1], x[2], x[3], x[4]);
}
F(f_scan) {
    return ggl_ssm_scan(g, x[0], x[1], x[2], x[3], x[4]);
}
F(f_gla) {
    return ggl_gated_linear_attention(g, x[0], x[1], x[2], x[3]);
}
F(f_wkv6) {
    return ggl_wkv6(g, x[0], x[1], x[2], x[3], x[4]);
}
F(f_wkv7) {
    return ggl_wkv7(g, x[0], x[1], x[2], x[3], x[4], x[5]);
}
F(f_own) { /* a composite without a name, which reads a value from outside and a leaf */
    ggl_tensor *y = ggl_unary(g, GGL_OP_TANH, x[0]);
    ggl_tensor **p = ggl_body_begin(g, &x[0], 1);
    if (!p)
        return NULL;
    ggl_tensor *z = ggl_binary(g, GGL_OP_MUL, p[0], y);
    z = ggl_binary(g, GGL_OP_ADD, ggl_silu(g, z), x[1]);
    return ggl_body_end(g, NULL, z, NULL, 0);
}

static const problem problems[] = {
    {"exp", f_exp, {B(5)}},
    {"log", f_log, {ABOVE(0.3, 5)}},
    {"sqrt", f_sqrt, {ABOVE(0.3, 5)}},
    {"abs", f_abs, {B(5)}},
    {"tanh", f_tanh, {B(3, 2)}},
    {"erf", f_erf, {B(5)}},
    {"sigmoid", f_sigmoid, {B(5)}},
    {"sin", f_sin, {B(5)}},
    {"cos", f_cos, {B(5)}},
    {"+", f_add, {B(5), W(5)}},
    {"+ of rows", f_add, {B(5, 3), B(5)}},
    {"-", f_sub, {B(1, 3), W(4, 3)}},
    {"*", f_mul, {B(4, 3), W(4)}},
    {"* of all", f_mul, {W(4, 1, 2), B(1, 3)}},
    {"/", f_div, {B(4), ABOVE(0.5, 4)}},
    {"**", f_pow, {ABOVE(0.5, 4), B(4)}},
    {"%", f_mod, {ABOVE(9, 4), ABOVE(5.9, 4)}},
    {"min", f_min, {B(7), W(7)}},
    {"max", f_max, {B(7), B(7)}},
    {"where", f_where, {B(7), W(7), B(7)}},
    {"steps", f_steps, {B(4), B(4)}},
    {"sum", f_sum0, {B(5, 3)}},
    {"sum of a vector", f_sum0, {B(5)}},
    {"sum 1", f_sum1, {B(5, 3)}},
    {"sum 1 of three", f_sum1, {B(2, 3, 2)}},
    {"sum 2", f_sum2, {B(2, 3, 2)}},
    {"amax", f_amax0, {B(5, 3)}},
    {"amax 1", f_amax1, {B(5, 3)}},
    {"reshape", f_reshape, {B(4, 3, 2)}},
    {"transpose", f_transpose, {B(4, 3, 2)}},
    {"transpose of a vector", f_transpose1, {B(4)}},
    {"repeat", f_repeat, {B(4, 1, 2)}},
    {"repeat of a vector", f_repeat, {W(4)}},
    {"split", f_split, {B(6, 4)}},
    {"split of a weight", f_split, {W(6, 4)}},
    {"concat", f_concat, {B(3, 2), B(3, 4)}},
    {"concat with a weight", f_concat, {W(3, 2), B(3, 4)}},
    {"pick of rows", f_pick, {W(4, 5), INDEX(5)}},
    {"pick of several rows", f_pick, {W(4, 5), INDEX(5, 3)}},
    {"pick of matrices", f_pick, {W(4, 2, 5), INDEX(5, 3)}},
    {"pick of values", f_pick, {B(5), INDEX(5, 3)}},
    {"pick of one value", f_pick, {B(5), INDEX(5)}},
    {"pick of rows of values", f_pick, {B(4, 5), INDEX(5, 3)}},
    {"readers", f_self, {B(5)}},
    {"linear", f_linear, {B(70), W(70, 9), W(9)}},
    {"linear of columns", f_linear, {B(8, 3), W(8, 5), B(5)}},
    {"linear of columns in two dimensions", f_linear, {B(8, 3, 2), W(8, 5), W(5, 3)}},
    {"linear by heads", f_linear, {B(8, 3), W(8, 5, 3), W(5, 3)}},
    {"linear by heads, one column", f_linear, {B(8), W(8, 5, 3), W(5)}},
    {"linear by heads, two dimensions", f_linear, {B(8, 3, 2), W(8, 5, 3), W(5)}},
    {"linear with matrices of each", f_linear, {B(8, 3), B(8, 5, 3), W(5)}},
    {"linear with a matrix of each", f_linear, {B(8, 3), B(8, 5), W(5)}},
    {"linear of what is the same for all", f_linear, {W(8), W(8, 5), B(5)}},
    {"linear twice", f_linear_twice, {B(6), W(6, 6)}},
    {"linear of a part", f_of_part, {B(6), W(6, 7)}},
    {"chosen matrix", f_chosen, {B(8), W(8, 5, 4), INDEX(4)}},
    {"chosen matrices", f_chosen, {B(8), W(8, 5, 4), INDEX(4, 3)}},
    {"chosen matrices, a column each", f_chosen, {B(8, 3), W(8, 5, 4), INDEX(4, 3)}},
    {"rope_half", f_rope_half, {B(5, 2)}},
    {"rope_pair", f_rope_pair, {B(4, 2)}},
    {"cast", f_cast, {B(5), INDEX(5)}},
    {"softmax", f_softmax, {B(5, 2)}},
    {"log_sum_exp", f_log_sum_exp, {B(9), INDEX(9)}},
    {"rms", f_rms, {B(5, 2)}},
    {"center", f_center, {B(5, 2)}},
    {"silu", f_silu, {B(5)}},
    {"gelu", f_gelu, {B(5)}},
    {"gelu_erf", f_gelu_erf, {B(5)}},
    {"gelu_quick", f_gelu_quick, {B(5)}},
    {"softplus", f_softplus, {B(5)}},
    {"relu", f_relu, {B(5)}},
    {"l2", f_l2, {B(5, 2)}},
    {"normalised", f_normalised, {ABOVE(0.5, 5)}},
    {"sum_squares", f_sum_squares, {B(5, 2)}},
    {"weighted", f_weighted, {B(5, 3), B(3)}},
    {"layer_norm", f_layer_norm, {B(5, 2), W(5), W(5)}},
    {"cross_entropy", f_cross_entropy, {B(9), INDEX(9)}},
    {"attend", f_attend, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend of one head", f_attend, {B(5), B(5), B(3)}},
    {"attend with a window", f_attend_window, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend with a cap", f_attend_cap, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend with sinks", f_attend_sinks, {B(5, 4), B(5, 2), B(3, 2), W(4)}},
    {"attend with values of keys", f_attend_part, {B(5, 4), B(5, 2)}},
    {"attend with distances", f_attend_far, {B(5, 4), B(5, 4), B(3, 4)}},
    {"attend with biases", f_attend_bias, {B(5, 4), B(5, 2), B(3, 2), W(3, 4)}},
    {"attend with biases and sinks", f_attend_bias, {B(5, 4), B(5, 4), B(3, 4), W(5, 4), W(4)}},
    {"attend in whole texts with biases", f_attend_bias, {B(5, 4), B(5, 2), B(3, 2), W(3, 4)}},
    {"attend within", f_attend_within, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend in whole texts", f_attend, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend in whole texts with a window", f_attend_window, {B(5, 4), B(5, 2), B(3, 2)}},
    {"attend with relative positions",
     f_attend_relative,
     {B(5, 4), B(5, 4), B(3, 4), W(5, 5, 4), W(5, 5, 4)}},
    {"attend with relative positions, one table for all heads",
     f_attend_relative,
     {B(5, 4), B(5, 4), B(3, 4), W(5, 5), W(5, 5, 4)}},
    {"attend with relative positions of groups",
     f_attend_relative,
     {B(4, 6), B(4, 2), B(3, 2), W(4, 5, 2), W(4, 5)}},
    {"attend with relative positions of one head",
     f_attend_relative,
     {B(6), B(6), B(4), W(6, 5), W(6, 5, 1)}},
    {"attend with relative positions, a cap and sinks",
     f_attend_relative_both,
     {B(5, 4), B(5, 2), B(3, 2), W(5, 4, 2), W(4)}},
    {"attend with relative positions and biases",
     f_attend_relative_bias,
     {B(6, 4), B(6, 2), B(4, 2), W(6, 7, 2), W(3, 4)}},
    {"attend with relative positions of queries",
     f_attend_rel_k,
     {B(5, 4), B(5, 2), B(3, 2), W(5, 5, 2)}},
    {"attend with relative positions of keys",
     f_attend_rel_q,
     {B(5, 4), B(5, 2), B(3, 2), W(5, 5, 2)}},
    {"attend in whole texts with relative positions",
     f_attend_relative,
     {B(5, 4), B(5, 4), B(3, 4), W(5, 5, 4), W(5, 5, 4)}},
    {"attend in whole texts with made relative positions",
     f_attend_made,
     {B(7), W(7, 5), W(7, 6), W(7, 6)}},
    {"recurrent: recent", f_recent, {B(4)}},
    {"recurrent: short_conv", f_short_conv, {B(4), W(3, 4)}},
    {"recurrent: gated_delta_rule", f_delta, {B(4, 1), B(4, 1), B(3, 2), B(2), B(2)}},
    {"recurrent: gated_delta_rule with decays",
     f_delta,
     {B(4, 2), B(4, 2), B(3, 2), B(4, 2), B(2)}},
    {"recurrent: ssm_scan", f_scan, {B(3, 2), B(2), W(2), B(4, 1), B(4, 1)}},
    {"recurrent: ssm_scan with decays", f_scan, {B(3, 2), B(2), W(4, 2), B(4, 2), B(4, 2)}},
    {"recurrent: gated_linear_attention", f_gla, {B(4, 2), B(4, 2), B(3, 2), B(4, 2)}},
    {"recurrent: wkv6", f_wkv6, {B(4, 2), B(4, 2), B(4, 2), B(4, 2), W(4, 2)}},
    {"recurrent: wkv7", f_wkv7, {B(4, 2), B(4, 2), B(4, 2), B(4, 2), B(4, 2), B(4, 2)}},
    {"ngrams", f_ngrams, {W(4, 12)}},
    {"mixture", f_route, {B(6), W(6, 4), W(6, 5, 4), W(5, 6, 4)}},
    {"own composite", f_own, {B(5), W(5)}},
};
enum { N_PROBLEMS = sizeof problems / sizeof *problems };

TEST(rules_against_differences) {
    ggl_backend *reference = opened("reference", 1, NULL);
    REQUIRE(reference);
    for (int i = 0; i < N_PROBLEMS; i++)
        for (int k = 0; k < n_leaves(&problems[i]); k++)
            if (!problems[i].x[k].index && !(problems[i].f == f_where && k == 2) &&
                !(problems[i].f == f_steps && k == 0))
                check_leaf(&problems[i], k, reference);
    ggl_backend_close(reference);
}

TEST(rules_on_the_cpu) {
    ggl_backend *reference = opened("reference", 1, NULL);
    ggl_backend *cpu[3] = {opened("cpu", 1, NULL), opened("cpu", 2, NULL), opened("cpu", 1, "all")};
    REQUIRE(reference && cpu[0] && cpu[1] && cpu[2]);
    for (int i = 0; i < N_PROBLEMS; i++)
        check_on_cpu(&problems[i], reference, cpu, 3);
    for (int k = 0; k < 3; k++)
        ggl_backend_close(cpu[k]);
    ggl_backend_close(reference);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Each operator has a row, and each rule of an operator or composite is among the problems. */
TEST(every_operator_has_a_row) {
    enum { NONE, RULE, OTHER };
    static const char row[GGL_OP_COUNT] = {
#define GRADIENT(ID, text)        [GGL_OP_##ID] = RULE,
#define GRADIENT_BY(ID, function) [GGL_OP_##ID] = RULE,
#define FLAT(ID)                  [GGL_OP_##ID] = OTHER,
#define NO_GRADIENT(ID, why)      [GGL_OP_##ID] = OTHER,
#include "gradient/gradients.def"
    };
    static const char *const composites[] = {
#define GRADIENT_OF(name, signature, text) name,
#include "gradient/gradients.def"
    };
    bool used[GGL_OP_COUNT] = {false};
    for (int i = 0; i < N_PROBLEMS; i++) {
        built b;
        build_leaves(&b, &problems[i], false);
        problems[i].f(b.g, b.x);
        for (int k = 0; k < ggl_graph_n_nodes(b.g); k++) {
            const ggl_tensor *t = ggl_graph_node(b.g, k);
            used[t->op] = true;
            for (int j = 0; t->body && j < t->body->n_node; j++)
                used[t->body->node[j]->op] = true;
        }
        built_free(&b);
    }
    for (int op = GGL_OP_PARAM + 1; op < GGL_OP_COUNT; op++) {
        const char *name = ggl_op_get((ggl_op)op).name;
        CHECK_MSG(row[op] != NONE || op == GGL_OP_CALL, "%s has no row in gradient/gradients.def",
                  name);
        CHECK_MSG(row[op] != RULE || used[op], "no problem of this test has the rule of %s", name);
    }
    for (size_t k = 0; k < sizeof composites / sizeof *composites; k++) {
        bool has = false;
        for (int i = 0; i < N_PROBLEMS; i++)
            has |= strcmp(problems[i].name, composites[k]) == 0;
        CHECK_MSG(has, "no problem of this test is named %s", composites[k]);
    }
}
