/* Files that a tool reads whole. */
#ifndef TOOLS_INPUT_H
#define TOOLS_INPUT_H

#include <stddef.h>

/* All bytes of a file, or of stdin for "-"; NUL-terminated beside their number. The caller's
 * (free); NULL after an error, which is reported on stderr, or after a signal (process_stopped). */
char *tool_read_file(const char *tool, const char *path, size_t *size);

#endif
