/* How many CPUs there are for this process. */
#ifndef CPU_CORES_H
#define CPU_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Physical cores that this process may use, by affinity and by its control group's quota; at
 * least 1. */
int ggl_cpu_default_threads(void);
/* CPUs that this process may use, those that share a core counted each; at least 1. */
int ggl_cpu_allowed(void);

#ifdef __linux__
typedef struct cpu_mask {
    cpu_set_t *set; /* CPU_FREE */
    int n;          /* it has room for CPUs 0 .. n-1 */
} cpu_mask;

/* sched_getaffinity, or a test's. */
typedef int cpu_mask_reader(pid_t pid, size_t size, cpu_set_t *set);

/* Reads the mask into as large a set as the system asks for. False: it cannot be read. */
bool ggl_cpu_mask_get(cpu_mask *m, cpu_mask_reader *read);
/* CPUs of the mask, counting those that share a core once. */
int ggl_cpu_mask_cores(const cpu_mask *m);
#endif

#endif
