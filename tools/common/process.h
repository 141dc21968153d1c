/* The process of a tool: what main does first, signals, CPUs, priority, clock. Threads started
 * later inherit CPUs and priority. */
#ifndef TOOLS_PROCESS_H
#define TOOLS_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Call this first in main, which gets its arguments in UTF-8. Opens /dev/null on standard descriptors that are closed, so that no
 * file gets that number and then what is printed: reading sees the end of file, messages are
 * dropped, and writing results fails. A closed pipe or a file that grows too large becomes a
 * write error instead of a signal. SIGINT, SIGTERM and SIGHUP remove incomplete files and end
 * the process. A mapped file that is cut off ends the process with a message and the exit code 1. */
void process_begin(int *argc, char ***argv);

/* Returns the i-th word of the command line, from 0 on; NULL after the last one. */
const char *process_typed(int i);

/* Returns true if the program was started by a double click: without arguments, in a window of its own that closes with it (Windows). */
bool process_was_clicked(void);

/* After this call the first SIGINT, SIGTERM or SIGHUP only sets process_stopped; a second one
 * ends the process at once. */
void process_wait_for_stop(void);
extern volatile sig_atomic_t process_stopped; /* the number of that signal; 0: none */
bool process_is_stopped(void *unused);        /* returns whether it is set; for callbacks */
/* After a SIGINT: forgets it. Returns false if another signal has set process_stopped. */
bool process_go_on(void);
/* From now on, n further SIGINTs are ignored before one ends the process: a person who presses Ctrl-C
 * twice to stop an answer does not want to lose the conversation. */
void process_spare(int n);
int process_spared(void); /* how many are left of them */
/* Functions that the handler of these signals calls: `stops` when it sets process_stopped, `ends`
 * before the process ends. They may call async-signal-safe functions only. NULL: none. */
void process_set_hooks(void (*stops)(void), void (*ends)(void));
/* Sets whether a signal that ends the process erases the terminal's last line first: one of progress. */
void process_set_erases(bool does);
/* Returns the exit code for that signal: 130 after SIGINT, 143 after SIGTERM. */
int process_stop_code(void);

/* Restricts the process to the CPUs of a hexadecimal mask ("f0", "0xF0": CPUs 4 to 7; bit 0 is
 * CPU 0); NULL: no change. Returns -1, or an exit code after an error message on stderr: 2 for
 * an invalid mask, 1 for CPUs that this process may not use. */
int process_set_cpus(const char *tool, const char *mask);

/* Sets the priority: -1 low, 0 normal, 1 medium, 2 high, 3 highest. If the system does not
 * permit it, a message on stderr says so and the priority stays. */
void process_set_priority(const char *tool, int64_t priority);

#endif
