/* The choice without a text. How much an error counts depends on how sure the model is of what comes next, which nobody
 * knows: several degrees are tried, and the choice is the one that is good both if it is sure and if it is not. */
#include <math.h>

#include "budget_impl.h"
#include "common/report.h"
#include "ggl/alloc.h"

/* A choice must be estimated to lose less than this share of a mix's loss: a guess is not more exact. */
#define WORTH 0.97

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

/* Returns the share of the reference's loss, at the extreme where it is larger. */
static double worst_share(const estimate *e, const estimate *least) {
    double share = 0;
    for (int k = 0; k < BUDGET_EXTREMES; k++)
        if (least->loss[k] > 0)
            share = fmax(share, e->loss[k] / least->loss[k]);
    return share;
}

static int best_degree(const budget *b, const estimate *least) {
    int best = 0;
    for (int d = 1; d < BUDGET_DEGREES; d++)
        if (worst_share(&b->guess[d], least) < worst_share(&b->guess[best], least))
            best = d;
    return best;
}

/* Returns the mix with the least share; NULL: all are at least `most`. */
static const quant_mix *best_mix(const budget *b, const estimate *least, double most, int *types) {
    const quant_mix *mix, *best = NULL;
    for (int k = 0; (mix = llm_quant_mix_at(k)); k++)
        if (budget_mix(b, mix, types)) {
            const estimate e = estimate_of(b, types);
            const double share = worst_share(&e, least);
            best = share < most ? mix : best;
            most = share < most ? share : most;
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

int budget_guess_best(const budget *b, int *degree, const quant_mix **mix) {
    int *types = ggl_calloc(b->n + 1, sizeof *types);
    if (!types)
        return tool_error(b->tool, 1, "out of memory");
    const estimate least = reference(b, types);
    *degree = best_degree(b, &least);
    *mix = best_mix(b, &least, worst_share(&b->guess[*degree], &least) / WORTH, types);
    ggl_free(types);
    return -1;
}
