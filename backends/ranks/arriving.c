#include "arriving.h"

#include <stdio.h>
#include <stdlib.h>

/* Bytes of weights under way, and of larger ones so many: one comes, one is repacked, one is written. */
enum { MOST_ARRIVING = 64 << 20, FEWEST_ARRIVING = 3 };

static void finish(station *s, weight *w) {
    const size_t size = w->from.size;
    ggl_source_drop(&w->from);
    ggl_free(w);
    ggl_room_give(&s->arriving.room, size);
}

static bool has_failed(arriving *l) {
    ggl_os_mutex_lock(&l->lock);
    const bool failed = l->failed.status != GGL_OK;
    ggl_os_mutex_unlock(&l->lock);
    return failed;
}

static ggl_status repack(station *s, weight *w, ggl_error *err) {
    const size_t size = s->b->v->repack_size ? s->b->v->repack_size(s->b, &w->t) : 0;
    if (size == 0 || size > w->to_size - w->offset)
        return ggl_fail(err, GGL_DEVICE, "%s: an order for memory that is not there", w->name);
    w->t.data = w->from.data;
    return s->b->v->repack(s->b, w->to, w->offset, &w->t, err);
}

static void load(void *ctx, queued *item) {
    station *s = ctx;
    arriving *l = &s->arriving;
    weight *w = (weight *)item;
    ggl_error err = {0};
    ggl_status st = GGL_CANCELLED; /* after an error nothing more is done */
    if (!has_failed(l)) {
        st = ggl_source_check(&w->from, w->repacks ? w->name : "a weight", &err);
        if (st == GGL_OK)
            st = w->repacks
                     ? repack(s, w, &err)
                     : s->b->v->upload(s->b, w->to, w->offset, w->from.data, w->from.size, &err);
        if (st != GGL_OK) {
            ggl_os_mutex_lock(&l->lock);
            l->failed = err;
            l->failed.status = st;
            ggl_os_mutex_unlock(&l->lock);
        }
    }
    if (st == GGL_OK && w->from.owned)
        ggl_queue_put(&l->kept, &w->q);
    else
        finish(s, w);
}

static void keep(void *ctx, queued *item) {
    station *s = ctx;
    weight *w = (weight *)item;
    ggl_source_keep(s, &w->from);
    finish(s, w);
}

void ggl_arriving_begin(station *s, size_t size) {
    arriving *l = &s->arriving;
    if (!l->is_made) {
        ggl_queue_init(&l->loaded, load, s);
        ggl_queue_init(&l->kept, keep, s);
        ggl_room_init(&l->room, MOST_ARRIVING, FEWEST_ARRIVING);
        ggl_os_mutex_init(&l->lock);
        l->is_made = true;
    }
    l->is_on = true;
    ggl_room_take(&l->room, size);
}

void ggl_arriving_add(station *s, const weight *w) {
    weight *own = ggl_calloc(1, sizeof *own);
    if (!own) {
        taken from = w->from;
        const size_t size = from.size;
        ggl_station_fail(s, GGL_NOMEM, "out of memory for a weight");
        ggl_source_drop(&from);
        ggl_room_give(&s->arriving.room, size);
        return;
    }
    *own = *w;
    own->t.name = own->name;
    if (w->to && w->from.data && ggl_station_ok(s) && !s->is_lost)
        ggl_queue_put(&s->arriving.loaded, &own->q);
    else
        finish(s, own);
}

void ggl_arriving_settle(station *s, bool waits) {
    arriving *l = &s->arriving;
    if (!l->is_on)
        return;
    if (waits) {
        ggl_queue_drain(&l->loaded);
        ggl_source_forget(s);
        l->is_on = false;
    }
    ggl_os_mutex_lock(&l->lock);
    const ggl_error err = l->failed;
    l->failed = (ggl_error){0};
    ggl_os_mutex_unlock(&l->lock);
    ggl_station_note(s, err.status, &err);
}

void ggl_arriving_fini(station *s) {
    arriving *l = &s->arriving;
    ggl_source_forget(s);
    if (!l->is_made)
        return;
    ggl_queue_fini(&l->loaded); /* the first puts into the second */
    ggl_queue_fini(&l->kept);
    ggl_room_fini(&l->room);
    ggl_os_mutex_destroy(&l->lock);
    *l = (arriving){0};
}
