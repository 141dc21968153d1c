#include "nodes.h"

#include <stdio.h>

/* For ggl_cpu_read_list: adds the CPUs that `from` has. */
typedef struct adding {
    os_cpus *to;
    const os_cpus *from;
} adding;

static void add_allowed(void *ctx, int cpu) {
    const adding *a = ctx;
    if (ggl_os_cpus_has(a->from, cpu))
        ggl_os_cpus_add(a->to, cpu);
}

/* Reads the CPUs of a node into *out; returns 1, or 0 if the node does not exist or has none that the set allows, or -1 if its
 * file makes no sense. On 1 the caller frees out->cpus. */
static int read_node(cpu_node *out, int id, const os_cpus *m, const char *root) {
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", id);
    *out = (cpu_node){.id = id};
    if (!ggl_os_cpus_new(&out->cpus, m->n))
        return -1;
    adding a = {&out->cpus, m};
    const cpu_found found = ggl_cpu_read_list(root, path, m->n, add_allowed, &a);
    const bool some = found == CPU_LIST_READ && ggl_os_cpus_count(&out->cpus) > 0;
    if (some)
        out->n_cores = ggl_cpu_cores_of(&out->cpus, root).all;
    else
        ggl_os_cpus_free(&out->cpus);
    return some ? 1 : found == CPU_LIST_WRONG ? -1 : 0;
}

void ggl_cpu_nodes_of(cpu_nodes *out, const os_cpus *m, const char *root) {
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
    os_cpus m;
    out->n = 0;
    if (!ggl_os_cpus_get(&m))
        return;
    ggl_cpu_nodes_of(out, &m, ggl_cpu_root());
    ggl_os_cpus_free(&m);
}

void ggl_cpu_nodes_fini(cpu_nodes *n) {
    for (int i = 0; i < n->n; i++)
        ggl_os_cpus_free(&n->at[i].cpus);
    n->n = 0;
}

void ggl_cpu_node_bind(const cpu_node *n) {
    ggl_os_cpus_bind(&n->cpus);
}

void ggl_cpu_nodes_interleave(const cpu_nodes *n, void *p, size_t size) {
    int id[CPU_MAX_NODES];
    for (int i = 0; i < n->n; i++)
        id[i] = n->at[i].id;
    if (n->n > 1)
        ggl_os_spread_pages(p, size, id, n->n);
}
