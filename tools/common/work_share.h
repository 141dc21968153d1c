/* Work cut into pieces that threads take one after the other. */
#ifndef TOOLS_WORK_SHARE_H
#define TOOLS_WORK_SHARE_H

#include <stddef.h>

/* Calls piece(ctx, i, thread) for each i in [0, n), from up to n_threads threads (0 <= thread <
 * n_threads; the caller's is 0), and returns when all are done. Threads that cannot be had are done
 * without. What a piece computes must not depend on `thread`, which is for scratch memory. */
void work_share(int n_threads, size_t n, void (*piece)(void *ctx, size_t i, int thread), void *ctx);
/* How many processors this process may use. */
int work_threads(void);

#endif
