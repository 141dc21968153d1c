/* The end of a file that is written under another name and gets its own when it is whole. */
#ifndef TOOLS_NEW_FILE_H
#define TOOLS_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* Flushes, closes and renames; error: the first errno of writing, 0: none. False: errno says what
 * failed first, and the temporary file is gone. */
bool new_file_end(FILE *file, const char *temporary, const char *path, int error);

/* Gives up: closes and removes it. */
void new_file_abort(FILE *file, const char *temporary);

#endif
