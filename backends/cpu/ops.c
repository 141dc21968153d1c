/* The tables of the operators and composites of ops.def. */
#include "cpu.h"

static const cpu_op *const by_op[GGL_OP_COUNT] = {
#define OP(ID, op) [GGL_OP_##ID] = &op,
#include "ops.def"
};

static const cpu_op *const by_composite[GGL_COMPOSITE_COUNT] = {
#define COMPOSITE(ID, op) [GGL_COMPOSITE_##ID] = &op,
#include "ops.def"
};

const cpu_op *ggl_cpu_op_of(const ggl_tensor *node) {
    return node->op == GGL_OP_CALL ? by_composite[ggl_composite_of(node)] : by_op[node->op];
}

const cpu_op *ggl_cpu_op_of_form(int form) {
    return form == CPU_FORM_ROPE ? &ggl_cpu_op_rope_table : &ggl_cpu_op_columns;
}

const cpu_op *ggl_cpu_op_of_step(const ggl_step *s) {
    return s->kind == GGL_STEP_FORM ? ggl_cpu_op_of_form(s->form) : ggl_cpu_op_of(s->node);
}

ggl_form ggl_cpu_form(const ggl_backend *b, const ggl_step *step) {
    const cpu_op *op = ggl_cpu_op_of(step->node);
    return op && op->form ? op->form((const cpu_backend *)b, step) : (ggl_form){0};
}

bool ggl_cpu_in_place(const ggl_tensor *node) {
    const cpu_op *op = ggl_cpu_op_of(node);
    return op && op->in_place;
}

/* True if other steps of its wave can run beside the step. */
static bool can_share(const ggl_step *s) {
    const cpu_op *op = ggl_cpu_op_of_step(s);
    return op && !op->end && !(op->alone && op->alone(s));
}

bool ggl_cpu_joins(const ggl_backend *b, const ggl_step *const *member, int n,
                   const ggl_step *next) {
    (void)b, (void)n;
    return can_share(member[0]) && can_share(next);
}

const char *ggl_cpu_refuses(const ggl_backend *b, const ggl_tensor *node) {
    const cpu_backend *c = (const cpu_backend *)b;
    if (node->op == GGL_OP_LINEAR)
        return c->k.product[node->src[LINEAR_W]->type].rows
                   ? NULL
                   : "no product with weights of this type";
    return node->op <= GGL_OP_PARAM || ggl_cpu_op_of(node) ? NULL : "there is no kernel for it";
}
