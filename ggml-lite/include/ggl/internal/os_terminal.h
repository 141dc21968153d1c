/* The terminal of a program.
 * Any thread may call this at any time. */
#ifndef GGL_INTERNAL_OS_TERMINAL_H
#define GGL_INTERNAL_OS_TERMINAL_H

#include <stdbool.h>

bool ggl_os_is_terminal(int fd);
/* Returns the columns of the terminal that the descriptor leads to; 0: there is none, or it does not say. Async-signal-safe. */
int ggl_os_terminal_columns(int fd);

#endif
