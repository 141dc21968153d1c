/* Reads whole files. */
#ifndef TOOLS_INPUT_H
#define TOOLS_INPUT_H

#include <stddef.h>
#include <stdio.h>

/* Opens a file for reading. Of a pipe this waits for its writer. NULL: errno says why, or a signal ended that (process_stopped). */
FILE *tool_open_input(const char *path);
/* Returns all bytes of a file, or of stdin for "-", NUL-terminated; *size: their number. The
 * caller frees them. NULL: an error, reported on stderr, or a signal (process_stopped). A plain file that is larger than the memory
 * that is free is an error, and more than 2 GiB, or than that memory, of a pipe or a device. */
char *tool_read_file(const char *tool, const char *path, size_t *size);
/* The same, but a file of more than `most` bytes, a multiple of 1 MiB, is an error: no more than
 * that is read. */
char *tool_read_at_most(const char *tool, const char *path, size_t most, size_t *size);

/* The functions for texts drop a byte order mark. UTF-16 is an error that says how to convert the file.
 * The first 64 KiB are judged before the rest is read. */

/* The same for a text: bytes that are no UTF-8, and NUL, are an error. */
char *tool_read_text(const char *tool, const char *path, size_t most, size_t *size);
/* The same for a text which a model is to read: only a file with NUL, or of which more than a quarter is no UTF-8, such as a
 * program or an archive, is an error; of other bytes that are no UTF-8, a warning is printed. */
char *tool_read_any_text(const char *tool, const char *path, size_t *size);
/* The same for a text that may have any bytes after its first two characters, at most `most`. */
char *tool_read_raw_text(const char *tool, const char *path, size_t most, size_t *size);

#endif
