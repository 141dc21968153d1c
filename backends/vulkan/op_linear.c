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
#include "weights.h"

enum {
    BLOCK = 32,     /* numbers of a column that are rounded together, */
    BLOCK_SIZE = 48 /* and the bytes they become: three uvec4 */
};

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

static ggl_status linear_emit(vk_emit *e, ggl_error *err) {
    if (e->step->has_tail)
        return ggl_vk_emit_gated(e, err);
    if (ggl_vk_norm_is_first(e->step))
        return ggl_vk_emit_norm_first(e, err);
    vk_product p[VK_LINEAR_MEMBERS];
    ggl_status st = ggl_vk_begin_products(e, p, err);
    const bool takes = ggl_vk_take_norm(e, p);
    if (st == GGL_OK)
        st = ggl_vk_emit_members(e, p, err);
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
