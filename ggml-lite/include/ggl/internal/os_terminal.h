/* The terminal of a program.
 * Any thread may ask at any time; one thread edits. */
#ifndef GGL_INTERNAL_OS_TERMINAL_H
#define GGL_INTERNAL_OS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ggl_os_is_terminal(int fd);
/* Returns the columns of the terminal that the descriptor leads to; 0: there is none, or it does not say. Async-signal-safe. */
int ggl_os_terminal_columns(int fd);
/* Returns whether the terminal was opened for this program alone, and closes with it: the program was started by a double click (Windows). */
bool ggl_os_terminal_is_own(void);
/* Returns whether terminals here know sequences that move the cursor, by the variable TERM. */
bool ggl_os_terminal_draws(void);

/* --- editing ---------------------------------------------------------------------------------- */

/* SHELL: as it was found. QUIET: keys are neither shown nor gathered to lines, Ctrl-C is a signal. EDIT: Ctrl-C is a key, too, and pasted text comes between marks. */
typedef enum os_terminal_mode {
    OS_TERMINAL_SHELL,
    OS_TERMINAL_QUIET,
    OS_TERMINAL_EDIT
} os_terminal_mode;

/* Takes the terminal of standard input and output for this process, in the mode SHELL, which it gets again when the program crashes, is stopped for a time or
 * ends. False: there is none. */
bool ggl_os_terminal_begin(void);
/* Async-signal-safe, as the next two are. */
void ggl_os_terminal_set(os_terminal_mode mode);
os_terminal_mode ggl_os_terminal_get(void);
void ggl_os_terminal_wake(void); /* ends a wait */
/* Waits for keys, at most ms milliseconds (-1: for ever); returns whether there are some. A signal and a new size end it, too. */
bool ggl_os_terminal_wait(int ms);
/* Reads keys, as UTF-8 and escape sequences; 0: the terminal is gone; -1: errno. */
int64_t ggl_os_terminal_read(void *to, size_t n);
/* Each returns true once after its event: the terminal has another size; the program was stopped for a time and goes on, so that the screen must be drawn again. */
bool ggl_os_terminal_is_resized(void);
bool ggl_os_terminal_goes_on(void);
/* Stops the program for a time, as Ctrl-Z does; where there is no such thing, does nothing. */
void ggl_os_terminal_suspend(void);
/* Columns and lines; 0: not known. */
void ggl_os_terminal_size(int *columns, int *lines);

#endif
