/* Shows what takes the time: the steps of a backend, by kind, weight and shape. */
#ifndef TOOLS_BENCH_PROFILE_H
#define TOOLS_BENCH_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/sched.h"

typedef struct bench_profile_line {
    char device[32], op[48], weight[96], type[16], shape[64];
    double calls, ns;
    /* bytes of weights or kept rows that are read; multiply-adds. 0: does not apply */
    double bytes, macs;
} bench_profile_line;

/* What a device has computed. */
typedef struct bench_busy {
    char device[32];
    double ns; /* of its steps, which follow each other */
} bench_busy;

typedef struct bench_profile {
    bench_profile_line *line; /* ordered by time, the longest first */
    size_t n, cap;
    bench_busy *busy; /* by device, in the order of their times */
    size_t n_devices, cap_devices;
    double ns; /* of all steps */
    double wall_ns;
} bench_profile;

/* Collects what the backend reports (ggl_backend_params.profile), in slots for each node. */
typedef struct bench_collector {
    struct bench_collected {
        const ggl_tensor *node;
        double ns, calls, tokens, past; /* past: rows before, summed over all tokens */
    } * slot; /* [2 * id]: preparation for the node; [2 * id + 1]: the node */
    size_t cap;
    double n_past; /* set by the caller: average number of rows that a token sees */
    bool on, failed;
} bench_collector;

/* The callback. Allocates slots when it first sees a node. */
void bench_collect(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                   uint64_t end);
void bench_collector_reset(bench_collector *c);
void bench_collector_fini(bench_collector *c);

/* Makes a line of all nodes of a device that differ only by layer; call it while the graph exists, which s runs. False:
 * out of memory. */
bool bench_profile_make(bench_profile *out, const bench_collector *c, const ggl_sched *s,
                        double wall_ns);
void bench_profile_fini(bench_profile *p);

#endif
