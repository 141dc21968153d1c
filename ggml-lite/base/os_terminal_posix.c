/* os_terminal.h for POSIX. */
#include "ggl/internal/os_terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

bool ggl_os_is_terminal(int fd) {
    return isatty(fd) == 1;
}

int ggl_os_terminal_columns(int fd) {
    struct winsize w = {0};
    return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

bool ggl_os_terminal_is_own(void) {
    return false;
}

bool ggl_os_terminal_draws(void) {
    const char *name = getenv("TERM");
    return name && *name && strcmp(name, "dumb") != 0;
}

/* --- editing ---------------------------------------------------------------------------------- */

enum { N_MODES = 3 };

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGQUIT};
enum { N_CRASHES = sizeof crashes / sizeof *crashes };

static struct {
    struct termios settings[N_MODES];
    struct sigaction before[N_CRASHES];
    volatile sig_atomic_t mode, resized, continued;
    int wake[2]; /* a pipe: handlers write a byte, so that waiting ends */
} term;

static void apply(os_terminal_mode mode, os_terminal_mode before) {
    static const char on[] = "\033[?2004h", off[] = "\033[?2004l"; /* marks around pasted text */
    if (mode == OS_TERMINAL_EDIT && before != OS_TERMINAL_EDIT)
        (void)!write(STDOUT_FILENO, on, sizeof on - 1);
    if (mode != OS_TERMINAL_EDIT && before == OS_TERMINAL_EDIT)
        (void)!write(STDOUT_FILENO, off, sizeof off - 1);
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &term.settings[mode]);
}

void ggl_os_terminal_set(os_terminal_mode mode) {
    const os_terminal_mode before = (os_terminal_mode)term.mode;
    term.mode = mode;
    apply(mode, before);
}

os_terminal_mode ggl_os_terminal_get(void) {
    return (os_terminal_mode)term.mode;
}

void ggl_os_terminal_wake(void) {
    const int error = errno;
    (void)!write(term.wake[1], "", 1);
    errno = error;
}

static void on_resize(int number) {
    (void)number;
    term.resized = 1;
    ggl_os_terminal_wake();
}

/* Stops the process with the shell's settings, and takes its own when it goes on. */
static void on_suspend(int number) {
    const int error = errno;
    const os_terminal_mode mode = (os_terminal_mode)term.mode;
    struct sigaction own;
    sigset_t set;
    sigaction(number, NULL, &own);
    ggl_os_terminal_set(OS_TERMINAL_SHELL);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* stops here */
    sigaction(number, &own, NULL);
    ggl_os_terminal_set(mode);
    term.continued = 1;
    ggl_os_terminal_wake();
    errno = error;
}

/* After a stop that no handler saw: the shell has set the terminal. */
static void on_continue(int number) {
    const int error = errno;
    (void)number;
    if (term.mode != OS_TERMINAL_SHELL && tcgetpgrp(STDIN_FILENO) == getpgrp())
        apply((os_terminal_mode)term.mode, OS_TERMINAL_SHELL);
    term.continued = 1;
    ggl_os_terminal_wake();
    errno = error;
}

/* Restores the terminal, and lets the signal do what it did before. */
static void on_crash(int number, siginfo_t *info, void *context) {
    (void)context;
    if (term.mode != OS_TERMINAL_SHELL)
        ggl_os_terminal_set(OS_TERMINAL_SHELL);
    for (int i = 0; i < N_CRASHES; i++)
        if (crashes[i] == number)
            sigaction(number, &term.before[i], NULL);
    if (info->si_code <= 0) /* it was sent; else the fault happens again */
        raise(number);
}

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
    struct termios *quiet = &term.settings[OS_TERMINAL_QUIET],
                   *edit = &term.settings[OS_TERMINAL_EDIT];
    *quiet = term.settings[OS_TERMINAL_SHELL];
    quiet->c_iflag &= (tcflag_t) ~(ICRNL | INLCR | IGNCR | IXON | ISTRIP | BRKINT);
    quiet->c_lflag &= (tcflag_t) ~(ICANON | ECHO | IEXTEN);
    quiet->c_cc[VMIN] = 1;
    quiet->c_cc[VTIME] = 0;
    *edit = *quiet;
    edit->c_lflag &= (tcflag_t)~ISIG;
}

bool ggl_os_terminal_begin(void) {
    if (tcgetattr(STDIN_FILENO, &term.settings[OS_TERMINAL_SHELL]) != 0 || !open_wake())
        return false;
    make_settings();
    handle(SIGWINCH, on_resize);
    handle(SIGTSTP, on_suspend);
    handle(SIGCONT, on_continue);
    for (int i = 0; i < N_CRASHES; i++) {
        struct sigaction act = {.sa_flags = SA_SIGINFO};
        act.sa_sigaction = on_crash;
        sigaction(crashes[i], &act, &term.before[i]);
    }
    return true;
}

bool ggl_os_terminal_wait(int ms) {
    struct pollfd fd[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                          {.fd = term.wake[0], .events = POLLIN}};
    char drop[64];
    if (poll(fd, 2, ms) > 0 && fd[1].revents)
        while (read(term.wake[0], drop, sizeof drop) > 0)
            ;
    return fd[0].revents != 0;
}

int64_t ggl_os_terminal_read(void *to, size_t n) {
    return read(STDIN_FILENO, to, n);
}

/* Returns whether the handler of a signal has set *news since the last call. */
static bool take(volatile sig_atomic_t *news) {
    const bool is = *news != 0;
    *news = 0;
    return is;
}

bool ggl_os_terminal_is_resized(void) {
    return take(&term.resized);
}

bool ggl_os_terminal_goes_on(void) {
    return take(&term.continued);
}

void ggl_os_terminal_suspend(void) {
    raise(SIGTSTP);
}

void ggl_os_terminal_size(int *columns, int *lines) {
    struct winsize w = {0};
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
    *columns = w.ws_col;
    *lines = w.ws_row;
}
