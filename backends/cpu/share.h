/* How the units of tasks that run side by side are divided among threads: their chunks form one list, of which each thread takes
 * one chunk after another. The list has a part for each team of threads (threads.h), one after the other. A team's part has the
 * same share of each task, so that the threads of a node of memory always multiply about the same rows of a matrix. */
#ifndef CPU_SHARE_H
#define CPU_SHARE_H

#include <stdint.h>

#include "ggl/program.h"
#include "threads.h"

/* A task: n_units units of `cost` each, of which a thread takes `chunk` at a time; the last chunk may have fewer. */
typedef struct cpu_share {
    double cost;
    int64_t n_units, chunk, n_chunks;
} cpu_share;

/* In units of cpu_task.cost, of which a core does about 25 in a nanosecond: the least work to divide among threads that are
 * awake, and to wake threads for. */
extern const double ggl_cpu_worth_sharing, ggl_cpu_worth_waking;

/* Returns how much of `work` in all each of n_threads takes at a time: an eighth of its part, and of a long task less, down to a
 * thirty-second. INFINITY: it is not worth dividing. asleep: threads sleep. */
double ggl_cpu_work_at_once(double work, int n_threads, bool asleep);

/* Sets chunk and n_chunks of n tasks so that a chunk of any of them has about `work`, but at least one unit. Tasks of one list may be as
 * unlike as a product of a few large units and a sum of many small ones. Returns how many chunks there are in all. */
int64_t ggl_cpu_divide(cpu_share *task, int n, double work);

/* Tasks whose chunks form one list. spread: of the threads over teams. */
typedef struct cpu_list {
    cpu_share share[GGL_MAX_GROUP];
    int n;
    cpu_spread spread;
} cpu_list;

/* Sets end[k] to where the part of team k ends in the list. */
void ggl_cpu_list_parts(const cpu_list *l, int64_t *end);

/* Chunks first .. last - 1 of what is left of a list: sets *begin and *end to the units of task i for this team that are among them, and
 * leaves the number of these chunks out of *first and *last, for the next task. To be called for all tasks of team 0, then of
 * team 1, and so on. */
void ggl_cpu_list_take(const cpu_list *l, int i, int team, int64_t *first, int64_t *last,
                       int64_t *begin, int64_t *end);

#endif
