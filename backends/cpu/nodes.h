/* The nodes of memory (NUMA): on machines with several, each CPU reaches the memory of its own node sooner. */
#ifndef CPU_NODES_H
#define CPU_NODES_H

#include "cores.h"

enum { CPU_MAX_NODES = 64 };

typedef struct cpu_node {
    int id;       /* the system's number */
    int n_cores;  /* of which this process may use a CPU */
    os_cpus cpus; /* that this process may use */
} cpu_node;

/* The nodes that have CPUs which this process may use, by ascending id. n < 2: all memory is equally near. */
typedef struct cpu_nodes {
    cpu_node at[CPU_MAX_NODES];
    int n;
} cpu_nodes;

/* Sets *out to the nodes of this process. */
void ggl_cpu_nodes_init(cpu_nodes *out);
void ggl_cpu_nodes_fini(cpu_nodes *n);

/* Sets *out to the nodes of the CPUs in the set, as the files below `root` describe them. out->n is 0 if there are fewer
 * than two, or if a file makes no sense. */
void ggl_cpu_nodes_of(cpu_nodes *out, const os_cpus *m, const char *root);

/* Lets the calling thread run on the node's CPUs only. Nothing happens if the system refuses. */
void ggl_cpu_node_bind(const cpu_node *n);
/* Spreads the pages of memory that has not been touched yet over all nodes. Nothing happens if there are fewer than two, or
 * if the system refuses. */
void ggl_cpu_nodes_interleave(const cpu_nodes *n, void *p, size_t size);

#endif
