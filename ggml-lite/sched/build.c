/* Builds the schedule: gives each weight, constant and store a place, sizes all memory, and compiles the
 * plans. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "sched_impl.h"

/* --- locations -------------------------------------------------------------------------------- */

ggl_host_range ggl_sched_host_range(const ggl_sched *s, const ggl_tensor *t, int *index) {
    const char *p = t->data;
    for (*index = 0; *index < s->params.n_host; ++*index) {
        ggl_host_range r = s->params.host[*index];
        const char *base = r.data;
        if (p >= base && p < base + r.size && t->size <= (size_t)(base + r.size - p))
            return r;
    }
    return (ggl_host_range){t->data, t->size, false};
}

/* Adds a region with the buffer b (NULL: allocated later) to the device. */
static bool add_region(device *d, ggl_buffer *b) {
    size_t cap = (size_t)d->n_regions;
    if (!ggl_grow(&d->region, &cap, (size_t)d->n_regions + 1, sizeof *d->region))
        return false;
    d->region[d->n_regions++] = b;
    return true;
}

bool ggl_sched_place_in(device *d, pieces *p, int first, size_t size, ggl_loc *loc) {
    const size_t most = d->b->max_buffer;
    size_t end;
    struct piece *last = p->n > 0 ? &p->at[p->n - 1] : NULL;
    if (!last || !ggl_size_add(last->size, size, &end) || (most && end > most)) {
        const bool is_new = last || first < 0;
        if (!ggl_grow(&p->at, &p->cap, p->n + 1, sizeof *p->at) || (is_new && !add_region(d, NULL)))
            return false;
        last = &p->at[p->n++];
        *last = (struct piece){is_new ? d->n_regions - 1 : first, 0};
        end = size;
    }
    *loc = (ggl_loc){last->region, last->size};
    last->size = end;
    return true;
}

/* Sets *loc to a place for an uploaded copy of the weight or constant t. Adds its size, rounded up to
 * a multiple of 64, to *total. */
static ggl_status place_copy(device *d, const ggl_tensor *t, ggl_loc *loc, size_t *total,
                             ggl_error *err) {
    size_t most = d->b->max_buffer, size = t->size;
    if (!ggl_size_align(size, 64, &size) || (most && size > most))
        return ggl_fail(err, GGL_LIMIT,
                        "%s has %.1f MiB; %s supports at most %.1f MiB in one buffer",
                        t->name ? t->name : "a constant", (double)t->size / 1048576, d->b->name,
                        (double)most / 1048576);
    return ggl_size_add(*total, size, total) && ggl_sched_place_in(d, &d->copies, -1, size, loc)
               ? GGL_OK
               : ggl_sched_no_memory(err);
}

/* Gives the constant t a place beside the uploaded weights, shared by both phases, if it has none. */
static ggl_status place_const(device *d, ggl_tensor *t, ggl_error *err) {
    ggl_loc *loc = &d->loc[TRUNK][t->id];
    if (loc->region >= 0)
        return GGL_OK;
    ggl_status st = place_copy(d, t, loc, &d->consts_size, err);
    if (st == GGL_OK && !ggl_node_list_push(&d->consts, t))
        st = ggl_sched_no_memory(err);
    d->loc[TAIL][t->id] = *loc;
    return st;
}

/* Returns the part of host memory to import for the weight t: the whole range that holds it, or, if
 * that exceeds the device's max_buffer, max_buffer bytes from the start of the weight's page. */
static ggl_host_range piece_around(const ggl_sched *s, const device *d, const ggl_tensor *t) {
    int i;
    ggl_host_range r = ggl_sched_host_range(s, t, &i);
    size_t most = d->b->max_buffer;
    if (most == 0 || r.size <= most)
        return r;
    size_t skip = (size_t)((const char *)t->data - (const char *)r.data);
    skip -= skip % HOST_PAGE;
    r.data = (const char *)r.data + skip;
    r.size = r.size - skip < most ? r.size - skip : most;
    return r;
}

/* Sets *out to the import that holds the weight t. If there is none yet, asks the device to use the
 * memory around t in place, and records the answer. */
static ggl_status import_of(ggl_sched *s, device *d, const ggl_tensor *t, const import **out,
                            ggl_error *err) {
    const char *p = t->data;
    for (size_t i = 0; i < d->n_imports; i++) {
        *out = &d->imports[i];
        if (p >= (*out)->data && p < (*out)->data + (*out)->size &&
            t->size <= (size_t)((*out)->data + (*out)->size - p))
            return GGL_OK;
    }
    ggl_buffer *b = NULL;
    ggl_host_range r = piece_around(s, d, t);
    bool whole = (size_t)((const char *)r.data + r.size - p) >= t->size;
    ggl_status st =
        !whole ? GGL_UNSUPPORTED : d->b->v->alloc(d->b, GGL_REGION_WEIGHT, r.size, r.data, &b, err);
    if (st != GGL_OK && st != GGL_UNSUPPORTED)
        return st;
    if (!ggl_grow(&d->imports, &d->cap_imports, d->n_imports + 1, sizeof *d->imports) ||
        (b && !add_region(d, b))) {
        if (b)
            d->b->v->free(d->b, b);
        return ggl_sched_no_memory(err);
    }
    import *m = &d->imports[d->n_imports++];
    *m = (import){whole ? r.data : p, whole ? r.size : t->size, b ? d->n_regions - 1 : -1};
    *out = m;
    return GGL_OK;
}

/* Gives the weight t a place on the device, if it has none: in imported host memory, or else in a
 * buffer to which it is uploaded. If only the repacked copy of a weight is read, it needs
 * neither. */
static ggl_status place_weight(ggl_sched *s, device *d, ggl_tensor *t, ggl_error *err) {
    ggl_loc *loc = &d->loc[TRUNK][t->id];
    if (loc->region >= 0)
        return GGL_OK;
    const import *m = NULL;
    ggl_status st = import_of(s, d, t, &m, err);
    if (st != GGL_OK)
        return st;
    bool read = d->repacked[t->id].region < 0 || d->read_otherwise[t->id];
    if (m->region >= 0) {
        *loc = (ggl_loc){m->region, (size_t)((const char *)t->data - m->data)};
        d->mapped_size += read ? t->size : 0;
    } else if (!read) {
        return GGL_OK; /* only its repacked copy is read */
    } else {
        st = place_copy(d, t, loc, &d->copied_size, err);
        if (st == GGL_OK && !ggl_node_list_push(&d->copied, t))
            st = ggl_sched_no_memory(err);
        if (st != GGL_OK)
            return st;
    }
    d->loc[TAIL][t->id] = *loc;
    return GGL_OK;
}

/* Reserves memory for all slots of the store on the device, if it has none. */
static ggl_status place_store(ggl_sched *s, device *d, const ggl_store *store, ggl_error *err) {
    const bool is_state = store->kind == GGL_STORE_STATE;
    const size_t most = d->b->max_buffer;
    size_t size = store->size, all, *total = is_state ? &d->states_size : &d->rows_size;
    if (d->store_loc[store->id].region >= 0)
        return GGL_OK;
    if (!ggl_size_align(size, 64, &size) || !ggl_size_add(*total, store->size, total) ||
        !ggl_size_add(d->rows_size, d->states_size, &all))
        return ggl_fail(err, GGL_LIMIT, "what %" PRId64 " slots keep does not fit into memory",
                        ggl_graph_get_params(s->g)->n_slots);
    if (most && size > most)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: %.1f MiB for all positions and slots; %s supports at most %.1f MiB "
                        "in one buffer; %s",
                        store->name ? store->name : "a store", (double)size / 1048576, d->b->name,
                        (double)most / 1048576, ggl_sched_hint_smaller);
    return ggl_sched_place_in(d, &d->stores, GGL_REGION_STORES, size, &d->store_loc[store->id])
               ? GGL_OK
               : ggl_sched_no_memory(err);
}

/* --- segments --------------------------------------------------------------------------------- */

/* Makes everything available that the n nodes (of the segment, or of a body in it) read from
 * outside: inputs, weights, constants, stores, values of other segments. own[], by tensor id, is
 * the index of the segment that computes a node, plus 1. */
static ggl_status provide(ggl_sched *s, size_t i_seg, ggl_tensor *const *node, size_t n,
                          const size_t *own, ggl_error *err) {
    segment *seg = &s->seg[i_seg];
    device *d = &s->dev[seg->backend];
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        ggl_tensor *t = node[i];
        for (int k = 0; k < ggl_n_reads(t) && st == GGL_OK; k++) {
            ggl_tensor *x = ggl_read(t, k);
            if (!x || x->op == GGL_OP_PARAM || x->op == GGL_OP_CACHE || x->scope ||
                own[x->id] == i_seg + 1)
                continue;
            st = x->op == GGL_OP_WEIGHT  ? place_weight(s, d, x, err)
                 : x->op == GGL_OP_CONST ? place_const(d, x, err)
                 : x->view_of            ? GGL_OK
                                         : ggl_sched_provide_value(s, i_seg, x, own, err);
        }
        for (int k = 0; k < 2 && st == GGL_OK; k++)
            if (t->store[k])
                st = place_store(s, d, t->store[k], err);
        if (st == GGL_OK && t->op == GGL_OP_ATTEND)
            for (int k = 0; k < 2 && st == GGL_OK; k++)
                if (t->src[1]->store[k])
                    st = place_store(s, d, t->src[1]->store[k], err);
        if (st == GGL_OK && t->body)
            st = provide(s, i_seg, t->body->node, (size_t)t->body->n_node, own, err);
        if (st == GGL_OK && t->body && ggl_is_leaf(t->body->result)) {
            ggl_tensor *r = t->body->result;
            st = r->op == GGL_OP_WEIGHT  ? place_weight(s, d, r, err)
                 : r->op == GGL_OP_CONST ? place_const(d, r, err)
                                         : ggl_sched_provide_value(s, i_seg, r, own, err);
        }
    }
    return st;
}

/* Lists what each segment needs from outside of it, and places all of it. */
static ggl_status provide_all(ggl_sched *s, ggl_error *err) {
    size_t *own = ggl_calloc((size_t)ggl_graph_n_ids(s->g), sizeof *own);
    ggl_status st = own ? GGL_OK : ggl_sched_no_memory(err);
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        for (size_t k = 0; k < s->seg[i].nodes.n; k++)
            own[s->seg[i].nodes.at[k]->id] = i + 1;
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        st = provide(s, i, s->seg[i].nodes.at, s->seg[i].nodes.n, own, err);
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
static ggl_status compile_all(ggl_sched *s, ggl_error *err) {
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
                             d->store_loc,
                             ggl_graph_get_params(s->g)->n_slots,
                             d->repacked};
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
static ggl_status init_devices(ggl_sched *s, ggl_error *err) {
    size_t n_ids = (size_t)ggl_graph_n_ids(s->g), n_stores = (size_t)ggl_graph_n_stores(s->g);
    s->backend = ggl_calloc(n_ids, sizeof *s->backend);
    s->in_trunk = ggl_calloc(n_ids, sizeof *s->in_trunk);
    s->is_early = ggl_calloc(n_ids, sizeof *s->is_early);
    if (!s->backend || !s->in_trunk || !s->is_early)
        return ggl_sched_no_memory(err);
    for (int i = 0; i < s->n_dev; i++) {
        device *d = &s->dev[i];
        d->s = s;
        d->b = s->params.backend[i];
        while (s->dev[d->station].b != d->b)
            d->station++;
        d->store_loc = ggl_calloc(n_stores, sizeof *d->store_loc);
        if (!d->store_loc)
            return ggl_sched_no_memory(err);
        for (size_t k = 0; k < n_stores; k++)
            d->store_loc[k].region = -1;
        for (int k = 0; k < N_PHASES; k++) {
            d->life[k] = ggl_calloc(n_ids, sizeof *d->life[k]);
            if (!d->life[k])
                return ggl_sched_no_memory(err);
        }
        ggl_loc **locs[] = {&d->loc[TRUNK], &d->loc[TAIL], &d->repacked};
        for (int k = 0; k < 3; k++) {
            *locs[k] = ggl_calloc(n_ids, sizeof **locs[k]);
            if (!*locs[k])
                return ggl_sched_no_memory(err);
            for (size_t id = 0; id < n_ids; id++)
                (*locs[k])[id].region = -1;
        }
        d->read_otherwise = ggl_calloc(n_ids, sizeof *d->read_otherwise);
        if (!d->read_otherwise)
            return ggl_sched_no_memory(err);
        for (int k = 0; k < GGL_REGION_WEIGHT; k++)
            if (!add_region(d, NULL))
                return ggl_sched_no_memory(err);
    }
    return GGL_OK;
}

/* Gives each input its offset in s->input, with room for the largest batch. */
static ggl_status place_inputs(ggl_sched *s, ggl_error *err) {
    int n = ggl_graph_n_inputs(s->g);
    s->input_at = ggl_calloc((size_t)n, sizeof *s->input_at);
    s->input_n = ggl_calloc((size_t)n, sizeof *s->input_n);
    if (!s->input_at || !s->input_n)
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
static int n_lanes(const ggl_sched *s) {
    int n = 0;
    for (int k = 0; k < s->n_dev; k++)
        for (size_t i = 0; i < s->n_trunk_segs; i++)
            if (s->seg[i].backend == k) {
                n++;
                break;
            }
    return n < 1 ? 1 : n < MAX_LANES ? n : MAX_LANES;
}

/* The lifetimes have no use once all values are placed. */
static void free_lifetimes(ggl_sched *s) {
    for (int i = 0; i < s->n_dev; i++)
        for (int k = 0; k < N_PHASES; k++) {
            ggl_free(s->dev[i].life[k]);
            s->dev[i].life[k] = NULL;
        }
}

ggl_status ggl_sched_build(ggl_sched *s, ggl_error *err) {
    ggl_status st = ggl_graph_settle(s->g, err);
    if (st == GGL_OK)
        st = init_devices(s, err);
    if (st == GGL_OK)
        st = place_inputs(s, err);
    if (st == GGL_OK)
        st = ggl_sched_place(s, err);
    if (st == GGL_OK)
        st = ggl_sched_cut(s, err);
    if (st == GGL_OK)
        st = ggl_sched_find_readers(s, err);
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
