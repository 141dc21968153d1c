/* A rotation by itself. op_cache.c has the operators rope_half and rope_pair. */
#include "vulkan.h"

enum { LOCAL = 64, ROWS = 4 /* shaders/rope.comp */ };

ggl_status ggl_vk_emit_rope(vk_emit *e, const ggl_step *step, ggl_error *err) {
    const ggl_operand *x = &step->src[ROPE_HALF_X], *f = &step->src[ROPE_HALF_F],
                      *pos = &step->src[ROPE_HALF_AT], *y = &step->dst;
    vk_call c = {.shader = VK_SHADER_ROPE,
                 VK_SPEC(rope, .local = LOCAL, .half = step->node->op == GGL_OP_ROPE_HALF,
                         .doubles = f->type == GGL_F64)};
    const uint32_t x_at = ggl_vk_bind(e, &c, x, false), f_at = ggl_vk_bind(e, &c, f, false),
                   pos_at = ggl_vk_bind(e, &c, pos, false), y_at = ggl_vk_bind(e, &c, y, true);
    const int64_t n_rows = y->ne[1] * ggl_vk_extent(e, y, 2), n_batch = ggl_vk_extent(e, y, 3);
    vk_push_rope *p = VK_PUSH(&c, rope);
    p->n = (uint32_t)y->ne[0];
    p->n_pairs = (uint32_t)f->ne[0];
    p->rows[0] = (uint32_t)y->ne[1];
    p->rows[1] = (uint32_t)ggl_vk_extent(e, y, 2);
    p->n_batch = (uint32_t)n_batch;
    p->x_at = x_at;
    ggl_vk_outer_strides(e, x, p->x_step);
    p->y_at = y_at;
    ggl_vk_outer_strides(e, y, p->y_step);
    p->freq_at = f_at * (uint32_t)(ggl_type_get(f->type)->size / 4);
    p->pos_at = pos_at;
    p->pos_step = ggl_vk_stride(e, pos, GGL_BATCH_DIM);
    p->mag = (float)step->node->num[ROPE_HALF_MAG];
    c.groups[0] =
        ggl_vk_groups((y->ne[0] - f->ne[0]) * ((n_rows + ROWS - 1) / ROWS) * n_batch, LOCAL);
    return ggl_vk_dispatch(e, &c, err);
}
