/* Batches in flight, and the threads that pass them on. */
#ifndef GGL_SCHED_FLIGHT_H
#define GGL_SCHED_FLIGHT_H

#include "ggl/internal/os_thread.h"
#include "store_rows.h"
#include "schedule.h"

/* A batch in flight, or one whose outputs are not collected yet. It passes one segment after the other,
 * and none before the flight that began before it has: so stores see batches in their order. */
typedef struct flight {
    ggl_rows of;    /* the rows that it computes: the stage's, or the main ones */
    int64_t n;      /* size of the batch */
    int32_t *row;   /* indices of the requested rows, [n_rows]; its memory is for schedule.n_rows */
    int64_t n_rows; /* 0: no outputs, so the tail does not run */
    bool ends_early; /* the rest of the tail does not run */
    int lane;
    uint64_t number; /* of the batch, from 1 on */
    uint64_t ticket; /* 0: it is not collected, and removed as soon as it is done */
    uint64_t mark;   /* of the backend that passes it (ggl_backend_vtable.mark) */
    row_use rows;    /* the rows that it reads and writes, if there are several lanes */
    bool rewrites;   /* it may write rows that flights before it still read */
    /* The following members are under flights.lock: */
    size_t next;     /* index of the segment that it passes */
    bool is_passing; /* a thread is calling the segment's backend for it */
    bool is_started; /* the segment's `run` was called, but departing values are not fetched yet */
    bool is_over;    /* done or failed, and no thread is at it */
    ggl_error err;   /* its failure, or that of an earlier flight; GGL_OK if neither failed */
} flight;

/* Who calls a device's backend. All members but s, k and station are under flights.lock. */
typedef struct caller {
    struct ggl_sched *s;
    int k;          /* the device */
    int station;    /* the first device with this backend, whose following members count */
    bool is_called; /* a thread is calling the backend */
    bool has_thread;
    os_thread thread; /* calls the backend, unless the user's thread does it while it waits */
    os_cond wake;     /* the thread sleeps until there is something to do */
} caller;

/* While flights are on their way, each device's own thread calls its backend, and so does the user's
 * thread, for the flight that it waits for. With one lane there are no threads, the user's does
 * everything, and the lock is not used. */
typedef struct flights {
    flight at[MAX_LANES];     /* by lane */
    flight *order[MAX_LANES]; /* those in flight or not collected, oldest first */
    int n;                    /* of order[] */
    int out_lane;             /* of the flight that was collected last */
    uint64_t last_number;     /* of a flight; its ticket is the same */
    ggl_error uncollected; /* error of a failed flight without a ticket; the next call returns it */
    bool is_idle;          /* no backend has work since all were waited for */
    caller *caller;        /* by device */
    bool has_threads, stops;
    os_mutex lock;        /* guards the members marked "under flights.lock" */
    os_mutex cancel_lock; /* held while params.cancelled is called */
    os_cond wake;         /* the user's thread sleeps until its flight is over or can go on */
    bool user_sleeps;     /* the user's thread is blocked on `wake` */
    flight *awaited;      /* the flight that the user's thread waits for; NULL if none */
} flights;

/* Returns the end of the segments that the flight passes: those of the stage, or, after these, the trunk's, and, if it has
 * outputs, the tail's, which come after them, or the early ones of these. */
static inline size_t ggl_sched_n_passed(const schedule *s, const flight *f) {
    return f->of == GGL_ROWS_STAGE ? s->n_stage_segs
           : f->n_rows == 0        ? s->n_trunk_segs
           : f->ends_early         ? s->n_early_segs
                                   : s->n_segs;
}

/* --- order.c: flights do not write rows that those before them still read --- */

/* Sets segment.read_until of all segments. */
ggl_status ggl_sched_find_readers(schedule *s, ggl_error *err);
/* Sets flight.rewrites of a flight that begins now, whose `rows` are noted. */
void ggl_sched_note_rewrites(const schedule *s, const flights *all, flight *f);
/* True if flight i, in the order of their beginning, may write the stores of its next segment: no
 * flight before it still reads what it writes. */
bool ggl_sched_may_write(const schedule *s, const flights *all, int i);

#endif
