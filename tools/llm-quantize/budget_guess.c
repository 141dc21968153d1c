/* The choice without a text. How much an error counts depends on how sure the model is of what comes next, which nobody
 * knows: several degrees are tried, and the choice is the one that is good both if it is sure and if it is not. */
#include <math.h>

#include "budget_impl.h"
#include "common/report.h"
#include "ggl/alloc.h"

typedef budget_estimate estimate;

void budget_guess_weights(budget *b, int degree) {
    for (size_t i = 0; i < b->n; i++)
        b->tensor[i].weight = llm_quant_error_weight(&b->model, b->tensor[i].name,
                                                     (double)degree / (BUDGET_DEGREES - 1));
}

/* Estimates the loss of some types; NULL: of the chosen ones. */
static estimate estimate_of(const budget *b, const int *types) {
    estimate e = {{0, 0}};
    for (size_t i = 0; i < b->n; i++) {
        const budget_tensor *t = &b->tensor[i];
        for (int k = 0; k < BUDGET_EXTREMES; k++)
            e.loss[k] += llm_quant_error_weight(&b->model, t->name, k) *
                         t->error[types ? types[i] : t->chosen];
    }
    return e;
}

static void keep_least(estimate *least, const estimate *e) {
    for (int k = 0; k < BUDGET_EXTREMES; k++)
        least->loss[k] = e->loss[k] < least->loss[k] ? e->loss[k] : least->loss[k];
}

/* What a choice is compared with: the best mix of about the limit; without one, the best of the choices. */
static estimate reference(const budget *b, int *types) {
    estimate least = {{INFINITY, INFINITY}};
    const quant_mix *mix;
    bool any = false;
    for (int k = 0; (mix = llm_quant_mix_at(k)); k++)
        if (budget_mix(b, mix, types)) {
            const estimate e = estimate_of(b, types);
            keep_least(&least, &e);
            any = true;
        }
    for (int k = 0; !any && k < BUDGET_DEGREES; k++)
        keep_least(&least, &b->guess[k]);
    return least;
}

/* Returns the degree whose choice has the least share of the reference's loss where that share is larger. */
static int best_degree(const estimate *choices, const estimate *least) {
    int best = 0;
    double share[BUDGET_DEGREES];
    for (int d = 0; d < BUDGET_DEGREES; d++) {
        share[d] = 0;
        for (int k = 0; k < BUDGET_EXTREMES; k++)
            if (least->loss[k] > 0)
                share[d] = fmax(share[d], choices[d].loss[k] / least->loss[k]);
        best = share[d] < share[best] ? d : best;
    }
    return best;
}

void budget_guess_begin(budget *b) {
    b->model = (quant_model){.n_layer = b->s->plan->n_layer};
    for (size_t i = 0; i < b->s->plan->n; i++)
        llm_quant_model_add(&b->model, b->s->plan->tensor[i].name);
}

void budget_guess_note(budget *b, int degree) {
    b->guess[degree] = estimate_of(b, NULL);
}

int budget_guess_best(const budget *b, int *degree) {
    int *types = ggl_calloc(b->n + 1, sizeof *types);
    if (!types)
        return tool_error(b->tool, 1, "out of memory");
    const estimate least = reference(b, types);
    *degree = best_degree(b->guess, &least);
    ggl_free(types);
    return -1;
}
