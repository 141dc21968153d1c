/* The form of columns that products read if the device multiplies bytes fast: rounded to bytes. */
#include "vulkan.h"

enum {
    LOCAL_ROUND = 32, /* small, so that one column is divided among several workgroups */
    BLOCK = 32        /* numbers of a column that are rounded together */
};

static ggl_status round_emit(vk_emit *e, ggl_error *err) {
    const ggl_operand *x = &e->step->src[0], *y = &e->step->dst;
    const uint32_t in_row = (uint32_t)x->ne[0] / BLOCK;
    vk_call c = {.shader = VK_SHADER_QUANTIZE, VK_SPEC(quantize, LOCAL_ROUND)};
    const uint32_t from = ggl_vk_bind(e, &c, x, false), to = ggl_vk_bind(e, &c, y, true);
    vk_push_quantize *p = VK_PUSH(&c, quantize);
    p->in_row = in_row;
    ggl_vk_outer_extents(e, x, p->rows);
    p->x_at = from;
    ggl_vk_outer_strides(e, x, p->x_step);
    p->blocks_at = to;
    c.groups[0] = ggl_vk_groups(ggl_vk_rows(e, x) * in_row, LOCAL_ROUND);
    return ggl_vk_dispatch(e, &c, err);
}

const vk_op ggl_vk_op_round = {.emit = round_emit};
