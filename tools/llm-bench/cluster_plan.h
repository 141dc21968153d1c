/* A model on the ranks of a job: which layers each has, and how fast it then is. */
#ifndef TOOLS_BENCH_CLUSTER_PLAN_H
#define TOOLS_BENCH_CLUSTER_PLAN_H

#include "cluster_model.h"
#include "pipeline.h"

enum { CLUSTER_MOST_RANKS = 1024 };

typedef struct cluster_setup {
    const cluster_model *m;
    cluster_speed speed; /* of each rank */
    pipeline_link link;
    double memory; /* bytes of each rank; 0: enough */
    int64_t n_ubatch, n_ctx, n_sequences;
} cluster_setup;

typedef struct cluster_rank {
    int64_t first, n_layers;
    double weights, cache, values; /* bytes; values: about */
    cluster_traffic traffic;
} cluster_rank;

typedef struct cluster_plan {
    int n_ranks, n_used, n_lanes; /* n_used: ranks that have layers */
    cluster_rank *rank;
    double most; /* bytes on the rank with most */
    bool fits;
} cluster_plan;

/* Divides the layers as tools do in a job: equally, or fewer where the memory does not suffice. cluster_plan_fini frees it also after
 * an error. GGL_NOMEM. */
GGL_NODISCARD ggl_status cluster_plan_init(cluster_plan *p, const cluster_setup *s, int n_ranks,
                                           ggl_error *err);
void cluster_plan_fini(cluster_plan *p);

typedef struct cluster_work {
    int64_t n_prompt;    /* > 0: a prompt of so many tokens; else */
    int64_t n_gen;       /* so many tokens for each sequence */
    int64_t n_sequences; /* of these at once */
    int64_t n_depth;     /* tokens before them */
} cluster_work;

/* What would be another rank, or link: each is left out in turn, to see how much time it takes. */
typedef enum cluster_limit {
    CLUSTER_MEMORY,
    CLUSTER_ARITHMETIC,
    CLUSTER_LATENCY,
    CLUSTER_BANDWIDTH,
    CLUSTER_LIMITS
} cluster_limit;
extern const char *const cluster_limit_name[CLUSTER_LIMITS];

typedef struct cluster_result {
    double tokens_per_second, bytes_per_token, messages_per_token;
    double busy;                  /* share of the time of all ranks in which they compute */
    double share[CLUSTER_LIMITS]; /* of the time that would be saved without this limit */
    cluster_limit limit;          /* the one with the largest share */
} cluster_result;

GGL_NODISCARD ggl_status cluster_run(cluster_result *out, const cluster_setup *s,
                                     const cluster_plan *p, const cluster_work *w, ggl_error *err);

#endif
