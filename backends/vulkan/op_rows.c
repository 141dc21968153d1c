/* Operators along a dimension: sums, maxima, norms, softmax, ranks. */
#include <string.h>

#include "shaders/kinds.h"
#include "vulkan.h"

enum { LOCAL = 128, LEAST_LOCAL = 32, SHORT_ROW = 32 };

/* --- one workgroup per row -------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t kind;
} composite[] = {
    {"softmax", ROW_SOFTMAX},       {"rms", ROW_RMS}, {"center", ROW_CENTER}, {"l2", ROW_L2},
    {"normalised", ROW_NORMALISED},
};

/* Returns the workgroup's size: four elements per invocation, if the row is long enough. */
static uint32_t local_for(int64_t n) {
    uint32_t local = LEAST_LOCAL;
    while (local < LOCAL && local * 4 < n)
        local *= 2;
    return local;
}

static ggl_status emit_kind(vk_emit *e, uint32_t kind, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    const int64_t rows = ggl_vk_rows(e, x);
    vk_call c = {.shader = e->b->features.subgroup ? VK_SHADER_ROWS_SUBGROUP : VK_SHADER_ROWS,
                 .spec = {local_for(x->ne[0]), kind},
                 .n_spec = 2,
                 .groups = {ggl_vk_groups(rows, 1)}};
    ggl_vk_push(&c, (uint32_t)rows);
    for (int d = 0; d < 3; d++)
        ggl_vk_push(&c, (uint32_t)ggl_vk_extent(e, x, d));
    ggl_vk_push(&c, ggl_vk_bind(e, &c, &e->step->dst, true));
    ggl_vk_push(&c, ggl_vk_bind(e, &c, x, false));
    ggl_vk_push_strides(e, &c, x);
    ggl_vk_push_float(&c, e->step->node->n_num > 0 ? (float)e->step->node->num[0] : 0);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_rows(vk_emit *e, ggl_error *err) {
    for (size_t i = 0; i < sizeof composite / sizeof *composite; i++)
        if (strcmp(composite[i].name, e->step->node->call) == 0)
            return emit_kind(e, composite[i].kind, err);
    return ggl_fail(err, GGL_UNSUPPORTED, "there is no kernel for it");
}

const vk_op ggl_vk_op_rows = {
    .emit = emit_rows, .refuses = ggl_vk_refuses_all_but_f32, .in_place = true};

/* --- one invocation per result ---------------------------------------------------------------- */

/* Sums up or maximizes x along dimension dim. weight: a factor for each term, or NULL. */
static ggl_status emit_terms(vk_emit *e, uint32_t kind, int dim, const ggl_operand *weight,
                             ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    vk_call c = {.shader = weight ? VK_SHADER_WEIGHTED : VK_SHADER_REDUCE,
                 .spec = {LOCAL, kind},
                 .n_spec = 2};
    int64_t ne[GGL_MAX_DIMS], count = 1;
    /* x may be the same for all tokens while the weights differ */
    for (int d = 0; d < GGL_MAX_DIMS; d++) {
        ne[d] = d == dim ? 1 : ggl_vk_extent(e, d == GGL_BATCH_DIM ? &e->step->dst : x, d);
        count *= ne[d];
    }
    c.groups[0] = ggl_vk_groups(count, LOCAL);
    ggl_vk_push(&c, (uint32_t)count);
    for (int d = 0; d < 3; d++)
        ggl_vk_push(&c, (uint32_t)ne[d]);
    ggl_vk_push(&c, ggl_vk_bind(e, &c, &e->step->dst, true));
    ggl_vk_push(&c, ggl_vk_bind(e, &c, x, false));
    ggl_vk_push_strides(e, &c, x);
    ggl_vk_push(&c, (uint32_t)ggl_vk_extent(e, x, dim));
    ggl_vk_push(&c, ggl_vk_stride(e, x, dim));
    if (weight) {
        ggl_vk_push(&c, ggl_vk_bind(e, &c, weight, false));
        ggl_vk_push(&c, ggl_vk_stride(e, weight, 0));
        ggl_vk_push(&c, ggl_vk_stride(e, weight, GGL_BATCH_DIM));
    }
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_reduce(vk_emit *e, ggl_error *err) {
    const int dim = (int)e->step->node->num[0];
    const uint32_t kind = e->step->node->op == GGL_OP_SUM ? ROW_SUM : ROW_AMAX;
    if (dim == 0 && e->step->src[0].ne[0] > SHORT_ROW)
        return emit_kind(e, kind, err);
    return emit_terms(e, kind, dim, NULL, err);
}

/* weighted(y [n, k], w [k]) -> [n] */
static ggl_status emit_weighted(vk_emit *e, ggl_error *err) {
    return emit_terms(e, ROW_WEIGHTED, 1, &e->step->src[1], err);
}

const vk_op ggl_vk_op_reduce = {.emit = emit_reduce, .refuses = ggl_vk_refuses_all_but_f32};
const vk_op ggl_vk_op_weighted = {.emit = emit_weighted, .refuses = ggl_vk_refuses_all_but_f32};

/* --- order ------------------------------------------------------------------------------------ */

static ggl_status emit_rank(vk_emit *e, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0];
    const int64_t count = ggl_vk_count(e, x);
    vk_call c = {.shader = VK_SHADER_RANK,
                 .spec = {LOCAL},
                 .n_spec = 1,
                 .groups = {ggl_vk_groups(count, LOCAL)}};
    ggl_vk_push(&c, (uint32_t)count);
    for (int d = 0; d < 3; d++)
        ggl_vk_push(&c, (uint32_t)ggl_vk_extent(e, x, d));
    ggl_vk_push(&c, ggl_vk_bind(e, &c, &e->step->dst, true));
    ggl_vk_push(&c, ggl_vk_bind(e, &c, x, false));
    ggl_vk_push_strides(e, &c, x);
    return ggl_vk_dispatch(e, &c, err);
}

static ggl_status emit_topk(vk_emit *e, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0], *y = &e->step->dst;
    const int64_t rows = ggl_vk_extent(e, y, GGL_BATCH_DIM);
    vk_call c = {
        .shader = VK_SHADER_TOPK, .spec = {LOCAL}, .n_spec = 1, .groups = {ggl_vk_groups(rows, 1)}};
    ggl_vk_push(&c, (uint32_t)rows);
    ggl_vk_push(&c, (uint32_t)x->ne[0]);
    ggl_vk_push(&c, (uint32_t)y->ne[0]);
    ggl_vk_push(&c, ggl_vk_bind(e, &c, y, true));
    ggl_vk_push(&c, ggl_vk_stride(e, y, GGL_BATCH_DIM));
    ggl_vk_push(&c, ggl_vk_bind(e, &c, x, false));
    ggl_vk_push(&c, ggl_vk_stride(e, x, GGL_BATCH_DIM));
    return ggl_vk_dispatch(e, &c, err);
}

const vk_op ggl_vk_op_rank = {.emit = emit_rank, .refuses = ggl_vk_refuses_all_but_f32};
const vk_op ggl_vk_op_topk = {.emit = emit_topk, .refuses = ggl_vk_refuses_all_but_f32};
