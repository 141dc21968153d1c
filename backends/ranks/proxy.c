/* The backend "rank2", or "rank2:vulkan0": a device of another rank. Each call is an order to that rank, which has a backend of
 * its own. Rank 0 keeps no copy of what the device holds. Calls that return nothing are collected, and sent with the next one
 * that does, with a mark, or when a packet is full: so a batch takes one message to the rank, and one back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/image.h"
#include "ggl/internal/text.h"
#include "channel.h"
#include "events.h"
#include "ranks.h"
#include "sending.h"

struct ggl_buffer {
    uint32_t id; /* 0: it is memory of rank 0 */
    int region;
    char *host;
    size_t size;
};

/* A graph that the rank has, too. */
typedef struct sent_graph {
    const ggl_graph *g;
    uint32_t id;
    int n_plans;
} sent_graph;

typedef struct rank_plan {
    ggl_plan base;
    uint32_t id;
    const ggl_graph *g;
    int n_regions; /* the largest region that it uses, plus 1 */
} rank_plan;

/* An answer that is asked for again and again, as the layers of a model are alike. */
typedef struct known {
    ggl_bytes of;
    char *why; /* NULL: it does not refuse */
    uint64_t size;
} known;

typedef struct rank_backend {
    ggl_backend base;
    ggl_backend_vtable v;
    channel c;
    char layout[64];
    uint32_t last_id; /* of buffers, plans and graphs */
    sent_graph *graph;
    size_t n_graphs, cap_graphs;
    known *node, *weight;
    size_t n_nodes, cap_nodes, n_weights, cap_weights;
    sending sending; /* weights */
    int k;           /* its channel */
    bool is_closing;
    bool is_async_there; /* the device itself */
    far_events *events;  /* NULL: nobody wants to know when it did what */
} rank_backend;

static rank_backend *of(const ggl_backend *b) {
    return (rank_backend *)(uintptr_t)b;
}

/* Begins an order, after all weights are sent. */
static ggl_status begin(rank_backend *r, order_op op, size_t size, ggl_error *err) {
    const ggl_status st = ggl_sending_finish(&r->sending, err);
    return st == GGL_OK ? ggl_channel_begin(&r->c, op, size, err) : st;
}

/* --- memory ------------------------------------------------------------------------------------ */

static ggl_status rank_alloc(ggl_backend *b, int region, size_t size, const void *host,
                             ggl_buffer **out, ggl_error *err) {
    rank_backend *r = of(b);
    if (host && region != GGL_REGION_IO)
        return GGL_UNSUPPORTED;
    ggl_buffer *buf = ggl_calloc(1, sizeof *buf);
    if (!buf)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a buffer");
    *buf = (ggl_buffer){host ? 0 : ++r->last_id, region, (char *)(uintptr_t)host, size};
    ggl_status st = host ? GGL_OK : begin(r, ORDER_ALLOC, 16, err);
    if (st == GGL_OK && !host) {
        ggl_put_u32(&r->c.out, buf->id);
        ggl_put_u32(&r->c.out, (uint32_t)region);
        ggl_put_u64(&r->c.out, size);
        ggl_channel_end(&r->c);
        st = ggl_channel_call(&r->c, NULL, err);
    }
    if (st == GGL_OK)
        *out = buf;
    else
        ggl_free(buf);
    return st;
}

static void rank_free(ggl_backend *b, ggl_buffer *buf) {
    rank_backend *r = of(b);
    if (buf && buf->id && begin(r, ORDER_FREE, 4, NULL) == GGL_OK) {
        ggl_put_u32(&r->c.out, buf->id);
        ggl_channel_end(&r->c);
    }
    ggl_free(buf);
}

/* Puts an order about bytes of a buffer. */
static ggl_status put_range(rank_backend *r, order_op op, const ggl_buffer *buf, size_t offset,
                            size_t size, int is_data, const void *bytes, ggl_error *err) {
    const ggl_status st = begin(r, op, 24 + (bytes ? size : 0), err);
    if (st != GGL_OK)
        return st;
    ggl_put_u32(&r->c.out, buf->id);
    ggl_put_u32(&r->c.out, (uint32_t)is_data);
    ggl_put_u64(&r->c.out, offset);
    ggl_put_u64(&r->c.out, size);
    if (bytes)
        ggl_put(&r->c.out, bytes, size);
    ggl_channel_end(&r->c);
    return GGL_OK;
}

/* keeps: `src` does not change before the next mark is done. */
static ggl_status put(rank_backend *r, const ggl_buffer *dst, size_t offset, const void *src,
                      size_t size, bool keeps, ggl_error *err) {
    const bool small = size <= MOST_INLINE;
    ggl_status st = put_range(r, ORDER_PUT, dst, offset, size, !small, small ? src : NULL, err);
    if (st != GGL_OK || small)
        return st;
    return keeps ? ggl_channel_send(&r->c, src, size, err)
                 : ggl_channel_send_all(&r->c, src, size, err);
}

static ggl_status get(rank_backend *r, const ggl_buffer *src, size_t offset, void *dst, size_t size,
                      ggl_error *err) {
    ggl_status st = begin(r, ORDER_GET, 24, err); /* makes room */
    if (st != GGL_OK)
        return st;
    const bool small = ggl_channel_has_room(&r->c, size);
    ggl_put_u32(&r->c.out, src->id);
    ggl_put_u32(&r->c.out, !small);
    ggl_put_u64(&r->c.out, offset);
    ggl_put_u64(&r->c.out, size);
    ggl_channel_end(&r->c);
    if (!small)
        return ggl_channel_receive(&r->c, dst, size, err);
    ggl_channel_expect(&r->c, dst, size);
    return GGL_OK;
}

/* Puts an order that needs a weight, with the body `head`, which is taken, and the weight's source. */
static ggl_status load(rank_backend *r, order_op op, ggl_bytes *head, const void *data, size_t size,
                       ggl_error *err) {
    if (!head->failed)
        return ggl_sending_add(&r->sending, &r->c, op, head, data, size, err);
    ggl_bytes_fini(head);
    return ggl_fail(err, GGL_NOMEM, "%s: out of memory for a weight", r->c.name);
}

/* Fills a part of a buffer with a weight, or begins to. */
static ggl_status fill(rank_backend *r, const ggl_buffer *dst, size_t offset, const void *src,
                       size_t size, ggl_error *err) {
    ggl_bytes head = {0};
    ggl_put_u32(&head, dst->id);
    ggl_put_u64(&head, offset);
    ggl_put_u64(&head, size);
    return load(r, ORDER_FILL, &head, src, size, err);
}

static ggl_status rank_upload(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                              size_t size, ggl_error *err) {
    if (dst->host) {
        memcpy(dst->host + offset, src, size);
        return GGL_OK;
    }
    return dst->region == GGL_REGION_WEIGHT ? fill(of(b), dst, offset, src, size, err)
                                            : put(of(b), dst, offset, src, size, false, err);
}

static ggl_status rank_download(ggl_backend *b, const ggl_buffer *src, size_t offset, void *dst,
                                size_t size, ggl_error *err) {
    if (src->host) {
        memcpy(dst, src->host + offset, size);
        return GGL_OK;
    }
    const ggl_status st = get(of(b), src, offset, dst, size, err);
    return st == GGL_OK ? ggl_channel_call(&of(b)->c, NULL, err) : st;
}

static ggl_status rank_copy(ggl_backend *b, ggl_buffer *dst, const ggl_buffer *src,
                            const ggl_copy_range *range, size_t n, ggl_error *err) {
    enum { MOST = 1024 }; /* ranges of an order */
    rank_backend *r = of(b);
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n && st == GGL_OK && (dst->host || src->host); i++) {
        const ggl_copy_range *x = &range[i];
        if (dst->host && src->host)
            memcpy(dst->host + x->to, src->host + x->from, x->size);
        else if (src->host)
            st = put(r, dst, x->to, src->host + x->from, x->size, true, err);
        else
            st = get(r, src, x->from, dst->host + x->to, x->size, err);
    }
    for (size_t i = 0; i < n && st == GGL_OK && !dst->host && !src->host; i += MOST) {
        const size_t k = n - i < MOST ? n - i : MOST;
        st = begin(r, ORDER_COPY, 12 + k * sizeof *range, err);
        if (st != GGL_OK)
            break;
        ggl_put_u32(&r->c.out, dst->id);
        ggl_put_u32(&r->c.out, src->id);
        ggl_put_u32(&r->c.out, (uint32_t)k);
        ggl_put(&r->c.out, range + i, k * sizeof *range);
        ggl_channel_end(&r->c);
    }
    return st;
}

static ggl_status rank_clear(ggl_backend *b, ggl_buffer *buf, size_t offset, size_t size,
                             ggl_error *err) {
    if (buf->host) {
        memset(buf->host + offset, 0, size);
        return GGL_OK;
    }
    return put_range(of(b), ORDER_CLEAR, buf, offset, size, 0, NULL, err);
}

/* --- what is asked again and again -------------------------------------------------------------- */

/* Returns the entry with these bytes; NULL: there is none. */
static known *find(known *at, size_t n, const ggl_bytes *of) {
    for (size_t i = 0; i < n; i++)
        if (at[i].of.n == of->n && memcmp(at[i].of.at, of->at, of->n) == 0)
            return &at[i];
    return NULL;
}

/* Adds an entry, which takes the bytes; NULL: out of memory. */
static known *add(known **at, size_t *n, size_t *cap, ggl_bytes *of) {
    if (!ggl_grow(at, cap, *n + 1, sizeof **at))
        return NULL;
    known *k = &(*at)[(*n)++];
    *k = (known){.of = *of};
    *of = (ggl_bytes){0};
    return k;
}

/* Asks whether the rank refuses the node of that image; the entry with its answer, NULL: *err. */
static known *ask_refuses(rank_backend *r, ggl_bytes *image, ggl_error *err) {
    ggl_reader result;
    ggl_status st = begin(r, ORDER_REFUSES, 8, err);
    if (st == GGL_OK) {
        ggl_put_u64(&r->c.out, image->n);
        ggl_channel_end(&r->c);
        st = ggl_channel_send_all(&r->c, image->at, image->n, err);
    }
    if (st == GGL_OK)
        st = ggl_channel_call(&r->c, &result, err);
    if (st != GGL_OK)
        return NULL;
    const ggl_str why = ggl_get_text(&result);
    char *text = why.s ? ggl_calloc(why.n + 1, 1) : NULL;
    if (why.s && text)
        memcpy(text, why.s, why.n);
    known *k = why.s && !text ? NULL : add(&r->node, &r->n_nodes, &r->cap_nodes, image);
    if (k)
        k->why = text;
    else
        ggl_free(text);
    return k;
}

static const char *rank_refuses(const ggl_backend *b, const ggl_tensor *node) {
    rank_backend *r = of(b);
    ggl_bytes image = {0};
    ggl_error err = {0};
    known *k = NULL;
    if (ggl_node_image((ggl_tensor *)(uintptr_t)node, &image, &err) == GGL_OK) {
        k = find(r->node, r->n_nodes, &image);
        if (!k)
            k = ask_refuses(r, &image, &err);
    }
    ggl_bytes_fini(&image);
    return k ? k->why : "the rank cannot be asked";
}

static size_t rank_repack_size(const ggl_backend *b, const ggl_tensor *w) {
    rank_backend *r = of(b);
    ggl_bytes image = {0};
    ggl_reader result;
    ggl_tensor nameless = *w;
    nameless.name = NULL;
    ggl_weight_image(&nameless, &image);
    known *k = image.failed ? NULL : find(r->weight, r->n_weights, &image);
    if (!k && !image.failed && begin(r, ORDER_REPACK_SIZE, image.n, NULL) == GGL_OK) {
        ggl_put(&r->c.out, image.at, image.n);
        ggl_channel_end(&r->c);
        if (ggl_channel_call(&r->c, &result, NULL) == GGL_OK &&
            (k = add(&r->weight, &r->n_weights, &r->cap_weights, &image)))
            k->size = ggl_get_u64(&result);
    }
    ggl_bytes_fini(&image);
    return k ? (size_t)k->size : 0;
}

static ggl_status rank_repack(ggl_backend *b, ggl_buffer *dst, size_t offset, const ggl_tensor *w,
                              ggl_error *err) {
    ggl_bytes head = {0};
    ggl_put_u32(&head, dst->id);
    ggl_put_u64(&head, offset);
    ggl_weight_image(w, &head);
    return load(of(b), ORDER_REPACK, &head, w->data, w->size, err);
}

/* --- plans -------------------------------------------------------------------------------------- */

static void put_locs(ggl_bytes *out, const ggl_loc *loc, int n, int *n_regions) {
    ggl_put_u32(out, loc != NULL);
    for (int i = 0; loc && i < n; i++)
        if (loc[i].region >= 0) {
            ggl_put_u32(out, (uint32_t)i);
            ggl_put_u32(out, (uint32_t)loc[i].region);
            ggl_put_u64(out, loc[i].offset);
            ggl_put_u64(out, loc[i].step);
            *n_regions = loc[i].region >= *n_regions ? loc[i].region + 1 : *n_regions;
        }
    ggl_put_u32(out, UINT32_MAX);
}

/* The segment without its graph: read by execute.c. */
static void put_segment(ggl_bytes *out, const ggl_segment *s, int *n_regions) {
    *n_regions = GGL_REGION_IO + 1;
    ggl_put_u32(out, (uint32_t)s->n_node);
    for (int i = 0; i < s->n_node; i++)
        ggl_put_u32(out, (uint32_t)s->node[i]->id);
    ggl_put_u64(out, (uint64_t)s->n_max);
    ggl_put_u64(out, (uint64_t)s->n_slots);
    put_locs(out, s->loc, ggl_graph_n_ids(s->graph), n_regions);
    put_locs(out, s->store_loc, ggl_graph_n_stores(s->graph), n_regions);
    put_locs(out, s->repacked, ggl_graph_n_ids(s->graph), n_regions);
}

/* Returns the entry of the graph, a new one with id 0 if the rank does not have it; NULL: out of memory. */
static sent_graph *find_graph(rank_backend *r, const ggl_graph *g) {
    for (size_t i = 0; i < r->n_graphs; i++)
        if (r->graph[i].g == g)
            return &r->graph[i];
    if (!ggl_grow(&r->graph, &r->cap_graphs, r->n_graphs + 1, sizeof *r->graph))
        return NULL;
    r->graph[r->n_graphs] = (sent_graph){.g = g};
    return &r->graph[r->n_graphs++];
}

/* Notes that a plan of the graph is gone. Returns the graph's id if it was the last one, which the rank then forgets; else 0. */
static uint32_t leave_graph(rank_backend *r, const ggl_graph *g) {
    sent_graph *s = find_graph(r, g);
    if (!s || --s->n_plans > 0)
        return 0;
    const uint32_t id = s->id;
    *s = r->graph[--r->n_graphs];
    return id;
}

static ggl_status rank_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out,
                               ggl_error *err) {
    rank_backend *r = of(b);
    ggl_bytes image = {0}, segment = {0};
    ggl_reader result;
    sent_graph *g = find_graph(r, s->graph);
    rank_plan *p = ggl_calloc(1, sizeof *p);
    ggl_status st = g && p ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st == GGL_OK && g->n_plans == 0)
        st = ggl_graph_image(s->graph, &image, err);
    if (st == GGL_OK) {
        if (g->n_plans == 0)
            g->id = ++r->last_id;
        *p = (rank_plan){.id = ++r->last_id, .g = s->graph};
        put_segment(&segment, s, &p->n_regions);
        const bool is_known = g->n_plans > 0 || ggl_events_add_graph(r->events, g->id, s->graph);
        st = segment.failed || !is_known ? ggl_fail(err, GGL_NOMEM, "out of memory for a plan")
                                         : begin(r, ORDER_COMPILE, 24, err);
    }
    if (st == GGL_OK) {
        ggl_put_u32(&r->c.out, p->id);
        ggl_put_u32(&r->c.out, g->id);
        ggl_put_u64(&r->c.out, image.n);
        ggl_put_u64(&r->c.out, segment.n);
        ggl_channel_end(&r->c);
        r->c.cancelled = b->cancelled;
        r->c.cancelled_ctx = b->cancelled_ctx;
        r->c.cancellable = r->c.number;
        st = ggl_channel_send_all(&r->c, image.at, image.n, err);
        if (st == GGL_OK)
            st = ggl_channel_send_all(&r->c, segment.at, segment.n, err);
        if (st == GGL_OK)
            st = ggl_channel_call(&r->c, &result, err);
        r->c.cancelled = NULL;
    }
    if (st == GGL_OK) {
        p->base.arena_size = (size_t)ggl_get_u64(&result);
        g->n_plans++;
        *out = &p->base;
    } else {
        if (g && g->n_plans == 0 && image.n > 0 &&
            begin(r, ORDER_PLAN_FREE, 8, NULL) == GGL_OK) { /* the rank may have the graph */
            ggl_put_u32(&r->c.out, 0);
            ggl_put_u32(&r->c.out, g->id);
            ggl_channel_end(&r->c);
        }
        if (g && g->n_plans == 0)
            ggl_events_drop_graph(r->events, g->id);
        if (g && g->n_plans == 0)
            *g = r->graph[--r->n_graphs];
        ggl_free(p);
    }
    ggl_bytes_fini(&image);
    ggl_bytes_fini(&segment);
    return st;
}

static void rank_plan_free(ggl_backend *b, ggl_plan *plan) {
    rank_backend *r = of(b);
    rank_plan *p = (rank_plan *)plan;
    if (!p)
        return;
    if (ggl_sending_finish(&r->sending, NULL) == GGL_OK)
        (void)ggl_events_report_all(r->events, NULL); /* while the graph exists */
    const uint32_t graph = leave_graph(r, p->g);
    ggl_events_drop_graph(r->events, graph);
    if (begin(r, ORDER_PLAN_FREE, 8, NULL) == GGL_OK) {
        ggl_put_u32(&r->c.out, p->id);
        ggl_put_u32(&r->c.out, graph);
        ggl_channel_end(&r->c);
    }
    ggl_free(p);
}

static void rank_describe(ggl_backend *b, ggl_plan *plan, int64_t n, char *text, size_t size) {
    rank_backend *r = of(b);
    ggl_reader result = {0};
    *text = '\0';
    if (begin(r, ORDER_DESCRIBE, 12, NULL) != GGL_OK)
        return;
    ggl_put_u32(&r->c.out, ((rank_plan *)plan)->id);
    ggl_put_u64(&r->c.out, (uint64_t)n);
    ggl_channel_end(&r->c);
    if (ggl_channel_call(&r->c, &result, NULL) != GGL_OK)
        return;
    const ggl_str s = ggl_get_text(&result);
    if (s.s)
        snprintf(text, size, "%.*s", (int)s.n, s.s);
}

/* --- runs --------------------------------------------------------------------------------------- */

static ggl_status rank_run(ggl_backend *b, ggl_plan *plan, ggl_buffer *const *region, int64_t n,
                           ggl_error *err) {
    rank_backend *r = of(b);
    const rank_plan *p = (const rank_plan *)plan;
    const ggl_status st = begin(r, ORDER_RUN, 16 + 4 * (size_t)p->n_regions, err);
    if (st != GGL_OK)
        return st;
    ggl_put_u32(&r->c.out, p->id);
    ggl_put_u64(&r->c.out, (uint64_t)n);
    ggl_put_u32(&r->c.out, (uint32_t)p->n_regions);
    for (int i = 0; i < p->n_regions; i++)
        ggl_put_u32(&r->c.out, region[i] ? region[i]->id : 0);
    ggl_channel_end(&r->c);
    /* the scheduler lends `cancelled` for this call, but the batch is under way until it is waited for */
    r->c.cancelled = b->cancelled;
    r->c.cancelled_ctx = b->cancelled_ctx;
    r->c.cancellable = r->c.number;
    return GGL_OK;
}

static ggl_status rank_mark(ggl_backend *b, uint64_t *mark, ggl_error *err) {
    const ggl_status st = ggl_sending_finish(&of(b)->sending, err);
    if (st != GGL_OK)
        return st;
    ggl_events_order(of(b)->events); /* the last order of its packet */
    return ggl_channel_flush(&of(b)->c, true, mark, err);
}

static ggl_status rank_wait_for(ggl_backend *b, uint64_t mark, ggl_error *err) {
    const ggl_status st = ggl_channel_wait(&of(b)->c, mark, err);
    return st == GGL_OK ? ggl_events_report(of(b)->events, err) : st;
}

static ggl_status rank_poll(ggl_backend *b, uint64_t mark, bool *done, ggl_error *err) {
    return ggl_channel_poll(&of(b)->c, mark, done, err);
}

static ggl_status rank_wait(ggl_backend *b, ggl_error *err) {
    channel *c = &of(b)->c;
    ggl_status st = ggl_sending_finish(&of(b)->sending, err);
    if (st != GGL_OK)
        return st;
    if (ggl_channel_is_idle(c))
        return ggl_events_report_all(of(b)->events, err);
    st = ggl_channel_begin(c, ORDER_WAIT, 0, err);
    if (st != GGL_OK)
        return st;
    ggl_channel_end(c);
    st = ggl_channel_call(c, NULL, err);
    return st == GGL_OK ? ggl_events_report_all(of(b)->events, err) : st;
}

/* --- opening ------------------------------------------------------------------------------------ */

static void known_fini(known *at, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ggl_bytes_fini(&at[i].of);
        ggl_free(at[i].why);
    }
    ggl_free(at);
}

/* Lets another device have the channel. */
static void leave_channel(rank_backend *r) {
    job *j = r->c.j;
    ggl_os_mutex_lock(&j->lock);
    j->peer[r->c.rank].channel[r->k] = (channel_use){.number = r->c.number};
    atomic_fetch_sub(&j->peer[r->c.rank].n_open, 1);
    ggl_os_mutex_unlock(&j->lock);
}

static void rank_close(ggl_backend *b) {
    rank_backend *r = of(b);
    bool is_closed = !r->is_closing;
    ggl_sending_fini(&r->sending);
    if (r->is_closing && begin(r, ORDER_CLOSE, 0, NULL) == GGL_OK) {
        ggl_channel_end(&r->c);
        (void)ggl_channel_call(&r->c, NULL, NULL);
        is_closed = true;
    }
    if (is_closed && !ggl_job_is_lost(r->c.j, r->c.rank))
        leave_channel(r);
    ggl_channel_fini(&r->c);
    ggl_events_close(r->events);
    known_fini(r->node, r->n_nodes);
    known_fini(r->weight, r->n_weights);
    ggl_free(r->graph);
    ggl_free(r);
}

static const ggl_backend_vtable vtable = {
    .close = rank_close,
    .alloc = rank_alloc,
    .free = rank_free,
    .upload = rank_upload,
    .download = rank_download,
    .copy = rank_copy,
    .clear = rank_clear,
    .refuses = rank_refuses,
    .compile = rank_compile,
    .run = rank_run,
    .wait = rank_wait,
    .mark = rank_mark,
    .wait_for = rank_wait_for,
    .poll = rank_poll,
    .plan_free = rank_plan_free,
    .describe = rank_describe,
    .repack_size = rank_repack_size,
    .repack = rank_repack,
};

/* Reads "rank2" or "rank2:vulkan0"; *device is what follows, "" for the rank's processor. */
static bool read_name(const char *name, int *rank, const char **device) {
    if (ggl_case_compare_n(name, "rank", 4) != 0)
        return false;
    const size_t digits = strspn(name + 4, "0123456789");
    const char *end = name + 4 + digits;
    if (digits == 0 || digits > 4 || (digits > 1 && name[4] == '0') || (*end && *end != ':'))
        return false;
    *rank = atoi(name + 4);
    *device = *end ? end + 1 : "";
    return !*end || end[1];
}

bool ggl_rank_is_name(const char *name) {
    int rank;
    const char *device;
    return read_name(name, &rank, &device);
}

/* Asks the rank to open its device. */
static ggl_status open_there(rank_backend *r, const char *device, const ggl_backend_params *p,
                             ggl_error *err) {
    channel control;
    ggl_reader result;
    /* each opening is a packet of the first channel */
    ggl_status st = ggl_channel_init(&control, r->c.j, r->c.rank, 0,
                                     ++r->c.j->peer[r->c.rank].n_opened, r->c.name, err);
    if (st == GGL_OK)
        st = ggl_channel_begin(&control, ORDER_OPEN, 1024, err);
    if (st == GGL_OK) {
        ggl_put_u32(&control.out, (uint32_t)r->k);
        ggl_put_text(&control.out, *device ? device : "cpu");
        ggl_put_u32(&control.out, (uint32_t)p->n_threads);
        ggl_put_u32(&control.out, (uint32_t)p->n_threads_batch);
        ggl_put_u32(&control.out, p->f16_as_bf16);
        ggl_put_text(&control.out, p->mask);
        ggl_put_u32(&control.out, p->profile != NULL);
        ggl_channel_end(&control);
        st = ggl_channel_call(&control, &result, err);
    }
    if (st == GGL_OK) {
        const ggl_str text = ggl_get_text(&result), layout = ggl_get_text(&result);
        r->base.memory = (size_t)ggl_get_u64(&result);
        r->base.max_buffer = (size_t)ggl_get_u64(&result);
        r->base.software = ggl_get_u32(&result) != 0;
        r->base.looks_back = ggl_get_u32(&result) != 0;
        ggl_get_to(&result, r->base.alike, sizeof r->base.alike);
        r->base.alike[sizeof r->base.alike - 1] = '\0';
        r->is_async_there = ggl_get_u32(&result) != 0;
        snprintf(r->base.description, sizeof r->base.description, "%.63s: %.*s",
                 r->c.j->peer[r->c.rank].of.host, text.s ? (int)text.n : 0, text.s ? text.s : "");
        snprintf(r->layout, sizeof r->layout, "%.*s", layout.s ? (int)layout.n : 0,
                 layout.s ? layout.s : "");
        r->v.repack_layout = r->layout;
        if (!layout.s) {
            r->v.repack_layout = NULL;
            r->v.repack_size = NULL;
            r->v.repack = NULL;
        }
        r->is_closing = true;
    }
    ggl_channel_fini(&control);
    return st;
}

/* Takes a channel to the rank; 0: there is none left. */
static int new_channel(job *j, int rank, uint64_t *number) {
    channel_use *c = j->peer[rank].channel;
    int k = 1;
    ggl_os_mutex_lock(&j->lock);
    while (k < MOST_CHANNELS && c[k].is_open)
        k++;
    k %= MOST_CHANNELS;
    if (k) {
        c[k].is_open = true;
        atomic_fetch_add(&j->peer[rank].n_open, 1);
        *number = c[k].number ? c[k].number : 1;
    }
    ggl_os_mutex_unlock(&j->lock);
    return k;
}

ggl_status ggl_rank_open(ggl_backend **out, const char *name, const ggl_backend_params *p,
                         ggl_error *err) {
    job *j = ggl_current_job;
    int rank = 0;
    const char *device = "";
    (void)read_name(name, &rank, &device);
    *out = NULL;
    if (!j)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s is a rank of a job, but this program was not started by mpirun: "
                        "mpirun -n 2 PROGRAM .. starts one with rank0 and rank1",
                        name);
    if (rank >= j->t->n_ranks || rank == 0)
        return ggl_fail(
            err, GGL_NOT_FOUND,
            rank
                ? "%s: the job has ranks 0 to %d"
                : "%s is this program itself, whose device is cpu; the others are rank1 and so on, "
                  "to rank%d",
            name, j->t->n_ranks - 1);
    rank_backend *r = ggl_calloc(1, sizeof *r);
    uint64_t number = 1;
    if (!r)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    r->k = new_channel(j, rank, &number);
    if (r->k == 0) {
        ggl_free(r);
        return ggl_fail(err, GGL_LIMIT, "%s: %d devices are open there, and no more can be", name,
                        MOST_CHANNELS - 1);
    }
    r->v = vtable;
    r->base.v = &r->v;
    r->base.async = true; /* and not lazy: each page of a slot that is saved would be a message */
    snprintf(r->base.name, sizeof r->base.name, "%s", name);
    ggl_status st = ggl_channel_init(&r->c, j, rank, r->k, number, name, err);
    ggl_os_mutex_lock(&j->lock); /* the first channel to a rank has one user at a time */
    if (st == GGL_OK)
        st = open_there(r, device, p, err);
    if (st == GGL_OK && p->profile &&
        !(r->events = ggl_events_open(&r->c, p->profile, p->profile_ctx)))
        st = ggl_job_is_lost(j, rank)
                 ? ggl_job_fail_lost(j, rank, err)
                 : ggl_fail(err, GGL_NOMEM, "out of memory for the profile of %s", name);
    ggl_os_mutex_unlock(&j->lock);
    if (st == GGL_OK)
        *out = &r->base;
    else
        rank_close(&r->base);
    return st;
}

bool ggl_rank_place(const ggl_backend *b, char *text, size_t size) {
    const rank_backend *r = of(b);
    snprintf(text, size, "%s on %.63s", b->name, r->c.j->peer[r->c.rank].of.host);
    return r->is_async_there;
}

void ggl_rank_set_events(ggl_backend *b, trace_event_fn *event, void *ctx) {
    ggl_events_set(of(b)->events, event, ctx);
}

bool ggl_job_dismiss(job *j) {
    bool all = true;
    for (int r = 1; r < j->t->n_ranks; r++)
        all = all && !ggl_job_is_lost(j, r);
    const bool leaves = all;
    for (int r = 1; r < j->t->n_ranks; r++) {
        channel c;
        ggl_status st = ggl_channel_init(&c, j, r, 0, j->peer[r].n_opened + 1, "rank", NULL);
        if (st == GGL_OK)
            st = ggl_channel_begin(&c, ORDER_CLOSE, 4, NULL);
        if (st == GGL_OK) {
            ggl_put_u32(&c.out, leaves);
            ggl_channel_end(&c);
            st = ggl_channel_call(&c, NULL, NULL);
        }
        ggl_channel_fini(&c);
        all = all && st == GGL_OK;
    }
    return all;
}
