/* What the files of the budget share. */
#ifndef TOOLS_BUDGET_IMPL_H
#define TOOLS_BUDGET_IMPL_H

#include "budget.h"
#include "measure/ppl_stats.h"
#include "knapsack.h"
#include "loss.h"
#include "loss_file.h"
#include "tensor_groups.h"
#include "trial.h"

enum { BUDGET_MAX_TYPES = LOSS_MAX_TYPES, BUDGET_DEGREES = 5, BUDGET_EXTREMES = 2 };

typedef struct budget_estimate {
    double loss[BUDGET_EXTREMES]; /* if the model is not sure, and if it is */
} budget_estimate;

typedef struct budget_tensor {
    char name[128];
    const ggl_gguf_tensor *from;
    const imatrix_entry *entry; /* NULL: none */
    int n;
    const ggl_type_info *type[BUDGET_MAX_TYPES];
    double error[BUDGET_MAX_TYPES];
    knapsack_option option[BUDGET_MAX_TYPES];
    const ggl_type_info *probe; /* the type in which it is measured */
    double probe_error;
    double weight; /* loss for an error of 1 */
    size_t record; /* in `known` */
    int chosen;
} budget_tensor;

struct budget {
    const char *tool;
    const budget_options *o;
    const quant_choice *choice; /* the user's other choices */
    int n_threads;
    budget_source source;
    const budget_source *s;                       /* it, once it is known */
    uint64_t limit;                               /* bytes of --budget; 0: bpw */
    const ggl_type_info *named[BUDGET_MAX_TYPES]; /* --types */
    int n_named;
    budget_tensor *tensor;
    size_t n, cap;
    bool solved;
    size_t next; /* the tensor that the plan probably asks for next */
    loss_list known;
    trial *trial;           /* NULL: without a text */
    bool measured, checked; /* weights come from a text; the whole choice was run on it */
    knapsack_result result;
    uint64_t size, allowed; /* of the file, or of the weights in bytes, for --bpw */
    uint64_t fixed;         /* its part that does not depend on the choice */
    quant_model model;      /* for the guess */
    budget_estimate guess[BUDGET_DEGREES];
    const quant_mix *mix;   /* the choice is this mix; NULL if it is no mix */
    mean kl, ppl, ppl_base; /* of the whole choice */
};

/* Return -1, or an exit code after a message. budget_measure finds the errors of all candidates, and
 * the weights if they are known or there is a text. If there is a text, budget_check runs the whole choice on it,
 * and the mixes that have nearly the size; the best of them is then the choice. */
int budget_measure(budget *b);
int budget_check(budget *b);
/* The guesses of a choice without a text: how much errors count if the model is not sure of what comes next (degree 0)
 * to sure (BUDGET_DEGREES - 1). Set the weights of each degree, choose, and note the choice; then ask for the best. */
void budget_guess_begin(budget *b);
void budget_guess_weights(budget *b, int degree);
void budget_guess_note(budget *b, int degree);
int budget_guess_best(const budget *b, int *degree,
                      const quant_mix **mix); /* *mix: not worse; or NULL */
/* Makes a mix that budget_mix gives the choice. */
int budget_take_mix(budget *b, const quant_mix *mix);
/* Sets chosen[b->n] to the types that a mix gives the tensors. Returns the size of the file (or of the weights, for
 * --bpw); 0: a type is no candidate, or the size is above the limit or less than nine tenths of it. */
uint64_t budget_mix(const budget *b, const quant_mix *mix, int *chosen);
/* Makes the trial's model one with the chosen types, and runs the text. Returns as budget_measure. */
int budget_run(budget *b, mean *kl, mean *ppl);

#endif
