/* The progress of what takes long: a line on standard error that changes while a job runs and is erased
 * at its end. All tools use it. It is shown on a terminal only.
 *
 *     progress_begin("tokens", n, "prompt");        // prompt 34 %, 512 of 1500 tokens, 3 s left
 *     while (..)
 *         progress_set(done);
 *     progress_end();
 *
 * The line appears when a job has taken half a second. A thread draws it five times a second, so
 * that it also lives while a step of the job takes long. A job may contain others, from other
 * files too: "test 3 of 12: loading weights 35 %".
 *
 * What is written to the terminal meanwhile must begin with tool_begin_line (report.h), which erases
 * the line; tool_error does. All calls may come from any thread. The environment variable GGL_PROGRESS_DELAY sets other seconds than 0.5;
 * with 0 each change is drawn at once, as tests need it. */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

#define PROGRESS_BYTES    "B"
#define PROGRESS_TRANSFER "B/s" /* bytes, with those per second */

/* Begins a job. unit: what is counted, such as "tokens"; PROGRESS_BYTES, PROGRESS_TRANSFER, or NULL: only the
 * percentage is shown. total 0: the number of steps is not known; the seconds that have passed are shown.
 * fmt: what is done; escaped as by ggl_fprint. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 3, 4)))
#endif
void progress_begin(const char *unit, double total, const char *fmt, ...);
/* Erases the line until it is drawn again, so that something can be written that is not kept together with what
 * the program wrote before; tool_begin_line would end that line. */
void progress_clear(void);
/* Replaces what the innermost job does. */
#if defined(__GNUC__) || defined(__clang__)
__attribute__((format(printf, 1, 2)))
#endif
void progress_say(const char *fmt, ...);
/* Sets how much of the innermost job is done. progress_resume does so for what was done before it began, which
 * does not count for its speed. */
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
    double t_begin; /* seconds */
} progress_job;

/* Writes the line for jobs, the outermost first, at time t, in at most `width` columns. Returns its bytes. */
size_t progress_line(char buf[PROGRESS_LINE], const progress_job *job, int n, double t, int width);

#endif
