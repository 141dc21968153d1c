/* The CPUs that threads may run on, and the nodes of memory that pages lie in.
 * Any thread may call this at any time. */
#ifndef GGL_INTERNAL_OS_CPUS_H
#define GGL_INTERNAL_OS_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A set of CPUs 0 .. n - 1. */
typedef struct os_cpus {
    uint64_t *set; /* bit c % 64 of set[c / 64]: CPU c */
    int n;         /* a multiple of 64 */
} os_cpus;

/* Makes an empty set for n CPUs, or a few more. False: out of memory. */
bool ggl_os_cpus_new(os_cpus *c, int n);
void ggl_os_cpus_free(os_cpus *c);
void ggl_os_cpus_add(os_cpus *c, int cpu); /* 0 <= cpu < n */
bool ggl_os_cpus_has(const os_cpus *c, int cpu);
int ggl_os_cpus_count(const os_cpus *c);

/* Sets *c to the CPUs that the calling thread may run on. False: the system does not say; *c is unchanged. */
bool ggl_os_cpus_get(os_cpus *c);
/* Lets the calling thread run on these CPUs only. Nothing happens if the system refuses. */
void ggl_os_cpus_bind(const os_cpus *c);
/* Spreads the pages of memory that has not been touched yet over the nodes with these numbers, each below 64. Nothing happens if the system
 * refuses. */
void ggl_os_spread_pages(void *p, size_t size, const int *node, int n);
/* The system describes its processors in files below /sys and /proc, as Linux does. */
extern const bool ggl_os_has_cpu_files;

#endif
