/* Writes a timeline in the trace-event format, the array form, which chrome://tracing and
 * ui.perfetto.dev open: an event is an object of its own, and the bracket at the end may be
 * missing, so that what a program that crashed leaves (PATH.tmp-PID-0) can be read as far as it
 * goes.
 *
 * There is one recorder for each file, however many backends write to it. A recorder of another
 * rank has no file: it keeps its events in memory until rank 0 takes them. */
#ifndef COMMON_RECORDER_H
#define COMMON_RECORDER_H

#include "ggl/graph.h"

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
    /* A step: its node, the size of the batch, and whether it only prepares operands. NULL: it is
     * none. */
    const ggl_tensor *node;
    int64_t n;
    bool prepares;
} trace_event;
typedef void trace_event_fn(void *ctx, const trace_event *e);

/* The file is replaced when the last user closes it, unless a recorder has it open: then that one
 * is shared. GGL_IO. */
ggl_status ggl_recorder_open(recorder **out, const char *path, ggl_error *err);
/* The last to close gives the file its name. GGL_IO: writing failed; no file is left. */
ggl_status ggl_recorder_close(recorder *r, ggl_error *err);
/* A new row of the timeline. */
int ggl_recorder_track(recorder *r, const char *name);
uint64_t ggl_recorder_now(const recorder *r);
/* The recorder's time for a time in ns of ggl_os_clock(). */
uint64_t ggl_recorder_at(const recorder *r, uint64_t ns);
/* From any thread; allocates nothing, unless the events are kept. After an error of the file nothing is written any more. */
void ggl_recorder_write(recorder *r, const trace_event *e);

/* --- kept events -------------------------------------------------------------------------------- */

/* The beginning of a kept event: a step, or what has a name and arguments, which follow. */
typedef struct kept_event {
    uint32_t size; /* of all, a multiple of 8 */
    uint32_t id;   /* of the node */
    uint64_t begin, end;
    uint64_t
        node; /* its address; 0: it is no step. Who takes the event may put another number here */
    uint32_t n, prepares;
} kept_event;

/* Opens a recorder that keeps spans in memory, up to so many bytes. Times are those of ggl_os_clock() since `start`.
 * ggl_recorder_open finds it by the name that is written to `name`, as the path of a file. GGL_NOMEM. */
enum { RECORDER_NAME = 32 };
ggl_status ggl_recorder_keep(recorder **out, uint64_t start, size_t limit, char name[RECORDER_NAME],
                             ggl_error *err);
/* Moves the oldest events, whole ones, at most so many bytes, to `to`, and returns the bytes. *left: bytes of those that
 * stay; *lost: events that had no room since the recorder was opened. */
size_t ggl_recorder_take(recorder *r, char *to, size_t size, uint64_t *left, uint64_t *lost);
/* Reads an event that was taken, from at[0 .. size), and returns its bytes; 0: it is damaged. Texts of *e, which has no track and no
 * node, are those of `at`. */
size_t ggl_kept_read(const char *at, size_t size, kept_event *head, trace_event *e);

#endif
