/* Products, as op_linear.c and the steps that contain products emit them. */
#include "linear.h"
#include "repack.h"
#include "weights.h"

enum {
    LOCAL_VEC = 64,
    NORM_COLS = 4, /* most columns whose norms one workgroup computes one after the other */
    SORTED = 1024, /* most matrices for linear_sort.comp */
    ALIGN = 256    /* of results in the scratch */
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

static uint32_t round_up_to_power(int64_t n, uint32_t most) {
    uint32_t p = 1;
    while (p < most && p < n)
        p *= 2;
    return p;
}

/* --- few columns ------------------------------------------------------------------------------ */

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
                   local = p->norm.norm ? ggl_vk_row_local(e->b, p->y->ne[0]) : LOCAL_VEC,
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

/* --- products --------------------------------------------------------------------------------- */

/* Returns the first of equal parts that fit a binding: several matrices, or several rows of one. */
static vk_part largest_part(const vk_emit *e, const vk_product *p) {
    const ggl_operand *w = p->w;
    vk_part all = {.n_matrices = w->ne[2], .n_rows = w->ne[1]},
            one = {.n_matrices = 1, .n_rows = 1};
    const size_t most = ggl_vk_most_bound(e->b);
    const bool divisible = ggl_vk_extent(e, w, 3) == 1 && (ggl_vk_has(p->index) || w->ne[2] == 1);
    if (ggl_vk_part_size(e, p, &all) <= most || !divisible)
        return all;
    one.n_rows = w->ne[1];
    if (ggl_vk_part_size(e, p, &one) <= most)
        one.n_matrices = 1 + (int64_t)((most - ggl_vk_part_size(e, p, &one)) / p->w_matrix);
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
           ggl_vk_row_local(e->b, p->y->ne[0]) >= lanes_of(e->b, p);
}

ggl_status ggl_vk_begin_products(vk_emit *e, vk_product p[VK_LINEAR_MEMBERS], ggl_error *err) {
    size_t slices = 0;
    for (int m = 0; m < e->step->n_members; m++) {
        p[m] = ggl_vk_product_of(e, &e->step[m]);
        if (!ggl_vk_is_narrow(&p[m]))
            slices += ggl_vk_choose_tiles(e, &p[m], slices);
    }
    return p->n_tiles > 0 ? ggl_vk_begin_tiles(e, p, err) : GGL_OK;
}

ggl_status ggl_vk_emit_members(vk_emit *e, vk_product *p, ggl_error *err) {
    const int n = e->step->n_members;
    if (n > 1 && fit_together(e, p, n)) {
        p->n_members = n;
        return ggl_vk_emit_products(e, p, err);
    }
    ggl_status st = GGL_OK;
    for (int m = 0; m < n && st == GGL_OK; m++)
        st = ggl_vk_emit_products(e, &p[m], err);
    return st;
}

ggl_status ggl_vk_emit_plain(vk_emit *e, ggl_error *err) {
    vk_product p[VK_LINEAR_MEMBERS];
    const ggl_status st = ggl_vk_begin_products(e, p, err);
    return st == GGL_OK ? ggl_vk_emit_members(e, p, err) : st;
}

/* --- results in the scratch ------------------------------------------------------------------- */

size_t ggl_vk_result_size(const ggl_operand *y, int64_t n) {
    const size_t size = (size_t)ggl_extents(y->ne, 0, GGL_MAX_DIMS, n) * sizeof(float);
    return (size + ALIGN - 1) / ALIGN * ALIGN;
}

/* Offsets of values count from the first token of the batch, but the scratch has only those from e->first on. */
void ggl_vk_place_in_scratch(const vk_emit *e, size_t at, ggl_operand *y) {
    const size_t before =
        y->ne[GGL_BATCH_DIM] == GGL_N ? (size_t)e->first * y->nb[GGL_BATCH_DIM] : 0;
    y->region = GGL_REGION_ARENA;
    y->offset = e->scratch + at - before;
}
