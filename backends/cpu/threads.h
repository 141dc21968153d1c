/* A pool of threads that divide the units of a task among themselves, one task after another. The
 * caller is thread 0. Results do not depend on which thread runs a unit, because each unit writes
 * to memory of its own. */
#ifndef CPU_THREADS_H
#define CPU_THREADS_H

#include <stdbool.h>

#include "ggl/status.h"
#include "nodes.h"

typedef struct cpu_pool cpu_pool;

/* Runs units first .. last-1 on thread `thread` (0 .. n_threads-1). */
typedef void cpu_pool_fn(void *ctx, int64_t first, int64_t last, int thread);

/* Starts a pool of n_threads, the caller included. With several nodes of memory the threads are spread over them in
 * proportion to their cores, and each but the caller, whose node is one of them, runs on its node's CPUs only.
 * nodes: borrowed; NULL: one. GGL_NOMEM: a thread could not be started. */
GGL_NODISCARD ggl_status ggl_cpu_pool_open(cpu_pool **out, int n_threads, const cpu_nodes *nodes,
                                           ggl_error *err);
void ggl_cpu_pool_close(cpu_pool *p); /* NULL is fine */

/* The threads of a node form teams of up to 16, each of which has its own part of a task, so that not all threads wait
 * for one counter. */
enum { CPU_MAX_TEAMS = 128 };

/* How the threads that take part in a task are spread over teams: before[k] of them are in teams before team k. */
typedef struct cpu_spread {
    int n_teams; /* at least 1 */
    int before[CPU_MAX_TEAMS + 1];
} cpu_spread;

/* Sets *out to the spread of the first n_threads threads. */
void ggl_cpu_pool_spread(const cpu_pool *p, int n_threads, cpu_spread *out);

/* Runs fn over units 0 .. n-1 on the first n_threads threads, each of which takes `chunk` units at
 * a time. Returns when all units are done. Units before end[0] are for the first team, those from there to end[1] for the
 * second, and so on; a thread takes from its own team first, then from the others of its node, and then from all.
 * end NULL: in proportion to the threads of each team. */
void ggl_cpu_pool_run(cpu_pool *p, int n_threads, cpu_pool_fn *fn, void *ctx, int64_t n,
                      int64_t chunk, const int64_t *end);
/* Wakes the threads, for tasks that follow soon. */
void ggl_cpu_pool_wake(cpu_pool *p);
/* Returns how many threads sleep because the last tasks were for fewer. They wake for one that admits
 * them. */
int ggl_cpu_pool_excluded(const cpu_pool *p);
/* Returns true if threads sleep that the last task admits, so that the next one has to wake them. */
bool ggl_cpu_pool_sleeps(const cpu_pool *p);

/* Sets this thread's floating-point mode to that of the numeric contract (round to nearest even,
 * keep subnormals); returns the previous mode, for ggl_cpu_float_mode_restore. */
uint64_t ggl_cpu_float_mode_set(void);
void ggl_cpu_float_mode_restore(uint64_t mode);

#endif
