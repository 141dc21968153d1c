/* llm-bench cluster: what its files share. cluster.c reads the arguments; cluster_measure.c measures this machine; cluster_report.c
 * prints. cluster_model.h, cluster_plan.h, cluster_speed.h and pipeline.h predict. */
#ifndef TOOLS_BENCH_CLUSTER_H
#define TOOLS_BENCH_CLUSTER_H

#include "cluster_plan.h"

/* Measures how fast this machine's threads compute products with weights of the type, and attention. GGL_NOMEM, GGL_UNSUPPORTED: there is
 * no kernel for the type. */
GGL_NODISCARD ggl_status cluster_measure(cluster_speed *out, ggl_type type, int n_threads,
                                         ggl_error *err);

typedef struct cluster_row {
    cluster_work work;
    cluster_result result;
} cluster_row;

/* A number of ranks, and what was predicted. */
typedef struct cluster_table {
    cluster_plan plan;
    int n_needed;      /* ranks that would hold the model, if these do not; 0: no number would, */
    double least_most; /* as then this is the least that one of them needs */
    cluster_row *row;
    size_t n_rows;
} cluster_table;

enum { CLUSTER_MD, CLUSTER_JSON };
void cluster_print(const cluster_setup *s, const cluster_table *t, size_t n, int format);

#endif
