/* Shared by the files of the operator linear, from the bottom up: linear_bind.c, linear_tiles.c for many
 * columns, linear_emit.c, linear_norm.c and linear_gated.c, op_linear.c; and linear_group.c. */
#ifndef VULKAN_LINEAR_H
#define VULKAN_LINEAR_H

#include "rows.h"

enum {
    VK_LINEAR_MEMBERS = 3, /* most products of a dispatch (shaders/linear.glsl) */
    VK_LINEAR_PAIR = 2,    /* if an index chooses their matrices */
    VK_VEC_COLS = 8        /* most columns per matrix for linear_vec.comp */
};

/* The operands of a product, and the dimensions of its columns. */
typedef struct vk_product {
    const ggl_operand *x, *w, *bias, *index, *y;
    bool rounded;                 /* x is, to bytes */
    size_t w_row;                 /* bytes of a row of w; if it is repacked, of a tile of rows */
    size_t w_matrix;              /* bytes from a matrix to the next one */
    size_t w_outer;               /* the same along dimension 3 */
    uint32_t column[3], outer[3]; /* shaders/linear.glsl */
    uint32_t w_step[3];
    int64_t n_cols;  /* columns per matrix; with an index all columns */
    bool sorted;     /* by matrix, for tiles */
    int64_t n_tiles; /* across; 0: the columns are few */
    uint32_t tile_cols;
    vk_binding lists;  /* if they are sorted, the output of linear_sort.comp */
    bool matrix;       /* matrix units multiply them */
    vk_binding halves; /* matrix: columns as f16, the output of linear_halves.comp */
    uint32_t pitch;    /* of a column in halves, in units of four words */
    /* If there are few tiles, their rows are divided into n_slices slices, which are added in the
     * scratch from `slices` on, each of `slice` words. 1: they are not. */
    uint32_t n_slices, slice;
    size_t slices;
    int n_members; /* products from this one on that are emitted together */
    /* Two products with one result y = f(this one) * (the other one). gate: f
     * (shaders/kinds.h) */
    bool gated;
    uint32_t gate;
    const ggl_operand *blocks; /* gated: the rounded result; NULL: it is not rounded */
    vk_norm norm; /* of the results, computed by the same dispatch; norm.norm NULL if none is */
    /* What the norm is added to; NULL: nothing. The norm of the sum, and its form, both of which may be absent. */
    const ggl_step *add;
    vk_norm after;
} vk_product;

/* The part of w that a dispatch binds. */
typedef struct vk_part {
    int64_t first_matrix, n_matrices, first_row, n_rows;
} vk_part;

static inline bool ggl_vk_has(const ggl_operand *o) {
    return o->region >= 0;
}

/* True if an index chooses the matrix of each column (experts). */
static inline bool ggl_vk_is_chosen(const ggl_step *product) {
    return product->n_src > 3 && ggl_vk_has(&product->src[LINEAR_INDEX]);
}

/* Returns whether a chain that begins with a product has a norm before the sum with a residual. */
static inline bool ggl_vk_norm_is_first(const ggl_step *step) {
    return step->n_links > 2 && step[1].node->op != GGL_OP_ADD;
}

/* Returns the workgroups that keep the device busy: some for each unit. */
static inline int64_t ggl_vk_many_groups(const vk_backend *b) {
    return (int64_t)b->limits.units * 4;
}

/* Returns the matrices that have columns of their own. */
static inline int64_t ggl_vk_n_outer(const vk_product *p) {
    return (int64_t)p->outer[0] * p->outer[1] * p->outer[2];
}

/* Describes the product of step s. */
vk_product ggl_vk_product_of(const vk_emit *e, const ggl_step *s);
/* True if a matrix has so few columns that linear_vec.comp multiplies them. */
bool ggl_vk_is_narrow(const vk_product *p);
/* The same of a step for n tokens. */
bool ggl_vk_step_is_narrow(const ggl_step *step, int64_t n);
/* Emits p->n_members products. */
ggl_status ggl_vk_emit_products(vk_emit *e, const vk_product *p, ggl_error *err);
/* Describe the step's products, and emit what comes before them; then emit them, together if one
 * dispatch can compute them. */
ggl_status ggl_vk_begin_products(vk_emit *e, vk_product p[VK_LINEAR_MEMBERS], ggl_error *err);
ggl_status ggl_vk_emit_members(vk_emit *e, vk_product *p, ggl_error *err);
/* Both, for a step that has neither a tail nor norms. */
ggl_status ggl_vk_emit_plain(vk_emit *e, ggl_error *err);
/* Returns the bytes of w from the start to the end of a part. */
size_t ggl_vk_part_size(const vk_emit *e, const vk_product *p, const vk_part *of);
/* Sets bindings, push constants, and the constants that all products share. */
void ggl_vk_bind_product(vk_emit *e, vk_call *c, const vk_product *p, const vk_part *of);
/* Returns the units of work of all members if each unit has up to `rows` rows of a product. */
int64_t ggl_vk_units_down(const vk_product *p, const vk_part *of, int64_t rows);
/* vk_op.joins of products (linear_group.c). */
bool ggl_vk_linear_joins(const vk_backend *b, const ggl_step *const *member, int n,
                         const ggl_step *next);
/* Gate, up, activation and their product as one step (linear_gated.c): vk_op.tail; how it is emitted; and
 * the bytes of scratch that it takes, which come before those of the products. */
bool ggl_vk_linear_tail(const vk_backend *b, const ggl_step *const *member, int n,
                        const ggl_step *chain);
ggl_status ggl_vk_emit_gated(vk_emit *e, ggl_error *err);
size_t ggl_vk_gated_scratch(const ggl_step *step, int64_t n);
/* A product with a residual and norms as one step (linear_norm.c): how many links follow the product and the sum of
 * a residual; how many are the chain of a product, its norm, the sum with a residual, and what follows, or 1. */
int ggl_vk_linear_norm_links(const ggl_step *step, int n);
int ggl_vk_norm_first_links(const vk_backend *b, const ggl_step *step, int n);
/* How a step whose norm comes before the sum is emitted; and the bytes of scratch that it takes, which come before
 * those of the product. */
ggl_status ggl_vk_emit_norm_first(vk_emit *e, ggl_error *err);
size_t ggl_vk_norm_first_scratch(const ggl_step *step, int64_t n);
/* Whether linear_vec.comp computes the norm of the step, which sets p->norm; else how that is emitted by itself. */
bool ggl_vk_take_norm(const vk_emit *e, vk_product *p);
ggl_status ggl_vk_emit_norm(vk_emit *e, ggl_error *err);
/* Returns whether the last workgroup of linear_vec.comp can compute norms of the product's results (linear_emit.c). */
bool ggl_vk_has_last(const vk_emit *e, const vk_product *p);
/* Returns the bytes of a result in the scratch; places it there, `at` bytes from its start. */
size_t ggl_vk_result_size(const ggl_operand *y, int64_t n);
void ggl_vk_place_in_scratch(const vk_emit *e, size_t at, ggl_operand *y);
/* Where a norm's operands are in their bindings, in words. */
typedef struct vk_norm_places {
    uint32_t weight, first_weight, normed, blocks;
} vk_norm_places;
/* Bind what linear_vec.comp needs for a norm. The second returns its specialization constant `then`. */
void ggl_vk_bind_norm_weight(vk_emit *e, vk_call *c, const vk_product *p, vk_norm_places *at);
uint32_t ggl_vk_bind_norm(vk_emit *e, vk_call *c, const vk_product *p, vk_norm_places *at);
/* Returns the number that the last norm of the product adds, or 0. */
float ggl_vk_last_eps(const vk_product *p);

/* --- many columns (linear_tiles.c) ------------------------------------------------------------ */

/* Chooses the tiles of a product. Its slices follow those of other products of the same columns, which
 * take `before` bytes. Returns the bytes of its own. */
size_t ggl_vk_choose_tiles(const vk_emit *e, vk_product *p, size_t before);
/* Emits what comes before the tiles, for all products of the same columns: sorted columns, columns of
 * f16. */
ggl_status ggl_vk_begin_tiles(vk_emit *e, const vk_product *p, ggl_error *err);
ggl_status ggl_vk_emit_tiles(vk_emit *e, const vk_product *p, const vk_part *of, ggl_error *err);
/* Emits what comes after them: the sum of slices. */
ggl_status ggl_vk_end_tiles(vk_emit *e, const vk_product *p, ggl_error *err);
/* Returns the bytes of scratch for at most n tokens. */
size_t ggl_vk_tiles_scratch(const vk_backend *b, const ggl_step *step, int64_t n);

#endif
