/* What the shaders of products bind, and their constants (shaders/linear.glsl). */
#include <string.h>

#include "linear.h"
#include "repack.h"
#include "shaders/kinds.h"
#include "weights.h"

enum { BLOCK = 32 }; /* numbers that are rounded together */

static const ggl_operand absent = {.region = -1};

enum { UNIT = 8 }; /* elements of a row that a lane multiplies together */

/* True if all rows of x begin at multiples of 4 elements, and consist of whole units: nothing behind a row is read. */
static bool in_fours(const vk_emit *e, const ggl_operand *x, uint32_t at) {
    uint32_t all = at;
    if (x->ne[0] % UNIT != 0)
        return false;
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        all |= ggl_vk_stride(e, x, d);
    return all % 4 == 0;
}

/* Returns the bytes of n rows, with the spaces between them. */
static size_t rows_size(const vk_product *p, int64_t n) {
    if (p->w->repacked)
        return (size_t)((n + VK_TILE_ROWS - 1) / VK_TILE_ROWS) * p->w_row;
    return ggl_row_size(p->w->type, p->w->ne[0]) + (size_t)(n - 1) * p->w_row;
}

size_t ggl_vk_part_size(const vk_emit *e, const vk_product *p, const vk_part *of) {
    const ggl_operand *w = p->w;
    const size_t size = rows_size(p, of->n_rows) + (size_t)(of->n_matrices - 1) * p->w_matrix;
    return size + (size_t)(ggl_vk_extent(e, w, 3) - 1) * p->w_outer;
}

/* Returns the bytes of w before a part, whose rows begin with a tile. */
static size_t part_begin(const vk_product *p, const vk_part *of) {
    const int64_t row = p->w->repacked ? of->first_row / VK_TILE_ROWS : of->first_row;
    return (size_t)of->first_matrix * p->w_matrix + (size_t)row * p->w_row;
}

/* True if the rows of plain numbers are made of whole runs at multiples of 16 bytes. */
static bool in_sixteens(const vk_product *p, uint32_t w_at) {
    uint32_t all = w_at | (uint32_t)p->w_row | (uint32_t)p->w->ne[0] * 2;
    for (int d = 0; d < 3; d++)
        all |= p->w_step[d];
    return ggl_type_get(p->w->type)->block == 1 && all % 16 == 0;
}

/* Where the weights, the result and the bias of a product are in their bindings: in bytes, and in
 * words. */
typedef struct places {
    uint32_t w[VK_LINEAR_MEMBERS], y[VK_LINEAR_MEMBERS], bias[VK_LINEAR_MEMBERS];
} places;

/* Binds what the product writes: y, or slices of it in the scratch. Returns the offset in words. */
static uint32_t bind_result(vk_emit *e, vk_call *c, const vk_product *p) {
    if (p->n_slices == 1)
        return ggl_vk_bind(e, c, p->y, true);
    const size_t size = (size_t)p->n_slices * p->slice * 4;
    return ggl_vk_bind_bytes(e, c, GGL_REGION_ARENA, p->slices, size, true) / 4;
}

static uint32_t bind_words(vk_emit *e, vk_call *c, const vk_binding *x) {
    return ggl_vk_bind_bytes(e, c, x->region, x->offset, x->size, false) / 4;
}

/* Sets where columns begin, and their strides. Those of f16 are dense. */
static void set_columns(const vk_emit *e, vk_push_linear *to, const vk_product *p, uint32_t at) {
    uint32_t step = p->pitch;
    to->x_at = p->matrix ? at / 4 : at;
    ggl_vk_outer_strides(e, p->x, to->x_step);
    for (int d = 1; d < GGL_MAX_DIMS && p->matrix; d++) {
        const uint32_t n = (uint32_t)ggl_vk_extent(e, p->x, d);
        to->x_step[d - 1] = n > 1 ? step : 0;
        step *= n;
    }
}

static uint32_t bind_columns(vk_emit *e, vk_call *c, const vk_product *p) {
    return p->matrix ? bind_words(e, c, &p->halves) : ggl_vk_bind(e, c, p->x, false);
}

/* Binds weights, columns, result and bias of one product. Returns where the columns are. */
static uint32_t bind_one(vk_emit *e, vk_call *c, const vk_product *p, const vk_part *of,
                         places *at) {
    at->w[0] = ggl_vk_bind_weight(e, c, p->w, part_begin(p, of), ggl_vk_part_size(e, p, of));
    const uint32_t x_at = bind_columns(e, c, p);
    at->y[0] = bind_result(e, c, p);
    at->bias[0] = ggl_vk_bind(e, c, p->bias, false);
    return x_at;
}

/* The same for several products of the same columns. */
static uint32_t bind_members(vk_emit *e, vk_call *c, const vk_product *p, places *at) {
    const ggl_operand *w[VK_LINEAR_MEMBERS], *y[VK_LINEAR_MEMBERS], *bias[VK_LINEAR_MEMBERS];
    size_t w_size[VK_LINEAR_MEMBERS], y_size[VK_LINEAR_MEMBERS], bias_size[VK_LINEAR_MEMBERS];
    for (int m = 0; m < p->n_members; m++) {
        const vk_part all = {.n_matrices = p[m].w->ne[2], .n_rows = p[m].w->ne[1]};
        w[m] = p[m].w;
        y[m] = p[m].y;
        bias[m] = p[m].bias;
        w_size[m] = ggl_vk_part_size(e, &p[m], &all);
        y_size[m] = ggl_vk_span(e, y[m]);
        bias_size[m] = ggl_vk_has(bias[m]) ? ggl_vk_span(e, bias[m]) : 0;
    }
    ggl_vk_bind_together(e, c, w, w_size, p->n_members, false, at->w);
    const uint32_t x_at = bind_columns(e, c, p);
    ggl_vk_bind_together(e, c, y, y_size, p->n_members, true, at->y);
    ggl_vk_bind_together(e, c, bias, bias_size, p->n_members, false, at->bias);
    for (int m = 0; m < p->n_members; m++) {
        at->y[m] /= 4;
        at->bias[m] /= 4;
    }
    return x_at;
}

/* The words of of_first and of_others (shaders/linear.glsl): of a member; of what follows the member of a product
 * that is emitted alone, with its index or its norm; of what follows a pair whose matrices are chosen. */
enum { ROWS, W_AT, Y_AT, Y_STEP, BIAS_AT = Y_STEP + 3, N_MEMBER };
enum {
    BIAS_STEP,
    OUTER = BIAS_STEP + 3,
    W_STEP = OUTER + 3,
    INDEX_AT = W_STEP + 3,
    FIRST_MATRIX = INDEX_AT + 4,
    N_BOUND,
    NORM_EPS = INDEX_AT,
    NORM_WEIGHT_AT,
    NORMED_AT,
    NORM_BLOCKS_AT,
    FIRST_EPS,
    FIRST_WEIGHT_AT,
    PAIR_OUTER = N_MEMBER,
    PAIR_W_STEP = PAIR_OUTER + 3,
    PAIR_INDEX_AT
};

static uint32_t word_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* Sets the rows of a product, and where it is. */
static void set_member(const vk_emit *e, uint32_t word[N_MEMBER], const vk_product *p,
                       int64_t n_rows, const places *at, int m) {
    uint32_t step = (uint32_t)p->y->ne[0];
    word[ROWS] = (uint32_t)n_rows;
    word[W_AT] = at->w[m];
    word[Y_AT] = at->y[m];
    for (int d = 1; d < GGL_MAX_DIMS; d++) {
        word[Y_STEP + d - 1] = p->n_slices > 1 ? step : ggl_vk_stride(e, p->y, d);
        step *= (uint32_t)ggl_vk_extent(e, p->y, d);
    }
    word[BIAS_AT] = p->n_slices > 1 ? p->slice : at->bias[m];
}

/* Sets how an index chooses the matrix of each column. */
static void set_index(const vk_emit *e, uint32_t word[4], const vk_product *p, uint32_t index_at) {
    const bool tiles = p->n_tiles > 0;
    word[0] = index_at;
    word[1] = tiles ? (uint32_t)p->n_tiles : ggl_vk_stride(e, p->index, 0);
    word[2] = tiles ? 0 : ggl_vk_stride(e, p->index, 3);
    word[3] = (uint32_t)p->w->ne[2];
}

/* Sets what only a product that is emitted alone has: with a norm, or with an index and matrices. */
static void set_alone(const vk_emit *e, uint32_t *word, const vk_product *p, const vk_part *of,
                      uint32_t index_at, const vk_norm_places *norm) {
    if (p->n_slices == 1) /* the bias of slices is added later */
        ggl_vk_outer_strides(e, p->bias, &word[BIAS_STEP]);
    for (int d = 0; d < 3; d++) {
        word[OUTER + d] = p->outer[d];
        word[W_STEP + d] = p->w_step[d];
    }
    if (p->norm.norm) {
        word[NORM_EPS] = word_of(ggl_vk_last_eps(p));
        word[NORM_WEIGHT_AT] = norm->weight;
        word[NORMED_AT] = norm->normed;
        word[NORM_BLOCKS_AT] = norm->blocks;
        word[FIRST_EPS] = word_of(ggl_vk_norm_eps(&p->norm));
        word[FIRST_WEIGHT_AT] = norm->first_weight;
        return;
    }
    set_index(e, &word[INDEX_AT], p, index_at);
    word[FIRST_MATRIX] = (uint32_t)of->first_matrix;
    word[N_BOUND] = (uint32_t)of->n_matrices;
}

/* Sets the other members of several products; of two whose matrices are chosen, also what they share. */
static void set_others(const vk_emit *e, uint32_t *word, const vk_product *p, const places *at,
                       uint32_t index_at) {
    for (int m = 1; m < p->n_members; m++)
        set_member(e, &word[(m - 1) * N_MEMBER], &p[m], p[m].w->ne[1], at, m);
    if (!ggl_vk_has(p->index))
        return;
    for (int d = 0; d < 3; d++)
        word[PAIR_OUTER + d] = p->outer[d];
    word[PAIR_W_STEP] = p->w_step[0];
    set_index(e, &word[PAIR_INDEX_AT], p, index_at);
}

/* --- norms and rounding ----------------------------------------------------------------------- */

/* Returns the norm of the results, or of their sum with other values; norm NULL if none. */
static const vk_norm *last_norm(const vk_product *p) {
    return p->add ? &p->after : &p->norm;
}

void ggl_vk_bind_norm_weight(vk_emit *e, vk_call *c, const vk_product *p, vk_norm_places *at) {
    const ggl_operand *w[2] = {p->norm.mul ? ggl_vk_other(p->norm.mul) : &absent, NULL};
    const int n = p->after.mul ? 2 : 1;
    w[1] = n > 1 ? ggl_vk_other(p->after.mul) : NULL;
    const size_t size[2] = {(size_t)w[0]->ne[0] * sizeof(float),
                            (size_t)w[0]->ne[0] * sizeof(float)};
    uint32_t place[2];
    ggl_vk_bind_together(e, c, w, size, n, false, place);
    at->first_weight = place[0] / sizeof(float);
    at->weight = place[n - 1] / sizeof(float);
}

/* Binds the sum, and its norm or the bytes of one of them. */
static void bind_sum(vk_emit *e, vk_call *c, const vk_product *p, vk_norm_places *at) {
    const vk_norm *l = &p->after;
    at->normed = ggl_vk_bind(e, c, &p->add->dst, true);
    at->blocks = ggl_vk_bind(e, c,
                             l->round  ? &l->round->dst
                             : l->norm ? ggl_vk_normed(l)
                                       : &p->add->dst,
                             true);
}

uint32_t ggl_vk_bind_norm(vk_emit *e, vk_call *c, const vk_product *p, vk_norm_places *at) {
    const vk_norm *l = last_norm(p);
    const ggl_operand *normed = l->norm ? ggl_vk_normed(l) : NULL;
    if (p->add) {
        bind_sum(e, c, p, at);
    } else {
        at->normed = ggl_vk_bind(e, c, ggl_vk_stored(l, normed), true);
        at->blocks = ggl_vk_bind(e, c, l->round ? &l->round->dst : ggl_vk_stored(l, normed), true);
    }
    ggl_vk_bind_counters(e, c, 1);
    return ggl_vk_norm_kind(&p->norm) | (p->norm.mul ? THEN_WEIGHT : 0) |
           (l->round ? THEN_ROUND : 0) | (normed && normed->region >= 0 ? THEN_STORE : 0) |
           (p->add ? THEN_ADD : 0) | (p->add && l->norm ? THEN_AGAIN : 0);
}

float ggl_vk_last_eps(const vk_product *p) {
    const vk_norm *l = last_norm(p);
    return l->norm ? ggl_vk_norm_eps(l) : 0;
}

/* Binds what linear_vec.comp needs to round the result. Returns where the blocks are, in words. */
static uint32_t bind_blocks(vk_emit *e, vk_call *c, const vk_product *p) {
    ggl_vk_bind(e, c, p->blocks,
                true); /* in place of a norm, which a pipeline with blocks does not write */
    const uint32_t at = ggl_vk_bind(e, c, p->blocks, true);
    ggl_vk_bind_counters(e, c, (size_t)(p->y->ne[0] / BLOCK * ggl_vk_n_outer(p)));
    c->spec.linear_vec.then = THEN_ROUND;
    return at;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Binds the lists or the index, or what a norm has in their place. Returns where the index is. */
static uint32_t bind_index(vk_emit *e, vk_call *c, const vk_product *p, vk_norm_places *norm) {
    if (p->norm.norm) {
        ggl_vk_bind_norm_weight(e, c, p, norm);
        return 0;
    }
    return p->sorted ? bind_words(e, c, &p->lists) : ggl_vk_bind(e, c, p->index, false);
}

void ggl_vk_bind_product(vk_emit *e, vk_call *c, const vk_product *p, const vk_part *of) {
    places at;
    vk_norm_places norm = {0};
    const uint32_t x_at =
                       p->n_members > 1 ? bind_members(e, c, p, &at) : bind_one(e, c, p, of, &at),
                   index_at = bind_index(e, c, p, &norm);
    if (ggl_vk_has_codebook(p->w->type))
        ggl_vk_bind_codebooks(c);
    else if (p->norm.norm || p->blocks)
        ggl_vk_bind(e, c, &absent, false);
    if (p->norm.norm)
        c->spec.linear_vec.then = ggl_vk_bind_norm(e, c, p, &norm);
    else if (p->blocks)
        at.y[1] = bind_blocks(e, c, p); /* both members have one result */
    vk_spec_linear *s = &c->spec.linear;
    s->type = p->w->type;
    s->aligned = s->aligned_16 = true;
    for (int m = 0; m < p->n_members; m++) {
        s->aligned = s->aligned && ggl_vk_weight_aligned(e, p[m].w, at.w[m]);
        s->aligned_16 = s->aligned_16 && in_sixteens(&p[m], at.w[m]);
    }
    s->bias = ggl_vk_has(p->bias) && p->n_slices == 1 && !p->add;
    s->index = ggl_vk_has(p->index);
    s->x4 = !p->matrix && in_fours(e, p->x, x_at);
    s->packed_weights = p->w->repacked;
    s->exact_half = e->b->features.half;
    s->members = (uint32_t)p->n_members;
    vk_push_linear *to = VK_PUSH(c, linear);
    to->n_in = (uint32_t)p->w->ne[0];
    to->first_row = (uint32_t)of->first_row;
    to->w_row = (uint32_t)p->w_row;
    memcpy(to->column, p->column, sizeof to->column);
    set_columns(e, to, p, x_at);
    set_member(e, to->of_first, p, of->n_rows, &at, 0);
    if (p->n_members > 1)
        set_others(e, to->of_others, p, &at, index_at);
    else
        set_alone(e, to->of_others, p, of, index_at, &norm);
}

int64_t ggl_vk_units_down(const vk_product *p, const vk_part *of, int64_t rows) {
    int64_t n = (of->n_rows + rows - 1) / rows;
    for (int m = 1; m < p->n_members && !p->gated; m++)
        n += (p[m].w->ne[1] + rows - 1) / rows;
    return n;
}
