/* os_process.h for POSIX. */
#include "ggl/internal/os_process.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/random.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
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
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
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
