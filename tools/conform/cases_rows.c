/* Operators that work along a dimension, and those that move elements. */
#include "build.h"

/* --- along dimensions ------------------------------------------------------------------------- */

/* size: three dimensions, and the index of the one to reduce. */
static const conform_form reductions[] = {
    {.size = {9, 4, 3, 0}},
    {.size = {9, 4, 3, 1}},
    {.size = {9, 4, 3, 2}},
    {.size = {1, 0, 0, 0}},
    {.size = {77, 0, 0, 0}},
    {.size = {35, 6, 0, 1}},
    {.size = {19, 3, 0, 0}, .view = 5},
    {.size = {16, 2, 0, 0}},
    {.size = {255, 2, 0, 0}, .n = 9, .n_batch = 4},
    {.size = {33, 5, 0, 1}, .view = 1},
    {.size = {4096, 0, 0, 0}, .n = 1},
};
static const conform_form large_rows = {.size = {4096, 0, 0, 0}, .n = 2048};

static ggl_tensor *reduce(conform_build *c, ggl_op o) {
    const int64_t *s = c->f.size;
    ggl_tensor *x = VALUE(c, s[0], s[1], s[2]);
    return case_op(c, o, x, NULL, NULL, 1, (double[]){(double)s[3]});
}

static ggl_tensor *build_sum(conform_build *c) {
    c->about = sqrt((double)(c->f.size[c->f.size[3] < 3 ? c->f.size[3] : 0]));
    return reduce(c, GGL_OP_SUM);
}

static ggl_tensor *build_amax(conform_build *c) {
    return reduce(c, GGL_OP_AMAX);
}

/* size: two dimensions; for topk one, and how many to choose. */
static const conform_form ranks[] = {
    {.size = {33}},
    {.size = {17, 3}, .with = CONFORM_EQUALS},
    {.size = {1}},
    {.size = {64, 2}, .view = 3},
    {.size = {300}, .with = CONFORM_EQUALS},
};
static const conform_form tops[] = {
    {.size = {33, 5}},     {.size = {40, 40}, .with = CONFORM_EQUALS},
    {.size = {1, 1}},      {.size = {64, 1}, .view = 3},
    {.size = {2000, 100}}, {.size = {1025, 1024}, .with = CONFORM_EQUALS, .n = 2},
};
static const conform_form large_ranks = {.size = {128}, .n = 512};
static const conform_form large_tops = {.size = {4096, 8}, .n = 64};

static ggl_tensor *maybe_equals(conform_build *c, ggl_tensor *x) {
    return c->f.with & CONFORM_EQUALS ? OP1(c, FLOOR, x) : x;
}

static ggl_tensor *build_rank(conform_build *c) {
    return OP1(c, RANK, maybe_equals(c, VALUE(c, c->f.size[0], c->f.size[1])));
}

static ggl_tensor *build_topk(conform_build *c) {
    return OP1N(c, TOPK, maybe_equals(c, VALUE(c, c->f.size[0])), 1, (double)c->f.size[1]);
}

/* size: the numbers that are hashed, the results, the rows. */
static const conform_form hashes[] = {
    {.size = {2, 1, 7}},
    {.size = {3, 8, 100000}, .n = 33},
    {.size = {5, 12, 1000003}, .n = 3},
    {.size = {3, 2, 1}, .view = 3},
};
static const conform_form large_hashes = {.size = {3, 16, 1 << 30}, .n = 512};

/* Whole numbers from -1 up, as digits are; x: from -1 to 1. */
static ggl_tensor *up_to(conform_build *c, ggl_tensor *x, double most) {
    return OP1(c, FLOOR, OP2(c, MUL, OP1(c, ABS, x), NUMBER(c, most)));
}

static ggl_tensor *build_ngrams(conform_build *c) {
    const int64_t *s = c->f.size;
    ggl_tensor *src[] = {up_to(c, VALUE(c, s[0]), 250000), up_to(c, VALUE(c, 4, s[0]), 66000),
                         up_to(c, case_weight(c, GGL_F32, DIMS(4, s[1])), 66000),
                         up_to(c, case_weight(c, GGL_F32, DIMS(4, s[1])), 66000)};
    const double rows = (double)s[2];
    return case_node(c, GGL_OP_NGRAMS, src, 4, &rows, 1);
}

static const conform_case rows[] = {
    {.name = "sum",
     .op = GGL_OP_SUM,
     .build = build_sum,
     FORM_LIST(reductions),
     .bound = ROWS,
     .edges = EDGE(NAN) | EDGE(INF) | EDGE(TINY),
     .large = &large_rows},
    {.name = "amax",
     .op = GGL_OP_AMAX,
     .build = build_amax,
     FORM_LIST(reductions),
     .bound = 0,
     .edges = EDGES,
     .large = &large_rows},
    {.name = "rank",
     .op = GGL_OP_RANK,
     .build = build_rank,
     FORM_LIST(ranks),
     .bound = 0,
     .edges = EDGES,
     .large = &large_ranks},
    {.name = "topk",
     .op = GGL_OP_TOPK,
     .build = build_topk,
     FORM_LIST(tops),
     .bound = 0,
     .edges = EDGES,
     .large = &large_tops},
    {.name = "ngrams",
     .op = GGL_OP_NGRAMS,
     .build = build_ngrams,
     FORM_LIST(hashes),
     .bound = 0,
     .edges = EDGES,
     .large = &large_hashes},
};
KIND(rows, rows);

/* --- moves ------------------------------------------------------------------------------------ */

/* size: length of a row, rows, how many indices (0: one, without a dimension), and their bound. */
static const conform_form picks_of_weights[] = {
    {.size = {64, 11, 0, 11}},
    {.size = {1, 1, 0, 1}},
    {.size = {512, 11, 3, 11}, .n = 8},
    {.size = {64, 0, 3, 64}}, /* single elements */
};
static const conform_form picks[] = {
    {.size = {6, 9, 4, 9}},   {.size = {6, 9, 4, 12}}, /* some indices out of range: NaN */
    {.size = {12, 0, 4, 12}}, {.size = {1, 5, 1, 5}},  {.size = {65, 7, 3, 7}, .view = 1},
};
static const conform_form picks_of_matrices[] = {{.size = {6, 3, 5, 2, 5}},
                                                 {.size = {64, 2, 3, 0, 3}}};
/* size: a matrix, matrices of a choice, choices. */
static const conform_form picks_of_stacks[] = {{.size = {32, 3, 2, 4}, .n = 5}};
static const conform_form large_pick = {.size = {4096, 2048, 0, 2048}, .n = 2048};

static ggl_tensor *pick_weight(conform_build *c) {
    const int64_t *s = c->f.size;
    return OP2(c, PICK, case_weight(c, c->f.type, DIMS(case_blocks(c, s[0]), s[1])),
               case_input(c, true, FILL_INDEX, s[3], DIMS(s[2])));
}
static ggl_tensor *pick_stack(conform_build *c) {
    const int64_t *s = c->f.size;
    return OP2(c, PICK, case_weight(c, c->f.type, DIMS(case_blocks(c, s[0]), s[1], s[2], s[3])),
               case_input(c, true, FILL_INDEX, s[3], 0, NULL));
}
static ggl_tensor *pick_value(conform_build *c) {
    const int64_t *s = c->f.size;
    return OP2(c, PICK, VALUE(c, s[0], s[1]), case_input(c, true, FILL_INDEX, s[3], DIMS(s[2])));
}
static ggl_tensor *pick_matrix(conform_build *c) {
    const int64_t *s = c->f.size;
    return OP2(c, PICK, VALUE(c, s[0], s[1], s[2]),
               case_input(c, true, FILL_INDEX, s[4], DIMS(s[3])));
}

static const conform_form reshapes[] = {
    {.size = {8, 6}, .view = 2}, /* not dense, so it must be copied */
    {.size = {8, 6}, .view = 2, .with = CONFORM_TWICE},
    {.size = {15, 3}},
    {.size = {1, 1}},
};
/* Reshapes to one dimension, or to two in the other order. */
static ggl_tensor *build_reshape(conform_build *c) {
    double a = (double)c->f.size[0], b = (double)c->f.size[1];
    ggl_tensor *x = VALUE(c, c->f.size[0], c->f.size[1]);
    return OP1(c, ABS,
               c->f.with & CONFORM_TWICE ? OP1N(c, RESHAPE, x, 2, b, a)
                                         : OP1N(c, RESHAPE, x, 1, a * b));
}

/* size: three dimensions; index of the one that is cut, first element, how many. */
static const conform_form splits[] = {
    {.size = {12, 6, 3, 0, 1, 2}},    {.size = {12, 6, 3, 1, 1, 2}}, {.size = {12, 6, 3, 2, 1, 2}},
    {.size = {100, 2, 0, 0, 33, 65}}, {.size = {1, 0, 0, 0, 0, 1}},
};
static ggl_tensor *build_split(conform_build *c) {
    const int64_t *s = c->f.size;
    ggl_tensor *x = VALUE(c, s[0], s[1], s[2]);
    return OP1(c, ABS, OP1N(c, SPLIT, x, 3, (double)s[3], (double)s[4], (double)s[5]));
}

/* size: three dimensions of the first operand, three of the second, and the index of the one to
 * join. */
static const conform_form concats[] = {
    {.size = {5, 3, 0, 7, 3, 0, 0}},
    {.size = {8, 2, 0, 8, 3, 0, 1}, .with = CONFORM_UNBATCHED},
    {.size = {8, 3, 2, 8, 3, 0, 2}},
    {.size = {1, 0, 0, 1, 0, 0, 0}},
    {.size = {33, 2, 0, 31, 2, 0, 0}, .view = 3},
    {.size = {64, 4, 0, 256, 4, 0, 0}, .n = 9, .n_batch = 4},
};
static ggl_tensor *build_concat(conform_build *c) {
    const int64_t *s = c->f.size;
    ggl_tensor *x = VALUE(c, s[0], s[1], s[2]);
    ggl_tensor *y =
        case_input(c, !(c->f.with & CONFORM_UNBATCHED), FILL_ANY, 0, DIMS(s[3], s[4], s[5]));
    return OP2N(c, CONCAT, x, y, 1, (double)s[6]);
}

/* size: three dimensions, and those of the result. */
static const conform_form repeats[] = {
    {.size = {9, 1, 2, 9, 3, 2}},
    {.size = {1, 4, 0, 7, 4, 3}},
    {.size = {1, 0, 0, 257, 1, 1}},
    {.size = {1, 5, 0, 65, 5, 1}, .view = 1},
};
static ggl_tensor *build_repeat(conform_build *c) {
    const int64_t *s = c->f.size;
    return OP1N(c, REPEAT, VALUE(c, s[0], s[1], s[2]), 3, (double)s[3], (double)s[4], (double)s[5]);
}

/* size: three dimensions, and the indices of the two to swap. */
static const conform_form transposes[] = {
    {.size = {9, 4, 3, 0, 1}},
    {.size = {9, 4, 3, 1, 2}},
    {.size = {9, 4, 3, 0, 2}},
    {.size = {19, 0, 0, 0, 1}},
    {.size = {65, 33, 0, 0, 1}, .view = 1},
};
static const conform_form large_transpose = {.size = {256, 256, 0, 0, 1}, .n = 64};
static ggl_tensor *build_transpose(conform_build *c) {
    const int64_t *s = c->f.size;
    return OP1N(c, TRANSPOSE, VALUE(c, s[0], s[1], s[2]), 2, (double)s[3], (double)s[4]);
}

static const conform_form iotas[] = {{.size = {9}}, {.size = {1}}};
static ggl_tensor *build_iota(conform_build *c) { /* a constant: the fold computes it */
    return OP2(c, ADD, VALUE(c, c->f.size[0]), OP0(c, IOTA, 1, (double)c->f.size[0]));
}

static const conform_case moves[] = {
    {.name = "pick_weight",
     .op = GGL_OP_PICK,
     .build = pick_weight,
     FORM_LIST(picks_of_weights),
     .types = CONFORM_ANY_WEIGHT,
     .large = &large_pick},
    {.name = "pick_stack",
     .op = GGL_OP_PICK,
     .build = pick_stack,
     FORM_LIST(picks_of_stacks),
     .types = CONFORM_ANY_WEIGHT},
    {.name = "pick_value",
     .op = GGL_OP_PICK,
     .build = pick_value,
     FORM_LIST(picks),
     .edges = EDGES},
    {.name = "pick_matrix",
     .op = GGL_OP_PICK,
     .build = pick_matrix,
     FORM_LIST(picks_of_matrices),
     .edges = EDGES},
    {.name = "reshape",
     .op = GGL_OP_RESHAPE,
     .build = build_reshape,
     FORM_LIST(reshapes),
     .edges = EDGES},
    {.name = "split", .op = GGL_OP_SPLIT, .build = build_split, FORM_LIST(splits), .edges = EDGES},
    {.name = "concat",
     .op = GGL_OP_CONCAT,
     .build = build_concat,
     FORM_LIST(concats),
     .edges = EDGES},
    {.name = "repeat",
     .op = GGL_OP_REPEAT,
     .build = build_repeat,
     FORM_LIST(repeats),
     .edges = EDGES},
    {.name = "transpose",
     .op = GGL_OP_TRANSPOSE,
     .build = build_transpose,
     FORM_LIST(transposes),
     .edges = EDGES,
     .large = &large_transpose},
    {.name = "iota",
     .op = GGL_OP_IOTA,
     .build = build_iota,
     FORM_LIST(iotas),
     .bound = ELEMENTWISE},
};
KIND(moves, moves);
