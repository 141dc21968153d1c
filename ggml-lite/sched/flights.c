/* Starts batches and collects them. Several may be in flight: while one passes a segment of one
 * backend, the next one passes a segment of another. Whoever is free passes a flight on: the threads of
 * the devices, and the user's thread while it waits for a flight. So a batch that is alone is passed
 * from its first segment to its last by the thread that waits for it, and no other thread wakes. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "sched_impl.h"

enum { MAX_BEGUN = 64 }; /* segments that run side by side */

static void lock(ggl_sched *s) {
    if (s->flights.has_threads)
        ggl_os_mutex_lock(&s->flights.lock);
}

static void unlock(ggl_sched *s) {
    if (s->flights.has_threads)
        ggl_os_mutex_unlock(&s->flights.lock);
}

/* --- memory ----------------------------------------------------------------------------------- */

bool ggl_flights_init(ggl_sched *s) {
    flights *fl = &s->flights;
    fl->is_idle = true;
    ggl_os_mutex_init(&fl->lock);
    ggl_os_mutex_init(&fl->cancel_lock);
    ggl_os_cond_init(&fl->wake);
    fl->caller = ggl_calloc((size_t)s->plan.n_dev, sizeof *fl->caller);
    for (int k = 0; fl->caller && k < s->plan.n_dev; k++) {
        caller *c = &fl->caller[k];
        *c = (caller){.s = s, .k = k};
        while (s->plan.dev[c->station].b != s->plan.dev[k].b)
            c->station++;
        ggl_os_cond_init(&c->wake);
    }
    return fl->caller;
}

bool ggl_flights_alloc(flights *fl, const schedule *s) {
    for (int lane = 0; lane < s->n_lanes; lane++) {
        flight *f = &fl->at[lane];
        f->row = ggl_calloc((size_t)s->n_rows, sizeof *f->row);
        if (!f->row || (s->n_lanes > 1 && !ggl_row_use_init(&f->rows, s->g)))
            return false;
    }
    return true;
}

void ggl_flights_fini(flights *fl, const schedule *s) {
    for (int lane = 0; lane < s->n_lanes; lane++) {
        ggl_free(fl->at[lane].row);
        ggl_free(fl->at[lane].rows.of);
    }
    for (int k = 0; fl->caller && k < s->n_dev; k++)
        ggl_os_cond_destroy(&fl->caller[k].wake);
    ggl_free(fl->caller);
    ggl_os_cond_destroy(&fl->wake);
    ggl_os_mutex_destroy(&fl->cancel_lock);
    ggl_os_mutex_destroy(&fl->lock);
}

/* --- who may go on: under the lock ------------------------------------------------------------ */

static caller *station_of(ggl_sched *s, const flight *f) {
    caller *all = s->flights.caller;
    return &all[all[s->plan.seg[f->next].backend].station];
}

/* True if flight i, in the order of their beginning, can be passed on now: its backend is free, the
 * flight before it has passed this segment, or is started there, and none reads what it writes. */
static bool can_go_on(ggl_sched *s, int i) {
    const flight *f = s->flights.order[i], *before = i > 0 ? s->flights.order[i - 1] : NULL;
    if (f->is_over || f->is_passing || station_of(s, f)->is_called)
        return false;
    if (!ggl_sched_may_write(&s->plan, &s->flights, i))
        return false;
    return !before || before->is_over || f->is_started || before->next > f->next ||
           (before->next == f->next && before->is_started);
}

/* Returns what the thread of a device does next; NULL: nothing. It starts a flight while an
 * asynchronous backend still computes the one before, rather than wait for that one. */
static flight *next_for(ggl_sched *s, const caller *d) {
    flight *best = NULL;
    for (int i = s->flights.n - 1; i >= 0; i--)
        if (!s->flights.order[i]->is_over && station_of(s, s->flights.order[i]) == d &&
            can_go_on(s, i) && (!best || best->is_started || !s->flights.order[i]->is_started))
            best = s->flights.order[i];
    return best;
}

/* True if the flight is the one that its backend turns to next. */
static bool is_next(ggl_sched *s, const flight *f) {
    return next_for(s, station_of(s, f)) == f;
}

/* Wakes the threads that can pass flights on; not that of `self`, which is awake. */
static void rouse(ggl_sched *s, const caller *self) {
    if (s->flights.user_sleeps && (s->flights.awaited->is_over || is_next(s, s->flights.awaited)))
        ggl_os_cond_signal(&s->flights.wake);
    for (int k = 0; k < s->plan.n_dev; k++) {
        caller *d = &s->flights.caller[k];
        const flight *f = d == self || !d->has_thread ? NULL : next_for(s, d);
        if (f && f != s->flights.awaited)
            ggl_os_cond_signal(&d->wake);
    }
}

/* Takes the flight out of the order; its lane is free. */
static void leave(ggl_sched *s, const flight *f) {
    int i = 0;
    while (s->flights.order[i] != f)
        i++;
    s->flights.n--;
    memmove(&s->flights.order[i], &s->flights.order[i + 1],
            (size_t)(s->flights.n - i) * sizeof s->flights.order[0]);
}

/* Ends the flight if no thread is at it and it is done or has failed. */
static void end_if_over(ggl_sched *s, flight *f) {
    if (f->is_over || f->is_passing ||
        (f->err.status == GGL_OK && f->next < ggl_sched_n_passed(&s->plan, f)))
        return;
    f->is_over = true;
    if (f->ticket == 0)
        leave(s, f);
}

/* Makes the flight fail, and all later ones, because they may need what it would have stored. If
 * nobody collects one of them, the error is kept for the next call. */
static void fail(ggl_sched *s, const flight *first, const ggl_error *err) {
    flight *order[MAX_LANES];
    const int n = s->flights.n;
    bool is_behind = false;
    memcpy(order, s->flights.order, sizeof order);
    for (int i = 0; i < n; i++) {
        is_behind |= order[i] == first;
        if (!is_behind || order[i]->is_over)
            continue;
        if (order[i]->err.status == GGL_OK && order[i]->ticket == 0 &&
            s->flights.uncollected.status == GGL_OK)
            s->flights.uncollected = *err;
        if (order[i]->err.status == GGL_OK)
            order[i]->err = *err;
        end_if_over(s, order[i]);
    }
}

/* --- passing on ------------------------------------------------------------------------------- */

/* Calls the backend of the flight's segment: to start it, to end it, or, unless it is asynchronous,
 * both. The lock is free meanwhile. */
static void pass_on(ggl_sched *s, flight *f, const caller *self) {
    caller *d = station_of(s, f);
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    const bool starts = !f->is_started;
    bool ends = f->is_started || !s->plan.dev[d->k].b->async;
    d->is_called = f->is_passing = true;
    unlock(s);
    if (starts)
        st = ggl_sched_start_segment(s, f, &err);
    else if (s->flights
                 .has_threads) /* if it is not done, whoever comes next may start another one */
        st = ggl_sched_poll_segment(s, f, &ends, &err);
    if (ends && st == GGL_OK)
        st = ggl_sched_end_segment(s, f, &err);
    err.status = st;
    lock(s);
    d->is_called = f->is_passing = false;
    f->is_started = !ends;
    f->next += ends && st == GGL_OK;
    if (st != GGL_OK)
        fail(s, f, &err);
    else
        end_if_over(s, f);
    if (s->flights.has_threads && (starts || ends || st != GGL_OK || next_for(s, d) != f))
        rouse(s, self);
}

/* A segment that was started and not ended. */
typedef struct begun {
    size_t at;
    uint64_t mark;
} begun;

/* True if segment `at` reads what the backend of a segment before it has computed. */
static bool reads_from(const schedule *s, size_t at, int backend) {
    for (size_t k = 0; k < s->seg[at].n_moves; k++)
        if (s->seg[at].move[k].from_backend == backend)
            return true;
    return false;
}

static ggl_status end_begun(ggl_sched *s, flight *f, const begun *b, ggl_error *err) {
    const size_t next = f->next;
    ggl_backend *of = s->plan.dev[s->plan.seg[b->at].backend].b;
    /* nobody reads what it computes, so it has no mark; but it may still read values that are about to be replaced */
    ggl_status st = b->mark == 0 && of->v->mark ? of->v->wait(of, err) : GGL_OK;
    f->next = b->at;
    f->mark = b->mark;
    if (st == GGL_OK)
        st = ggl_sched_end_segment(s, f, err);
    f->next = next;
    return st;
}

/* Passes the only flight from its first segment to its last: an asynchronous backend computes while other backends are
 * started, until a segment reads what it has computed, or as many segments as there are devices have begun after it: values stay that
 * long (crossings.c). */
static void pass_side_by_side(ggl_sched *s, flight *f) {
    const schedule *p = &s->plan;
    const size_t end = ggl_sched_n_passed(p, f);
    begun open[MAX_BEGUN];
    int n = 0;
    ggl_error err = {0};
    ggl_status st = f->err.status;
    for (; f->next < end && st == GGL_OK; f->next++) {
        const int k = p->seg[f->next].backend;
        for (int i = 0; i < n && st == GGL_OK;) {
            const int of = p->seg[open[i].at].backend;
            if ((of == k || !reads_from(p, f->next, of)) &&
                open[i].at + (size_t)p->n_dev > f->next && n < MAX_BEGUN) {
                i++;
                continue;
            }
            st = end_begun(s, f, &open[i], &err);
            memmove(open + i, open + i + 1, (size_t)(--n - i) * sizeof *open);
        }
        if (st == GGL_OK)
            st = ggl_sched_start_segment(s, f, &err);
        if (st == GGL_OK && p->dev[k].b->async)
            open[n++] = (begun){f->next, f->mark};
        else if (st == GGL_OK)
            st = ggl_sched_end_segment(s, f, &err);
    }
    for (int i = 0; i < n; i++) { /* also after an error, so that nothing is under way */
        ggl_error other = {0};
        const ggl_status ended = end_begun(s, f, &open[i], &other);
        if (st == GGL_OK && ended != GGL_OK)
            err = other;
        st = st == GGL_OK ? ended : st;
    }
    err.status = st;
    if (st != GGL_OK && f->err.status == GGL_OK)
        fail(s, f, &err);
    else
        end_if_over(s, f);
}

/* Returns when the flight is over. */
static void await(ggl_sched *s, flight *f) {
    s->flights.awaited = f;
    if (s->plan.params.side_by_side && !f->is_over)
        pass_side_by_side(s, f);
    while (!f->is_over)
        if (is_next(s, f)) {
            pass_on(s, f, NULL);
        } else {
            s->flights.user_sleeps = true;
            ggl_os_cond_wait(&s->flights.wake, &s->flights.lock);
            s->flights.user_sleeps = false;
        }
    s->flights.awaited = NULL;
}

/* The main function of a device's thread. */
static void *serve(void *arg) {
    caller *d = arg;
    ggl_sched *s = d->s;
    lock(s);
    while (!s->flights.stops) {
        flight *f = next_for(s, d);
        if (f)
            pass_on(s, f, d);
        else
            ggl_os_cond_wait(&d->wake, &s->flights.lock);
    }
    unlock(s);
    return NULL;
}

ggl_status ggl_sched_start_threads(ggl_sched *s, ggl_error *err) {
    s->flights.has_threads = s->plan.n_lanes > 1;
    for (int k = 0; k < s->plan.n_dev && s->flights.has_threads; k++) {
        caller *d = &s->flights.caller[k];
        if (d->station != k)
            continue;
        if (!ggl_os_thread_start(&d->thread, serve, d, 0))
            return ggl_fail(err, GGL_NOMEM, "the thread that calls %s could not be started",
                            s->plan.dev[k].b->name);
        lock(s);
        d->has_thread = true;
        unlock(s);
    }
    return GGL_OK;
}

void ggl_sched_stop_threads(ggl_sched *s) {
    lock(s);
    s->flights.stops = true;
    for (int k = 0; s->flights.caller && k < s->plan.n_dev; k++)
        ggl_os_cond_signal(&s->flights.caller[k].wake);
    unlock(s);
    for (int k = 0; s->flights.caller && k < s->plan.n_dev; k++)
        if (s->flights.caller[k].has_thread)
            ggl_os_thread_join(s->flights.caller[k].thread);
    s->flights.has_threads = false;
}

/* --- starting --------------------------------------------------------------------------------- */

/* Checks the arguments of a run: GGL_USAGE if the batch size, a row or an input does not fit. */
static ggl_status check_run(const ggl_sched *s, ggl_rows of, int64_t n, const int32_t *row,
                            int64_t n_rows, bool early, ggl_error *err) {
    if (of == GGL_ROWS_STAGE && s->plan.n_stage_segs == 0)
        return ggl_fail(err, GGL_USAGE, "the graph has no stage that other rows read");
    if (!s->allocated)
        return ggl_fail(err, GGL_USAGE,
                        "a run before memory is allocated: call ggl_sched_alloc first");
    if (early && !s->plan.params.early)
        return ggl_fail(err, GGL_USAGE,
                        "a run cannot end early: ggl_sched_params.early names no output");
    if (n < 1 || n > s->plan.n_batch)
        return ggl_fail(err, GGL_USAGE, "a batch of %" PRId64 "; 1 to %" PRId64 " are allowed", n,
                        s->plan.n_batch);
    if (n_rows < 0 || n_rows > n || n_rows > s->plan.n_rows)
        return ggl_fail(err, GGL_USAGE,
                        "%" PRId64 " rows of outputs; at most %" PRId64 " are allowed", n_rows,
                        n < s->plan.n_rows ? n : s->plan.n_rows);
    for (int64_t i = 0; row && i < n_rows; i++)
        if (row[i] < 0 || row[i] >= n || (i && row[i] <= row[i - 1]))
            return ggl_fail(err, GGL_USAGE,
                            "row %" PRId32 " of outputs: rows must be ascending and below %" PRId64,
                            row[i], n);
    for (int i = 0; i < ggl_graph_n_inputs(s->plan.g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->plan.g, i);
        const bool is_other = s->plan.n_stage_segs > 0 && ggl_is_batched(t) && t->rows != of;
        if (t->needed && !is_other && s->inputs.n[i] < (ggl_is_batched(t) ? n : 1))
            return ggl_fail(err, GGL_USAGE,
                            "input '%s' is set for %" PRId64
                            " elements of the batch, but the run has %" PRId64,
                            t->name, s->inputs.n[i], n);
    }
    return GGL_OK;
}

/* Returns the error of a failed flight without a ticket, and clears it. */
static ggl_status take_uncollected(ggl_sched *s, ggl_error *err) {
    const ggl_error e = s->flights.uncollected;
    s->flights.uncollected = (ggl_error){0};
    if (err && e.status != GGL_OK)
        *err = e;
    return e.status;
}

/* Waits for a free lane, and returns the error of a flight that nobody collects. GGL_USAGE: all
 * lanes are those of tickets that are not collected. */
static ggl_status wait_for_lane(ggl_sched *s, ggl_error *err) {
    for (int i = 0; i < s->flights.n && s->flights.n == s->plan.n_lanes; i++)
        if (s->flights.order[i]->ticket == 0)
            await(s, s->flights.order[i]);
    if (s->flights.n < s->plan.n_lanes)
        return take_uncollected(s, err);
    return ggl_fail(err, GGL_USAGE,
                    "%d batches are not collected yet, and no more can be in flight: call "
                    "ggl_sched_collect first",
                    s->flights.n);
}

static flight *free_lane(ggl_sched *s) {
    for (int lane = 0;; lane++) {
        int i = 0;
        while (i < s->flights.n && s->flights.order[i]->lane != lane)
            i++;
        if (i == s->flights.n)
            return &s->flights.at[lane];
    }
}

/* Notes which rows the flight, whose lane has its inputs, sees and writes. */
static void note_rows(const ggl_sched *s, flight *f) {
    const ggl_graph *g = s->plan.g;
    const ggl_rows rows = f->of;
    const int32_t *pos = ggl_inputs_lane_value(&s->inputs, &s->plan, f->lane, g->pos[rows]),
                  *slot = ggl_inputs_lane_value(&s->inputs, &s->plan, f->lane, g->slot[rows]),
                  *end = ggl_inputs_lane_value(&s->inputs, &s->plan, f->lane, g->end[rows]);
    if (!pos || !slot)
        return;
    ggl_row_use_set(&f->rows, g, pos, slot, end, f->n, s->inputs.n_pages_set);
    ggl_sched_note_rewrites(&s->plan, &s->flights, f);
}

/* Makes a flight of the current inputs, the last in the order. */
static flight *begin(ggl_sched *s, ggl_rows of, int64_t n, const int32_t *row, int64_t n_rows,
                     bool early, bool has_ticket) {
    flight *f = free_lane(s);
    *f = (flight){.n = n,
                  .of = of,
                  .next = of == GGL_ROWS_STAGE ? 0 : s->plan.n_stage_segs,
                  .row = f->row,
                  .rows = f->rows,
                  .n_rows = n_rows,
                  .ends_early = early,
                  .lane = (int)(f - s->flights.at),
                  .number = ++s->flights.last_number,
                  .ticket = has_ticket ? s->flights.last_number : 0};
    for (int64_t i = 0; i < n_rows; i++)
        f->row[i] = row ? row[i] : (int32_t)i;
    ggl_inputs_fill_lane(&s->inputs, &s->plan, f->lane, n);
    if (s->plan.n_lanes > 1)
        note_rows(s, f);
    s->flights.is_idle = false;
    for (int i = 0; i < s->flights.n && f->err.status == GGL_OK; i++)
        f->err = s->flights.order[i]->err; /* the user does not know yet that it has failed */
    s->flights.order[s->flights.n++] = f;
    end_if_over(s, f); /* there may be nothing to compute without outputs */
    return f;
}

ggl_status ggl_sched_submit(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows, bool early,
                            uint64_t *ticket, ggl_error *err) {
    ggl_status st = check_run(s, GGL_ROWS_MAIN, n, row, n_rows, early, err);
    if (ticket)
        *ticket = 0;
    if (st == GGL_OK && n_rows > 0 && !ticket)
        return ggl_fail(err, GGL_USAGE, "outputs are wanted of a batch that gets no ticket");
    if (st == GGL_OK && n_rows > 0)
        st = ggl_repack_file_check_some(&s->repack_file, err);
    if (st != GGL_OK)
        return st;
    lock(s);
    st = wait_for_lane(s, err);
    if (st == GGL_OK) {
        flight *f = begin(s, GGL_ROWS_MAIN, n, row, n_rows, early, ticket);
        if (ticket)
            *ticket = f->ticket;
        if (s->flights.has_threads) {
            rouse(s, NULL);
        } else {
            await(s, f);
            st = take_uncollected(s, err);
        }
    }
    unlock(s);
    return st;
}

/* --- collecting ------------------------------------------------------------------------------- */

/* Waits for all work of all backends, which no thread may be calling. */
static ggl_status wait_for_backends(ggl_sched *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->plan.n_dev && st == GGL_OK; i++)
        st = s->plan.dev[i].b->v->wait(s->plan.dev[i].b, err);
    s->flights.is_idle = st == GGL_OK;
    return st;
}

/* Waits until the flight is over, and takes it out of the order. Its outputs are the current ones. */
static ggl_status collect(ggl_sched *s, flight *f, ggl_error *err) {
    await(s, f);
    leave(s, f);
    s->flights.out_lane = f->lane;
    if (err && f->err.status != GGL_OK)
        *err = f->err;
    return f->err.status != GGL_OK || s->flights.has_threads ? f->err.status
                                                             : wait_for_backends(s, err);
}

ggl_status ggl_sched_collect(ggl_sched *s, uint64_t ticket, ggl_error *err) {
    ggl_status st = GGL_USAGE;
    flight *f = NULL;
    lock(s);
    for (int i = 0; i < s->flights.n; i++)
        if (ticket != 0 && s->flights.order[i]->ticket == ticket)
            f = s->flights.order[i];
    if (f)
        st = collect(s, f, err);
    unlock(s);
    return f ? st
             : ggl_fail(err, st, "no batch in flight has ticket %" PRIu64 ", or it was collected",
                        ticket);
}

ggl_status ggl_sched_finish(ggl_sched *s, ggl_error *err) {
    lock(s);
    for (int i = 0; i < s->flights.n;)
        if (s->flights.order[i]->is_over)
            i++;
        else
            await(s, s->flights.order[i]);
    ggl_status st = take_uncollected(s, err);
    unlock(s);
    return st == GGL_OK ? wait_for_backends(s, err) : st;
}

int ggl_sched_n_unfinished(ggl_sched *s) {
    lock(s);
    int n = s->flights.uncollected.status != GGL_OK;
    for (int i = 0; i < s->flights.n; i++)
        n += !s->flights.order[i]->is_over;
    unlock(s);
    for (int i = 0; i < s->plan.n_dev && n == 0 && !s->flights.is_idle; i++)
        n = s->plan.dev[i].b->async;
    return n;
}

int ggl_sched_n_lanes(const ggl_sched *s) {
    return s->plan.n_lanes;
}

/* Runs a batch to its end. */
static ggl_status run_whole(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows, bool early,
                            ggl_error *err) {
    n_rows = row ? n_rows : n;
    ggl_status st = check_run(s, GGL_ROWS_MAIN, n, row, n_rows, early, err);
    if (st == GGL_OK && n_rows > 0)
        st = ggl_repack_file_check_some(&s->repack_file, err);
    if (st != GGL_OK)
        return st;
    lock(s);
    st = wait_for_lane(s, err);
    if (st == GGL_OK)
        st = collect(s, begin(s, GGL_ROWS_MAIN, n, row, n_rows, early, true), err);
    unlock(s);
    return st;
}

ggl_status ggl_sched_run(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows,
                         ggl_error *err) {
    return run_whole(s, n, row, n_rows, false, err);
}

ggl_status ggl_sched_run_early(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows,
                               ggl_error *err) {
    return run_whole(s, n, row, n_rows, true, err);
}

bool ggl_sched_has_stage(const ggl_sched *s) {
    return s->plan.n_stage_segs > 0;
}

ggl_status ggl_sched_run_stage(ggl_sched *s, int64_t n, ggl_error *err) {
    ggl_status st = check_run(s, GGL_ROWS_STAGE, n, NULL, 0, false, err);
    if (st != GGL_OK)
        return st;
    lock(s);
    st = wait_for_lane(s, err);
    if (st == GGL_OK)
        st = collect(s, begin(s, GGL_ROWS_STAGE, n, NULL, 0, false, true), err);
    unlock(s);
    return st;
}

const float *ggl_sched_output(const ggl_sched *s, int k) {
    return k >= 0 && k < ggl_graph_n_outputs(s->plan.g)
               ? (const float *)(s->host.at[s->flights.out_lane] + s->plan.out[k].to)
               : NULL;
}
