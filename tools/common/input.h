/* Reads whole files. */
#ifndef TOOLS_INPUT_H
#define TOOLS_INPUT_H

#include <stddef.h>

/* Returns all bytes of a file, or of stdin for "-", NUL-terminated; *size: their number. The
 * caller frees them. NULL: an error, reported on stderr, or a signal (process_stopped). */
char *tool_read_file(const char *tool, const char *path, size_t *size);

#endif
