/* The files of a run, checked before anything is loaded: what will be written can be, and is
 * nothing that is read.
 *
 *     const tool_path paths[] = {{"-m", model}, {"--logits", logits, .written = true}};
 *     int code = tool_check_paths(TOOL, paths, 2);
 */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct tool_path {
    const char *flag; /* for messages: "--logits", "OUT" */
    const char *path; /* NULL: not given. Read: "-" is standard input, a folder all files in it but
                       *.gguf, PREFIX-00001-of-0000N.gguf all parts of that model */
    bool written;
    bool optional; /* and written: the run goes on without it where it cannot be written, so that
                      is not checked */
    bool needed;   /* and read: it must be there before anything else is loaded */
    /* and needed: without a slash it may be a name, too, which whoever opens it looks up */
    bool or_name;
} tool_path;

/* -1: go on. Else the exit code after a message: 1 for a file that cannot be written, or one of a
 * flag ("-f") that cannot be read; 2 for one
 * that is also read, is written twice, is where standard output or error go, or is "-". */
int tool_check_paths(const char *tool, const tool_path *paths, size_t n);

#endif
