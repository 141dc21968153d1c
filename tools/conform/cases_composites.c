/* Composites as the prelude defines them, with the names that backends may know; and
 * recurrences. */
#include "build.h"

/* Ends a body as the prelude's op of that name, or without a name. */
static ggl_tensor *end(conform_build *c, const char *name, ggl_tensor *y, int n_num, double num) {
    return case_call(c, c->f.unnamed ? NULL : name, y, &num, n_num);
}
static ggl_tensor *mean(conform_build *c, ggl_tensor *x) {
    return x ? OP2(c, DIV, OP1(c, SUM, x), NUMBER(c, (double)x->ne[0])) : NULL;
}

/* --- along a row ------------------------------------------------------------------------------ */

static const conform_form singles[] = {
    {.size = {13, 3}, .n = 7},
    {.size = {17, 2}, .n = 7, .view = 3},
    {.size = {1}, .n = 7},
    {.size = {4099}, .n = 7},
    {.size = {16}, .n = 33, .n_batch = 16},
    {.size = {11, 2, 3}, .n = 7, .view = 5},
    {.size = {256}, .n = 1},
};
static const conform_form large_single = {.size = {4096}, .n = 2048};

static ggl_tensor *single(conform_build *c, conform_fill fill) {
    const int64_t *s = c->f.size;
    return case_input(c, true, fill, 0, DIMS(s[0], s[1], s[2]));
}

/* typical: typical size of the results, if they come from terms that cancel */
#define COMPOSITE(fn, fill, typical, name, n_num, num, expression)                                 \
    static ggl_tensor *build_##fn(conform_build *c) {                                              \
        c->about = typical;                                                                        \
        ggl_tensor *x = single(c, fill);                                                           \
        ggl_tensor **p = ggl_body_begin(c->g, &x, 1);                                              \
        if (!p)                                                                                    \
            return NULL;                                                                           \
        x = p[0];                                                                                  \
        return end(c, name, expression, n_num, num);                                               \
    }
COMPOSITE(softmax, FILL_ANY, 0, "softmax", 0, 0,
          OP2(c, DIV, OP1(c, EXP, OP2(c, SUB, x, OP1(c, AMAX, x))),
              OP1(c, SUM, OP1(c, EXP, OP2(c, SUB, x, OP1(c, AMAX, x))))))
COMPOSITE(rms, FILL_ANY, 0, "rms", 1, 1e-3,
          OP2(c, DIV, x, OP1(c, SQRT, OP2(c, ADD, mean(c, OP2(c, MUL, x, x)), NUMBER(c, 1e-3)))))
COMPOSITE(center, FILL_ANY, 1, "center", 0, 0, OP2(c, SUB, x, mean(c, x)))
COMPOSITE(l2, FILL_ANY, 0, "l2", 1, 1e-3,
          OP2(c, DIV, x,
              OP1(c, SQRT, OP2(c, MAX, OP1(c, SUM, OP2(c, MUL, x, x)), NUMBER(c, 1e-3 * 1e-3)))))
COMPOSITE(sum_squares, FILL_ANY, 0, "sum_squares", 0, 0, OP1(c, SUM, OP2(c, MUL, x, x)))
COMPOSITE(normalised, FILL_POSITIVE, 0, "normalised", 0, 0, OP2(c, DIV, x, OP1(c, SUM, x)))
COMPOSITE(relu, FILL_ANY, 0, "relu", 0, 0, OP2(c, MAX, x, NUMBER(c, 0)))
COMPOSITE(silu, FILL_ANY, 1, "silu", 0, 0, OP2(c, MUL, x, OP1(c, SIGMOID, x)))
COMPOSITE(
    gelu, FILL_ANY, 1, "gelu", 0, 0,
    OP2(c, MUL, OP2(c, MUL, NUMBER(c, 0.5), x),
        OP2(c, ADD, NUMBER(c, 1),
            OP1(c, TANH,
                OP2(c, MUL, NUMBER(c, sqrt(2 / 3.14159265358979323846)),
                    OP2(c, ADD, x,
                        OP2(c, MUL, OP2(c, MUL, OP2(c, MUL, NUMBER(c, 0.044715), x), x), x)))))))
COMPOSITE(gelu_erf, FILL_ANY, 1, "gelu_erf", 0, 0,
          OP2(c, MUL, OP2(c, MUL, NUMBER(c, 0.5), x),
              OP2(c, ADD, NUMBER(c, 1), OP1(c, ERF, OP2(c, DIV, x, NUMBER(c, sqrt(2)))))))
COMPOSITE(gelu_quick, FILL_ANY, 1, "gelu_quick", 0, 0,
          OP2(c, MUL, x, OP1(c, SIGMOID, OP2(c, MUL, NUMBER(c, 1.702), x))))
COMPOSITE(softplus, FILL_ANY, 1, "softplus", 0, 0,
          OP2(c, ADD, OP2(c, MAX, x, NUMBER(c, 0)),
              OP1(c, LOG,
                  OP2(c, ADD, NUMBER(c, 1),
                      OP1(c, EXP, OP2(c, SUB, NUMBER(c, 0), OP1(c, ABS, x)))))))

/* The third size, if given: the input is a weight, the same for all tokens. */
static const conform_form weighteds[] = {{.size = {21, 4}, .n = 7},
                                         {.size = {21, 4, 1}, .n = 7},
                                         {.size = {1, 1}, .n = 7},
                                         {.size = {257, 8}, .n = 20, .n_batch = 9, .view = 1}};
static ggl_tensor *build_weighted(conform_build *c) {
    const int64_t *s = c->f.size;
    ggl_tensor *y = s[2] ? case_weight(c, GGL_F32, DIMS(s[0], s[1])) : VALUE(c, s[0], s[1]);
    ggl_tensor *src[2] = {y, VALUE(c, s[1])}, **p = ggl_body_begin(c->g, src, 2);
    c->about = 1;
    if (!p)
        return NULL;
    ggl_tensor *w = OP1N(c, RESHAPE, p[1], 2, 1, (double)s[1]);
    return end(c, "weighted", OP1N(c, SUM, OP2(c, MUL, p[0], w), 1, 1), 0, 0);
}

/* size: length of a row, how many rows. */
static const conform_form hadamards[] = {{.size = {16, 3}, .n = 7},
                                         {.size = {1, 2}, .n = 3},
                                         {.size = {2, 1}, .n = 33, .n_batch = 16},
                                         {.size = {64, 2}, .n = 7, .view = 5},
                                         {.size = {1024, 1}, .n = 2}};
static const conform_form large_hadamard = {.size = {1024, 4}, .n = 2048};
static ggl_tensor *build_hadamard(conform_build *c) {
    const int64_t n = c->f.size[0], m = c->f.size[1];
    ggl_tensor *x = case_input(c, true, FILL_ANY, 0, DIMS(n, m)), **p = ggl_body_begin(c->g, &x, 1);
    c->about = 1;
    if (!p)
        return NULL;
    x = p[0];
    for (int64_t h = 1; h < n; h *= 2) {
        x = OP1N(c, RESHAPE, x, 3, (double)h, 2, (double)(n * m / (2 * h)));
        ggl_tensor *a = OP1N(c, SPLIT, x, 3, 1, 0, 1), *b = OP1N(c, SPLIT, x, 3, 1, 1, 1);
        ggl_tensor *sum = OP2(c, ADD, a, b);
        ggl_tensor *parts[2] = {sum, OP2(c, SUB, a, b)};
        x = ggl_graph_op(c->g, GGL_OP_CONCAT, parts, 2, (double[]){1}, 1);
    }
    x = OP1N(c, RESHAPE, x, 2, (double)n, (double)m);
    return end(c, "hadamard", OP2(c, MUL, x, NUMBER(c, pow((double)n, -0.5))), 0, 0);
}

#define CALL(NAME, list, most, which)                                                              \
    .name = #NAME, .op = GGL_OP_CALL, .call = #NAME, .build = build_##NAME, FORM_LIST(list),       \
    .bound = most, .edges = which
#define SINGLE(NAME, most, which)                                                                  \
    { CALL(NAME, singles, most, which), .large = &large_single }

static const conform_case composites[] = {
    SINGLE(softmax, ROWS, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(rms, ROWS, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(center, ROWS, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(l2, ROWS, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(sum_squares, ROWS, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(normalised, ROWS, EDGE(NAN) | EDGE(INF)),
    SINGLE(relu, 0, EDGES),
    SINGLE(silu, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(gelu, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(gelu_erf, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(gelu_quick, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(softplus, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    {CALL(hadamard, hadamards, ROWS, EDGE(NAN) | EDGE(INF)), .large = &large_hadamard},
    {CALL(weighted, weighteds, ROWS, EDGE(NAN))},
};
KIND(composites, composites);

/* --- recurrences ------------------------------------------------------------------------------ */

static void keep(conform_build *c, ggl_tensor *s, ggl_tensor *x) {
    OP2(c, KEEP, s, x);
}
static ggl_tensor *reshape3(conform_build *c, ggl_tensor *x, int64_t a, int64_t b, int64_t d) {
    return OP1N(c, RESHAPE, x, 3, (double)a, (double)b, (double)d);
}
/* outer(a [m, h], b [n, h]) -> [m, n, h] */
static ggl_tensor *outer(conform_build *c, ggl_tensor *a, ggl_tensor *b) {
    if (!a || !b)
        return NULL;
    return OP2(c, MUL, reshape3(c, a, a->ne[0], 1, a->ne[1]),
               reshape3(c, b, 1, b->ne[0], b->ne[1]));
}

/* size: length of a row, how many rows. */
static const conform_form recents[] = {{.size = {9, 2}, .n = 7},
                                       {.size = {700, 4}, .n = 7, .n_slots = 2},
                                       {.size = {1, 2}, .n = 3},
                                       {.size = {65, 4}, .n = 20, .n_batch = 9, .view = 1}};
static ggl_tensor *build_recent(conform_build *c) {
    double n = (double)c->f.size[0], k = (double)c->f.size[1];
    case_slots(c);
    ggl_tensor *x = VALUE(c, c->f.size[0]), **p = ggl_body_begin(c->g, &x, 1);
    if (!p)
        return NULL;
    ggl_tensor *s = OP0(c, STATE, 2, n, k - 1);
    ggl_tensor *all = OP2N(c, CONCAT, s, OP1N(c, RESHAPE, p[0], 2, n, 1), 1, 1);
    keep(c, s, OP1N(c, SPLIT, all, 3, 1, 1, k - 1));
    return end(c, "recent", all, 1, k);
}

/* size: length of a row, how many of them have a weight. The text is that of `recent` in a plain
 * body. */
static const conform_form convs[] = {{.size = {9, 2}, .n = 7},
                                     {.size = {700, 4}, .n = 7, .n_slots = 2},
                                     {.size = {1, 2}, .n = 3},
                                     {.size = {33, 3}, .n = 7, .n_slots = 2},
                                     {.size = {5, 19}, .n = 30, .n_batch = 11},
                                     {.size = {65, 4}, .n = 20, .n_batch = 9, .view = 1}};
static ggl_tensor *build_short_conv(conform_build *c) {
    const int64_t n = c->f.size[0], k = c->f.size[1];
    c->about = 1;
    case_slots(c);
    ggl_tensor *src[2] = {VALUE(c, n), case_weight(c, GGL_F32, DIMS(k, n))},
               **p = ggl_body_begin(c->g, src, 2);
    if (!p)
        return NULL;
    ggl_tensor *w = p[1], *x = p[0], **in = ggl_body_begin(c->g, &x, 1);
    if (!in)
        return NULL;
    ggl_tensor *s = OP0(c, STATE, 2, (double)n, (double)(k - 1));
    ggl_tensor *all = OP2N(c, CONCAT, s, OP1N(c, RESHAPE, in[0], 2, (double)n, 1), 1, 1);
    keep(c, s, OP1N(c, SPLIT, all, 3, 1, 1, (double)(k - 1)));
    all = end(c, "recent", all, 1, (double)k);
    ggl_tensor *y = OP1(c, SUM, OP2(c, MUL, OP1(c, TRANSPOSE, all), w));
    return end(c, "short_conv", OP1N(c, RESHAPE, y, 1, (double)n), 0, 0);
}

/* x [n, g] -> [n, h]: repeats each row for the heads of its group. */
static ggl_tensor *each_head(conform_build *c, ggl_tensor *x, int64_t g, int64_t h) {
    const int64_t n = c->f.size[0];
    x = OP1N(c, REPEAT, reshape3(c, x, n, 1, g), 3, (double)n, (double)(h / g), (double)g);
    return OP1N(c, RESHAPE, x, 2, (double)n, (double)h);
}

/* size: lengths of rows of keys and values, heads. The fourth: 1 or 3: each element of a key has its
 * own decay; 2 or 3: two heads share a query and a key; 4: all heads do. */
static const conform_form deltas[] = {{.size = {32, 8, 3}, .n = 7},
                                      {.size = {37, 20, 3}, .n = 7, .n_slots = 2},
                                      {.size = {37, 20, 3, 1}, .n = 7, .n_slots = 2},
                                      {.size = {37, 20, 4, 2}, .n = 7, .n_slots = 2},
                                      {.size = {37, 20, 6, 3}, .n = 7, .n_slots = 2},
                                      {.size = {16, 40, 3, 4}, .n = 7},
                                      {.size = {1, 1, 1}, .n = 7},
                                      {.size = {64, 64, 2}, .n = 33, .n_batch = 16},
                                      {.size = {64, 33, 2, 1}, .n = 33, .n_batch = 16}};
static ggl_tensor *build_gated_delta_rule(conform_build *c) {
    int64_t dk = c->f.size[0], dv = c->f.size[1], h = c->f.size[2];
    const int64_t form = c->f.size[3], groups = form == 4 ? 1 : form >= 2 ? h / 2 : h;
    const bool each = form == 1 || form == 3;
    c->about = 1;
    case_slots(c);
    ggl_tensor *src[5] = {VALUE(c, dk, groups), VALUE(c, dk, groups), VALUE(c, dv, h),
                          each ? case_input(c, true, FILL_SMALL, 0, DIMS(dk, h))
                               : case_input(c, true, FILL_SMALL, 0, DIMS(h)),
                          case_input(c, true, FILL_SMALL, 0, DIMS(h))};
    ggl_tensor **p = ggl_body_begin(c->g, src, 5);
    if (!p)
        return NULL;
    ggl_tensor *q = each_head(c, p[0], groups, h), *k = each_head(c, p[1], groups, h);
    ggl_tensor *v = p[2], *g = p[3], *beta = p[4];
    ggl_tensor *s = OP0(c, STATE, 3, (double)dk, (double)dv, (double)h);
    ggl_tensor *left = OP2(c, MUL, s, reshape3(c, OP1(c, EXP, g), each ? dk : 1, 1, h));
    ggl_tensor *error = OP2(c, MUL, OP2(c, SUB, v, case_linear(c, k, left, NULL)),
                            OP1N(c, RESHAPE, beta, 2, 1, (double)h));
    ggl_tensor *next = OP2(c, ADD, left, outer(c, k, error));
    keep(c, s, next);
    ggl_tensor *y = OP2(c, DIV, case_linear(c, q, next, NULL), NUMBER(c, sqrt((double)dk)));
    return end(c, "gated_delta_rule", y, 0, 0);
}

/* size: lengths of rows of the state and of x, heads. The fourth: 1: two heads share a row of b
 * and c; 2: all heads do, and each element has its own decay, as in models where every channel
 * is a head. */
static const conform_form scans[] = {{.size = {16, 5, 4}, .n = 7},
                                     {.size = {19, 21, 4}, .n = 7, .n_slots = 2},
                                     {.size = {19, 21, 4, 1}, .n = 7, .n_slots = 2},
                                     {.size = {1, 1, 1}, .n = 7},
                                     {.size = {16, 1, 70, 2}, .n = 9, .n_slots = 2},
                                     {.size = {7, 1, 5, 2}, .n = 9},
                                     {.size = {16, 3, 8, 2}, .n = 9},
                                     {.size = {64, 16, 2}, .n = 33, .n_batch = 16}};
static ggl_tensor *build_ssm_scan(conform_build *c) {
    int64_t n = c->f.size[0], d = c->f.size[1], h = c->f.size[2];
    const bool each = c->f.size[3] == 2;
    int64_t g = each ? 1 : c->f.size[3] == 1 ? h / 2 : h;
    c->about = 1;
    case_slots(c);
    ggl_tensor *src[5] = {VALUE(c, d, h), case_input(c, true, FILL_POSITIVE, 0, DIMS(h)),
                          each ? case_input(c, true, FILL_SMALL, 0, DIMS(n, h))
                               : case_input(c, true, FILL_SMALL, 0, DIMS(h)),
                          g == 1 ? VALUE(c, n) : VALUE(c, n, g),
                          g == 1 ? VALUE(c, n) : VALUE(c, n, g)};
    ggl_tensor **p = ggl_body_begin(c->g, src, 5);
    if (!p)
        return NULL;
    ggl_tensor *x = p[0], *dt = p[1], *a = p[2], *b = p[3], *cc = p[4];
    ggl_tensor *s = OP0(c, STATE, 3, (double)n, (double)d, (double)h);
    ggl_tensor *step = OP1N(c, RESHAPE, dt, 2, 1, (double)h);
    ggl_tensor *decay =
        reshape3(c, OP1(c, EXP, OP2(c, MUL, a, each ? step : dt)), each ? n : 1, 1, h);
    ggl_tensor *next =
        OP2(c, ADD, OP2(c, MUL, s, decay), outer(c, each_head(c, b, g, h), OP2(c, MUL, x, step)));
    keep(c, s, next);
    return end(c, "ssm_scan", case_linear(c, each_head(c, cc, g, h), next, NULL), 0, 0);
}

/* size: lengths of rows of keys and values, heads. */
static const conform_form linears[] = {{.size = {32, 8, 3}, .n = 7},
                                       {.size = {37, 20, 3}, .n = 7, .n_slots = 2},
                                       {.size = {64, 64, 2}, .n = 33, .n_batch = 16}};
static ggl_tensor *build_gated_linear_attention(conform_build *c) {
    int64_t dk = c->f.size[0], dv = c->f.size[1], h = c->f.size[2];
    c->about = 1;
    case_slots(c);
    ggl_tensor *src[4] = {VALUE(c, dk, h), VALUE(c, dk, h), VALUE(c, dv, h),
                          case_input(c, true, FILL_SMALL, 0, DIMS(dk, h))};
    ggl_tensor **p = ggl_body_begin(c->g, src, 4);
    if (!p)
        return NULL;
    ggl_tensor *s = OP0(c, STATE, 3, (double)dk, (double)dv, (double)h);
    ggl_tensor *next =
        OP2(c, ADD, OP2(c, MUL, s, reshape3(c, p[3], dk, 1, h)), outer(c, p[1], p[2]));
    keep(c, s, next);
    return end(c, "gated_linear_attention", case_linear(c, p[0], next, NULL), 0, 0);
}

/* size: length of a head's row, heads. */
static const conform_form wkvs[] = {{.size = {32, 3}, .n = 7},
                                    {.size = {37, 3}, .n = 7, .n_slots = 2},
                                    {.size = {1, 1}, .n = 7},
                                    {.size = {64, 2}, .n = 33, .n_batch = 16}};
static ggl_tensor *build_wkv6(conform_build *c) {
    int64_t d = c->f.size[0], h = c->f.size[1];
    c->about = 1;
    case_slots(c);
    ggl_tensor *src[5] = {VALUE(c, d, h), VALUE(c, d, h), VALUE(c, d, h),
                          case_input(c, true, FILL_SMALL, 0, DIMS(d, h)), VALUE(c, d, h)};
    ggl_tensor **p = ggl_body_begin(c->g, src, 5);
    if (!p)
        return NULL;
    ggl_tensor *s = OP0(c, STATE, 3, (double)d, (double)d, (double)h), *now = outer(c, p[1], p[2]);
    ggl_tensor *seen = OP2(c, ADD, s, OP2(c, MUL, now, reshape3(c, p[4], d, 1, h)));
    ggl_tensor *y = case_linear(c, p[0], seen, NULL);
    keep(c, s, OP2(c, ADD, OP2(c, MUL, s, reshape3(c, p[3], d, 1, h)), now));
    return end(c, "wkv6", y, 0, 0);
}

static ggl_tensor *build_wkv7(conform_build *c) {
    int64_t d = c->f.size[0], h = c->f.size[1];
    c->about = 1;
    case_slots(c);
    ggl_tensor *src[6] = {VALUE(c, d, h),
                          case_input(c, true, FILL_SMALL, 0, DIMS(d, h)),
                          VALUE(c, d, h),
                          VALUE(c, d, h),
                          case_input(c, true, FILL_SMALL, 0, DIMS(d, h)),
                          case_input(c, true, FILL_SMALL, 0, DIMS(d, h))};
    ggl_tensor **p = ggl_body_begin(c->g, src, 6);
    if (!p)
        return NULL;
    ggl_tensor *s = OP0(c, STATE, 3, (double)d, (double)d, (double)h);
    ggl_tensor *back = outer(c, p[5], case_linear(c, p[4], s, NULL));
    ggl_tensor *next = OP2(c, ADD, OP2(c, ADD, OP2(c, MUL, s, reshape3(c, p[1], d, 1, h)), back),
                           outer(c, p[2], p[3]));
    keep(c, s, next);
    return end(c, "wkv7", case_linear(c, p[0], next, NULL), 0, 0);
}

/* A recurrence that no backend knows by name: products with weights in a loop. */
static const conform_form owns[] = {{.size = {64}, .n_slots = 2}, {.size = {1}}};
static ggl_tensor *build_of_my_own(conform_build *c) {
    int64_t k = case_blocks(c, c->f.size[0]);
    c->about = 1;
    case_slots(c);
    ggl_tensor *w = case_weight(c, c->f.type, DIMS(k, k)), *x = VALUE(c, k),
               **p = ggl_body_begin(c->g, &x, 1);
    if (!p)
        return NULL;
    ggl_tensor *s = OP0(c, STATE, 1, (double)k);
    ggl_tensor *next = OP1(c, TANH, OP2(c, ADD, p[0], case_linear(c, s, w, NULL)));
    keep(c, s, next);
    return end(c, "of_my_own", OP2(c, ADD, next, case_linear(c, next, w, NULL)), 0, 0);
}

static const conform_form large_delta = {.size = {128, 128, 16}, .n = 64};
static const conform_form large_conv = {.size = {6144, 4}, .n = 64};
static const conform_form large_wkv = {.size = {64, 32}, .n = 64};
static const conform_form large_scan = {.size = {128, 64, 24}, .n = 64};

static const conform_case recurrences[] = {
    {CALL(recent, recents, 0, EDGE(NAN))},
    {CALL(short_conv, convs, ROWS, EDGE(NAN)), .large = &large_conv},
    {CALL(gated_delta_rule, deltas, 2e-5, EDGE(NAN)), .large = &large_delta},
    {CALL(ssm_scan, scans, ROWS, EDGE(NAN)), .large = &large_scan},
    {CALL(gated_linear_attention, linears, ROWS, EDGE(NAN)), .large = &large_delta},
    {CALL(wkv6, wkvs, ROWS, EDGE(NAN)), .large = &large_wkv},
    {CALL(wkv7, wkvs, 2e-5, EDGE(NAN)), .large = &large_wkv},
    {CALL(of_my_own, owns, 1e-4, 0), .bound_bf16 = 0.1, .bound_quantized = 0.1, .bound_halves = 0.1,
     .types = CONFORM_SOME_WEIGHT},
};
KIND(recurrences, recurrences);
