/* Folders of files such as those that Linux shows below /sys and /proc, of machines that are pretended. */
#ifndef SYSTEM_FILES_H
#define SYSTEM_FILES_H

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "test.h"

/* The folder that stands for the system's root; it is removed by system_end. */
static const char *system_root(void) {
    return test_path("root");
}

/* Writes a file below the root; its path and its text are printed as by printf, the path's arguments first. */
__attribute__((format(printf, 2, 3))) TEST_UNUSED static void system_file(const char *text,
                                                                          const char *path, ...) {
    char name[2048];
    int n = snprintf(name, sizeof name, "%s", system_root());
    const int begin = n;
    va_list args;
    va_start(args, path);
    n += vsnprintf(name + n, sizeof name - (size_t)n, path, args);
    va_end(args);
    mkdir(system_root(), 0700);
    for (int i = begin + 1; i < n; i++)
        if (name[i] == '/') {
            name[i] = 0;
            mkdir(name, 0700);
            name[i] = '/';
        }
    CHECK_MSG(test_write_file(name, text, strlen(text)), "%s: %s", name, strerror(errno));
}

static int system_remove(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)st, (void)kind, (void)at;
    return remove(path);
}

TEST_UNUSED static void system_end(void) {
    nftw(system_root(), system_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes a number for a CPU. */
TEST_UNUSED static void system_cpu(int cpu, const char *file, long number) {
    char text[32];
    snprintf(text, sizeof text, "%ld\n", number);
    system_file(text, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
}

/* Lets CPUs first .. first + n - 1 share a core. */
TEST_UNUSED static void system_siblings(int first, int n) {
    char text[32];
    snprintf(text, sizeof text, "%d-%d\n", first, first + n - 1);
    for (int i = 0; i < n; i++)
        system_file(text, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", first + i);
}

#endif
