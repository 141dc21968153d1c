/* Where this process runs, how urgently, and what time it is there. Threads started later inherit
 * the first two. */
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include <stdint.h>

/* Only on the CPUs of a hexadecimal mask ("f0", "0xF0": CPUs 4 to 7), bit 0 being CPU 0; NULL: as
 * it is. -1: go on; else the tool's exit code after an error told on stderr: 2 for what is no mask,
 * 1 for CPUs that this process may not use. */
int process_set_cpus(const char *tool, const char *mask);

/* -1 low, 0 normal, 1 medium, 2 high, 3 before everything. What the system does not permit is told
 * on stderr, and the process goes on as it was. */
void process_set_priority(const char *tool, int64_t priority);

/* Of a clock that only goes on. */
double process_seconds(void);

#endif
