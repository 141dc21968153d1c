/* The options by which tools choose where a model runs, and what they print about it. library/place decides.
 *
 *     placement_options po = {0};
 *     const arg_option options[] = {.., PLACEMENT_OPTIONS(po), {0}};
 *     llm_opening opening = {.placement = placement_choice(TOOL, &po), .placed = placement_say, ..};
 *     int code = tool_open_context(c, TOOL, &opening, NULL, LLM_OPENED_SESSION); */
#ifndef TOOLS_PLACEMENT_OPTIONS_H
#define TOOLS_PLACEMENT_OPTIONS_H

#include "args.h"
#include "place/placement.h"

typedef struct placement_rule_options {
    arg_list place;    /* "GLOB=BACKEND" */
    arg_list override; /* "REGEX=BACKEND,..", as llama.cpp's -ot */
    bool cpu_moe;      /* experts of all layers */
    int64_t n_cpu_moe; /* experts of the first layers */
} placement_rule_options;

/* The members of llm_placement_choice. */
typedef struct placement_options {
    const char *devices;
    char devices_flag[ARG_TYPED]; /* the flag that was typed; "": --device */
    const char *split;
    const char *shares;
    int64_t n_gpu_layers;
    bool n_gpu_layers_given, fit, strict;
    placement_rule_options rules;
    const char *trace;
    const char *shadow;
    uint64_t shadow_seed;
} placement_options;

/* clang-format off */
#define PLACEMENT_RULE_OPTIONS_AS(o, override_names)                                               \
    {"--place", ARG_LIST, &(o).place, .value = "PATTERN=NAME",                                     \
     .help = "run operations whose weight has a matching name on NAME: 'blk.*.ffn_*exps*=cpu'; repeatable"}, \
    {override_names, ARG_LIST, &(o).override, .value = "REGEX=NAME,..",                            \
     .help = "the same with regular expressions, as in llama.cpp: 'ffn_.*_exps=CPU'"},             \
    {"-cmoe --cpu-moe", ARG_FLAG, &(o).cpu_moe, .help = "run the experts of all layers on the CPU"},       \
    {"-ncmoe --n-cpu-moe", ARG_INT, &(o).n_cpu_moe, .value = "N",                                  \
     .help = "run the experts of the first N layers on the CPU", .min = 0, .max = 1e6}

#define OVERRIDE_TENSOR "-ot --override-tensor"
#define PLACEMENT_RULE_OPTIONS(o) PLACEMENT_RULE_OPTIONS_AS(o, OVERRIDE_TENSOR)
#define PLACEMENT_OPTIONS(o)      PLACEMENT_OPTIONS_AS(o, OVERRIDE_TENSOR)

/* override_names: for a tool whose -ot is something else */
#define PLACEMENT_OPTIONS_AS(o, override_names)                                                    \
    {"-dev --device --backend", ARG_STRING, &(o).devices, .value = "NAME,..", .typed = (o).devices_flag, \
     .help = "devices to run on: cpu (default), vulkan0, reference (double precision, slow), ./libmine.so; --list-devices prints all"},                                  \
    {"-ngl --n-gpu-layers --gpu-layers", ARG_INT, &(o).n_gpu_layers, .value = "N",                              \
     .help = "run the last N layers on the --device, or on the first GPU; all layers if the model has fewer",        \
     .min = 0, .max = 1e6, .given = &(o).n_gpu_layers_given},                                      \
    {"--split", ARG_STRING, &(o).split, .value = "A=N,B=M",                                        \
     .help = "run the first N layers on device A, the next M on B; auto: measure each device for about a second, and use those that are faster than the CPU; rows: divide the rows of large products among the CPU and the devices; copies, for many inputs (llm-embed, llm-perplexity, llm-imatrix): each device of --device, or each rank, has the whole model and takes the next input when it is free"},                                                                 \
    {"-ts --tensor-split", ARG_STRING, &(o).shares, .value = "N,M",                                \
     .help = "divide the layers of -ngl (without it: all) among the devices in these proportions, instead of by their memory"}, \
    {"--fit", ARG_FLAG, &(o).fit, .help = "run as many layers on the devices as fit into their memory"},   \
    PLACEMENT_RULE_OPTIONS_AS((o).rules, override_names),                                          \
    {"--strict", ARG_FLAG, &(o).strict,                                                            \
     .help = "stop with an error if a backend cannot run an operation, instead of running it on another backend"},               \
    {"--trace", ARG_STRING, &(o).trace, .value = "FILE",                                           \
     .help = "write a timeline of the backends for ui.perfetto.dev or chrome://tracing"},          \
    {"--shadow", ARG_MAYBE, &(o).shadow, .value = "RATE",                                          \
     .help = "check the devices: compute a share of the runs (default RATE: 0.03125, one of 32) again on the CPU, and report differences"}
/* clang-format on */

/* The choice, with notes on stderr. `tool`, for these, and `o` are borrowed. tool NULL: without notes and advice. */
llm_placement_choice placement_choice(const char *tool, const placement_options *o);
/* Prints what users should know of a session's placement: where the layers run, and what does not run where it was placed. tool: its
 * name; it is void for llm_opening.placed. */
void placement_say(void *tool, const llm_placement *p, const llm_session *s);
/* Opens the backends. Returns -1, or an exit code after an error message. */
int placement_open(llm_placement **out, const char *tool, const placement_options *o,
                   const ggl_backend_params *params);
/* Returns the file that a timeline is written to, of --trace or a device "trace:NAME"; NULL:
 * none. */
const char *placement_trace(const placement_options *o);
/* Frees the lists. */
void placement_options_fini(placement_options *o);

/* Prints all backends and devices of this build, one per line, with the reason if one cannot be
 * used. */
void placement_list(FILE *out);

#endif
