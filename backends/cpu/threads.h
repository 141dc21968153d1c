/* A pool of threads that divide the units of a task among themselves, one task after another. The
 * caller is thread 0. Results do not depend on which thread runs a unit, because each unit writes
 * to memory of its own. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include <stdbool.h>

#include "ggl/status.h"

typedef struct cpu_pool cpu_pool;

/* Runs units first .. last-1 on thread `thread` (0 .. n_threads-1). */
typedef void cpu_pool_fn(void *ctx, int64_t first, int64_t last, int thread);

/* Starts a pool of n_threads, the caller included. GGL_NOMEM: a thread could not be started. */
GGL_NODISCARD ggl_status ggl_cpu_pool_open(cpu_pool **out, int n_threads, ggl_error *err);
void ggl_cpu_pool_close(cpu_pool *p); /* NULL is fine */
/* Runs fn over units 0 .. n-1 on the first n_threads threads, each of which takes `chunk` units at
 * a time. Returns when all units are done. */
void ggl_cpu_pool_run(cpu_pool *p, int n_threads, cpu_pool_fn *fn, void *ctx, int64_t n,
                      int64_t chunk);

/* Wakes the threads, for tasks that follow soon. */
void ggl_cpu_pool_wake(cpu_pool *p);
/* Returns true if threads sleep, so that the next task has to wake them. */
bool ggl_cpu_pool_sleeps(const cpu_pool *p);

/* Sets this thread's floating-point mode to that of the numeric contract (round to nearest even,
 * keep subnormals); returns the previous mode, for ggl_cpu_float_mode_restore. */
uint64_t ggl_cpu_float_mode_set(void);
void ggl_cpu_float_mode_restore(uint64_t mode);

#endif
