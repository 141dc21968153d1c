/* Runs the choice and the mixes of about its size on the text. Losses of single tensors do not add up
 * exactly, so a mix may lose less than the choice with the least sum. */
#include <string.h>

#include "budget_impl.h"
#include "common/report.h"
#include "ggl/alloc.h"

/* Returns the tensor's option of that type; -1: there is none. */
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

static void swap_choice(budget *b, int *chosen) {
    for (size_t i = 0; i < b->n; i++) {
        const int other = chosen[i];
        chosen[i] = b->tensor[i].chosen;
        b->tensor[i].chosen = other;
    }
}

static void take_mix(budget *b, const quant_mix *mix, uint64_t size) {
    b->mix = mix;
    b->size = size;
    b->result.exact = false;
    b->result.loss = 0;
    for (size_t i = 0; i < b->n; i++)
        b->result.loss += b->tensor[i].option[b->tensor[i].chosen].loss;
}

/* Runs the mixes of about the limit, and takes one that loses less. */
static int try_mixes(budget *b, int *other) {
    const quant_mix *mix;
    int code = -1;
    for (int k = 0; code < 0 && (mix = llm_quant_mix_at(k)); k++) {
        mean kl, ppl;
        const uint64_t size = budget_mix(b, mix, other);
        if (size == 0)
            continue;
        swap_choice(b, other);
        code = budget_run(b, &kl, &ppl);
        if (code < 0 && kl.value < b->kl.value) {
            b->kl = kl;
            b->ppl = ppl;
            take_mix(b, mix, size);
        } else {
            swap_choice(b, other);
        }
    }
    return code;
}

int budget_check(budget *b) {
    if (!b->trial)
        return -1;
    int *other = ggl_calloc(b->n, sizeof *other);
    int code = other ? budget_run(b, &b->kl, &b->ppl) : tool_error(b->tool, 1, "out of memory");
    if (code < 0)
        code = try_mixes(b, other);
    ggl_free(other);
    b->checked = code < 0;
    trial_free(b->trial); /* its memory is needed no longer */
    b->trial = NULL;
    return code;
}
