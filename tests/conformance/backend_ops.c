/* conformance.cpu: every operator of ops.def, and every named composite, on the CPU backend: equal
 * bits for any threads, instruction set, chunking, with and without the composite's name; and the
 * reference backend's values within a bound. */
#include "backend_case.h"

/* Bounds. Elementwise: a few roundings. Rows and products of length n: n/16 roundings in each of
 * sixteen sums, of terms that may cancel. bf16: activations have 8 bits. Quantized: activations
 * have 7 bits with one scale for 32. */
#define ELEMENTWISE 1e-6
#define ROWS        4e-6

/* --- elementwise --------------------------------------------------------------------------- */

/* Forms: same shape; row against matrix; numbers; a factor for each head; unbatched; views; long;
 * and two of one head. */
enum { PAIRS = 8 };
static void pair(run_case *c, ggl_tensor **a, ggl_tensor **b) {
    switch (c->variant) {
    case 0:
        *a = VALUE(c, 7, 3), *b = VALUE(c, 7, 3);
        break;
    case 1:
        *a = VALUE(c, 33, 5), *b = VALUE(c, 33);
        break;
    case 2:
        *a = NUMBER(c, 0.7), *b = VALUE(c, 19);
        break;
    case 3:
        *a = VALUE(c, 16, 4, 2), *b = VALUE(c, 1, 4);
        break;
    case 4:
        *a = VALUE(c, 5, 1, 3), *b = case_input(c, false, FILL_ANY, 0, DIMS(5, 4));
        break;
    case 5:
        *a = OP1N(c, SPLIT, VALUE(c, 30, 3), 3, 0, 7, 9);
        *b = OP1N(c, SPLIT, VALUE(c, 9, 5), 3, 1, 2, 3);
        break;
    case 6:
        *a = VALUE(c, 5000), *b = VALUE(c, 5000);
        break;
    default:
        *a = VALUE(c, 1, 6), *b = OP1N(c, SPLIT, VALUE(c, 4, 6), 3, 0, 2, 1);
        break;
    }
}

#define BINARY(NAME)                                                                               \
    static ggl_tensor *build_##NAME(run_case *c) {                                                 \
        ggl_tensor *a, *b;                                                                         \
        pair(c, &a, &b);                                                                           \
        return OP2(c, NAME, a, b);                                                                 \
    }
BINARY(ADD)
BINARY(SUB)
BINARY(MUL)
BINARY(DIV)
BINARY(MOD)
BINARY(EQ)
BINARY(NE) BINARY(LT) BINARY(LE) BINARY(GT) BINARY(GE) BINARY(MIN) BINARY(MAX)

    static ggl_tensor *build_POW(run_case *c) {
    ggl_tensor *a = case_input(c, true, FILL_POSITIVE, 0, DIMS(9, 3));
    return OP2(c, POW, a, c->variant ? NUMBER(c, 2) : VALUE(c, 9));
}

static ggl_tensor *build_WHERE(run_case *c) {
    ggl_tensor *a, *b;
    pair(c, &a, &b);
    return op(c, GGL_OP_WHERE, OP2(c, GT, a, NUMBER(c, 0.2)), b, a, 0, NULL);
}

/* Forms: rows, a single number, a long row, a view. */
enum { SINGLES = 4 };
static ggl_tensor *single(run_case *c, fill_kind fill) {
    switch (c->variant) {
    case 0:
        return case_input(c, true, fill, 0, DIMS(13, 3));
    case 1:
        return case_input(c, true, fill, 0, DIMS(1));
    case 2:
        return case_input(c, true, fill, 0, DIMS(4099));
    default:
        return OP1N(c, SPLIT, case_input(c, true, fill, 0, DIMS(20, 2, 3)), 3, 0, 3, 11);
    }
}

#define UNARY(NAME, fill)                                                                          \
    static ggl_tensor *build_##NAME(run_case *c) {                                                 \
        return OP1(c, NAME, single(c, fill));                                                      \
    }
UNARY(EXP, FILL_ANY)
UNARY(LOG, FILL_POSITIVE)
UNARY(SQRT, FILL_POSITIVE)
UNARY(FLOOR, FILL_ANY)
UNARY(ABS, FILL_ANY)
UNARY(TANH, FILL_ANY)
UNARY(ERF, FILL_ANY) UNARY(SIGMOID, FILL_ANY) UNARY(SIN, FILL_ANY) UNARY(COS, FILL_ANY)

    static ggl_tensor *build_CAST(run_case *c) {
    static const ggl_type types[] = {GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    if (c->variant == 4)
        return OP1(c, CAST, case_input(c, true, FILL_INDEX, 1000, DIMS(3)));
    return OP2(c, ADD, VALUE(c, 64), case_weight(c, types[c->variant], DIMS(64)));
}

/* --- along dimensions ---------------------------------------------------------------------- */

enum { REDUCTIONS = 6 };
static ggl_tensor *reduce(run_case *c, ggl_op o) {
    static const double dim[REDUCTIONS] = {0, 1, 2, 0, 1, 0};
    ggl_tensor *x = c->variant < 3    ? VALUE(c, 9, 4, 3)
                    : c->variant == 3 ? VALUE(c, 77)
                    : c->variant == 4 ? VALUE(c, 35, 6)
                                      : OP1N(c, SPLIT, VALUE(c, 40, 3), 3, 0, 5, 19);
    return op(c, o, x, NULL, NULL, 1, &dim[c->variant]);
}
static ggl_tensor *build_SUM(run_case *c) {
    return reduce(c, GGL_OP_SUM);
}
static ggl_tensor *build_AMAX(run_case *c) {
    return reduce(c, GGL_OP_AMAX);
}
static ggl_tensor *build_RANK(run_case *c) {
    return OP1(c, RANK,
               c->variant ? OP1(c, FLOOR, VALUE(c, 17, 3)) : VALUE(c, 33)); /* with equals */
}
static ggl_tensor *build_TOPK(run_case *c) {
    ggl_tensor *x = c->variant ? OP1(c, FLOOR, VALUE(c, 40)) : VALUE(c, 33);
    return OP1N(c, TOPK, x, 1, c->variant ? 40 : 5);
}

/* --- moves --------------------------------------------------------------------------------- */

static ggl_tensor *build_PICK(run_case *c) {
    static const ggl_type types[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
    if (c->variant < 5)
        return OP2(c, PICK, case_weight(c, types[c->variant], DIMS(64, 11)),
                   case_input(c, true, FILL_INDEX, 11, 0, NULL));
    if (c->variant == 5)
        return OP2(c, PICK, VALUE(c, 12), case_input(c, true, FILL_INDEX, 12, DIMS(4)));
    if (c->variant == 6)
        return OP2(c, PICK, VALUE(c, 6, 9),
                   case_input(c, true, FILL_INDEX, 12, DIMS(4))); /* some outside: NaN */
    return OP2(c, PICK, VALUE(c, 6, 3, 5), case_input(c, true, FILL_INDEX, 5, DIMS(2)));
}
static ggl_tensor *build_RESHAPE(run_case *c) {
    ggl_tensor *x = OP1N(c, SPLIT, VALUE(c, 12, 6), 3, 0, 2, 8);
    ggl_tensor *y = c->variant ? OP1N(c, RESHAPE, x, 2, 12, 4)
                               : OP1N(c, RESHAPE, x, 1, 48); /* neither is a view */
    return OP1(c, ABS, y);
}
static ggl_tensor *build_SPLIT(run_case *c) {
    return OP1(c, ABS, OP1N(c, SPLIT, VALUE(c, 12, 6, 3), 3, c->variant, 1, 2));
}
static ggl_tensor *build_CONCAT(run_case *c) {
    ggl_tensor *x = c->variant == 0   ? VALUE(c, 5, 3)
                    : c->variant == 1 ? VALUE(c, 8, 2)
                                      : VALUE(c, 8, 3, 2);
    ggl_tensor *y = c->variant == 0   ? VALUE(c, 7, 3)
                    : c->variant == 1 ? case_input(c, false, FILL_ANY, 0, DIMS(8, 3))
                                      : VALUE(c, 8, 3);
    return OP2N(c, CONCAT, x, y, 1, c->variant);
}
static ggl_tensor *build_REPEAT(run_case *c) {
    return c->variant ? OP1N(c, REPEAT, VALUE(c, 1, 4), 3, 7, 4, 3)
                      : OP1N(c, REPEAT, VALUE(c, 9, 1, 2), 3, 9, 3, 2);
}
static ggl_tensor *build_TRANSPOSE(run_case *c) {
    static const double dims[4][2] = {{0, 1}, {1, 2}, {0, 2}, {0, 1}};
    ggl_tensor *x = c->variant == 3 ? VALUE(c, 19) : VALUE(c, 9, 4, 3);
    return op(c, GGL_OP_TRANSPOSE, x, NULL, NULL, 2, dims[c->variant]);
}
static ggl_tensor *build_IOTA(run_case *c) { /* constant, so that the fold computes it */
    return OP2(c, ADD, VALUE(c, 9), OP0(c, IOTA, 1, 9));
}

/* --- products ------------------------------------------------------------------------------ */

static const ggl_type weight_type[] = {GGL_F32, GGL_F16, GGL_BF16, GGL_Q8_0, GGL_Q4_0};

static ggl_tensor *linear_of(run_case *c, ggl_type type) {
    int64_t k = 64 * (1 + c->variant % 3 * 2), n = 11 + c->variant % 4 * 30;
    ggl_tensor *bias = c->variant % 2 ? case_weight(c, GGL_F32, DIMS(n)) : NULL;
    ggl_tensor *x = c->variant == 3 ? VALUE(c, k, 3) : VALUE(c, k);
    return ggl_linear(c->g, x, case_weight(c, type, DIMS(k, n)), bias);
}
#define LINEAR(NAME)                                                                               \
    static ggl_tensor *linear_##NAME(run_case *c) {                                                \
        return linear_of(c, GGL_##NAME);                                                           \
    }
LINEAR(F32)
LINEAR(F16)
LINEAR(BF16)
LINEAR(Q8_0)
LINEAR(Q4_0)

/* The n-th type that a weight can have; there are N_WEIGHT_TYPES. */
enum { N_WEIGHT_TYPES = 25 };
static ggl_type nth_weight_type(int n) {
    for (int i = 0; ggl_type_at(i); i++) {
        ggl_type t = ggl_type_at(i)->type;
        if (t != GGL_I32 && t != GGL_F64 && n-- == 0)
            return t;
    }
    (void)TEST_SAY("there are %d types of weights fewer", n + 1);
    return GGL_F32;
}
static ggl_tensor *linear_of_all(run_case *c) {
    return ggl_linear(c->g, VALUE(c, 512),
                      case_weight(c, nth_weight_type(c->variant), DIMS(512, 37)), NULL);
}
static ggl_tensor *rows_of_all(run_case *c) {
    return OP2(c, PICK, case_weight(c, nth_weight_type(c->variant), DIMS(512, 11)),
               case_input(c, true, FILL_INDEX, 11, 0, NULL));
}

static ggl_tensor *linear_odd(run_case *c) { /* rows that no kernel's width divides, x a view, x
                                                    with a dimension that broadcasts */
    int64_t k = 37 + c->variant;
    ggl_tensor *x = OP1N(c, SPLIT, VALUE(c, k + 9), 3, 0, 3, k);
    return ggl_linear(c->g, x, case_weight(c, weight_type[c->variant], DIMS(k, 21, 2)), NULL);
}
static ggl_tensor *linear_heads(
    run_case *c) { /* a matrix for each head; a value as matrix; the batch in the matrix */
    switch (c->variant) {
    case 0:
        return ggl_linear(c->g, VALUE(c, 32, 4), case_weight(c, GGL_Q8_0, DIMS(32, 12, 4)), NULL);
    case 1:
        return ggl_linear(c->g, VALUE(c, 32, 4), VALUE(c, 32, 12, 4), NULL);
    case 2:
        return ggl_linear(c->g, VALUE(c, 20), VALUE(c, 20, 7), NULL);
    case 3:
        return ggl_linear(c->g, VALUE(c, 20, 3), VALUE(c, 20, 7), VALUE(c, 7, 3));
    default:
        return ggl_linear(c->g, VALUE(c, 20, 2, 3),
                          case_input(c, false, FILL_ANY, 0, DIMS(20, 7, 2)), NULL);
    }
}
static ggl_tensor *linear_experts(run_case *c) { /* forms: type; one x for all, or one each; with
                                                    bias; one expert without a list */
    ggl_type type = weight_type[c->variant % 5];
    int64_t k = 64, n = 40, n_expert = 6;
    ggl_tensor *w = case_weight(c, type, DIMS(k, n, n_expert)), *bias = NULL;
    ggl_tensor *e = c->variant == 9 ? case_input(c, true, FILL_INDEX, n_expert, 0, NULL)
                                    : case_input(c, true, FILL_INDEX, n_expert, DIMS(3));
    ggl_tensor *x = c->variant < 5 || c->variant == 9 ? VALUE(c, k) : VALUE(c, k, 3);
    if (c->variant == 7)
        bias = OP2(c, PICK, case_weight(c, GGL_F32, DIMS(n, n_expert)), e);
    return ggl_linear(c->g, x, OP2(c, PICK, w, e), bias);
}
/* The three that share an operand, and one after it was overwritten: what was prepared must be the
 * right one. */
static ggl_tensor *linear_shared(run_case *c) {
    ggl_type type = weight_type[c->variant];
    ggl_tensor *x = VALUE(c, 64), *sum = NULL;
    for (int i = 0; i < 4; i++) {
        ggl_tensor *h = ggl_linear(c->g, x, case_weight(c, type, DIMS(64, 64)), NULL);
        ggl_tensor *g = ggl_linear(c->g, x, case_weight(c, type, DIMS(64, 64)), NULL);
        x = OP1(c, TANH, OP2(c, MUL, h, OP2(c, ADD, g, NUMBER(c, 0.5))));
        sum = sum ? OP2(c, ADD, sum, x) : x;
    }
    return sum;
}

/* --- rope and attention -------------------------------------------------------------------- */

static ggl_tensor *rope_of(run_case *c, ggl_op o) {
    double f[12];
    for (int i = 0; i < 12; i++)
        f[i] = pow(100, -i / 12.0);
    case_input(c, true, FILL_POS, 1, 0, NULL);
    ggl_tensor *x = c->variant == 1 ? VALUE(c, 31, 3) : VALUE(c, 24, 3);
    ggl_tensor *freq = c->variant == 2 ? case_weight(c, GGL_F32, DIMS(9))
                                       : ggl_graph_const(c->g, 1, (int64_t[]){12}, f);
    ggl_tensor *y = op(c, o, x, freq, NULL, 1, (double[]){c->variant ? 1.3 : NAN});
    return c->variant == 3 ? OP2(c, ADD, y, op(c, o, VALUE(c, 24), freq, NULL, 0, NULL))
                           : y; /* two tables */
}
static ggl_tensor *rope_half(run_case *c) {
    return rope_of(c, GGL_OP_ROPE_HALF);
}
static ggl_tensor *rope_pair(run_case *c) {
    return rope_of(c, GGL_OP_ROPE_PAIR);
}

/* q heads over g store heads, d and e, and the options. */
static ggl_tensor *attend_of(run_case *c, int64_t n_slots, int64_t d, int64_t e, int64_t h,
                             int64_t g, double window, double cap, int extra) {
    case_input(c, true, FILL_POS, n_slots, 0, NULL);
    case_input(c, true, FILL_SLOT, n_slots, 0, NULL);
    ggl_tensor *q = VALUE(c, d, h), *k = OP1(c, ABS, VALUE(c, d, g)),
               *v = e < 0 ? OP1N(c, SPLIT, k, 3, 0, 0, -e) : VALUE(c, e, g);
    ggl_tensor *src[4] = {q, OP2(c, CACHE, k, v), NULL, NULL};
    if (extra & 1)
        src[2] = case_weight(c, GGL_F32, DIMS(h));
    if (extra & 2)
        src[3] = case_weight(c, GGL_F32, DIMS(h));
    return ggl_graph_op(c->g, GGL_OP_ATTEND, src, 4, (double[]){extra & 4 ? 0.4 : NAN, window, cap},
                        3);
}
static ggl_tensor *attend_short(run_case *c) {
    static const struct {
        int64_t slots, d, e, h, g;
        double window, cap;
        int extra;
    } form[] = {{1, 16, 16, 4, 4, NAN, NAN, 0}, {1, 24, 8, 6, 2, NAN, NAN, 4},
                {1, 16, 16, 8, 1, 20, NAN, 0},  {1, 16, 20, 4, 2, NAN, 5, 1},
                {1, 9, 13, 3, 3, NAN, NAN, 2},  {3, 16, 16, 4, 2, NAN, NAN, 3},
                {2, 32, 32, 5, 5, 70, 3, 7},    {1, 24, -16, 4, 1, NAN, NAN, 0},
                {1, 64, 64, 8, 2, 65, NAN, 0},  {3, 20, -20, 6, 2, 33, NAN, 1}};
    int v = c->variant;
    return attend_of(c, form[v].slots, form[v].d, form[v].e, form[v].h, form[v].g, form[v].window,
                     form[v].cap, form[v].extra);
}
/* Keys and values of every type: all rows; a ring that has turned, two sequences; values that are a
 * part of the keys. */
static ggl_tensor *attend_kept(run_case *c) {
    switch (c->variant / 25) {
    case 0:
        return attend_of(c, 1, 64, 32, 8, 2, NAN, NAN, 0);
    case 1:
        return attend_of(c, 2, 32, 96, 6, 3, 40, 3, 7);
    default:
        return attend_of(c, 1, 96, -40, 9, 1, NAN, NAN, 4);
    }
}
static ggl_tensor *attend_long(
    run_case *c) { /* several spans of 1024, the last tokens one by one */
    return attend_of(c, 1, 8, 8, 2, c->variant ? 1 : 2, c->variant ? 1100 : NAN, NAN, 0);
}
/* Two layers read one cache. */
static ggl_tensor *attend_twice(run_case *c) {
    case_input(c, true, FILL_POS, 1, 0, NULL);
    case_input(c, true, FILL_SLOT, 1, 0, NULL);
    ggl_tensor *kv = OP2(c, CACHE, VALUE(c, 16, 2), VALUE(c, 16, 2));
    ggl_tensor *a =
        ggl_graph_op(c->g, GGL_OP_ATTEND, (ggl_tensor *[]){VALUE(c, 16, 4), kv}, 2, NULL, 0);
    return ggl_graph_op(c->g, GGL_OP_ATTEND, (ggl_tensor *[]){a, kv}, 2, (double[]){NAN, 9}, 2);
}

/* --- composites ---------------------------------------------------------------------------- */

/* Ends a body as the prelude's op of that name, or nameless. */
static ggl_tensor *end(run_case *c, const char *name, ggl_tensor *y, int n_num, double num) {
    return ggl_body_end(c->g, c->named ? name : NULL, y, &num, n_num);
}
static ggl_tensor *mean(run_case *c, ggl_tensor *x) {
    return OP2(c, DIV, OP1(c, SUM, x), NUMBER(c, (double)x->ne[0]));
}

#define COMPOSITE(fn, name, n_num, num, expression)                                                \
    static ggl_tensor *build_##fn(run_case *c) {                                                   \
        ggl_tensor *x = single(c, FILL_ANY);                                                       \
        ggl_tensor **p = ggl_body_begin(c->g, &x, 1);                                              \
        if (!p)                                                                                    \
            return NULL;                                                                           \
        x = p[0];                                                                                  \
        return end(c, name, expression, n_num, num);                                               \
    }
COMPOSITE(softmax, "softmax", 0, 0,
          OP2(c, DIV, OP1(c, EXP, OP2(c, SUB, x, OP1(c, AMAX, x))),
              OP1(c, SUM, OP1(c, EXP, OP2(c, SUB, x, OP1(c, AMAX, x))))))
COMPOSITE(rms, "rms", 1, 1e-3,
          OP2(c, DIV, x, OP1(c, SQRT, OP2(c, ADD, mean(c, OP2(c, MUL, x, x)), NUMBER(c, 1e-3)))))
COMPOSITE(center, "center", 0, 0, OP2(c, SUB, x, mean(c, x)))
COMPOSITE(l2, "l2", 1, 1e-3,
          OP2(c, DIV, x,
              OP1(c, SQRT, OP2(c, MAX, OP1(c, SUM, OP2(c, MUL, x, x)), NUMBER(c, 1e-3 * 1e-3)))))
COMPOSITE(relu, "relu", 0, 0, OP2(c, MAX, x, NUMBER(c, 0)))
COMPOSITE(silu, "silu", 0, 0, OP2(c, MUL, x, OP1(c, SIGMOID, x)))
COMPOSITE(
    gelu, "gelu", 0, 0,
    OP2(c, MUL, OP2(c, MUL, NUMBER(c, 0.5), x),
        OP2(c, ADD, NUMBER(c, 1),
            OP1(c, TANH,
                OP2(c, MUL, NUMBER(c, sqrt(2 / 3.14159265358979323846)),
                    OP2(c, ADD, x,
                        OP2(c, MUL, OP2(c, MUL, OP2(c, MUL, NUMBER(c, 0.044715), x), x), x)))))))
COMPOSITE(gelu_erf, "gelu_erf", 0, 0,
          OP2(c, MUL, OP2(c, MUL, NUMBER(c, 0.5), x),
              OP2(c, ADD, NUMBER(c, 1), OP1(c, ERF, OP2(c, DIV, x, NUMBER(c, sqrt(2)))))))
COMPOSITE(gelu_quick, "gelu_quick", 0, 0,
          OP2(c, MUL, x, OP1(c, SIGMOID, OP2(c, MUL, NUMBER(c, 1.702), x))))
COMPOSITE(softplus, "softplus", 0, 0,
          OP2(c, ADD, OP2(c, MAX, x, NUMBER(c, 0)),
              OP1(c, LOG,
                  OP2(c, ADD, NUMBER(c, 1),
                      OP1(c, EXP, OP2(c, SUB, NUMBER(c, 0), OP1(c, ABS, x)))))))

static ggl_tensor *build_normalised(run_case *c) {
    ggl_tensor *x = single(c, FILL_POSITIVE), **p = ggl_body_begin(c->g, &x, 1);
    return end(c, "normalised", OP2(c, DIV, p[0], OP1(c, SUM, p[0])), 0, 0);
}
static ggl_tensor *build_weighted(run_case *c) {
    ggl_tensor *src[2] = {VALUE(c, 21, 4), VALUE(c, 4)}, **p = ggl_body_begin(c->g, src, 2);
    return end(c, "weighted",
               OP1N(c, SUM, OP2(c, MUL, p[0], OP1N(c, RESHAPE, p[1], 2, 1, 4)), 1, 1), 0, 0);
}

static void keep(run_case *c, ggl_tensor *s, ggl_tensor *x) {
    OP2(c, KEEP, s, x);
}
static ggl_tensor *reshape3(run_case *c, ggl_tensor *x, int64_t a, int64_t b, int64_t d) {
    return OP1N(c, RESHAPE, x, 3, (double)a, (double)b, (double)d);
}

static ggl_tensor *build_recent(run_case *c) {
    int64_t n = c->variant ? 700 : 9, k = c->variant ? 4 : 2;
    case_input(c, true, FILL_SLOT, 1 + c->variant, 0, NULL);
    ggl_tensor *x = VALUE(c, n), **p = ggl_body_begin(c->g, &x, 1);
    ggl_tensor *s = OP0(c, STATE, 2, (double)n, (double)k - 1);
    ggl_tensor *all = OP2N(c, CONCAT, s, OP1N(c, RESHAPE, p[0], 2, (double)n, 1), 1, 1);
    keep(c, s, OP1N(c, SPLIT, all, 3, 1, 1, (double)k - 1));
    return end(c, "recent", all, 1, (double)k);
}

/* outer(a [m, h], b [n, h]) -> [m, n, h] */
static ggl_tensor *outer(run_case *c, ggl_tensor *a, ggl_tensor *b) {
    return OP2(c, MUL, reshape3(c, a, a->ne[0], 1, a->ne[1]),
               reshape3(c, b, 1, b->ne[0], b->ne[1]));
}

static ggl_tensor *build_delta(run_case *c) {
    int64_t dk = c->variant ? 37 : 32, dv = c->variant ? 20 : 8, h = 3;
    case_input(c, true, FILL_SLOT, 1 + c->variant, 0, NULL);
    ggl_tensor *src[5] = {VALUE(c, dk, h), VALUE(c, dk, h), VALUE(c, dv, h),
                          case_input(c, true, FILL_SMALL, 0, DIMS(h)),
                          case_input(c, true, FILL_SMALL, 0, DIMS(h))};
    ggl_tensor **p = ggl_body_begin(c->g, src, 5);
    if (!p)
        return NULL;
    ggl_tensor *q = p[0], *k = p[1], *v = p[2], *g = p[3], *beta = p[4];
    ggl_tensor *s = OP0(c, STATE, 3, (double)dk, (double)dv, (double)h);
    ggl_tensor *left = OP2(c, MUL, s, reshape3(c, OP1(c, EXP, g), 1, 1, h));
    ggl_tensor *error = OP2(c, MUL, OP2(c, SUB, v, ggl_linear(c->g, k, left, NULL)),
                            OP1N(c, RESHAPE, beta, 2, 1, (double)h));
    ggl_tensor *next = OP2(c, ADD, left, outer(c, k, error));
    keep(c, s, next);
    ggl_tensor *y = OP2(c, DIV, ggl_linear(c->g, q, next, NULL), NUMBER(c, sqrt((double)dk)));
    return end(c, "gated_delta_rule", y, 0, 0);
}

static ggl_tensor *build_scan(run_case *c) {
    int64_t n = c->variant ? 19 : 16, d = c->variant ? 21 : 5, h = 4;
    case_input(c, true, FILL_SLOT, 1 + c->variant, 0, NULL);
    ggl_tensor *src[5] = {VALUE(c, d, h), case_input(c, true, FILL_POSITIVE, 0, DIMS(h)),
                          case_input(c, true, FILL_SMALL, 0, DIMS(h)), VALUE(c, n, h),
                          VALUE(c, n, h)};
    ggl_tensor **p = ggl_body_begin(c->g, src, 5);
    if (!p)
        return NULL;
    ggl_tensor *x = p[0], *dt = p[1], *a = p[2], *b = p[3], *cc = p[4];
    ggl_tensor *s = OP0(c, STATE, 3, (double)n, (double)d, (double)h);
    ggl_tensor *left = OP2(c, MUL, s, reshape3(c, OP1(c, EXP, OP2(c, MUL, dt, a)), 1, 1, h));
    ggl_tensor *next =
        OP2(c, ADD, left, outer(c, b, OP2(c, MUL, x, OP1N(c, RESHAPE, dt, 2, 1, (double)h))));
    keep(c, s, next);
    return end(c, "ssm_scan", ggl_linear(c->g, cc, next, NULL), 0, 0);
}

/* A recurrence that no backend knows by name: products with weights in a loop. */
static ggl_tensor *build_own(run_case *c) {
    case_input(c, true, FILL_SLOT, 2, 0, NULL);
    ggl_tensor *w = case_weight(c, weight_type[c->variant], DIMS(64, 64)), *x = VALUE(c, 64),
               **p = ggl_body_begin(c->g, &x, 1);
    ggl_tensor *s = OP0(c, STATE, 1, 64);
    ggl_tensor *next = OP1(c, TANH, OP2(c, ADD, p[0], ggl_linear(c->g, s, w, NULL)));
    keep(c, s, next);
    return ggl_body_end(c->g, "of_my_own", OP2(c, ADD, next, ggl_linear(c->g, next, w, NULL)), NULL,
                        0);
}

/* --- the list ------------------------------------------------------------------------------ */

#define C(OPERATOR, fn, variants, bound)                                                           \
    { #fn, GGL_OP_##OPERATOR, fn, variants, bound, 0, 0, false, false }
#define N(OPERATOR, fn, variants, bound, tokens)                                                   \
    { #fn, GGL_OP_##OPERATOR, fn, variants, bound, tokens, 0, false, false }
#define K(fn, variants, bound)                                                                     \
    { #fn, GGL_OP_CALL, fn, variants, bound, 7, 0, true, false }
static const case_info elementwise[] = {
    C(ADD, build_ADD, PAIRS, ELEMENTWISE),
    C(SUB, build_SUB, PAIRS, ELEMENTWISE),
    C(MUL, build_MUL, PAIRS, ELEMENTWISE),
    C(DIV, build_DIV, PAIRS, ELEMENTWISE),
    C(POW, build_POW, 2, ELEMENTWISE),
    C(MOD, build_MOD, PAIRS, 2e-6),
    C(EQ, build_EQ, PAIRS, 0),
    C(NE, build_NE, PAIRS, 0),
    C(LT, build_LT, PAIRS, 0),
    C(LE, build_LE, PAIRS, 0),
    C(GT, build_GT, PAIRS, 0),
    C(GE, build_GE, PAIRS, 0),
    C(MIN, build_MIN, PAIRS, ELEMENTWISE),
    C(MAX, build_MAX, PAIRS, ELEMENTWISE),
    C(WHERE, build_WHERE, PAIRS, ELEMENTWISE),
    C(EXP, build_EXP, SINGLES, ELEMENTWISE),
    C(LOG, build_LOG, SINGLES, ELEMENTWISE),
    C(SQRT, build_SQRT, SINGLES, ELEMENTWISE),
    C(FLOOR, build_FLOOR, SINGLES, 0),
    C(ABS, build_ABS, SINGLES, 0),
    C(TANH, build_TANH, SINGLES, ELEMENTWISE),
    C(ERF, build_ERF, SINGLES, ELEMENTWISE),
    C(SIGMOID, build_SIGMOID, SINGLES, ELEMENTWISE),
    C(SIN, build_SIN, SINGLES, ELEMENTWISE),
    C(COS, build_COS, SINGLES, ELEMENTWISE),
    C(CAST, build_CAST, 5, ELEMENTWISE),
};
static const case_info rows[] = {
    C(SUM, build_SUM, REDUCTIONS, ROWS),
    C(AMAX, build_AMAX, REDUCTIONS, 0),
    C(RANK, build_RANK, 2, 0),
    C(TOPK, build_TOPK, 2, 0),
};
static const case_info moves[] = {
    C(PICK, build_PICK, 8, 0),           C(RESHAPE, build_RESHAPE, 2, 0),
    C(SPLIT, build_SPLIT, 3, 0),         C(CONCAT, build_CONCAT, 3, 0),
    C(REPEAT, build_REPEAT, 2, 0),       C(TRANSPOSE, build_TRANSPOSE, 4, 0),
    C(IOTA, build_IOTA, 1, ELEMENTWISE),
};
static const case_info products[] = {
    N(LINEAR, linear_F32, 4, ROWS, 20),
    N(LINEAR, linear_F16, 4, ROWS, 20),
    N(LINEAR, linear_BF16, 4, 1e-2, 20),
    N(LINEAR, linear_Q8_0, 4, 2e-2, 20),
    N(LINEAR, linear_Q4_0, 4, 2e-2, 20),
    C(LINEAR, linear_odd, 3, 1e-2),
    N(LINEAR, linear_of_all, N_WEIGHT_TYPES, 3e-2, 40),
    C(PICK, rows_of_all, N_WEIGHT_TYPES, 0),
    C(LINEAR, linear_heads, 5, 2e-2),
    N(LINEAR, linear_experts, 10, 3e-2, 30),
    N(LINEAR, linear_shared, 5, 0.1, 12),
};
static const case_info attention[] = {
    C(ROPE_HALF, rope_half, 4, ROWS),
    C(ROPE_PAIR, rope_pair, 4, ROWS),
    {"attend_short", GGL_OP_ATTEND, attend_short, 10, 2e-3, 150, 64, false, false},
    {"attend_twice", GGL_OP_ATTEND, attend_twice, 1, 2e-3, 40, 16, false, false},
};
static const case_info kept[] = {
    {"attend_kept", GGL_OP_ATTEND, attend_kept, 55, 2e-3, 330, 64, false, true}};
static const case_info spans[] = {
    {"attend_long", GGL_OP_ATTEND, attend_long, 2, 2e-3, 2200, 1000, false, false}};
static const case_info composites[] = {
    K(build_softmax, SINGLES, ROWS),         K(build_rms, SINGLES, ROWS),
    K(build_center, SINGLES, ROWS),          K(build_l2, SINGLES, ROWS),
    K(build_normalised, SINGLES, ROWS),      K(build_relu, SINGLES, 0),
    K(build_silu, SINGLES, ELEMENTWISE),     K(build_gelu, SINGLES, ELEMENTWISE),
    K(build_gelu_erf, SINGLES, ELEMENTWISE), K(build_gelu_quick, SINGLES, ELEMENTWISE),
    K(build_softplus, SINGLES, ELEMENTWISE), K(build_weighted, 1, ROWS),
};
static const case_info recurrences[] = {K(build_recent, 2, 0), K(build_delta, 2, 2e-5),
                                        K(build_scan, 2, ROWS), C(CALL, build_own, 5, 0.1)};

#define ALL(X)                                                                                     \
    X(elementwise)                                                                                 \
    X(rows) X(moves) X(products) X(attention) X(kept) X(spans) X(composites) X(recurrences)
static const struct {
    const case_info *info;
    size_t n;
} lists[] = {
#define X(list) {list, sizeof list / sizeof *list},
    ALL(X)
#undef X
};

static void check_list(const case_info *info, size_t n) {
    setenv("GGL_CPU_SHARE_ALL", "1", 1); /* the graphs are too small for threads to pay */
    for (size_t i = 0; i < n; i++)
        case_check(&info[i], 0, 1);
}

TEST(elementwise) {
    check_list(elementwise, sizeof elementwise / sizeof *elementwise);
}
TEST(along_rows) {
    check_list(rows, sizeof rows / sizeof *rows);
}
TEST(moves) {
    check_list(moves, sizeof moves / sizeof *moves);
}
TEST(linear) {
    check_list(products, sizeof products / sizeof *products);
}
TEST(rope_and_attend) {
    check_list(attention, sizeof attention / sizeof *attention);
}
/* By type of the keys, as backend_case.h orders them: one case of all would take minutes under
 * sanitizers. */
static void check_kept(int type) {
    setenv("GGL_CPU_SHARE_ALL", "1", 1);
    case_check(&kept[0], type, 5);
}
TEST(attend_kept_f16) {
    check_kept(0);
}
TEST(attend_kept_f32) {
    check_kept(1);
}
TEST(attend_kept_bf16) {
    check_kept(2);
}
TEST(attend_kept_q8_0) {
    check_kept(3);
}
TEST(attend_kept_q4_0) {
    check_kept(4);
}
TEST(attend_spans) {
    check_list(spans, sizeof spans / sizeof *spans);
}
TEST(composites) {
    check_list(composites, sizeof composites / sizeof *composites);
}
TEST(recurrences) {
    check_list(recurrences, sizeof recurrences / sizeof *recurrences);
}

/* Every operator stands in the graph of a case that says so. */
TEST(every_operator_has_a_case) {
    int seen[GGL_OP_COUNT] = {0};
    const case_run portable = {"cpu", {.n_threads = 1}, 0, false};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
        for (size_t i = 0; i < lists[l].n; i++) {
            size_t row;
            int covers[GGL_OP_COUNT] = {0};
            if (lists[l].info == spans)
                continue;
            free(case_run_one(&lists[l].info[i], 0, &portable, &row, covers));
            CHECK_MSG(covers[lists[l].info[i].op] > 0, "%s has no '%s'", lists[l].info[i].name,
                      ggl_op_get(lists[l].info[i].op).name);
            for (int o = 0; o < GGL_OP_COUNT; o++)
                seen[o] += covers[o];
        }
    for (int o = 0; o < GGL_OP_COUNT; o++)
        CHECK_MSG(seen[o] > 0, "no case has the operator '%s'", ggl_op_get((ggl_op)o).name);
}

TEST(backends_by_name) {
    ggl_backend *b = NULL;
    ggl_error err = {0};
    CHECK(ggl_backend_open(&b, "abacus", NULL, &err) == GGL_NOT_FOUND && !b);
    CHECK_HAS(err.msg, "cpu, reference");
    CHECK(ggl_backend_open(&b, "cpu", &(ggl_backend_params){.n_threads = -1}, &err) == GGL_USAGE);
    for (int i = 0; ggl_backend_name(i); i++) {
        CHECK_OK(
            ggl_backend_open(&b, ggl_backend_name(i), &(ggl_backend_params){.mask = "all"}, &err),
            &err);
        CHECK(ggl_backend_text(i) && b && b->description[0]);
        ggl_backend_close(b);
    }
    ggl_backend_close(NULL);
}
