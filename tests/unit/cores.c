/* How many CPUs a process may use, on machines that have more than a cpu_set_t. */
#include "cores.h"

#include <errno.h>

#include "test.h"

static int n_cpus; /* of the machine that is pretended: every fourth of them is allowed */

static int read_mask(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid;
    if (size * 8 < (size_t)n_cpus) {
        errno = EINVAL;
        return -1;
    }
    CPU_ZERO_S(size, set);
    for (int i = 0; i < n_cpus; i += 4)
        CPU_SET_S((size_t)i, size, set);
    return 0;
}

TEST(masks_of_any_size) {
    for (n_cpus = 64; n_cpus <= 1 << 18; n_cpus *= 2) {
        cpu_mask m;
        REQUIRE(ggl_cpu_mask_get(&m, read_mask));
        CHECK(m.n >= n_cpus);
        CHECK_INT(CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)m.n), m.set), n_cpus / 4);
        int cores = ggl_cpu_mask_cores(&m); /* this machine's own may share cores */
        CHECK_MSG(cores > n_cpus / 4 - 1024 && cores <= n_cpus / 4 && cores > 0, "%d cores", cores);
        CPU_FREE(m.set);
    }
}

static int fails(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid, (void)size, (void)set;
    errno = ENOSYS;
    return -1;
}

static int never_enough(pid_t pid, size_t size, cpu_set_t *set) {
    (void)pid, (void)size, (void)set;
    errno = EINVAL;
    return -1;
}

TEST(masks_that_cannot_be_read) {
    cpu_mask m;
    CHECK(!ggl_cpu_mask_get(&m, fails));
    CHECK(!ggl_cpu_mask_get(&m, never_enough));
    CHECK(ggl_cpu_default_threads() >= 1 && ggl_cpu_allowed() >= ggl_cpu_default_threads());
}
