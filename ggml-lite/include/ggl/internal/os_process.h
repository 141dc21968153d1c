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
/* Returns the variables of the environment as "NAME=VALUE", ended by NULL. */
char **ggl_os_environment(void);
/* Ends the process at once, without the functions of atexit(); does not return. Async-signal-safe. */
void ggl_os_exit_now(int code);
/* Returns the most bytes of memory that the process has had at once; 0: the system does not say. */
int64_t ggl_os_peak_memory(void);
/* Fills `to` with random bytes that nobody can guess. */
bool ggl_os_random(void *to, size_t n);

/* --- the machine ------------------------------------------------------------------------------ */

size_t ggl_os_page_size(void);
int ggl_os_n_processors(void); /* that are running; at least 1 */
uint64_t ggl_os_memory(void);  /* bytes; 0: the system does not say */
/* Returns the bytes of memory that can still be taken, if the system has a call for it; 0: it has none. */
uint64_t ggl_os_memory_left(void);
/* Returns the most bytes of addresses that the process may have; UINT64_MAX: there is no limit. */
uint64_t ggl_os_limit_addresses(void);

#endif
