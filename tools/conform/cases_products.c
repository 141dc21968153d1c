/* Products. */
#include "build.h"

/* size: length of a row k, rows m, then x's two other dimensions and the matrix's. VALUE: the
 * matrix is computed; UNBATCHED: and the same for all tokens. k is rounded up to whole blocks. */
static const conform_form linears[] = {
    {.size = {64, 11}},
    {.size = {1, 1}},
    {.size = {192, 41}, .n = 20, .with = CONFORM_BIAS},
    {.size = {37, 21, 0, 0, 2}, .view = 3},
    {.size = {320, 101, 3}, .n = 20, .n_batch = 13, .with = CONFORM_BIAS},
    {.size = {512, 37}, .n = 40},
    {.size = {32, 12, 4, 0, 4}},
    {.size = {257, 17}, .n = 3, .view = 1},
    {.size = {1024, 64}, .n = 1},
    {.size = {2048, 70}, .n = 12, .with = CONFORM_BIAS}, /* few tiles of long rows */
};
static const conform_form values[] = {
    {.size = {32, 12, 4, 0, 4}, .with = CONFORM_VALUE},
    {.size = {20, 7}, .with = CONFORM_VALUE},
    {.size = {1, 1}, .with = CONFORM_VALUE},
    {.size = {20, 7, 3}, .with = CONFORM_VALUE | CONFORM_BIAS},
    {.size = {20, 7, 2, 3, 2}, .with = CONFORM_VALUE | CONFORM_UNBATCHED},
    {.size = {65, 33}, .with = CONFORM_VALUE, .view = 1},
};
static const conform_form large = {.size = {2048, 2048}, .n = 256};

static ggl_tensor *linear_of(conform_build *c) {
    const int64_t *s = c->f.size;
    int64_t k = case_blocks(c, s[0]);
    bool computed = c->f.with & CONFORM_VALUE;
    ggl_tensor *w = NULL, *bias = NULL, *x = VALUE(c, k, s[2], s[3]);
    c->about = 0.2 * sqrt((double)k);
    if (computed)
        w = case_input(c, !(c->f.with & CONFORM_UNBATCHED), FILL_ANY, 0, DIMS(k, s[1], s[4]));
    else
        w = case_weight(c, c->f.type, DIMS(k, s[1], s[4]));
    if (c->f.with & CONFORM_BIAS)
        bias = computed ? VALUE(c, s[1], s[2]) : case_weight(c, GGL_F32, DIMS(s[1]));
    return case_linear(c, x, w, bias);
}

/* size: k, m, experts, how many are chosen (0: one, without a list), and how many x (0: one for
 * all). UNBATCHED: the choice is the same for all tokens. */
static const conform_form experts[] = {
    {.size = {64, 40, 6, 3}, .n = 30},
    {.size = {64, 40, 6, 3, 3}, .n = 30},
    {.size = {64, 40, 6, 3, 3}, .n = 30, .with = CONFORM_BIAS},
    {.size = {32, 17, 6, 0}, .n = 30},
    {.size = {64, 40, 4, 2}, .n = 1},
    {.size = {32, 17, 6, 0}, .n = 30, .with = CONFORM_UNBATCHED},
    {.size = {64, 40, 6, 3, 3}, .n = 30, .with = CONFORM_UNBATCHED | CONFORM_BIAS},
};

static ggl_tensor *linear_experts(conform_build *c) {
    const int64_t *s = c->f.size;
    int64_t k = case_blocks(c, s[0]);
    ggl_tensor *w = case_weight(c, c->f.type, DIMS(k, s[1], s[2])), *bias = NULL;
    bool batched = !(c->f.with & CONFORM_UNBATCHED);
    ggl_tensor *e = case_input(c, batched, FILL_INDEX, s[2], DIMS(s[3]));
    ggl_tensor *x = VALUE(c, k, s[4]);
    c->about = 0.2 * sqrt((double)k);
    if (c->f.with & CONFORM_BIAS)
        bias = OP2(c, PICK, case_weight(c, GGL_F32, DIMS(s[1], s[2])), e);
    return case_linear(c, x, OP2(c, PICK, w, e), bias);
}

/* Rows of x that are shorter than what a kernel loads at once. A NaN in the next row must not change the products of this one. */
static const conform_form shorts[] = {{.size = {4, 9}, .n = 8},
                                      {.size = {12, 9}, .n = 7},
                                      {.size = {16, 43}, .n = 53},
                                      {.size = {48, 29}, .n = 61},
                                      {.size = {112, 17}, .n = 50}};
static const conform_form short_experts[] = {{.size = {4, 9, 3, 2, 2}, .n = 4},
                                             {.size = {4, 9, 3, 2, 2}, .n = 12}};

/* Several products share an operand, and others follow after its memory was reused: each must
 * use the right prepared operand. */
static const conform_form shareds[] = {{.size = {64}, .n = 12}, {.size = {96}, .n = 1}};

static ggl_tensor *linear_shared(conform_build *c) {
    int64_t k = case_blocks(c, c->f.size[0]);
    ggl_tensor *x = VALUE(c, k), *sum = NULL;
    c->about = 1;
    for (int i = 0; i < 4; i++) {
        ggl_tensor *h = case_linear(c, x, case_weight(c, c->f.type, DIMS(k, k)), NULL);
        ggl_tensor *g = case_linear(c, x, case_weight(c, c->f.type, DIMS(k, k)), NULL);
        x = OP1(c, TANH, OP2(c, MUL, h, OP2(c, ADD, g, NUMBER(c, 0.5))));
        sum = sum ? OP2(c, ADD, sum, x) : x;
    }
    return sum;
}

/* A weight of four dimensions: each of its matrices has columns of its own, which are the same for all
 * tokens. size: the weight's. */
static const conform_form stacks[] = {{.size = {64, 10, 2, 3}, .n = 3}};

static ggl_tensor *linear_stack(conform_build *c) {
    const int64_t *s = c->f.size, k = case_blocks(c, s[0]);
    ggl_tensor *w = case_weight(c, c->f.type, DIMS(k, s[1], s[2], s[3]));
    c->about = 0.2 * sqrt((double)k);
    return OP2(c, ADD,
               case_linear(c, case_input(c, false, FILL_ANY, 0, DIMS(k, s[2], s[3])), w, NULL),
               VALUE(c, s[1]));
}

/* size: as for linear: rows k, m of them, then dy's two other dimensions and the matrix's. */
static const conform_form backs[] = {
    {.size = {64, 11}},
    {.size = {1, 1}},
    {.size = {192, 41}, .n = 20},
    {.size = {37, 21, 0, 0, 2}, .view = 3},
    {.size = {320, 101, 3}, .n = 20, .n_batch = 13},
    {.size = {512, 70}, .n = 40},
    {.size = {330, 263}, .n = 19},
    {.size = {32, 12, 4, 0, 4}},
    {.size = {32, 12, 4, 2, 4}},
    {.size = {20, 7, 3, 0, 3}, .with = CONFORM_VALUE},
    {.size = {20, 7, 3}, .with = CONFORM_VALUE | CONFORM_UNBATCHED},
};
static const conform_form back_experts[] = {
    {.size = {64, 40, 6, 3}, .n = 30},
    {.size = {64, 40, 6, 3, 3}, .n = 30},
    {.size = {32, 17, 6, 0}, .n = 30},
    {.size = {64, 40, 4, 2}, .n = 1},
    {.size = {32, 17, 6, 0}, .n = 30, .with = CONFORM_UNBATCHED},
};
static const conform_form large_back = {.size = {2048, 2048}, .n = 256};

static ggl_tensor *back_of(conform_build *c, double bf16) {
    const int64_t *s = c->f.size, k = case_blocks(c, s[0]);
    ggl_tensor *dy = VALUE(c, s[1], s[2], s[3]);
    c->about = 0.2 * sqrt((double)s[1]);
    if (c->f.with & CONFORM_VALUE)
        return OP2N(
            c, LINEAR_BACK, dy,
            case_input(c, !(c->f.with & CONFORM_UNBATCHED), FILL_ANY, 0, DIMS(k, s[1], s[4])), 1,
            bf16);
    return OP2N(c, LINEAR_BACK, dy, case_weight(c, c->f.type, DIMS(k, s[1], s[4])), 1, bf16);
}

static ggl_tensor *linear_back_of(conform_build *c) {
    return back_of(c, 0);
}

static ggl_tensor *linear_back_bf16(conform_build *c) {
    return back_of(c, 1);
}

static ggl_tensor *back_of_experts(conform_build *c, double bf16) {
    const int64_t *s = c->f.size, k = case_blocks(c, s[0]);
    ggl_tensor *w = case_weight(c, c->f.type, DIMS(k, s[1], s[2]));
    ggl_tensor *e = case_input(c, !(c->f.with & CONFORM_UNBATCHED), FILL_INDEX, s[2], DIMS(s[3]));
    c->about = 0.2 * sqrt((double)s[1]);
    return OP2N(c, LINEAR_BACK, VALUE(c, s[1], s[4]), OP2(c, PICK, w, e), 1, bf16);
}

static ggl_tensor *linear_back_experts(conform_build *c) {
    return back_of_experts(c, 0);
}

static ggl_tensor *linear_back_experts_bf16(conform_build *c) {
    return back_of_experts(c, 1);
}

/* size: lengths of x and dy, the vectors of an element of the batch, the number of matrices (0: one for all). VALUE: an index chooses
 * them; BIAS: the sum begins with numbers; UNBATCHED: dy is the same for all tokens. */
static const conform_form sums[] = {
    {.size = {64, 11}, .with = CONFORM_SEES_ALL},
    {.size = {1, 1}, .with = CONFORM_SEES_ALL},
    {.size = {70, 13}, .n = 70, .with = CONFORM_SEES_ALL | CONFORM_BIAS},
    {.size = {520, 100}, .n = 3, .view = 1, .with = CONFORM_SEES_ALL},
    {.size = {67, 391}, .n = 261, .with = CONFORM_SEES_ALL | CONFORM_BIAS},
    {.size = {33, 7, 3, 3}, .n = 20, .with = CONFORM_SEES_ALL},
    {.size = {33, 7, 3, 3}, .n = 20, .with = CONFORM_SEES_ALL | CONFORM_BIAS},
    {.size = {33, 7, 3}, .n = 20, .with = CONFORM_SEES_ALL | CONFORM_UNBATCHED},
    {.size = {33, 7, 3, 5}, .n = 40, .with = CONFORM_SEES_ALL | CONFORM_VALUE | CONFORM_BIAS},
    {.size = {12, 1, 0, 9}, .n = 40, .with = CONFORM_SEES_ALL | CONFORM_VALUE},
};
static const conform_form large_sum = {.size = {2048, 2048}, .n = 256};

static ggl_tensor *sum_of(conform_build *c, double bf16) {
    const int64_t *s = c->f.size, vectors = s[2] ? s[2] : 1;
    const double num[] = {s[3] ? (double)s[3] : NAN, bf16};
    ggl_tensor *x = VALUE(c, s[0], s[2]),
               *dy = case_input(c, !(c->f.with & CONFORM_UNBATCHED), FILL_ANY, 0, DIMS(s[1], s[2])),
               *i = NULL, *into = NULL;
    c->about = 0.5 * sqrt((double)(c->f.n * vectors));
    if (c->f.with & CONFORM_VALUE)
        i = case_input(c, true, FILL_INDEX, s[3], DIMS(s[2]));
    if (c->f.with & CONFORM_BIAS)
        into = case_input(c, false, FILL_ANY, 0, DIMS(s[0], s[1], s[3]));
    ggl_tensor *y = case_node(c, GGL_OP_OUTER_SUM, (ggl_tensor *[]){x, dy, i, into}, 4, num, 2);
    return OP2(c, ADD, y, OP2(c, MUL, VALUE(c, 1), NUMBER(c, 0.001)));
}

static ggl_tensor *outer_sum_of(conform_build *c) {
    return sum_of(c, 0);
}

static ggl_tensor *outer_sum_bf16(conform_build *c) {
    return sum_of(c, 1);
}

#define LINEAR(NAME, list)                                                                         \
    .name = #NAME, .op = GGL_OP_LINEAR, .build = NAME, FORM_LIST(list), .bound = ROWS,             \
    .bound_bf16 = OF_BF16, .bound_quantized = QUANTIZED, .bound_halves = OF_HALVES

static const conform_case products[] = {
    {LINEAR(linear_of, linears), .types = CONFORM_ANY_WEIGHT, .edges = EDGE(NAN), .large = &large},
    {LINEAR(linear_of, values), .edges = EDGE(NAN) | EDGE(INF)},
    {LINEAR(linear_stack, stacks), .types = CONFORM_ANY_WEIGHT},
    {LINEAR(linear_experts, experts), .types = CONFORM_SOME_WEIGHT, .edges = EDGE(NAN)},
    {LINEAR(linear_of, shorts), .types = CONFORM_SOME_WEIGHT, .edges = EDGE(NAN)},
    {LINEAR(linear_experts, short_experts), .types = CONFORM_SOME_WEIGHT, .edges = EDGE(NAN)},
    /* four products and four tanh, in turn */
    {.name = "linear_shared",
     .op = GGL_OP_LINEAR,
     .build = linear_shared,
     FORM_LIST(shareds),
     .bound = 1e-4,
     .bound_bf16 = 0.1,
     .bound_quantized = 0.1,
     .bound_halves = 0.1,
     .types = CONFORM_SOME_WEIGHT},
    {.name = "linear_back_of",
     .op = GGL_OP_LINEAR_BACK,
     .build = linear_back_of,
     FORM_LIST(backs),
     .bound = ROWS,
     .types = CONFORM_ANY_WEIGHT,
     .edges = EDGE(NAN),
     .large = &large_back},
    {.name = "linear_back_experts",
     .op = GGL_OP_LINEAR_BACK,
     .build = linear_back_experts,
     FORM_LIST(back_experts),
     .bound = ROWS,
     .types = CONFORM_SOME_WEIGHT,
     .edges = EDGE(NAN)},
    {.name = "linear_back_bf16",
     .op = GGL_OP_LINEAR_BACK,
     .build = linear_back_bf16,
     FORM_LIST(backs),
     .bound = OF_BF16,
     .types = CONFORM_ANY_WEIGHT,
     .edges = EDGE(NAN),
     .large = &large_back},
    {.name = "linear_back_experts_bf16",
     .op = GGL_OP_LINEAR_BACK,
     .build = linear_back_experts_bf16,
     FORM_LIST(back_experts),
     .bound = OF_BF16,
     .types = CONFORM_SOME_WEIGHT,
     .edges = EDGE(NAN)},
    {.name = "outer_sum_of",
     .op = GGL_OP_OUTER_SUM,
     .build = outer_sum_of,
     FORM_LIST(sums),
     .bound = ROWS,
     .edges = EDGE(NAN) | EDGE(INF),
     .large = &large_sum},
    {.name = "outer_sum_bf16",
     .op = GGL_OP_OUTER_SUM,
     .build = outer_sum_bf16,
     FORM_LIST(sums),
     .bound = OF_BF16,
     .edges = EDGE(NAN) | EDGE(INF),
     .large = &large_sum},
};
KIND(products, products);
