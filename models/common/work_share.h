/* Divides work into pieces that threads take one after the other. */
#ifndef LLM_WORK_SHARE_H
#define LLM_WORK_SHARE_H

#include <stddef.h>

enum { WORK_MAX_THREADS = 512 };

/* Calls piece(ctx, i, thread) for each i in [0, n), from up to n_threads threads (thread 0 is
 * the caller's), and returns when all are done. If threads cannot be started, the others do the
 * work. `thread` selects scratch memory; results must not depend on it. */
void llm_work_share(int n_threads, size_t n, void (*piece)(void *ctx, size_t i, int thread),
                    void *ctx);

#endif
