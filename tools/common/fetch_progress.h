/* The progress of a download on standard error: on a terminal that of progress.h, else a line at each quarter. */
#ifndef TOOLS_FETCH_PROGRESS_H
#define TOOLS_FETCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fetch_progress {
    const char *tool, *verb, *name; /* borrowed */
    uint64_t begin, size;           /* bytes that were there at the beginning; of all */
    double t_begin;
    int quarter; /* the last one that was printed */
    bool on_terminal;
} fetch_progress;

/* verb: "downloading". Prints nothing yet on a terminal. */
void fetch_progress_begin(fetch_progress *p, const char *tool, const char *verb, const char *name,
                          uint64_t begin, uint64_t size);
/* Nothing is there any more: the download starts over. */
void fetch_progress_restart(fetch_progress *p);
/* Shows that `done` bytes are there. */
void fetch_progress_show(fetch_progress *p, uint64_t done);
/* Erases the line on a terminal. */
void fetch_progress_end(fetch_progress *p);

#endif
