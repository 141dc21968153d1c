/* CPUs and priority of the process; see process.h. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "process.h"
#include "report.h"

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
