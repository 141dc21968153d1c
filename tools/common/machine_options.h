/* Options of the machine that several tools have: rows of a table for args_parse. o: a pointer to the tool's struct, which has
 * members of these names; the comment before a macro names the tools. */
#ifndef TOOLS_MACHINE_OPTIONS_H
#define TOOLS_MACHINE_OPTIONS_H

#include "args.h"
#include "cache_types.h"

/* clang-format off */

/* llm-cli, llm-server */
#define THREADS_OPTIONS(o)                                                                         \
    {"-t --threads", ARG_INT, &(o)->n_threads, .value = "N", .min = 1, .max = TOOL_MAX_THREADS,    \
     .help = "threads for single tokens (default: physical cores; of two kinds, the big ones)"},                               \
    {"-tb --threads-batch", ARG_INT, &(o)->n_threads_batch, .value = "N", .min = 1, .max = TOOL_MAX_THREADS, \
     .help = "threads for prompts (default: as -t; without it also small cores that are fast enough to help)"}

/* llm-imatrix, llm-perplexity */
#define ONE_THREADS_OPTION(o)                                                                      \
    {"-t --threads", ARG_INT, &(o)->n_threads, .value = "N", .min = 1, .max = TOOL_MAX_THREADS,    \
     .help = "threads (default: physical cores); the result is the same for any number"}

/* llm-cli, llm-server, llm-bench */
#define CPUS_OPTIONS(o)                                                                            \
    {"-C --cpu-mask", ARG_STRING, &(o)->cpu_mask, .value = "HEX",                                  \
     .help = "run on these CPUs only: bit 0 is CPU 0 (default: the system chooses)"},              \
    {"--prio", ARG_INT, &(o)->priority, .value = "N", .min = -1, .max = 3,                         \
     .help = "priority of the process: -1 low, 0 normal (default), 1 medium, 2 high, 3 realtime"}

/* llm-cli, llm-server, llm-imatrix, llm-perplexity */
#define BATCH_OPTIONS(o)                                                                           \
    {"-b --batch-size", ARG_INT, &(o)->n_batch, .value = "N", .min = 1, .max = INT32_MAX,          \
     .help = "accepted for users of llama.cpp, but only -ub has an effect (default 2048)"},        \
    {"-ub --ubatch-size", ARG_INT, &(o)->n_ubatch, .value = "N", .min = 1, .max = 65536,           \
     .help = "tokens computed at once (default 512)"},                                             \
    {"-ctk --cache-type-k", ARG_CHOICE, &(o)->type_k, .value = "TYPE", .choices = tool_cache_types, .given = &(o)->types_given, \
     .help = "type of cached keys: " TOOL_CACHE_TYPES},                                            \
    {"-ctv --cache-type-v", ARG_CHOICE, &(o)->type_v, .value = "TYPE", .choices = tool_cache_types, .given = &(o)->types_given, \
     .help = "type of cached values: " TOOL_CACHE_TYPES}

/* llm-cli, llm-server */
#define KEEP_OPTIONS(o)                                                                            \
    {"--mlock", ARG_FLAG, &(o)->mlock, .help = "lock the model in memory, so that it is never swapped out"}, \
    {"-nr --no-repack", ARG_FLAG, &(o)->no_repack,                                                 \
     .help = "use weights in the file's layout: less memory, which is shared with other programs, but slower generation"}, \
    {"--repack-cache", ARG_MAYBE, &(o)->repack_cache, .value = "FILE",                             \
     .help = "save the repacked weights for this machine in FILE (default: beside the model, MODEL.repack; as large as the model), and start from it next time"}

/* These and llm-imatrix, llm-perplexity, llm-bench */
#define NO_MMAP_OPTION(o)                                                                          \
    {"--no-mmap", ARG_FLAG, &(o)->no_mmap, .help = "read the model into memory instead of mapping the file"}
#define F16_OPTION(o)                                                                              \
    {"--f16-as-bf16", ARG_FLAG, &(o)->f16_as_bf16,                                                 \
     .help = "round f16 weights to bf16 at load: faster prompts on processors with bf16 instructions; without this flag the weights are exact"}
/* These and llm-cli. */
#define PLAN_OPTION(o)                                                                             \
    {"--plan", ARG_MAYBE, &(o)->plan, .value = "nodes",                                            \
     .help = "print where each layer runs, what is copied, and the memory needed, and exit; --plan=nodes: for each operation"}
#define ISA_OPTION(o)                                                                              \
    {"--cpu-mask-isa", ARG_STRING, &(o)->mask, .value = "LIST",                                    \
     .help = "instruction sets not to use: avx512,avx2; all: use only portable code"}
#define ARCH_OPTION(o)                                                                             \
    {"--arch", ARG_STRING, &(o)->arch, .value = "FILE", .help = "the architecture descriptor to use"}

/* clang-format on */

/* Whether weights can be rounded (--f16-as-bf16) or their layout saved (--repack-cache) without a repack. Returns -1, or an
 * exit code after an error. */
static inline int machine_options_check(const char *tool, bool no_repack, bool f16_as_bf16,
                                        const char *repack_cache) {
    const char *flag = repack_cache ? "--repack-cache" : f16_as_bf16 ? "--f16-as-bf16" : NULL;
    return no_repack && flag
               ? tool_error(tool, 2, "%s and --no-repack cannot be used together", flag)
               : -1;
}

#endif
