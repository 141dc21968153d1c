/* What --lora and --lora-scaled name (open_options.h).
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

typedef struct tool_adapters {
    arg_list lora, scaled; /* as given */
    llm_lora *from;        /* [n_from] that they name; the first n_plain are of --lora */
    size_t n_from, n_plain;
} tool_adapters;

/* Reads what the options name into `from`. Nothing is opened. GGL_USAGE: they are wrong; GGL_FORMAT: a folder is named. */
ggl_status adapters_read(tool_adapters *x, ggl_error *err);
/* Puts the flag that named adapter k before the message. Returns st. */
ggl_status adapters_within(const tool_adapters *x, size_t k, ggl_status st, ggl_error *err);
/* Prints a line for each opened adapter, which begins with `head`. */
void adapters_print(const llm_adapter_use *use, size_t n, const char *head, FILE *out);
/* Forgets what was read; the options stay as given. */
void adapters_forget(tool_adapters *x);
/* Frees everything. */
void adapters_fini(tool_adapters *x);

#endif
