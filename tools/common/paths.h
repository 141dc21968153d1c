/* Checks a run's files before anything is loaded: outputs can be written and are not inputs.
 *
 *     const tool_path paths[] = {{"-m", model}, {"--logits", logits, .written = true}};
 *     int code = tool_check_paths(TOOL, paths, 2); */
#ifndef TOOLS_PATHS_H
#define TOOLS_PATHS_H

#include <stddef.h>

#include "arg_table.h"
#include "tool_path.h"

/* Returns -1 to continue, else the exit code after a message: 1 if an output cannot be written
 * or a needed input cannot be read; 2 if an output is also an input, is written twice, is where
 * stdout or stderr go, or is "-". */
int tool_check_paths(const char *tool, const tool_path *paths, size_t n);

/* True if s is no file, but a list "a,b" of which one at least is a file. */
bool tool_is_file_list(const char *s);
/* Puts the files of such lists in their place, and cuts the lists' strings, which belong to argv. False: out of memory. */
bool tool_split_files(arg_list *files);

#endif
