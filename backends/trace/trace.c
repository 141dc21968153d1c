/* A backend that runs on another one and writes down what happened, and when. Each instance is a
 * track of the timeline; spans nest as the calls do. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"
#include "../common/wrap.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/backends.h"

enum { N_KINDS = GGL_REGION_WEIGHT + 1 };
static const char *const region_name[N_KINDS] = {"arena", "io", "stores", "repacked", "weights"};

/* What was allocated, so that free can say how much it was. */
typedef struct held {
    const ggl_buffer *buffer;
    int region;
    size_t size; /* 0: imported */
} held;

typedef struct trace {
    wrap w;
    recorder *r;
    int track;
    int device_track;        /* of an asynchronous backend's nodes; 0: it has reported none yet */
    int far_track;           /* of what else a device of another rank does; 0: it is of this one */
    ggl_profile_fn *profile; /* the caller's */
    void *profile_ctx;
    held *held;
    size_t n_held, cap_held;
    size_t bytes[N_KINDS];
    int n_plans;
    uint64_t polled, polled_since; /* the mark that was looked for last, and since when */
    uint64_t polled_done;          /* the last one that was done then */
} trace;

typedef struct trace_plan {
    ggl_plan base;
    ggl_plan *inner;
    int number, n_nodes;
} trace_plan;

/* --- events ----------------------------------------------------------------------------------- */

static trace *trace_of(ggl_backend *b) {
    return (trace *)b;
}

static uint64_t begin(const trace *t) {
    return t->r ? ggl_recorder_now(t->r) : 0; /* NULL: the timeline has ended */
}

/* A span that began at `since` and ends now; args end with a NULL key. A call that failed says why
 * in one word or two. */
static void span(trace *t, const char *name, uint64_t since, ggl_status st,
                 const trace_arg args[TRACE_MAX_ARGS]) {
    if (!t->r)
        return;
    trace_event e = {.phase = 'X',
                     .track = t->track,
                     .name = name,
                     .kind = "backend",
                     .begin = since,
                     .end = ggl_recorder_now(t->r)};
    int n = 0;
    for (; n < TRACE_MAX_ARGS - 1 && args[n].key; n++)
        e.arg[n] = args[n];
    if (st != GGL_OK)
        e.arg[n] = (trace_arg){"failed", ggl_status_text(st), 0};
    ggl_recorder_write(t->r, &e);
}

#define ARGS(...) ((const trace_arg[TRACE_MAX_ARGS]){__VA_ARGS__})

static const char *operator_of(const ggl_tensor *node) {
    return node->call ? node->call : ggl_op_get(node->op).name;
}

static const char *label_of(const ggl_tensor *node) {
    return node->name ? node->name : operator_of(node);
}

static const char *weight_of(const ggl_tensor *node) {
    for (int k = 0; k < node->n_src; k++)
        if (node->src[k] && node->src[k]->op == GGL_OP_WEIGHT)
            return node->src[k]->name;
    return NULL;
}

/* Returns the track of nodes. Nodes of an asynchronous backend may run when the call that started
 * them has ended, and during other calls. */
static int track_of_nodes(trace *t) {
    char name[sizeof t->w.base.name + 32];
    if (!t->w.inner->async)
        return t->track;
    if (t->device_track == 0) {
        snprintf(name, sizeof name, "%s: nodes on the device", t->w.inner->name);
        t->device_track = ggl_recorder_track(t->r, name);
    }
    return t->device_track;
}

static void record_node(trace *t, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                        uint64_t end) {
    trace_event e = {
        .phase = 'X',
        .track = track_of_nodes(t),
        .name = label_of(node),
        .kind = prepares ? "prepares" : "node",
        .begin = ggl_recorder_at(t->r, begin),
        .end = ggl_recorder_at(t->r, end),
        .arg = {{"operator", operator_of(node), 0}, {"n", NULL, (uint64_t)n}},
        .node = node,
        .n = n,
        .prepares = prepares,
    };
    int k = 2;
    if (weight_of(node))
        e.arg[k++] = (trace_arg){"weight", weight_of(node), 0};
    if (node->origin)
        e.arg[k++] = (trace_arg){"origin", node->origin, 0};
    if (node->group >= 0)
        e.arg[k++] = (trace_arg){"group", NULL, (uint64_t)node->group};
    ggl_recorder_write(t->r, &e);
}

static void on_step(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                    uint64_t end) {
    trace *t = ctx;
    if (t->r) /* NULL while the inner backend is opened, and after the timeline's end */
        record_node(t, node, n, prepares, begin, end);
    if (t->profile)
        t->profile(t->profile_ctx, node, n, prepares, begin, end);
}

void ggl_trace_node(void *ctx, const ggl_tensor *node, int64_t n, bool prepares, uint64_t begin,
                    uint64_t end) {
    ggl_backend *const *b = ctx;
    if (*b)
        on_step(*b, node, n, prepares, begin, end);
}

void ggl_trace_far(ggl_backend *b, const char *name, bool nodes_apart) {
    trace *t = trace_of(b);
    char nodes[160];
    t->far_track = t->device_track = ggl_recorder_track(t->r, name);
    snprintf(nodes, sizeof nodes, "%s: nodes on the device", name);
    if (nodes_apart)
        t->device_track = ggl_recorder_track(t->r, nodes);
}

void ggl_trace_far_event(void *ctx, const trace_event *e) {
    const trace *t = ctx;
    trace_event own = *e;
    if (!t->r)
        return;
    own.track = t->far_track;
    own.begin = ggl_recorder_at(t->r, e->begin);
    own.end = ggl_recorder_at(t->r, e->end);
    ggl_recorder_write(t->r, &own);
}

ggl_backend *ggl_trace_inner(ggl_backend *b) {
    return wrap_inner(b);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void draw_memory(trace *t) {
    char name[64];
    if (!t->r)
        return;
    snprintf(name, sizeof name, "memory of %s, track %d", t->w.base.name, t->track);
    trace_event e = {.phase = 'C',
                     .track = t->track,
                     .name = name,
                     .kind = "memory",
                     .begin = ggl_recorder_now(t->r)};
    for (int i = 0; i < N_KINDS; i++)
        e.arg[i] = (trace_arg){region_name[i], NULL, t->bytes[i]};
    ggl_recorder_write(t->r, &e);
}

static ggl_status t_alloc(ggl_backend *b, int region, size_t size, const void *host,
                          ggl_buffer **out, ggl_error *err) {
    trace *t = trace_of(b);
    int kind = region < 0 ? 0 : region < N_KINDS ? region : GGL_REGION_WEIGHT;
    if (!ggl_grow(&t->held, &t->cap_held, t->n_held + 1, sizeof *t->held))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a trace");
    uint64_t since = begin(t);
    ggl_status st = wrap_inner(b)->v->alloc(wrap_inner(b), region, size, host, out, err);
    span(t, host ? "import" : "alloc", since, st,
         ARGS({"region", region_name[kind], 0}, {"bytes", NULL, size}));
    if (st != GGL_OK)
        return st;
    t->held[t->n_held++] = (held){*out, kind, host ? 0 : size};
    t->bytes[kind] += host ? 0 : size;
    draw_memory(t);
    return GGL_OK;
}

static void t_free(ggl_backend *b, ggl_buffer *buf) {
    trace *t = trace_of(b);
    held was = {0};
    for (size_t i = 0; i < t->n_held; i++)
        if (t->held[i].buffer == buf) {
            was = t->held[i];
            t->held[i] = t->held[--t->n_held];
            break;
        }
    uint64_t since = begin(t);
    wrap_inner(b)->v->free(wrap_inner(b), buf);
    span(t, "free", since, GGL_OK,
         ARGS({"region", region_name[was.region], 0}, {"bytes", NULL, was.size}));
    t->bytes[was.region] -= was.size;
    draw_memory(t);
}

static ggl_status t_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                           size_t size, ggl_error *err) {
    uint64_t since = begin(trace_of(b));
    ggl_status st = wrap_inner(b)->v->upload(wrap_inner(b), dst, offset, src, size, err);
    span(trace_of(b), "upload", since, st, ARGS({"bytes", NULL, size}));
    return st;
}

static ggl_status t_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                             size_t size, ggl_error *err) {
    uint64_t since = begin(trace_of(b));
    ggl_status st = wrap_inner(b)->v->download(wrap_inner(b), src, offset, dst, size, err);
    span(trace_of(b), "download", since, st, ARGS({"bytes", NULL, size}));
    return st;
}

static ggl_status t_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                         const ggl_copy_range *range, size_t n, ggl_error *err) {
    uint64_t since = begin(trace_of(b)), size = 0;
    ggl_status st = wrap_inner(b)->v->copy(wrap_inner(b), dst, src, range, n, err);
    for (size_t i = 0; i < n; i++)
        size += range[i].size;
    span(trace_of(b), "copy", since, st, ARGS({"bytes", NULL, size}));
    return st;
}

static ggl_status t_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                          ggl_error *err) {
    uint64_t since = begin(trace_of(b));
    ggl_status st = wrap_inner(b)->v->clear(wrap_inner(b), buf, offset, size, err);
    span(trace_of(b), "clear", since, st, ARGS({"bytes", NULL, size}));
    return st;
}

static ggl_status t_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *weight,
                           ggl_error *err) {
    uint64_t since = begin(trace_of(b));
    ggl_status st = wrap_inner(b)->v->repack(wrap_inner(b), dst, offset, weight, err);
    span(trace_of(b), "repack", since, st,
         ARGS({"weight", label_of(weight), 0}, {"bytes", NULL, weight->size}));
    return st;
}

/* --- plans ------------------------------------------------------------------------------------ */

static ggl_status t_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    trace *t = trace_of(b);
    *out = NULL;
    trace_plan *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    p->number = ++t->n_plans;
    p->n_nodes = s->n_node;
    uint64_t since = begin(t);
    ggl_status st = ggl_wrap_compile(b, s, &p->inner, err);
    size_t arena = st == GGL_OK ? p->inner->arena_size : 0;
    span(t, "compile", since, st,
         ARGS({"plan", NULL, (uint64_t)p->number}, {"nodes", NULL, (uint64_t)s->n_node},
              {"n_max", NULL, (uint64_t)s->n_max}, {"arena", NULL, arena}));
    if (st != GGL_OK) {
        ggl_free(p);
        return st;
    }
    p->base.arena_size = arena;
    *out = &p->base;
    return GGL_OK;
}

static ggl_status t_run(ggl_backend *b, ggl_plan *plan, ggl_buffer *const *region, int64_t n,
                        ggl_error *err) {
    const trace_plan *p = (const trace_plan *)plan;
    uint64_t since = begin(trace_of(b));
    ggl_status st = ggl_wrap_run(b, p->inner, region, n, err);
    span(trace_of(b), "run", since, st,
         ARGS({"plan", NULL, (uint64_t)p->number}, {"nodes", NULL, (uint64_t)p->n_nodes},
              {"n", NULL, (uint64_t)n}));
    return st;
}

static ggl_status t_wait(ggl_backend *b, ggl_error *err) {
    uint64_t since = begin(trace_of(b));
    ggl_status st = wrap_inner(b)->v->wait(wrap_inner(b), err);
    span(trace_of(b), "wait", since, st, ARGS({0}));
    return st;
}

static ggl_status t_wait_for(ggl_backend *b, uint64_t mark, ggl_error *err) {
    uint64_t since = begin(trace_of(b));
    ggl_status st = wrap_inner(b)->v->wait_for(wrap_inner(b), mark, err);
    if (trace_of(b)->polled_done != mark) /* else the wait is noted, and was over */
        span(trace_of(b), "wait", since, st, ARGS({"mark", NULL, mark}));
    return st;
}

/* One wait, however often it is looked. */
static ggl_status t_poll(ggl_backend *b, uint64_t mark, bool *done, ggl_error *err) {
    trace *t = trace_of(b);
    if (t->polled != mark) {
        t->polled = mark;
        t->polled_since = begin(t);
    }
    const ggl_status st = wrap_inner(b)->v->poll(wrap_inner(b), mark, done, err);
    if (st != GGL_OK || *done) {
        span(t, "wait", t->polled_since, st, ARGS({"mark", NULL, mark}));
        t->polled_done = mark;
    }
    return st;
}

static void t_describe(ggl_backend *b, ggl_plan *plan, int64_t n, char *text, size_t size) {
    wrap_inner(b)->v->describe(wrap_inner(b), ((trace_plan *)plan)->inner, n, text, size);
}

static void t_plan_free(ggl_backend *b, ggl_plan *plan) {
    wrap_inner(b)->v->plan_free(wrap_inner(b), ((trace_plan *)plan)->inner);
    ggl_free(plan);
}

/* --- life ------------------------------------------------------------------------------------- */

static void t_close(ggl_backend *b);

ggl_status ggl_trace_end(ggl_backend *b, ggl_error *err) {
    if (b->v->close != t_close)
        return GGL_OK;
    trace *t = trace_of(b);
    recorder *r = t->r;
    if (r && t->w.inner->async)
        (void)t->w.inner->v->wait(t->w.inner, NULL); /* this reports nodes */
    t->r = NULL;
    return r ? ggl_recorder_close(r, err) : GGL_OK;
}

static void t_close(ggl_backend *b) {
    trace *t = trace_of(b);
    ggl_error err = {0};
    /* close returns nothing, and a trace that got lost has to be reported */
    if (ggl_trace_end(b, &err) != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
    ggl_backend_close(t->w.inner);
    ggl_free(t->held);
    ggl_free(t);
}

static ggl_status start(trace *t, ggl_backend *inner, const char *path, ggl_error *err) {
    ggl_status st = ggl_recorder_open(&t->r, path, err);
    if (st != GGL_OK)
        return st;
    ggl_wrap_init(&t->w, inner);
    ggl_backend_vtable *v = &t->w.v;
    v->close = t_close;
    v->alloc = t_alloc;
    v->free = t_free;
    v->upload = t_upload;
    v->download = t_download;
    v->copy = t_copy;
    v->clear = t_clear;
    v->compile = t_compile;
    v->run = t_run;
    v->wait = t_wait;
    if (v->wait_for)
        v->wait_for = t_wait_for;
    if (v->poll)
        v->poll = t_poll;
    v->plan_free = t_plan_free;
    v->describe = inner->v->describe ? t_describe : NULL;
    if (v->repack)
        v->repack = t_repack;
    char name[sizeof inner->name + sizeof inner->description + 2];
    snprintf(name, sizeof name, "%s: %s", inner->name, inner->description);
    t->track = ggl_recorder_track(t->r, name);
    return GGL_OK;
}

static const char *default_path(void) {
    const char *path = getenv("GGL_TRACE");
    return path && path[0] ? path : "trace.json";
}

ggl_status ggl_trace_wrap(ggl_backend **out, ggl_backend *inner, const char *path, ggl_error *err) {
    *out = NULL;
    trace *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    ggl_status st = start(t, inner, path ? path : default_path(), err);
    if (st != GGL_OK) {
        ggl_free(t);
        return st;
    }
    *out = &t->w.base;
    return GGL_OK;
}

ggl_status ggl_trace_open(ggl_backend **out, trace_open_fn *open, const char *name,
                          const ggl_backend_params *params, ggl_error *err) {
    ggl_backend_params p = *params;
    ggl_backend *inner = NULL;
    if (strncmp(name, "trace", 5) == 0 && (name[5] == ':' || !name[5]))
        return ggl_fail(err, GGL_USAGE, "a trace of a trace");
    trace *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    t->profile = p.profile;
    t->profile_ctx = p.profile_ctx;
    p.profile = on_step;
    p.profile_ctx = t;
    p.trace = NULL;
    ggl_status st = open(&inner, name, &p, err);
    if (st == GGL_OK)
        st = start(t, inner, params->trace ? params->trace : default_path(), err);
    if (st != GGL_OK) {
        ggl_backend_close(inner);
        ggl_free(t);
        return st;
    }
    *out = &t->w.base;
    return GGL_OK;
}
