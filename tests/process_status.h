/* What Linux says about the test's process. */
#ifndef TEST_PROCESS_STATUS_H
#define TEST_PROCESS_STATUS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number after a name of /proc/self/status, such as "VmRSS:" (in KiB) or "Threads:"; 0: it is not known. */
static inline long long test_status(const char *name) {
    char line[256];
    long long n = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            n = strtoll(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return n;
}

/* Bytes of mappings for which huge pages were asked (the flag hg of smaps); -1: it is not known. */
static inline long long test_huge_bytes(void) {
    char line[512];
    long long size = 0, sum = 0, n_flags = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        (void)sscanf(line, "Size: %lld", &size);
        const int has_flags = strncmp(line, "VmFlags:", 8) == 0;
        n_flags += has_flags;
        sum += has_flags && strstr(line, " hg") ? size << 10 : 0;
    }
    if (f)
        fclose(f);
    return n_flags > 0 ? sum : -1;
}

#endif
