/* What the files of the budget share. */
#ifndef TOOLS_BUDGET_IMPL_H
#define TOOLS_BUDGET_IMPL_H

#include "budget.h"
#include "common/ppl_stats.h"
#include "knapsack.h"
#include "loss.h"
#include "loss_file.h"
#include "tensor_groups.h"
#include "trial.h"

enum { BUDGET_MAX_TYPES = LOSS_MAX_TYPES };

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
    uint64_t fixed;         /* what of it is not chosen */
    const quant_mix *mix;   /* taken instead, because it lost less on the text; NULL: none */
    mean kl, ppl, ppl_base; /* of the whole choice */
};

/* Return -1, or an exit code after a message. budget_measure finds the errors of all candidates, and
 * the weights, as far as they are not known yet. If there is a text, budget_check runs the whole choice on it,
 * and the mixes that have nearly the size; the best of them is then the choice. */
int budget_measure(budget *b);
int budget_check(budget *b);
/* Makes the trial's model one with the chosen types, and runs the text. Returns as budget_measure. */
int budget_run(budget *b, mean *kl, mean *ppl);

#endif
