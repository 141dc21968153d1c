/* How the units of tasks that run side by side are divided among threads. */
#ifndef CPU_SHARE_H
#define CPU_SHARE_H

#include <stdint.h>

/* A task: n_units units of `cost` each, of which a thread takes `chunk` at a time; the last chunk may have fewer. */
typedef struct cpu_share {
    double cost;
    int64_t n_units, chunk, n_chunks;
} cpu_share;

/* Sets chunk and n_chunks of n tasks so that a chunk of any of them has about `work`, but at least one unit. Tasks of one list may be as
 * unlike as a product of a few large units and a sum of many small ones. Returns how many chunks there are in all. */
int64_t ggl_cpu_divide(cpu_share *task, int n, double work);

/* Chunks first .. last - 1 of all tasks: sets *begin and *end to the units of this task that are among them, and leaves the number of its
 * chunks out of *first and *last, for the next task. */
void ggl_cpu_take(const cpu_share *task, int64_t *first, int64_t *last, int64_t *begin,
                  int64_t *end);

#endif
