/* The tables of supported operators and composites. */
#include "vulkan.h"

static const vk_op *const by_op[GGL_OP_COUNT] = {
#define OP(ID, op) [GGL_OP_##ID] = &op,
#include "ops.def"
};

static const vk_op *const by_composite[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, op) [GGL_COMPOSITE_##ID] = &op,
#include "ops.def"
};

const vk_op *ggl_vk_op_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? by_composite[ggl_composite_of(node)] : by_op[node->op];
}

bool ggl_vk_in_place(const ggl_tensor *node) {
    const vk_op *op = ggl_vk_op_of(node);
    return op && op->in_place;
}

const char *ggl_vk_refuses_all_but_f32(const vk_backend *b, const ggl_tensor *node) {
    (void)b;
    for (int i = 0; i < node->n_src; i++)
        if (node->src[i]->type != GGL_F32)
            return "it supports only f32 values";
    return NULL;
}

const char *ggl_vk_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const vk_op *op = ggl_vk_op_of(node);
    if (!op)
        return "there is no kernel for it";
    return op->refuses ? op->refuses((const vk_backend *)b, node) : NULL;
}
