/* Opens the model of a tool: a file, a folder, or one of those that are linked into the program (builtin.h). */
#ifndef TOOLS_OPEN_MODEL_H
#define TOOLS_OPEN_MODEL_H

#include "llm/internal/model.h"

/* Opens the model that -m names; NULL: builtin:stories. Prints a note if it was to be locked into memory, but could
 * not be. type: the value of --type (load.h). Returns -1, or an exit code after a message; *out is then NULL. */
int tool_open_model(llm_model **out, const char *tool, const char *name, const llm_model_params *p,
                    int type);

/* Prints a note if a context of n_ctx tokens is longer than what the model was trained on. */
void tool_note_context(const char *tool, const llm_model *m, int64_t n_ctx);

#endif
