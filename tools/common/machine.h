/* What is known of the machine and of this process. */
#ifndef TOOLS_BENCH_MACHINE_H
#define TOOLS_BENCH_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t bench_now_ns(void);                         /* of a clock that only goes on */
const char *bench_cpu_name(char *buf, size_t size); /* "unknown" if it does not say; returns buf */
int64_t bench_peak_memory(void);    /* bytes resident at most so far; 0: not known */
void bench_peak_memory_reset(void); /* from now on; if the system can */
const char *bench_time_text(char *buf, size_t size); /* "2026-01-31T12:00:00Z"; returns buf */

/* Whether limits are measured in a fraction of the time: the environment variable GGL_BRIEF_LIMITS
 * is set, as it is in tests, which look at all but the numbers. */
bool bench_brief(void);

#endif
