/* Rank 0: what another rank's clock says, by its own. Both are in nanoseconds. */
#ifndef RANKS_CLOCK_H
#define RANKS_CLOCK_H

#include "job.h"

/* The difference of the clocks, measured by round trips: it is known to half of what the shortest one took. */
typedef struct clock_sample {
    int64_t at;     /* the rank's time */
    int64_t offset; /* that time, less our own */
    int64_t exact;  /* most by which the offset is wrong */
} clock_sample;

/* A line through the last two samples, as the clocks do not run equally fast. All zeros: nothing was measured. */
typedef struct rank_clock {
    clock_sample sample[2]; /* the later one is the second */
    int n;
    uint64_t measured; /* our time of it */
} rank_clock;

/* The sample of one round trip: sent at `begin`, answered with the rank's time, received at `end`. */
clock_sample ggl_clock_trip(uint64_t begin, uint64_t there, uint64_t end);
/* Adds a later sample. One that is less than a second after the last takes its place, if it is more exact. */
void ggl_clock_add(rank_clock *c, const clock_sample *s);
/* Returns our time for a time of the rank. */
uint64_t ggl_clock_here(const rank_clock *c, uint64_t there);

/* Measures by some round trips over the first channel to the rank, whose lock (job.h) the caller has: a thread of the rank that does
 * not compute answers them. False: the rank did not answer. */
bool ggl_clock_measure(rank_clock *c, job *j, int rank);

#endif
