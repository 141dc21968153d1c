/* The adapters of a context. */
#ifndef LIBRARY_ADAPTERS_H
#define LIBRARY_ADAPTERS_H

#include "context.h"

/* Opens the adapters that the parameters name, and checks that they fit the model. */
ggl_status llm_adapters_open(llm_context *c, const llm_open_params *p, ggl_error *err);
void llm_adapters_close(llm_context *c); /* after the session */

#endif
