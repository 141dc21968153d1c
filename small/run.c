/* Runs the operators of a plan, one after the other. */
#include "step.h"

void small_begin(const small_plan *plan, char *ram) {
    memset(ram, 0, plan->ram);
}

const float *small_step(const small_plan *plan, char *ram, int32_t token, int32_t pos) {
    small_inputs *in = (small_inputs *)(void *)ram;
    if (token < 0 || token >= plan->n_vocab || pos < 0 || pos >= plan->n_ctx)
        return NULL;
    *in = (small_inputs){.token = token, .pos = pos};
    small_use_types(plan->type);
    for (uint32_t i = 0; i < plan->n_op; i++)
        plan->op[i].run(&plan->op[i], ram);
    return (const float *)(const void *)(ram + plan->logits);
}
