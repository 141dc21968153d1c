/* Options of the tools that run a model over texts: llm-embed, llm-imatrix, llm-perplexity.
 *
 *     run_options run = RUN_OPTIONS_DEFAULTS;
 *     const arg_option table[] = {{NULL, .help = "machine"}, RUN_OPTIONS(&run), {0}};
 *     ..
 *     run_options_opening(&run, TOOL, &file, &opening);
 *     ..
 *     run_options_fini(&run); */
#ifndef TOOLS_RUN_OPTIONS_H
#define TOOLS_RUN_OPTIONS_H

#include "adapters.h"
#include "args.h"
#include "hub_options.h"
#include "ignore.h"
#include "machine_options.h"
#include "opening.h"
#include "override_options.h"
#include "placement_options.h"

typedef struct run_options {
    const char *model, *arch, *mask;
    hub_options hub;
    tool_ignore ignore;
    tool_overrides overrides;
    tool_adapters adapters;
    placement_options placement;
    int64_t n_threads, n_batch, n_ubatch;
    int type; /* --type */
    int type_k, type_v;
    bool types_given, no_mmap, f16_as_bf16;
    const char *plan; /* NULL: not given; "nodes", or "" */
} run_options;

#define RUN_OPTIONS_DEFAULTS                                                                       \
    { .n_batch = 2048, .n_ubatch = 512 }

/* The rows of all but the model, its repository and its type. r: a pointer to the options. */
#define RUN_OPTIONS(r)                                                                             \
    ONE_THREADS_OPTION(r), BATCH_OPTIONS(r), ARCH_OPTION(r), ADAPTER_OPTIONS((r)->adapters),       \
        IGNORE_OPTIONS((r)->ignore), OVERRIDE_OPTIONS((r)->overrides), NO_MMAP_OPTION(r),          \
        F16_OPTION(r), PLACEMENT_OPTIONS((r)->placement), PLAN_OPTION(r), ISA_OPTION(r)

/* Fills in how the model is opened: for its outputs, with notes of where it runs and with progress. *file is how its file is
 * read. Both are the caller's until the context is closed, as are the options. */
void run_options_opening(const run_options *r, const char *tool, ggl_gguf_params *file,
                         llm_opening *out);
void run_options_fini(run_options *r);

#endif
