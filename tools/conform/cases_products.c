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
static const conform_form shorts[] = {{.size = {4, 9}, .n = 8}, {.size = {12, 9}, .n = 7}};
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
};
KIND(products, products);
