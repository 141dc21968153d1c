#include "threads.h"

#include <sched.h>

#include "ggl/internal/os_thread.h"

enum { MOST_THREADS = 16 };

/* Returns the processors on which this thread may run, at most so many. */
static int n_threads(void) {
    cpu_set_t set;
    /* it fails on machines with more processors than a set has */
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : MOST_THREADS;
    return n > MOST_THREADS ? MOST_THREADS : n;
}

void ggl_vk_in_threads(void *(*f)(void *), void *ctx, int64_t n) {
    os_thread thread[MOST_THREADS];
    int started = 0;
    const int64_t most = n < n_threads() ? n : n_threads();
    while (started + 1 < most && ggl_os_thread_start(&thread[started], f, ctx, 0))
        started++;
    f(ctx);
    for (int i = 0; i < started; i++)
        ggl_os_thread_join(thread[i]);
}
