/* Allocates the memory of a scheduler: the buffers of devices, and the host memory of inputs and outputs. */
#include "memory.h"

/* Allocates a buffer of `size` bytes on the device; `what` names its contents in messages. */
static ggl_status take(device *d, int region, size_t size, const char *what, ggl_buffer **out,
                       ggl_error *err) {
    size_t most = d->b->max_buffer;
    if (most && size > most)
        return ggl_fail(err, GGL_LIMIT,
                        "%.1f MiB for %s on %s, which supports at most %.1f MiB in one buffer",
                        (double)size / 1048576, what, d->b->name, (double)most / 1048576);
    ggl_status st = d->b->v->alloc(d->b, region, size, NULL, out, err);
    const size_t wanted = d->stores.rows_size + d->stores.states_size, all = d->b->memory;
    if (st == GGL_NOMEM && region == GGL_REGION_STORES) {
        const double unit = wanted < 1 << 30 && all < 1 << 30 ? 1 << 20 : 1 << 30;
        return ggl_fail(err, st, "%.2f %s for %s do not fit into %sthe memory of %s (%.1f %s); %s",
                        (double)wanted / unit, unit < 1 << 30 ? "MiB" : "GiB", what,
                        wanted < all ? "what is free of " : "", d->b->name, (double)all / unit,
                        unit < 1 << 30 ? "MiB" : "GiB", ggl_sched_hint_smaller);
    }
    return st == GGL_OK ? st
                        : ggl_within(err, st, "%.1f MiB for %s on %s", (double)size / 1048576, what,
                                     d->b->name);
}

/* Allocates the buffers of the pieces. */
static ggl_status take_all(device *d, const pieces *p, int region, const char *what,
                           ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < p->n && st == GGL_OK; i++)
        st = take(d, region, p->at[i].size, what, &d->region[p->at[i].region], err);
    return st;
}

static ggl_status upload(device *d, const ggl_tensor *t, ggl_error *err) {
    const ggl_loc loc = d->loc[TRUNK][t->id];
    return d->b->v->upload(d->b, d->region[loc.region], loc.offset, t->data, t->size, err);
}

/* Uploads a weight that the device cannot use in place. */
static ggl_status upload_weight(schedule *s, device *d, const ggl_tensor *t, loading *l,
                                ggl_error *err) {
    const ggl_status st = upload(d, t, err);
    return st == GGL_OK ? ggl_loading_add(l, s, t->size, err)
                        : ggl_within(err, st, "upload of %s", t->name);
}

static const node_list *copied_of(const device *d) {
    return &d->weights.copied;
}

/* Makes a buffer of host memory, if the device can; else *out stays NULL. */
static ggl_status use_host(device *d, char *at, size_t size, ggl_buffer **out, ggl_error *err) {
    const ggl_status st = d->b->v->alloc(d->b, GGL_REGION_IO, size, at, out, err);
    return st == GGL_OK || st == GGL_UNSUPPORTED
               ? GGL_OK
               : ggl_within(err, st, "host memory for inputs and outputs on %s", d->b->name);
}

/* Allocates the device's io region of the lane: in the lane's host memory if it computes there. */
static ggl_status take_io(const schedule *s, device *d, const host_memory *h, int lane,
                          ggl_error *err) {
    char *host = h->at[lane];
    ggl_status st = d->b->async ? use_host(d, host, s->host_size, &d->io.host[lane], err)
                                : use_host(d, host + d->io.image, d->io.size, &d->io.at[lane], err);
    d->io.in_place[lane] = d->io.at[lane];
    return st == GGL_OK && !d->io.at[lane]
               ? take(d, GGL_REGION_IO, d->io.size, "inputs and outputs", &d->io.at[lane], err)
               : st;
}

/* Allocates all buffers of the device except that of repacked weights. */
static ggl_status device_alloc(const schedule *s, device *d, const host_memory *h, ggl_error *err) {
    ggl_status st =
        take(d, GGL_REGION_ARENA, d->arena_size, "values", &d->region[GGL_REGION_ARENA], err);
    for (int lane = 0; lane < s->n_lanes && st == GGL_OK; lane++)
        st = take_io(s, d, h, lane, err);
    if (st == GGL_OK)
        st = take_all(d, &d->stores.pieces, GGL_REGION_STORES, "the KV cache and recurrent states",
                      err);
    if (st == GGL_OK)
        st = take_all(d, &d->weights.copies, GGL_REGION_WEIGHT, "weights", err);
    d->region[GGL_REGION_IO] = d->io.at[0];
    for (size_t i = 0; i < d->weights.consts.n && st == GGL_OK; i++)
        st = upload(d, d->weights.consts.at[i], err);
    return st;
}

ggl_status ggl_devices_alloc(schedule *s, const host_memory *h, loading *l, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n_dev && st == GGL_OK; i++)
        st = device_alloc(s, &s->dev[i], h, err);
    return st == GGL_OK ? ggl_loading_each(l, s, copied_of, upload_weight, err) : st;
}

/* --- progress --------------------------------------------------------------------------------- */

static size_t size_of_all(const node_list *l) {
    size_t size = 0;
    for (size_t i = 0; i < l->n; i++)
        size += l->at[i]->size;
    return size;
}

void ggl_loading_begin(loading *l, const schedule *s) {
    for (int i = 0; i < s->n_dev; i++)
        l->total += size_of_all(&s->dev[i].weights.copied) + size_of_all(&s->dev[i].repack.list) -
                    s->dev[i].repack.left;
}

ggl_status ggl_loading_add(loading *l, const schedule *s, size_t size, ggl_error *err) {
    const ggl_sched_params *p = &s->params;
    l->done += size;
    if (p->progress && !p->progress(p->progress_ctx, l->done, l->total))
        return ggl_fail(err, GGL_CANCELLED, "stopped while weights were loaded");
    return GGL_OK;
}

/* How far a device is with its weights. */
typedef struct turn {
    size_t next, done, all;
} turn;

/* Returns the device that has loaded the smallest part of its own, so that all are done at the same time; -1: all are done. */
static int next_turn(const schedule *s, const turn *t, const node_list *(*of)(const device *d)) {
    int best = -1;
    for (int k = 0; k < s->n_dev; k++)
        if (t[k].next < of(&s->dev[k])->n &&
            (best < 0 ||
             (double)t[k].done * (double)t[best].all < (double)t[best].done * (double)t[k].all))
            best = k;
    return best;
}

ggl_status ggl_loading_each(loading *l, schedule *s, const node_list *(*of)(const device *d),
                            ggl_load_fn *load, ggl_error *err) {
    turn *t = ggl_calloc((size_t)s->n_dev, sizeof *t);
    ggl_status st = t ? GGL_OK : ggl_sched_no_memory(err);
    for (int k = 0; k < s->n_dev && t; k++)
        t[k].all = size_of_all(of(&s->dev[k]));
    for (int k; st == GGL_OK && (k = next_turn(s, t, of)) >= 0;) {
        const ggl_tensor *w = of(&s->dev[k])->at[t[k].next++];
        t[k].done += w->size;
        st = load(s, &s->dev[k], w, l, err);
    }
    ggl_free(t);
    return st;
}

ggl_status ggl_loading_end(const schedule *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < s->n_dev && st == GGL_OK; k++)
        if (s->dev[k].b->async)
            st = s->dev[k].b->v->wait(s->dev[k].b, err);
    return st == GGL_OK ? st : ggl_within(err, st, "loading weights");
}

/* --- host memory ------------------------------------------------------------------------------ */

bool ggl_host_memory_init(host_memory *h, const schedule *s) {
    size_t padded;
    bool ok = ggl_size_add(s->host_size, 2 * HOST_PAGE, &padded);
    for (int lane = 0; lane < s->n_lanes && ok; lane++) {
        char *block = h->block[lane] = ggl_calloc(padded, 1);
        h->at[lane] = block ? block + (HOST_PAGE - (uintptr_t)block % HOST_PAGE) : NULL;
        ok = block;
    }
    return ok;
}

void ggl_host_memory_fini(host_memory *h) {
    for (int lane = 0; lane < MAX_LANES; lane++)
        ggl_free(h->block[lane]);
}
