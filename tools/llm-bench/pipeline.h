/* Simulates how batches pass the ranks of a job: the schedule of ggml-lite/sched/flights.c, and the messages of backends/ranks,
 * with given times. Several batches are under way, none overtakes another one, and each passes its segments in their order.
 *
 * Rank 0 calls its own processor, which returns when the segment is computed. For another rank it sends an order, with what the
 * segment reads, and later waits for the answer, with what others read. All messages pass the link of rank 0: one after another in
 * each direction, each for its bytes divided by the bandwidth, and each arrives after the latency. A message of more than
 * PIPELINE_EAGER bytes is announced first, and sent when the receiver asks for it: a rank asks when it has nothing else to do. */
#ifndef TOOLS_BENCH_PIPELINE_H
#define TOOLS_BENCH_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ggl/status.h"

enum { PIPELINE_EAGER = 64 << 10, PIPELINE_MOST_LANES = 16 };

typedef struct pipeline_link {
    double latency;   /* seconds that a message is on its way */
    double bandwidth; /* bytes per second in each direction; INFINITY: no limit */
    double message;   /* seconds that rank 0 needs to send one, or to take one */
} pipeline_link;

/* What a batch passes on one rank. */
typedef struct pipeline_segment {
    int rank;
    double seconds;
    double in, out; /* bytes that go from rank 0 to the rank, and back; not of rank 0 itself */
} pipeline_segment;

typedef struct pipeline_batch {
    const pipeline_segment *segment;
    int n_segments;
    int64_t
        after; /* the batch that must be done before this one begins, as it gives its tokens; -1: none */
} pipeline_batch;

typedef struct pipeline_result {
    double seconds;  /* until the last batch is done */
    double computed; /* seconds that all ranks together computed */
    double out, in;  /* bytes that rank 0 sent, and got */
    int64_t n_messages;
} pipeline_result;

/* Lets the batches pass, at most n_lanes (1 to PIPELINE_MOST_LANES) at once. n_ranks: the segments' ranks are below it. GGL_NOMEM. */
GGL_NODISCARD ggl_status pipeline_run(pipeline_result *out, const pipeline_link *link, int n_ranks,
                                      int n_lanes, const pipeline_batch *batch, int64_t n_batches,
                                      ggl_error *err);

#endif
