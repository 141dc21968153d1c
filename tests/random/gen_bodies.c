/* Calls: the composites of the prelude as it writes them, bodies that nobody knows, and states. */
#include <string.h>

#include "gen_impl.h"

/* --- begin and end ---------------------------------------------------------------------------- */

/* Opens a body; its parameters are the nodes that follow the BEGIN. */
static int body_begin(gen *g, int n_src, const int *src) {
    int b = add(g, R_BEGIN, n_src, src, 0, NULL);
    g->body = b;
    for (int k = 0; k < n_src; k++) {
        int p = add(g, R_PARAM, 1, &src[k], 0, NULL);
        g->p->node[p].integer = node(g, src[k])->integer;
        g->p->node[p].limit = node(g, src[k])->limit;
    }
    return b;
}

static int body_end(gen *g, int b, const char *name, int result, double num, bool recurrent) {
    g->body = node(g, b)->body;
    int y = add(g, R_CALL, 1, &result, isnan(num) ? 0 : 1, &num);
    r_node *t = &g->p->node[y];
    t->begin = b;
    t->call = name;
    t->integer = node(g, result)->integer;
    t->limit = node(g, result)->limit;
    t->batched = t->batched || recurrent;
    return y;
}

/* --- composites of the prelude ---------------------------------------------------------------- */

static int mul(gen *g, int a, int b) {
    return binary(g, R_MUL, a, b);
}
static int plus(gen *g, int a, int b) {
    return binary(g, R_ADD, a, b);
}

static int mean(gen *g, int x) {
    return binary(g, R_DIV, sum(g, x, 0), number_of(g, node(g, x)->ne[0]));
}

static int relu(gen *g, int x) {
    return binary(g, R_MAX, x, number_of(g, 0));
}
static int silu(gen *g, int x) {
    return mul(g, x, unary(g, R_SIGMOID, x));
}
static int gelu(gen *g, int x) {
    int cubed = mul(g, mul(g, mul(g, number_of(g, 0.044715), x), x), x);
    int t =
        unary(g, R_TANH, mul(g, number_of(g, sqrt(2 / 3.14159265358979323846)), plus(g, x, cubed)));
    return mul(g, mul(g, number_of(g, 0.5), x), plus(g, number_of(g, 1), t));
}
static int gelu_erf(gen *g, int x) {
    int t = unary(g, R_ERF, binary(g, R_DIV, x, number_of(g, sqrt(2))));
    return mul(g, mul(g, number_of(g, 0.5), x), plus(g, number_of(g, 1), t));
}
static int gelu_quick(gen *g, int x) {
    return mul(g, x, unary(g, R_SIGMOID, mul(g, number_of(g, 1.702), x)));
}
static int softplus(gen *g, int x) {
    int e = unary(g, R_EXP, binary(g, R_SUB, number_of(g, 0), unary(g, R_ABS, x)));
    return plus(g, relu(g, x), unary(g, R_LOG, plus(g, number_of(g, 1), e)));
}
static int softmax(gen *g, int x) {
    int e = unary(g, R_EXP, binary(g, R_SUB, x, amax(g, x, 0)));
    set_magnitude(g, e, 1);
    int y = binary(g, R_DIV, e, sum(g, e, 0));
    set_magnitude(g, y, 1);
    return y;
}
static int rms(gen *g, int x) {
    int y =
        binary(g, R_DIV, x, unary(g, R_SQRT, plus(g, mean(g, mul(g, x, x)), number_of(g, 1e-3))));
    set_magnitude(g, y, 3);
    return y;
}
static int center(gen *g, int x) {
    return binary(g, R_SUB, x, mean(g, x));
}
static int l2(gen *g, int x) {
    int y = binary(
        g, R_DIV, x,
        unary(g, R_SQRT, binary(g, R_MAX, sum(g, mul(g, x, x), 0), number_of(g, 1e-3 * 1e-3))));
    set_magnitude(g, y, 1);
    return y;
}
static int normalised(gen *g, int w) {
    return binary(g, R_DIV, w, sum(g, w, 0));
}
static int sum_squares(gen *g, int x) {
    return sum(g, mul(g, x, x), 0);
}

static const struct {
    const char *name;
    int (*text)(gen *g, int x);
    double num;
    bool any_shape; /* of no dimension, too */
} known[] = {
    {"relu", relu, NAN, true},
    {"silu", silu, NAN, true},
    {"gelu", gelu, NAN, true},
    {"gelu_erf", gelu_erf, NAN, true},
    {"gelu_quick", gelu_quick, NAN, true},
    {"softplus", softplus, NAN, true},
    {"softmax", softmax, NAN, false},
    {"rms", rms, 1e-3, false},
    {"center", center, NAN, false},
    {"l2", l2, 1e-3, false},
    {"normalised", normalised, NAN, false},
    {"sum_squares", sum_squares, NAN, false},
};

static int make_hadamard(gen *g, bool named) {
    const int n = 1 << choose(g, 6), m = 1 + choose(g, 3);
    int x = reshape(g, project(g, any_vector(g, 0), n * m), 2, (const int[]){n, m});
    int b = body_begin(g, 1, &x), y = b + 1;
    for (int h = 1; h < n; h *= 2) {
        y = reshape(g, y, 3, (const int[]){h, 2, n * m / (2 * h)});
        int p = split(g, y, 1, 0, 1), q = split(g, y, 1, 1, 1);
        int sum = plus(g, p, q);
        y = concat(g, sum, binary(g, R_SUB, p, q), 1);
    }
    y = mul(g, reshape(g, y, 2, (const int[]){n, m}), number_of(g, pow((double)n, -0.5)));
    return body_end(g, b, named ? "hadamard" : NULL, y, NAN, false);
}

static int make_weighted(gen *g, bool named) {
    int n = ONE_OF(g, 4, 8, 33), k = 1 + choose(g, 4);
    int w = any_vector(g, k),
        y = reshape(g, project(g, any_vector(g, 0), n * k), 2, (const int[]){n, k});
    int b = body_begin(g, 2, (const int[]){y, w});
    int r = sum(g, mul(g, b + 1, reshape(g, b + 2, 2, (const int[]){1, k})), 1);
    return body_end(g, b, named ? "weighted" : NULL, r, NAN, false);
}

int make_known(gen *g) {
    static int (*const other[])(gen * g, bool named) = {make_weighted, make_hadamard};
    enum { N_KNOWN = sizeof known / sizeof *known, N_OTHER = sizeof other / sizeof *other };
    int k = choose(g, N_KNOWN + N_OTHER);
    bool named = !chance(g, 4);
    if (k >= N_KNOWN)
        return tamed(g, other[k - N_KNOWN](g, named));
    int x = known[k].any_shape ? any_float(g) : any_row(g);
    if (known[k].text == normalised) /* of what sums up to more than nothing */
        x = plus(g, unary(g, R_ABS, x), number_of(g, 0.25));
    int b = body_begin(g, 1, &x), y = known[k].text(g, b + 1);
    return body_end(g, b,
                    named          ? known[k].name
                    : chance(g, 2) ? "nobody's"
                                   : NULL,
                    y, known[k].num, false);
}

/* --- bodies of anything ----------------------------------------------------------------------- */

static int depth(const gen *g) {
    int n = 0;
    for (int b = g->body; b >= 0; b = node(g, b)->body)
        n++;
    return n;
}

int make_unknown(gen *g) {
    if (depth(g) >= 3 || !has_room(g, 250))
        return -1;
    int src[2] = {any_float(g), any_row(g)}, n_src = 1 + choose(g, 2);
    for (int k = 0; k < 2; k++)
        src[k] = no_constant(g, src[k]);
    int b = body_begin(g, n_src, src), y = -1, before = g->p->n;
    for (int k = 1 + choose(g, 4); k > 0 && has_room(g, 180); k--) {
        int made = make_any(g, false);
        y = made >= 0 && !node(g, made)->integer ? made : y;
    }
    for (int i = g->p->n; i-- > before && y < 0;)
        if (node(g, i)->body == b && is_float(g, i, 0, 3))
            y = i;
    if (chance(g, 12)) /* what comes in, goes out; or something of outside */
        y = chance(g, 2) ? b + 1 : no_constant(g, any_float(g));
    if (y < 0)
        y = unary(g, R_TANH, b + 1);
    return body_end(g, b, chance(g, 2) ? "nobody's" : NULL, y, NAN, false);
}

/* --- states ----------------------------------------------------------------------------------- */

static int state(gen *g, int n_dims, const int *ne) {
    double num[3] = {0};
    for (int d = 0; d < n_dims; d++)
        num[d] = ne[d];
    int s = add(g, R_STATE, 0, NULL, n_dims, num);
    set_shape(g, s, n_dims, ne);
    g->p->node[s].batched = true;
    set_magnitude(g, s, 2);
    return s;
}

static void keep(gen *g, int s, int x) {
    int k = add(g, R_KEEP, 2, (const int[]){s, x}, 0, NULL);
    set_shape(g, k, 0, NULL);
}

/* The last k of a row: [n, k]. */
static int make_recent(gen *g, const char *name) {
    int x = any_vector(g, 0), n = node(g, x)->ne[0], k = 2 + choose(g, 3);
    int b = body_begin(g, 1, &x), s = state(g, 2, (const int[]){n, k - 1});
    int all = concat(g, s, reshape(g, b + 1, 2, (const int[]){n, 1}), 1);
    keep(g, s, split(g, all, 1, 1, k - 1));
    return body_end(g, b, name, all, NAN, true);
}

static int row_of(gen *g, int d, int h) {
    int x = reshape(g, project(g, any_vector(g, 0), d * h), 2, (const int[]){d, h});
    return l2(g, x);
}

static int outer(gen *g, int a, int b) {
    int m = node(g, a)->ne[0], n = node(g, b)->ne[0], h = node(g, a)->ne[1];
    return mul(g, reshape(g, a, 3, (const int[]){m, 1, h}),
               reshape(g, b, 3, (const int[]){1, n, h}));
}

/* The last rows, each element with its own weights: a state in a body within a plain one. */
static int make_conv(gen *g, const char *name) {
    int x = any_vector(g, 0), n = node(g, x)->ne[0], k = 2 + choose(g, 3);
    int w = row_of(g, k, n), b = body_begin(g, 2, (const int[]){x, w}), in = b + 1;
    int c = body_begin(g, 1, &in), s = state(g, 2, (const int[]){n, k - 1});
    int all = concat(g, s, reshape(g, c + 1, 2, (const int[]){n, 1}), 1);
    keep(g, s, split(g, all, 1, 1, k - 1));
    int rows = body_end(g, c, name ? "recent" : NULL, all, NAN, true);
    int y = sum(g, mul(g, transpose(g, rows, 0, 1), b + 2), 0);
    return body_end(g, b, name, reshape(g, y, 1, (const int[]){n}), NAN, false);
}

static int negative(gen *g, int x) {
    return binary(g, R_SUB, number_of(g, 0), unary(g, R_ABS, x));
}

/* x [n, groups] -> [n, h]: each row for the heads of its group. */
static int each_head(gen *g, int x, int h) {
    int n = node(g, x)->ne[0], groups = node(g, x)->ne[1];
    int rows = reshape(g, x, 3, (const int[]){n, 1, groups}), ne[] = {n, h / groups, groups};
    int y = add(g, R_REPEAT, 1, &rows, 3, (const double[]){ne[0], ne[1], ne[2]});
    set_shape(g, y, 3, ne);
    return reshape(g, y, 2, (const int[]){n, h});
}

/* Heads that have a query and a key of their own, or share them in groups. */
static int make_delta(gen *g, const char *name) {
    int dk = ONE_OF(g, 4, 8, 32), dv = ONE_OF(g, 4, 6, 8), h = ONE_OF(g, 1, 2, 4);
    int groups = h >> choose(g, h == 4 ? 3 : h);
    int q = row_of(g, dk, groups), k = row_of(g, dk, groups), v = row_of(g, dv, h);
    int decay = negative(g, any_vector(g, h)), beta = unary(g, R_SIGMOID, any_vector(g, h));
    int b = body_begin(g, 5, (const int[]){q, k, v, decay, beta});
    int query = each_head(g, b + 1, h), key = each_head(g, b + 2, h);
    int s = state(g, 3, (const int[]){dk, dv, h});
    int left = mul(g, s, reshape(g, unary(g, R_EXP, b + 4), 3, (const int[]){1, 1, h}));
    int error = mul(g, binary(g, R_SUB, b + 3, linear(g, key, left, -1)),
                    reshape(g, b + 5, 2, (const int[]){1, h}));
    int next = plus(g, left, outer(g, key, error));
    keep(g, s, next);
    int y = binary(g, R_DIV, linear(g, query, next, -1), number_of(g, sqrt(dk)));
    set_magnitude(g, y, 2);
    return body_end(g, b, name, y, NAN, true);
}

/* Heads with a decay each; groups of them share two rows; or a head for each channel, whose elements decay by
 * themselves. */
static int make_scan(gen *g, const char *name) {
    bool each = chance(g, 3);
    int d = each ? ONE_OF(g, 1, 1, 3) : ONE_OF(g, 4, 6, 8), n = ONE_OF(g, 4, 8, 16);
    int h = each ? 2 + choose(g, 5) : 1 + choose(g, 4), groups = !each && chance(g, 2) ? h : 1;
    int x = row_of(g, d, h), dt = unary(g, R_SIGMOID, any_vector(g, h));
    int a = negative(g, each ? row_of(g, n, h) : any_vector(g, h));
    int in = row_of(g, n, groups), out = row_of(g, n, groups);
    int b = body_begin(g, 5, (const int[]){x, dt, a, in, out});
    int s = state(g, 3, (const int[]){n, d, h}), step = reshape(g, b + 2, 2, (const int[]){1, h});
    int decay = reshape(g, unary(g, R_EXP, mul(g, each ? step : b + 2, b + 3)), 3,
                        (const int[]){each ? n : 1, 1, h});
    int next = plus(g, mul(g, s, decay), outer(g, each_head(g, b + 4, h), mul(g, b + 1, step)));
    keep(g, s, next);
    int y = linear(g, each_head(g, b + 5, h), next, -1);
    set_magnitude(g, y, 4);
    return body_end(g, b, name, y, NAN, true);
}

/* wkv6 and wkv7 as the prelude has them, or, without a bonus, gated_linear_attention. */
static int make_wkv(gen *g, int kind, bool named) {
    static const char *const name[] = {"gated_linear_attention", "wkv6", "wkv7"};
    int d = ONE_OF(g, 4, 8, 19), h = 1 + choose(g, 2), r = row_of(g, d, h), k = row_of(g, d, h),
        v = row_of(g, d, h);
    int w = unary(g, R_SIGMOID, row_of(g, d, h)), a = row_of(g, d, h), back = row_of(g, d, h);
    const int src[3][6] = {{r, k, v, w}, {r, k, v, w, a}, {r, w, k, v, a, back}};
    int b = body_begin(g, 4 + kind, src[kind]), s = state(g, 3, (const int[]){d, d, h}), y = -1;
    int at = kind == 2 ? b + 2 : b + 4, shape[] = {d, 1, h};
    int now = kind == 2 ? outer(g, b + 3, b + 4) : outer(g, b + 2, b + 3);
    if (kind == 1)
        y = linear(g, b + 1, plus(g, s, mul(g, now, reshape(g, b + 5, 3, shape))), -1);
    int next = mul(g, s, reshape(g, at, 3, shape));
    if (kind == 2)
        next = plus(g, next, outer(g, b + 6, linear(g, b + 5, s, -1)));
    next = plus(g, next, now);
    keep(g, s, next);
    if (kind != 1)
        y = linear(g, b + 1, next, -1);
    set_magnitude(g, y, 8);
    return body_end(g, b, named ? name[kind] : NULL, y, NAN, true);
}

/* One state or two, read before and after they are kept, and what else comes. */
static int make_state(gen *g) {
    int x = any_float(g);
    const r_node *t = node(g, x);
    int n_dims = t->n_dims, ne[3] = {t->ne[0], t->ne[1], t->ne[2]};
    int b = body_begin(g, 1, &x), s = state(g, n_dims > 0 ? n_dims : 1, ne), more = -1;
    int in = n_dims > 0 ? b + 1 : reshape(g, b + 1, 1, ne);
    int next = plus(g, mul(g, s, number_of(g, 0.5)), unary(g, R_TANH, in));
    set_magnitude(g, next, 2);
    if (chance(g, 2))
        keep(g, s, next);
    else if (n_dims > 0) { /* the value as it came, of the call's own or of what surrounds it */
        keep(g, s, node(g, x)->magnitude > 4 ? unary(g, R_TANH, b + 1) : chance(g, 2) ? b + 1 : x);
    }
    if (chance(g, 3)) {
        int other = state(g, n_dims > 0 ? n_dims : 1, ne);
        keep(g, other, s);
        next = plus(g, next, other);
    }
    for (int k = choose(g, 3); k > 0 && has_room(g, 180); k--)
        more = make_any(g, false);
    if (more >= 0 && node(g, more)->body == b && !node(g, more)->integer && chance(g, 2))
        next = more;
    return body_end(g, b, NULL, chance(g, 3) ? mul(g, s, in) : next, NAN, true);
}

int make_recurrent(gen *g) {
    if (g->recurrent > 0 || depth(g) >= 3 || !has_room(g, 250))
        return -1;
    bool nests = !avoids(AVOID_NESTED_STATE);
    if (!nests && g->body >= 0)
        return -1;
    int layers = nests && chance(g, 3) ? 1 + choose(g, 2) : 0, begin[2], y = -1;
    for (int k = 0; k < layers; k++) /* plain bodies around it */
        begin[k] = body_begin(g, 1, (const int[]){any_row(g)});
    bool named = !chance(g, 4);
    g->recurrent++;
    switch (choose(g, 7)) {
    case 0:
        y = nests && chance(g, 2) ? make_conv(g, named ? "short_conv" : NULL)
                                  : make_recent(g, named ? "recent" : NULL);
        break;
    case 1:
        y = make_delta(g, named ? "gated_delta_rule" : NULL);
        break;
    case 2:
        y = make_scan(g, named ? "ssm_scan" : "nobody's");
        break;
    case 3:
    case 4:
        y = make_wkv(g, choose(g, 3), named);
        break;
    default:
        y = make_state(g);
    }
    g->recurrent--;
    for (int k = layers; k-- > 0;)
        y = body_end(g, begin[k], NULL, chance(g, 2) ? y : plus(g, y, number_of(g, 0.5)), NAN,
                     false);
    return tamed(g, y);
}
