#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "process.h"
#include "ggl/internal/os_process.h"

bool bench_brief(void) {
    return getenv("GGL_BRIEF_LIMITS") != NULL;
}

/* Finds the line "KEY : TEXT" in a file under /proc; returns TEXT in buf, or NULL. */
static const char *proc_value(const char *path, const char *key, char *buf, size_t size) {
    char line[512];
    FILE *f = ggl_os_fopen(path, "r");
    const char *found = NULL;
    while (f && !found && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(buf, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = buf;
    }
    if (f)
        fclose(f);
    return found;
}

const char *bench_cpu_name(char *buf, size_t size) {
    if (!proc_value("/proc/cpuinfo", "model name", buf, size) &&
        !proc_value("/proc/cpuinfo", "Model", buf, size))
        snprintf(buf, size, "unknown");
    return buf;
}

size_t bench_last_cache(void) {
    /* the system may count the caches of all of a socket's cores together */
    unsigned long kib = 0;
    FILE *f = ggl_os_fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
    if (f && fscanf(f, "%luK", &kib) != 1)
        kib = 0;
    if (f)
        fclose(f);
    return kib > 0 ? (size_t)kib << 10 : ggl_os_last_cache();
}

int64_t bench_peak_memory(void) {
    char buf[64];
    long long kib = 0;
    if (proc_value("/proc/self/status", "VmHWM", buf, sizeof buf) && sscanf(buf, "%lld", &kib) == 1)
        return (int64_t)kib * 1024;
    return ggl_os_peak_memory();
}

void bench_peak_memory_reset(void) {
    FILE *f = ggl_os_fopen("/proc/self/clear_refs", "w");
    if (f) {
        fputs("5\n", f); /* proc(5): resets the peak resident set size */
        fclose(f);
    }
}

const char *bench_time_text(char *buf, size_t size) {
    struct tm parts;
    if (!ggl_os_utc_parts((int64_t)time(NULL), &parts) ||
        strftime(buf, size, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        snprintf(buf, size, "unknown");
    return buf;
}
