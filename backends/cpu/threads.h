/* A pool of threads that share out the units of one task after the other. The caller is thread 0.
 * Results never depend on who did what: units write to places of their own. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include <stdbool.h>

#include "ggl/status.h"

typedef struct cpu_pool cpu_pool;

/* Units first .. last-1, in thread `thread` (0 .. n-1). */
typedef void cpu_pool_fn(void *ctx, int64_t first, int64_t last, int thread);

/* n_threads: 1 or more, the caller included. */
GGL_NODISCARD ggl_status ggl_cpu_pool_open(cpu_pool **out, int n_threads, ggl_error *err);
void ggl_cpu_pool_close(cpu_pool *p); /* NULL is fine */
/* Runs fn over units 0 .. n-1, `chunk` at a time, on the first n_threads threads, and returns when
 * all is done. */
void ggl_cpu_pool_run(cpu_pool *p, int n_threads, cpu_pool_fn *fn, void *ctx, int64_t n,
                      int64_t chunk);

/* Wakes the threads for tasks that follow soon. */
void ggl_cpu_pool_wake(cpu_pool *p);
/* Whether some threads sleep, so that the next task has to wake them. */
bool ggl_cpu_pool_sleeps(const cpu_pool *p);

/* The floating-point mode of the numeric contract (nearest even, subnormals kept) for this thread;
 * returns what was set, for ggl_cpu_float_mode_restore. */
uint64_t ggl_cpu_float_mode_set(void);
void ggl_cpu_float_mode_restore(uint64_t mode);

#endif
