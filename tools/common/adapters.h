/* --lora and --lora-scaled, for the tools that run models.
 *
 *     tool_adapters a = {0};
 *     const arg_option options[] = {.., ADAPTER_OPTIONS(a), {0}};
 *     int code = adapters_open(&a, TOOL, model, &session_params);
 *     ..
 *     llm_session_free(session);
 *     adapters_fini(&a);              // after the session */
#ifndef TOOLS_ADAPTERS_H
#define TOOLS_ADAPTERS_H

#include <stdio.h>

#include "adapter_list.h"
#include "args.h"
#include "llm/internal/session.h"

typedef struct tool_adapters {
    arg_list lora, scaled; /* as given */
    llm_lora *from;        /* [n_from] that they name; the first n_plain are of --lora */
    size_t n_from, n_plain;
    llm_adapter_use *use; /* [n], opened by adapters_new; they belong to this */
    size_t n;
} tool_adapters;

/* Rows of an option table, for a tool_adapters. */
#define ADAPTER_OPTIONS(o)                                                                         \
    {"--lora", ARG_LIST, &(o).lora, .value = "FILE[:SCALE],..",                                    \
     .help =                                                                                       \
         "LoRA adapters (GGUF) to apply, at their own scale, or at SCALE times that; repeatable"}, \
    {                                                                                              \
        "--lora-scaled", ARG_LIST, &(o).scaled, .value = "FILE:SCALE,..", .number_follows = true,  \
                                                .help = "the same, with a scale for each; also "   \
                                                        "FILE SCALE"                               \
    }

/* Reads what the options name into `from`. Nothing is opened. GGL_USAGE: they are wrong; GGL_FORMAT: a folder is named. */
ggl_status adapters_read(tool_adapters *x, ggl_error *err);
/* Puts the flag that named adapter k before the message. Returns st. */
ggl_status adapters_within(const tool_adapters *x, size_t k, ggl_status st, ggl_error *err);
/* Opens the adapters, checks that they fit the model, and sets the session's. Returns -1, or an exit
 * code after an error message. */
int adapters_open(tool_adapters *x, const char *tool, const llm_model *m, llm_session_params *sp);
/* The same, but returns a status, without a message. What it opened is closed by adapters_close,
 * after an error, too. GGL_USAGE: the options are wrong. */
ggl_status adapters_new(tool_adapters *x, const llm_model *m, llm_session_params *sp,
                        ggl_error *err);
/* Prints a line for each opened adapter, which begins with `head`. */
void adapters_print(const llm_adapter_use *use, size_t n, const char *head, FILE *out);
/* Closes what adapters_open opened, and forgets what was read; the options stay as given. */
void adapters_close(tool_adapters *x);
/* Frees everything. */
void adapters_fini(tool_adapters *x);

#endif
