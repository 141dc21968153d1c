/* Builds the schedule: makes available what each segment needs, sizes all memory, and compiles the plans. */
#include "ggl/internal/graph.h"
#include "ahead.h"
#include "repack.h"
#include "shared_copies.h"
#include "watched.h"

/* --- segments --------------------------------------------------------------------------------- */

/* Makes everything available that the n nodes (of the segment, or of a body in it) read from
 * outside: inputs, weights, constants, stores, values of other segments. own[], by tensor id, is
 * the index of the segment that computes a node, plus 1. */
static ggl_status provide(schedule *s, size_t i_seg, ggl_tensor *const *node, size_t n,
                          const size_t *own, ggl_error *err) {
    segment *seg = &s->seg[i_seg];
    device *d = &s->dev[seg->backend];
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        ggl_tensor *t = node[i];
        for (int k = 0; k < ggl_n_reads(t) && st == GGL_OK; k++) {
            ggl_tensor *x = ggl_read(t, k);
            if (!x || x->op == GGL_OP_PARAM || x->op == GGL_OP_CACHE || x->scope || x->into ||
                own[x->id] == i_seg + 1)
                continue;
            st = x->op == GGL_OP_WEIGHT  ? ggl_sched_place_weight(s, d, x, err)
                 : x->op == GGL_OP_CONST ? ggl_sched_place_const(d, x, err)
                 : x->view_of            ? GGL_OK
                                         : ggl_sched_provide_value(s, i_seg, x, own, err);
            if (st == GGL_OK && !ggl_sched_note_read(s, d, t, x))
                st = ggl_sched_no_memory(err);
        }
        if (st == GGL_OK && t->into) { /* it is written to the variable's memory */
            st = ggl_sched_place_weight(s, d, t->into, err);
            d->loc[TRUNK][t->id] = d->loc[TAIL][t->id] = d->loc[TRUNK][t->into->id];
        }
        for (int k = 0; k < 2 && st == GGL_OK; k++)
            if (t->store[k])
                st = ggl_sched_place_store(s, d, t->store[k], err);
        const ggl_tensor *cache = ggl_cache_of(t);
        for (int k = 0; cache && k < 2 && st == GGL_OK; k++)
            if (cache->store[k])
                st = ggl_sched_place_store(s, d, cache->store[k], err);
        if (st == GGL_OK && t->body)
            st = provide(s, i_seg, t->body->node, (size_t)t->body->n_node, own, err);
        if (st == GGL_OK && t->body && ggl_is_leaf(t->body->result)) {
            ggl_tensor *r = t->body->result;
            st = r->op == GGL_OP_WEIGHT  ? ggl_sched_place_weight(s, d, r, err)
                 : r->op == GGL_OP_CONST ? ggl_sched_place_const(d, r, err)
                                         : ggl_sched_provide_value(s, i_seg, r, own, err);
        }
    }
    return st;
}

/* Lists what each segment needs from outside of it, and places all of it. */
static ggl_status provide_all(schedule *s, ggl_error *err) {
    size_t *own = ggl_calloc((size_t)ggl_graph_n_ids(s->g), sizeof *own);
    ggl_status st = own ? GGL_OK : ggl_sched_no_memory(err);
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        for (size_t k = 0; k < s->seg[i].nodes.n; k++)
            own[s->seg[i].nodes.at[k]->id] = i + 1;
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        st = provide(s, i, s->seg[i].nodes.at, s->seg[i].nodes.n, own, err);
    for (int i = 0; i < s->n_dev && st == GGL_OK; i++)
        st = ggl_sched_place_pages(s, &s->dev[i], err);
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        st = ggl_sched_keep_watched(s, i, own, err);
    if (st == GGL_OK)
        st = ggl_sched_list_outputs(s, own, err);
    if (st == GGL_OK)
        st = ggl_sched_place_values(s, err);
    if (st == GGL_OK)
        st = ggl_sched_set_offsets(s, own, err);
    ggl_free(own);
    return st;
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Compiles the plans of all segments, and sizes each device's arena for the largest of them. */
static ggl_status compile_all(schedule *s, ggl_error *err) {
    for (size_t i = 0; i < s->n_segs; i++) {
        segment *seg = &s->seg[i];
        device *d = &s->dev[seg->backend];
        seg->n_max[0] = 1;
        seg->n_max[1] = seg->phase == TRUNK ? s->n_batch : s->n_rows;
        for (int k = 0; k < 2; k++) {
            if (k == 1 && seg->n_max[1] == 1)
                continue;
            ggl_segment g = {s->g,
                             seg->nodes.at,
                             (int)seg->nodes.n,
                             seg->n_max[k],
                             d->loc[seg->phase],
                             d->stores.loc,
                             ggl_graph_get_params(s->g)->n_slots,
                             d->repack.loc,
                             d->repack.is_late ? d->repack.waits : NULL};
            d->b->cancelled = s->params.cancelled;
            d->b->cancelled_ctx = s->params.cancelled_ctx;
            ggl_status st = d->b->v->compile(d->b, &g, &seg->plan[k], err);
            d->b->cancelled = NULL;
            d->b->cancelled_ctx = NULL;
            if (st != GGL_OK)
                return st;
            if (seg->plan[k]->arena_size > d->arena_size)
                d->arena_size = seg->plan[k]->arena_size;
        }
    }
    return GGL_OK;
}

/* Allocates the tables by tensor and store id, and marks everything as not placed. */
static ggl_status init_devices(schedule *s, ggl_error *err) {
    size_t n_ids = (size_t)ggl_graph_n_ids(s->g), n_stores = (size_t)ggl_graph_n_stores(s->g);
    s->backend = ggl_calloc(n_ids, sizeof *s->backend);
    s->in_trunk = ggl_calloc(n_ids, sizeof *s->in_trunk);
    s->is_early = ggl_calloc(n_ids, sizeof *s->is_early);
    if (!s->backend || !s->in_trunk || !s->is_early)
        return ggl_sched_no_memory(err);
    for (int i = 0; i < s->n_dev; i++) {
        device *d = &s->dev[i];
        d->stores.loc = ggl_calloc(n_stores, sizeof *d->stores.loc);
        if (!d->stores.loc)
            return ggl_sched_no_memory(err);
        for (size_t k = 0; k < n_stores; k++)
            d->stores.loc[k].region = -1;
        for (int k = 0; k < N_PHASES; k++) {
            d->life[k] = ggl_calloc(n_ids, sizeof *d->life[k]);
            if (!d->life[k])
                return ggl_sched_no_memory(err);
        }
        ggl_loc **locs[] = {&d->loc[TRUNK], &d->loc[TAIL], &d->repack.loc};
        for (int k = 0; k < 3; k++) {
            *locs[k] = ggl_calloc(n_ids, sizeof **locs[k]);
            if (!*locs[k])
                return ggl_sched_no_memory(err);
            for (size_t id = 0; id < n_ids; id++)
                (*locs[k])[id].region = -1;
        }
        d->repack.read_otherwise = ggl_calloc(n_ids, sizeof *d->repack.read_otherwise);
        d->repack.waits = ggl_calloc(n_ids, sizeof *d->repack.waits);
        d->repack.shared = ggl_calloc(n_ids, sizeof(shared_copy *));
        if (!d->repack.read_otherwise || !d->repack.waits || !d->repack.shared)
            return ggl_sched_no_memory(err);
        for (int k = 0; k < GGL_REGION_WEIGHT; k++)
            if (!ggl_sched_add_region(d, NULL))
                return ggl_sched_no_memory(err);
    }
    return GGL_OK;
}

/* Gives each input its offset among all inputs, with room for the largest batch. */
static ggl_status place_inputs(schedule *s, ggl_error *err) {
    int n = ggl_graph_n_inputs(s->g);
    s->input_at = ggl_calloc((size_t)n, sizeof *s->input_at);
    if (!s->input_at)
        return ggl_sched_no_memory(err);
    for (int i = 0; i < n; i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        size_t size;
        s->input_at[i] = s->input_size;
        if (!ggl_value_bytes(t, s->n_batch, &size) ||
            !ggl_size_add(s->input_size, size, &s->input_size) ||
            !ggl_size_align(s->input_size, 64, &s->input_size))
            return ggl_fail(err, GGL_LIMIT, "input '%s' does not fit into memory", t->name);
    }
    return GGL_OK;
}

/* Returns how many batches may be in flight: as many as backends run parts of the trunk, so that
 * all of them can work at the same time. At least 1, at most MAX_LANES. */
static int n_lanes(const schedule *s) {
    int n = 0;
    for (int k = 0; k < s->n_dev; k++)
        for (size_t i = 0; i < s->n_trunk_segs; i++)
            if (s->seg[i].backend == k) {
                n++;
                break;
            }
    return n < 1 || s->params.side_by_side ? 1 : n < MAX_LANES ? n : MAX_LANES;
}

/* The lifetimes have no use once all values are placed. */
static void free_lifetimes(schedule *s) {
    for (int i = 0; i < s->n_dev; i++)
        for (int k = 0; k < N_PHASES; k++) {
            ggl_free(s->dev[i].life[k]);
            s->dev[i].life[k] = NULL;
        }
}

ggl_status ggl_schedule_build(schedule *s, ggl_error *err) {
    ggl_status st = ggl_graph_settle(s->g, err);
    if (st == GGL_OK)
        st = init_devices(s, err);
    if (st == GGL_OK)
        st = place_inputs(s, err);
    if (st == GGL_OK)
        st = ggl_sched_place(s, err);
    if (st == GGL_OK)
        st = ggl_sched_find_watched(s, err);
    if (st == GGL_OK)
        st = ggl_sched_cut(s, err);
    if (st == GGL_OK)
        st = ggl_sched_find_readers(s, err);
    if (st == GGL_OK)
        st = ggl_sched_share_stores(s, err);
    s->n_lanes = n_lanes(s);
    if (st == GGL_OK)
        st = ggl_sched_repack_place(s, err);
    if (st == GGL_OK)
        st = provide_all(s, err);
    free_lifetimes(s);
    if (st == GGL_OK)
        st = compile_all(s, err);
    return st;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Frees the device's buffers and tables, but not the backend, which is borrowed. */
static void device_fini(const schedule *s, device *d, int n_dev) {
    if (d->n_regions > 0)
        d->region[GGL_REGION_IO] = NULL; /* one of io[], freed below */
    for (int i = 0; i < d->n_regions; i++)
        if (d->region[i])
            d->b->v->free(d->b, d->region[i]);
    for (int i = 0; i < MAX_LANES; i++) {
        if (d->io.at[i])
            d->b->v->free(d->b, d->io.at[i]);
        if (d->io.host[i])
            d->b->v->free(d->b, d->io.host[i]);
    }
    for (int k = 0; d->io.peer && k < n_dev; k++)
        for (int i = 0; i < MAX_LANES; i++)
            if (d->io.peer[k][i])
                d->b->v->free(d->b, d->io.peer[k][i]);
    ggl_free(d->io.peer);
    ggl_free(d->region);
    ggl_free(d->weights.copies.at);
    ggl_free(d->stores.pieces.at);
    ggl_free(d->stores.group);
    ggl_free(d->repack.pieces.at);
    ggl_free(d->weights.imports);
    ggl_free(d->loc[TRUNK]);
    ggl_free(d->loc[TAIL]);
    ggl_free(d->life[TRUNK]);
    ggl_free(d->life[TAIL]);
    ggl_free(d->stores.loc);
    ggl_free(d->repack.loc);
    ggl_free(d->repack.read_otherwise);
    ggl_free(d->repack.waits);
    ggl_free(d->repack.list.at);
    ggl_free(d->repack.shared);
    ggl_shared_copies_leave(s, d);
    ggl_free(d->repack.block);
    ggl_free(d->weights.consts.at);
    ggl_free(d->weights.copied.at);
}

void ggl_schedule_fini(schedule *s) {
    for (size_t i = 0; i < s->n_segs; i++) {
        segment *seg = &s->seg[i];
        for (int k = 0; k < 2; k++)
            if (seg->plan[k])
                s->dev[seg->backend].b->v->plan_free(s->dev[seg->backend].b, seg->plan[k]);
        ggl_free(seg->nodes.at);
        ggl_free(seg->move);
        ggl_free(seg->departing);
        ggl_free(seg->watched.at);
    }
    for (int i = 0; i < s->n_dev; i++)
        device_fini(s, &s->dev[i], s->n_dev);
    ggl_free(s->dev);
    ggl_free(s->seg);
    ggl_free(s->out);
    ggl_free(s->backend);
    ggl_free(s->fallback);
    ggl_free(s->in_trunk);
    ggl_free(s->is_early);
    ggl_free(s->watched);
    ggl_free(s->reads.at);
    ggl_free(s->stacks.at);
    ggl_free(s->stack_index.at);
    ggl_free(s->shares);
    ggl_free(s->input_at);
}
