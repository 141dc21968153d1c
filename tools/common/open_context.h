/* Opens a model step by step (library/opening.h) for a tool, and prints what users should know. */
#ifndef TOOLS_OPEN_CONTEXT_H
#define TOOLS_OPEN_CONTEXT_H

#include "adapters.h"
#include "opening.h"

/* Takes the steps of llm_context_open. adapters: what o->adapter was read from; NULL: none. Returns -1, or an exit code after a message. */
int tool_open_context(llm_context *c, const char *tool, const llm_opening *o,
                      const tool_adapters *adapters, llm_opened until);

#endif
