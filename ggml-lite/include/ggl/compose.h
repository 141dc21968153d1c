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
 * Threads: as ggl/graph.h says. */
#ifndef GGL_COMPOSE_H
#define GGL_COMPOSE_H

#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- along rows: dimension 0 ------------------------------------------------------------------ */

/* Each returns the shape of x [n, ..] and, but for ggl_softcap and ggl_clamp, adds one node. */
GGL_API ggl_tensor *ggl_softmax(ggl_graph *g, ggl_tensor *x);
/* x / sqrt(mean of x * x + eps) */
GGL_API ggl_tensor *ggl_rms(ggl_graph *g, ggl_tensor *x, double eps);
/* x / max(length of x, eps) */
GGL_API ggl_tensor *ggl_l2(ggl_graph *g, ggl_tensor *x, double eps);
/* x - mean of x */
GGL_API ggl_tensor *ggl_center(ggl_graph *g, ggl_tensor *x);
/* x / sum of x */
GGL_API ggl_tensor *ggl_normalised(ggl_graph *g, ggl_tensor *x);
/* cap * tanh(x / cap) */
GGL_API ggl_tensor *ggl_softcap(ggl_graph *g, ggl_tensor *x, double cap);
/* min(max(x, lo), hi) */
GGL_API ggl_tensor *ggl_clamp(ggl_graph *g, ggl_tensor *x, double lo, double hi);

/* x [n, ..] -> [1, ..], or one number for x [n]: the mean of each row. */
GGL_API ggl_tensor *ggl_mean(ggl_graph *g, ggl_tensor *x);
/* y [n, k], w [k] -> [n]: the sum of the rows of y, each times its weight. One node. */
GGL_API ggl_tensor *ggl_weighted(ggl_graph *g, ggl_tensor *y, ggl_tensor *w);

/* Norms of each row of x [n, ..]: ggl_rms(x), or ggl_rms(ggl_center(x)), then times w [n], plus bias
 * [n]. w and bias may be NULL. */
GGL_API ggl_tensor *ggl_rms_norm(ggl_graph *g, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias,
                                 double eps);
GGL_API ggl_tensor *ggl_layer_norm(ggl_graph *g, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias,
                                   double eps);

/* --- activations: one node each, any shape ---------------------------------------------------- */

GGL_API ggl_tensor *ggl_relu(ggl_graph *g, ggl_tensor *x);
GGL_API ggl_tensor *ggl_silu(ggl_graph *g, ggl_tensor *x);       /* x * sigmoid(x) */
GGL_API ggl_tensor *ggl_gelu(ggl_graph *g, ggl_tensor *x);       /* by tanh */
GGL_API ggl_tensor *ggl_gelu_erf(ggl_graph *g, ggl_tensor *x);   /* exact */
GGL_API ggl_tensor *ggl_gelu_quick(ggl_graph *g, ggl_tensor *x); /* x * sigmoid(1.702 x) */
GGL_API ggl_tensor *ggl_softplus(ggl_graph *g, ggl_tensor *x);   /* log(1 + exp(x)) */

/* --- shapes ----------------------------------------------------------------------------------- */

/* The elements of x in their order with these sizes, whose product is ggl_count(x); 1 to 3 of them,
 * for a weight 1 to 4. */
GGL_API ggl_tensor *ggl_reshape(ggl_graph *g, ggl_tensor *x, int n_dims, const int64_t *ne);
/* x -> [ggl_count(x)] */
GGL_API ggl_tensor *ggl_flat(ggl_graph *g, ggl_tensor *x);
/* x [n * d] -> [d, n]: n heads; x [n * d, t] -> [d, n, t]. */
GGL_API ggl_tensor *ggl_heads(ggl_graph *g, ggl_tensor *x, int64_t n);

/* --- feed-forward parts ----------------------------------------------------------------------- */

/* x [n, ..], gate and up [n, m], down [m, k] -> [k, ..]:
 * linear(act(linear(x, gate)) * linear(x, up), down), with silu or gelu as act. */
GGL_API ggl_tensor *ggl_swiglu(ggl_graph *g, ggl_tensor *x, ggl_tensor *gate, ggl_tensor *up,
                               ggl_tensor *down);
GGL_API ggl_tensor *ggl_geglu(ggl_graph *g, ggl_tensor *x, ggl_tensor *gate, ggl_tensor *up,
                              ggl_tensor *down);

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
GGL_API ggl_tensor *ggl_attention(ggl_graph *g, ggl_tensor *q, ggl_tensor *k, ggl_tensor *v,
                                  const ggl_attention_params *p);

/* Attention without a cache: an element of the batch is a whole sequence, and each of its t queries
 * sees all of its s keys. q [d, h, t], k [d, heads, s], v [e, heads, s] -> [e * h, t]; h is a
 * multiple of heads. t and s are fixed when the graph is built. Needs no inputs of a certain name.
 *
 * scale  of scores; 0: 1 / sqrt(d)
 * bias   [s, h or 1, t or 1], added to the scores, for masks (-INFINITY hides a key; each query must
 *        see one) and for biases by position; NULL: none */
GGL_API ggl_tensor *ggl_attention_all(ggl_graph *g, ggl_tensor *q, ggl_tensor *k, ggl_tensor *v,
                                      double scale, ggl_tensor *bias);

/* Frequencies of rotary positions for rows of n elements, n even: a constant [n / 2], element i is
 * base ** (-2 i / n). Rotate with
 *
 *     q = ggl_binary(g, GGL_OP_ROPE_HALF, q, f);     // or GGL_OP_ROPE_PAIR */
GGL_API ggl_tensor *ggl_rope_freqs(ggl_graph *g, int64_t n, double base);

/* --- recurrences ------------------------------------------------------------------------------ */

/* One node each, with a state for each sequence: an element of the batch sees what the earlier ones
 * of its slot left. They read the input "slot" (i32, no dimensions, batched), which must be made
 * before. The exact formulas are in models/archs/prelude.arch. */

/* x [n] -> [n, k]: x of the last k elements of the batch, oldest first; zeros before the first. */
GGL_API ggl_tensor *ggl_recent(ggl_graph *g, ggl_tensor *x, int64_t k);
/* x [n], w [k, n] -> [n]: element i is the sum of its last k values times w[.., i]. */
GGL_API ggl_tensor *ggl_short_conv(ggl_graph *g, ggl_tensor *x, ggl_tensor *w);
/* q, k [d, groups], v [e, h], log_decay [h] or [d, h], rate beta [h] -> [e, h]; groups divides h. */
GGL_API ggl_tensor *ggl_gated_delta_rule(ggl_graph *g, ggl_tensor *q, ggl_tensor *k, ggl_tensor *v,
                                         ggl_tensor *log_decay, ggl_tensor *beta);
/* x [d, h], dt [h], a [h] or [n, h], b and c [n, groups] -> [d, h]; groups divides h. */
GGL_API ggl_tensor *ggl_ssm_scan(ggl_graph *g, ggl_tensor *x, ggl_tensor *dt, ggl_tensor *a,
                                 ggl_tensor *b, ggl_tensor *c);
/* q, k and the decay w [d, h], v [e, h] -> [e, h] */
GGL_API ggl_tensor *ggl_gated_linear_attention(ggl_graph *g, ggl_tensor *q, ggl_tensor *k,
                                               ggl_tensor *v, ggl_tensor *w);
/* RWKV 6 and 7: all [d, h] -> [d, h] */
GGL_API ggl_tensor *ggl_wkv6(ggl_graph *g, ggl_tensor *r, ggl_tensor *k, ggl_tensor *v,
                             ggl_tensor *w, ggl_tensor *u);
GGL_API ggl_tensor *ggl_wkv7(ggl_graph *g, ggl_tensor *r, ggl_tensor *w, ggl_tensor *k,
                             ggl_tensor *v, ggl_tensor *a, ggl_tensor *b);

#ifdef __cplusplus
}
#endif
#endif
