#include "threads.h"

#include "ggl/internal/os_cpus.h"
#include "ggl/internal/os_thread.h"

enum { MOST_THREADS = 16 };

/* Returns the processors on which this thread may run, at most so many. */
static int n_threads(void) {
    os_cpus c;
    int n = MOST_THREADS;
    if (ggl_os_cpus_get(&c)) {
        n = ggl_os_cpus_count(&c);
        ggl_os_cpus_free(&c);
    }
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
