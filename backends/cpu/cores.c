#include "cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/internal/number.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_process.h"

enum { MOST_CPUS = 1 << 20, MOST_CORES = 1024 /* whose kinds are told apart */, PATH = 4096 };

/* A core is big from half of the fastest core's speed on, and useful from a third on. */
static const double BIG = 1.0 / 2, USEFUL = 1.0 / 3;

/* How fast an efficient core of Intel's is beside a performance core at the same clock: its vectors have half the width. */
static const double EFFICIENT = 0.5;

const char *ggl_cpu_root(void) {
    const char *root = getenv("GGL_CPU_ROOT");
    return root ? root : "";
}

/* Opens the file root + path; NULL if that cannot be done, or if it is no plain file, which might have no end. */
static FILE *open_file(const char *root, const char *path) {
    char name[PATH];
    return snprintf(name, sizeof name, "%s%s", root, path) < (int)sizeof name
               ? ggl_os_fopen_plain(name)
               : NULL;
}

/* Reads the first line of the file root + path into buf; false if it cannot be read. */
static bool first_line(const char *root, const char *path, char *buf, size_t size) {
    FILE *f = open_file(root, path);
    if (!f)
        return false;
    bool ok = fgets(buf, (int)size, f) != NULL;
    fclose(f);
    return ok;
}

/* Returns the group of the process in control groups of version 2: "/user.slice"; "" if it is not known. */
static void group_of(const char *root, char *group, size_t size) {
    char line[256];
    *group = 0;
    FILE *f = open_file(root, "/proc/self/cgroup");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "0::", 3) == 0) {
            line[strcspn(line, "\n")] = 0;
            snprintf(group, size, "%s", line + 3);
        }
    if (f)
        fclose(f);
}

int ggl_cpu_quota(const char *root) {
    char line[256], path[600], group[256];
    double quota = -1, period = 100000;
    group_of(root, group, sizeof group);
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
    if (first_line(root, path, line, sizeof line) ||
        first_line(root, "/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        size_t n = strlen(line), at = ggl_number_length(line, n);
        quota = at > 0 ? ggl_number_value(line, at) : -1; /* "max 100000" */
        if (at < n && ggl_number_length(line + at + 1, n - at - 1) > 0)
            period = ggl_number_value(line + at + 1, n - at - 1);
    } else if (first_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line)) {
        quota = ggl_number_value(line, strlen(line));
        if (first_line(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line))
            period = ggl_number_value(line, strlen(line));
    }
    if (!(quota > 0 && period > 0 && quota / period <= GGL_MAX_THREADS)) /* NaN, too */
        return GGL_MAX_THREADS;
    int n = (int)(quota / period);
    return n < quota / period ? n + 1 : n;
}

/* --- sets of CPUs --------------------------------------------------------------------------- */

/* Reads a number of digits from f, at most MOST_CPUS; *c: the next character. Returns -1 if there is none. */
static long list_number(FILE *f, int *c) {
    long n = -1;
    for (; *c >= '0' && *c <= '9'; *c = fgetc(f))
        n = n > MOST_CPUS ? n : (n < 0 ? 0 : n) * 10 + (*c - '0');
    return n > MOST_CPUS ? MOST_CPUS : n;
}

cpu_found ggl_cpu_read_list(const char *root, const char *path, int n,
                            void (*add)(void *ctx, int cpu), void *ctx) {
    FILE *f = open_file(root, path);
    if (!f)
        return CPU_LIST_MISSING;
    int c = fgetc(f);
    bool ok = true;
    for (bool more = c != '\n' && c != EOF; ok && more; c = more ? fgetc(f) : c) {
        const long a = list_number(f, &c);
        long b = a;
        if (c == '-') {
            c = fgetc(f);
            b = list_number(f, &c);
        }
        ok = a >= 0 && b >= a;
        for (long cpu = a; ok && cpu <= b && cpu < n; cpu++)
            add(ctx, (int)cpu);
        more = c == ',';
    }
    ok = ok && (c == '\n' || c == EOF);
    fclose(f);
    return ok ? CPU_LIST_READ : CPU_LIST_WRONG;
}

/* --- kinds of cores ------------------------------------------------------------------------- */

/* For ggl_cpu_read_list: the lowest allowed CPU of a list. */
typedef struct lowest {
    const os_cpus *m;
    int cpu;
} lowest;

static void add_lowest(void *ctx, int cpu) {
    lowest *l = ctx;
    if (cpu < l->cpu && ggl_os_cpus_has(l->m, cpu))
        l->cpu = cpu;
}

/* Returns the lowest allowed CPU among those that share a core with this one. */
static int first_sibling(const char *root, const os_cpus *m, int cpu) {
    char path[96];
    lowest l = {m, cpu};
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    return ggl_cpu_read_list(root, path, m->n, add_lowest, &l) == CPU_LIST_READ ? l.cpu : cpu;
}

/* Returns the number in the file NAME of a CPU's folder; 0: there is none. */
static double cpu_number(const char *root, int cpu, const char *name) {
    char path[128], line[64];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    if (!first_line(root, path, line, sizeof line))
        return 0;
    const size_t n = strspn(line, "0123456789");
    return n > 0 && n < 10 && (line[n] == '\n' || !line[n]) ? ggl_number_value(line, n) : 0;
}

/* A core, by its lowest allowed CPU. Speeds are relative; 0: not known. */
typedef struct core {
    int cpu;
    bool efficient;
    double capacity, clock;
} core;

typedef struct core_list {
    core at[MOST_CORES];
    int n, n_efficient;
} core_list;

static void add_efficient(void *ctx, int cpu) {
    core_list *l = ctx;
    for (int i = 0; i < l->n; i++)
        if (l->at[i].cpu == cpu && !l->at[i].efficient) {
            l->at[i].efficient = true;
            l->n_efficient++;
        }
}

/* Finds the cores of the mask, and what the system says about the speeds of the first MOST_CORES; returns how many there are. */
static int find_cores(core_list *l, const os_cpus *m, const char *root) {
    int n = 0;
    l->n = l->n_efficient = 0;
    for (int cpu = 0; cpu < m->n; cpu++) {
        if (!ggl_os_cpus_has(m, cpu) || first_sibling(root, m, cpu) != cpu)
            continue;
        if (l->n < MOST_CORES)
            l->at[l->n++] = (core){cpu, false, cpu_number(root, cpu, "cpu_capacity"),
                                   cpu_number(root, cpu, "cpufreq/cpuinfo_max_freq")};
        n++;
    }
    if (ggl_cpu_read_list(root, "/sys/devices/cpu_atom/cpus", m->n, add_efficient, l) !=
        CPU_LIST_READ)
        l->n_efficient = 0;
    return n;
}

/* What the system says about every core of a list. */
typedef struct known {
    bool capacity, clock;
    bool kinds; /* some are efficient ones, and some are not */
} known;

/* Returns the core's speed: its capacity, or what its kind and its clock let expect. Clocks alone are a weak hint: those of
 * cores of one kind differ a little, but not by a half. */
static double speed_of(const core *c, const known *k) {
    if (k->capacity)
        return c->capacity;
    return (k->clock ? c->clock : 1) * (k->kinds && c->efficient ? EFFICIENT : 1);
}

static cpu_cores count_kinds(const core_list *l) {
    known k = {true, true, l->n_efficient > 0 && l->n_efficient < l->n};
    double most = 0;
    for (int i = 0; i < l->n; i++) {
        k.capacity = k.capacity && l->at[i].capacity > 0;
        k.clock = k.clock && l->at[i].clock > 0;
    }
    for (int i = 0; i < l->n; i++) {
        const double speed = speed_of(&l->at[i], &k);
        most = speed > most ? speed : most;
    }
    cpu_cores out = {.all = l->n};
    for (int i = 0; i < l->n; i++) {
        const double speed = speed_of(&l->at[i], &k);
        const bool small = !k.capacity && k.kinds && l->at[i].efficient;
        out.big += !small && speed >= BIG * most;
        out.useful += speed >= USEFUL * most;
    }
    return out;
}

cpu_cores ggl_cpu_cores_of(const os_cpus *m, const char *root) {
    core_list l;
    const int n = find_cores(&l, m, root);
    return n > MOST_CORES ? (cpu_cores){n, n, n} : count_kinds(&l);
}

/* --- what this process may use --------------------------------------------------------------- */

static cpu_cores cores_here(void) {
    os_cpus m;
    if (ggl_os_cpus_get(&m)) {
        const cpu_cores out = ggl_cpu_cores_of(&m, ggl_cpu_root());
        ggl_os_cpus_free(&m);
        return out;
    }
    const int n = ggl_os_n_processors();
    return (cpu_cores){n, n, n};
}

/* Returns the threads for so many cores. */
static int within(int n, int quota) {
    n = n < quota ? n : quota;
    return n < 1 ? 1 : n > GGL_MAX_THREADS ? GGL_MAX_THREADS : n;
}

cpu_threads ggl_cpu_default_threads(void) {
    const cpu_cores cores = cores_here();
    const int quota = ggl_os_has_cpu_files ? ggl_cpu_quota(ggl_cpu_root()) : GGL_MAX_THREADS;
    return (cpu_threads){within(cores.big, quota), within(cores.useful, quota)};
}

int ggl_cpu_allowed(void) {
    os_cpus m;
    if (!ggl_os_cpus_get(&m))
        return ggl_os_n_processors();
    const int n = ggl_os_cpus_count(&m);
    ggl_os_cpus_free(&m);
    return n;
}
