/* Rope and attention. */
#include "build.h"

/* --- rope ------------------------------------------------------------------------------------- */

/* size: length of a row, heads, frequencies. SCALE: multiplied by a magnitude; VALUE: the
 * frequencies are a weight; TWICE: another rope of the same graph has other frequencies. */
static const conform_form ropes[] = {
    {.size = {24, 3, 12}},
    {.size = {31, 3, 12}, .with = CONFORM_SCALE},
    {.size = {2, 1, 1}},
    {.size = {24, 3, 9}, .with = CONFORM_SCALE | CONFORM_VALUE},
    {.size = {24, 3, 12}, .with = CONFORM_SCALE | CONFORM_TWICE},
    {.size = {64, 4, 32}, .n = 70, .n_batch = 33, .view = 3},
    {.size = {128, 2, 64}, .n = 9, .n_slots = 2},
};
static const conform_form large_rope = {.size = {128, 32, 64}, .n = 512};

static ggl_tensor *rope_of(conform_build *c, ggl_op o) {
    enum { MOST = 64 };
    double f[MOST];
    const int64_t *s = c->f.size, r = s[2] < MOST ? s[2] : MOST;
    for (int64_t i = 0; i < r; i++)
        f[i] = pow(100, (double)-i / (double)r);
    c->about = 1;
    case_positions(c);
    ggl_tensor *x = VALUE(c, s[0], s[1]);
    ggl_tensor *freq = c->f.with & CONFORM_VALUE ? case_weight(c, GGL_F32, DIMS(r))
                                                 : ggl_graph_const(c->g, 1, (int64_t[]){r}, f);
    double mag = c->f.with & CONFORM_SCALE ? 1.3 : NAN;
    ggl_tensor *y = case_op(c, o, x, freq, NULL, 1, &mag);
    if (!(c->f.with & CONFORM_TWICE))
        return y;
    for (int64_t i = 0; i < r; i++)
        f[i] /= 2;
    freq = ggl_graph_const(c->g, 1, (int64_t[]){r}, f);
    return OP2(c, ADD, y, case_op(c, o, VALUE(c, s[0]), freq, NULL, 0, NULL));
}
static ggl_tensor *rope_half(conform_build *c) {
    return rope_of(c, GGL_OP_ROPE_HALF);
}
static ggl_tensor *rope_pair(conform_build *c) {
    return rope_of(c, GGL_OP_ROPE_PAIR);
}

/* --- attention -------------------------------------------------------------------------------- */

/* size: lengths of rows of keys and values, query heads, store heads, window, cap, biases of a head (0: none), rows of a block that see each
 * other alone (0: none). PART: values
 * are the beginning of the keys; SCALE, SINKS, ALIBI: the option of that name; SEES_ALL: there are ends. */
static const conform_form shorts[] = {
    {.size = {16, 16, 4, 4}, .n = 150, .n_batch = 64, .type_k = GGL_F16, .type_v = GGL_F16},
    {.size = {24, 8, 6, 2}, .n = 150, .n_batch = 64, .type_v = GGL_F16, .with = CONFORM_SCALE},
    {.size = {16, 16, 8, 1, 20}, .n = 150, .n_batch = 64, .type_k = GGL_F16},
    {.size = {16, 20, 4, 2, 0, 5}, .n = 150, .n_batch = 64, .with = CONFORM_SINKS},
    {.size = {9, 13, 3, 3},
     .n = 150,
     .n_batch = 64,
     .type_k = GGL_F16,
     .type_v = GGL_F16,
     .with = CONFORM_ALIBI},
    {.size = {16, 16, 4, 2},
     .n = 150,
     .n_batch = 64,
     .n_slots = 3,
     .type_v = GGL_F16,
     .with = CONFORM_SINKS | CONFORM_ALIBI},
    {.size = {32, 32, 5, 5, 70, 3},
     .n = 150,
     .n_batch = 64,
     .n_slots = 2,
     .type_k = GGL_F16,
     .with = CONFORM_SINKS | CONFORM_ALIBI | CONFORM_SCALE},
    {.size = {24, 16, 4, 1}, .n = 150, .n_batch = 64, .with = CONFORM_PART},
    {.size = {64, 64, 8, 2, 65}, .n = 150, .n_batch = 64, .type_k = GGL_F16, .type_v = GGL_F16},
    {.size = {20, 20, 6, 2, 33},
     .n = 150,
     .n_batch = 64,
     .n_slots = 3,
     .type_k = GGL_F16,
     .with = CONFORM_PART | CONFORM_SINKS},
    {.size = {1, 1, 1, 1}, .n = 2},
    {.size = {64, 64, 4, 2}, .n = 66, .n_batch = 33, .view = 3, .type_k = GGL_F16},
    {.size = {128, 128, 8, 4}, .n = 65, .n_batch = 1, .type_k = GGL_F16, .type_v = GGL_F16},
};
/* All rows; a ring that has wrapped around, with two sequences; values that are part of the
 * keys. */
static const conform_form kept_forms[] = {
    {.size = {64, 32, 8, 2}, .n = 330, .n_batch = 64},
    {.size = {32, 96, 6, 3, 40, 3},
     .n = 200,
     .n_batch = 64,
     .n_slots = 2,
     .with = CONFORM_SINKS | CONFORM_ALIBI | CONFORM_SCALE},
    {.size = {96, 40, 9, 1}, .n = 200, .n_batch = 64, .with = CONFORM_PART | CONFORM_SCALE},
};
/* Many heads share a head of the store; also in batches of one, with long rows, with two sequences. */
static const conform_form shareds[] = {
    {.size = {16, 16, 8, 1}, .n = 20, .n_batch = 3},
    {.size = {20, 24, 16, 1, 9}, .n = 70, .n_batch = 35, .type_k = GGL_F16},
    {.size = {40, 24, 36, 1}, .n = 70, .n_batch = 1, .type_k = GGL_F16, .with = CONFORM_PART},
    {.size = {144, 272, 4, 1}, .n = 70, .n_batch = 35, .type_v = GGL_F16, .with = CONFORM_SINKS},
    {.size = {32, 32, 32, 1, 20}, .n = 40, .n_batch = 8, .n_slots = 2, .with = CONFORM_ALIBI},
};
/* Sequences with several tokens each in a batch, whose turns end within pages. In the first form the
 * last token of the second batch is the only one that sees a page whole and none before it. */
static const conform_form turns[] = {
    {.size = {16, 16, 3, 1, 136}, .n = 200, .n_batch = 100, .type_k = GGL_F16, .type_v = GGL_F16},
    {.size = {24, 20, 6, 2, 0, 5},
     .n = 300,
     .n_batch = 128,
     .n_slots = 3,
     .turn = 37,
     .type_k = GGL_F16,
     .type_v = GGL_F16,
     .with = CONFORM_SINKS | CONFORM_ALIBI},
    {.size = {16, 36, 9, 3, 70},
     .n = 330,
     .n_batch = 150,
     .n_slots = 2,
     .turn = 61,
     .type_k = GGL_BF16,
     .type_v = GGL_F16},
    {.size = {33, 17, 5, 1, 200},
     .n = 300,
     .n_batch = 90,
     .n_slots = 2,
     .turn = 71,
     .type_k = GGL_F16,
     .with = CONFORM_PART | CONFORM_SINKS | CONFORM_SCALE},
};
/* Texts that are seen whole, some in one batch, which begin and end within tiles and pages; also as few tokens as are not computed in tiles, a
 * value of more dimensions than those have, and biases by distance, with which positions after a token count, or the last ones before it. */
static const conform_form wholes[] = {
    {.size = {16, 16, 4, 4}, .n = 150, .n_slots = 3, .turn = 37, .with = CONFORM_SEES_ALL},
    {.size = {24, 20, 6, 2, 33, 5, 41},
     .n = 200,
     .n_slots = 2,
     .turn = 70,
     .with = CONFORM_SEES_ALL | CONFORM_SINKS | CONFORM_SCALE},
    {.size = {16, 16, 3, 3, 20}, .n = 130, .with = CONFORM_SEES_ALL | CONFORM_ALIBI},
    {.size = {16, 16, 4, 1, 1, 0, 1},
     .n = 20,
     .n_slots = 7,
     .with = CONFORM_SEES_ALL | CONFORM_PART},
    {.size = {16, 16, 4, 4, 0, 0, 9},
     .n = 7,
     .n_slots = 2,
     .with = CONFORM_SEES_ALL | CONFORM_ALIBI},
    {.size = {8, 520, 2, 1}, .n = 70, .n_slots = 2, .turn = 9, .with = CONFORM_SEES_ALL},
    {.size = {32, 32, 4, 4, 0, 0, 301},
     .n = 150,
     .n_batch = 64,
     .n_slots = 2,
     .type_k = GGL_F16,
     .type_v = GGL_F16},
    {.size = {32, 64, 2, 1, 40, 0, 21},
     .n = 90,
     .n_batch = 9,
     .type_k = GGL_Q8_0,
     .type_v = GGL_Q4_0},
};
/* Rows in blocks: those of a whole text, as long as a page and not; few tokens; and of tokens that see earlier ones, in several slots. */
static const conform_form blocks[] = {
    {.size = {16, 16, 4, 4, 0, 0, 0, 64}, .n = 200, .with = CONFORM_SEES_ALL},
    {.size = {24, 20, 6, 2, 33, 5, 41, 37},
     .n = 150,
     .n_slots = 2,
     .turn = 70,
     .with = CONFORM_SEES_ALL | CONFORM_SINKS},
    {.size = {16, 16, 3, 3, 0, 0, 0, 3}, .n = 7, .with = CONFORM_SEES_ALL | CONFORM_ALIBI},
    {.size = {32, 32, 4, 2, 0, 0, 0, 90},
     .n = 300,
     .n_batch = 100,
     .n_slots = 2,
     .turn = 37,
     .type_k = GGL_F16,
     .type_v = GGL_F16,
     .with = CONFORM_ALIBI},
    {.size = {64, 32, 8, 1, 40, 0, 0, 50},
     .n = 150,
     .n_batch = 64,
     .type_k = GGL_Q8_0,
     .type_v = GGL_Q4_0,
     .with = CONFORM_SCALE},
};
/* Several spans of 1024 positions. */
static const conform_form longs[] = {
    {.size = {8, 8, 2, 2}, .n = 2200, .n_batch = 1000},
    {.size = {8, 8, 2, 1, 1100}, .n = 2200, .n_batch = 1000, .type_k = GGL_F16},
};
static const conform_form large = {.size = {128, 128, 8, 2}, .n = 512, .n_batch = 512};

/* Positions are divided into blocks of n. Returns where the element's block begins, and where the next one begins. */
static ggl_tensor *block_of(conform_build *c, ggl_tensor *pos, double n) {
    ggl_tensor *at = OP2(c, DIV, OP2(c, ADD, OP1(c, CAST, pos), NUMBER(c, 0.5)), NUMBER(c, n));
    ggl_tensor *first = OP1N(c, RESHAPE, OP2(c, MUL, OP1(c, FLOOR, at), NUMBER(c, n)), 1, 1);
    return OP2N(c, CONCAT, first, OP2(c, ADD, first, NUMBER(c, n)), 1, 0);
}

static ggl_tensor *attend_of(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0], e = s[1], h = s[2], g = s[3];
    ggl_tensor *pos = case_positions(c);
    case_slots(c);
    if (c->f.with & CONFORM_SEES_ALL)
        case_ends(c);
    c->about = 1;
    ggl_tensor *q = VALUE(c, d, h), *k = OP1(c, ABS, VALUE(c, d, g));
    ggl_tensor *v =
        c->f.with & CONFORM_PART ? OP1N(c, SPLIT, k, 3, 0, 0, (double)e) : VALUE(c, e, g);
    ggl_tensor *src[9] = {q, OP2(c, CACHE, k, v)};
    if (c->f.with & CONFORM_SINKS)
        src[2] = case_weight(c, GGL_F32, DIMS(h));
    if (c->f.with & CONFORM_ALIBI)
        src[3] = case_weight(c, GGL_F32, DIMS(h));
    if (s[6])
        src[4] = case_weight(c, GGL_F32, DIMS(s[6], h));
    if (s[7])
        src[8] = block_of(c, pos, (double)s[7]);
    double num[3] = {c->f.with & CONFORM_SCALE ? 0.4 : NAN, s[4] ? (double)s[4] : NAN,
                     s[5] ? (double)s[5] : NAN};
    return case_node(c, GGL_OP_ATTEND, src, 9, num, 3);
}

/* Returns the numbers of rows of relative positions for the distances -m .. m: up to 0.3 times a power of two, so that the product is
 * exact. They are in any order, also beyond the last one of n. */
static ggl_tensor *relative_rows(conform_build *c, int64_t n, int64_t m) {
    int64_t most = 4;
    while (most < 4 * n)
        most *= 2;
    return OP2(c, MUL, OP1(c, ABS, case_weight(c, GGL_F32, DIMS(2 * m + 1))),
               NUMBER(c, (double)most));
}

/* The gradients of all that, for sequences that are in one run. size: as for attention. PART: tokens do not see those after them. */
static const conform_form backs[] = {
    {.size = {16, 16, 4, 4}, .n = 70, .n_slots = 3, .turn = 37, .with = CONFORM_SEES_ALL},
    {.size = {24, 8, 6, 2}, .n = 50, .with = CONFORM_SEES_ALL | CONFORM_PART | CONFORM_SCALE},
    {.size = {9, 20, 8, 1, 20},
     .n = 60,
     .n_slots = 2,
     .turn = 5,
     .with = CONFORM_SEES_ALL | CONFORM_PART},
    {.size = {16, 20, 4, 2, 0, 5},
     .n = 40,
     .n_slots = 2,
     .with = CONFORM_SEES_ALL | CONFORM_PART | CONFORM_SINKS},
    {.size = {70, 13, 3, 3, 0, 0, 9}, .n = 30, .with = CONFORM_SEES_ALL | CONFORM_ALIBI},
    {.size = {8, 8, 2, 1, 0, 0, 0, 7}, .n = 40, .with = CONFORM_SEES_ALL | CONFORM_PART},
    {.size = {1, 1, 1, 1}, .n = 2, .with = CONFORM_SEES_ALL | CONFORM_PART},
};
static const conform_form large_back = {
    .size = {128, 128, 8, 2}, .n = 512, .n_batch = 512, .with = CONFORM_SEES_ALL | CONFORM_PART};

static ggl_tensor *attend_back_of(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0], e = s[1], h = s[2], g = s[3];
    ggl_tensor *pos = case_positions(c);
    case_slots(c);
    if (!(c->f.with & CONFORM_PART))
        case_ends(c);
    c->about = 1;
    ggl_tensor *src[8] = {VALUE(c, d, h), VALUE(c, d, g), VALUE(c, e, g), VALUE(c, e, h)};
    if (c->f.with & CONFORM_SINKS)
        src[4] = case_weight(c, GGL_F32, DIMS(h));
    if (c->f.with & CONFORM_ALIBI)
        src[5] = case_weight(c, GGL_F32, DIMS(h));
    if (s[6])
        src[6] = case_weight(c, GGL_F32, DIMS(s[6], h));
    if (s[7])
        src[7] = block_of(c, pos, (double)s[7]);
    double num[3] = {c->f.with & CONFORM_SCALE ? 0.4 : NAN, s[4] ? (double)s[4] : NAN,
                     s[5] ? (double)s[5] : NAN};
    return case_node(c, GGL_OP_ATTEND_BACK, src, 8, num, 3);
}

/* The same with rows of relative positions. size: length of a row, of a value, query heads, heads of keys, window, rows, m of the
 * distances -m .. m, products (1: of queries, 2: of keys, 3: both). PART: tokens do not see those after them. */
static const conform_form relative_backs[] = {
    {.size = {16, 16, 4, 4, 0, 12, 9, 3},
     .n = 70,
     .n_slots = 3,
     .turn = 37,
     .with = CONFORM_SEES_ALL},
    {.size = {24, 8, 6, 2, 0, 33, 70, 3},
     .n = 50,
     .with = CONFORM_SEES_ALL | CONFORM_PART | CONFORM_SCALE | CONFORM_SINKS},
    {.size = {9, 20, 8, 1, 20, 5, 3, 1},
     .n = 60,
     .n_slots = 2,
     .turn = 5,
     .with = CONFORM_SEES_ALL},
    {.size = {70, 13, 3, 3, 0, 40, 30, 2}, .n = 30, .with = CONFORM_SEES_ALL},
    {.size = {1, 1, 1, 1, 0, 1, 0, 3}, .n = 2, .with = CONFORM_SEES_ALL | CONFORM_PART},
};
static const conform_form large_relative_back = {
    .size = {64, 64, 12, 12, 0, 512, 511, 3}, .n = 512, .n_batch = 512, .with = CONFORM_SEES_ALL};

static ggl_tensor *attend_back_relative(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0], e = s[1], h = s[2], g = s[3];
    case_positions(c);
    case_slots(c);
    if (!(c->f.with & CONFORM_PART))
        case_ends(c);
    c->about = 1;
    ggl_tensor *src[11] = {VALUE(c, d, h), VALUE(c, d, g), VALUE(c, e, g), VALUE(c, e, h)};
    if (c->f.with & CONFORM_SINKS)
        src[4] = case_weight(c, GGL_F32, DIMS(h));
    if (s[7] & 1)
        src[8] = VALUE(c, s[5], h);
    if (s[7] & 2)
        src[9] = VALUE(c, s[5], g);
    src[10] = relative_rows(c, s[5], s[6]);
    double num[3] = {c->f.with & CONFORM_SCALE ? 0.4 : NAN, s[4] ? (double)s[4] : NAN, NAN};
    return case_node(c, GGL_OP_ATTEND_BACK, src, 11, num, 3);
}

/* The keys are the same for all tokens, also rotated by each token's position. size: length of a row,
 * query heads, store heads, 1: they are rotated. */
static const conform_form same_keys[] = {
    {.size = {16, 4, 2}, .n = 40, .n_batch = 16, .type_k = GGL_F16},
    {.size = {16, 4, 2, 1}, .n = 40, .n_batch = 16, .type_k = GGL_F16, .type_v = GGL_F16},
};
static ggl_tensor *attend_same_keys(conform_build *c) {
    const int64_t *s = c->f.size;
    case_positions(c);
    case_slots(c);
    c->about = 1;
    ggl_tensor *k = case_input(c, false, FILL_ANY, 0, DIMS(s[0], s[2]));
    if (s[3])
        k = OP2(c, ROPE_HALF, k, case_input(c, false, FILL_ANY, 0, DIMS(s[0] / 2)));
    return OP2(c, ATTEND, VALUE(c, s[0], s[1]), OP2(c, CACHE, k, VALUE(c, s[0], s[2])));
}

/* Two layers read one cache. size: length of a row, query heads, store heads, the second one's
 * window. */
static const conform_form twices[] = {
    {.size = {16, 4, 2, 9}, .n = 40, .n_batch = 16, .type_k = GGL_F16, .type_v = GGL_F16}};
static ggl_tensor *attend_twice(conform_build *c) {
    const int64_t *s = c->f.size;
    case_positions(c);
    case_slots(c);
    c->about = 1;
    ggl_tensor *kv = OP2(c, CACHE, VALUE(c, s[0], s[2]), VALUE(c, s[0], s[2]));
    ggl_tensor *src[2] = {VALUE(c, s[0], s[1]), kv};
    src[0] = case_node(c, GGL_OP_ATTEND, src, 2, NULL, 0);
    double num[2] = {NAN, s[3] ? (double)s[3] : NAN};
    return case_node(c, GGL_OP_ATTEND, src, 2, num, 2);
}

/* Rows of relative positions. size: length of a row, of a value, query heads, store heads, window, rows, m of the distances -m .. m,
 * tables (1: rel_k, 2: rel_q, 3: both); CONFORM_PART: one table for all heads. */
static const conform_form relatives[] = {
    {.size = {16, 16, 3, 3, 0, 9, 5, 3}, .n = 40, .n_batch = 16},
    {.size = {16, 24, 4, 2, 0, 33, 70, 3},
     .n = 200,
     .n_batch = 130,
     .type_k = GGL_F16,
     .type_v = GGL_F16,
     .with = CONFORM_SINKS | CONFORM_SCALE},
    {.size = {20, 16, 6, 2, 37, 5, 200, 1},
     .n = 150,
     .n_batch = 64,
     .n_slots = 3,
     .turn = 7,
     .type_k = GGL_F16,
     .with = CONFORM_PART | CONFORM_ALIBI},
    {.size = {33, 17, 4, 1, 0, 70, 3, 2}, .n = 150, .n_batch = 50, .n_slots = 2, .turn = 25},
    {.size = {64, 64, 2, 2, 0, 64, 30, 3},
     .n = 140,
     .n_batch = 140,
     .type_k = GGL_Q8_0,
     .type_v = GGL_F16},
    {.size = {32, 32, 2, 1, 50, 1, 0, 3},
     .n = 90,
     .n_batch = 1,
     .type_k = GGL_Q4_0,
     .type_v = GGL_Q4_0},
    {.size = {16, 16, 4, 4, 0, 20, 40, 3},
     .n = 150,
     .n_slots = 3,
     .turn = 37,
     .with = CONFORM_SEES_ALL},
};
static ggl_tensor *attend_relative(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0], h = s[2], g = s[3];
    const int64_t table[3] = {d, s[5], c->f.with & CONFORM_PART ? 1 : g};
    case_positions(c);
    case_slots(c);
    if (c->f.with & CONFORM_SEES_ALL)
        case_ends(c);
    c->about = 1;
    ggl_tensor *src[8] = {VALUE(c, d, h),
                          OP2(c, CACHE, OP1(c, ABS, VALUE(c, d, g)), VALUE(c, s[1], g))};
    if (c->f.with & CONFORM_SINKS)
        src[2] = case_weight(c, GGL_F32, DIMS(h));
    if (c->f.with & CONFORM_ALIBI)
        src[3] = case_weight(c, GGL_F32, DIMS(h));
    if (s[7] & 1)
        src[5] = case_weight(c, GGL_F32, 3, table);
    if (s[7] & 2)
        src[6] = case_weight(c, GGL_F32, 3, table);
    src[7] = relative_rows(c, s[5], s[6]);
    double num[3] = {c->f.with & CONFORM_SCALE ? 0.4 : NAN, s[4] ? (double)s[4] : NAN, NAN};
    return case_node(c, GGL_OP_ATTEND, src, 8, num, 3);
}

/* Rows that are chosen. size: length of a row, of a value, query heads, store heads, rows (groups) that are chosen, positions of a group,
 * heads that choose, whether each of those has a list of its own, and then by groups' largest scores with size[8] - 1 near ones, if that is not 0.
 * Queries, keys and weights that choose are whole numbers, so that all backends have the same scores. PART: values are the
 * beginning of the keys. */
static const conform_form chosen_rows[] = {
    {.size = {16, 16, 4, 2, 5, 1, 3}, .n = 40, .n_batch = 16},
    {.size = {24, 20, 6, 1, 9, 4, 7},
     .n = 150,
     .n_batch = 64,
     .n_slots = 3,
     .turn = 7,
     .type_k = GGL_F16,
     .type_v = GGL_F16,
     .with = CONFORM_PART},
    {.size = {32, 32, 100, 1, 70, 1, 13},
     .n = 200,
     .n_batch = 130,
     .type_k = GGL_F16,
     .with = CONFORM_SINKS | CONFORM_SCALE},
    {.size = {32, 64, 2, 2, 3, 70, 2},
     .n = 300,
     .n_batch = 1,
     .type_k = GGL_Q8_0,
     .type_v = GGL_Q4_0},
    {.size = {16, 16, 6, 3, 3, 4, 3, 1, 2}, .n = 60, .n_batch = 16},
    {.size = {24, 20, 4, 2, 4, 1, 2, 1, 0},
     .n = 150,
     .n_batch = 64,
     .n_slots = 3,
     .turn = 7,
     .type_k = GGL_F16,
     .type_v = GGL_F16},
    {.size = {8, 8, 2, 2, 3, 7, 2, 1, 1}, .n = 90, .n_batch = 40, .type_k = GGL_F16},
    {.size = {32, 32, 4, 4, 3, 16, 3, 0, 4}, .n = 200, .n_batch = 1, .type_k = GGL_Q8_0},
};
static const conform_form long_choice[] = {
    {.size = {8, 8, 9, 1, 1100, 1, 2}, .n = 2200, .n_batch = 1000, .type_k = GGL_F16},
    {.size = {8, 8, 9, 1, 40, 2, 2}, .n = 2200, .n_batch = 1},
    {.size = {8, 8, 6, 3, 9, 128, 3, 1, 2}, .n = 1400, .n_batch = 900, .type_k = GGL_F16},
    {.size = {8, 8, 2, 2, 12, 100, 2, 1, 1}, .n = 1350, .n_batch = 1},
};

/* Whole numbers from -2 to 2. */
static ggl_tensor *whole_numbers(conform_build *c, ggl_tensor *x) {
    return OP1(c, FLOOR, OP2(c, MUL, x, NUMBER(c, 2.9)));
}

static ggl_tensor *choice_of(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0];
    ggl_tensor *keys = whole_numbers(c, VALUE(c, d, 1)),
               *src[3] = {whole_numbers(c, VALUE(c, d, s[6])), OP2(c, CACHE, keys, keys),
                          s[7] ? NULL : whole_numbers(c, VALUE(c, s[6]))};
    const double num[3] = {(double)s[4], (double)s[5], s[8] ? (double)s[8] - 1 : NAN};
    return case_node(c, GGL_OP_CHOOSE_ROWS, src, 3, num, 3);
}

static ggl_tensor *choose_rows(conform_build *c) {
    case_positions(c);
    case_slots(c);
    c->about = 1;
    return choice_of(c);
}

static ggl_tensor *attend_chosen(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0], e = s[1], h = s[2], g = s[3];
    case_positions(c);
    case_slots(c);
    c->about = 1;
    ggl_tensor *k = OP1(c, ABS, VALUE(c, d, g)), *v = c->f.with & CONFORM_PART
                                                          ? OP1N(c, SPLIT, k, 3, 0, 0, (double)e)
                                                          : VALUE(c, e, g);
    ggl_tensor *src[10] = {VALUE(c, d, h), OP2(c, CACHE, k, v), NULL, NULL, NULL, NULL, NULL, NULL,
                           NULL,           choice_of(c)};
    if (c->f.with & CONFORM_SINKS)
        src[2] = case_weight(c, GGL_F32, DIMS(h));
    const double num[3] = {c->f.with & CONFORM_SCALE ? 0.4 : NAN, NAN, NAN};
    return case_node(c, GGL_OP_ATTEND, src, 10, num, 3);
}

/* More numbers of positions than the store has rows, size[4] of them: rows that are read several times. */
static const conform_form often[] = {{.size = {16, 16, 4, 2, 20000}, .n = 3, .n_batch = 1},
                                     {.size = {16, 16, 4, 2, 1500}, .n = 12, .n_batch = 9}};

static ggl_tensor *attend_often(conform_build *c) {
    const int64_t *s = c->f.size, d = s[0], e = s[1], h = s[2], g = s[3];
    case_positions(c);
    case_slots(c);
    c->about = 1;
    ggl_tensor *src[10] = {VALUE(c, d, h), OP2(c, CACHE, VALUE(c, d, g), VALUE(c, e, g))};
    src[9] = OP1(c, ABS, whole_numbers(c, VALUE(c, s[4])));
    return case_node(c, GGL_OP_ATTEND, src, 10, (double[]){NAN, NAN, NAN}, 3);
}

#define ATTEND(NAME, fn, list)                                                                     \
    .name = NAME, .op = GGL_OP_ATTEND, .build = fn, FORM_LIST(list), .bound = 2e-3,                \
    .bound_quantized = 3e-2

static const conform_case attention[] = {
    {ATTEND("attend_same_keys", attend_same_keys, same_keys)},
    {.name = "attend_back",
     .op = GGL_OP_ATTEND_BACK,
     .build = attend_back_of,
     FORM_LIST(backs),
     .bound = 2e-5,
     .large = &large_back},
    {.name = "attend_back_relative",
     .op = GGL_OP_ATTEND_BACK,
     .build = attend_back_relative,
     FORM_LIST(relative_backs),
     .bound = 2e-5,
     .large = &large_relative_back},
    {.name = "rope_half",
     .op = GGL_OP_ROPE_HALF,
     .build = rope_half,
     FORM_LIST(ropes),
     .bound = ROWS,
     .edges = EDGE(NAN) | EDGE(TINY),
     .large = &large_rope},
    {.name = "rope_pair",
     .op = GGL_OP_ROPE_PAIR,
     .build = rope_pair,
     FORM_LIST(ropes),
     .bound = ROWS,
     .edges = EDGE(NAN) | EDGE(TINY),
     .large = &large_rope},
    {ATTEND("attend_short", attend_of, shorts), .edges = EDGE(NAN)},
    {ATTEND("attend_twice", attend_twice, twices)},
    {ATTEND("attend_shared", attend_of, shareds)},
    {ATTEND("attend_turns", attend_of, turns)},
    {ATTEND("attend_whole", attend_of, wholes), .edges = EDGE(NAN)},
    {ATTEND("attend_blocks", attend_of, blocks)},
    {ATTEND("attend_relative", attend_relative, relatives)},
    {ATTEND("attend_chosen", attend_chosen, chosen_rows)},
    {.name = "choose_rows",
     .op = GGL_OP_CHOOSE_ROWS,
     .build = choose_rows,
     FORM_LIST(chosen_rows),
     .bound = 0},
};
KIND(attention, attention);

static const conform_case kept[] = {
    {ATTEND("attend_kept", attend_of, kept_forms), .types = CONFORM_ANY_KEPT, .large = &large}};
KIND(kept, kept);

static const conform_case spans[] = {{ATTEND("attend_long", attend_of, longs)},
                                     {ATTEND("attend_long_choice", attend_chosen, long_choice)},
                                     {ATTEND("attend_often", attend_often, often)}};
KIND(spans, spans);
