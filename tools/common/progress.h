/* Shows the progress of long jobs: a line on standard error that changes while a job runs, and is erased
 * when it ends. All tools use it. It is shown only on a terminal.
 *
 *     progress_begin("tokens", n, "prompt");        // prompt 34 %, 512 of 1500 tokens, 3 s left
 *     while (..)
 *         progress_set(done);
 *     progress_end();
 *
 * The line appears when a job has taken half a second. A thread draws it five times a second, so
 * it also changes during a long step of the job. Jobs nest, also across files: "test 3 of 12: loading
 * weights 35 %".
 *
 * Call tool_begin_line (report.h) before writing anything else to the terminal; it erases the line.
 * tool_error calls it. All functions may be called from any thread. The environment variable
 * GGL_PROGRESS_DELAY replaces the half second; with 0 each change is drawn at once, as tests need it. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "ggl/status.h"

#define PROGRESS_BYTES    "B"
#define PROGRESS_TRANSFER "B/s" /* bytes, with those per second */

/* Begins a job. unit names what is counted, such as "tokens", or is PROGRESS_BYTES or PROGRESS_TRANSFER; with NULL only the
 * percentage is shown. total is the number of steps; with 0 (unknown) the elapsed seconds are shown.
 * fmt describes the job; its arguments are escaped as by ggl_fprint. */
GGL_PRINTF(3, 4)
void progress_begin(const char *unit, double total, const char *fmt, ...);
/* Erases the progress line until it is next drawn. Unlike tool_begin_line, it does not end an unfinished
 * line of the program's output. */
void progress_clear(void);
/* Replaces the description of the innermost job. */
GGL_PRINTF(1, 2)
void progress_say(const char *fmt, ...);
/* The innermost job waits for something else at times: `say` is called whenever the line is drawn, by any thread, and writes what that is;
 * an empty text: nothing. It must not call functions of this header. */
void progress_explain(void (*say)(void *ctx, char *text, size_t size), void *ctx);
/* Sets how much of the innermost job is done. progress_resume sets the part that was done before the job began,
 * which does not count for its speed. */
void progress_set(double done);
void progress_resume(double done);
/* Ends the innermost job. Without a job it does nothing. */
void progress_end(void);
/* Shows no progress from now on. */
void progress_off(void);

/* Sets how much of the innermost job is done, and the total, which may change. Has the form of the library's
 * callbacks; returns true. */
bool progress_share(void *unused, size_t done, size_t total);

/* --- for tests -------------------------------------------------------------------------------- */

enum { PROGRESS_WHAT = 160, PROGRESS_JOBS = 4, PROGRESS_LINE = 512 };

typedef struct progress_job {
    char what[PROGRESS_WHAT];
    const char *unit;
    double total, done, resumed;
    double t_begin;                                  /* seconds */
    void (*say)(void *ctx, char *text, size_t size); /* progress_explain; NULL: none */
    void *say_ctx;
    char explained[64]; /* what it has written */
} progress_job;

/* Writes the line for jobs, the outermost first, at time t, in at most `width` columns. Returns its bytes. */
size_t progress_line(char buf[PROGRESS_LINE], const progress_job *job, int n, double t, int width);

#endif
