#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "ggl/internal/file.h"

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
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void process_wait_for_stop(void) {
    waits = 1;
}

/* --- CPUs and priority ------------------------------------------------------------------------ */

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return p ? (int)(p - digits) : -1;
}

int process_set_cpus(const char *tool, const char *mask) {
    if (!mask)
        return -1;
#ifdef __linux__
    const char *p = mask[0] == '0' && (mask[1] == 'x' || mask[1] == 'X') ? mask + 2 : mask;
    size_t n = strlen(p);
    cpu_set_t set;
    int n_cpus = 0;
    CPU_ZERO(&set);
    for (size_t i = 0; i < n; i++) {
        int digit = hex_digit(p[n - 1 - i]);
        if (digit < 0)
            return tool_error(tool, 2, "--cpu-mask '%s' is not a hexadecimal number", mask);
        for (int b = 0; b < 4; b++)
            if (digit >> b & 1) {
                if (4 * i + (size_t)b >= CPU_SETSIZE)
                    return tool_error(tool, 2, "--cpu-mask names CPU %zu; at most %d are supported",
                                      4 * i + (size_t)b, CPU_SETSIZE);
                CPU_SET(4 * i + (size_t)b, &set);
                n_cpus++;
            }
    }
    if (n_cpus == 0)
        return tool_error(tool, 2, "--cpu-mask '%s' names no CPU", mask);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        return tool_error(tool, 1, "--cpu-mask %s: %s", mask,
                          errno == EINVAL ? "this process may use none of these CPUs"
                                          : strerror(errno));
    return -1;
#else
    return tool_error(tool, 1, "--cpu-mask: not supported on this system");
#endif
}

void process_set_priority(const char *tool, int64_t priority) {
    static const int nice[] = {10, 0, -5, -10};
    int failed = 0;
    if (priority == 0)
        return;
#ifdef __linux__
    if (priority > 2) {
        const struct sched_param p = {.sched_priority = 1};
        failed = sched_setscheduler(0, SCHED_RR, &p) != 0 ? errno : 0;
    } else
#endif
        failed = setpriority(PRIO_PROCESS, 0, nice[priority < 2 ? priority + 1 : 3]) ? errno : 0;
    if (failed)
        (void)tool_error(tool, 0, "--prio %d is not permitted (%s); continuing without it",
                         (int)priority, strerror(failed));
}

double process_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
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
