/* Products with many columns, in tiles: by linear_matrix.comp if the device has matrix units and the
 * weights are f16 or quantized, else by linear_mat.comp. The exponents of f32 and bf16 weights may be
 * too large for f16. */
#include "linear.h"
#include "matrix.h"
#include "weights.h"

enum {
    LOCAL_MAT = 128, /* linear_mat.comp relies on it */
    TILE_ROWS = 64,
    TILE_COLS = 16, /* times 1, 2 or 4: columns of a tile of linear_mat.comp */
    MOST_SLICES = 16,
    SLICE_ELEMENTS = 256, /* least elements of a row in a slice */
    LOCAL_MERGE = 64
};

/* True if products with weights of this type can use matrix units. */
static bool suits_matrix(const vk_backend *b, ggl_type type) {
    return b->features.matrix && (type == GGL_F16 || ggl_type_get(type)->quantized);
}

/* Returns the columns of a tile for n columns of a matrix, chosen so that few stay empty. */
static uint32_t width_of(const vk_backend *b, bool matrix, int64_t n) {
    if (matrix)
        return ggl_vk_matrix_tile(&b->limits, n).cols;
    return TILE_COLS * (n <= TILE_COLS ? 1 : n <= 2 * TILE_COLS ? 2 : 4);
}

static int64_t tiles_down(int64_t n_rows) {
    return (n_rows + TILE_ROWS - 1) / TILE_ROWS;
}

/* --- scratch: | lists | columns of f16 | slices | ---------------------------------------------- */

static size_t aligned(size_t n) {
    return (n + VK_HALVES_UNIT - 1) / VK_HALVES_UNIT * VK_HALVES_UNIT;
}

/* Returns the most tiles that sorted columns can need, including those whose index is invalid. */
static int64_t most_tiles(int64_t n_cols, int64_t n_matrices, uint32_t cols) {
    return n_cols / cols + n_matrices + 1;
}

static size_t lists_size(int64_t n_tiles, int64_t n_cols) {
    return (size_t)(3 * n_tiles + n_cols) * 4;
}

/* Returns how many slices of a row's elements keep a device busy, if there are n_tiles tiles. A
 * tile on matrix units keeps it as busy as two others. */
static uint32_t slices_of(const vk_backend *b, bool matrix, int64_t n_in, int64_t n_tiles) {
    const int64_t by_tiles = ggl_vk_many_groups(b) / (matrix ? 2 : 1) / n_tiles,
                  by_row = n_in / SLICE_ELEMENTS;
    const int64_t n = by_tiles < by_row ? by_tiles : by_row;
    return n > MOST_SLICES ? MOST_SLICES : n < 2 ? 1 : (uint32_t)n;
}

/* Returns the bytes of slices for at most n columns: fewer columns may need more. */
static size_t slices_size(const vk_backend *b, bool matrix, int64_t n_in, int64_t n_rows,
                          int64_t n) {
    size_t most = 0;
    for (int64_t cols = TILE_COLS; cols < n + TILE_COLS; cols += TILE_COLS) {
        const int64_t at_most = cols < n ? cols : n, width = width_of(b, matrix, at_most);
        const uint32_t k =
            slices_of(b, matrix, n_in, tiles_down(n_rows) * ((at_most + width - 1) / width));
        const size_t size = k > 1 ? (size_t)(k * at_most * n_rows) * 4 : 0;
        most = size > most ? size : most;
    }
    return most;
}

size_t ggl_vk_tiles_scratch(const vk_backend *b, const ggl_step *s, int64_t n) {
    const ggl_operand *x = &s->src[LINEAR_X], *w = &s->src[LINEAR_W];
    const int64_t n_cols = ggl_extents(s->dst.ne, 1, GGL_MAX_DIMS, n);
    const bool matrix = suits_matrix(b, w->type);
    const size_t halves =
        matrix ? (size_t)ggl_extents(x->ne, 1, GGL_MAX_DIMS, n) * ggl_vk_halves_size(w->ne[0]) : 0;
    if (ggl_vk_is_chosen(s))
        return aligned(lists_size(most_tiles(n_cols, w->ne[2], TILE_COLS), n_cols)) + halves;
    size_t all = halves;
    for (int m = 0; m < s->n_members; m++) { /* members of a group have no further links */
        const int64_t n_rows = s[m].dst.ne[0];
        const size_t slices = slices_size(b, false, w->ne[0], n_rows, n_cols),
                     on_units = matrix ? slices_size(b, true, w->ne[0], n_rows, n_cols) : 0;
        all += slices > on_units ? slices : on_units;
    }
    return all;
}

/* --- before the tiles ------------------------------------------------------------------------- */

static ggl_status emit_sort(vk_emit *e, const vk_product *p, ggl_error *err) {
    const vk_binding *lists = &p->lists;
    vk_call c = {.shader = VK_SHADER_LINEAR_SORT,
                 VK_SPEC(linear_sort, .local = LOCAL_MAT, .tile = p->tile_cols),
                 .groups = {1}};
    vk_push_linear_sort *to = VK_PUSH(&c, linear_sort);
    to->index_at = ggl_vk_bind(e, &c, p->index, false);
    to->index_step[0] = ggl_vk_stride(e, p->index, 0);
    to->index_step[1] = ggl_vk_stride(e, p->index, 3);
    for (int d = 0; d < 3; d++)
        to->column[d] = p->column[d];
    to->n_matrices = (uint32_t)p->w->ne[2];
    to->n_tiles = (uint32_t)p->n_tiles;
    to->lists_at = ggl_vk_bind_bytes(e, &c, lists->region, lists->offset, lists->size, true) / 4;
    return ggl_vk_dispatch(e, &c, err);
}

/* Divides the product into slices from `offset` of the arena on, if it has few tiles. */
static void divide(const vk_emit *e, vk_product *p, size_t offset) {
    const uint32_t n =
        slices_of(e->b, p->matrix, p->w->ne[0], tiles_down(p->w->ne[1]) * p->n_tiles);
    const int64_t slice = ggl_vk_count(e, p->y);
    if (n < 2 || n * (uint64_t)slice * 4 > ggl_vk_most_bound(e->b))
        return;
    p->n_slices = n;
    p->slice = (uint32_t)slice;
    p->slices = offset;
}

size_t ggl_vk_choose_tiles(const vk_emit *e, vk_product *p, size_t before) {
    const size_t column = ggl_vk_halves_size(p->w->ne[0]),
                 halves = (size_t)ggl_vk_rows(e, p->x) * column;
    p->matrix = suits_matrix(e->b, p->w->type) && halves <= ggl_vk_most_bound(e->b);
    p->tile_cols = width_of(e->b, p->matrix, p->sorted ? p->n_cols / p->w->ne[2] : p->n_cols);
    p->n_tiles = p->sorted ? most_tiles(p->n_cols, p->w->ne[2], p->tile_cols)
                           : (p->n_cols + p->tile_cols - 1) / p->tile_cols * ggl_vk_n_outer(p);
    p->lists = (vk_binding){.region = GGL_REGION_ARENA, .offset = e->scratch};
    if (p->sorted)
        p->lists.size = lists_size(p->n_tiles, p->n_cols);
    p->halves = (vk_binding){.region = GGL_REGION_ARENA,
                             .offset = p->lists.offset + aligned(p->lists.size),
                             .size = p->matrix ? halves : 0};
    p->pitch = (uint32_t)(column / VK_HALVES_UNIT);
    if (!p->sorted)
        divide(e, p, p->halves.offset + p->halves.size + before);
    return p->n_slices > 1 ? (size_t)p->n_slices * p->slice * 4 : 0;
}

ggl_status ggl_vk_begin_tiles(vk_emit *e, const vk_product *p, ggl_error *err) {
    ggl_status st = p->sorted ? emit_sort(e, p, err) : GGL_OK;
    return st == GGL_OK && p->matrix
               ? ggl_vk_emit_halves(e, p->x, p->w->ne[0], p->rounded,
                                    ggl_type_get(p->w->type)->quantized, &p->halves, err)
               : st;
}

/* --- tiles ------------------------------------------------------------------------------------ */

/* Return the call of a tile of linear_matrix.comp, and of linear_mat.comp. */
static vk_call matrix_call(const vk_backend *b, const vk_product *p) {
    static const vk_shader shader[] = {VK_SHADER_LINEAR_MATRIX, VK_SHADER_LINEAR_MATRIX_CODEBOOK};
    const vk_matrix *m = &b->limits.matrix;
    return (vk_call){.shader = shader[ggl_vk_has_codebook(p->w->type)],
                     VK_SPEC(linear_matrix, .local = VK_MATRIX_SUBGROUPS * b->limits.subgroup_size,
                             .tile = p->tile_cols,
                             .subgroups_down = ggl_vk_matrix_tile(&b->limits, p->tile_cols).down,
                             .m = m->m, .n = m->n, .k = m->k, .slices = p->n_slices),
                     .full_subgroups = true};
}

static vk_call mat_call(const vk_product *p) {
    static const vk_shader shader[2][2] = {
        {VK_SHADER_LINEAR_MAT, VK_SHADER_LINEAR_MAT_CODEBOOK},
        {VK_SHADER_LINEAR_MAT_IDOT, VK_SHADER_LINEAR_MAT_IDOT_CODEBOOK}};
    return (vk_call){.shader = shader[p->rounded][ggl_vk_has_codebook(p->w->type)],
                     VK_SPEC(linear_mat, .local = LOCAL_MAT, .cols = p->tile_cols / TILE_COLS,
                             .slices = p->n_slices)};
}

ggl_status ggl_vk_emit_tiles(vk_emit *e, const vk_product *p, const vk_part *of, ggl_error *err) {
    vk_call c = p->matrix ? matrix_call(e->b, p) : mat_call(p);
    ggl_vk_bind_product(e, &c, p, of);
    c.groups[0] = ggl_vk_groups(ggl_vk_units_down(p, of, TILE_ROWS) * p->n_tiles * p->n_slices, 1);
    return ggl_vk_dispatch(e, &c, err);
}

/* --- after the tiles -------------------------------------------------------------------------- */

/* Adds the slices and the bias, for all rows. */
ggl_status ggl_vk_end_tiles(vk_emit *e, const vk_product *p, ggl_error *err) {
    vk_call c = {.shader = VK_SHADER_LINEAR_MERGE,
                 VK_SPEC(linear_merge, .local = LOCAL_MERGE, .slices = p->n_slices,
                         .bias = ggl_vk_has(p->bias))};
    if (p->n_slices == 1)
        return GGL_OK;
    const size_t size = (size_t)p->n_slices * p->slice * 4;
    const uint32_t from = ggl_vk_bind_bytes(e, &c, GGL_REGION_ARENA, p->slices, size, false) / 4;
    const uint32_t y_at = ggl_vk_bind(e, &c, p->y, true),
                   bias_at = ggl_vk_bind(e, &c, p->bias, false);
    vk_push_linear_merge *to = VK_PUSH(&c, linear_merge);
    to->n_rows = (uint32_t)p->y->ne[0];
    ggl_vk_outer_extents(e, p->y, to->n);
    to->slices_at = from;
    to->slice = p->slice;
    to->y_at = y_at;
    ggl_vk_outer_strides(e, p->y, to->y_step);
    to->bias_at = bias_at;
    ggl_vk_outer_strides(e, p->bias, to->bias_step);
    c.groups[0] = ggl_vk_groups(p->slice, LOCAL_MERGE);
    return ggl_vk_dispatch(e, &c, err);
}
