/* Allocates the memory of a scheduler: the buffers of devices, and the host memory of inputs and outputs. */
#include "sched_impl.h"
#include "ggl/internal/graph.h"

const char ggl_sched_hint_smaller[] = "fewer positions (a smaller context) or slots need less";

/* Allocates a buffer of `size` bytes on the device; `what` names its contents in messages. */
static ggl_status take(device *d, int region, size_t size, const char *what, ggl_buffer **out,
                       ggl_error *err) {
    size_t most = d->b->max_buffer;
    if (most && size > most)
        return ggl_fail(err, GGL_LIMIT,
                        "%.1f MiB for %s on %s, which supports at most %.1f MiB in one buffer",
                        (double)size / 1048576, what, d->b->name, (double)most / 1048576);
    ggl_status st = d->b->v->alloc(d->b, region, size, NULL, out, err);
    const size_t wanted = d->rows_size + d->states_size, all = d->b->memory;
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

/* Uploads constants, and those weights that the device cannot use in place. */
static ggl_status upload_all(ggl_sched *s, device *d, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < d->consts.n && st == GGL_OK; i++) {
        const ggl_tensor *t = d->consts.at[i];
        ggl_loc loc = d->loc[TRUNK][t->id];
        st = d->b->v->upload(d->b, d->region[loc.region], loc.offset, t->data, t->size, err);
    }
    for (size_t i = 0; i < d->copied.n && st == GGL_OK; i++) {
        const ggl_tensor *t = d->copied.at[i];
        ggl_loc loc = d->loc[TRUNK][t->id];
        st = d->b->v->upload(d->b, d->region[loc.region], loc.offset, t->data, t->size, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "upload of %s", t->name);
        st = ggl_sched_loaded(s, t->size, err);
    }
    return st;
}

/* Makes a buffer of host memory, if the device can; else *out stays NULL. */
static ggl_status use_host(device *d, char *at, size_t size, ggl_buffer **out, ggl_error *err) {
    const ggl_status st = d->b->v->alloc(d->b, GGL_REGION_IO, size, at, out, err);
    return st == GGL_OK || st == GGL_UNSUPPORTED
               ? GGL_OK
               : ggl_within(err, st, "host memory for inputs and outputs on %s", d->b->name);
}

/* Allocates the device's io region of the lane: in the lane's host memory if it computes there. */
static ggl_status take_io(ggl_sched *s, device *d, int lane, ggl_error *err) {
    char *host = s->host[lane];
    ggl_status st = d->b->async ? use_host(d, host, s->host_size, &d->host[lane], err)
                                : use_host(d, host + d->image, d->io_size, &d->io[lane], err);
    d->in_place[lane] = d->io[lane];
    return st == GGL_OK && !d->io[lane]
               ? take(d, GGL_REGION_IO, d->io_size, "inputs and outputs", &d->io[lane], err)
               : st;
}

/* Allocates all buffers of the device except that of repacked weights, and fills them. */
static ggl_status device_alloc(ggl_sched *s, device *d, ggl_error *err) {
    ggl_status st =
        take(d, GGL_REGION_ARENA, d->arena_size, "values", &d->region[GGL_REGION_ARENA], err);
    for (int lane = 0; lane < s->n_lanes && st == GGL_OK; lane++)
        st = take_io(s, d, lane, err);
    if (st == GGL_OK)
        st = take_all(d, &d->stores, GGL_REGION_STORES, "the KV cache and recurrent states", err);
    if (st == GGL_OK)
        st = take_all(d, &d->copies, GGL_REGION_WEIGHT, "weights", err);
    d->region[GGL_REGION_IO] = d->io[0];
    return st == GGL_OK ? upload_all(s, d, err) : st;
}

ggl_status ggl_sched_loaded(ggl_sched *s, size_t size, ggl_error *err) {
    s->load_done += size;
    if (s->params.progress &&
        !s->params.progress(s->params.progress_ctx, s->load_done, s->load_total))
        return ggl_fail(err, GGL_CANCELLED, "stopped while weights were loaded");
    return GGL_OK;
}

/* Allocates the host memory of inputs and outputs. */
static ggl_status host_alloc(ggl_sched *s, ggl_error *err) {
    const int n_inputs = ggl_graph_n_inputs(s->g);
    const int64_t n_slots = s->n_lanes > 1 ? ggl_graph_get_params(s->g)->n_slots : 0;
    size_t n_stale, padded;
    bool ok = ggl_size_mul((size_t)s->n_lanes, (size_t)n_inputs, &n_stale);
    s->stale = ok ? ggl_calloc(n_stale, sizeof *s->stale) : NULL;
    s->input = ggl_calloc(s->input_size, (size_t)s->n_lanes + (s->n_lanes > 1));
    s->lane_input = s->input && s->n_lanes > 1 ? s->input + s->input_size : s->input;
    s->shown = ggl_calloc(s->shown_size, 1);
    s->operand = ggl_calloc(s->n_operands, sizeof *s->operand);
    ok = s->stale && s->input && s->shown && s->operand &&
         ggl_size_add(s->host_size, 2 * HOST_PAGE, &padded);
    for (int lane = 0; lane < s->n_lanes && ok; lane++) {
        char *block = s->host_block[lane] = ggl_calloc(padded, 1);
        s->flight[lane].row = ggl_calloc((size_t)s->n_rows, sizeof *s->flight[lane].row);
        s->flight[lane].seen = ggl_calloc((size_t)n_slots, sizeof *s->flight[lane].seen);
        s->host[lane] = block ? block + (HOST_PAGE - (uintptr_t)block % HOST_PAGE) : NULL;
        ok = block && s->flight[lane].row && s->flight[lane].seen;
    }
    for (int i = 0; i < n_inputs && ok; i++) /* no device has any input yet */
        for (int lane = 0; lane < s->n_lanes; lane++)
            ok =
                ggl_value_bytes(ggl_graph_get_input(s->g, i), 1, &s->stale[lane * n_inputs + i].to);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for inputs and outputs");
}

ggl_status ggl_sched_alloc(ggl_sched *s, ggl_error *err) {
    if (s->allocated)
        return GGL_OK;
    for (int i = 0; i < s->n_dev; i++) {
        for (size_t k = 0; k < s->dev[i].copied.n; k++)
            s->load_total += s->dev[i].copied.at[k]->size;
        for (size_t k = 0; k < s->dev[i].repack.n; k++)
            s->load_total += s->dev[i].repack.at[k]->size;
    }
    ggl_status st = host_alloc(s, err);
    for (int i = 0; i < s->n_dev && st == GGL_OK; i++)
        st = device_alloc(s, &s->dev[i], err);
    if (st == GGL_OK)
        st = ggl_sched_join_peers(s, err);
    if (st == GGL_OK)
        st = ggl_sched_repack(s, err);
    if (st != GGL_OK)
        return st;
    st = ggl_sched_start_threads(s, err);
    if (st != GGL_OK)
        return st;
    ggl_sched_own_pages(s);
    s->allocated = true;
    return GGL_OK;
}
