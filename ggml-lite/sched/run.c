/* Passes a batch through a segment: brings in what the segment needs, runs it, and fetches what other
 * devices and the user need of it. Only the segment's own backend is called. */
#include "sched_impl.h"

/* Returns the element of the batch that is requested row i. */
static size_t row_of(const flight *f, int64_t i) {
    return (size_t)f->row[i];
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

/* Returns the lane's staging memory. */
static char *staging(const ggl_sched *s, const flight *f) {
    return s->staging + (size_t)f->lane * s->staging_size;
}

/* Copies the requested rows of what the trunk has left in a device's io region to their place in the
 * same region. */
static ggl_status copy_rows(device *d, const move *m, const flight *f, int64_t count,
                            ggl_error *err) {
    enum { MOST = 64 };
    ggl_copy_range range[MOST];
    ggl_buffer *io = d->io[f->lane];
    ggl_status st = GGL_OK;
    size_t n = 0;
    for (int64_t i = 0, k; i < count && st == GGL_OK; i += k) {
        k = run_length(f, m->gather, i, count);
        range[n++] = (ggl_copy_range){m->to + (size_t)i * m->row, m->from + row_of(f, i) * m->row,
                                      (size_t)k * m->row};
        if (n == MOST || i + k == count) {
            st = d->b->v->copy(d->b, io, io, range, n, err);
            n = 0;
        }
    }
    return st;
}

/* Makes the copy m for the flight: from host memory, or within the device. */
static ggl_status do_move(ggl_sched *s, const segment *seg, move *m, const flight *f,
                          ggl_error *err) {
    if (m->from_backend < 0 && !m->batched)
        return upload_stale(s, seg, m, f->lane, err);
    device *to = &s->dev[seg->backend];
    ggl_buffer *io = to->io[f->lane];
    const int64_t count = !m->batched ? 1 : seg->phase == TRUNK ? f->n : f->n_rows;
    const bool departed = m->from_backend >= 0 && m->from_backend != seg->backend;
    const bool gather = m->gather && !departed; /* only requested rows have departed */
    const char *host = departed ? staging(s, f) : s->lane_input + (size_t)f->lane * s->input_size;
    if (m->from_backend == seg->backend)
        return copy_rows(to, m, f, count, err);
    ggl_status st = GGL_OK;
    for (int64_t i = 0, k; i < count && st == GGL_OK; i += k) {
        k = run_length(f, gather, i, count);
        const size_t size = (size_t)k * m->row,
                     src = m->from + (gather ? row_of(f, i) : (size_t)i) * m->row,
                     dst = m->to + (size_t)i * m->row;
        st = to->b->v->upload(to->b, io, dst, host + src, size, err);
    }
    return st;
}

/* Downloads `count` rows of `size` bytes each to `to`: those from `from` on in the io region, or, with
 * gather, the requested ones. */
static ggl_status fetch_rows(device *d, const flight *f, size_t from, bool gather, int64_t count,
                             size_t size, char *to, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int64_t i = 0, k; i < count && st == GGL_OK; i += k) {
        k = run_length(f, gather, i, count);
        st = d->b->v->download(d->b, d->io[f->lane],
                               from + (gather ? row_of(f, i) : (size_t)i) * size,
                               to + (size_t)i * size, (size_t)k * size, err);
    }
    return st;
}

/* Fetches a value that departs from the segment. */
static ggl_status fetch_departing(ggl_sched *s, const segment *seg, const departing *d,
                                  const flight *f, ggl_error *err) {
    const int64_t count = !d->batched ? 1 : d->gather || seg->phase == TAIL ? f->n_rows : f->n;
    return fetch_rows(&s->dev[seg->backend], f, d->from, d->gather, count, d->row,
                      staging(s, f) + d->at.offset, err);
}

size_t ggl_sched_n_passed(const ggl_sched *s, const flight *f) {
    return f->n_rows == 0 ? s->n_trunk_segs : f->ends_early ? s->n_early_segs : s->n_segs;
}

/* True if the flight computes the output. */
static bool has_output(const ggl_sched *s, const output *o, const flight *f) {
    return f->n_rows > 0 && (!f->ends_early || o->phase == TRUNK || s->is_early[o->t->id]);
}

static ggl_status fetch_output(ggl_sched *s, const output *o, const flight *f, ggl_error *err) {
    return fetch_rows(&s->dev[o->backend], f, o->from, o->phase == TRUNK, f->n_rows, o->row,
                      (char *)o->host[f->lane], err);
}

ggl_status ggl_sched_fetch(ggl_sched *s, const flight *f, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_outputs(s->g) && st == GGL_OK; i++)
        if (has_output(s, &s->out[i], f))
            st = fetch_output(s, &s->out[i], f, err);
    return st;
}

/* The callback of backends: asks the user's, in one thread at a time. */
static bool is_cancelled(void *ctx) {
    ggl_sched *s = ctx;
    if (!s->has_threads)
        return s->params.cancelled(s->params.cancelled_ctx);
    pthread_mutex_lock(&s->asks);
    const bool is = s->params.cancelled(s->params.cancelled_ctx);
    pthread_mutex_unlock(&s->asks);
    return is;
}

/* Calls the backend's `run` for the flight's segment. */
static ggl_status run_segment(ggl_sched *s, const segment *seg, const flight *f, ggl_error *err) {
    const int64_t n = seg->phase == TRUNK ? f->n : f->n_rows;
    device *d = &s->dev[seg->backend];
    d->b->cancelled = s->params.cancelled ? is_cancelled : NULL;
    d->b->cancelled_ctx = s;
    d->region[GGL_REGION_IO] = d->io[f->lane];
    const ggl_status st = d->b->v->run(d->b, n == 1 || !seg->plan[1] ? seg->plan[0] : seg->plan[1],
                                       d->region, n, err);
    d->b->cancelled = NULL; /* the backend may have other users, whose runs we must not cancel */
    d->b->cancelled_ctx = NULL;
    return st;
}

ggl_status ggl_sched_start_segment(ggl_sched *s, const flight *f, ggl_error *err) {
    const segment *seg = &s->seg[f->next];
    ggl_status st = GGL_OK;
    if (s->params.cancelled && is_cancelled(s))
        return ggl_fail(err, GGL_CANCELLED, "the run was stopped");
    for (size_t i = 0; i < seg->n_moves && st == GGL_OK; i++)
        st = do_move(s, seg, &seg->move[i], f, err);
    return st == GGL_OK ? run_segment(s, seg, f, err) : st;
}

ggl_status ggl_sched_end_segment(ggl_sched *s, const flight *f, ggl_error *err) {
    const size_t n = ggl_sched_n_passed(s, f);
    const segment *seg = &s->seg[f->next];
    device *d = &s->dev[seg->backend];
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < seg->n_departing && st == GGL_OK; i++)
        if (seg->departing[i].reader < n)
            st = fetch_departing(s, seg, &seg->departing[i], f, err);
    if (!s->has_threads || f->ticket == 0)
        return st;
    for (int i = 0; i < ggl_graph_n_outputs(s->g) && st == GGL_OK; i++)
        if (s->out[i].computed_by == f->next && has_output(s, &s->out[i], f))
            st = fetch_output(s, &s->out[i], f, err);
    return st == GGL_OK && seg->again >= n ? d->b->v->wait(d->b, err) : st;
}
