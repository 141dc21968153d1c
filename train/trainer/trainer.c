/* A trainer: its parameters, and what it consists of. */
#include <inttypes.h>
#include <math.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "trainer_impl.h"

/* --- making ----------------------------------------------------------------------------------- */

static ggl_status check(llm_train_params *p, ggl_error *err) {
    if (!p->backend || !p->reference)
        return ggl_fail(err, GGL_USAGE, "a trainer needs a backend, and the reference backend");
    p->n_ctx = p->n_ctx ? p->n_ctx : 256;
    p->n_batch = p->n_batch ? p->n_batch : p->n_ctx;
    p->beta1 = p->beta1 != 0 ? p->beta1 : p->optimizer == LLM_TRAIN_MUON ? 0.95 : 0.9;
    p->beta2 = p->beta2 != 0 ? p->beta2 : 0.999;
    p->eps = p->eps != 0 ? p->eps : 1e-8;
    if (p->n_ctx < 1 || p->n_batch < p->n_ctx || p->n_batch > INT32_MAX)
        return ggl_fail(err, GGL_USAGE,
                        "batches of %" PRId64 " tokens with sequences of up to %" PRId64
                        ": a sequence must fit into a batch",
                        p->n_batch, p->n_ctx);
    if (p->guess && (p->output || p->n_adapters > 0))
        return ggl_fail(err, GGL_USAGE,
                        "layers that guess ahead learn by themselves: neither through the output "
                        "'%s' nor beside an adapter",
                        p->output ? p->output : "logits");
    if (p->output && (p->loss || p->n_inputs > 0))
        return ggl_fail(err, GGL_USAGE, "the loss of the output '%s' is the program's", p->output);
    const ggl_type_info *rounded = ggl_type_get(p->rounded);
    if (!rounded || !rounded->from_float || !llm_train_is_of_numbers(p->rounded))
        return ggl_fail(err, GGL_USAGE, "numbers cannot be rounded to %s",
                        rounded ? rounded->name : "a type that does not exist");
    if (p->bf16 && p->rounded != GGL_F32)
        return ggl_fail(err, GGL_USAGE,
                        "matrices are read rounded to %s, or in bf16: only one of the two can be",
                        rounded->name);
    if (p->optimizer < 0 || p->optimizer > LLM_TRAIN_MUON)
        return ggl_fail(err, GGL_USAGE, "there is no optimizer %d", (int)p->optimizer);
    if (p->optimizer_bits != 0 && p->optimizer_bits != 8 && p->optimizer_bits != 32)
        return ggl_fail(err, GGL_USAGE, "an optimizer that remembers %d bits: 8 or 32 can be",
                        p->optimizer_bits);
    if (p->n_slots < 0 || p->n_slots > p->n_batch || p->n_inputs < 0)
        return ggl_fail(err, GGL_USAGE,
                        "a trainer with %" PRId64 " sequences in a batch of %" PRId64
                        " tokens, and %d inputs",
                        p->n_slots, p->n_batch, p->n_inputs);
    if (p->n_slots == 0) {
        const int64_t whole = p->n_batch / p->n_ctx, pages = p->n_batch / GGL_PAGE;
        p->n_slots = whole > pages ? whole : pages;
    }
    if (!(p->beta1 >= 0 && p->beta1 < 1 && p->beta2 >= 0 && p->beta2 < 1 && p->eps > 0 &&
          p->decay >= 0 && isfinite(p->decay) && p->max_norm >= 0))
        return ggl_fail(
            err, GGL_USAGE,
            "AdamW with beta1 %g, beta2 %g, eps %g, decay %g, max_norm %g: betas must be "
            "from 0 to below 1, eps more than 0, and the others not negative",
            p->beta1, p->beta2, p->eps, p->decay, p->max_norm);
    return GGL_OK;
}

static ggl_status make(llm_trainer *t, ggl_error *err) {
    ggl_status st = check(&t->p, err);
    if (st != GGL_OK)
        return st;
    const int64_t n_pages = t->p.n_slots * ((t->p.n_ctx + GGL_PAGE - 1) / GGL_PAGE);
    t->loss = ggl_calloc((size_t)t->p.n_slots, sizeof *t->loss);
    t->page = ggl_calloc((size_t)n_pages, sizeof *t->page);
    t->pos = ggl_calloc((size_t)t->p.n_batch, sizeof *t->pos);
    t->no_type = ggl_calloc((size_t)t->p.n_batch, sizeof *t->no_type);
    t->slot = ggl_calloc((size_t)t->p.n_batch, sizeof *t->slot);
    t->end = ggl_calloc((size_t)t->p.n_batch, sizeof *t->end);
    t->weight = ggl_calloc((size_t)t->p.n_batch, sizeof *t->weight);
    if (!t->loss || !t->page || !t->pos || !t->no_type || !t->slot || !t->end || !t->weight)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    st = llm_reader_init(t, err);
    if (st == GGL_OK)
        st = llm_trainer_choose(t, err);
    if (st == GGL_OK)
        st = llm_reader_plan(t, err);
    if (st != GGL_OK)
        return st;
    const size_t n_layers = (size_t)t->guesses.n_layers;
    t->learn = ggl_calloc(n_layers, sizeof *t->learn);
    t->told = ggl_calloc(n_layers, sizeof *t->told);
    t->guessed = ggl_calloc(n_layers, sizeof *t->guessed);
    t->zeros = ggl_calloc((size_t)(t->p.n_batch * (t->guesses.n_row + 1)), sizeof *t->zeros);
    if (!t->learn || !t->told || !t->guessed || !t->zeros)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    for (int k = 0; k < t->guesses.n_layers && st == GGL_OK; k++)
        st = llm_trainer_plan(t, &t->learn[k], k, true, err);
    return st == GGL_OK ? llm_train_step_init(&t->step, &t->weights, &t->p, err) : st;
}

ggl_status llm_trainer_new(llm_trainer **out, const llm_arch *arch, const llm_arch_source *source,
                           const llm_train_params *params, ggl_error *err) {
    llm_train_params p = {.size = sizeof p};
    ggl_status st = GGL_READ_PARAMS(llm_train_params, &p, params, err);
    llm_trainer *t = st == GGL_OK ? ggl_calloc(1, sizeof *t) : NULL;
    *out = NULL;
    if (!t)
        return st != GGL_OK ? st : ggl_fail(err, GGL_NOMEM, "out of memory for a trainer");
    t->arch = arch;
    t->source = source;
    t->p = p;
    st = make(t, err);
    t->p.learn = NULL; /* the caller's */
    t->p.n_learn = 0;
    if (st != GGL_OK)
        llm_trainer_free(t);
    else
        *out = t;
    return st;
}

void llm_trainer_free(llm_trainer *t) {
    if (!t)
        return;
    for (int k = 0; k < t->guesses.n_layers && t->learn && t->told && t->guessed; k++) {
        llm_train_plan_fini(&t->learn[k]);
        llm_train_plan_fini(&t->told[k]);
        llm_train_plan_fini(&t->guessed[k]);
    }
    ggl_free(t->learn);
    ggl_free(t->told);
    ggl_free(t->guessed);
    ggl_free(t->zeros);
    ggl_free((int32_t *)t->guesses.token);
    llm_reader_fini(t);
    llm_train_plan_fini(&t->hear);
    llm_train_plan_fini(&t->evaluate);
    llm_train_plan_fini(&t->look);
    llm_train_step_fini(&t->step);
    llm_train_weights_fini(&t->weights);
    ggl_free(t->loss);
    ggl_free(t->page);
    ggl_free(t->pos);
    ggl_free(t->no_type);
    ggl_free(t->slot);
    ggl_free(t->end);
    ggl_free(t->weight);
    ggl_free(t);
}

/* --- weights ---------------------------------------------------------------------------------- */

size_t llm_trainer_value_bytes(const llm_trainer *t) {
    size_t sum = llm_train_plan_bytes(&t->evaluate) + llm_train_plan_bytes(&t->look) +
                 llm_train_plan_bytes(&t->hear) + llm_train_step_bytes(&t->step) +
                 llm_reader_bytes(t);
    for (int k = 0; k < t->guesses.n_layers; k++)
        sum += llm_train_plan_bytes(&t->learn[k]) + llm_train_plan_bytes(&t->told[k]) +
               llm_train_plan_bytes(&t->guessed[k]);
    return sum;
}

int64_t llm_trainer_n_vocab(const llm_trainer *t) {
    return t->n_vocab;
}

llm_train_output llm_trainer_output(const llm_trainer *t) {
    return t->out;
}

llm_train_guesses llm_trainer_guesses(const llm_trainer *t) {
    return t->guesses;
}

int llm_trainer_n_weights(const llm_trainer *t) {
    return t->weights.n;
}

llm_train_weight llm_trainer_weight(const llm_trainer *t, int k) {
    return t->weights.at[k].w;
}

int64_t llm_trainer_n_steps(const llm_trainer *t) {
    return t->n_steps;
}

void llm_trainer_set_steps(llm_trainer *t, int64_t n) {
    t->n_steps = n > 0 ? n : 0;
    llm_train_weights_round(&t->weights);
}
