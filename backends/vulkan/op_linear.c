/* linear: y[j] = sum of w[e, j] x[e], plus a bias. Dimensions tell the shaders which matrix serves
 * which columns (shaders/linear.glsl). With few columns per matrix, rows are multiplied one by one
 * (linear_vec.comp), with many in tiles (linear_mat.comp). If an index chooses the matrix of each
 * column, columns are sorted by their matrix for tiles (linear_sort.comp).
 *
 * If the device multiplies bytes fast (features.idot), products with quantized weights read columns
 * that are rounded to bytes: a form, which a step of its own makes (quantize.comp), once for all
 * products of the same columns.
 *
 * Weights larger than a binding are bound in parts, with a dispatch each: some matrices, or some
 * rows of one. Repacked weights (repack.c) are read in the same way, a tile of 4 rows for a row.
 *
 * If there are too few tiles to keep the device busy, the elements of each row are divided into
 * slices, whose sums linear_merge.comp adds. */
#include <string.h>

#include "linear.h"
#include "repack.h"
#include "weights.h"

enum {
    LOCAL_VEC = 64,
    UNIT_GROUPS = 4, /* workgroups that keep a unit of the device busy */
    NORM_COLS = 4,   /* most columns whose norms one workgroup computes one after the other */
    SORTED = 1024,   /* most matrices for linear_sort.comp */
    BLOCK = 32,      /* numbers of a column that are rounded together, */
    BLOCK_SIZE = 48  /* and the bytes they become: three uvec4 */
};

static const ggl_operand absent = {.region = -1};

/* With an index: true if there are several columns per matrix on average, so that tiles pay off. */
static bool sorts(int64_t n_cols, int64_t n_matrices) {
    return n_matrices <= SORTED && n_cols > 4 * n_matrices;
}

vk_product ggl_vk_product_of(const vk_emit *e, const ggl_step *s) {
    vk_product p = {.x = &s->src[LINEAR_X],
                    .w = &s->src[LINEAR_W],
                    .y = &s->dst,
                    .index = &absent,
                    .n_cols = 1,
                    .n_slices = 1,
                    .n_members = 1};
    p.rounded = p.x->form;
    p.bias = s->n_src > 2 ? &s->src[LINEAR_BIAS] : &absent;
    if (s->n_links > 1 &&
        !ggl_vk_norm_is_first(s)) { /* a sum with other values: as a bias of each column */
        p.bias = ggl_vk_other(&s[1]);
        p.y = &s[1].dst;
    }
    if (s->n_src > 3)
        p.index = &s->src[LINEAR_INDEX];
    const bool batch_of_w = ggl_is_batched(s->node->src[LINEAR_W]);
    p.w_row = p.w->repacked ? ggl_vk_tile_size(p.w->type, p.w->ne[0]) : p.w->nb[1];
    p.w_matrix = p.w->repacked ? ggl_vk_packed_size(p.w->type, p.w->ne[0], p.w->ne[1]) : p.w->nb[2];
    p.w_outer = p.w->repacked ? p.w_matrix * (size_t)p.w->ne[2] : p.w->nb[3];
    p.w_step[0] = p.w->ne[2] > 1 ? (uint32_t)p.w_matrix : 0;
    if (ggl_vk_extent(e, p.w, 3) > 1)
        p.w_step[ggl_vk_has(p.index) ? 0 : batch_of_w ? 2 : 1] |= (uint32_t)p.w_outer;
    for (int d = 0; d < 3; d++) {
        const uint32_t n = (uint32_t)ggl_vk_extent(e, p.y, d + 1);
        const bool shared = !ggl_vk_has(p.index) && p.w_step[d] == 0;
        p.column[d] = shared ? n : 1;
        p.outer[d] = shared ? 1 : n;
        p.n_cols *= shared || ggl_vk_has(p.index) ? n : 1;
    }
    p.sorted = ggl_vk_has(p.index) && sorts(p.n_cols, p.w->ne[2]);
    for (int d = 0; d < 3 && p.sorted; d++) {
        p.column[d] = p.outer[d];
        p.outer[d] = 1;
    }
    return p;
}

/* True if all rows of x begin and end at multiples of 4 elements. */
static bool in_fours(const vk_emit *e, const ggl_operand *x, uint32_t at) {
    uint32_t all = at | (uint32_t)x->ne[0];
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

/* Returns the bytes of w from the start to the end of a part. */
static size_t part_size(const vk_emit *e, const vk_product *p, const vk_part *of) {
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
    at->w[0] = ggl_vk_bind_weight(e, c, p->w, part_begin(p, of), part_size(e, p, of));
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
        w_size[m] = part_size(e, &p[m], &all);
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
        at.y[1] = ggl_vk_bind_blocks(e, c, p); /* both members have one result */
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

static uint32_t round_up_to_power(int64_t n, uint32_t most) {
    uint32_t p = 1;
    while (p < most && p < n)
        p *= 2;
    return p;
}

/* --- rounding --------------------------------------------------------------------------------- */

/* The form of columns for products with quantized weights, if the device multiplies bytes fast. */
static ggl_form linear_form(const vk_backend *b, const ggl_step *s) {
    const ggl_operand *x = &s->src[LINEAR_X];
    const int64_t rows = ggl_extents(x->ne, 1, GGL_MAX_DIMS, 1); /* of one token */
    const size_t row_size = (size_t)x->ne[0] / BLOCK * BLOCK_SIZE;
    if (!b->features.idot || !ggl_type_get(s->src[LINEAR_W].type)->quantized ||
        (size_t)rows * row_size > ggl_vk_most_bound(b))
        return (ggl_form){0};
    return (ggl_form){.kind = 1, .with = -1, .row_size = row_size};
}

/* --- few columns ------------------------------------------------------------------------------ */

int64_t ggl_vk_many_groups(const vk_backend *b) {
    return (int64_t)b->limits.units * UNIT_GROUPS;
}

/* Returns the units of linear_vec.comp in a row. */
static int64_t units_of_row(const vk_product *p) {
    if (ggl_type_get(p->w->type)->block == 1)
        return p->w->ne[0] / 8;
    return p->w->ne[0] / 32 * (p->w->repacked && !p->rounded ? 4 : 1);
}

/* Returns the rows that a lane multiplies with one load of the columns: several if enough
 * workgroups remain; with one row there are n_groups. Rows that are decoded as floats from
 * blocks of the file take many registers, and so do the sums of two products. */
static uint32_t rows_of_lane(const vk_backend *b, const vk_product *p, int64_t n_groups,
                             uint32_t cols) {
    const bool one = !p->rounded && !p->w->repacked && ggl_type_get(p->w->type)->block > 1;
    uint32_t rows = one ? 1 : 4;
    while (rows > 1 &&
           (n_groups / rows < ggl_vk_many_groups(b) || rows * cols > (p->gated ? 16 : 32)))
        rows /= 2;
    return rows;
}

/* Returns whether the lanes of a row are a subgroup. */
static bool is_by_subgroup(const vk_backend *b, const vk_product *p) {
    return b->features.subgroup && units_of_row(p) >= b->limits.subgroup_size;
}

static uint32_t lanes_of(const vk_backend *b, const vk_product *p) {
    return is_by_subgroup(b, p) ? b->limits.subgroup_size : round_up_to_power(units_of_row(p), 16);
}

/* A norm determines the workgroup's size. This does not change what a lane computes. */
static ggl_status emit_vec(vk_emit *e, const vk_product *p, const vk_part *of, ggl_error *err) {
    static const vk_shader shader[2][2][2] = {
        {{VK_SHADER_LINEAR_VEC, VK_SHADER_LINEAR_VEC_CODEBOOK},
         {VK_SHADER_LINEAR_VEC_SUBGROUP, VK_SHADER_LINEAR_VEC_SUBGROUP_CODEBOOK}},
        {{VK_SHADER_LINEAR_VEC_IDOT, VK_SHADER_LINEAR_VEC_IDOT_CODEBOOK},
         {VK_SHADER_LINEAR_VEC_IDOT_SUBGROUP, VK_SHADER_LINEAR_VEC_IDOT_SUBGROUP_CODEBOOK}}};
    const int64_t n_cols = (int64_t)p->column[0] * p->column[1] * p->column[2];
    const uint32_t cols = round_up_to_power(n_cols, VK_VEC_COLS);
    const bool subgroup = is_by_subgroup(e->b, p);
    const uint32_t lanes = lanes_of(e->b, p),
                   local = p->norm.norm ? ggl_vk_row_local(p->y->ne[0]) : LOCAL_VEC,
                   side = lanes < local ? local / lanes : 1;
    const int64_t others = (n_cols + cols - 1) / cols * ggl_vk_n_outer(p);
    const uint32_t rows = rows_of_lane(e->b, p, ggl_vk_units_down(p, of, 1) * others / side, cols);
    vk_call c = {.shader = shader[p->rounded][subgroup][ggl_vk_has_codebook(p->w->type)],
                 VK_SPEC(linear_vec, .local = local, .cols = cols, .lanes = subgroup ? 1 : lanes,
                         .rows = rows,
                         .at_once = cols * rows <= 4 && units_of_row(p) > lanes ? 2 : 1,
                         .kind = p->gate, .gated = p->gated)};
    ggl_vk_bind_product(e, &c, p, of);
    c.groups[0] = ggl_vk_groups(ggl_vk_units_down(p, of, rows * side) * others, 1);
    return ggl_vk_dispatch(e, &c, err);
}

/* --- the operator ----------------------------------------------------------------------------- */

/* Returns the first of equal parts that fit a binding: several matrices, or several rows of one. */
static vk_part largest_part(const vk_emit *e, const vk_product *p) {
    const ggl_operand *w = p->w;
    vk_part all = {.n_matrices = w->ne[2], .n_rows = w->ne[1]},
            one = {.n_matrices = 1, .n_rows = 1};
    const size_t most = ggl_vk_most_bound(e->b);
    const bool divisible = ggl_vk_extent(e, w, 3) == 1 && (ggl_vk_has(p->index) || w->ne[2] == 1);
    if (part_size(e, p, &all) <= most || !divisible)
        return all;
    one.n_rows = w->ne[1];
    if (part_size(e, p, &one) <= most)
        one.n_matrices = 1 + (int64_t)((most - part_size(e, p, &one)) / p->w_matrix);
    else
        one.n_rows = (int64_t)(most / p->w_row) * (w->repacked ? VK_TILE_ROWS : 1);
    return one;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

bool ggl_vk_is_narrow(const vk_product *p) {
    return !p->sorted && (ggl_vk_has(p->index) || p->n_cols <= VK_VEC_COLS);
}

bool ggl_vk_step_is_narrow(const ggl_step *step, int64_t n) {
    const int64_t n_cols = ggl_extents(step->dst.ne, 1, GGL_MAX_DIMS, n);
    return ggl_vk_is_chosen(step) ? !sorts(n_cols, step->src[LINEAR_W].ne[2])
                                  : n_cols <= VK_VEC_COLS;
}

ggl_status ggl_vk_emit_products(vk_emit *e, const vk_product *p, ggl_error *err) {
    const vk_part each = largest_part(e, p);
    const bool tiles = p->n_tiles > 0;
    ggl_status st = GGL_OK;
    for (vk_part of = each; of.first_matrix < p->w->ne[2]; of.first_matrix += each.n_matrices)
        for (of.first_row = 0; of.first_row < p->w->ne[1] && st == GGL_OK;
             of.first_row += each.n_rows) {
            of.n_matrices = least(each.n_matrices, p->w->ne[2] - of.first_matrix);
            of.n_rows = least(each.n_rows, p->w->ne[1] - of.first_row);
            st = tiles ? ggl_vk_emit_tiles(e, p, &of, err) : emit_vec(e, p, &of, err);
        }
    return st == GGL_OK && tiles ? ggl_vk_end_tiles(e, p, err) : st;
}

/* True if n products of the same columns can share a dispatch: no product is split into slices, and
 * one buffer binding covers all results. (The number of slices determines a result's bits, so it
 * must not depend on the other products.) */
static bool fit_together(const vk_emit *e, const vk_product *p, int n) {
    size_t begin = SIZE_MAX, end = 0;
    for (int m = 0; m < n; m++) {
        const ggl_operand *y = p[m].y;
        const size_t size = ggl_vk_span(e, y), batch = y->ne[GGL_BATCH_DIM] == GGL_N,
                     at = y->offset + batch * (size_t)e->first * y->nb[GGL_BATCH_DIM];
        if (p[m].n_slices > 1 || y->region != p->y->region)
            return false;
        begin = at < begin ? at : begin;
        end = at + size > end ? at + size : end;
    }
    return end - begin <= ggl_vk_most_bound(e->b);
}

/* True if one dispatch computes all rows of the product. */
static bool is_whole(const vk_emit *e, const vk_product *p) {
    const vk_part of = largest_part(e, p);
    return of.n_matrices == p->w->ne[2] && of.n_rows == p->w->ne[1];
}

/* The workgroup's size is that of rows.comp, which suits the lanes of a row only if it is not smaller. A
 * norm has rows.comp's order of sums only if both are by subgroups, or neither is. */
bool ggl_vk_has_last(const vk_emit *e, const vk_product *p) {
    return is_whole(e, p) && is_by_subgroup(e->b, p) == e->b->features.subgroup &&
           ggl_vk_is_narrow(p) && p->n_cols <= NORM_COLS && ggl_vk_n_outer(p) == 1 &&
           ggl_vk_row_local(p->y->ne[0]) >= lanes_of(e->b, p);
}

static ggl_status linear_emit(vk_emit *e, ggl_error *err) {
    if (e->step->has_tail)
        return ggl_vk_emit_gated(e, err);
    if (ggl_vk_norm_is_first(e->step))
        return ggl_vk_emit_norm_first(e, err);
    vk_product p[VK_LINEAR_MEMBERS] = {{0}};
    const int n = e->step->n_members;
    size_t slices = 0;
    for (int m = 0; m < n; m++) {
        p[m] = ggl_vk_product_of(e, &e->step[m]);
        if (!ggl_vk_is_narrow(&p[m]))
            slices += ggl_vk_choose_tiles(e, &p[m], slices);
    }
    ggl_status st = p->n_tiles > 0 ? ggl_vk_begin_tiles(e, p, err) : GGL_OK;
    if (n > 1 && fit_together(e, p, n)) {
        p->n_members = n;
        return st == GGL_OK ? ggl_vk_emit_products(e, p, err) : st;
    }
    const bool takes = ggl_vk_take_norm(e, p);
    for (int m = 0; m < n && st == GGL_OK; m++)
        st = ggl_vk_emit_products(e, &p[m], err);
    return st == GGL_OK && !takes ? ggl_vk_emit_norm(e, err) : st;
}

static size_t linear_scratch(const vk_backend *b, const ggl_step *step, int64_t n) {
    return ggl_vk_gated_scratch(step, n) + ggl_vk_norm_first_scratch(step, n) +
           ggl_vk_tiles_scratch(b, step, n);
}

/* A product without a bias, a sum of it and values of its shape, and norms before or after the sum. */
static int linear_chain(const vk_backend *b, const ggl_step *step, int n) {
    const bool plain = (step->n_src < 3 || !ggl_vk_has(&step->src[LINEAR_BIAS])) &&
                       (step->n_src < 4 || !ggl_vk_has(&step->src[LINEAR_INDEX]));
    if (!plain)
        return 1;
    if (!ggl_vk_feeds(step, n, GGL_OP_ADD))
        return ggl_vk_norm_first_links(b, step, n);
    if (memcmp(ggl_vk_other(&step[1])->ne, step->dst.ne, sizeof step->dst.ne) != 0)
        return 1;
    return 2 + ggl_vk_linear_norm_links(step, n);
}

static const char *linear_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    if (!ggl_vk_decodes(node->src[LINEAR_W]->type))
        return "no product with weights of this type";
    const ggl_tensor *bias = node->n_src > 2 ? node->src[LINEAR_BIAS] : NULL;
    return node->src[LINEAR_X]->type != GGL_F32 || (bias && bias->type != GGL_F32)
               ? "a product needs columns, and a bias, of f32"
               : NULL;
}

const vk_op ggl_vk_op_linear = {.emit = linear_emit,
                                .scratch = linear_scratch,
                                .form = linear_form,
                                .chain = linear_chain,
                                .joins = ggl_vk_linear_joins,
                                .tail = ggl_vk_linear_tail,
                                .refuses = linear_refuses};
