#include "pipeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a batch is in its next segment. The steps after WAITS are of an order to another rank, but for CALLED. */
typedef enum step {
    WAITS,    /* for the thread that calls the rank */
    CALLED,   /* rank 0 computes; done at `at` */
    SENDS,    /* the order is made; sent at `at` */
    TRAVELS,  /* the order is on its way; there at `at` */
    QUEUED,   /* it is there, but the rank is at the batch before */
    ASKS,     /* the rank asks for data; heard at `at` */
    FETCHES,  /* the data is on its way; there at `at` */
    COMPUTES, /* done at `at` */
    OFFERS,   /* the rank has announced data; asked for it at `at` */
    RETURNS,  /* the answer is on its way; there at `at` */
    ANSWERED, /* it is there */
    ENDS      /* rank 0 takes the answer; done at `at` */
} step;

typedef struct flight {
    int64_t number;
    int next; /* the segment */
    step step;
    double at; /* when the step is done; INFINITY: another batch, or a thread, decides */
} flight;

typedef struct rank {
    bool is_called; /* rank 0's thread for it is busy */
    flight *ended;  /* the thread waits for its answer; NULL: for none */
    bool is_busy;   /* it fetches, computes or sends */
} rank;

typedef struct pipeline {
    const pipeline_link *link;
    const pipeline_batch *batch;
    int64_t n_batches, n_begun;
    int n_lanes, n; /* n: of order[] */
    flight at[PIPELINE_MOST_LANES], *order[PIPELINE_MOST_LANES];
    rank *rank;
    double *done; /* [n_batches]: when; INFINITY: not yet */
    double out_free, in_free, now;
    pipeline_result r;
} pipeline;

static const pipeline_segment *segment_of(const pipeline *p, const flight *f) {
    return &p->batch[f->number].segment[f->next];
}

static void go(flight *f, step s, double at) {
    f->step = s;
    f->at = at;
}

/* Takes the link in one direction, for so many bytes; returns when they have arrived. */
static double travel(pipeline *p, double *is_free, double bytes) {
    const double begin = *is_free > p->now ? *is_free : p->now;
    *is_free = begin + bytes / p->link->bandwidth;
    return *is_free + p->link->latency;
}

/* --- who may go on: as can_go_on and next_for in flights.c ---------------------------------------- */

static bool is_started(const flight *f) {
    return f->step >= TRAVELS;
}

static bool can_start(const pipeline *p, int i) {
    const flight *f = p->order[i], *before = i > 0 ? p->order[i - 1] : NULL;
    return f->step == WAITS &&
           (!before || before->next > f->next || (before->next == f->next && is_started(before)));
}

/* The thread that calls a rank turns to the next batch: it starts one, rather than wait for one that is started. */
static void call(pipeline *p, int k) {
    rank *r = &p->rank[k];
    flight *starts = NULL, *ends = NULL;
    if (r->is_called)
        return;
    for (int i = p->n - 1; i >= 0; i--) {
        flight *f = p->order[i];
        if (segment_of(p, f)->rank != k)
            continue;
        starts = can_start(p, i) ? f : starts;
        ends = is_started(f) ? f : ends;
    }
    flight *f = starts ? starts : ends;
    r->is_called = f != NULL;
    if (!f)
        return;
    if (starts && k == 0)
        go(f, CALLED, p->now + segment_of(p, f)->seconds);
    else if (starts)
        go(f, SENDS, p->now + p->link->message);
    else if (f->step == ANSWERED)
        go(f, ENDS, p->now + p->link->message);
    else
        r->ended = f;
}

static void call_all(pipeline *p) {
    for (int i = 0; i < p->n; i++)
        call(p, segment_of(p, p->order[i])->rank);
}

/* --- the other ranks ----------------------------------------------------------------------------- */

/* The rank begins with the oldest order that has come. */
static void take(pipeline *p, int k) {
    rank *r = &p->rank[k];
    for (int i = 0; i < p->n && !r->is_busy; i++) {
        flight *f = p->order[i];
        const pipeline_segment *s = segment_of(p, f);
        if (f->step != QUEUED || s->rank != k)
            continue;
        r->is_busy = true;
        if (s->in > PIPELINE_EAGER)
            go(f, ASKS, p->now + p->link->latency);
        else
            go(f, COMPUTES, p->now + s->seconds);
    }
}

static void release(pipeline *p, int k) {
    p->rank[k].is_busy = false;
    take(p, k);
}

/* --- the whole ----------------------------------------------------------------------------------- */

/* Begins batches while there are lanes, and what they need is done. */
static void begin(pipeline *p) {
    while (p->n_begun < p->n_batches && p->n < p->n_lanes) {
        const int64_t after = p->batch[p->n_begun].after;
        if (after >= 0 && p->done[after] > p->now)
            return;
        int lane = 0;
        for (int i = 0; i < p->n;)
            if (p->order[i] == &p->at[lane])
                lane++, i = 0;
            else
                i++;
        p->at[lane] = (flight){.number = p->n_begun++, .at = INFINITY};
        p->order[p->n++] = &p->at[lane];
    }
}

/* The batch has passed its segment. */
static void pass(pipeline *p, flight *f, int i) {
    const pipeline_segment *s = segment_of(p, f);
    p->rank[s->rank].is_called = false;
    p->r.computed += s->seconds;
    go(f, WAITS, INFINITY);
    if (++f->next < p->batch[f->number].n_segments)
        return;
    p->done[f->number] = p->now;
    p->n--;
    memmove(&p->order[i], &p->order[i + 1], (size_t)(p->n - i) * sizeof p->order[0]);
}

/* Carries out what happens now with flight i, in the order of their beginning. */
static void happen(pipeline *p, int i) {
    flight *f = p->order[i];
    const pipeline_segment *s = segment_of(p, f);
    const double latency = p->link->latency;
    switch (f->step) {
    case SENDS: /* the announcement of data is as small as nothing */
        p->r.n_messages++;
        p->r.out += s->in;
        go(f, TRAVELS, travel(p, &p->out_free, s->in > PIPELINE_EAGER ? 0 : s->in));
        p->rank[s->rank].is_called = false;
        break;
    case TRAVELS:
        go(f, QUEUED, INFINITY);
        take(p, s->rank);
        break;
    case ASKS:
        go(f, FETCHES, travel(p, &p->out_free, s->in));
        break;
    case FETCHES:
        go(f, COMPUTES, p->now + s->seconds);
        break;
    case COMPUTES:
        if (s->out > PIPELINE_EAGER) {
            go(f, OFFERS, p->now + 2 * latency);
            break;
        }
        go(f, RETURNS, travel(p, &p->in_free, s->out));
        release(p, s->rank);
        break;
    case OFFERS:
        go(f, RETURNS, travel(p, &p->in_free, s->out));
        break;
    case RETURNS:
        p->r.n_messages++;
        p->r.in += s->out;
        go(f, ANSWERED, INFINITY);
        if (s->out > PIPELINE_EAGER)
            release(p, s->rank);
        if (p->rank[s->rank].ended == f) {
            p->rank[s->rank].ended = NULL;
            go(f, ENDS, p->now + p->link->message);
        }
        break;
    default: /* CALLED, ENDS */
        pass(p, f, i);
    }
}

ggl_status pipeline_run(pipeline_result *out, const pipeline_link *link, int n_ranks, int n_lanes,
                        const pipeline_batch *batch, int64_t n_batches, ggl_error *err) {
    pipeline p = {.link = link,
                  .batch = batch,
                  .n_batches = n_batches,
                  .n_lanes = n_lanes,
                  .rank = calloc((size_t)n_ranks, sizeof *p.rank),
                  .done = malloc((size_t)n_batches * sizeof *p.done)};
    *out = (pipeline_result){0};
    const bool ok = p.rank && (p.done || n_batches == 0);
    for (int64_t i = 0; ok && i < n_batches; i++)
        p.done[i] = INFINITY;
    while (ok) {
        begin(&p);
        call_all(&p);
        int first = -1;
        for (int i = 0; i < p.n; i++)
            if (first < 0 || p.order[i]->at < p.order[first]->at)
                first = i;
        if (first < 0) /* all are done */
            break;
        p.now = p.order[first]->at;
        happen(&p, first);
    }
    p.r.seconds = p.now;
    *out = p.r;
    free(p.rank);
    free(p.done);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a simulation");
}
