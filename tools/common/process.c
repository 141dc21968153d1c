#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ggl/internal/file.h"

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif
#ifdef __APPLE__
#define PROGRAM getprogname()
#else
#define PROGRAM program_invocation_short_name
#endif

/* --- standard streams and signals ------------------------------------------------------------- */

volatile sig_atomic_t process_stopped;
static volatile sig_atomic_t waits, erases, n_spared;
static void (*volatile hook_stops)(void), (*volatile hook_ends)(void);

static void on_stop(int number) {
    if (waits && !process_stopped) {
        process_stopped = number;
        if (hook_stops)
            hook_stops();
        return;
    }
    if (number == SIGINT && n_spared > 0) {
        n_spared--;
        return;
    }
    if (hook_ends)
        hook_ends();
    if (erases)
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    ggl_new_file_remove_all();
    signal(number, SIG_DFL);
    raise(number); /* delivered when this handler returns */
}

/* Appends s to buf; bytes that are not printable become question marks. */
static size_t append(char *buf, size_t size, size_t n, const char *s) {
    for (; *s && n < size; s++)
        buf[n++] = (unsigned char)*s < ' ' || *s == 0x7f ? '?' : *s;
    return n;
}

/* A page could not be read. If it is a mapped file's, says which one; the likely reason is that somebody has overwritten a model. Calls
 * async-signal-safe functions only. */
static void on_bus_error(int number, siginfo_t *info, void *context) {
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    static const char why[] = " was changed or cut off while it was in use, or cannot be read any "
                              "more; start the program again\n";
    const char *file = info->si_code > 0 ? ggl_file_at(info->si_addr, NULL) : NULL;
    char text[PATH_MAX + 256];
    (void)context;
    if (!file) {
        signal(number, SIG_DFL);
        if (info->si_code <= 0) /* it was sent; else the fault happens again */
            raise(number);
        return;
    }
    while (atomic_flag_test_and_set(&is_said)) /* another thread has come upon it, too */
        pause();
    if (hook_ends)
        hook_ends();
    if (erases)
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    size_t n = append(text, PATH_MAX, 0, PROGRAM);
    n = append(text, PATH_MAX, n, ": ");
    n = append(text, PATH_MAX, n, file);
    memcpy(text + n, why, sizeof why - 1);
    (void)!write(STDERR_FILENO, text, n + sizeof why - 1);
    ggl_new_file_remove_all();
    _exit(1);
}

bool process_is_stopped(void *unused) {
    (void)unused;
    return process_stopped != 0;
}

void process_spare(int n) {
    n_spared = n;
}

bool process_go_on(void) {
    if (process_stopped == SIGINT)
        process_stopped = 0;
    return process_stopped == 0;
}

void process_set_hooks(void (*stops)(void), void (*ends)(void)) {
    hook_stops = stops;
    hook_ends = ends;
}

void process_set_erases(bool does) {
    erases = does;
}

int process_stop_code(void) {
    return 128 + process_stopped;
}

/* Opens standard descriptors that are closed; open() takes the lowest free number. Standard
 * output is opened for reading, so that writing to it fails. If there is no /dev/null, "/" is
 * opened instead. */
static void open_standard(void) {
    static const int mode[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[fd]) < 0)
            (void)!open("/", O_RDONLY);
}

void process_begin(void) {
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = on_stop}, before;
    open_standard();
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (stops[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) != 0 ||
            before.sa_handler != SIG_IGN) /* ignored before, as by nohup: stays so */
            sigaction(stops[i], &act, NULL);
    struct sigaction bus = {.sa_flags = SA_SIGINFO};
    bus.sa_sigaction = on_bus_error;
    sigaction(SIGBUS, &bus, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void process_wait_for_stop(void) {
    waits = 1;
}

int64_t process_peak_memory(void) {
#ifdef __APPLE__
    const int64_t unit = 1;
#else
    const int64_t unit = 1024;
#endif
    struct rusage r;
    return getrusage(RUSAGE_SELF, &r) == 0 ? (int64_t)r.ru_maxrss * unit : 0;
}
