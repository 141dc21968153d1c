#include "nodes.h"
#include "ggl/internal/os_process.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>

static void add_allowed(void *ctx, int cpu) {
    const cpu_mask *const *to_from = ctx;
    const size_t size = CPU_ALLOC_SIZE((size_t)to_from[0]->n);
    if (CPU_ISSET_S((size_t)cpu, size, to_from[1]->set))
        CPU_SET_S((size_t)cpu, size, to_from[0]->set);
}

/* Reads the CPUs of a node into *out; returns 1, or 0 if the node does not exist or has none that the mask allows, or -1 if its
 * file makes no sense. On 1 the caller frees out->cpus. */
static int read_node(cpu_node *out, int id, const cpu_mask *m, const char *root) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", id);
    const size_t size = CPU_ALLOC_SIZE((size_t)m->n);
    *out = (cpu_node){.id = id, .cpus = {CPU_ALLOC((size_t)m->n), m->n}};
    if (!out->cpus.set)
        return -1;
    CPU_ZERO_S(size, out->cpus.set);
    const cpu_mask *to_from[] = {&out->cpus, m};
    const cpu_found found = ggl_cpu_read_list(root, path, m->n, add_allowed, (void *)to_from);
    const bool some = found == CPU_LIST_READ && CPU_COUNT_S(size, out->cpus.set) > 0;
    if (some)
        out->n_cores = ggl_cpu_cores_of(&out->cpus, root).all;
    else
        CPU_FREE(out->cpus.set);
    return some ? 1 : found == CPU_LIST_WRONG ? -1 : 0;
}

void ggl_cpu_nodes_of(cpu_nodes *out, const cpu_mask *m, const char *root) {
    int found = 0;
    out->n = 0;
    for (int id = 0; id < CPU_MAX_NODES && found >= 0; id++) {
        found = read_node(&out->at[out->n], id, m, root);
        out->n += found > 0;
    }
    if (found < 0 || out->n < 2)
        ggl_cpu_nodes_fini(out);
}

void ggl_cpu_nodes_init(cpu_nodes *out) {
    cpu_mask m;
    out->n = 0;
    if (!ggl_cpu_mask_get(&m, sched_getaffinity))
        return;
    ggl_cpu_nodes_of(out, &m, ggl_cpu_root());
    CPU_FREE(m.set);
}

void ggl_cpu_nodes_fini(cpu_nodes *n) {
    for (int i = 0; i < n->n; i++)
        CPU_FREE(n->at[i].cpus.set);
    n->n = 0;
}

void ggl_cpu_node_bind(const cpu_node *n) {
    (void)sched_setaffinity(0, CPU_ALLOC_SIZE((size_t)n->cpus.n), n->cpus.set);
}

void ggl_cpu_nodes_interleave(const cpu_nodes *n, void *p, size_t size) {
#ifdef SYS_mbind
    enum { INTERLEAVE = 3 }; /* MPOL_INTERLEAVE of the kernel's interface */
    const uintptr_t page = ggl_os_page_size(), first = ((uintptr_t)p + page - 1) / page * page,
                    last = ((uintptr_t)p + size) / page * page;
    unsigned long ids[CPU_MAX_NODES / (8 * sizeof(long)) + 1] = {0};
    for (int i = 0; i < n->n; i++)
        ids[(size_t)n->at[i].id / (8 * sizeof(long))] |= 1ul << n->at[i].id % (8 * sizeof(long));
    if (n->n > 1 && last > first)
        (void)syscall(SYS_mbind, first, last - first, INTERLEAVE, ids,
                      (unsigned long)CPU_MAX_NODES + 1, 0);
#else
    (void)n, (void)p, (void)size;
#endif
}

#else

void ggl_cpu_nodes_init(cpu_nodes *out) {
    out->n = 0;
}

void ggl_cpu_nodes_fini(cpu_nodes *n) {
    n->n = 0;
}

void ggl_cpu_node_bind(const cpu_node *n) {
    (void)n;
}

void ggl_cpu_nodes_interleave(const cpu_nodes *n, void *p, size_t size) {
    (void)n, (void)p, (void)size;
}

#endif
