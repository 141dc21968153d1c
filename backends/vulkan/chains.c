/* Chains and groups of steps, for the operators that emit several steps together; and what they refuse. */
#include "vulkan.h"

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
