/* Writes a timeline in the trace-event format, the array form, which chrome://tracing and
 * ui.perfetto.dev open: an event is an object of its own, and the bracket at the end may be
 * missing, so that what a program that crashed leaves (PATH.tmp-PID-0) can be read as far as it
 * goes.
 *
 * There is one recorder for each file, however many backends write to it. */
#ifndef TRACE_RECORDER_H
#define TRACE_RECORDER_H

#include "ggl/status.h"

typedef struct recorder recorder;

typedef struct trace_arg {
    const char *key;  /* NULL: the end */
    const char *text; /* NULL: it is the number */
    uint64_t number;
} trace_arg;

enum { TRACE_MAX_ARGS = 6 };

typedef struct trace_event {
    /* 'X': a span of time, 'C': numbers that are drawn as a curve, 'M': names a track */
    char phase;
    int track;
    const char *name, *kind;
    uint64_t begin, end; /* in ns since the recorder was opened; end of 'X' alone */
    trace_arg arg[TRACE_MAX_ARGS + 1];
} trace_event;

/* The file is replaced when the last user closes it, unless a recorder has it open: then that one
 * is shared. GGL_IO. */
ggl_status ggl_recorder_open(recorder **out, const char *path, ggl_error *err);
/* The last to close gives the file its name. GGL_IO: writing failed; no file is left. */
ggl_status ggl_recorder_close(recorder *r, ggl_error *err);
/* A new row of the timeline. */
int ggl_recorder_track(recorder *r, const char *name);
uint64_t ggl_recorder_now(const recorder *r);
/* The recorder's time for a time in ns of CLOCK_MONOTONIC. */
uint64_t ggl_recorder_at(const recorder *r, uint64_t ns);
/* From any thread; allocates nothing. After an error of the file nothing is written any more. */
void ggl_recorder_write(recorder *r, const trace_event *e);

#endif
