/* The messages of tools: errors, warnings, notes, wrapped text, and the check that no output was lost. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "ggl/status.h"

/* Returns the columns that printed texts may have: those of the terminal on stdout, else of the
 * variable COLUMNS, else 80; from 40 to 100, because longer lines are harder to read. */
int tool_width(void);

/* Prints a text whose first line starts at column `at`, wrapped at tool_width(); further lines
 * start at `column`. Line ends in the text count as spaces. Ends with a newline. */
void tool_print_wrapped(const char *s, int at, int column);
/* The same for a message: on a terminal; elsewhere it is one line, which other programs can search. */
void tool_print_line(const char *s, int at, int column);
/* Prints "label        text" like that, with the text from column 13 on. */
GGL_PRINTF(2, 3)
void tool_print_item(const char *label, const char *fmt, ...);

/* Prints "tool: message" on a line of its own on stderr, on a terminal broken at spaces, but not in quotes; returns `code`. */
GGL_PRINTF(3, 4)
int tool_error(const char *tool, int code, const char *fmt, ...);

/* The same for arguments of %s that are names, such as paths as a user typed them: their line feeds and
 * tabs, too, are escaped. tool_error keeps these, because messages of the library have several lines. */
GGL_PRINTF(3, 4)
int tool_error_about(const char *tool, int code, const char *fmt, ...);

/* From now on the messages of tool_error and tool_error_about on this thread are also copied to buf, the last one of them, with FILE:LINE if the tool's name has it; NULL: no more. */
void tool_copy_errors(char *buf, size_t size);

/* Sets the tool of notes that name none. */
void tool_set_name(const char *tool);

/* True after -q: notes, timings and progress are not printed. */
bool tool_is_quiet(void);
void tool_set_quiet(bool quiet);

/* Prints "tool: note: message" like tool_error, with the arguments of %s escaped as by ggl_show;
 * tool NULL: the one whose arguments were read. Nothing if tool_is_quiet. */
GGL_PRINTF(2, 3)
void tool_note(const char *tool, const char *fmt, ...);

/* Prints "tool: warning: message" in the same way, also after -q. For requests that cannot be
 * followed, and for results that may be wrong. */
GGL_PRINTF(2, 3)
void tool_warning(const char *tool, const char *fmt, ...);

/* Prints "tool: message" in the same way; nothing if tool_is_quiet. */
GGL_PRINTF(2, 3)
void tool_say(const char *tool, const char *fmt, ...);

/* Returns the columns of the terminal to which f goes; 0: it goes elsewhere. */
int tool_columns(FILE *f);

/* True if progress is shown: stderr is a terminal, and there was no -q. */
bool tool_shows_progress(void);

/* Prints lines of notes, each of which ends with a newline and may begin with "note: ", as tool_note does. */
void tool_print_notes(const char *lines);

/* What the terminal's last line contains; tool_error starts a new line accordingly (progress.c). */
typedef enum tool_line {
    TOOL_LINE_EMPTY,
    TOOL_LINE_TEXT,    /* output, if stderr goes to the same place; kept */
    TOOL_LINE_PROGRESS /* on stderr; erased */
} tool_line;
void tool_set_line(tool_line what);
void tool_begin_line(void); /* ends or erases that line, as tool_error does */

/* Records the errno of a failed write to stdout, for tool_finish's message. */
void tool_output_lost(int error);

/* Flushes stdout at the end of main. Returns `code`, or 1 with a message if output was lost
 * (e.g. a full disk). A closed pipe gives no message, because the reader closed it on purpose,
 * but still 1. After a signal that ends the program (process_stopped), 1 becomes its code, 130 of Ctrl-C. */
int tool_finish(const char *tool, int code);

#endif
