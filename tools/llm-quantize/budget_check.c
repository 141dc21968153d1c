/* Runs the choice and the mixes of about its size on the text. Losses of single tensors do not add up
 * exactly, so a mix may lose less than the choice with the least sum. */
#include <string.h>

#include "budget_impl.h"
#include "common/report.h"
#include "ggl/alloc.h"

/* Returns the tensor's option of that type; -1 if none. */
static int option_of(const budget_tensor *t, const ggl_type_info *type) {
    for (int k = 0; k < t->n; k++)
        if (t->type[k] == type)
            return k;
    return -1;
}

uint64_t budget_mix(const budget *b, const quant_mix *mix, int *chosen) {
    ggl_error err = {0};
    quant_plan p;
    quant_choice c = *b->choice;
    uint64_t size = b->fixed;
    size_t n = 0;
    bool all = true;
    c.pick = NULL;
    c.pure = false;
    c.mix = mix;
    if (llm_quant_plan_make(&p, b->s->file, &c, &err) != GGL_OK)
        return 0;
    for (size_t i = 0; i < p.n && n < b->n && all; i++) {
        if (strcmp(p.tensor[i].name, b->tensor[n].name) != 0)
            continue;
        chosen[n] = option_of(&b->tensor[n], p.tensor[i].type);
        all = chosen[n] >= 0;
        size += all ? b->tensor[n].option[chosen[n]].size : 0;
        n++;
    }
    llm_quant_plan_fini(&p);
    return all && n == b->n && size <= b->allowed && size >= b->allowed / 10 * 9 ? size : 0;
}

int budget_take_mix(budget *b, const quant_mix *mix) {
    int *types = ggl_calloc(b->n + 1, sizeof *types);
    if (!types)
        return tool_error(b->tool, 1, "out of memory");
    b->mix = mix;
    b->size = budget_mix(b, mix, types);
    b->result.exact = false;
    b->result.loss = 0;
    for (size_t i = 0; i < b->n; i++) {
        b->tensor[i].chosen = types[i];
        b->result.loss += b->tensor[i].option[types[i]].loss;
    }
    ggl_free(types);
    return -1;
}

static void swap_choice(budget *b, int *types) {
    for (size_t i = 0; i < b->n; i++) {
        const int other = types[i];
        types[i] = b->tensor[i].chosen;
        b->tensor[i].chosen = other;
    }
}

/* Runs the mixes of about the limit, and takes one that loses less. */
static int try_mixes(budget *b, int *types) {
    const quant_mix *mix;
    int code = -1;
    for (int k = 0; code < 0 && (mix = llm_quant_mix_at(k)); k++) {
        mean kl, ppl;
        if (!budget_mix(b, mix, types))
            continue;
        swap_choice(b, types);
        code = budget_run(b, &kl, &ppl);
        swap_choice(b, types);
        if (code < 0 && kl.value < b->kl.value) {
            b->kl = kl;
            b->ppl = ppl;
            code = budget_take_mix(b, mix);
        }
    }
    return code;
}

int budget_check(budget *b) {
    if (!b->trial)
        return -1;
    int *types = ggl_calloc(b->n + 1, sizeof *types);
    int code = types ? budget_run(b, &b->kl, &b->ppl) : tool_error(b->tool, 1, "out of memory");
    if (code < 0)
        code = try_mixes(b, types);
    ggl_free(types);
    b->checked = code < 0;
    trial_free(b->trial); /* its memory is needed no longer */
    b->trial = NULL;
    return code;
}
