/* The terminal's last line: progress, or text that an error must not be appended to. */
#include "progress.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "args.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/show.h"
#include "process.h"
#include "ggl/internal/os_process.h"

#define DELAY  0.5 /* seconds before the line appears */
#define PERIOD 0.2 /* seconds between two drawings */

enum use { USE_UNKNOWN, USE_LINE, USE_NONE };

static struct {
    os_mutex lock;
    os_cond changed;
    os_thread thread;
    bool has_thread;
    uintptr_t generation; /* of the thread; another one ends it */
    enum use use;
    tool_line line;
    double delay, t_drawn;
    progress_job job[PROGRESS_JOBS];
    int n; /* jobs; those beyond PROGRESS_JOBS are only counted */
} at = {.lock = OS_MUTEX_INIT};

/* --- the line; called with the lock held --------------------------------------------------------- */

static progress_job *innermost(void) {
    return at.n > 0 && at.n <= PROGRESS_JOBS ? &at.job[at.n - 1] : NULL;
}

static void erase(void) {
    if (at.line == TOOL_LINE_PROGRESS) {
        fputs("\r\033[K", stderr);
        at.line = TOOL_LINE_EMPTY;
        process_set_erases(false);
    }
}

static void draw(double t) {
    char line[PROGRESS_LINE];
    if (at.n == 0 || at.line == TOOL_LINE_TEXT || at.use != USE_LINE)
        return;
    const int columns = ggl_os_terminal_columns(OS_STDERR), width = columns > 0 ? columns : 80;
    if (width == 1)
        return;
    progress_job *j = innermost();
    if (j && j->say)
        j->say(j->say_ctx, j->explained, sizeof j->explained);
    progress_line(line, at.job, at.n < PROGRESS_JOBS ? at.n : PROGRESS_JOBS, t, width - 1);
    process_set_erases(true);
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    at.line = TOOL_LINE_PROGRESS;
    at.t_drawn = t;
}

/* Draws if the line has not been for a while, or, if news are to appear at once (a delay of 0), if there are some. */
static void draw_if_due_with(bool news) {
    const double t = ggl_os_seconds();
    if (at.n > 0 && t - at.job[0].t_begin >= at.delay &&
        ((news && at.delay <= 0) || t - at.t_drawn >= PERIOD))
        draw(t);
}

static void draw_if_due(void) {
    draw_if_due_with(true);
}

static void *run(void *generation) {
    const uintptr_t own = (uintptr_t)generation;
    ggl_os_mutex_lock(&at.lock);
    while (own == at.generation) {
        (void)ggl_os_cond_wait_until(&at.changed, &at.lock,
                                     ggl_os_clock() + (int64_t)(PERIOD * 1e9));
        if (own == at.generation)
            draw_if_due_with(false);
    }
    ggl_os_mutex_unlock(&at.lock);
    return NULL;
}

/* The thread blocks all signals, so that they interrupt the main thread's calls. */
static void start_thread(void) {
    os_signals before;
    ggl_os_signals_hold(&before);
    at.has_thread = ggl_os_thread_start(&at.thread, run, (void *)at.generation, 0);
    ggl_os_signals_release(&before);
}

static void on_exit_erase(void) {
    progress_off();
}

static void find_use(void) {
    const char *term = getenv("TERM"), *delay = getenv("GGL_PROGRESS_DELAY");
    const bool line = tool_shows_progress() && !(term && strcmp(term, "dumb") == 0);
    double seconds;
    bool range;
    ggl_os_cond_init(&at.changed);
    at.use = line && atexit(on_exit_erase) == 0 ? USE_LINE : USE_NONE;
    at.delay = delay && args_read_float(delay, &seconds, &range) && seconds >= 0 ? seconds : DELAY;
}

/* --- jobs ----------------------------------------------------------------------------------------- */

void progress_begin(const char *unit, double total, const char *fmt, ...) {
    ggl_os_mutex_lock(&at.lock);
    if (at.use == USE_UNKNOWN)
        find_use();
    if (at.use == USE_LINE) {
        at.n++;
        progress_job *j = innermost();
        if (j) {
            va_list args;
            va_start(args, fmt);
            *j = (progress_job){.unit = unit, .total = total, .t_begin = ggl_os_seconds()};
            ggl_vformat(j->what, sizeof j->what, fmt, args);
            va_end(args);
        }
        if (!at.has_thread)
            start_thread();
        draw_if_due();
    }
    ggl_os_mutex_unlock(&at.lock);
}

void progress_say(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    ggl_os_mutex_lock(&at.lock);
    if (innermost()) {
        ggl_vformat(innermost()->what, PROGRESS_WHAT, fmt, args);
        draw_if_due();
    }
    ggl_os_mutex_unlock(&at.lock);
    va_end(args);
}

void progress_explain(void (*say)(void *ctx, char *text, size_t size), void *ctx) {
    ggl_os_mutex_lock(&at.lock);
    if (innermost()) {
        innermost()->say = say;
        innermost()->say_ctx = ctx;
        draw_if_due();
    }
    ggl_os_mutex_unlock(&at.lock);
}

void progress_set(double done) {
    ggl_os_mutex_lock(&at.lock);
    if (innermost()) {
        innermost()->done = done;
        draw_if_due();
    }
    ggl_os_mutex_unlock(&at.lock);
}

void progress_resume(double done) {
    ggl_os_mutex_lock(&at.lock);
    if (innermost())
        innermost()->done = innermost()->resumed = done;
    ggl_os_mutex_unlock(&at.lock);
}

bool progress_share(void *unused, size_t done, size_t total) {
    (void)unused;
    ggl_os_mutex_lock(&at.lock);
    if (innermost()) {
        innermost()->total = (double)total;
        innermost()->done = (double)done;
        draw_if_due();
    }
    ggl_os_mutex_unlock(&at.lock);
    return true;
}

void progress_clear(void) {
    ggl_os_mutex_lock(&at.lock);
    erase();
    at.t_drawn = ggl_os_seconds(); /* time for the writer to end its line */
    ggl_os_mutex_unlock(&at.lock);
}

/* Ends the innermost job, or all. If none is left, erases the line and waits for the thread. */
static void end(bool all) {
    ggl_os_mutex_lock(&at.lock);
    at.n = all || at.n == 0 ? 0 : at.n - 1;
    const bool last = at.n == 0 && at.has_thread;
    if (at.n == 0)
        erase();
    at.generation += last;
    at.has_thread = at.has_thread && !last;
    const os_thread thread = at.thread;
    if (at.use == USE_LINE)
        ggl_os_cond_broadcast(&at.changed); /* a thread that ends may wait beside a new one */
    ggl_os_mutex_unlock(&at.lock);
    if (last)
        ggl_os_thread_join(thread);
}

void progress_end(void) {
    end(false);
}

void progress_off(void) {
    end(true);
    ggl_os_mutex_lock(&at.lock);
    at.use = USE_NONE;
    ggl_os_mutex_unlock(&at.lock);
}

/* --- text and errors (report.h) --------------------------------------------------------------------- */

void tool_set_line(tool_line what) {
    ggl_os_mutex_lock(&at.lock);
    at.line = what;
    process_set_erases(what == TOOL_LINE_PROGRESS);
    ggl_os_mutex_unlock(&at.lock);
}

/* True if stdout and stderr go to the same terminal, pipe (2>&1) or file. */
static bool one_output(void) {
    os_stat out, error;
    return ggl_os_stat_fd(OS_STDOUT, &out) && ggl_os_stat_fd(OS_STDERR, &error) &&
           ggl_os_is_same(&out, &error);
}

/* Ends or erases a line begun on the terminal, so that what is written next starts on its own line. */
void tool_begin_line(void) {
    ggl_os_mutex_lock(&at.lock);
    erase();
    if (at.line == TOOL_LINE_TEXT && one_output())
        fputc('\n', stderr);
    at.line = TOOL_LINE_EMPTY;
    at.t_drawn = ggl_os_seconds(); /* time for the writer to end its line */
    ggl_os_mutex_unlock(&at.lock);
}

static atomic_bool is_quiet;

bool tool_is_quiet(void) {
    return is_quiet;
}

void tool_set_quiet(bool quiet) {
    is_quiet = quiet;
}

bool tool_shows_progress(void) {
    return !is_quiet && ggl_os_is_terminal(OS_STDERR);
}
