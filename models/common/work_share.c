#include "work_share.h"

#include <stdatomic.h>

#include "ggl/internal/os_thread.h"

typedef struct shared {
    atomic_size_t next;
    size_t n;
    void (*piece)(void *ctx, size_t i, int thread);
    void *ctx;
} shared;

typedef struct worker {
    os_thread thread;
    shared *work;
    int index;
} worker;

static void take(shared *w, int thread) {
    for (size_t i; (i = atomic_fetch_add(&w->next, 1)) < w->n;)
        w->piece(w->ctx, i, thread);
}

static void *run(void *arg) {
    worker *w = arg;
    take(w->work, w->index);
    return NULL;
}

void llm_work_share(int n_threads, size_t n, void (*piece)(void *, size_t, int), void *ctx) {
    shared work = {.n = n, .piece = piece, .ctx = ctx};
    worker workers[WORK_MAX_THREADS];
    int started = 0, wanted = n_threads > WORK_MAX_THREADS ? WORK_MAX_THREADS : n_threads;
    atomic_init(&work.next, 0);
    if ((size_t)wanted > n)
        wanted = (int)n;
    for (int k = 1; k < wanted; k++) {
        worker *w = &workers[started];
        *w = (worker){.work = &work, .index = k};
        if (!ggl_os_thread_start(&w->thread, run, w, 0))
            break;
        started++;
    }
    take(&work, 0);
    for (int k = 0; k < started; k++)
        ggl_os_thread_join(workers[k].thread);
}
