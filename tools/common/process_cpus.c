/* CPUs and priority of the process; see process.h. */
#include <errno.h>
#include <string.h>

#include "process.h"
#include "report.h"
#include "ggl/internal/os_process.h"

static int hex_digit(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *p = c ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;
    return p ? (int)(p - digits) : -1;
}

int process_set_cpus(const char *tool, const char *mask) {
    if (!mask)
        return -1;
    enum { MOST = 1024 };
    const char *p = mask[0] == '0' && (mask[1] == 'x' || mask[1] == 'X') ? mask + 2 : mask;
    const size_t n = strlen(p);
    uint64_t set[MOST / 64] = {0};
    int n_cpus = 0;
    for (size_t i = 0; i < n; i++) {
        const int digit = hex_digit(p[n - 1 - i]);
        if (digit < 0)
            return tool_error(tool, 2, "--cpu-mask '%s' is not a hexadecimal number", mask);
        for (size_t b = 0; b < 4; b++)
            if (digit >> b & 1) {
                if (4 * i + b >= MOST)
                    return tool_error(tool, 2, "--cpu-mask names CPU %zu; at most %d are supported",
                                      4 * i + b, MOST);
                set[(4 * i + b) / 64] |= (uint64_t)1 << (4 * i + b) % 64;
                n_cpus++;
            }
    }
    if (n_cpus == 0)
        return tool_error(tool, 2, "--cpu-mask '%s' names no CPU", mask);
    if (!ggl_os_set_cpus(set, MOST / 64))
        return tool_error(tool, 1, "--cpu-mask %s: %s", mask,
                          errno == EINVAL   ? "this process may use none of these CPUs"
                          : errno == ENOSYS ? "not supported on this system"
                                            : strerror(errno));
    return -1;
}

void process_set_priority(const char *tool, int64_t priority) {
    if (priority != 0 && !ggl_os_set_priority((int)priority))
        (void)tool_error(tool, 0, "--prio %d is not permitted (%s); continuing without it",
                         (int)priority, strerror(errno));
}
