/* Runs a text through a model, and collects. */
#ifndef TOOLS_IMATRIX_RUN_H
#define TOOLS_IMATRIX_RUN_H

#include "measure/imatrix.h"
#include "options.h"

/* Runs the text of the options and prints its perplexity. base: what it will be added to, which must be of the
 * same model; NULL: nothing. Now and then, and at the end, also after a signal,
 * calls save(ctx, m, n_chunks): m is what was collected so far, over n_chunks of this text; `last` is true once.
 * save returns -1, or an exit code, which ends the run. Returns -1, or an exit code. */
int run_text(options *o, const imatrix *base,
             int (*save)(void *ctx, const imatrix *m, int64_t n_chunks, bool last), void *ctx);

#endif
