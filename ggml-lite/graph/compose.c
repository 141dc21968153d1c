/* Composites in one call. Each body has the nodes of the prelude's text (models/archs/prelude.arch),
 * in its order; tests/archs/compose.c compares the two. Every node is a statement of its own where
 * C would leave the order of two open. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/compose.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/math.h"
#include "graph_impl.h"

/* --- composites and errors -------------------------------------------------------------------- */

enum { MAX_SOURCES = 6 };

/* A function's work on a graph. Where an error ends it, later calls do nothing and give NULL. */
typedef struct work {
    ggl_graph *g;
    const char *function; /* "ggl_silu" */
    bool clean;           /* the graph had no error before */
    bool open;            /* a body was begun */
    ggl_tensor *src[MAX_SOURCES];
    int n_src;
    ggl_tensor *param[MAX_SOURCES]; /* of the body: they stand for src */
} work;

static work work_on(ggl_graph *g, const char *function, ggl_tensor *const *src, int n_src) {
    work w = {.g = g, .function = function, .clean = g->error.status == GGL_OK, .n_src = n_src};
    memcpy(w.src, src, (size_t)n_src * sizeof *src);
    return w;
}

/* Begins the composite that is called as the function is, without "ggl_". */
static work begin(ggl_graph *g, const char *function, ggl_tensor *const *src, int n_src) {
    work w = work_on(g, function, src, n_src);
    ggl_tensor **param = ggl_body_begin(g, src, n_src);
    w.open = param != NULL;
    if (param)
        memcpy(w.param, param, (size_t)n_src * sizeof *param);
    return w;
}

/* Returns y. If an error has come up since work_on, puts the function and the shapes of its sources
 * before the message: "ggl_weighted of [21, 4] and [3]: ..". */
static ggl_tensor *done(const work *w, ggl_tensor *y) {
    if (!w->clean || w->g->error.status == GGL_OK)
        return y;
    char text[1024], shape[256];
    int n = snprintf(text, sizeof text, "%s", w->function);
    for (int i = 0; i < w->n_src && n < (int)sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s",
                      i == 0             ? " of "
                      : i < w->n_src - 1 ? ", "
                                         : " and ",
                      w->src[i] ? ggl_shape_text(w->src[i], shape, sizeof shape) : "NULL");
    (void)ggl_within(&w->g->error, w->g->error.status, "%s", text);
    return NULL;
}

static ggl_tensor *end(const work *w, ggl_tensor *y, const double *num, int n_num) {
    const char *name = w->function + strlen("ggl_");
    return done(w, w->open ? ggl_body_end(w->g, name, y, num, n_num) : NULL);
}

/* --- single nodes ----------------------------------------------------------------------------- */

/* Returns an extent of x; 1 if there is no x, which is an error elsewhere. */
static int64_t extent(const ggl_tensor *x, int dim) {
    return x ? x->ne[dim] : 1;
}

/* x op value */
static ggl_tensor *op_number(ggl_graph *g, ggl_op op, ggl_tensor *x, double value) {
    return ggl_binary(g, op, x, ggl_graph_number(g, value));
}

/* value op x */
static ggl_tensor *number_op(ggl_graph *g, double value, ggl_op op, ggl_tensor *x) {
    return ggl_binary(g, op, ggl_graph_number(g, value), x);
}

static ggl_tensor *reshape2(ggl_graph *g, ggl_tensor *x, int64_t a, int64_t b) {
    return ggl_reshape(g, x, 2, (int64_t[]){a, b});
}

static ggl_tensor *reshape3(ggl_graph *g, ggl_tensor *x, int64_t a, int64_t b, int64_t c) {
    return ggl_reshape(g, x, 3, (int64_t[]){a, b, c});
}

static ggl_tensor *transpose(ggl_graph *g, ggl_tensor *x, int a, int b) {
    return ggl_graph_op(g, GGL_OP_TRANSPOSE, &x, 1, (double[]){a, b}, 2);
}

static ggl_tensor *sum(ggl_graph *g, ggl_tensor *x) {
    return ggl_unary(g, GGL_OP_SUM, x);
}

static ggl_tensor *mean(ggl_graph *g, ggl_tensor *x) {
    return op_number(g, GGL_OP_DIV, sum(g, x), (double)extent(x, 0));
}

/* --- along rows ------------------------------------------------------------------------------- */

static ggl_tensor *make_softmax(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_softmax", &x, 1);
    x = w.param[0];
    ggl_tensor *e = ggl_binary(g, GGL_OP_SUB, x, ggl_unary(g, GGL_OP_AMAX, x));
    e = ggl_unary(g, GGL_OP_EXP, e);
    return end(&w, ggl_binary(g, GGL_OP_DIV, e, sum(g, e)), NULL, 0);
}

static ggl_tensor *make_rms(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    double eps = num[0];
    work w = begin(g, "ggl_rms", &x, 1);
    x = w.param[0];
    ggl_tensor *m = mean(g, ggl_binary(g, GGL_OP_MUL, x, x));
    m = ggl_unary(g, GGL_OP_SQRT, op_number(g, GGL_OP_ADD, m, eps));
    return end(&w, ggl_binary(g, GGL_OP_DIV, x, m), &eps, 1);
}

static ggl_tensor *make_l2(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    double eps = num[0];
    work w = begin(g, "ggl_l2", &x, 1);
    x = w.param[0];
    ggl_tensor *s = sum(g, ggl_binary(g, GGL_OP_MUL, x, x));
    s = ggl_unary(g, GGL_OP_SQRT, op_number(g, GGL_OP_MAX, s, eps * eps));
    return end(&w, ggl_binary(g, GGL_OP_DIV, x, s), &eps, 1);
}

static ggl_tensor *make_center(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_center", &x, 1);
    x = w.param[0];
    return end(&w, ggl_binary(g, GGL_OP_SUB, x, mean(g, x)), NULL, 0);
}

static ggl_tensor *make_normalised(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_normalised", &x, 1);
    x = w.param[0];
    return end(&w, ggl_binary(g, GGL_OP_DIV, x, sum(g, x)), NULL, 0);
}

static ggl_tensor *make_sum_squares(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_sum_squares", &x, 1);
    x = w.param[0];
    return end(&w, sum(g, ggl_binary(g, GGL_OP_MUL, x, x)), NULL, 0);
}

static ggl_tensor *make_hadamard(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    const int64_t n = extent(x, 0), m = extent(x, 1);
    if (x && (x->n_dims != 2 || (n & (n - 1)) != 0)) {
        char shape[256];
        return ggl_graph_fail(
            g, GGL_SHAPE,
            "ggl_hadamard of %s: two dimensions are expected, the first of them a "
            "power of two",
            ggl_shape_text(x, shape, sizeof shape));
    }
    work w = begin(g, "ggl_hadamard", &x, 1);
    x = w.param[0];
    for (int64_t h = 1; h < n; h *= 2) {
        x = reshape3(g, x, h, 2, n * m / (2 * h));
        ggl_tensor *a = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){1, 0, 1}, 3);
        ggl_tensor *b = ggl_graph_op(g, GGL_OP_SPLIT, &x, 1, (double[]){1, 1, 1}, 3);
        ggl_tensor *both = ggl_binary(g, GGL_OP_ADD, a, b);
        ggl_tensor *parts[2] = {both, ggl_binary(g, GGL_OP_SUB, a, b)};
        x = ggl_graph_op(g, GGL_OP_CONCAT, parts, 2, (double[]){1}, 1);
    }
    x = reshape2(g, x, n, m);
    return end(&w, op_number(g, GGL_OP_MUL, x, pow((double)n, -0.5)), NULL, 0);
}

static ggl_tensor *make_softcap(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    double cap = num[0];
    work w = work_on(g, "ggl_softcap", &x, 1);
    x = ggl_unary(g, GGL_OP_TANH, op_number(g, GGL_OP_DIV, x, cap));
    return done(&w, number_op(g, cap, GGL_OP_MUL, x));
}

static ggl_tensor *make_clamp(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    double lo = num[0];
    double hi = num[1];
    work w = work_on(g, "ggl_clamp", &x, 1);
    return done(&w, op_number(g, GGL_OP_MIN, op_number(g, GGL_OP_MAX, x, lo), hi));
}

static ggl_tensor *make_mean(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = work_on(g, "ggl_mean", &x, 1);
    return done(&w, mean(g, x));
}

static ggl_tensor *make_weighted(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *y = src[0], *w = src[1];
    (void)num;
    work c = begin(g, "ggl_weighted", (ggl_tensor *[]){y, w}, 2);
    ggl_tensor *each = reshape2(g, c.param[1], 1, extent(c.param[1], 0));
    ggl_tensor *all = ggl_binary(g, GGL_OP_MUL, c.param[0], each);
    return end(&c, ggl_graph_op(g, GGL_OP_SUM, &all, 1, (double[]){1}, 1), NULL, 0);
}

/* log(sum(exp(x))): a composite, because its gradient needs no more than x and itself. */
static ggl_tensor *log_sum_exp(ggl_graph *g, ggl_tensor *x) {
    work w = begin(g, "ggl_log_sum_exp", &x, 1);
    x = w.param[0];
    ggl_tensor *top = ggl_unary(g, GGL_OP_AMAX, x);
    ggl_tensor *all = sum(g, ggl_unary(g, GGL_OP_EXP, ggl_binary(g, GGL_OP_SUB, x, top)));
    return end(&w, ggl_binary(g, GGL_OP_ADD, ggl_unary(g, GGL_OP_LOG, all), top), NULL, 0);
}

static ggl_tensor *make_cross_entropy(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *target = src[1];
    (void)num;
    work w = work_on(g, "ggl_cross_entropy", (ggl_tensor *[]){x, target}, 2);
    ggl_tensor *all = log_sum_exp(g, x);
    return done(&w, ggl_binary(g, GGL_OP_SUB, all, ggl_binary(g, GGL_OP_PICK, x, target)));
}

/* Returns x times w plus bias, each of which may be NULL. */
static ggl_tensor *affine(ggl_graph *g, ggl_tensor *x, ggl_tensor *w, ggl_tensor *bias) {
    if (x && w && w->ne[0] != x->ne[0])
        return ggl_graph_fail(g, GGL_SHAPE,
                              "the weight has %" PRId64 " elements for rows of %" PRId64, w->ne[0],
                              x->ne[0]);
    if (w)
        x = ggl_binary(g, GGL_OP_MUL, x, w);
    return bias ? ggl_binary(g, GGL_OP_ADD, x, bias) : x;
}

static ggl_tensor *make_rms_norm(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *w = src[1], *bias = src[2];
    double eps = num[0];
    work c = work_on(g, "ggl_rms_norm", &x, 1);
    return done(&c, affine(g, ggl_rms(g, x, eps), w, bias));
}

static ggl_tensor *make_layer_norm(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *w = src[1], *bias = src[2];
    double eps = num[0];
    work c = work_on(g, "ggl_layer_norm", &x, 1);
    return done(&c, affine(g, ggl_rms(g, ggl_center(g, x), eps), w, bias));
}

/* --- activations ------------------------------------------------------------------------------ */

static ggl_tensor *make_relu(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_relu", &x, 1);
    return end(&w, op_number(g, GGL_OP_MAX, w.param[0], 0), NULL, 0);
}

static ggl_tensor *make_silu(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_silu", &x, 1);
    x = w.param[0];
    return end(&w, ggl_binary(g, GGL_OP_MUL, x, ggl_unary(g, GGL_OP_SIGMOID, x)), NULL, 0);
}

static ggl_tensor *make_gelu(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_gelu", &x, 1);
    x = w.param[0];
    ggl_tensor *half = number_op(g, 0.5, GGL_OP_MUL, x);
    ggl_tensor *t = ggl_binary(g, GGL_OP_MUL, number_op(g, 0.044715, GGL_OP_MUL, x), x);
    t = ggl_binary(g, GGL_OP_ADD, x, ggl_binary(g, GGL_OP_MUL, t, x));
    t = number_op(g, sqrt(2 / 3.14159265358979323846), GGL_OP_MUL, t);
    t = number_op(g, 1, GGL_OP_ADD, ggl_unary(g, GGL_OP_TANH, t));
    return end(&w, ggl_binary(g, GGL_OP_MUL, half, t), NULL, 0);
}

static ggl_tensor *make_gelu_erf(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_gelu_erf", &x, 1);
    x = w.param[0];
    ggl_tensor *half = number_op(g, 0.5, GGL_OP_MUL, x);
    ggl_tensor *t = ggl_unary(g, GGL_OP_ERF, op_number(g, GGL_OP_DIV, x, sqrt(2)));
    return end(&w, ggl_binary(g, GGL_OP_MUL, half, number_op(g, 1, GGL_OP_ADD, t)), NULL, 0);
}

static ggl_tensor *make_gelu_quick(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_gelu_quick", &x, 1);
    x = w.param[0];
    ggl_tensor *s = ggl_unary(g, GGL_OP_SIGMOID, number_op(g, 1.702, GGL_OP_MUL, x));
    return end(&w, ggl_binary(g, GGL_OP_MUL, x, s), NULL, 0);
}

static ggl_tensor *make_softplus(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    (void)num;
    work w = begin(g, "ggl_softplus", &x, 1);
    x = w.param[0];
    ggl_tensor *above = op_number(g, GGL_OP_MAX, x, 0);
    ggl_tensor *t = op_number(g, GGL_OP_MUL, ggl_unary(g, GGL_OP_ABS, x), -1);
    t = number_op(g, 1, GGL_OP_ADD, ggl_unary(g, GGL_OP_EXP, t));
    return end(&w, ggl_binary(g, GGL_OP_ADD, above, ggl_unary(g, GGL_OP_LOG, t)), NULL, 0);
}

/* --- shapes ----------------------------------------------------------------------------------- */

static ggl_tensor *make_reshape(ggl_graph *g, ggl_tensor *const *src, const double *num,
                                int n_dims) {
    if (n_dims < 1 || n_dims > GGL_MAX_DIMS)
        return ggl_graph_fail(g, GGL_SHAPE, "ggl_reshape to %d dimensions; 1 to %d are allowed",
                              n_dims, GGL_MAX_DIMS);
    return ggl_graph_op(g, GGL_OP_RESHAPE, src, 1, num, n_dims);
}

static ggl_tensor *make_heads(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    int64_t n = (int64_t)num[0];
    int64_t all = extent(x, 0);
    if (n < 1 || all % n != 0 || (x && (x->n_dims < 1 || x->n_dims > 2))) {
        char shape[256];
        return ggl_graph_fail(g, GGL_SHAPE, "ggl_heads of %s: %" PRId64 " heads do not divide it",
                              x ? ggl_shape_text(x, shape, sizeof shape) : "NULL", n);
    }
    bool one = !x || x->n_dims < 2;
    return ggl_reshape(g, x, one ? 2 : 3, (int64_t[]){all / n, n, extent(x, 1)});
}

/* --- feed-forward parts ----------------------------------------------------------------------- */

static ggl_tensor *gated(ggl_graph *g, ggl_tensor *(*act)(ggl_graph *, ggl_tensor *),
                         ggl_tensor *const src[4]) {
    ggl_tensor *gate = act(g, ggl_linear(g, src[0], src[1], NULL));
    ggl_tensor *up = ggl_linear(g, src[0], src[2], NULL);
    return ggl_linear(g, ggl_binary(g, GGL_OP_MUL, gate, up), src[3], NULL);
}

static ggl_tensor *make_swiglu(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *gate = src[1], *up = src[2], *down = src[3];
    (void)num;
    work w = work_on(g, "ggl_swiglu", (ggl_tensor *[]){x, gate, up, down}, 4);
    return done(&w, gated(g, ggl_silu, w.src));
}

static ggl_tensor *make_geglu(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *gate = src[1], *up = src[2], *down = src[3];
    (void)num;
    work w = work_on(g, "ggl_geglu", (ggl_tensor *[]){x, gate, up, down}, 4);
    return done(&w, gated(g, ggl_gelu, w.src));
}

/* --- attention -------------------------------------------------------------------------------- */

static ggl_tensor *make_attention(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *q = src[0], *k = src[1], *v = src[2];
    work w = work_on(g, "ggl_attention", (ggl_tensor *[]){q, k, v}, 3);
    ggl_tensor *operand[4] = {q, ggl_binary(g, GGL_OP_CACHE, k, v), src[3], src[4]};
    double option[3]; /* scale, window, cap: absent where they are 0 */
    for (int i = 0; i < 3; i++)
        option[i] = num[i] != 0 ? num[i] : NAN;
    return done(&w, ggl_flat(g, ggl_graph_op(g, GGL_OP_ATTEND, operand, 4, option, 3)));
}

/* x [m, n, heads] -> [m, n, h]: each matrix for h / heads neighbouring heads. A single one needs no
 * repetition, as products broadcast it. */
static ggl_tensor *matrix_of_each_head(ggl_graph *g, ggl_tensor *x, int64_t h) {
    int64_t m = extent(x, 0), n = extent(x, 1), heads = extent(x, 2);
    if (!x || heads == 1 || heads == h)
        return x;
    if (h % heads != 0)
        return ggl_graph_fail(g, GGL_SHAPE, "%" PRId64 " heads of keys for %" PRId64 " of queries",
                              heads, h);
    int64_t size = ggl_extents(x->ne, 0, 2, 1);
    x = reshape3(g, x, size, 1, heads);
    x = ggl_graph_op(g, GGL_OP_REPEAT, &x, 1,
                     (double[]){(double)size, (double)(h / heads), (double)heads}, 3);
    return reshape3(g, x, m, n, h);
}

static ggl_tensor *make_attention_all(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *q = src[0], *k = src[1], *v = src[2], *bias = src[3];
    double scale = num[0];
    work w = work_on(g, "ggl_attention_all", (ggl_tensor *[]){q, k, v}, 3);
    int64_t h = extent(q, 1), t = extent(q, 2);
    if (scale == 0)
        scale = 1 / sqrt((double)extent(q, 0));
    k = matrix_of_each_head(g, transpose(g, k, 1, 2), h);                     /* [d, s, h] */
    v = transpose(g, matrix_of_each_head(g, transpose(g, v, 1, 2), h), 0, 1); /* [s, e, h] */
    ggl_tensor *score = op_number(g, GGL_OP_MUL, ggl_linear(g, q, k, NULL), scale);
    if (bias)
        score = ggl_binary(g, GGL_OP_ADD, score, bias);
    ggl_tensor *y = ggl_linear(g, ggl_softmax(g, score), v, NULL); /* [e, h, t] */
    return done(&w, reshape2(g, y, y ? ggl_extents(y->ne, 0, 2, 1) : 1, t));
}

static ggl_tensor *make_rope_freqs(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    (void)src;
    int64_t n = (int64_t)num[0];
    double base = num[1];
    if (g->error.status != GGL_OK)
        return NULL;
    if (n < 2 || n % 2 != 0 || n > INT32_MAX || !(base > 0))
        return ggl_graph_fail(g, GGL_USAGE,
                              "ggl_rope_freqs: rows of %" PRId64 " and base %g; n is even, from 2 "
                              "on, and base is above 0",
                              n, base);
    double *f = ggl_calloc((size_t)(n / 2), sizeof *f);
    if (!f)
        return ggl_graph_fail(g, GGL_NOMEM, "out of memory for %" PRId64 " frequencies", n / 2);
    for (int64_t i = 0; i < n / 2; i++)
        f[i] = ggl_pow(base, -2 * (double)i / (double)n);
    ggl_tensor *t = ggl_graph_const(g, 1, (int64_t[]){n / 2}, f);
    ggl_free(f);
    return t;
}

/* --- recurrences ------------------------------------------------------------------------------ */

/* Makes a state of these sizes; those from n_dims on are ignored. */
static ggl_tensor *state(ggl_graph *g, int n_dims, int64_t a, int64_t b, int64_t c) {
    return ggl_graph_op(g, GGL_OP_STATE, NULL, 0, (double[]){(double)a, (double)b, (double)c},
                        n_dims);
}

static void keep(ggl_graph *g, ggl_tensor *s, ggl_tensor *x) {
    (void)ggl_binary(g, GGL_OP_KEEP, s, x);
}

/* a [m, h], b [n, h] -> [m, n, h]: products of all pairs, for each head. */
static ggl_tensor *outer(ggl_graph *g, ggl_tensor *a, ggl_tensor *b) {
    a = reshape3(g, a, extent(a, 0), 1, extent(a, 1));
    b = reshape3(g, b, 1, extent(b, 0), extent(b, 1));
    return ggl_binary(g, GGL_OP_MUL, a, b);
}

/* x [n, groups] -> [n, h]: neighbouring heads share a row. */
static ggl_tensor *row_of_each_head(ggl_graph *g, ggl_tensor *x, int64_t h) {
    int64_t n = extent(x, 0), groups = extent(x, 1);
    if (h % groups != 0)
        return ggl_graph_fail(g, GGL_SHAPE,
                              "%" PRId64 " heads do not divide into %" PRId64 " groups", h, groups);
    x = reshape3(g, x, n, 1, groups);
    x = ggl_graph_op(g, GGL_OP_REPEAT, &x, 1,
                     (double[]){(double)n, (double)(h / groups), (double)groups}, 3);
    return reshape2(g, x, n, h);
}

/* s [n, m, h] times w [n, h] */
static ggl_tensor *decayed(ggl_graph *g, ggl_tensor *s, ggl_tensor *w) {
    return ggl_binary(g, GGL_OP_MUL, s, reshape3(g, w, extent(w, 0), 1, extent(w, 1)));
}

static ggl_tensor *make_recent(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0];
    int64_t k = (int64_t)num[0];
    if (k < 1)
        return ggl_graph_fail(g, GGL_SHAPE, "ggl_recent of %" PRId64 " elements; at least 1", k);
    work w = begin(g, "ggl_recent", &x, 1);
    x = w.param[0];
    int64_t n = extent(x, 0);
    ggl_tensor *s = state(g, 2, n, k - 1, 0), *both[2] = {s, reshape2(g, x, n, 1)};
    ggl_tensor *all = ggl_graph_op(g, GGL_OP_CONCAT, both, 2, (double[]){1}, 1);
    keep(g, s, ggl_graph_op(g, GGL_OP_SPLIT, &all, 1, (double[]){1, 1, num[0] - 1}, 3));
    return end(&w, all, num, 1);
}

static ggl_tensor *make_short_conv(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *w = src[1];
    (void)num;
    work c = begin(g, "ggl_short_conv", (ggl_tensor *[]){x, w}, 2);
    ggl_tensor *all = transpose(g, ggl_recent(g, c.param[0], extent(c.param[1], 0)), 0, 1);
    all = ggl_binary(g, GGL_OP_MUL, all, c.param[1]);
    return end(&c, ggl_flat(g, sum(g, all)), NULL, 0);
}

static ggl_tensor *make_gated_delta_rule(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *q = src[0], *k = src[1], *v = src[2], *log_decay = src[3], *beta = src[4];
    (void)num;
    work w = begin(g, "ggl_gated_delta_rule", (ggl_tensor *[]){q, k, v, log_decay, beta}, 5);
    v = w.param[2], log_decay = w.param[3], beta = w.param[4];
    int64_t h = extent(beta, 0);
    q = row_of_each_head(g, w.param[0], h);
    k = row_of_each_head(g, w.param[1], h);
    ggl_tensor *s = state(g, 3, extent(k, 0), extent(v, 0), h);
    bool by_head = log_decay && ggl_count(log_decay) == h;
    ggl_tensor *left = ggl_unary(g, GGL_OP_EXP, log_decay);
    left = ggl_binary(g, GGL_OP_MUL, s, reshape3(g, left, by_head ? 1 : extent(k, 0), 1, h));
    ggl_tensor *error = ggl_binary(g, GGL_OP_SUB, v, ggl_linear(g, k, left, NULL));
    error = ggl_binary(g, GGL_OP_MUL, error, reshape2(g, beta, 1, h));
    ggl_tensor *next = ggl_binary(g, GGL_OP_ADD, left, outer(g, k, error));
    keep(g, s, next);
    ggl_tensor *y = ggl_linear(g, q, next, NULL);
    return end(&w, op_number(g, GGL_OP_DIV, y, sqrt((double)extent(q, 0))), NULL, 0);
}

/* Returns the decay of ssm_scan's state, [1 or n, 1, h]. */
static ggl_tensor *scan_decay(ggl_graph *g, ggl_tensor *a, ggl_tensor *dt, int64_t n) {
    int64_t h = extent(dt, 0);
    bool by_head = a && ggl_count(a) == h && (extent(a, 0) == 1 || extent(a, 0) == h);
    a = by_head ? ggl_flat(g, a)
                : reshape2(g, a, extent(a, 0), h); /* before dt, as in the prelude */
    a = ggl_binary(g, GGL_OP_MUL, a, by_head ? dt : reshape2(g, dt, 1, h));
    return reshape3(g, ggl_unary(g, GGL_OP_EXP, a), by_head ? 1 : n, 1, h);
}

static ggl_tensor *make_ssm_scan(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *x = src[0], *dt = src[1], *a = src[2], *b = src[3], *c = src[4];
    (void)num;
    work w = begin(g, "ggl_ssm_scan", (ggl_tensor *[]){x, dt, a, b, c}, 5);
    x = w.param[0], dt = w.param[1], a = w.param[2], b = w.param[3], c = w.param[4];
    int64_t h = extent(dt, 0);
    ggl_tensor *s = state(g, 3, extent(b, 0), extent(x, 0), h);
    ggl_tensor *left = ggl_binary(g, GGL_OP_MUL, s, scan_decay(g, a, dt, extent(b, 0)));
    b = row_of_each_head(g, b, h);
    x = ggl_binary(g, GGL_OP_MUL, x, reshape2(g, dt, 1, h));
    ggl_tensor *next = ggl_binary(g, GGL_OP_ADD, left, outer(g, b, x));
    keep(g, s, next);
    return end(&w, ggl_linear(g, row_of_each_head(g, c, h), next, NULL), NULL, 0);
}

static ggl_tensor *make_gated_linear_attention(ggl_graph *g, ggl_tensor *const *src,
                                               const double *num) {
    ggl_tensor *q = src[0], *k = src[1], *v = src[2], *w = src[3];
    (void)num;
    work c = begin(g, "ggl_gated_linear_attention", (ggl_tensor *[]){q, k, v, w}, 4);
    q = c.param[0], k = c.param[1], v = c.param[2], w = c.param[3];
    ggl_tensor *s = state(g, 3, extent(k, 0), extent(v, 0), extent(v, 1));
    ggl_tensor *left = decayed(g, s, w);
    ggl_tensor *next = ggl_binary(g, GGL_OP_ADD, left, outer(g, k, v));
    keep(g, s, next);
    return end(&c, ggl_linear(g, q, next, NULL), NULL, 0);
}

static ggl_tensor *make_wkv6(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *r = src[0], *k = src[1], *v = src[2], *w = src[3], *u = src[4];
    (void)num;
    work c = begin(g, "ggl_wkv6", (ggl_tensor *[]){r, k, v, w, u}, 5);
    r = c.param[0], k = c.param[1], v = c.param[2], w = c.param[3], u = c.param[4];
    ggl_tensor *s = state(g, 3, extent(k, 0), extent(v, 0), extent(v, 1)), *now = outer(g, k, v);
    ggl_tensor *y = ggl_binary(g, GGL_OP_ADD, s, decayed(g, now, u));
    y = ggl_linear(g, r, y, NULL);
    keep(g, s, ggl_binary(g, GGL_OP_ADD, decayed(g, s, w), now));
    return end(&c, y, NULL, 0);
}

static ggl_tensor *make_wkv7(ggl_graph *g, ggl_tensor *const *src, const double *num) {
    ggl_tensor *r = src[0], *w = src[1], *k = src[2], *v = src[3], *a = src[4], *b = src[5];
    (void)num;
    work c = begin(g, "ggl_wkv7", (ggl_tensor *[]){r, w, k, v, a, b}, 6);
    r = c.param[0], w = c.param[1], k = c.param[2];
    v = c.param[3], a = c.param[4], b = c.param[5];
    ggl_tensor *s = state(g, 3, extent(k, 0), extent(v, 0), extent(v, 1));
    ggl_tensor *next = decayed(g, s, w);
    next = ggl_binary(g, GGL_OP_ADD, next, outer(g, b, ggl_linear(g, a, s, NULL)));
    next = ggl_binary(g, GGL_OP_ADD, next, outer(g, k, v));
    keep(g, s, next);
    return end(&c, ggl_linear(g, r, next, NULL), NULL, 0);
}

/* --- by name ---------------------------------------------------------------------------------- */

static const struct part {
    const char *name;
    int n_src, n_num;
    ggl_tensor *(*make)(ggl_graph *g, ggl_tensor *const *src, const double *num);
} parts[] = {
    {"softmax", 1, 0, make_softmax},
    {"rms", 1, 1, make_rms},
    {"l2", 1, 1, make_l2},
    {"hadamard", 1, 0, make_hadamard},
    {"center", 1, 0, make_center},
    {"normalised", 1, 0, make_normalised},
    {"sum_squares", 1, 0, make_sum_squares},
    {"softcap", 1, 1, make_softcap},
    {"clamp", 1, 2, make_clamp},
    {"mean", 1, 0, make_mean},
    {"weighted", 2, 0, make_weighted},
    {"cross_entropy", 2, 0, make_cross_entropy},
    {"rms_norm", 3, 1, make_rms_norm},
    {"layer_norm", 3, 1, make_layer_norm},
    {"relu", 1, 0, make_relu},
    {"silu", 1, 0, make_silu},
    {"gelu", 1, 0, make_gelu},
    {"gelu_erf", 1, 0, make_gelu_erf},
    {"gelu_quick", 1, 0, make_gelu_quick},
    {"softplus", 1, 0, make_softplus},
    {"heads", 1, 1, make_heads},
    {"swiglu", 4, 0, make_swiglu},
    {"geglu", 4, 0, make_geglu},
    {"attention", 5, 3, make_attention},
    {"attention_all", 4, 1, make_attention_all},
    {"rope_freqs", 0, 2, make_rope_freqs},
    {"recent", 1, 1, make_recent},
    {"short_conv", 2, 0, make_short_conv},
    {"gated_delta_rule", 5, 0, make_gated_delta_rule},
    {"ssm_scan", 5, 0, make_ssm_scan},
    {"gated_linear_attention", 4, 0, make_gated_linear_attention},
    {"wkv6", 5, 0, make_wkv6},
    {"wkv7", 6, 0, make_wkv7},
};

ggl_tensor *ggl_compose(ggl_graph *g, const char *name, ggl_tensor *const *src, int n_src,
                        const double *num, int n_num) {
    if (g->error.status != GGL_OK)
        return NULL;
    if (strcmp(name, "reshape") == 0 && n_src == 1)
        return make_reshape(g, src, num, n_num);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct part *p = &parts[i];
        if (strcmp(p->name, name) != 0)
            continue;
        if (p->n_src != n_src || p->n_num != n_num)
            return ggl_graph_fail(g, GGL_USAGE,
                                  "ggl_compose: '%s' has %d tensors and %d numbers; it was called "
                                  "with %d and %d",
                                  name, p->n_src, p->n_num, n_src, n_num);
        return p->make(g, src, num);
    }
    return ggl_graph_fail(
        g, GGL_NOT_FOUND,
        "ggl_compose: there is no part '%s'; ggl/compose.h has a function for each", name);
}
