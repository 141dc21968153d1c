/* The lines that were entered before, kept in a file between runs.
 *
 *     char *path = line_history_path("llm-cli");       // NULL: there is no folder for it
 *     line_history *h = line_history_new(path, 1000);
 *     line_history_add(h, "Hello");
 *     line_history_get(h, line_history_n(h) - 1);      // "Hello"
 *
 * A line of the file is an entry, in which \n and \\ stand for a newline and a backslash. Several
 * processes may add entries at once. A file that cannot be read or written is reported once, and
 * the history then lives in memory only. */
#ifndef TOOLS_LINE_HISTORY_H
#define TOOLS_LINE_HISTORY_H

#include <stddef.h>

typedef struct line_history line_history;

/* Reads the newest `most` entries of a file, if it exists. Damaged entries are passed over. If the
 * file has more than twice as many, it is replaced by one with the newest. path NULL: no file. Returns
 * NULL if out of memory. */
line_history *line_history_new(const char *path, size_t most);
void line_history_free(line_history *h);

size_t line_history_n(const line_history *h);
/* Returns the i-th entry, 0 is the oldest. Valid until the next line_history_add. */
const char *line_history_get(const line_history *h, size_t i);

/* Adds an entry, unless it is empty or equals the newest one, and appends it to the file, which gets
 * rights for its owner only. On a full disk, the file stays as it was. */
void line_history_add(line_history *h, const char *text);
/* Returns the first problem with the file, once: "/home/a/x.history: Permission denied"; else NULL. */
const char *line_history_problem(line_history *h);

/* Returns $XDG_DATA_HOME/ggml-lite/NAME.history, or ~/.local/share/ggml-lite/NAME.history; NULL if
 * neither variable is an absolute path. The caller frees it. */
char *line_history_path(const char *name);

#endif
