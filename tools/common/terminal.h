/* The terminal of a program that converses: reads edited lines, keeps what is typed while the program
 * writes for the next line, and restores the terminal's settings however the program ends or stops.
 *
 *     if (terminal_begin()) {
 *         while (terminal_read(editor, "> ") == LINE_DONE) ..
 *         terminal_end();
 *     }
 *
 * There is one terminal for a process: standard input and output. */
#ifndef TOOLS_TERMINAL_H
#define TOOLS_TERMINAL_H

#include <stdbool.h>

#include "line_edit.h"

/* True if standard input and output are terminals. */
bool terminal_is_there(void);
/* True if standard output is a terminal that can dim text: TERM is not "dumb". */
bool terminal_has_looks(void);

/* Stops the terminal from showing what is typed; Ctrl-C and Ctrl-Z still send their signals. From now
 * on every end of the process restores the settings: exit, signals, crashes; and so does a stop
 * (Ctrl-Z), until it goes on. Returns false, and changes nothing, if lines cannot be edited: not a
 * terminal, or TERM is "dumb". */
bool terminal_begin(void);
void terminal_end(void);

/* Reads a text. It is in the editor afterwards. While nothing is typed, work(ctx) is called again and again until it returns
 * false; it should return within some 20 ms. NULL: there is nothing to do. Results: LINE_DONE, LINE_END, LINE_INTERRUPT,
 * LINE_STOPPED (process_stopped is set, but not by SIGINT), LINE_FAILED (the terminal is gone, or errno says why). */
line_result terminal_read(line_editor *e, const char *prompt, bool (*work)(void *ctx), void *ctx);

#endif
