/* The number of CPUs that this process may use. */
#ifndef CPU_CORES_H
#define CPU_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the number of physical cores that affinity and the control group's quota allow; at
 * least 1. */
int ggl_cpu_default_threads(void);
/* Returns the number of CPUs that affinity allows; CPUs that share a core all count. At least 1. */
int ggl_cpu_allowed(void);

#ifdef __linux__
typedef struct cpu_mask {
    cpu_set_t *set; /* freed with CPU_FREE */
    int n;          /* it has room for CPUs 0 .. n-1 */
} cpu_mask;

/* sched_getaffinity, or a test's replacement. */
typedef int cpu_mask_reader(pid_t pid, size_t size, cpu_set_t *set);

/* Reads the affinity mask into a set as large as the system needs. False: it cannot be read. */
bool ggl_cpu_mask_get(cpu_mask *m, cpu_mask_reader *read);
/* Returns the number of cores in the mask: CPUs that share a core count once. */
int ggl_cpu_mask_cores(const cpu_mask *m);
#endif

#endif
