/* Clocks and calendars of the operating system (base/os_clock_posix.c, base/os_clock_windows.c).
 *
 * Threads: any number may call these functions at the same time. */
#ifndef GGL_OS_CLOCK_H
#define GGL_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns nanoseconds since some fixed point in the past. They never go back, and nobody sets them. */
int64_t ggl_os_clock(void);
/* The same in seconds. */
double ggl_os_seconds(void);
/* Returns nanoseconds since 1970, by the clock of the day. */
int64_t ggl_os_time(void);
/* Returns after that time, or earlier if a signal was handled. */
void ggl_os_sleep(int64_t ns);

/* Set *parts to the parts of a time in seconds since 1970: of UTC, and of the place where the program runs. False: its year has no
 * room in an int; *parts is unchanged then. */
bool ggl_os_utc_parts(int64_t seconds, struct tm *parts);
bool ggl_os_local_parts(int64_t seconds, struct tm *parts);
/* Returns the time in seconds since 1970 that has these parts of UTC. Parts past their ends, as in the 32nd of January, are carried. */
int64_t ggl_os_utc_seconds(const struct tm *parts);

#ifdef __cplusplus
}
#endif
#endif
