/* Chooses the type of each tensor under a limit of size, by what each type loses: --budget and --bpw.
 *
 *     budget_options o = {0};
 *     const arg_option options[] = {.., BUDGET_OPTIONS(o), {0}};
 *     int code = budget_new(&b, TOOL, &o, n_threads, &choice);   // the plan asks b from now on
 *     .. llm_quant_plan_make(&plan, file, &choice, ..) ..            // finds out what may be chosen
 *     code = budget_solve(b, &source);                           // measures and chooses
 *     .. llm_quant_plan_make(&plan, file, &choice, ..) ..            // with the chosen types
 *     budget_print(b);
 *     budget_free(b); */
#ifndef TOOLS_BUDGET_H
#define TOOLS_BUDGET_H

#include "common/arg_table.h"
#include "measure/imatrix.h"
#include "quant/type_plan.h"

typedef struct budget_options {
    const char *size, *types, *text, *file;
    double bpw;
    bool bpw_given;
    bool no_search; /* of llm_quant_from_float */
    int64_t n_ctx, n_chunk, n_pass;
} budget_options;

/* clang-format off */
#define BUDGET_OPTIONS(o)                                                                              \
    {NULL, .help = "types by a limit of size, instead of TYPE"},                                        \
    {"--budget", ARG_STRING, &(o).size, .value = "SIZE",                                               \
     .help = "choose the types so that OUT has at most SIZE bytes (4.2G, 700M, 3.9GiB) and loses the least"}, \
    {"--bpw", ARG_FLOAT, &(o).bpw, .value = "N",                                                       \
     .help = "the same for at most N bits per weight, over all tensors", .min = 0.5, .max = 64, .given = &(o).bpw_given}, \
    {"--types", ARG_STRING, &(o).types, .value = "LIST",                                               \
     .help = "the types to choose from, as q3_k,q4_k,q6_k (default: those for models that were trained with floats, of 1.5 to 8.5 bits)"}, \
    {"--calibration", ARG_STRING, &(o).text, .value = "TEXT",                                          \
     .help = "measure how much each tensor's error changes the predictions on this text (default: all count the same)"}, \
    {"-c --ctx-size", ARG_INT, &(o).n_ctx, .value = "N",                                               \
     .help = "tokens of a chunk of that text (default 512)", .min = 4, .max = 1 << 24},                \
    {"--chunks", ARG_INT, &(o).n_chunk, .value = "N",                                                  \
     .help = "chunks of that text to run (default 8)", .min = 1, .max = 1 << 20},                      \
    {"--passes", ARG_INT, &(o).n_pass, .value = "N",                                                   \
     .help = "run that text at most N times: tensors of one kind in neighbouring layers are measured together (default: each by itself)", \
     .min = 1, .max = 1 << 20},                                                                        \
    {"--loss", ARG_STRING, &(o).file, .value = "FILE",                                                 \
     .help = "keep what was measured in FILE, and use what it has: another budget then takes seconds"}
/* clang-format on */

typedef struct budget budget;

/* What is to be quantized. */
typedef struct budget_source {
    const char *path;
    const ggl_gguf *file;
    const quant_plan *plan;                 /* made with the choice of budget_new */
    uint64_t head;                          /* bytes of OUT besides its tensors' */
    uint64_t alignment;                     /* of tensors in OUT */
    const imatrix_entry *const *importance; /* [plan->n]; NULL: none */
} budget_source;

bool budget_wanted(const budget_options *o); /* --budget or --bpw */
/* Checks the options, and sets c->pick. Returns -1, or an exit code after a message. `o` and `c` are
 * borrowed. */
int budget_new(budget **out, const char *tool, const budget_options *o, int n_threads,
               quant_choice *c);
void budget_free(budget *b);
/* Returns -1, or an exit code after a message: 2 if the limit is below the smallest choice. */
int budget_solve(budget *b, const budget_source *s);
/* Prints the choice as a table, on standard output. */
void budget_print(const budget *b);

#endif
