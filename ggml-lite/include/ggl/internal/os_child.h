/* A program that runs beside this one, and is asked and read by pipes. A child belongs to one thread. */
#ifndef GGL_INTERNAL_OS_CHILD_H
#define GGL_INTERNAL_OS_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct os_child {
    int in, out, error; /* this program's ends of the child's standard streams; -1: closed */
    intptr_t process;
} os_child;

/* Starts the program argv[0], which is looked for where the system looks for programs; argv ends with NULL. Returns 0, or an errno: ENOENT if there is none. */
int ggl_os_child_start(os_child *c, const char *const argv[]);
/* Writes to the child, and closes its input. A child that has ended already is no error: it shows when it is read. */
void ggl_os_child_tell(os_child *c, const void *data, size_t n);
/* Waits for something to read from one of the pipes, at most ms milliseconds. Returns 1: there is something, or its end; 0: the time is over; -1: errno. */
int ggl_os_child_wait(int pipe, int ms);
/* Asks the child to end. */
void ggl_os_child_stop(os_child *c);
/* Closes what is open, waits for the child to end, and returns its exit code; -1: it was ended by force. A POSIX program that ignores SIGCHLD gets 0. */
int ggl_os_child_end(os_child *c);

/* Shows the address ("http://..") in the user's browser. False: there is no program that does. Does not wait for the browser. */
bool ggl_os_open_page(const char *address);

#endif
