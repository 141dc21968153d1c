/* A scheduler: the schedule, and what its runs need, each with a header of its own. Only the files that
 * put these together see all of it:
 *
 *   sched.c   creates, allocates and frees a scheduler
 *   flights.c starts batches and collects them: which thread passes which batch on, and when
 *   run.c     passes a batch through a segment: moves its values, and runs it
 *   slot_bytes.c clears, copies, saves and restores slots
 *   print.c   prints the schedule */
#ifndef GGL_SCHED_IMPL_H
#define GGL_SCHED_IMPL_H

#include "ahead.h"
#include "flight.h"
#include "inputs.h"
#include "repack.h"
#include "stream.h"
#include "watched.h"

struct ggl_sched {
    schedule plan;
    bool allocated; /* ggl_sched_alloc has succeeded */
    loading loading;
    host_memory host;
    inputs inputs;
    watching watching;
    repack_file repack_file;
    ahead ahead;
    stream stream;
    flights flights;
};

/* --- flights.c --- */

bool ggl_flights_init(ggl_sched *s);
/* Allocates what flights note of their batches. */
bool ggl_flights_alloc(flights *fl, const schedule *s);
void ggl_flights_fini(flights *fl, const schedule *s);
/* Starts a thread for each device, if several batches may be in flight; stops them. */
ggl_status ggl_sched_start_threads(ggl_sched *s, ggl_error *err);
void ggl_sched_stop_threads(ggl_sched *s);

/* --- run.c --- */

/* Passes the flight through its next segment, in two parts, each of which calls the segment's backend:
 * brings in what the segment needs, runs it, and lets the device bring out what departs and the outputs;
 * then waits for that, and fetches what the device cannot bring out. Between the two an asynchronous
 * backend computes. GGL_CANCELLED if params.cancelled
 * returns true. */
ggl_status ggl_sched_start_segment(ggl_sched *s, flight *f, ggl_error *err);
/* Of a flight that is started: sets *done, true if the second part need not wait. */
ggl_status ggl_sched_poll_segment(ggl_sched *s, const flight *f, bool *done, ggl_error *err);
ggl_status ggl_sched_end_segment(ggl_sched *s, const flight *f, ggl_error *err);

#endif
