/* Clears, copies, saves and restores slots, through the backends' buffer calls. A saved slot is the
 * bytes of its stores in order of id: for rows the pages that hold the positions, in their order;
 * for states all. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "store_rows.h"
#include "sched_impl.h"

typedef enum slot_action { CLEAR, COPY, SAVE, RESTORE } slot_action;

/* A call on a slot. */
typedef struct slot_call {
    slot_action what;
    int slot, other;  /* COPY copies from slot `other` */
    int64_t n_pos;    /* rows of positions 0 .. n_pos-1 */
    bool states_only; /* no rows */
    char *bytes;      /* SAVE writes to it, RESTORE reads from it */
    ggl_slot_part part;
} slot_call;

static bool is_of(ggl_slot_part part, const ggl_store *st) {
    return part == GGL_SLOT_ALL || (part == GGL_SLOT_TEXT ? st->is_read : !st->of_stage);
}

/* Returns the device that holds the store; NULL if none does, as no node that runs uses it. */
static device *device_of(const ggl_sched *s, const ggl_store *st) {
    for (int i = 0; i < s->plan.n_dev; i++)
        if (s->plan.dev[i].stores.loc[st->id].region >= 0)
            return &s->plan.dev[i];
    return NULL;
}

/* Copies `size` bytes within a store. */
static ggl_status copy(device *d, const ggl_store *st, size_t to, size_t from, size_t size,
                       ggl_error *err) {
    const ggl_loc at = d->stores.loc[st->id];
    ggl_buffer *buf = d->region[at.region];
    const ggl_copy_range range = {at.offset + to, at.offset + from, size};
    return to == from ? GGL_OK : d->b->v->copy(d->b, buf, buf, &range, 1, err);
}

/* Does the call for the positions of one store, a run of pages that lie together after another.
 * Sets *done to the bytes of them. */
static ggl_status act_on(const ggl_sched *s, device *d, const ggl_store *st, const slot_call *c,
                         size_t *done, ggl_error *err) {
    const int32_t *table = ggl_inputs_pages(&s->inputs, &s->plan),
                  *row = ggl_rows_table(s->plan.g, st, table, c->slot),
                  *other = ggl_rows_table(s->plan.g, st, table, c->other);
    const int64_t n_pos = ggl_rows_n_kept(st, c->n_pos, c->states_only);
    const ggl_backend_vtable *v = d->b->v;
    const ggl_loc loc = d->stores.loc[st->id];
    ggl_buffer *buf = d->region[loc.region];
    ggl_status status = GGL_OK;
    *done = 0;
    for (int64_t pos = 0; pos < n_pos && status == GGL_OK;) {
        size_t to, from,
            size = ggl_store_run(st, loc.step, row, c->slot, pos, n_pos, &to),
            size_other = ggl_store_run(st, loc.step, other, c->other, pos, n_pos, &from);
        if (c->what == COPY && size_other < size)
            size = size_other;
        const size_t at = loc.offset + to;
        status = c->what == CLEAR  ? v->clear(d->b, buf, at, size, err)
                 : c->what == COPY ? copy(d, st, to, from, size, err)
                 : c->what == SAVE ? v->download(d->b, buf, at, c->bytes + *done, size, err)
                                   : v->upload(d->b, buf, at, c->bytes + *done, size, err);
        *done += size;
        pos += st->page_size ? (int64_t)(size / st->page_size) * GGL_PAGE : n_pos;
    }
    return status;
}

/* Does the call for all stores, after all batches in flight have finished. c->bytes moves on by what it has. */
static ggl_status act(ggl_sched *s, slot_call *c, ggl_error *err) {
    int64_t n_slots = ggl_graph_get_params(s->plan.g)->n_slots;
    if (c->slot < 0 || c->slot >= n_slots || c->other < 0 || c->other >= n_slots || !s->allocated)
        return ggl_fail(err, GGL_USAGE, "slot %d of %" PRId64,
                        c->slot < 0 || c->slot >= n_slots ? c->slot : c->other, n_slots);
    if (s->plan.g->page && !ggl_inputs_pages(&s->inputs, &s->plan))
        return ggl_fail(err, GGL_USAGE, "the input 'page' is not set");
    ggl_status status = ggl_sched_finish(s, err);
    for (int i = 0; i < ggl_graph_n_stores(s->plan.g) && status == GGL_OK; i++) {
        const ggl_store *st = ggl_graph_store(s->plan.g, i);
        device *d = is_of(c->part, st) && ggl_rows_has_slot(s->plan.g, st, c->slot) &&
                            ggl_rows_has_slot(s->plan.g, st, c->other)
                        ? device_of(s, st)
                        : NULL;
        size_t done = 0;
        if (d)
            status = act_on(s, d, st, c, &done, err);
        if (c->bytes)
            c->bytes += done;
    }
    return status;
}

ggl_status ggl_sched_clear_slot(ggl_sched *s, int slot, ggl_error *err) {
    /* Only states: attention reads no rows of later positions, so old rows may stay. */
    return act(s, &(slot_call){.what = CLEAR, .slot = slot, .other = slot, .states_only = true},
               err);
}

ggl_status ggl_sched_copy_slot(ggl_sched *s, int dst, int src, int64_t n_pos, ggl_error *err) {
    return dst == src
               ? GGL_OK
               : act(s, &(slot_call){.what = COPY, .slot = dst, .other = src, .n_pos = n_pos}, err);
}

ggl_status ggl_sched_copy_page(ggl_sched *s, int slot, int32_t dst, int32_t src, ggl_error *err) {
    const int64_t n = ggl_rows_n_pages(s->plan.g, slot);
    if (dst < 0 || src < 0 || dst >= n || src >= n || !s->allocated)
        return ggl_fail(err, GGL_USAGE, "page %" PRId32 " to page %" PRId32 " of %" PRId64, src,
                        dst, n);
    ggl_status status = ggl_sched_finish(s, err);
    for (int i = 0; i < ggl_graph_n_stores(s->plan.g) && status == GGL_OK; i++) {
        const ggl_store *st = ggl_graph_store(s->plan.g, i);
        device *d = device_of(s, st);
        if (d && ggl_rows_share_pages(st) && ggl_rows_has_slot(s->plan.g, st, slot))
            status = copy(d, st, (size_t)dst * d->stores.loc[i].step,
                          (size_t)src * d->stores.loc[i].step, st->page_size, err);
    }
    return status;
}

size_t ggl_sched_part_size(const ggl_sched *s, ggl_slot_part part, int64_t n_pos,
                           bool states_only) {
    size_t size = 0;
    for (int i = 0; i < ggl_graph_n_stores(s->plan.g); i++) {
        const ggl_store *st = ggl_graph_store(s->plan.g, i);
        size += is_of(part, st) ? ggl_rows_size(st, n_pos, states_only) : 0;
    }
    return size;
}

ggl_status ggl_sched_save_part(ggl_sched *s, ggl_slot_part part, int slot, int64_t n_pos,
                               bool states_only, void *dst, ggl_error *err) {
    slot_call c = {SAVE, slot, slot, n_pos, states_only, dst, part};
    const ggl_status status = act(s, &c, err);
    const size_t size = ggl_sched_part_size(s, part, n_pos, states_only);
    if (status == GGL_OK &&
        size > 0) /* stores of other slots, and those that no device holds, gave no bytes */
        memset(c.bytes, 0, size - (size_t)(c.bytes - (char *)dst));
    return status;
}

ggl_status ggl_sched_restore_part(ggl_sched *s, ggl_slot_part part, int slot, int64_t n_pos,
                                  bool states_only, const void *src, ggl_error *err) {
    char *bytes = (char *)src; /* which RESTORE only reads */
    return act(s, &(slot_call){RESTORE, slot, slot, n_pos, states_only, bytes, part}, err);
}

size_t ggl_sched_slot_size(const ggl_sched *s, int64_t n_pos, bool states_only) {
    return ggl_sched_part_size(s, GGL_SLOT_ALL, n_pos, states_only);
}

ggl_status ggl_sched_save_slot(ggl_sched *s, int slot, int64_t n_pos, bool states_only, void *dst,
                               ggl_error *err) {
    return ggl_sched_save_part(s, GGL_SLOT_ALL, slot, n_pos, states_only, dst, err);
}

ggl_status ggl_sched_restore_slot(ggl_sched *s, int slot, int64_t n_pos, bool states_only,
                                  const void *src, ggl_error *err) {
    return ggl_sched_restore_part(s, GGL_SLOT_ALL, slot, n_pos, states_only, src, err);
}

bool ggl_sched_has_states(const ggl_sched *s) {
    for (int i = 0; i < ggl_graph_n_stores(s->plan.g); i++)
        if (ggl_graph_store(s->plan.g, i)->kind == GGL_STORE_STATE)
            return true;
    return false;
}

int64_t ggl_sched_rollback_limit(const ggl_sched *s) {
    return ggl_rows_rollback_limit(s->plan.g);
}
