/* What a tool does about its process: the first line of main, signals, where it runs, how urgently,
 * and what time it is there. Threads started later inherit CPUs and priority. */
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The first line of every main. Opens /dev/null on standard descriptors that are closed, so that no
 * file lands there and gets what is printed: reading finds the end, messages are dropped, and
 * output fails, as a result that nobody gets is an error. A closed pipe or a file that grows too
 * large is an error of a write instead of a signal. SIGINT, SIGTERM and SIGHUP remove files that
 * are not complete, and end the process. */
void process_begin(void);

/* From now on the first SIGINT, SIGTERM or SIGHUP only sets process_stopped; a second one ends the
 * process at once. */
void process_wait_for_stop(void);
extern volatile sig_atomic_t process_stopped; /* the number of that signal; 0: none */
bool process_is_stopped(void *unused);        /* the same, for callbacks */
int process_stop_code(void); /* the exit code that says so: 130 after SIGINT, 143 after SIGTERM */

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
