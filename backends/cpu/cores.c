#include "cores.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggl/internal/number.h"

enum { MANY = 1023, MOST_CPUS = 1 << 20 };

/* Reads the first line of a file into buf; false if it cannot be read. */
static bool first_line(const char *path, char *buf, size_t size) {
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    bool ok = fgets(buf, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* Returns the cores that the control group's quota (version 2, else 1) allows, rounded up; MANY if
 * there is no quota. */
static int quota_cores(void) {
    char line[256], path[600], group[256] = "";
    double quota = -1, period = 100000;
    FILE *f = fopen("/proc/self/cgroup", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(group, sizeof group, "%s", line + 3);
        }
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    if (first_line(path, line, sizeof line) ||
        first_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        size_t n = strlen(line), at = ggl_number_length(line, n);
        quota = at > 0 ? ggl_number_value(line, at) : -1; /* "max 100000" */
        if (at < n && ggl_number_length(line + at + 1, n - at - 1) > 0)
            period = ggl_number_value(line + at + 1, n - at - 1);
    } else if (first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line)) {
        quota = ggl_number_value(line, strlen(line));
        if (first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line))
            period = ggl_number_value(line, strlen(line));
    }
    if (quota <= 0 || period <= 0 || quota / period > MANY)
        return MANY;
    int n = (int)(quota / period);
    return n < quota / period ? n + 1 : n;
}

#ifdef __linux__
static bool is_allowed(const cpu_mask *m, long cpu) {
    return cpu >= 0 && cpu < m->n && CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE((size_t)m->n), m->set);
}

/* Returns the lowest allowed CPU among those that share a core with this one. */
static int first_sibling(const cpu_mask *m, int cpu) {
    char path[96], line[256];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    if (!first_line(path, line, sizeof line)) /* "0,4" or "0-1" */
        return cpu;
    for (const char *p = line; *p >= '0' && *p <= '9';) {
        char *end;
        long a = strtol(p, &end, 10), b = *end == '-' ? strtol(end + 1, &end, 10) : a;
        for (; a <= b && a < first; a++)
            if (is_allowed(m, a))
                first = (int)a;
        p = *end == ',' ? end + 1 : "";
    }
    return first;
}

int ggl_cpu_mask_cores(const cpu_mask *m) {
    int n = 0;
    for (int cpu = 0; cpu < m->n; cpu++)
        n += is_allowed(m, cpu) && first_sibling(m, cpu) == cpu;
    return n;
}

/* The system returns EINVAL if the set is smaller than its own, whose size is not known here. */
bool ggl_cpu_mask_get(cpu_mask *m, cpu_mask_reader *read) {
    for (m->n = CPU_SETSIZE; m->n <= MOST_CPUS; m->n *= 4) {
        m->set = CPU_ALLOC((size_t)m->n);
        if (!m->set)
            return false;
        if (read(0, CPU_ALLOC_SIZE((size_t)m->n), m->set) == 0)
            return true;
        CPU_FREE(m->set);
        if (errno != EINVAL)
            return false;
    }
    return false;
}

#endif

/* Returns the number of CPUs that this process may use; cores: CPUs that share a core count
 * once. */
static int count_allowed(bool cores) {
#ifdef __linux__
    cpu_mask m;
    if (ggl_cpu_mask_get(&m, sched_getaffinity)) {
        int n = cores ? ggl_cpu_mask_cores(&m) : CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)m.n), m.set);
        CPU_FREE(m.set);
        return n;
    }
#else
    (void)cores;
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : (int)n;
}

int ggl_cpu_default_threads(void) {
    int cores = count_allowed(true), quota = quota_cores();
    int n = cores < quota ? cores : quota;
    return n < 1 ? 1 : n > MANY ? MANY : n;
}

int ggl_cpu_allowed(void) {
    return count_allowed(false);
}
