/* Lines of tables that end in free text: on a terminal that is too narrow for them, they are broken at spaces. In a pipe or a file, and where a line
 * begins without a space, they stay as they are.
 *
 *     fit_lines l;
 *     fprintf(fit_lines_begin(&l, stdout), "  %-20s %s\n", name, text);
 *     fit_lines_end(&l); */
#ifndef TOOLS_FIT_LINES_H
#define TOOLS_FIT_LINES_H

#include <stdio.h>

#include "ggl/internal/os_stream.h"

typedef struct fit_lines {
    FILE *out, *to; /* to: what is written to; out itself, if it is no terminal */
    os_memory_stream memory;
    int width; /* of the terminal */
} fit_lines;

/* Returns the stream to write whole lines to. */
FILE *fit_lines_begin(fit_lines *l, FILE *out);
void fit_lines_end(fit_lines *l);

/* Writes one line of n bytes, without its end, to a terminal of so many columns. What does not fit goes on below the line's last column of a table,
 * if there is room, or else below its beginning. A word that is too long stays whole. */
void fit_line(FILE *out, const char *s, size_t n, int width);

#endif
