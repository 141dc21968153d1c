/* Which CPUs a process may use: how many, on machines that have more than a cpu_set_t, of which kinds, and on which nodes. */
#include "nodes.h"

#include <errno.h>

#include "ggl/backends.h"
#include "system_files.h"
#include "test.h"

/* The layer's functions with a mask of a test's. */
static int read_mask(pid_t pid, size_t size, cpu_set_t *set);
#define sched_getaffinity(pid, size, set) mask_reader(pid, size, set)
static int (*mask_reader)(pid_t pid, size_t size, cpu_set_t *set) = read_mask;
#define ggl_os_cpus_new      new_pretended
#define ggl_os_cpus_free     free_pretended
#define ggl_os_cpus_get      get_pretended
#define ggl_os_cpus_bind     bind_pretended
#define ggl_os_spread_pages  spread_pretended
#define ggl_os_has_cpu_files has_pretended_files
bool new_pretended(os_cpus *c, int n);
void free_pretended(os_cpus *c);
bool get_pretended(os_cpus *c);
void bind_pretended(const os_cpus *c);
void spread_pretended(void *p, size_t size, const int *node, int n);
#include "base/os_cpus_linux.c"
#undef sched_getaffinity
#undef ggl_os_cpus_new
#undef ggl_os_cpus_free
#undef ggl_os_cpus_get
#undef ggl_os_cpus_bind
#undef ggl_os_spread_pages
#undef ggl_os_has_cpu_files

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
        os_cpus m;
        REQUIRE(get_pretended(&m));
        CHECK(m.n >= n_cpus);
        CHECK_INT(ggl_os_cpus_count(&m), n_cpus / 4);
        int cores = ggl_cpu_cores_of(&m, "").all; /* this machine's own may share cores */
        CHECK_MSG(cores > n_cpus / 4 - 1024 && cores <= n_cpus / 4 && cores > 0, "%d cores", cores);
        ggl_os_cpus_free(&m);
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
    os_cpus m;
    mask_reader = fails;
    CHECK(!get_pretended(&m));
    mask_reader = never_enough;
    CHECK(!get_pretended(&m));
    const cpu_threads threads = ggl_cpu_default_threads();
    CHECK(threads.token >= 1 && ggl_cpu_allowed() >= threads.token);
    CHECK(threads.batch >= threads.token);
}

/* --- kinds of cores -------------------------------------------------------------------------- */

enum { ROOM = 1024 }; /* for CPUs */

/* Returns the cores of the pretended machine whose CPUs first .. last are allowed. */
static cpu_cores count(int first, int last) {
    uint64_t set[ROOM / 64] = {0};
    os_cpus m = {set, ROOM};
    for (int i = first; i <= last; i++)
        ggl_os_cpus_add(&m, i);
    return ggl_cpu_cores_of(&m, system_root());
}

static void check_counts(const char *what, cpu_cores got, int all, int big, int useful) {
    CHECK_MSG(got.all == all && got.big == big && got.useful == useful,
              "%s: %d cores, %d big, %d useful; expected %d, %d, %d", what, got.all, got.big,
              got.useful, all, big, useful);
}

/* 8 cores with two threads each (CPUs 0 to 15) and 8 efficient ones, as a 12900K. The best two cores have another clock. */
static void write_12900k(void) {
    for (int i = 0; i < 16; i++)
        system_cpu(i, "cpufreq/cpuinfo_max_freq", i >= 8 && i < 12 ? 5200000 : 5100000);
    for (int i = 0; i < 16; i += 2)
        system_siblings(i, 2);
    for (int i = 16; i < 24; i++) {
        system_cpu(i, "cpufreq/cpuinfo_max_freq", 3900000);
        system_siblings(i, 1);
    }
    system_file("0-15\n", "/sys/devices/cpu_core/cpus");
    system_file("16-23\n", "/sys/devices/cpu_atom/cpus");
}

TEST(performance_and_efficient_cores) {
    write_12900k();
    check_counts("all", count(0, 23), 16, 8, 16);
    check_counts("performance cores only", count(0, 15), 8, 8, 8);
    check_counts("efficient cores only", count(16, 23), 8, 8, 8);
    check_counts("one thread of a core, and 8", count(15, 23), 9, 1, 9);
    for (int i = 0; i < 24; i++) /* hidden by a virtual machine */
        system_file("", "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", i);
    check_counts("no clocks", count(0, 23), 16, 8, 16);
    system_end();
}

/* 6 performance cores with two threads each, 8 efficient ones, and two slow ones on another die, as a Core Ultra 7 155H. */
TEST(three_kinds) {
    for (int i = 0; i < 12; i += 2)
        system_siblings(i, 2);
    for (int i = 0; i < 22; i++)
        system_cpu(i, "cpufreq/cpuinfo_max_freq", i < 12 ? 4800000 : i < 20 ? 3800000 : 2500000);
    system_file("0-11\n", "/sys/devices/cpu_core/cpus");
    system_file("12-21\n", "/sys/devices/cpu_atom/cpus");
    check_counts("155H", count(0, 21), 16, 6, 14);
    check_counts("the slow ones alone", count(20, 21), 2, 2, 2);
    system_end();
}

TEST(capacities) {
    static const struct {
        const char *name;
        int n, capacity[8], big, useful;
    } machine[] = {
        {"X1, A78, A55", 8, {250, 250, 250, 250, 870, 870, 870, 1024}, 4, 4},
        {"two X1, two A76, four A55", 8, {124, 124, 124, 124, 427, 427, 1024, 1024}, 2, 4},
        {"A76 and A55", 8, {397, 397, 397, 397, 1024, 1024, 1024, 1024}, 4, 8},
        {"four A76", 4, {1024, 1024, 1024, 1024}, 4, 4},
        {"four slow ones", 4, {446, 446, 446, 446}, 4, 4},
    };
    for (size_t k = 0; k < sizeof machine / sizeof *machine; k++) {
        for (int i = 0; i < machine[k].n; i++)
            system_cpu(i, "cpu_capacity", machine[k].capacity[i]);
        check_counts(machine[k].name, count(0, machine[k].n - 1), machine[k].n, machine[k].big,
                     machine[k].useful);
        if (machine[k].capacity[0] < machine[k].capacity[3]) /* a mask of the little ones */
            check_counts("little ones", count(0, 1), 2, 2, 2);
        system_end();
    }
}

/* Clocks alone: those of single cores differ, and compact cores are slower, but all of them help. */
TEST(clocks) {
    for (int i = 0; i < 6; i++)
        system_cpu(i, "cpufreq/cpuinfo_max_freq", i < 2 ? 5000000 : 3600000);
    check_counts("compact cores", count(0, 5), 6, 6, 6);
    for (int i = 2; i < 6; i++)
        system_cpu(i, "cpufreq/cpuinfo_max_freq", 2000000);
    check_counts("slow cores", count(0, 5), 6, 2, 6);
    system_file("", "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", 5);
    check_counts("one clock is not known", count(0, 5), 6, 6, 6);
    system_end();
}

/* CPUs that are offline are not in the mask, but their files may be there. */
TEST(offline) {
    for (int i = 0; i < 8; i++)
        system_cpu(i, "cpu_capacity", i < 4 ? 300 : 1024);
    check_counts("big cores offline", count(0, 3), 4, 4, 4);
    system_end();
}

TEST(files_that_make_no_sense) {
    check_counts("no files", count(0, 7), 8, 8, 8);
    static const char *const wrong[] = {"",      "\n",       "0-999999999999999999999\n",
                                        "7-0\n", "x\n",      "0-\n",
                                        "-\n",   "0,\n",     "0-3x\n",
                                        "0 1\n", "0-3,,5\n", "4294967296\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (int cpu = 0; cpu < 4; cpu++) {
            system_file(wrong[i], "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                        cpu);
            system_file(wrong[i], "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpu);
            system_file(wrong[i], "/sys/devices/system/cpu/cpu%d/cpufreq/cpuinfo_max_freq", cpu);
        }
        system_file(wrong[i], "/sys/devices/cpu_atom/cpus");
        const cpu_cores got = count(0, 3);
        CHECK_MSG(got.all >= 1 && got.all <= 4 && got.big == got.all && got.useful == got.all,
                  "\"%s\": %d cores, %d big, %d useful", wrong[i], got.all, got.big, got.useful);
        system_end();
    }
    char many[9000]; /* a list longer than any buffer: CPUs that share a core */
    int n = 0;
    for (int i = 0; i < 1000; i++)
        n += snprintf(many + n, sizeof many - (size_t)n, "%s%d", i ? "," : "", i);
    for (int cpu = 0; cpu < 1000; cpu++)
        system_file(many, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    check_counts("one core", count(1, 999), 1, 1, 1);
    system_end();
}

TEST(quotas) {
    static const struct {
        const char *path, *text;
        int cores;
    } file[] = {
        {"/sys/fs/cgroup/cpu.max", "250000 100000\n", 3},
        {"/sys/fs/cgroup/cpu.max", "max 100000\n", GGL_MAX_THREADS},
        {"/sys/fs/cgroup/cpu.max", "1000\n", 1},
        {"/sys/fs/cgroup/cpu.max", "200000 0\n", GGL_MAX_THREADS},
        {"/sys/fs/cgroup/cpu.max", "1e300 1\n", GGL_MAX_THREADS},
        {"/sys/fs/cgroup/cpu.max", "nonsense\n", GGL_MAX_THREADS},
        {"/sys/fs/cgroup/cpu.max", "1e999 1e999\n", GGL_MAX_THREADS}, /* NaN */
        {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n", 4},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n", 2},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n", GGL_MAX_THREADS},
    };
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        system_file("12:cpu:/x\n0::/a/b\n", "/proc/self/cgroup");
        system_file(file[i].text, "%s", file[i].path);
        CHECK_INT(ggl_cpu_quota(system_root()), file[i].cores);
        system_end();
    }
    CHECK_INT(ggl_cpu_quota(system_root()), GGL_MAX_THREADS);
}

/* What is no plain file is not read: it may have no end, or nobody who writes to it. */
TEST(no_plain_files) {
    char path[2][2048];
    snprintf(path[0], sizeof path[0], "%s/sys/fs/cgroup/cpu.max", system_root());
    snprintf(path[1], sizeof path[1], "%s/proc/self/cgroup", system_root());
    system_file("", "/sys/fs/cgroup/cpu.max");
    system_file("", "/proc/self/cgroup");
    REQUIRE(remove(path[0]) == 0 && mkfifo(path[0], 0600) == 0);
    REQUIRE(remove(path[1]) == 0 && symlink("/dev/zero", path[1]) == 0);
    CHECK_INT(ggl_cpu_quota(system_root()), GGL_MAX_THREADS);
    system_end();
}

/* --- the defaults of a backend ----------------------------------------------------------------- */

ggl_status ggl_cpu_open(ggl_backend **out, const ggl_backend_params *params, ggl_error *err);

/* Opens a backend with these numbers of threads, 0: none is given, and compares its text. */
static void check_threads(int n, int n_batch, const char *begins) {
    ggl_backend *b;
    ggl_error err = {0};
    const ggl_backend_params p = {.size = sizeof p, .n_threads = n, .n_threads_batch = n_batch};
    setenv("GGL_CPU_ROOT", system_root(), 1);
    const ggl_status st = ggl_cpu_open(&b, &p, &err);
    unsetenv("GGL_CPU_ROOT");
    REQUIRE_OK(st, &err);
    CHECK_MSG(strncmp(b->description, begins, strlen(begins)) == 0, "-t %d -tb %d: %s, expected %s",
              n, n_batch, b->description, begins);
    b->v->close(b);
}

/* One big core, and all others small: what a user gives counts, and -t stands for both. */
TEST(threads_of_a_backend) {
    os_cpus m;
    REQUIRE(ggl_os_cpus_get(&m));
    int n = 0;
    for (int i = 0; i < m.n; i++)
        if (ggl_os_cpus_has(&m, i))
            system_cpu(i, "cpu_capacity", n++ ? 400 : 1024);
    ggl_os_cpus_free(&m);
    char begins[64];
    snprintf(begins, sizeof begins, n > 1 ? "1 thread (batches: %d), " : "1 thread, ", n);
    check_threads(0, 0, begins);
    check_threads(3, 0, "3 threads, ");
    check_threads(1, 2, "1 thread (batches: 2), ");
    check_threads(0, 3, "1 thread (batches: 3), ");
    system_file("100000 100000\n", "/sys/fs/cgroup/cpu.max");
    check_threads(0, 0, "1 thread, ");
    system_end();
}

/* --- nodes ------------------------------------------------------------------------------------ */

/* Sets *out to the nodes of the pretended machine whose CPUs first .. last are allowed; false: a check failed. */
static bool nodes_are(cpu_nodes *out, int first, int last, int n) {
    uint64_t set[ROOM / 64] = {0};
    os_cpus m = {set, ROOM};
    for (int i = first; i <= last; i++)
        ggl_os_cpus_add(&m, i);
    ggl_cpu_nodes_of(out, &m, system_root());
    return CHECK_INT(out->n, n);
}

/* Two sockets of 48 cores with two threads each, as Linux numbers them, and memory without CPUs as a third node. */
TEST(two_sockets) {
    cpu_nodes n;
    for (int i = 0; i < 96; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d,%d\n", i, i + 96);
        system_file(text, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i);
        system_file(text, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", i + 96);
    }
    system_file("0-47,96-143\n", "/sys/devices/system/node/node0/cpulist");
    system_file("\n", "/sys/devices/system/node/node2/cpulist");
    system_file("48-95,144-191\n", "/sys/devices/system/node/node8/cpulist");
    REQUIRE(nodes_are(&n, 0, 191, 2));
    CHECK_INT(n.at[0].id, 0);
    CHECK_INT(n.at[1].id, 8);
    CHECK_INT(n.at[0].n_cores, 48);
    CHECK_INT(n.at[1].n_cores, 48);
    CHECK_INT(ggl_os_cpus_count(&n.at[1].cpus), 96);
    ggl_cpu_nodes_fini(&n);
    REQUIRE(nodes_are(&n, 32, 63, 2)); /* a third of one */
    CHECK_INT(n.at[0].n_cores, 16);
    CHECK(ggl_os_cpus_has(&n.at[0].cpus, 32) && !ggl_os_cpus_has(&n.at[0].cpus, 31));
    ggl_cpu_nodes_fini(&n);
    (void)nodes_are(&n, 0, 47, 0); /* bound to one by its user */
    check_counts("two sockets", count(0, 191), 96, 96, 96);
    system_end();
}

TEST(nodes_that_make_no_sense) {
    cpu_nodes n;
    (void)nodes_are(&n, 0, 7, 0); /* no files */
    system_file("0-7\n", "/sys/devices/system/node/node0/cpulist");
    (void)nodes_are(&n, 0, 7, 0); /* one node */
    static const char *const wrong[] = {"x\n", "0-\n", "3-1\n", "0-3,\n", "0-3 4-7\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        system_file(wrong[i], "/sys/devices/system/node/node1/cpulist");
        (void)nodes_are(&n, 0, 7, 0);
    }
    system_file("0-99999999999999\n",
                "/sys/devices/system/node/node1/cpulist"); /* and so of node 0 */
    if (nodes_are(&n, 0, 7, 2))
        CHECK_INT(n.at[1].n_cores, 8);
    ggl_cpu_nodes_fini(&n);
    system_end();
}
