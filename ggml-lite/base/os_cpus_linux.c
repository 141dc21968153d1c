/* os_cpus.h for Linux. */
#include "ggl/internal/os_cpus.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ggl/internal/os_process.h"

/* CPUs of a cpu_set_t; CPU_SETSIZE of musl is its bytes. */
enum { SET_BITS = 8 * sizeof(cpu_set_t), MOST_CPUS = 1 << 20, MOST_NODES = 64 };

const bool ggl_os_has_cpu_files = true;

/* Sets are in memory of the C library's own: without it, a process has its default threads, which is no error. */
bool ggl_os_cpus_new(os_cpus *c, int n) {
    const size_t words = ((size_t)n + 63) / 64, n_bits = (words ? words : 1) * 64;
    uint64_t *set = (uint64_t *)(void *)CPU_ALLOC(n_bits);
    if (!set)
        return false;
    memset(set, 0, n_bits / 8);
    *c = (os_cpus){set, (int)(words * 64)};
    return true;
}

void ggl_os_cpus_free(os_cpus *c) {
    CPU_FREE((cpu_set_t *)(void *)c->set);
    *c = (os_cpus){NULL, 0};
}

static bool copy_set(os_cpus *c, const cpu_set_t *set, int n) {
    if (!ggl_os_cpus_new(c, n))
        return false;
    for (int cpu = 0; cpu < n; cpu++)
        if (CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE((size_t)n), set))
            ggl_os_cpus_add(c, cpu);
    return true;
}

/* The system returns EINVAL if the set is smaller than its own, whose size is not known here. */
bool ggl_os_cpus_get(os_cpus *c) {
    for (int n = SET_BITS; n <= MOST_CPUS; n *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)n);
        if (!set)
            return false;
        const bool is_read = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)n), set) == 0;
        const int why = errno;
        const bool is_copied = is_read && copy_set(c, set, n);
        CPU_FREE(set);
        if (is_read || why != EINVAL)
            return is_copied;
    }
    return false;
}

void ggl_os_cpus_bind(const os_cpus *c) {
    (void)ggl_os_set_cpus(c->set, (size_t)c->n / 64); /* of Linux, for the calling thread */
}

void ggl_os_spread_pages(void *p, size_t size, const int *node, int n) {
#ifdef SYS_mbind
    enum { INTERLEAVE = 3 }; /* MPOL_INTERLEAVE of the kernel's interface */
    const uintptr_t page = ggl_os_page_size(), first = ((uintptr_t)p + page - 1) / page * page,
                    last = ((uintptr_t)p + size) / page * page;
    unsigned long ids[MOST_NODES / (8 * sizeof(long)) + 1] = {0};
    for (int i = 0; i < n; i++)
        ids[(size_t)node[i] / (8 * sizeof(long))] |= 1ul << node[i] % (8 * sizeof(long));
    if (last > first)
        (void)syscall(SYS_mbind, first, last - first, INTERLEAVE, ids,
                      (unsigned long)MOST_NODES + 1, 0);
#else
    (void)p, (void)size, (void)node, (void)n;
#endif
}
