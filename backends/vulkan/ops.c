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

/* Returns the end of a step's members. */
static const ggl_step *end_of_members(const ggl_step *step) {
    const ggl_step *s = step;
    for (int k = 0; k < step->n_members; k++)
        s += s->n_links;
    return s;
}

const ggl_step *ggl_vk_tail_of(const ggl_step *step) {
    return step->has_tail ? end_of_members(step) : NULL;
}

int ggl_vk_n_entries(const ggl_step *step) {
    const ggl_step *end = end_of_members(step);
    return (int)(end - step) + (step->has_tail ? end->n_links : 0);
}

const ggl_operand *ggl_vk_other(const ggl_step *link) {
    return &link->src[1 - link->link];
}

const ggl_step *ggl_vk_form_link(const ggl_step *step) {
    const ggl_step *last = step + step->n_links - 1;
    return step->n_links > 1 && last->kind == GGL_STEP_FORM ? last : NULL;
}

bool ggl_vk_feeds(const ggl_step *step, int n, ggl_op op) {
    return n > 1 && step[0].dst.region < 0 && step[1].kind == GGL_STEP_NODE &&
           step[1].node->op == op && ggl_vk_other(&step[1])->region >= 0 &&
           ggl_vk_other(&step[1])->type == GGL_F32;
}

int ggl_vk_and_form(const ggl_step *step, int n, int so_far) {
    enum { BLOCK = 32 };
    const bool blocks = step[so_far - 1].dst.ne[0] % BLOCK == 0;
    return so_far < n && step[so_far].kind == GGL_STEP_FORM && blocks ? so_far + 1 : so_far;
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
