/* Clears, copies, saves and restores slots, through the backends' buffer calls. A saved slot is the
 * bytes of its stores in order of id: for rows the pages that hold the positions, for states
 * all. */
#include <inttypes.h>
#include <string.h>

#include "sched_impl.h"

typedef enum slot_action { CLEAR, COPY, SAVE, RESTORE } slot_action;

/* Returns how many bytes of a slot of the store hold positions 0 .. n_pos-1, in whole pages; for a
 * state its size, and for rows 0 if states_only. */
static size_t kept(const ggl_store *st, int64_t n_pos, bool states_only) {
    if (st->kind == GGL_STORE_STATE)
        return st->slot_size;
    if (states_only || n_pos <= 0)
        return 0;
    if (n_pos > st->n_pos)
        n_pos = st->n_pos;
    size_t size;
    return ggl_store_size(st, n_pos, &size) ? size : 0; /* cannot fail: slot_size is as large */
}

/* Returns the device that holds the store; NULL: none does, as no node that runs uses it. */
static device *device_of(const ggl_sched *s, const ggl_store *st) {
    for (int i = 0; i < s->n_dev; i++)
        if (s->dev[i].store_loc[st->id] != SIZE_MAX)
            return &s->dev[i];
    return NULL;
}

/* Does `what` to positions 0 .. n_pos-1 and the states of a slot, store by store, after all batches
 * in flight have finished. COPY copies from slot `other`; SAVE writes to bytes[], RESTORE reads
 * from it. */
static ggl_status act(ggl_sched *s, slot_action what, int slot, int other, int64_t n_pos,
                      bool states_only, char *bytes, ggl_error *err) {
    int64_t n_slots = ggl_graph_get_params(s->g)->n_slots;
    if (slot < 0 || slot >= n_slots || other < 0 || other >= n_slots || !s->allocated)
        return ggl_fail(err, GGL_USAGE, "slot %d of %" PRId64,
                        slot < 0 || slot >= n_slots ? slot : other, n_slots);
    ggl_status status = ggl_sched_finish(s, err);
    for (int i = 0; i < ggl_graph_n_stores(s->g) && status == GGL_OK; i++) {
        const ggl_store *st = ggl_graph_store(s->g, i);
        device *d = device_of(s, st);
        size_t size = kept(st, n_pos, states_only);
        if (!d || size == 0)
            continue;
        ggl_buffer *buf = d->region[GGL_REGION_STORES];
        size_t at = d->store_loc[i] + (size_t)slot * st->slot_size,
               from = d->store_loc[i] + (size_t)other * st->slot_size;
        const ggl_backend_vtable *v = d->b->v;
        status = what == CLEAR  ? v->clear(d->b, buf, at, size, err)
                 : what == COPY ? v->copy(d->b, buf, at, buf, from, size, err)
                 : what == SAVE ? v->download(d->b, buf, at, bytes, size, err)
                                : v->upload(d->b, buf, at, bytes, size, err);
        if (bytes)
            bytes += size;
    }
    return status;
}

ggl_status ggl_sched_clear_slot(ggl_sched *s, int slot, ggl_error *err) {
    /* Only states: attention reads no rows of later positions, so old rows may stay. */
    return act(s, CLEAR, slot, slot, 0, true, NULL, err);
}

ggl_status ggl_sched_copy_slot(ggl_sched *s, int dst, int src, ggl_error *err) {
    return dst == src ? GGL_OK : act(s, COPY, dst, src, INT64_MAX, false, NULL, err);
}

size_t ggl_sched_slot_size(const ggl_sched *s, int64_t n_pos, bool states_only) {
    size_t size = 0;
    for (int i = 0; i < ggl_graph_n_stores(s->g); i++)
        size += kept(ggl_graph_store(s->g, i), n_pos, states_only);
    return size;
}

ggl_status ggl_sched_save_slot(ggl_sched *s, int slot, int64_t n_pos, bool states_only, void *dst,
                               ggl_error *err) {
    return act(s, SAVE, slot, slot, n_pos, states_only, dst, err);
}

ggl_status ggl_sched_restore_slot(ggl_sched *s, int slot, int64_t n_pos, bool states_only,
                                  const void *src, ggl_error *err) {
    return act(s, RESTORE, slot, slot, n_pos, states_only, (char *)src, err); /* only reads src */
}

bool ggl_sched_has_states(const ggl_sched *s) {
    for (int i = 0; i < ggl_graph_n_stores(s->g); i++)
        if (ggl_graph_store(s->g, i)->kind == GGL_STORE_STATE)
            return true;
    return false;
}

int64_t ggl_sched_rollback_limit(const ggl_sched *s) {
    for (int i = 0; i < ggl_graph_n_stores(s->g); i++) {
        const ggl_store *st = ggl_graph_store(s->g, i);
        if (st->kind != GGL_STORE_STATE && st->n_pos < ggl_graph_get_params(s->g)->n_pos)
            /* a ring holds window + n_batch - 1 positions; the next token adds one of its window */
            return s->n_batch;
    }
    return INT64_MAX;
}
