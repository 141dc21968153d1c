/* Runs a text through a model, and collects. */
#ifndef TOOLS_IMATRIX_RUN_H
#define TOOLS_IMATRIX_RUN_H

#include "llm/llm.h"
#include "options.h"

/* Runs the text of the options, adds it to the matrix, and prints its perplexity. On the way it saves copies, as the options say. At
 * the end, also after a signal, calls save(ctx), which returns -1 or an exit code. Returns -1, or an exit code. */
int run_text(options *o, llm_imatrix *m, int (*save)(void *ctx), void *ctx);

#endif
