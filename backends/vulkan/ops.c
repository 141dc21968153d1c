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

const vk_op *ggl_vk_op_of_step(const ggl_step *step) {
    if (step->kind == GGL_STEP_FORM)
        return &ggl_vk_op_round;
    return step->n_links > 1 && step[1].link < 0 ? &ggl_vk_op_route : ggl_vk_op_of(step->node);
}

bool ggl_vk_in_place(const ggl_tensor *node) {
    const vk_op *op = ggl_vk_op_of(node);
    return op && op->in_place;
}

ggl_form ggl_vk_form(const ggl_backend *b, const ggl_step *step) {
    const vk_op *op = ggl_vk_op_of(step->node);
    return op && op->form ? op->form((const vk_backend *)b, step) : (ggl_form){0};
}

int ggl_vk_chain(const ggl_backend *base, const ggl_step *step, int n) {
    const vk_backend *b = (const vk_backend *)base;
    const vk_op *op = ggl_vk_op_of(step->node);
    return b->features.fuse && op && op->chain ? op->chain(b, step, n) : 1;
}

int ggl_vk_loose_chain(const ggl_backend *base, const ggl_step *step, int n) {
    const vk_backend *b = (const vk_backend *)base;
    return b->features.fuse ? ggl_vk_op_route.chain(b, step, n) : 1;
}

bool ggl_vk_joins(const ggl_backend *base, const ggl_step *const *member, int n,
                  const ggl_step *next) {
    const vk_backend *b = (const vk_backend *)base;
    if (member[0]->kind != GGL_STEP_NODE || next->kind != GGL_STEP_NODE)
        return false;
    const vk_op *op = ggl_vk_op_of_step(member[0]), *other = ggl_vk_op_of_step(next);
    return b->features.fuse && op && other && op->joins && op->joins == other->joins &&
           op->joins(b, member, n, next);
}

bool ggl_vk_tail(const ggl_backend *base, const ggl_step *const *member, int n,
                 const ggl_step *chain) {
    const vk_backend *b = (const vk_backend *)base;
    const vk_op *op = ggl_vk_op_of(member[0]->node);
    return b->features.fuse && op && op->tail && op->tail(b, member, n, chain);
}

const char *ggl_vk_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const vk_op *op = ggl_vk_op_of(node);
    if (!op)
        return "there is no kernel for it";
    return op->refuses ? op->refuses((const vk_backend *)b, node) : NULL;
}
