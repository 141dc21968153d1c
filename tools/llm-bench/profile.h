/* What takes the time: the steps of a backend, put together by kind, weight and shape. */
#ifndef TOOLS_BENCH_PROFILE_H
#define TOOLS_BENCH_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/graph.h"

typedef struct bench_profile_line {
    char op[48], weight[96], type[16], shape[64];
    double calls, ns;
    double bytes, macs; /* of weights read, or rows kept; multiply-adds. 0: does not apply */
} bench_profile_line;

typedef struct bench_profile {
    bench_profile_line *line; /* in order of their time, the longest first */
    size_t n, cap;
    double ns; /* of all steps together */
    double wall_ns;
} bench_profile;

/* Collects what the backend tells (ggl_backend_params.profile); a slot of it for each node. */
typedef struct bench_collector {
    struct bench_collected {
        const ggl_tensor *node;
        double ns, calls, tokens, past; /* past: rows before, of all tokens together */
    } * slot; /* [2 * id]: preparing for the node; [2 * id + 1]: the node */
    size_t cap;
    double n_past; /* said by who runs: rows that a token sees, on average */
    bool on, failed;
} bench_collector;

/* The callback. Grows at the first time a node is seen. */
void bench_collect(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, double ns);
void bench_collector_reset(bench_collector *c);
void bench_collector_fini(bench_collector *c);

/* Nodes that are alike but for their layer become one line; while the graph is still there. false:
 * out of memory. */
bool bench_profile_make(bench_profile *out, const bench_collector *c, double wall_ns);
void bench_profile_fini(bench_profile *p);

#endif
