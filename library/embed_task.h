/* The tasks of a context's adapters. */
#ifndef LIBRARY_EMBED_TASK_H
#define LIBRARY_EMBED_TASK_H

#include "llm/internal/adapter.h"
#include "llm/llm.h"

/* Gets a text of the adapter's file; "": it has none. */
ggl_status llm_adapter_text(const llm_adapter *a, const char *key, ggl_str *out, ggl_error *err);
/* llm_find_task; GGL_NOT_FOUND: there is no task of that name, and it is none of these two. */
ggl_status llm_task_choose(const llm_context *c, const char *name, int *task, ggl_error *err);
/* Gets what comes before texts of that task; s NULL: there is no such task. */
ggl_status llm_task_prompt(const llm_context *c, const char *name, ggl_str *out, ggl_error *err);

#endif
