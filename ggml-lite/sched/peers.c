/* Lets devices copy values from each other's memory, where they can reach it. */
#include "memory.h"

/* Makes d reach the io region of `of` in this lane; *out stays NULL if it cannot. */
static ggl_status reach(device *d, device *of, int lane, ggl_buffer **out, ggl_error *err) {
    ggl_shared handle;
    ggl_status st = of->b->v->share(of->b, of->io.at[lane], &handle, err);
    if (st == GGL_OK)
        st = d->b->v->borrow(d->b, &handle, out, err);
    return st == GGL_UNSUPPORTED ? GGL_OK : st;
}

/* Makes d reach device k in all lanes, or in none. */
static ggl_status join(schedule *s, device *d, int k, ggl_error *err) {
    device *of = &s->dev[k];
    ggl_buffer **peer = d->io.peer[k];
    ggl_status st = GGL_OK;
    int lane = 0;
    if (peer[0] || of->b == d->b || !of->b->async || !of->b->v->share || !d->b->v->borrow)
        return GGL_OK;
    for (; lane < s->n_lanes && st == GGL_OK; lane++) {
        st = reach(d, of, lane, &peer[lane], err);
        if (!peer[lane])
            break;
    }
    for (int i = 0; i < lane && lane < s->n_lanes; i++) {
        d->b->v->free(d->b, peer[i]);
        peer[i] = NULL;
    }
    return st;
}

/* True if the value that departs from segment `i` is copied from its device by all that need it. */
static bool is_reached(const schedule *s, size_t i, const departing *out) {
    for (size_t k = i + 1; k < s->n_segs; k++)
        for (size_t j = 0; j < s->seg[k].n_moves; j++) {
            const move *m = &s->seg[k].move[j];
            if (m->t == out->t && m->from_backend == s->seg[i].backend && m->image == out->image &&
                m->from_backend != s->seg[k].backend &&
                !s->dev[s->seg[k].backend].io.peer[m->from_backend][0])
                return false;
        }
    return true;
}

ggl_status ggl_sched_join_peers(schedule *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n_dev; i++)
        if (!s->dev[i].io.peer &&
            !(s->dev[i].io.peer = ggl_calloc((size_t)s->n_dev, sizeof *s->dev[i].io.peer)))
            return ggl_sched_no_memory(err);
    for (size_t i = 0; i < s->n_segs; i++)
        for (size_t k = 0; k < s->seg[i].n_moves && st == GGL_OK; k++) {
            const int from = s->seg[i].move[k].from_backend;
            if (from >= 0 && from != s->seg[i].backend)
                st = join(s, &s->dev[s->seg[i].backend], from, err);
        }
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        for (size_t k = 0; k < s->seg[i].n_departing; k++)
            s->seg[i].departing[k].is_copied = !is_reached(s, i, &s->seg[i].departing[k]);
    return st;
}
