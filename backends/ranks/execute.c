/* Carries out orders on a backend. What an order says comes from rank 0 of the same job and build, which has checked it; here it
 * is checked that ids, offsets and sizes are those of something that exists. */
#include "execute.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/image.h"
#include "arriving.h"

enum { MOST_IDS = 1 << 26 };

/* --- what is held ------------------------------------------------------------------------------- */

/* Returns the buffer of that id if it has the bytes; else NULL, and the error is noted. */
static held_buffer *buffer_of(station *s, uint32_t id, uint64_t offset, uint64_t size) {
    held_buffer *h = id < s->cap_buffers ? &s->buffer[id] : NULL;
    if (!ggl_station_ok(s))
        return NULL;
    if (h && h->b && offset <= h->size && size <= h->size - offset)
        return h;
    ggl_station_fail(s, GGL_DEVICE, "an order for memory that is not there");
    return NULL;
}

static held_plan *plan_of(station *s, uint32_t id) {
    held_plan *h = id < s->cap_plans ? &s->plan[id] : NULL;
    if (!ggl_station_ok(s))
        return NULL;
    if (!h || !h->p)
        ggl_station_fail(s, GGL_DEVICE, "an order for a plan that is not there");
    return h && h->p ? h : NULL;
}

/* Makes room for an id in a table; false: it is out of range, or out of memory. */
static bool has_room(station *s, void *table, size_t *cap, uint32_t id, size_t size) {
    if (id < MOST_IDS && (id < *cap || ggl_grow(table, cap, (size_t)id + 1, size)))
        return true;
    ggl_station_fail(s, GGL_NOMEM, "out of memory for the orders of rank 0");
    return false;
}

/* --- memory ------------------------------------------------------------------------------------- */

/* Values that go from rank to rank lie in memory of this process if the backend computes there: so they are sent from
 * where they are computed, and received where they are read. */
static void execute_alloc(station *s, ggl_reader *r) {
    const uint32_t id = ggl_get_u32(r), region = ggl_get_u32(r);
    const uint64_t size = ggl_get_u64(r);
    ggl_error err = {0};
    if (!ggl_station_ok(s) || !has_room(s, &s->buffer, &s->cap_buffers, id, sizeof *s->buffer))
        return;
    held_buffer *h = &s->buffer[id];
    *h = (held_buffer){.size = (size_t)size};
    ggl_status st = GGL_UNSUPPORTED;
    if (region == GGL_REGION_IO && !s->b->async && (h->owned = ggl_calloc((size_t)size + 64, 1))) {
        h->host = (char *)h->owned + (64 - (uintptr_t)h->owned % 64);
        st = s->b->v->alloc(s->b, (int)region, (size_t)size, h->host, &h->b, &err);
    }
    if (st == GGL_UNSUPPORTED) {
        ggl_free(h->owned);
        h->owned = h->host = NULL;
        st = s->b->v->alloc(s->b, (int)region, (size_t)size, NULL, &h->b, &err);
    }
    ggl_station_note(s, st, &err);
    if (st != GGL_OK)
        ggl_station_drop_buffer(s, h);
}

static void execute_free(station *s, ggl_reader *r) {
    const uint32_t id = ggl_get_u32(r);
    if (id < s->cap_buffers)
        ggl_station_drop_buffer(s, &s->buffer[id]);
}

static void execute_put(station *s, ggl_reader *r) {
    const uint32_t id = ggl_get_u32(r), is_data = ggl_get_u32(r);
    const uint64_t offset = ggl_get_u64(r), size = ggl_get_u64(r);
    const void *bytes = is_data ? NULL : ggl_get(r, (size_t)size);
    held_buffer *h = buffer_of(s, id, offset, size);
    ggl_error err = {0};
    if (is_data && h && h->host)
        (void)ggl_station_move(s, h->host + offset, (size_t)size, false);
    else if (is_data)
        ggl_station_move_through(s, h, offset, size, false);
    else if (h && bytes && h->host)
        memcpy(h->host + offset, bytes, (size_t)size);
    else if (h && bytes)
        ggl_station_note(s, s->b->v->upload(s->b, h->b, (size_t)offset, bytes, (size_t)size, &err),
                         &err);
}

static void execute_get(station *s, ggl_reader *r) {
    const uint32_t id = ggl_get_u32(r), is_data = ggl_get_u32(r);
    const uint64_t offset = ggl_get_u64(r), size = ggl_get_u64(r);
    held_buffer *h = buffer_of(s, id, offset, size);
    ggl_error err = {0};
    void *to = is_data ? NULL : ggl_put_room(&s->piece, (size_t)size);
    if (is_data && h && h->host)
        (void)ggl_station_move(s, h->host + offset, (size_t)size, true);
    else if (is_data)
        ggl_station_move_through(s, h, offset, size, true);
    else if (h && to && h->host)
        memcpy(to, h->host + offset, (size_t)size);
    else if (h && to)
        ggl_station_note(s, s->b->v->download(s->b, h->b, (size_t)offset, to, (size_t)size, &err),
                         &err);
}

static void execute_copy(station *s, ggl_reader *r) {
    const uint32_t to = ggl_get_u32(r), from = ggl_get_u32(r), n = ggl_get_u32(r);
    ggl_error err = {0};
    for (uint32_t i = 0; i < n && ggl_station_ok(s); i++) {
        ggl_copy_range x;
        ggl_get_to(r, &x, sizeof x);
        held_buffer *dst = buffer_of(s, to, x.to, x.size),
                    *src = buffer_of(s, from, x.from, x.size);
        if (dst && src && !r->failed)
            ggl_station_note(s, s->b->v->copy(s->b, dst->b, src->b, &x, 1, &err), &err);
    }
}

static void execute_clear(station *s, ggl_reader *r) {
    const uint32_t id = ggl_get_u32(r);
    (void)ggl_get_u32(r);
    const uint64_t offset = ggl_get_u64(r), size = ggl_get_u64(r);
    held_buffer *h = buffer_of(s, id, offset, size);
    ggl_error err = {0};
    if (h)
        ggl_station_note(s, s->b->v->clear(s->b, h->b, (size_t)offset, (size_t)size, &err), &err);
}

/* --- graphs and plans --------------------------------------------------------------------------- */

static void execute_refuses(station *s, ggl_reader *r) {
    const uint64_t size = ggl_get_u64(r);
    char *image = ggl_station_receive(s, size);
    ggl_graph *g = NULL;
    ggl_error err = {0};
    if (image && ggl_station_ok(s) && !s->is_lost)
        ggl_station_note(s, ggl_graph_of_image(&g, image, (size_t)size, &err), &err);
    if (g)
        ggl_put_text(&s->result, s->b->v->refuses(s->b, ggl_graph_get_output(g, 0)));
    ggl_graph_free(g);
    ggl_free(image);
}

/* Reads places by id into new memory; NULL if there are none. False: they are damaged, or out of memory. */
static bool read_locs(ggl_reader *r, int n, ggl_loc **out) {
    const bool there = ggl_get_u32(r) != 0;
    *out = there ? ggl_calloc((size_t)n + 1, sizeof **out) : NULL;
    for (int i = 0; *out && i < n; i++)
        (*out)[i].region = -1;
    for (;;) {
        const uint32_t id = ggl_get_u32(r);
        if (r->failed || id == UINT32_MAX)
            return !r->failed && (!there || *out);
        const int region = (int)ggl_get_u32(r);
        const uint64_t offset = ggl_get_u64(r), step = ggl_get_u64(r);
        if (id >= (uint32_t)n || !*out || region < 0)
            return false;
        (*out)[id] = (ggl_loc){region, (size_t)offset, (size_t)step};
    }
}

/* Compiles the segment that put_segment of proxy.c has written. */
static void compile(station *s, held_graph *g, ggl_reader *r, held_plan *out) {
    const int n_ids = ggl_graph_n_ids(g->g);
    ggl_segment seg = {.graph = g->g, .n_node = (int)ggl_get_u32(r)};
    ggl_loc *loc = NULL, *store_loc = NULL, *repacked = NULL;
    ggl_error err = {0};
    const bool few = seg.n_node >= 0 && seg.n_node <= n_ids;
    ggl_tensor **node = few ? ggl_calloc((size_t)seg.n_node + 1, sizeof *node) : NULL;
    bool fits = node;
    for (int i = 0; i < seg.n_node && fits; i++) {
        const uint32_t id = ggl_get_u32(r);
        fits = id < (uint32_t)n_ids && (node[i] = g->tensor[id]);
    }
    seg.n_max = (int64_t)ggl_get_u64(r);
    seg.n_slots = (int64_t)ggl_get_u64(r);
    fits = fits && read_locs(r, n_ids, &loc) && loc &&
           read_locs(r, ggl_graph_n_stores(g->g), &store_loc) && read_locs(r, n_ids, &repacked) &&
           r->at == r->end;
    if (!fits) {
        ggl_station_fail(s, GGL_DEVICE, "a part of a graph that is damaged, or out of memory");
    } else {
        seg.node = node;
        seg.loc = loc;
        seg.store_loc = store_loc;
        seg.repacked = repacked;
        ggl_station_note(s, s->b->v->compile(s->b, &seg, &out->p, &err), &err);
    }
    if (out->p) {
        out->store_loc = store_loc;
        ggl_put_u64(&s->result, out->p->arena_size);
    } else {
        ggl_free(store_loc);
    }
    ggl_free(node);
    ggl_free(loc);
    ggl_free(repacked);
}

static void execute_compile(station *s, ggl_reader *r) {
    const uint32_t plan = ggl_get_u32(r), graph = ggl_get_u32(r);
    const uint64_t image_size = ggl_get_u64(r), size = ggl_get_u64(r);
    char *image = image_size ? ggl_station_receive(s, image_size) : NULL,
         *segment = ggl_station_receive(s, size);
    ggl_error err = {0};
    if (ggl_station_ok(s) && !s->is_lost &&
        has_room(s, &s->plan, &s->cap_plans, plan, sizeof *s->plan) &&
        has_room(s, &s->graph, &s->cap_graphs, graph, sizeof *s->graph)) {
        held_graph *g = &s->graph[graph];
        if (image) {
            ggl_station_drop_graph(g);
            ggl_station_note(s, ggl_graph_of_image(&g->g, image, (size_t)image_size, &err), &err);
            if (g->g && !(g->tensor = ggl_graph_by_id(g->g)))
                ggl_station_fail(s, GGL_NOMEM, "out of memory for a graph");
        }
        ggl_reader body = {segment, segment + size, false};
        if (ggl_station_ok(s) && !g->tensor)
            ggl_station_fail(s, GGL_DEVICE, "an order for a graph that is not there");
        if (ggl_station_ok(s))
            compile(s, g, &body, &s->plan[plan]);
    }
    ggl_free(image);
    ggl_free(segment);
}

static void execute_plan_free(station *s, ggl_reader *r) {
    const uint32_t plan = ggl_get_u32(r), graph = ggl_get_u32(r);
    if (plan < s->cap_plans)
        ggl_station_drop_plan(s, &s->plan[plan]);
    if (graph > 0 && graph < s->cap_graphs)
        ggl_station_drop_graph(&s->graph[graph]);
}

static void execute_describe(station *s, ggl_reader *r) {
    const held_plan *h = plan_of(s, ggl_get_u32(r));
    const uint64_t n = ggl_get_u64(r);
    char text[MOST_RESULT / 2] = "";
    if (h && s->b->v->describe)
        s->b->v->describe(s->b, h->p, (int64_t)n, text, sizeof text);
    ggl_put_text(&s->result, text);
}

static void execute_run(station *s, ggl_reader *r) {
    const held_plan *h = plan_of(s, ggl_get_u32(r));
    const uint64_t n = ggl_get_u64(r);
    const uint32_t n_regions = ggl_get_u32(r);
    ggl_error err = {0};
    if (!h || !has_room(s, &s->region, &s->cap_regions, n_regions, sizeof(ggl_buffer *)))
        return;
    for (uint32_t i = 0; i < n_regions && ggl_station_ok(s); i++) {
        const uint32_t id = ggl_get_u32(r);
        const held_buffer *b = id ? buffer_of(s, id, 0, 0) : NULL;
        s->region[i] = b ? b->b : NULL;
    }
    if (ggl_station_ok(s) && !r->failed)
        ggl_station_note(s, s->b->v->run(s->b, h->p, s->region, (int64_t)n, &err), &err);
}

static void execute_wait(station *s, ggl_reader *r) {
    (void)r;
    ggl_error err = {0};
    if (ggl_station_ok(s))
        ggl_station_note(s, s->b->v->wait(s->b, &err), &err);
}

/* --- events ------------------------------------------------------------------------------------- */

static bool has_node(const held_graph *h, const kept_event *e) {
    return h->g && h->tensor && e->id < (uint32_t)ggl_graph_n_ids(h->g) &&
           (uintptr_t)h->tensor[e->id] == e->node;
}

/* Returns the id of the graph that has the node of that address, maybe the likely one; UINT64_MAX: none does, or not any more. */
static uint64_t graph_of(const station *s, const kept_event *e, uint64_t likely) {
    if (likely < s->cap_graphs && has_node(&s->graph[likely], e))
        return likely;
    for (size_t i = 0; i < s->cap_graphs; i++)
        if (has_node(&s->graph[i], e))
            return i;
    return UINT64_MAX;
}

/* Also after an order that failed: rank 0 waits for the message. */
static void execute_events(station *s, ggl_reader *r) {
    const uint32_t least = ggl_get_u32(r);
    events_head none = {0}, h = {0};
    recorder *log = s->log;
    ggl_error err = {0};
    if (!log) {
        (void)ggl_station_move(s, &none, sizeof none, true);
        return;
    }
    if (s->b->async) /* which reports its steps now */
        ggl_station_note(s, s->b->v->wait(s->b, &err), &err);
    char *at = s->events + sizeof h;
    (void)ggl_recorder_take(log, at, 0, &h.left, &h.lost);
    if (h.left >= least)
        h.size = (uint32_t)ggl_recorder_take(log, at, EVENTS_SIZE - sizeof h, &h.left, &h.lost);
    memcpy(s->events, &h, sizeof h);
    uint64_t graph = UINT64_MAX; /* of the last step */
    for (kept_event e; at < s->events + sizeof h + h.size; at += e.size) {
        memcpy(&e, at, sizeof e);
        if (e.node)
            e.node = graph = graph_of(s, &e, graph);
        memcpy(at, &e, sizeof e);
    }
    s->log = NULL; /* this message is no event, or there would always be one more */
    (void)ggl_station_move(s, s->events, sizeof h + h.size, true);
    s->log = log;
}

/* --- weights ------------------------------------------------------------------------------------ */

static void execute_repack_size(station *s, ggl_reader *r) {
    ggl_tensor t;
    char name[256];
    if (!ggl_weight_of_image(&t, name, sizeof name, r))
        ggl_station_fail(s, GGL_DEVICE, "a weight that is damaged");
    else if (s->b->v->repack_size)
        ggl_put_u64(&s->result, s->b->v->repack_size(s->b, &t));
}

static void execute_has(station *s, ggl_reader *r) {
    ggl_source_execute_has(s, r);
}

/* Takes the weight from where the order says, and lets it be loaded into the buffer of that id. */
static void load(station *s, ggl_reader *r, weight *w, uint32_t id, size_t size, size_t fills) {
    ggl_arriving_begin(s, size);
    w->from = ggl_source_take(s, r, size);
    const held_buffer *h = buffer_of(s, id, w->offset, fills);
    w->to = h ? h->b : NULL;
    w->to_size = h ? h->size : 0;
    ggl_arriving_add(s, w);
}

static void execute_fill(station *s, ggl_reader *r) {
    weight w = {0};
    const uint32_t id = ggl_get_u32(r);
    w.offset = (size_t)ggl_get_u64(r);
    const size_t size = (size_t)ggl_get_u64(r);
    load(s, r, &w, id, size, size);
}

static void execute_repack(station *s, ggl_reader *r) {
    weight w = {.repacks = true};
    const uint32_t id = ggl_get_u32(r);
    w.offset = (size_t)ggl_get_u64(r);
    if (ggl_weight_of_image(&w.t, w.name, sizeof w.name, r))
        load(s, r, &w, id, w.t.size, 0); /* how much it fills, its layout says */
    else
        s->is_lost = true; /* nobody knows how much data comes */
}

void ggl_station_execute(station *s, uint32_t op, ggl_reader *r) {
    static void (*const execute[])(station *, ggl_reader *) = {
#define ORDER(NAME, name) [ORDER_##NAME] = execute_##name,
        ORDERS
#undef ORDER
    };
    s->result.n = 0;
    if (op != ORDER_HAS && op != ORDER_FILL && op != ORDER_REPACK)
        ggl_arriving_settle(s, true);
    if (op >= sizeof execute / sizeof *execute)
        ggl_station_fail(s, GGL_DEVICE, "an order that this build does not know");
    else
        execute[op](s, r);
    if (r->failed)
        ggl_station_fail(s, GGL_DEVICE, "an order that is cut off");
}
