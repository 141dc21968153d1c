/* Properties of the machine and this process. */
#ifndef TOOLS_BENCH_MACHINE_H
#define TOOLS_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

const char *bench_cpu_name(char *buf, size_t size); /* "unknown" if not available; returns buf */
size_t bench_last_cache(void);      /* bytes of a core's last level of caches; 0: unknown */
int64_t bench_peak_memory(void);    /* peak resident bytes so far; 0: unknown */
void bench_peak_memory_reset(void); /* restarts the peak, if the system supports it */
const char *bench_time_text(char *buf, size_t size); /* "2026-01-31T12:00:00Z"; returns buf */

/* True if limits are measured in a fraction of the time: the environment variable GGL_BRIEF_LIMITS
 * is set, as it is in tests, which look at all but the numbers. */
bool bench_brief(void);

#endif
