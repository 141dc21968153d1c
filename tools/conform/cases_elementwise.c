/* Elementwise operators: two operands that broadcast, one operand, casts. */
#include "build.h"

/* --- two operands ----------------------------------------------------------------------------- */

/* size: a's three dimensions, then b's. NUMBER: a is a number, or b for pow. UNBATCHED: b is the
 * same for all tokens. */
static const conform_form pairs[] = {
    {.size = {7, 3, 0, 7, 3}},
    {.size = {33, 5, 0, 33}},
    {.size = {1, 0, 0, 1}},
    {.size = {19, 0, 0, 19}, .with = CONFORM_NUMBER},
    {.size = {16, 4, 2, 1, 4}},
    {.size = {5, 1, 3, 5, 4}, .with = CONFORM_UNBATCHED},
    {.size = {9, 3, 0, 9, 3}, .view = 7},
    {.size = {64, 2, 0, 64, 2}},
    {.size = {15, 2, 0, 15}, .n = 1},
    {.size = {257, 0, 0, 257}, .view = 1},
    {.size = {256, 2, 0, 1, 2}, .n = 17, .n_batch = 8},
    {.size = {5000, 0, 0, 5000}},
    {.size = {1, 6, 0, 1, 6}, .view = 2},
};
static const conform_form large_pair = {.size = {4096, 0, 0, 4096}, .n = 2048};

static void pair(conform_build *c, conform_fill fill, ggl_tensor **a, ggl_tensor **b) {
    const int64_t *s = c->f.size;
    *a = case_input(c, true, fill, 0, DIMS(s[0], s[1], s[2]));
    *b = case_input(c, !(c->f.with & CONFORM_UNBATCHED), fill, 0, DIMS(s[3], s[4], s[5]));
}

static void number_and_value(conform_build *c, ggl_tensor **a, ggl_tensor **b) {
    const int64_t *s = c->f.size;
    if (!(c->f.with & CONFORM_NUMBER)) {
        pair(c, FILL_ANY, a, b);
        return;
    }
    *a = NUMBER(c, 0.7);
    *b = VALUE(c, s[3], s[4], s[5]);
}

#define BINARY(NAME)                                                                               \
    static ggl_tensor *build_##NAME(conform_build *c) {                                            \
        ggl_tensor *a, *b;                                                                         \
        number_and_value(c, &a, &b);                                                               \
        return OP2(c, NAME, a, b);                                                                 \
    }
BINARY(ADD)
BINARY(SUB)
BINARY(MUL)
BINARY(DIV)
BINARY(EQ)
BINARY(NE)
BINARY(LT)
BINARY(LE)
BINARY(GT)
BINARY(GE)
BINARY(MIN)
BINARY(MAX)

/* If a value is nearly a multiple of b, the remainder may be off by all of b, so errors are
 * measured by the values. */
static ggl_tensor *build_MOD(conform_build *c) {
    ggl_tensor *a, *b;
    number_and_value(c, &a, &b);
    c->about = 1;
    return OP2(c, MOD, a, b);
}

static ggl_tensor *build_POW(conform_build *c) {
    ggl_tensor *a, *b;
    pair(c, FILL_POSITIVE, &a, &b);
    return OP2(c, POW, a, c->f.with & CONFORM_NUMBER ? NUMBER(c, 2) : b);
}

static ggl_tensor *build_WHERE(conform_build *c) {
    ggl_tensor *a, *b;
    number_and_value(c, &a, &b);
    return case_op(c, GGL_OP_WHERE, OP2(c, GT, a, NUMBER(c, 0.2)), b, a, 0, NULL);
}

/* --- one operand ------------------------------------------------------------------------------ */

static const conform_form singles[] = {
    {.size = {13, 3}}, {.size = {17, 2}, .view = 3},
    {.size = {1}},     {.size = {4099}},
    {.size = {16}},    {.size = {63, 2, 3}, .view = 5},
    {.size = {256}},   {.size = {31}, .n = 33, .n_batch = 16},
};
static const conform_form large_single = {.size = {4096}, .n = 2048};

static ggl_tensor *single(conform_build *c, conform_fill fill) {
    const int64_t *s = c->f.size;
    return case_input(c, true, fill, 0, DIMS(s[0], s[1], s[2]));
}

#define UNARY(NAME, fill, typical)                                                                 \
    static ggl_tensor *build_##NAME(conform_build *c) {                                            \
        c->about = typical;                                                                        \
        return OP1(c, NAME, single(c, fill));                                                      \
    }
UNARY(EXP, FILL_ANY, 0)
UNARY(LOG, FILL_POSITIVE, 1)
UNARY(SQRT, FILL_POSITIVE, 0)
UNARY(FLOOR, FILL_ANY, 0)
UNARY(ABS, FILL_ANY, 0)
UNARY(TANH, FILL_ANY, 1)
UNARY(ERF, FILL_ANY, 1)
UNARY(SIGMOID, FILL_ANY, 0)
UNARY(SIN, FILL_ANY, 1)
UNARY(COS, FILL_ANY, 1)

/* --- casts ------------------------------------------------------------------------------------ */

static const conform_form vectors[] = {{.size = {64}}, {.size = {1}}, {.size = {257, 3}}};
static const conform_form indices[] = {{.size = {3}}, {.size = {65}}, {.size = {0}}};

/* Arithmetic with a weight of another type. */
static ggl_tensor *cast_weight(conform_build *c) {
    int64_t k = case_blocks(c, c->f.size[0]);
    return OP2(c, ADD, VALUE(c, k), case_weight(c, c->f.type, DIMS(k, c->f.size[1])));
}

static ggl_tensor *cast_index(conform_build *c) {
    return OP1(c, CAST, case_input(c, true, FILL_INDEX, 1000, DIMS(c->f.size[0])));
}

/* --- the table -------------------------------------------------------------------------------- */

#define PAIR(NAME, most, which)                                                                    \
    {                                                                                              \
        .name = #NAME, .op = GGL_OP_##NAME, .build = build_##NAME, FORM_LIST(pairs),               \
        .bound = most, .edges = which, .large = &large_pair                                        \
    }
#define SINGLE(NAME, most, which)                                                                  \
    {                                                                                              \
        .name = #NAME, .op = GGL_OP_##NAME, .build = build_##NAME, FORM_LIST(singles),             \
        .bound = most, .edges = which, .large = &large_single                                      \
    }

static const conform_case elementwise[] = {
    PAIR(ADD, ELEMENTWISE, EDGES),
    PAIR(SUB, ELEMENTWISE, EDGES),
    PAIR(MUL, ELEMENTWISE, EDGES),
    PAIR(DIV, ELEMENTWISE, EDGES),
    PAIR(POW, ELEMENTWISE, 0),
    PAIR(MOD, 2e-6, EDGE(NAN)),
    PAIR(EQ, 0, EDGES),
    PAIR(NE, 0, EDGES),
    PAIR(LT, 0, EDGES),
    PAIR(LE, 0, EDGES),
    PAIR(GT, 0, EDGES),
    PAIR(GE, 0, EDGES),
    PAIR(MIN, ELEMENTWISE, EDGES),
    PAIR(MAX, ELEMENTWISE, EDGES),
    PAIR(WHERE, ELEMENTWISE, EDGES),
    SINGLE(EXP, ELEMENTWISE, EDGES),
    SINGLE(LOG, ELEMENTWISE, EDGES),
    SINGLE(SQRT, ELEMENTWISE, EDGES),
    SINGLE(FLOOR, 0, EDGES),
    SINGLE(ABS, 0, EDGES),
    SINGLE(TANH, ELEMENTWISE, EDGES),
    SINGLE(ERF, ELEMENTWISE, EDGES),
    SINGLE(SIGMOID, ELEMENTWISE, EDGES),
    SINGLE(SIN, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    SINGLE(COS, ELEMENTWISE, EDGE(NAN) | EDGE(INF) | EDGE(TINY)),
    {.name = "cast_weight",
     .op = GGL_OP_CAST,
     .build = cast_weight,
     FORM_LIST(vectors),
     .bound = ELEMENTWISE,
     .types = CONFORM_NOT_F32},
    {.name = "cast_index", .op = GGL_OP_CAST, .build = cast_index, FORM_LIST(indices)},
};
KIND(elementwise, elementwise);
