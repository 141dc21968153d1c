/* The progress of a download on standard error: on a terminal a line that changes, else a line at each quarter. */
#ifndef TOOLS_FETCH_PROGRESS_H
#define TOOLS_FETCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fetch_progress {
    const char *tool, *verb, *name; /* borrowed */
    uint64_t begin, size;           /* bytes that were there at the beginning; of all */
    double t_begin, t_shown;
    int quarter; /* the last one that was printed */
    bool on_terminal, shown;
} fetch_progress;

/* verb: "downloading". Prints nothing yet on a terminal. */
void fetch_progress_begin(fetch_progress *p, const char *tool, const char *verb, const char *name,
                          uint64_t begin, uint64_t size);
/* Shows that `done` bytes are there, at most five times in a second. */
void fetch_progress_show(fetch_progress *p, uint64_t done);
/* Erases the line on a terminal. */
void fetch_progress_end(fetch_progress *p);

/* Writes a number of bytes for people: "4.68 GB"; returns buf. */
enum { FETCH_SIZE_TEXT = 24 };
const char *fetch_size_text(char buf[FETCH_SIZE_TEXT], uint64_t n);

#endif
