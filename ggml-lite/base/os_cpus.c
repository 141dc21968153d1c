/* os_cpus.h: the part that is the same on all systems. */
#include "ggl/internal/os_cpus.h"

void ggl_os_cpus_add(os_cpus *c, int cpu) {
    c->set[cpu / 64] |= (uint64_t)1 << cpu % 64;
}

bool ggl_os_cpus_has(const os_cpus *c, int cpu) {
    return cpu >= 0 && cpu < c->n && (c->set[cpu / 64] >> cpu % 64 & 1);
}

int ggl_os_cpus_count(const os_cpus *c) {
    int count = 0;
    for (int cpu = 0; cpu < c->n; cpu++)
        count += ggl_os_cpus_has(c, cpu);
    return count;
}
