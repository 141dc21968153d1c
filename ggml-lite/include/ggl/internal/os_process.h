/* The process, and the machine that it runs on.
 * Any thread may call this at any time. */
#ifndef GGL_INTERNAL_OS_PROCESS_H
#define GGL_INTERNAL_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

long ggl_os_pid(void);
/* Sets `out` to the path of the program's file. */
bool ggl_os_program_path(char *out, size_t size);
/* Returns the program's name without its folder. Async-signal-safe. */
const char *ggl_os_program_name(void);
/* Returns the folder of the user; NULL: the system does not say. */
const char *ggl_os_home(void);
/* Sets the arguments of main() to UTF-8, if the system gives them in another way; they stay. */
void ggl_os_take_arguments(int *argc, char ***argv);
/* Returns the variables of the environment as "NAME=VALUE", ended by NULL. */
char **ggl_os_environment(void);
/* Ends the process at once, without the functions of atexit(); does not return. Async-signal-safe. */
void ggl_os_exit_now(int code);
/* Returns the most bytes of memory that the process has had at once; 0: the system does not say. */
int64_t ggl_os_peak_memory(void);
/* Returns the bytes of memory that the process has allocated and not freed; 0: the system does not say. */
uint64_t ggl_os_heap(void);
/* Fills `to` with random bytes that nobody can guess. */
bool ggl_os_random(void *to, size_t n);

/* --- the machine ------------------------------------------------------------------------------ */

size_t ggl_os_page_size(void);
int ggl_os_n_processors(void);  /* that are running; at least 1 */
size_t ggl_os_last_cache(void); /* bytes of the largest cache; 0: the system does not say */
uint64_t ggl_os_memory(void);   /* bytes; 0: the system does not say */
/* Returns the bytes of memory that can still be taken, if the system has a call for it; 0: it has none. */
uint64_t ggl_os_memory_left(void);
/* Returns the most bytes of addresses that the process may have; UINT64_MAX: there is no limit. */
uint64_t ggl_os_limit_addresses(void);
/* Lets the process have n files and sockets open at once, if the system does. Returns how many it may have; UINT64_MAX: there is no limit. */
uint64_t ggl_os_allow_files(uint64_t n);

/* --- how it ends ------------------------------------------------------------------------------ */

/* Opens standard streams that are closed, so that no file gets their numbers; where the system changes what streams read and write, it no longer does. */
void ggl_os_begin_streams(void);
/* Calls `stop` with the signal's number when somebody wants the program to end: Ctrl-C (SIGINT), SIGTERM, or its terminal is gone. It runs as the handler of a signal,
 * or in a thread of its own. A hang-up that was ignored before stays so. A write to a pipe without a reader fails, and does nothing more. */
void ggl_os_on_stop(void (*stop)(int number));
/* Holds back what ggl_os_on_stop waits for, from the calling thread and those that it starts; or no longer, whoever has held it back before. */
void ggl_os_hold_stops(bool holds);
/* Ends the program as the signal does by itself. Async-signal-safe. */
void ggl_os_end_by(int number);
/* Calls `lost` when a page of memory cannot be read from its file. If it returns, the program ends as it would have. */
void ggl_os_on_lost_page(void (*lost)(const void *address));
/* Waits for the end of the program. Async-signal-safe. */
void ggl_os_wait_for_end(void);
/* Holds signals back from the calling thread and those that it starts, but for those of its own faults; or no longer. */
typedef struct os_signals {
    uint64_t was[16];
} os_signals;
void ggl_os_signals_hold(os_signals *s);
void ggl_os_signals_release(const os_signals *s);

/* A bell, for which one thread waits. Ringing is async-signal-safe, and any thread may do it. */
typedef struct os_bell os_bell;
os_bell *ggl_os_bell_new(void);    /* NULL: errno */
void ggl_os_bell_free(os_bell *b); /* NULL is allowed */
void ggl_os_bell_ring(os_bell *b);
/* Waits until it has rung since the last wait, or for at most ms milliseconds (-1: any time). */
void ggl_os_bell_wait(os_bell *b, int ms);

/* Lets the process run on the CPUs whose bits are set in `set` (n numbers of 64 bits) only. False: errno; ENOSYS: the system has no call for it. */
bool ggl_os_set_cpus(const uint64_t *set, size_t n);
/* Sets the priority: -1 low, 0 normal, 1 medium, 2 high, 3 highest. False: errno. */
bool ggl_os_set_priority(int priority);

#endif
