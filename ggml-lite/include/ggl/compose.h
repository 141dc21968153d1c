/* Composites in one call: norms, activations, softmax, attention, feed-forward parts, recurrences.
 *
 *     ggl_tensor *h = ggl_layer_norm(g, x, w, b, 1e-5);               // x [n], w [n], b [n]
 *     h = ggl_silu(g, ggl_linear(g, h, w1, b1));
 *     ggl_graph_output(g, "y", ggl_softmax(g, ggl_linear(g, h, w2, b2)));
 *
 * A function marked "one node" adds a single CALL with the name and the body that the prelude of
 * the descriptors gives it, so that backends run their kernels for it (ggl/composites.def); a
 * backend without one runs the body. The others add a few nodes. All of them can be written with
 * the calls of ggl/graph.h, and mix with those.
 *
 * Shapes are innermost first and leave out the batch, as everywhere; a value has up to three
 * dimensions, and "x [n, ..]" is any of one or more. Results belong to the graph. Errors are sticky
 * as in ggl/graph.h: on one, such as shapes that do not fit, a function returns NULL, as it does
 * for all calls after the first error; the message, from ggl_graph_finish, names the function.
 *
 * Threads: as ggl/graph.h says.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef GGL_COMPOSE_H
#define GGL_COMPOSE_H

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the part that the function ggl_NAME below adds, with the function's tensors and then its numbers, each in
 * their order. The functions call it, so that a shared library has one name for all of them. */
GGL_API ggl_tensor *ggl_compose(ggl_graph *g, const char *name, ggl_tensor *const *src, int n_src,
                                const double *num, int n_num);

/* --- along rows: dimension 0 ------------------------------------------------------------------ */

/* Each returns the shape of x [n, ..] and, except for ggl_softcap and ggl_clamp, adds one node. */
static inline ggl_tensor *ggl_softmax(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "softmax", &x, 1, NULL, 0);
}
/* x / sqrt(mean of x * x + eps) */
static inline ggl_tensor *ggl_rms(ggl_graph *g, ggl_tensor *x, double eps) {
    return ggl_compose(g, "rms", &x, 1, &eps, 1);
}
/* x / max(length of x, eps) */
static inline ggl_tensor *ggl_l2(ggl_graph *g, ggl_tensor *x, double eps) {
    return ggl_compose(g, "l2", &x, 1, &eps, 1);
}
/* x - mean of x */
static inline ggl_tensor *ggl_center(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "center", &x, 1, NULL, 0);
}
/* x / sum of x */
static inline ggl_tensor *ggl_normalised(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "normalised", &x, 1, NULL, 0);
}
/* cap * tanh(x / cap) */
static inline ggl_tensor *ggl_softcap(ggl_graph *g, ggl_tensor *x, double cap) {
    return ggl_compose(g, "softcap", &x, 1, &cap, 1);
}
/* min(max(x, lo), hi) */
static inline ggl_tensor *ggl_clamp(ggl_graph *g, ggl_tensor *x, double lo, double hi) {
    double num[2];
    num[0] = lo;
    num[1] = hi;
    return ggl_compose(g, "clamp", &x, 1, num, 2);
}

/* x [n, ..] -> [1, ..], or one number for x [n]: the mean of each row. */
static inline ggl_tensor *ggl_mean(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "mean", &x, 1, NULL, 0);
}
/* The same of the sum of the squares of each row; x may be a weight of any type. One node. */
static inline ggl_tensor *ggl_sum_squares(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "sum_squares", &x, 1, NULL, 0);
}
/* x [n, m], n a power of two: each row times the matrix of Walsh and Hadamard in Sylvester's order, divided by sqrt(n). The same
 * once more gives x. One node. */
static inline ggl_tensor *ggl_hadamard(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "hadamard", &x, 1, NULL, 0);
}
/* y [n, k], w [k] -> [n]: the sum of the rows of y, each times its weight. One node. */
static inline ggl_tensor *ggl_weighted(ggl_graph *g, ggl_tensor *y, ggl_tensor *w) {
    ggl_tensor *src[2];
    src[0] = y;
    src[1] = w;
    return ggl_compose(g, "weighted", src, 2, NULL, 0);
}

/* Norms of each row of x [n, ..]: ggl_rms(x), or ggl_rms(ggl_center(x)), then times w [n], plus bias
 * [n]. w and bias may be NULL. */
static inline ggl_tensor *ggl_rms_norm(ggl_graph *g, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias,
                                       double eps) {
    ggl_tensor *src[3];
    src[0] = x;
    src[1] = w;
    src[2] = bias;
    return ggl_compose(g, "rms_norm", src, 3, &eps, 1);
}
static inline ggl_tensor *ggl_layer_norm(ggl_graph *g, ggl_tensor *x, ggl_tensor *w,
                                         ggl_tensor *bias, double eps) {
    ggl_tensor *src[3];
    src[0] = x;
    src[1] = w;
    src[2] = bias;
    return ggl_compose(g, "layer_norm", src, 3, &eps, 1);
}

/* --- activations: one node each, any shape ---------------------------------------------------- */

static inline ggl_tensor *ggl_relu(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "relu", &x, 1, NULL, 0);
}
/* x * sigmoid(x) */
static inline ggl_tensor *ggl_silu(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "silu", &x, 1, NULL, 0);
}
/* by tanh */
static inline ggl_tensor *ggl_gelu(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "gelu", &x, 1, NULL, 0);
}
/* exact */
static inline ggl_tensor *ggl_gelu_erf(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "gelu_erf", &x, 1, NULL, 0);
}
/* x * sigmoid(1.702 x) */
static inline ggl_tensor *ggl_gelu_quick(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "gelu_quick", &x, 1, NULL, 0);
}
/* log(1 + exp(x)) */
static inline ggl_tensor *ggl_softplus(ggl_graph *g, ggl_tensor *x) {
    return ggl_compose(g, "softplus", &x, 1, NULL, 0);
}

/* --- shapes ----------------------------------------------------------------------------------- */

/* The elements of x in their order with these sizes, whose product is ggl_count(x); 1 to 3 of them,
 * for a weight 1 to 4. */
static inline ggl_tensor *ggl_reshape(ggl_graph *g, ggl_tensor *x, int n_dims, const int64_t *ne) {
    double size[GGL_MAX_DIMS] = {0, 0, 0, 0};
    for (int d = 0; d < n_dims && d < GGL_MAX_DIMS; d++)
        size[d] = (double)ne[d];
    return ggl_compose(g, "reshape", &x, 1, size, n_dims);
}
/* x -> [ggl_count(x)] */
static inline ggl_tensor *ggl_flat(ggl_graph *g, ggl_tensor *x) {
    int64_t n = x ? ggl_count(x) : 1;
    return ggl_reshape(g, x, 1, &n);
}
/* x [n * d] -> [d, n]: n heads; x [n * d, t] -> [d, n, t]. */
static inline ggl_tensor *ggl_heads(ggl_graph *g, ggl_tensor *x, int64_t n) {
    double num[1];
    num[0] = (double)n;
    return ggl_compose(g, "heads", &x, 1, num, 1);
}

/* --- feed-forward parts ----------------------------------------------------------------------- */

/* x [n, ..], gate and up [n, m], down [m, k] -> [k, ..]:
 * linear(act(linear(x, gate)) * linear(x, up), down), with silu or gelu as act. */
static inline ggl_tensor *ggl_swiglu(ggl_graph *g, ggl_tensor *x, ggl_tensor *gate, ggl_tensor *up,
                                     ggl_tensor *down) {
    ggl_tensor *src[4];
    src[0] = x;
    src[1] = gate;
    src[2] = up;
    src[3] = down;
    return ggl_compose(g, "swiglu", src, 4, NULL, 0);
}
static inline ggl_tensor *ggl_geglu(ggl_graph *g, ggl_tensor *x, ggl_tensor *gate, ggl_tensor *up,
                                    ggl_tensor *down) {
    ggl_tensor *src[4];
    src[0] = x;
    src[1] = gate;
    src[2] = up;
    src[3] = down;
    return ggl_compose(g, "geglu", src, 4, NULL, 0);
}

/* --- attention -------------------------------------------------------------------------------- */

/* Options of ggl_attention; zeros are the defaults. */
typedef struct ggl_attention_params {
    double scale;      /* of scores; 0: 1 / sqrt(d) */
    int64_t window;    /* positions that are seen, the query's own included; 0: all */
    double cap;        /* scores become cap * tanh(score / cap); 0: they stay */
    ggl_tensor *sinks; /* [h]: a score more for each head, whose share goes nowhere; NULL: none */
    ggl_tensor *alibi; /* [h]: slopes; score -= slope * distance; NULL: none */
} ggl_attention_params;

/* Causal attention with a KV cache. Each element of the batch is one position of one sequence: the
 * inputs "pos" and "slot" (i32, no dimensions, batched), which must be made before, say which. Its k
 * [d, heads] and v [e, heads] are stored; its q [d, h], of a multiple of heads, attends to what is
 * stored of its sequence up to its own position. Returns [e * h]: the heads' results one after
 * another. p NULL: the defaults. The cache has ggl_graph_params.n_pos positions. */
static inline ggl_tensor *ggl_attention(ggl_graph *g, ggl_tensor *q, ggl_tensor *k, ggl_tensor *v,
                                        const ggl_attention_params *p) {
    ggl_tensor *src[5];
    double num[3] = {0, 0, 0};
    src[0] = q;
    src[1] = k;
    src[2] = v;
    src[3] = p ? p->sinks : NULL;
    src[4] = p ? p->alibi : NULL;
    if (p) {
        num[0] = p->scale;
        num[1] = (double)p->window;
        num[2] = p->cap;
    }
    return ggl_compose(g, "attention", src, 5, num, 3);
}

/* Attention without a cache: an element of the batch is a whole sequence, and each of its t queries
 * sees all of its s keys. q [d, h, t], k [d, heads, s], v [e, heads, s] -> [e * h, t]; h is a
 * multiple of heads. t and s are fixed when the graph is built. Needs no inputs of a certain name.
 *
 * scale  of scores; 0: 1 / sqrt(d)
 * bias   [s, h or 1, t or 1], added to the scores, for masks (-INFINITY hides a key; each query must
 *        see one) and for biases by position; NULL: none */
static inline ggl_tensor *ggl_attention_all(ggl_graph *g, ggl_tensor *q, ggl_tensor *k,
                                            ggl_tensor *v, double scale, ggl_tensor *bias) {
    ggl_tensor *src[4];
    src[0] = q;
    src[1] = k;
    src[2] = v;
    src[3] = bias;
    return ggl_compose(g, "attention_all", src, 4, &scale, 1);
}

/* How surprising the target is, for scores x [n] and an index target (i32, no dimensions): log(sum(exp(x))) - x[target]. */
static inline ggl_tensor *ggl_cross_entropy(ggl_graph *g, ggl_tensor *x, ggl_tensor *target) {
    ggl_tensor *src[2];
    src[0] = x;
    src[1] = target;
    return ggl_compose(g, "cross_entropy", src, 2, NULL, 0);
}

/* Frequencies of rotary positions for rows of n elements, n even: a constant [n / 2], element i is
 * base ** (-2 i / n). Rotate with
 *
 *     q = ggl_binary(g, GGL_OP_ROPE_HALF, q, f);     // or GGL_OP_ROPE_PAIR */
static inline ggl_tensor *ggl_rope_freqs(ggl_graph *g, int64_t n, double base) {
    double num[2];
    num[0] = (double)n;
    num[1] = base;
    return ggl_compose(g, "rope_freqs", NULL, 0, num, 2);
}

/* --- recurrences ------------------------------------------------------------------------------ */

/* One node each, with a state for each sequence: an element of the batch sees what the earlier ones
 * of its slot left. They read the input "slot" (i32, no dimensions, batched), which must be made
 * before. The exact formulas are in models/archs/prelude.arch. */

/* x [n] -> [n, k]: x of the last k elements of the batch, oldest first; zeros before the first. */
static inline ggl_tensor *ggl_recent(ggl_graph *g, ggl_tensor *x, int64_t k) {
    double num[1];
    num[0] = (double)k;
    return ggl_compose(g, "recent", &x, 1, num, 1);
}
/* x [n], w [k, n] -> [n]: element i is the sum of its last k values times w[.., i]. */
static inline ggl_tensor *ggl_short_conv(ggl_graph *g, ggl_tensor *x, ggl_tensor *w) {
    ggl_tensor *src[2];
    src[0] = x;
    src[1] = w;
    return ggl_compose(g, "short_conv", src, 2, NULL, 0);
}
/* q, k [d, groups], v [e, h], log_decay [h] or [d, h], rate beta [h] -> [e, h]; groups divides h. */
static inline ggl_tensor *ggl_gated_delta_rule(ggl_graph *g, ggl_tensor *q, ggl_tensor *k,
                                               ggl_tensor *v, ggl_tensor *log_decay,
                                               ggl_tensor *beta) {
    ggl_tensor *src[5];
    src[0] = q;
    src[1] = k;
    src[2] = v;
    src[3] = log_decay;
    src[4] = beta;
    return ggl_compose(g, "gated_delta_rule", src, 5, NULL, 0);
}
/* x [d, h], dt [h], a [h] or [n, h], b and c [n, groups] -> [d, h]; groups divides h. */
static inline ggl_tensor *ggl_ssm_scan(ggl_graph *g, ggl_tensor *x, ggl_tensor *dt, ggl_tensor *a,
                                       ggl_tensor *b, ggl_tensor *c) {
    ggl_tensor *src[5];
    src[0] = x;
    src[1] = dt;
    src[2] = a;
    src[3] = b;
    src[4] = c;
    return ggl_compose(g, "ssm_scan", src, 5, NULL, 0);
}
/* q, k and the decay w [d, h], v [e, h] -> [e, h] */
static inline ggl_tensor *ggl_gated_linear_attention(ggl_graph *g, ggl_tensor *q, ggl_tensor *k,
                                                     ggl_tensor *v, ggl_tensor *w) {
    ggl_tensor *src[4];
    src[0] = q;
    src[1] = k;
    src[2] = v;
    src[3] = w;
    return ggl_compose(g, "gated_linear_attention", src, 4, NULL, 0);
}
/* RWKV 6 and 7: all [d, h] -> [d, h] */
static inline ggl_tensor *ggl_wkv6(ggl_graph *g, ggl_tensor *r, ggl_tensor *k, ggl_tensor *v,
                                   ggl_tensor *w, ggl_tensor *u) {
    ggl_tensor *src[5];
    src[0] = r;
    src[1] = k;
    src[2] = v;
    src[3] = w;
    src[4] = u;
    return ggl_compose(g, "wkv6", src, 5, NULL, 0);
}
static inline ggl_tensor *ggl_wkv7(ggl_graph *g, ggl_tensor *r, ggl_tensor *w, ggl_tensor *k,
                                   ggl_tensor *v, ggl_tensor *a, ggl_tensor *b) {
    ggl_tensor *src[6];
    src[0] = r;
    src[1] = w;
    src[2] = k;
    src[3] = v;
    src[4] = a;
    src[5] = b;
    return ggl_compose(g, "wkv7", src, 6, NULL, 0);
}

#ifdef __cplusplus
}
#endif
#endif
