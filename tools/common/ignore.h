/* --ignore-key and --ignore-tensor, for all tools that build a model from a file. */
#ifndef TOOLS_IGNORE_H
#define TOOLS_IGNORE_H

#include "args.h"
#include "llm/context.h"
#include "llm/internal/arch.h"

typedef struct tool_ignore {
    arg_list keys, tensors;
} tool_ignore;

/* Rows of an option table, for a tool_ignore. */
#define IGNORE_OPTIONS(o)                                                                          \
    {"--ignore-key", ARG_LIST, &(o).keys, .value = "PATTERN",                                      \
     .help = "continue although nothing reads keys with these full names ('*': anything), at "     \
             "your own risk; repeatable"},                                                         \
    {                                                                                              \
        "--ignore-tensor", ARG_LIST, &(o).tensors, .value = "PATTERN",                             \
                                                   .help = "the same for tensors"                  \
    }

/* For llm_model_params and llm_arch_params; the lists still belong to the tool. */
static inline llm_arch_ignore ignore_of(const tool_ignore *o) {
    return (llm_arch_ignore){
        .key = o->keys.s, .tensor = o->tensors.s, .n_key = o->keys.n, .n_tensor = o->tensors.n};
}

/* The same for llm_open_params. */
static inline void ignore_give(const tool_ignore *o, llm_open_params *p) {
    p->ignore_key = o->keys.s;
    p->n_ignore_key = o->keys.n;
    p->ignore_tensor = o->tensors.s;
    p->n_ignore_tensor = o->tensors.n;
}

static inline void ignore_fini(tool_ignore *o) {
    args_list_fini(&o->keys);
    args_list_fini(&o->tensors);
}

#endif
