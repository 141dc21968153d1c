#include "terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "color.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "process.h"

enum { IDLE_MS = 50 }; /* after which an Escape byte is a key, not the beginning of a sequence */

static struct {
    bool begun;
    char rest[4096]; /* bytes that were read, but belong to the next text */
    size_t n_rest;
} term;

bool terminal_is_there(void) {
    return ggl_os_is_terminal(OS_STDIN) && ggl_os_is_terminal(OS_STDOUT);
}

bool terminal_has_looks(void) {
    return tool_is_terminal(stdout) && ggl_os_terminal_draws();
}

/* --- begin and end ---------------------------------------------------------------------------- */

/* Async-signal-safe. */
static void on_end(void) {
    if (ggl_os_terminal_get() != OS_TERMINAL_SHELL)
        ggl_os_terminal_set(OS_TERMINAL_SHELL);
}

/* Keeps what was typed before for the first text. The terminal made Enter a line feed then, which
 * would only break the line. */
static void take_what_is_typed(void) {
    const int64_t n =
        ggl_os_terminal_wait(0) ? ggl_os_terminal_read(term.rest, sizeof term.rest) : 0;
    term.n_rest = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; i < term.n_rest; i++)
        if (term.rest[i] == '\n')
            term.rest[i] = '\r';
}

bool terminal_begin(void) {
    if (!terminal_is_there() || !terminal_has_looks() || !ggl_os_terminal_begin())
        return false;
    process_set_hooks(ggl_os_terminal_wake, on_end);
    if (!term.begun)
        atexit(terminal_end);
    term.begun = true;
    ggl_os_terminal_set(OS_TERMINAL_QUIET);
    take_what_is_typed();
    return true;
}

void terminal_end(void) {
    fflush(stdout);
    on_end();
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool write_all(const char *s, size_t n) {
    while (n > 0) {
        const int64_t done = ggl_os_write(OS_STDOUT, s, n);
        if (done < 0 && errno != EINTR)
            return false;
        s += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

static bool draw(line_editor *e) {
    size_t n;
    const char *s = line_editor_draw(e, &n);
    return write_all(s, n);
}

static void take_size(line_editor *e) {
    int columns, lines;
    (void)ggl_os_terminal_is_resized();
    ggl_os_terminal_size(&columns, &lines);
    line_editor_resize(e, columns, lines);
}

/* Feeds the bytes in term.rest; keeps those after the end of the text. */
static line_result feed(line_editor *e) {
    line_result r = LINE_MORE;
    while (term.n_rest > 0 && (r == LINE_MORE || r == LINE_SUSPEND)) {
        size_t used;
        r = line_editor_feed(e, term.rest, term.n_rest, &used);
        term.n_rest -= used;
        memmove(term.rest, term.rest + used, term.n_rest);
        if (r == LINE_SUSPEND) {
            (void)draw(e);
            (void)write_all("\r\n", 2);
            ggl_os_terminal_suspend();
        }
    }
    return r == LINE_SUSPEND ? LINE_MORE : r;
}

/* Follows signals that came, a new size, a stop and its end; returns whether one did. */
static bool follow_signals(line_editor *e) {
    const bool goes_on = ggl_os_terminal_goes_on(), news = ggl_os_terminal_is_resized() || goes_on;
    if (news)
        take_size(e);
    if (goes_on)
        line_editor_forget(e);
    return news;
}

static line_result read_bytes(void) {
    const int64_t n = ggl_os_terminal_read(term.rest, sizeof term.rest);
    if (n > 0)
        term.n_rest = (size_t)n;
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)) ? LINE_MORE : LINE_FAILED;
}

static line_result read_text(line_editor *e, bool (*work)(void *ctx), void *ctx) {
    line_result r = feed(e);
    bool drawn = false, idle = false, works = work != NULL;
    while (r == LINE_MORE) {
        if (!drawn && !draw(e))
            return LINE_FAILED;
        drawn = true;
        const bool input = ggl_os_terminal_wait(!idle ? IDLE_MS : works ? 0 : -1);
        if (process_stopped) /* a SIGINT may be a Ctrl-C typed just before the editor began */
            return process_go_on() ? LINE_INTERRUPT : LINE_STOPPED;
        if (follow_signals(e))
            drawn = false;
        if (!input && idle && works) {
            works = work(ctx);
            continue;
        }
        if (!input) {
            line_editor_idle(e);
            drawn = drawn && idle;
            idle = true;
            continue;
        }
        idle = false;
        r = read_bytes();
        if (r == LINE_MORE)
            r = feed(e);
        drawn = ggl_os_terminal_wait(0); /* more comes: draw it with that */
    }
    return r;
}

line_result terminal_read(line_editor *e, const char *prompt, bool (*work)(void *ctx), void *ctx) {
    fflush(stdout);
    ggl_os_terminal_set(OS_TERMINAL_EDIT);
    take_size(e);
    line_editor_begin(e, prompt);
    const line_result r = read_text(e, work, ctx);
    line_editor_leave(e);
    (void)draw(e);
    ggl_os_terminal_set(OS_TERMINAL_QUIET);
    return r;
}
