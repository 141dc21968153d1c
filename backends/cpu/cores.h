/* The CPUs that this process may use: how many, of which kinds, and on which nodes of memory. */
#ifndef CPU_CORES_H
#define CPU_CORES_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/internal/os_cpus.h"

typedef enum cpu_found { CPU_LIST_MISSING, CPU_LIST_WRONG, CPU_LIST_READ } cpu_found;

/* Calls add for each CPU below n of the list in the file root + path, such as "0-3,8\n"; an empty line is an empty list.
 * CPU_LIST_WRONG: the file is no such list; add may have been called for some. */
cpu_found ggl_cpu_read_list(const char *root, const char *path, int n,
                            void (*add)(void *ctx, int cpu), void *ctx);

/* Returns what the name of each file of the system begins with: "", or what the environment variable
 * GGL_CPU_ROOT says, for tests. */
const char *ggl_cpu_root(void);

/* Cores of which this process may use a CPU. CPUs that share a core count once. */
typedef struct cpu_cores {
    int all;
    int big;    /* at least half as fast as the fastest: for single tokens */
    int useful; /* at least a third as fast: for batches */
} cpu_cores;

/* Counts the cores of a set, as the files below `root` describe them; files that are missing or make no
 * sense are as if all CPUs were alike. */
cpu_cores ggl_cpu_cores_of(const os_cpus *m, const char *root);
/* Returns the cores that the control group's quota (version 2, else 1) allows, rounded up;
 * GGL_MAX_THREADS if there is no quota. */
int ggl_cpu_quota(const char *root);

/* Threads for single tokens and for batches: the big and the useful cores, but no more than the control group's
 * quota; 1 to GGL_MAX_THREADS. */
typedef struct cpu_threads {
    int token, batch;
} cpu_threads;

/* Returns those that are right if the user has given none. Reads some files of the system for each CPU. */
cpu_threads ggl_cpu_default_threads(void);
/* Returns the number of CPUs that affinity allows; CPUs that share a core all count. At least 1. */
int ggl_cpu_allowed(void);

#endif
