/* os_process.h for POSIX. */
#include "ggl/internal/os_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif
#include <sys/random.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#include <sys/sysctl.h>
#endif

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define HAS_MALLINFO2
#endif
#endif

extern char **environ;

long ggl_os_pid(void) {
    return (long)getpid();
}

bool ggl_os_program_path(char *out, size_t size) {
#ifdef __APPLE__
    uint32_t n = (uint32_t)size;
    return _NSGetExecutablePath(out, &n) == 0;
#else
    const ssize_t n = readlink("/proc/self/exe", out, size - 1);
    out[n > 0 ? n : 0] = '\0';
    return n > 0 && (size_t)n < size - 1;
#endif
}

const char *ggl_os_program_name(void) {
#ifdef __APPLE__
    return getprogname();
#else
    return program_invocation_short_name;
#endif
}

const char *ggl_os_home(void) {
    return getenv("HOME");
}

void ggl_os_take_arguments(int *argc, char ***argv) {
    (void)argc, (void)argv;
}

char **ggl_os_environment(void) {
    return environ;
}

void ggl_os_exit_now(int code) {
    _exit(code);
}

int64_t ggl_os_peak_memory(void) {
#ifdef __APPLE__
    const int64_t unit = 1;
#else
    const int64_t unit = 1024;
#endif
    struct rusage r;
    return getrusage(RUSAGE_SELF, &r) == 0 ? (int64_t)r.ru_maxrss * unit : 0;
}

uint64_t ggl_os_heap(void) {
#ifdef HAS_MALLINFO2
    const struct mallinfo2 m = mallinfo2();
    return (uint64_t)m.uordblks + (uint64_t)m.hblkhd;
#else
    return 0;
#endif
}

bool ggl_os_random(void *to, size_t n) {
    enum { MOST = 256 }; /* of a call */
    for (size_t at = 0; at < n; at += MOST)
        if (getentropy((char *)to + at, n - at < MOST ? n - at : MOST) != 0)
            return false;
    return true;
}

/* --- the machine ------------------------------------------------------------------------------ */

size_t ggl_os_page_size(void) {
    const long size = sysconf(_SC_PAGESIZE);
    return size > 0 ? (size_t)size : 4096;
}

int ggl_os_n_processors(void) {
#ifdef __APPLE__ /* the fast ones: the others would only make them wait */
    int fast = 0;
    size_t size = sizeof fast;
    if (sysctlbyname("hw.perflevel0.logicalcpu", &fast, &size, NULL, 0) == 0 && fast > 0)
        return fast;
#endif
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

size_t ggl_os_last_cache(void) {
#ifdef _SC_LEVEL3_CACHE_SIZE
    const long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return size > 0 ? (size_t)size : 0;
#else
    return 0;
#endif
}

uint64_t ggl_os_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES);
    return pages > 0 ? (uint64_t)pages * ggl_os_page_size() : 0;
}

uint64_t ggl_os_memory_left(void) {
    return 0; /* Linux: files say it (memory_left.c) */
}

uint64_t ggl_os_limit_addresses(void) {
    struct rlimit l;
    return getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY ? (uint64_t)l.rlim_cur
                                                                        : UINT64_MAX;
}

uint64_t ggl_os_allow_files(uint64_t n) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return UINT64_MAX;
    if (l.rlim_cur < n) {
        l.rlim_cur = l.rlim_max < n ? l.rlim_max : (rlim_t)n;
        (void)setrlimit(RLIMIT_NOFILE, &l);
        (void)getrlimit(RLIMIT_NOFILE, &l);
    }
    return l.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)l.rlim_cur;
}

/* --- how it ends ------------------------------------------------------------------------------ */

/* open() takes the lowest free number. Standard output is opened for reading, so that writing to it fails. If there is no /dev/null, "/" is opened instead. */
void ggl_os_begin_streams(void) {
    static const int mode[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", mode[fd]) < 0)
            (void)!open("/", O_RDONLY);
}

void ggl_os_on_stop(void (*stop)(int number)) {
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction act = {.sa_handler = stop}, before;
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (stops[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) != 0 ||
            before.sa_handler != SIG_IGN) /* ignored before, as by nohup: stays so */
            sigaction(stops[i], &act, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

void ggl_os_hold_stops(bool holds) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    (void)pthread_sigmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void ggl_os_end_by(int number) {
    signal(number, SIG_DFL);
    raise(number); /* delivered when the handler returns */
}

static void (*lost_page)(const void *address);

static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    if (info->si_code > 0)
        lost_page(info->si_addr);
    signal(number, SIG_DFL);
    if (info->si_code <= 0) /* it was sent; else the fault happens again */
        raise(number);
}

void ggl_os_on_lost_page(void (*lost)(const void *address)) {
    struct sigaction act = {.sa_flags = SA_SIGINFO};
    act.sa_sigaction = on_bus_error;
    lost_page = lost;
    sigaction(SIGBUS, &act, NULL);
}

void ggl_os_wait_for_end(void) {
    for (;;)
        pause();
}

_Static_assert(sizeof(sigset_t) <= sizeof(os_signals), "a set of signals fits");

void ggl_os_signals_hold(os_signals *s) {
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&all, faults[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    memcpy(s->was, &before, sizeof before);
}

void ggl_os_signals_release(const os_signals *s) {
    sigset_t before;
    memcpy(&before, s->was, sizeof before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool ggl_os_set_cpus(const uint64_t *set, size_t n) {
#ifdef __linux__
    const size_t size = CPU_ALLOC_SIZE(n * 64);
    cpu_set_t *cpus = CPU_ALLOC(n * 64);
    if (!cpus)
        return false;
    CPU_ZERO_S(size, cpus);
    for (size_t i = 0; i < n * 64; i++)
        if (set[i / 64] >> i % 64 & 1)
            CPU_SET_S(i, size, cpus);
    const bool done = sched_setaffinity(0, size, cpus) == 0;
    CPU_FREE(cpus);
    return done;
#else
    (void)set, (void)n;
    errno = ENOSYS;
    return false;
#endif
}

bool ggl_os_set_priority(int priority) {
    static const int nice[] = {10, 0, -5, -10};
#ifdef __linux__
    if (priority > 2) {
        const struct sched_param p = {.sched_priority = 1};
        return syscall(SYS_sched_setscheduler, 0, SCHED_RR, &p) ==
               0; /* musl's function always fails */
    }
#endif
    return setpriority(PRIO_PROCESS, 0, nice[priority < 2 ? priority + 1 : 3]) == 0;
}

/* --- bells ------------------------------------------------------------------------------------ */

struct os_bell {
    int end[2]; /* of a pipe: a byte in it has been rung */
};

os_bell *ggl_os_bell_new(void) {
    os_bell *b = malloc(sizeof *b);
    if (!b)
        return NULL;
    if (pipe(b->end) != 0) {
        const int error = errno;
        free(b);
        errno = error;
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        (void)fcntl(b->end[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(b->end[i], F_SETFL, O_NONBLOCK);
    }
    return b;
}

void ggl_os_bell_free(os_bell *b) {
    for (int i = 0; b && i < 2; i++)
        close(b->end[i]);
    free(b);
}

void ggl_os_bell_ring(os_bell *b) {
    const int error = errno;
    (void)!write(b->end[1], "", 1);
    errno = error;
}

void ggl_os_bell_wait(os_bell *b, int ms) {
    char bytes[64];
    struct pollfd f = {.fd = b->end[0], .events = POLLIN};
    while (poll(&f, 1, ms) < 0 && errno == EINTR)
        ;
    (void)!read(b->end[0], bytes, sizeof bytes);
}
