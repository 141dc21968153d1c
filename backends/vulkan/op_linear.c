/* linear: y[j] = sum of w[e, j] x[e], plus a bias. Dimensions tell the shaders which matrix serves
 * which columns (shaders/linear.glsl). With few columns per matrix, rows are multiplied one by one
 * (linear_vec.comp), with many in tiles (linear_mat.comp). If an index chooses the matrix of each
 * column, columns are sorted by their matrix for tiles (linear_sort.comp).
 *
 * If the device multiplies bytes fast (features.idot), columns for quantized weights are first
 * rounded to bytes (quantize.comp), once for all rows.
 *
 * Weights larger than a binding are bound in parts, with a dispatch each: some matrices, or some
 * rows of one. */
#include "weights.h"

enum {
    LOCAL_ROUND = 32, /* small, so that one column is divided among several workgroups */
    LOCAL_VEC = 64,
    LOCAL_MAT = 128, /* linear_mat.comp relies on it */
    TILE_ROWS = 64,
    TILE_COLS = 16,  /* times 1, 2 or 4: columns of a tile */
    VEC_COLS = 8,    /* most columns per matrix for linear_vec.comp */
    SORTED = 1024,   /* most matrices for linear_sort.comp */
    BLOCK = 32,      /* numbers of a column that are rounded together, */
    BLOCK_WORDS = 12 /* and the words they become: three uvec4 */
};

/* The operands of a product, and the dimensions of its columns. */
typedef struct product {
    const ggl_operand *w, *bias, *index, *y;
    ggl_operand x; /* the columns as the product reads them, possibly rounded */
    bool rounded;
    uint32_t column[3], outer[3]; /* shaders/linear.glsl */
    uint32_t w_step[3];
    int64_t n_cols; /* columns per matrix; with an index all columns */
    bool sorted;    /* by matrix, for tiles */
} product;

/* The part of w that a dispatch binds. */
typedef struct part {
    int64_t first_matrix, n_matrices, first_row, n_rows;
} part;

static const ggl_operand absent = {.region = -1};

static bool has(const ggl_operand *o) {
    return o->region >= 0;
}

/* With an index: true if there are several columns per matrix on average, so that tiles pay off. */
static bool sorts(int64_t n_cols, int64_t n_matrices) {
    return n_matrices <= SORTED && n_cols > 4 * n_matrices;
}

/* True if columns for these weights are rounded to bytes. */
static bool can_round(const vk_backend *b, const ggl_operand *w) {
    return b->features.idot && ggl_type_get(w->type)->quantized;
}

/* Returns the operand of x rounded for a batch of n: dense words in the arena, from `offset` on. */
static ggl_operand rounded_of(const ggl_operand *x, int64_t n, size_t offset) {
    ggl_operand r = {.type = GGL_F32, .region = GGL_REGION_ARENA, .offset = offset, .nb = {4}};
    r.ne[0] = x->ne[0] / BLOCK * BLOCK_WORDS;
    for (int d = 1; d < GGL_MAX_DIMS; d++) {
        r.ne[d] = x->ne[d] == GGL_N ? n : x->ne[d];
        r.nb[d] = r.nb[d - 1] * (size_t)r.ne[d - 1];
    }
    return r;
}

static size_t size_of(const ggl_operand *rounded) {
    return rounded->nb[3] * (size_t)rounded->ne[3];
}

/* Describes the step's product. */
static product product_of(const vk_emit *e) {
    const ggl_step *s = e->step;
    product p = {.w = &s->src[1], .y = &s->dst, .index = &absent, .n_cols = 1};
    p.x = rounded_of(&s->src[0], e->n, e->scratch);
    p.rounded = can_round(e->b, p.w) && size_of(&p.x) <= ggl_vk_most_bound(e);
    p.x = p.rounded ? p.x : s->src[0];
    p.bias = s->n_src > 2 ? &s->src[2] : &absent;
    if (s->n_src > 3)
        p.index = &s->src[3];
    const bool batch_of_w = ggl_is_batched(s->node->src[1]);
    p.w_step[0] = ggl_vk_weight_stride(e, p.w, 2);
    p.w_step[has(p.index) ? 0 : batch_of_w ? 2 : 1] |= ggl_vk_weight_stride(e, p.w, 3);
    for (int d = 0; d < 3; d++) {
        const uint32_t n = (uint32_t)ggl_vk_extent(e, p.y, d + 1);
        const bool shared = !has(p.index) && p.w_step[d] == 0;
        p.column[d] = shared ? n : 1;
        p.outer[d] = shared ? 1 : n;
        p.n_cols *= shared || has(p.index) ? n : 1;
    }
    p.sorted = has(p.index) && sorts(p.n_cols, p.w->ne[2]);
    for (int d = 0; d < 3 && p.sorted; d++) {
        p.column[d] = p.outer[d];
        p.outer[d] = 1;
    }
    return p;
}

static void push_steps(const vk_emit *e, vk_call *c, uint32_t at, const ggl_operand *o) {
    ggl_vk_push(c, at);
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        ggl_vk_push(c, ggl_vk_stride(e, o, d));
}

/* True if all rows of x begin and end at multiples of 4 elements. */
static bool in_fours(const vk_emit *e, const ggl_operand *x, uint32_t at) {
    uint32_t all = at | (uint32_t)x->ne[0];
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        all |= ggl_vk_stride(e, x, d);
    return all % 4 == 0;
}

/* Returns the bytes of w from the start to the end of a part. */
static size_t part_size(const vk_emit *e, const product *p, const part *of) {
    const ggl_operand *w = p->w;
    size_t size = ggl_row_size(w->type, w->ne[0]) + (size_t)(of->n_rows - 1) * w->nb[1] +
                  (size_t)(of->n_matrices - 1) * w->nb[2];
    return size + (size_t)(ggl_vk_extent(e, w, 3) - 1) * w->nb[3];
}

/* Sets bindings, constants and push constants shared by both products. lists: the output of
 * linear_sort.comp, or NULL. */
static void bind_all(vk_emit *e, vk_call *c, const product *p, const part *of,
                     const vk_binding *lists) {
    const size_t begin =
        (size_t)of->first_matrix * p->w->nb[2] + (size_t)of->first_row * p->w->nb[1];
    const uint32_t w_at = ggl_vk_bind_weight(e, c, p->w, begin, part_size(e, p, of)),
                   x_at = ggl_vk_bind(e, c, &p->x, false), y_at = ggl_vk_bind(e, c, p->y, true),
                   bias_at = ggl_vk_bind(e, c, p->bias, false),
                   index_at = lists ? ggl_vk_bind_bytes(e, c, lists->region, lists->offset,
                                                        lists->size, false) /
                                          4
                                    : ggl_vk_bind(e, c, p->index, false);
    if (ggl_vk_has_codebook(p->w->type))
        ggl_vk_bind_codebooks(c);
    c->spec[1] = p->w->type;
    c->spec[2] = ggl_vk_weight_aligned(e, p->w, w_at);
    c->spec[3] = has(p->bias);
    c->spec[4] = has(p->index);
    c->spec[5] = in_fours(e, &p->x, x_at);
    ggl_vk_push(c, (uint32_t)p->w->ne[0]);
    ggl_vk_push(c, (uint32_t)of->first_row);
    ggl_vk_push(c, (uint32_t)of->n_rows);
    for (int d = 0; d < 3; d++)
        ggl_vk_push(c, p->column[d]);
    for (int d = 0; d < 3; d++)
        ggl_vk_push(c, p->outer[d]);
    ggl_vk_push(c, w_at);
    ggl_vk_push(c, (uint32_t)p->w->nb[1]);
    for (int d = 0; d < 3; d++)
        ggl_vk_push(c, p->w_step[d]);
    push_steps(e, c, x_at, &p->x);
    push_steps(e, c, y_at, p->y);
    push_steps(e, c, bias_at, p->bias);
    ggl_vk_push(c, index_at);
}

static void push_matrices(vk_call *c, const product *p, const part *of) {
    ggl_vk_push(c, (uint32_t)p->w->ne[2]);
    ggl_vk_push(c, (uint32_t)of->first_matrix);
    ggl_vk_push(c, (uint32_t)of->n_matrices);
}

static uint32_t round_up_to_power(int64_t n, uint32_t most) {
    uint32_t p = 1;
    while (p < most && p < n)
        p *= 2;
    return p;
}

/* --- rounding --------------------------------------------------------------------------------- */

static ggl_status emit_round(vk_emit *e, const product *p, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    const uint32_t in_row = (uint32_t)x->ne[0] / BLOCK;
    vk_call c = {.shader = VK_SHADER_QUANTIZE, .spec = {LOCAL_ROUND}, .n_spec = 1};
    const uint32_t from = ggl_vk_bind(e, &c, x, false), to = ggl_vk_bind(e, &c, &p->x, true);
    ggl_vk_push(&c, in_row);
    for (int d = 1; d < GGL_MAX_DIMS; d++)
        ggl_vk_push(&c, (uint32_t)ggl_vk_extent(e, x, d));
    push_steps(e, &c, from, x);
    ggl_vk_push(&c, to);
    c.groups[0] = ggl_vk_groups(ggl_vk_rows(e, x) * in_row, LOCAL_ROUND);
    return ggl_vk_dispatch(e, &c, err);
}

/* --- few columns ------------------------------------------------------------------------------ */

static int64_t n_outer(const product *p) {
    return (int64_t)p->outer[0] * p->outer[1] * p->outer[2];
}

static ggl_status emit_vec(vk_emit *e, const product *p, const part *of, ggl_error *err) {
    static const vk_shader shader[2][2][2] = {
        {{VK_SHADER_LINEAR_VEC, VK_SHADER_LINEAR_VEC_CODEBOOK},
         {VK_SHADER_LINEAR_VEC_SUBGROUP, VK_SHADER_LINEAR_VEC_SUBGROUP_CODEBOOK}},
        {{VK_SHADER_LINEAR_VEC_IDOT, VK_SHADER_LINEAR_VEC_IDOT_CODEBOOK},
         {VK_SHADER_LINEAR_VEC_IDOT_SUBGROUP, VK_SHADER_LINEAR_VEC_IDOT_SUBGROUP_CODEBOOK}}};
    const int64_t in_row = p->w->ne[0] / (ggl_type_get(p->w->type)->block > 1 ? 32 : 8);
    const bool subgroup = e->b->features.subgroup && in_row >= e->b->limits.subgroup_size;
    const uint32_t lanes = subgroup ? e->b->limits.subgroup_size : round_up_to_power(in_row, 16);
    const int64_t n_cols = (int64_t)p->column[0] * p->column[1] * p->column[2];
    const uint32_t cols = round_up_to_power(n_cols, VEC_COLS),
                   rows = lanes < LOCAL_VEC ? LOCAL_VEC / lanes : 1;
    vk_call c = {.shader = shader[p->rounded][subgroup][ggl_vk_has_codebook(p->w->type)],
                 .spec = {LOCAL_VEC},
                 .n_spec = 8};
    bind_all(e, &c, p, of, NULL);
    ggl_vk_push(&c, ggl_vk_stride(e, p->index, 0));
    ggl_vk_push(&c, ggl_vk_stride(e, p->index, 3));
    push_matrices(&c, p, of);
    c.spec[6] = cols;
    c.spec[7] = subgroup ? 1 : lanes;
    c.groups[0] = ggl_vk_groups(
        (of->n_rows + rows - 1) / rows * ((n_cols + cols - 1) / cols) * n_outer(p), 1);
    return ggl_vk_dispatch(e, &c, err);
}

/* --- many columns ----------------------------------------------------------------------------- */

/* Returns the columns per tile, chosen so that few stay empty. */
static uint32_t tile_cols(const product *p) {
    const int64_t of_matrix = p->sorted ? p->n_cols / p->w->ne[2] : p->n_cols;
    return TILE_COLS * (of_matrix <= TILE_COLS ? 1 : of_matrix <= 2 * TILE_COLS ? 2 : 4);
}

/* Returns the most tiles that sorted columns can need, including those whose index is invalid. */
static int64_t most_tiles(int64_t n_cols, int64_t n_matrices, uint32_t cols) {
    return n_cols / cols + n_matrices + 1;
}

static size_t lists_size(int64_t n_tiles, int64_t n_cols) {
    return (size_t)(3 * n_tiles + n_cols) * 4;
}

static ggl_status emit_sort(vk_emit *e, const product *p, int64_t n_tiles, const vk_binding *lists,
                            ggl_error *err) {
    vk_call c = {.shader = VK_SHADER_LINEAR_SORT,
                 .spec = {LOCAL_MAT, tile_cols(p)},
                 .n_spec = 2,
                 .groups = {1}};
    ggl_vk_push(&c, ggl_vk_bind(e, &c, p->index, false));
    ggl_vk_push(&c, ggl_vk_stride(e, p->index, 0));
    ggl_vk_push(&c, ggl_vk_stride(e, p->index, 3));
    for (int d = 0; d < 3; d++)
        ggl_vk_push(&c, p->column[d]);
    ggl_vk_push(&c, (uint32_t)p->w->ne[2]);
    ggl_vk_push(&c, (uint32_t)n_tiles);
    ggl_vk_push(&c, ggl_vk_bind_bytes(e, &c, lists->region, lists->offset, lists->size, true) / 4);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_mat(vk_emit *e, const product *p, const part *of, const vk_binding *lists,
                           int64_t n_tiles, ggl_error *err) {
    static const vk_shader shader[2][2] = {
        {VK_SHADER_LINEAR_MAT, VK_SHADER_LINEAR_MAT_CODEBOOK},
        {VK_SHADER_LINEAR_MAT_IDOT, VK_SHADER_LINEAR_MAT_IDOT_CODEBOOK}};
    vk_call c = {.shader = shader[p->rounded][ggl_vk_has_codebook(p->w->type)],
                 .spec = {LOCAL_MAT},
                 .n_spec = 7};
    bind_all(e, &c, p, of, lists);
    ggl_vk_push(&c, (uint32_t)n_tiles);
    ggl_vk_push(&c, 0);
    push_matrices(&c, p, of);
    c.spec[6] = tile_cols(p) / TILE_COLS;
    c.groups[0] = ggl_vk_groups((of->n_rows + TILE_ROWS - 1) / TILE_ROWS * n_tiles, 1);
    return ggl_vk_dispatch(e, &c, err);
}

/* --- the operator ----------------------------------------------------------------------------- */

static ggl_status emit_part(vk_emit *e, const product *p, const part *of, const vk_binding *lists,
                            int64_t n_tiles, ggl_error *err) {
    return n_tiles > 0 ? emit_mat(e, p, of, lists, n_tiles, err) : emit_vec(e, p, of, err);
}

/* Returns the first of equal parts that fit a binding: several matrices, or several rows of one. */
static part largest_part(const vk_emit *e, const product *p) {
    const ggl_operand *w = p->w;
    part all = {.n_matrices = w->ne[2], .n_rows = w->ne[1]}, one = {.n_matrices = 1, .n_rows = 1};
    const size_t most = ggl_vk_most_bound(e);
    const bool divisible = ggl_vk_extent(e, w, 3) == 1 && (has(p->index) || w->ne[2] == 1);
    if (part_size(e, p, &all) <= most || !divisible)
        return all;
    one.n_rows = w->ne[1];
    if (part_size(e, p, &one) <= most)
        one.n_matrices = 1 + (int64_t)((most - part_size(e, p, &one)) / w->nb[2]);
    else
        one.n_rows = (int64_t)(most / w->nb[1]);
    return one;
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static ggl_status linear_emit(vk_emit *e, ggl_error *err) {
    const product p = product_of(e);
    const part each = largest_part(e, &p);
    const uint32_t cols = tile_cols(&p);
    int64_t n_tiles = 0;
    vk_binding lists = {.region = GGL_REGION_ARENA,
                        .offset = e->scratch + (p.rounded ? size_of(&p.x) : 0)};
    ggl_status st = p.rounded ? emit_round(e, &p, err) : GGL_OK;
    if (st == GGL_OK && p.sorted) {
        n_tiles = most_tiles(p.n_cols, p.w->ne[2], cols);
        lists.size = lists_size(n_tiles, p.n_cols);
        st = emit_sort(e, &p, n_tiles, &lists, err);
    } else if (!has(p.index) && p.n_cols > VEC_COLS) {
        n_tiles = (p.n_cols + cols - 1) / cols * n_outer(&p);
    }
    for (part of = each; of.first_matrix < p.w->ne[2]; of.first_matrix += each.n_matrices)
        for (of.first_row = 0; of.first_row < p.w->ne[1] && st == GGL_OK;
             of.first_row += each.n_rows) {
            of.n_matrices = least(each.n_matrices, p.w->ne[2] - of.first_matrix);
            of.n_rows = least(each.n_rows, p.w->ne[1] - of.first_row);
            st = emit_part(e, &p, &of, p.sorted ? &lists : NULL, n_tiles, err);
        }
    return st;
}

static size_t linear_scratch(const vk_backend *b, const ggl_step *s, int64_t n) {
    const ggl_operand x = rounded_of(&s->src[0], n, 0);
    const size_t rounded = can_round(b, &s->src[1]) ? size_of(&x) : 0;
    if (s->n_src <= 3 || s->src[3].region < 0)
        return rounded;
    int64_t n_cols = ggl_extents(s->dst.ne, 1, GGL_MAX_DIMS, n);
    return rounded + lists_size(most_tiles(n_cols, s->src[1].ne[2], TILE_COLS), n_cols);
}

static const char *linear_refuses(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    if (!ggl_vk_decodes(node->src[1]->type))
        return "no product with weights of this type";
    const ggl_tensor *bias = node->n_src > 2 ? node->src[2] : NULL;
    return node->src[0]->type != GGL_F32 || (bias && bias->type != GGL_F32)
               ? "a product needs columns, and a bias, of f32"
               : NULL;
}

const vk_op ggl_vk_op_linear = {
    .emit = linear_emit, .scratch = linear_scratch, .refuses = linear_refuses};
