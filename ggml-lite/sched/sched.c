/* Creates and frees a scheduler, allocates its memory, and runs batches. */
#include <inttypes.h>
#include <string.h>

#include "ggl/params.h"
#include "sched_impl.h"

ggl_status ggl_sched_new(ggl_sched **out, ggl_graph *g, const ggl_sched_params *params,
                         ggl_error *err) {
    ggl_sched_params own = {.size = sizeof own};
    const ggl_sched_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(ggl_sched_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    if (!g->finished)
        return ggl_fail(err, GGL_USAGE, "the graph is not finished");
    if (p->n_backends < 1)
        return ggl_fail(err, GGL_USAGE, "no backend");
    ggl_sched *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_sched_no_memory(err);
    s->g = g;
    s->params = *p;
    s->n_batch = ggl_graph_get_params(g)->n_batch;
    s->n_rows = p->n_rows > 0 && p->n_rows < s->n_batch ? p->n_rows : s->n_batch;
    s->dev = ggl_calloc((size_t)p->n_backends, sizeof *s->dev);
    s->n_dev = s->dev ? p->n_backends : 0;
    ggl_status st = s->dev ? ggl_sched_build(s, err) : ggl_sched_no_memory(err);
    if (st != GGL_OK) {
        ggl_sched_free(s);
        return st;
    }
    *out = s;
    return GGL_OK;
}

/* Frees the device's buffers and tables, but not the backend, which is borrowed. */
static void device_free(device *d) {
    if (d->n_regions > 0)
        d->region[GGL_REGION_IO] = NULL; /* one of io[], freed below */
    for (int i = 0; i < d->n_regions; i++)
        if (d->region[i])
            d->b->v->free(d->b, d->region[i]);
    for (int i = 0; i < MAX_LANES; i++)
        if (d->io[i])
            d->b->v->free(d->b, d->io[i]);
    ggl_free(d->region);
    ggl_free(d->copies);
    ggl_free(d->imports);
    ggl_free(d->loc[TRUNK]);
    ggl_free(d->loc[TAIL]);
    ggl_free(d->life[TRUNK]);
    ggl_free(d->life[TAIL]);
    ggl_free(d->store_loc);
    ggl_free(d->repacked);
    ggl_free(d->read_otherwise);
    ggl_free(d->repack.at);
    ggl_free(d->consts.at);
    ggl_free(d->copied.at);
}

void ggl_sched_free(ggl_sched *s) {
    if (!s)
        return;
    for (int i = 0; i < s->n_dev && s->allocated; i++) /* batches may be in flight */
        (void)s->dev[i].b->v->wait(s->dev[i].b, NULL);
    for (size_t i = 0; i < s->n_segs; i++) {
        segment *seg = &s->seg[i];
        for (int k = 0; k < 2; k++)
            if (seg->plan[k])
                s->dev[seg->backend].b->v->plan_free(s->dev[seg->backend].b, seg->plan[k]);
        ggl_free(seg->nodes.at);
        ggl_free(seg->move);
    }
    for (int i = 0; i < s->n_dev; i++)
        device_free(&s->dev[i]);
    for (int i = 0; s->out && i < ggl_graph_n_outputs(s->g); i++)
        ggl_free(s->out[i].host);
    ggl_free(s->dev);
    ggl_free(s->seg);
    ggl_free(s->out);
    ggl_free(s->backend);
    ggl_free(s->fallback);
    ggl_free(s->in_trunk);
    ggl_free(s->is_early);
    ggl_free(s->input);
    ggl_free(s->input_at);
    ggl_free(s->input_n);
    ggl_free(s->stale);
    ggl_free(s->staging);
    ggl_os_map_close(&s->cache);
    ggl_free(s);
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Allocates a buffer of `size` bytes on the device; `what` names its contents in messages. */
static ggl_status take(device *d, int region, size_t size, const char *what, ggl_buffer **out,
                       ggl_error *err) {
    static const char smaller[] = "; fewer positions (a smaller context) or slots need less";
    size_t most = d->b->max_buffer;
    if (most && size > most)
        return ggl_fail(err, GGL_LIMIT,
                        "%.1f MiB for %s on %s, which supports at most %.1f MiB in one buffer%s",
                        (double)size / 1048576, what, d->b->name, (double)most / 1048576,
                        region == GGL_REGION_STORES ? smaller : "");
    ggl_status st = d->b->v->alloc(d->b, region, size, NULL, out, err);
    const double gib = 1 << 30;
    if (st == GGL_NOMEM && region == GGL_REGION_STORES)
        return ggl_fail(err, st, "%.2f GiB for %s do not fit into the memory of %s (%.1f GiB)%s",
                        (double)size / gib, what, d->b->name, (double)d->b->memory / gib, smaller);
    return st == GGL_OK ? st
                        : ggl_within(err, st, "%.1f MiB for %s on %s", (double)size / 1048576, what,
                                     d->b->name);
}

/* Uploads constants into every lane, and those weights that the device cannot use in place. */
static ggl_status upload_all(ggl_sched *s, device *d, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < d->consts.n && st == GGL_OK; i++)
        for (int lane = 0; lane < s->n_lanes && st == GGL_OK; lane++) {
            const ggl_tensor *t = d->consts.at[i];
            st = d->b->v->upload(d->b, d->io[lane], d->loc[TRUNK][t->id].offset, t->data, t->size,
                                 err);
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

/* Allocates all buffers of the device except that of repacked weights, and fills them. */
static ggl_status device_alloc(ggl_sched *s, device *d, ggl_error *err) {
    ggl_status st =
        take(d, GGL_REGION_ARENA, d->arena_size, "values", &d->region[GGL_REGION_ARENA], err);
    for (int i = 0; i < s->n_lanes && st == GGL_OK; i++)
        st = take(d, GGL_REGION_IO, d->io_size, "inputs and outputs", &d->io[i], err);
    if (st == GGL_OK)
        st = take(d, GGL_REGION_STORES, d->stores_size, "the KV cache and recurrent states",
                  &d->region[GGL_REGION_STORES], err);
    for (size_t i = 0; i < d->n_copies && st == GGL_OK; i++)
        st = take(d, GGL_REGION_WEIGHT, d->copies[i].size, "weights",
                  &d->region[d->copies[i].region], err);
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

/* Returns the index of the input t; -1: t is none. */
static int index_of(const ggl_sched *s, const ggl_tensor *t) {
    int i = ggl_graph_n_inputs(s->g) - 1;
    while (i >= 0 && ggl_graph_get_input(s->g, i) != t)
        i--;
    return i;
}

const int32_t *ggl_sched_pages(const ggl_sched *s) {
    const int i = index_of(s, s->g->page);
    return i >= 0 && s->input_n[i] > 0 ? (const int32_t *)(s->input + s->input_at[i]) : NULL;
}

/* Gives each slot pages of its own, if there are enough of them. */
static void set_own_pages(ggl_sched *s) {
    const int i = index_of(s, s->g->page);
    if (i < 0 || ggl_count(s->g->page) > s->g->n_pages)
        return;
    int32_t *page = (int32_t *)(s->input + s->input_at[i]);
    for (int64_t k = 0; k < ggl_count(s->g->page); k++)
        page[k] = (int32_t)k;
    s->input_n[i] = 1;
}

/* Allocates the host memory of inputs and outputs. */
static ggl_status host_alloc(ggl_sched *s, ggl_error *err) {
    const int n_inputs = ggl_graph_n_inputs(s->g);
    size_t n_stale;
    bool ok = ggl_size_mul((size_t)s->n_lanes, (size_t)n_inputs, &n_stale);
    s->stale = ok ? ggl_calloc(n_stale, sizeof *s->stale) : NULL;
    s->input = ggl_calloc(s->input_size, (size_t)s->n_lanes + (s->n_lanes > 1));
    s->lane_input = s->input && s->n_lanes > 1 ? s->input + s->input_size : s->input;
    s->staging = ggl_calloc(s->staging_size, 1);
    ok = s->stale && s->input && s->staging;
    for (int i = 0; i < ggl_graph_n_outputs(s->g) && ok; i++) {
        s->out[i].host = ggl_calloc((size_t)s->n_rows, s->out[i].row);
        ok = s->out[i].host;
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
    for (int i = 0; i < s->n_dev; i++) {
        ggl_status st = device_alloc(s, &s->dev[i], err);
        if (st != GGL_OK)
            return st;
    }
    ggl_status st = ggl_sched_repack(s, err);
    if (st != GGL_OK)
        return st;
    st = host_alloc(s, err);
    if (st != GGL_OK)
        return st;
    set_own_pages(s);
    s->allocated = true;
    return GGL_OK;
}

/* --- inputs ----------------------------------------------------------------------------------- */

/* Makes *r include `by`. */
static void widen(byte_range *r, byte_range by) {
    if (by.from == by.to)
        return;
    if (r->from == r->to)
        *r = by;
    r->from = by.from < r->from ? by.from : r->from;
    r->to = by.to > r->to ? by.to : r->to;
}

/* Returns the bytes from the first to the last numbers, of 4 bytes, that differ between a and b. */
static byte_range difference(const char *a, const char *b, size_t size) {
    enum { STEP = 256, ONE = 4 }; /* many equal bytes are compared at once */
    byte_range r = {0, size};
    while (r.to - r.from >= STEP && memcmp(a + r.from, b + r.from, STEP) == 0)
        r.from += STEP;
    while (r.to - r.from >= STEP && memcmp(a + r.to - STEP, b + r.to - STEP, STEP) == 0)
        r.to -= STEP;
    while (r.to - r.from >= ONE && memcmp(a + r.from, b + r.from, ONE) == 0)
        r.from += ONE;
    while (r.to - r.from >= ONE && memcmp(a + r.to - ONE, b + r.to - ONE, ONE) == 0)
        r.to -= ONE;
    return r;
}

/* Replaces the value of input i, which is not batched, and notes which of its bytes change. */
static void replace(ggl_sched *s, int i, const char *data, size_t size) {
    char *to = s->input + s->input_at[i];
    const byte_range r = difference(to, data, size);
    memcpy(to + r.from, data + r.from, r.to - r.from);
    for (int lane = 0; lane < s->n_lanes; lane++)
        widen(&s->stale[lane * ggl_graph_n_inputs(s->g) + i], r);
}

/* Returns the number of positions that a slot may have. */
static int64_t most_pos(const ggl_sched *s) {
    const int64_t n_pos = ggl_graph_get_params(s->g)->n_pos;
    if (ggl_graph_n_stores(s->g) == 0)
        return INT64_MAX;
    return s->g->page && s->g->page->ne[0] < n_pos / GGL_PAGE ? s->g->page->ne[0] * GGL_PAGE
                                                              : n_pos;
}

/* If t is the input "slot", "pos" or "page", checks its values for n elements of the batch.
 * Backends compute addresses from them without a check. */
static ggl_status check_places(const ggl_sched *s, const ggl_tensor *t, const int32_t *value,
                               int64_t n, ggl_error *err) {
    const ggl_graph_params *p = ggl_graph_get_params(s->g);
    const struct {
        const ggl_tensor *input;
        const char *what;
        int64_t n; /* values are 0 .. n-1 */
    } place[] = {{s->g->slot, "slot", p->n_slots},
                 {s->g->pos, "position", most_pos(s)},
                 {s->g->page, "page", s->g->n_pages}};
    for (size_t k = 0; k < sizeof place / sizeof *place; k++)
        for (int64_t i = 0; t == place[k].input && i < n * ggl_count(t); i++)
            if (value[i] < 0 || value[i] >= place[k].n)
                return ggl_fail(err, GGL_USAGE, "%s %" PRId32 " of a graph that has %" PRId64,
                                place[k].what, value[i], place[k].n);
    return GGL_OK;
}

/* Checks that n elements of the input t have `size` bytes. */
static ggl_status check_size(const ggl_tensor *t, size_t size, int64_t n, ggl_error *err) {
    size_t want;
    char shape[256];
    if (!ggl_value_bytes(t, n, &want))
        return ggl_fail(err, GGL_LIMIT, "input '%s' does not fit into memory", t->name);
    if (size == want)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "input '%s': %zu bytes of data, not %zu: an element is %s %s, and %" PRId64
                    " are set",
                    t->name, size, want, ggl_type_get(t->type)->name,
                    ggl_shape_text(t, shape, sizeof shape), n);
}

ggl_status ggl_sched_set(ggl_sched *s, const char *input, const void *data, size_t size, int64_t n,
                         ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_inputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        if (strcmp(t->name, input) != 0)
            continue;
        int64_t most = ggl_is_batched(t) ? s->n_batch : 1;
        if (!s->allocated)
            return ggl_fail(err, GGL_USAGE,
                            "input '%s' is set before memory is allocated: call ggl_sched_alloc "
                            "first",
                            input);
        if (n < 1 || n > most)
            return ggl_fail(err, GGL_USAGE,
                            "input '%s': %" PRId64 " elements of the batch; 1 to %" PRId64
                            " are allowed",
                            input, n, most);
        ggl_status st = check_size(t, size, n, err);
        if (st == GGL_OK)
            st = check_places(s, t, data, n, err);
        if (st != GGL_OK)
            return st;
        if (ggl_is_batched(t))
            memcpy(s->input + s->input_at[i], data, size);
        else
            replace(s, i, data, size);
        s->input_n[i] = n;
        return GGL_OK;
    }
    return ggl_fail(err, GGL_NOT_FOUND, "the graph has no input '%s'", input);
}

/* --- running ---------------------------------------------------------------------------------- */

/* Notes that all devices that read the input t must get `stale` of it before the lane's batch. */
static void mark_moves(ggl_sched *s, const ggl_tensor *t, int lane, byte_range stale) {
    for (size_t i = 0; i < s->n_segs && stale.from < stale.to; i++)
        for (size_t k = 0; k < s->seg[i].n_moves; k++)
            if (s->seg[i].move[k].t == t)
                widen(&s->seg[i].move[k].stale[lane], stale);
}

/* Brings the lane's inputs up to date for its next batch, of n elements. */
static void fill_lane(ggl_sched *s, int lane, int64_t n) {
    const int n_inputs = ggl_graph_n_inputs(s->g);
    char *to = s->lane_input + (size_t)lane * s->input_size;
    for (int i = 0; i < n_inputs; i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        byte_range *stale = &s->stale[lane * n_inputs + i], r = *stale;
        size_t size;
        if (ggl_is_batched(t) && ggl_value_bytes(t, n, &size))
            r = (byte_range){0, size};
        else
            mark_moves(s, t, lane, r);
        if (s->lane_input != s->input)
            memcpy(to + s->input_at[i] + r.from, s->input + s->input_at[i] + r.from, r.to - r.from);
        *stale = (byte_range){0};
    }
}

/* Returns the element of the batch that is requested row i. */
static size_t row_of(const flight *f, int64_t i) {
    return (size_t)(f->row ? f->row[i] : i);
}

/* Returns how many rows, from row i of n on, are adjacent in the source, so that one copy moves
 * them all. Without `gather` all of them are. */
static int64_t run_length(const flight *f, bool gather, int64_t i, int64_t n) {
    int64_t k = 1;
    while (i + k < n && (!gather || row_of(f, i + k) == row_of(f, i) + (size_t)k))
        k++;
    return k;
}

/* Brings the segment's device what it does not have yet of an input that is not batched: nothing else
 * is written where that lies. */
static ggl_status upload_stale(ggl_sched *s, const segment *seg, move *m, int lane,
                               ggl_error *err) {
    device *to = &s->dev[seg->backend];
    byte_range *r = &m->stale[lane];
    if (r->from == r->to)
        return GGL_OK;
    const char *from = s->lane_input + (size_t)lane * s->input_size + m->from;
    ggl_status st = to->b->v->upload(to->b, to->io[lane], m->to + r->from, from + r->from,
                                     r->to - r->from, err);
    if (st == GGL_OK)
        *r = (byte_range){0};
    return st;
}

/* Makes the copy m for the flight: from host memory, within a device, or through s->staging. */
static ggl_status do_move(ggl_sched *s, const segment *seg, move *m, const flight *f,
                          ggl_error *err) {
    if (m->from_backend < 0 && !m->batched)
        return upload_stale(s, seg, m, f->lane, err);
    device *to = &s->dev[seg->backend];
    ggl_buffer *io = to->io[f->lane];
    int64_t count = !m->batched ? 1 : seg->phase == TRUNK ? f->n : f->n_rows;
    ggl_status st = GGL_OK;
    for (int64_t i = 0, k; i < count && st == GGL_OK; i += k) {
        k = run_length(f, m->gather, i, count);
        size_t size = (size_t)k * m->row,
               src = m->from + (m->gather ? row_of(f, i) : (size_t)i) * m->row;
        size_t dst = m->to + (size_t)i * m->row;
        if (m->from_backend < 0) {
            st = to->b->v->upload(to->b, io, dst,
                                  s->lane_input + (size_t)f->lane * s->input_size + src, size, err);
        } else if (m->from_backend == seg->backend) {
            st = to->b->v->copy(to->b, io, dst, io, src, size, err);
        } else {
            device *from = &s->dev[m->from_backend];
            st = from->b->v->download(from->b, from->io[f->lane], src, s->staging, size, err);
            if (st == GGL_OK)
                st = to->b->v->upload(to->b, io, dst, s->staging, size, err);
        }
    }
    return st;
}

/* Makes all copies that the flight's next segment needs. */
static ggl_status move_in(ggl_sched *s, const flight *f, ggl_error *err) {
    const segment *seg = &s->seg[f->next];
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < seg->n_moves && st == GGL_OK; i++)
        st = do_move(s, seg, &seg->move[i], f, err);
    return st;
}

/* Runs the flight's next segment. GGL_CANCELLED if params.cancelled returns true. */
static ggl_status run_segment(ggl_sched *s, const flight *f, ggl_error *err) {
    const segment *seg = &s->seg[f->next];
    int64_t n = seg->phase == TRUNK ? f->n : f->n_rows;
    device *d = &s->dev[seg->backend];
    if (s->params.cancelled && s->params.cancelled(s->params.cancelled_ctx))
        return ggl_fail(err, GGL_CANCELLED, "the run was stopped");
    d->b->cancelled = s->params.cancelled;
    d->b->cancelled_ctx = s->params.cancelled_ctx;
    d->region[GGL_REGION_IO] = d->io[f->lane];
    ggl_status st = d->b->v->run(d->b, n == 1 || !seg->plan[1] ? seg->plan[0] : seg->plan[1],
                                 d->region, n, err);
    d->b->cancelled = NULL; /* the backend may have other users, whose runs we must not cancel */
    d->b->cancelled_ctx = NULL;
    return st;
}

/* Downloads the flight's requested rows of one output to o->host. */
static ggl_status fetch_output(ggl_sched *s, output *o, const flight *f, ggl_error *err) {
    device *d = &s->dev[o->backend];
    bool gather = o->phase == TRUNK;
    ggl_status st = GGL_OK;
    for (int64_t i = 0, k; i < f->n_rows && st == GGL_OK; i += k) {
        k = run_length(f, gather, i, f->n_rows);
        st = d->b->v->download(d->b, d->io[f->lane],
                               o->from + (gather ? row_of(f, i) : (size_t)i) * o->row,
                               (char *)o->host + (size_t)i * o->row, (size_t)k * o->row, err);
    }
    return st;
}

/* Returns how many segments, from the first on, the flight passes: the trunk's, and, if it has
 * outputs, the tail's, which come after them, or the early ones of these. */
static size_t n_segments(const ggl_sched *s, const flight *f) {
    return f->n_rows == 0 ? s->n_trunk_segs : f->ends_early ? s->n_early_segs : s->n_segs;
}

/* True if the flight computes the output. */
static bool has_output(const ggl_sched *s, const output *o, const flight *f) {
    return !f->ends_early || o->phase == TRUNK || s->is_early[o->t->id];
}

/* Runs the next segment of every flight. All moves come first, so that none waits for a backend
 * that is computing. Then asynchronous backends are started, and last the others run beside
 * them. */
static ggl_status advance(ggl_sched *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n_flights && st == GGL_OK; i++)
        st = move_in(s, &s->flight[i], err);
    for (int early = 1; early >= 0; early--)
        for (int i = 0; i < s->n_flights && st == GGL_OK; i++)
            if (s->dev[s->seg[s->flight[i].next].backend].b->async == (early == 1))
                st = run_segment(s, &s->flight[i], err);
    for (int i = 0; i < s->n_flights; i++)
        s->flight[i].next++;
    return st;
}

/* Advances all flights until at most n are unfinished. On failure all are dropped. */
static ggl_status advance_until(ggl_sched *s, int n, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (;;) {
        if (s->n_flights > 0 && s->flight[0].next >= n_segments(s, &s->flight[0])) {
            memmove(s->flight, s->flight + 1, (size_t)--s->n_flights * sizeof *s->flight);
            continue;
        }
        if (s->n_flights <= n)
            return GGL_OK;
        st = advance(s, err);
        if (st != GGL_OK) {
            s->n_flights = 0;
            return st;
        }
    }
}

ggl_status ggl_sched_finish(ggl_sched *s, ggl_error *err) {
    ggl_status st = advance_until(s, 0, err);
    for (int i = 0; i < s->n_dev && st == GGL_OK; i++)
        st = s->dev[i].b->v->wait(s->dev[i].b, err);
    return st;
}

/* Checks the arguments of a run: GGL_USAGE if the batch size, a row or an input does not fit. */
static ggl_status check_run(const ggl_sched *s, const flight *f, ggl_error *err) {
    if (!s->allocated)
        return ggl_fail(err, GGL_USAGE,
                        "a run before memory is allocated: call ggl_sched_alloc first");
    if (f->n < 1 || f->n > s->n_batch)
        return ggl_fail(err, GGL_USAGE, "a batch of %" PRId64 "; 1 to %" PRId64 " are allowed",
                        f->n, s->n_batch);
    if (f->n_rows < 0 || f->n_rows > f->n || f->n_rows > s->n_rows)
        return ggl_fail(err, GGL_USAGE,
                        "%" PRId64 " rows of outputs; at most %" PRId64 " are allowed", f->n_rows,
                        f->n < s->n_rows ? f->n : s->n_rows);
    for (int64_t i = 0; f->row && i < f->n_rows; i++)
        if (f->row[i] < 0 || f->row[i] >= f->n || (i && f->row[i] <= f->row[i - 1]))
            return ggl_fail(err, GGL_USAGE,
                            "row %" PRId32 " of outputs: rows must be ascending and below %" PRId64,
                            f->row[i], f->n);
    for (int i = 0; i < ggl_graph_n_inputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        if (t->needed && s->input_n[i] < (ggl_is_batched(t) ? f->n : 1))
            return ggl_fail(err, GGL_USAGE,
                            "input '%s' is set for %" PRId64
                            " elements of the batch, but the run has %" PRId64,
                            t->name, s->input_n[i], f->n);
    }
    return GGL_OK;
}

/* Starts a batch: waits for a free lane, copies the current inputs into it, and runs the batch's
 * first segment, together with the next one of each flight that is already in progress. */
static ggl_status begin(ggl_sched *s, flight *f, ggl_error *err) {
    ggl_status st = check_run(s, f, err);
    if (st == GGL_OK)
        st = advance_until(s, s->n_lanes - 1, err);
    if (st != GGL_OK)
        return st;
    f->lane = s->n_flights == 0 ? 0 : (s->flight[s->n_flights - 1].lane + 1) % s->n_lanes;
    fill_lane(s, f->lane, f->n);
    s->flight[s->n_flights++] = *f;
    st = n_segments(s, f) > 0 ? advance(s, err) : GGL_OK;
    if (st == GGL_OK)
        return advance_until(s, s->n_flights, err);
    s->n_flights = 0;
    return st;
}

/* True if the `run` of some backend may return before its work is done. */
static bool has_async(const ggl_sched *s) {
    for (int i = 0; i < s->n_dev; i++)
        if (s->dev[i].b->async)
            return true;
    return false;
}

ggl_status ggl_sched_push(ggl_sched *s, int64_t n, int *n_behind, ggl_error *err) {
    flight f = {.n = n};
    ggl_status st = begin(s, &f, err);
    if (n_behind)
        *n_behind = s->n_flights > 0 ? s->n_flights : has_async(s);
    return st;
}

/* Runs a batch to its end and fetches what it computes. */
static ggl_status run_whole(ggl_sched *s, const flight *f, ggl_error *err) {
    flight copy = *f;
    ggl_status st = begin(s, &copy, err);
    if (st == GGL_OK)
        st = advance_until(s, 0, err);
    for (int i = 0; i < ggl_graph_n_outputs(s->g) && st == GGL_OK; i++)
        if (has_output(s, &s->out[i], &copy))
            st = fetch_output(s, &s->out[i], &copy, err);
    for (int i = 0; i < s->n_dev && st == GGL_OK; i++)
        st = s->dev[i].b->v->wait(s->dev[i].b, err);
    return st;
}

ggl_status ggl_sched_run(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows,
                         ggl_error *err) {
    return run_whole(s, &(flight){.n = n, .row = row, .n_rows = row ? n_rows : n}, err);
}

ggl_status ggl_sched_run_early(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows,
                               ggl_error *err) {
    if (!s->params.early)
        return ggl_fail(err, GGL_USAGE,
                        "a run cannot end early: ggl_sched_params.early names no output");
    const flight f = {.n = n, .row = row, .n_rows = row ? n_rows : n, .ends_early = true};
    return run_whole(s, &f, err);
}

const float *ggl_sched_output(const ggl_sched *s, int k) {
    return k >= 0 && k < ggl_graph_n_outputs(s->g) ? s->out[k].host : NULL;
}
