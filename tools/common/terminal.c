#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "color.h"
#include "process.h"

enum mode { MODE_SHELL, MODE_QUIET, MODE_EDIT, N_MODES };

enum { IDLE_MS = 50 }; /* after which an Escape byte is a key, not the beginning of a sequence */

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
enum { N_CRASHES = sizeof crashes / sizeof *crashes };

static struct {
    struct termios settings[N_MODES];
    struct sigaction before[N_CRASHES];
    volatile sig_atomic_t mode, resized, continued;
    int wake[2]; /* a pipe: handlers write a byte, so that waiting ends */
    bool begun;
    char rest[4096]; /* bytes that were read, but belong to the next text */
    size_t n_rest;
} term;

bool terminal_is_there(void) {
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

bool terminal_has_looks(void) {
    const char *name = getenv("TERM");
    return tool_is_terminal(stdout) && name && *name && strcmp(name, "dumb") != 0;
}

/* --- settings; async-signal-safe ------------------------------------------------------------ */

static void apply(enum mode mode, enum mode before) {
    static const char on[] = "\033[?2004h", off[] = "\033[?2004l"; /* marks around pasted text */
    if (mode == MODE_EDIT && before != MODE_EDIT)
        (void)!write(STDOUT_FILENO, on, sizeof on - 1);
    if (mode != MODE_EDIT && before == MODE_EDIT)
        (void)!write(STDOUT_FILENO, off, sizeof off - 1);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &term.settings[mode]);
}

static void set_mode(enum mode mode) {
    const enum mode before = (enum mode)term.mode;
    term.mode = mode;
    apply(mode, before);
}

static void wake(void) {
    const int error = errno;
    (void)!write(term.wake[1], "", 1);
    errno = error;
}

static void on_end(void) {
    if (term.mode != MODE_SHELL)
        set_mode(MODE_SHELL);
}

static void on_resize(int number) {
    (void)number;
    term.resized = 1;
    wake();
}

/* Stops the process with the shell's settings, and takes its own when it goes on. */
static void on_suspend(int number) {
    const int error = errno;
    const enum mode mode = (enum mode)term.mode;
    struct sigaction own;
    sigset_t set;
    sigaction(number, NULL, &own);
    set_mode(MODE_SHELL);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* stops here */
    sigaction(number, &own, NULL);
    set_mode(mode);
    term.continued = 1;
    wake();
    errno = error;
}

/* After a stop that no handler saw: the shell has set the terminal. */
static void on_continue(int number) {
    const int error = errno;
    (void)number;
    if (term.mode != MODE_SHELL && tcgetpgrp(STDIN_FILENO) == getpgrp())
        apply((enum mode)term.mode, MODE_SHELL);
    term.continued = 1;
    wake();
    errno = error;
}

/* Restores the terminal, and lets the signal do what it did before. */
static void on_crash(int number, siginfo_t *info, void *context) {
    (void)context;
    on_end();
    for (int i = 0; i < N_CRASHES; i++)
        if (crashes[i] == number)
            sigaction(number, &term.before[i], NULL);
    if (info->si_code <= 0) /* it was sent; else the fault happens again */
        raise(number);
}

/* --- begin and end ---------------------------------------------------------------------------- */

static void handle(int number, void (*handler)(int)) {
    struct sigaction act = {.sa_handler = handler}, before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &act, NULL);
}

static bool open_wake(void) {
    if (pipe(term.wake) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        (void)fcntl(term.wake[i], F_SETFL, O_NONBLOCK);
        (void)fcntl(term.wake[i], F_SETFD, FD_CLOEXEC);
    }
    return true;
}

static void make_settings(void) {
    struct termios *quiet = &term.settings[MODE_QUIET], *edit = &term.settings[MODE_EDIT];
    *quiet = term.settings[MODE_SHELL];
    quiet->c_iflag &= (tcflag_t) ~(ICRNL | INLCR | IGNCR | IXON | ISTRIP | BRKINT);
    quiet->c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN);
    quiet->c_cc[VMIN] = 1;
    quiet->c_cc[VTIME] = 0;
    *edit = *quiet;
    edit->c_lflag &= (tcflag_t)~ISIG;
}

/* Keeps what was typed before for the first text. The terminal made Enter a line feed then, which
 * would only break the line. */
static void take_what_is_typed(void) {
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    const ssize_t n = poll(&fd, 1, 0) > 0 ? read(STDIN_FILENO, term.rest, sizeof term.rest) : 0;
    term.n_rest = n > 0 ? (size_t)n : 0;
    for (size_t i = 0; i < term.n_rest; i++)
        if (term.rest[i] == '\n')
            term.rest[i] = '\r';
}

bool terminal_begin(void) {
    if (!terminal_is_there() || !terminal_has_looks() ||
        tcgetattr(STDIN_FILENO, &term.settings[MODE_SHELL]) != 0 || !open_wake())
        return false;
    make_settings();
    process_set_hooks(wake, on_end);
    handle(SIGWINCH, on_resize);
    handle(SIGTSTP, on_suspend);
    handle(SIGCONT, on_continue);
    for (int i = 0; i < N_CRASHES; i++) {
        struct sigaction act = {.sa_flags = SA_SIGINFO};
        act.sa_sigaction = on_crash;
        sigaction(crashes[i], &act, &term.before[i]);
    }
    if (!term.begun)
        atexit(terminal_end);
    term.begun = true;
    set_mode(MODE_QUIET);
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
        const ssize_t done = write(STDOUT_FILENO, s, n);
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
    struct winsize w = {0};
    term.resized = 0;
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
    line_editor_resize(e, w.ws_col, w.ws_row);
}

/* Waits for input, at most `ms` (-1: for ever); returns whether there is some. */
static bool wait_for_input(int ms) {
    struct pollfd fd[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = term.wake[0], .events = POLLIN}};
    char drop[64];
    if (poll(fd, 2, ms) > 0 && fd[1].revents)
        while (read(term.wake[0], drop, sizeof drop) > 0)
            ;
    return fd[0].revents != 0;
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
            raise(SIGTSTP);
        }
    }
    return r == LINE_SUSPEND ? LINE_MORE : r;
}

/* Follows signals that came: a new size, a stop and its end. */
static void follow_signals(line_editor *e) {
    if (term.continued) {
        term.continued = 0;
        take_size(e);
        line_editor_forget(e);
    } else if (term.resized) {
        take_size(e);
    }
}

static line_result read_bytes(void) {
    const ssize_t n = read(STDIN_FILENO, term.rest, sizeof term.rest);
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
        const bool input = wait_for_input(!idle ? IDLE_MS : works ? 0 : -1);
        if (process_stopped) /* a SIGINT may be a Ctrl-C typed just before the editor began */
            return process_go_on() ? LINE_INTERRUPT : LINE_STOPPED;
        if (term.continued || term.resized) {
            follow_signals(e);
            drawn = false;
        }
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
        drawn = wait_for_input(0); /* more comes: draw it with that */
    }
    return r;
}

line_result terminal_read(line_editor *e, const char *prompt, bool (*work)(void *ctx), void *ctx) {
    fflush(stdout);
    set_mode(MODE_EDIT);
    take_size(e);
    line_editor_begin(e, prompt);
    const line_result r = read_text(e, work, ctx);
    line_editor_leave(e);
    (void)draw(e);
    set_mode(MODE_QUIET);
    return r;
}
