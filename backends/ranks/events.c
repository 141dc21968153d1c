#include "events.h"

#include <string.h>

#include "clock.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/image.h"
#include "ggl/internal/os_clock.h"

enum { MOST_FETCHES = 4 };

/* A graph that the rank has, and its tensors by id. */
typedef struct known_graph {
    uint32_t id;
    int n_ids;
    ggl_tensor **tensor;
} known_graph;

/* Events that were ordered with the packet of that number. */
typedef struct fetch {
    uint64_t number;
    char *to; /* [EVENTS_SIZE] */
} fetch;

struct far_events {
    channel *c;
    ggl_profile_fn *profile;
    void *profile_ctx;
    trace_event_fn *event; /* NULL: what is no step goes nowhere */
    void *event_ctx;
    fetch fetch[MOST_FETCHES]; /* the first n are on their way, the oldest first */
    int n;
    uint64_t left;     /* by the last one that came: bytes of events that the rank still has */
    uint64_t lost;     /* events that had no room there */
    bool is_cut;       /* the last piece did not end where the rank had no more */
    uint64_t complete; /* up to this packet all is reported */
    rank_clock clock;
    /* Another sample moves the line, between pieces; what comes after it is not before what came before it. */
    uint64_t floor, top;
    known_graph *graph;
    size_t n_graphs, cap_graphs;
};

/* --- opening ------------------------------------------------------------------------------------ */

far_events *ggl_events_open(channel *c, ggl_profile_fn *profile, void *ctx) {
    far_events *v = ggl_calloc(1, sizeof *v);
    bool ok = v;
    for (int i = 0; ok && i < MOST_FETCHES; i++)
        ok = (v->fetch[i].to = ggl_calloc(EVENTS_SIZE, 1));
    if (ok) {
        v->c = c;
        v->profile = profile;
        v->profile_ctx = ctx;
        ok = ggl_clock_measure(&v->clock, c->j, c->rank);
    }
    if (ok)
        return v;
    ggl_events_close(v);
    return NULL;
}

void ggl_events_close(far_events *v) {
    for (int i = 0; v && i < MOST_FETCHES; i++)
        ggl_free(v->fetch[i].to);
    for (size_t i = 0; v && i < v->n_graphs; i++)
        ggl_free(v->graph[i].tensor);
    if (v)
        ggl_free(v->graph);
    ggl_free(v);
}

bool ggl_events_add_graph(far_events *v, uint32_t id, const ggl_graph *g) {
    if (!v)
        return true;
    ggl_tensor **tensor = ggl_graph_by_id(g);
    if (!tensor || !ggl_grow(&v->graph, &v->cap_graphs, v->n_graphs + 1, sizeof *v->graph)) {
        ggl_free(tensor);
        return false;
    }
    v->graph[v->n_graphs++] = (known_graph){id, ggl_graph_n_ids(g), tensor};
    return true;
}

void ggl_events_drop_graph(far_events *v, uint32_t id) {
    for (size_t i = 0; v && i < v->n_graphs; i++)
        if (v->graph[i].id == id) {
            ggl_free(v->graph[i].tensor);
            v->graph[i] = v->graph[--v->n_graphs];
            return;
        }
}

/* --- the clock ---------------------------------------------------------------------------------- */

static void tell(const far_events *v, const char *name, const char *key, uint64_t number) {
    const uint64_t now = ggl_os_clock();
    if (v->event)
        v->event(v->event_ctx, &(trace_event){.phase = 'X',
                                              .name = name,
                                              .kind = "rank",
                                              .begin = now,
                                              .end = now,
                                              .arg = {{key, NULL, number}}});
}

static void tell_clock(const far_events *v) {
    tell(v, "clock", "exact_ns", (uint64_t)v->clock.sample[1].exact);
}

void ggl_events_set(far_events *v, trace_event_fn *event, void *ctx) {
    if (!v)
        return;
    v->event = event;
    v->event_ctx = ctx;
    tell_clock(v);
}

/* Compares the clocks once more, if that was some time ago. Not while a device is opened there, which may take long. */
static void measure(far_events *v) {
    const uint64_t seconds = 5, now = ggl_os_clock();
    job *j = v->c->j;
    if (now - v->clock.measured < seconds * 1000000000 || !ggl_os_mutex_try(&j->lock))
        return;
    const int64_t at = v->clock.sample[1].at;
    (void)ggl_clock_measure(&v->clock, j, v->c->rank);
    ggl_os_mutex_unlock(&j->lock);
    if (v->clock.sample[1].at != at)
        tell_clock(v);
}

static uint64_t place(far_events *v, uint64_t there) {
    const uint64_t here = ggl_clock_here(&v->clock, there),
                   placed = here > v->floor ? here : v->floor;
    v->top = placed > v->top ? placed : v->top;
    return placed;
}

/* --- reporting ---------------------------------------------------------------------------------- */

/* Returns the node of a step; NULL: its graph is gone, or the event is damaged. */
static const ggl_tensor *node_of(const far_events *v, const kept_event *head) {
    for (size_t i = 0; i < v->n_graphs; i++)
        if (v->graph[i].id == head->node)
            return head->id < (uint32_t)v->graph[i].n_ids ? v->graph[i].tensor[head->id] : NULL;
    return NULL;
}

static void report_event(far_events *v, const kept_event *head, trace_event *e) {
    const ggl_tensor *node = head->node ? node_of(v, head) : NULL;
    e->begin = place(v, e->begin);
    e->end = place(v, e->end);
    if (node && v->profile)
        v->profile(v->profile_ctx, node, e->n, e->prepares, e->begin, e->end);
    else if (!head->node && v->event)
        v->event(v->event_ctx, e);
}

static ggl_status report_fetch(far_events *v, const fetch *f, ggl_error *err) {
    events_head h;
    memcpy(&h, f->to, sizeof h);
    const char *at = f->to + sizeof h;
    if (h.size > EVENTS_SIZE - sizeof h)
        h = (events_head){0};
    if (!v->is_cut && h.size > 0) {
        v->floor = v->top;
        measure(v);
    }
    v->is_cut = h.size > 0 ? h.left > 0 : v->is_cut;
    while (h.size > 0) {
        kept_event head;
        trace_event e;
        const size_t n = ggl_kept_read(at, h.size, &head, &e);
        if (n == 0)
            break; /* damaged */
        report_event(v, &head, &e);
        at += n;
        h.size -= (uint32_t)n;
    }
    const bool loses = h.lost > v->lost;
    v->left = h.left;
    v->lost = h.lost;
    if (loses && v->event)
        tell(v, "events that had no room there", "n", h.lost);
    else if (loses)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: %llu steps of a batch had no room in the %d MiB that the rank has "
                        "for them; smaller batches (-ub) have fewer steps",
                        v->c->name, (unsigned long long)h.lost, MOST_EVENTS >> 20);
    return GGL_OK;
}

/* True if the packet is answered, and its data has come. */
static bool is_done(const channel *c, uint64_t number) {
    for (size_t i = 0; i < c->n_waited; i++)
        if (c->waited[i].number <= number)
            return false;
    return c->answered >= number;
}

static ggl_status report(far_events *v, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (ggl_job_is_lost(v->c->j, v->c->rank))
        v->n = 0;
    while (st == GGL_OK && v->n > 0 && is_done(v->c, v->fetch[0].number)) {
        const fetch f = v->fetch[0];
        st = report_fetch(v, &f, err);
        if (v->left == 0 && f.number + 1 == v->c->number && v->c->out.n == 0)
            v->complete = v->c->number;
        memmove(v->fetch, v->fetch + 1, (size_t)--v->n * sizeof *v->fetch);
        v->fetch[v->n] = f;
    }
    return st;
}

/* Orders events, if there are at least so many bytes. */
static bool order(far_events *v, uint32_t least) {
    channel *c = v->c;
    if (v->n == MOST_FETCHES || ggl_channel_begin(c, ORDER_EVENTS, 4, NULL) != GGL_OK)
        return false;
    ggl_put_u32(&c->out, least);
    ggl_channel_end(c);
    if (ggl_channel_receive(c, v->fetch[v->n].to, EVENTS_SIZE, NULL) != GGL_OK)
        return false;
    v->fetch[v->n++].number = c->number;
    return true;
}

void ggl_events_order(far_events *v) {
    if (v)
        (void)order(v, LEAST_EVENTS);
}

/* Waits for all packets. The error of an order stays for whoever waits for that. False: the rank is lost. */
static bool call(channel *c) {
    ggl_error e = {0};
    const ggl_status st = ggl_channel_call(c, NULL, &e);
    if (st != GGL_OK && !ggl_job_is_lost(c->j, c->rank)) {
        c->failed = e;
        c->failed.status = st;
    }
    return !ggl_job_is_lost(c->j, c->rank);
}

ggl_status ggl_events_report_all(far_events *v, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (!v || (v->c->number == v->complete && v->c->out.n == 0 && v->n == 0))
        return st;
    bool ordered = false;
    while (st == GGL_OK && !(ordered && v->left == 0)) {
        ordered = order(v, 0);
        if (!call(v->c)) {
            v->n = 0;
            return GGL_OK;
        }
        st = report(v, err);
    }
    v->complete = v->c->number;
    return st;
}

ggl_status ggl_events_report(far_events *v, ggl_error *err) {
    const ggl_status st = v ? report(v, err) : GGL_OK;
    /* batches may record more than is fetched with each */
    return st == GGL_OK && v && v->left > MOST_EVENTS / 8 ? ggl_events_report_all(v, err) : st;
}
