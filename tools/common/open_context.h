/* Opens a model step by step (library/opening.h) for a tool, and prints what users should know. */
#ifndef TOOLS_OPEN_CONTEXT_H
#define TOOLS_OPEN_CONTEXT_H

#include "adapters.h"
#include "opening.h"

/* Takes the steps of llm_context_open. adapters: what the options say of them, which is read into *o before their step; NULL: none.
 * Returns -1, or an exit code after a message. */
int tool_open_context(llm_context *c, const char *tool, llm_opening *o, tool_adapters *adapters,
                      llm_opened until);
/* Reports why the step after c->opened has failed, with st and err. Returns an exit code. */
int tool_tell_opening(const llm_context *c, const char *tool, const llm_opening *o,
                      const tool_adapters *adapters, ggl_status st, ggl_error *err);
/* Takes the first step, for a model that runs: -m names it, as o->path; NULL: builtin:stories. Makes *c. */
int tool_open_named(llm_context **c, const char *tool, llm_opening *o);
/* Takes the steps to LLM_OPENED_WEIGHTS, with progress and the session's notes. plan: not NULL, prints it instead of the last step, and
 * returns 0. */
int tool_open_weights(llm_context *c, const char *tool, llm_opening *o, tool_adapters *adapters,
                      const char *plan);
/* --plan: prints what would run where, and the memory that it takes, of each copy of the model. plan: "", or "nodes". Returns 0. */
int tool_print_plan(const llm_context *c, const char *plan);
/* Returns -1, or an exit code after a message: there is no such plan. plan may be NULL. */
int tool_check_plan(const char *tool, const char *plan);
/* Begins the progress of a prompt, which says so while it waits for weights that are read from the disk. */
void tool_progress_prompt(llm_context *c);
/* Closes the context. code: the tool's exit code, which is returned; 1 after a message that the trace could not be written. */
int tool_close_context(llm_context *c, const char *tool, int code);

/* Prints a note if a context of n_ctx tokens is longer than what the model was trained on. */
void tool_note_context(const char *tool, const llm_model *m, int64_t n_ctx);

#endif
