/* os_cpus.h for systems that do not say which CPUs a thread has, or whose way is not known here. */
#include "ggl/internal/os_cpus.h"

#include <stdlib.h>

const bool ggl_os_has_cpu_files = false;

bool ggl_os_cpus_new(os_cpus *c, int n) {
    const size_t words = ((size_t)n + 63) / 64;
    uint64_t *set = calloc(words ? words : 1, sizeof *set);
    if (set)
        *c = (os_cpus){set, (int)(words * 64)};
    return set != NULL;
}

void ggl_os_cpus_free(os_cpus *c) {
    free(c->set);
    *c = (os_cpus){NULL, 0};
}

bool ggl_os_cpus_get(os_cpus *c) {
    (void)c;
    return false;
}

void ggl_os_cpus_bind(const os_cpus *c) {
    (void)c;
}

void ggl_os_spread_pages(void *p, size_t size, const int *node, int n) {
    (void)p, (void)size, (void)node, (void)n;
}
