/* What --lora, --control-vector, and the same with -scaled, name (open_options.h).
 *
 *     int code = tool_open_context(c, TOOL, &opening, &a, LLM_OPENED_ADAPTERS);
 *     ..
 *     llm_close(c);
 *     adapters_fini(&a); */
#ifndef TOOLS_ADAPTERS_H
#define TOOLS_ADAPTERS_H

#include <stdio.h>

#include "adapter_list.h"
#include "args.h"
#include "llm/internal/session.h"

typedef struct tool_adapter_files {
    arg_list plain, scaled; /* as given; the latter with a scale for each */
    llm_lora *from;         /* [n_from] that they name; the first n_plain are of `plain` */
    size_t n_from, n_plain;
} tool_adapter_files;

typedef struct tool_adapters {
    tool_adapter_files of_lora, of_control;
    arg_list range;      /* as given: START END */
    int64_t first, last; /* the layers that it names; 0: none */
} tool_adapters;

/* Reads what the options name, in place of what was read before, and sets it in *p, which borrows it. Nothing is opened. GGL_USAGE: they are
 * wrong; GGL_FORMAT: a folder is named. */
ggl_status adapters_read(tool_adapters *x, llm_open_params *p, ggl_error *err);
/* Puts the flag that named adapter k before the message. Returns st. */
ggl_status adapters_within(const tool_adapters *x, size_t k, ggl_status st, ggl_error *err);
/* Prints a line for each opened adapter, which begins with `head`. */
void adapters_print(const llm_adapter_use *use, size_t n, const char *head, FILE *out);
/* Forgets what was read; the options stay as given. */
void adapters_forget(tool_adapters *x);
/* Frees everything. */
void adapters_fini(tool_adapters *x);

#endif
