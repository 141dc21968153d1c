/* Passes a batch through a segment: brings in what the segment needs, runs it, and fetches what other
 * devices and the user need of it. Only the segment's own backend is called. */
#include "sched_impl.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/os_clock.h"

/* Returns the element of the batch that is requested row i. */
static size_t row_of(const flight *f, int64_t i) {
    return (size_t)f->row[i];
}

/* Rows to copy: row i of n goes to `to` + i * size. It comes from `from` + i * size, or, with picks, from
 * the element of the batch that is requested row i. */
typedef struct rows {
    size_t to, from, size;
    int64_t n;
    bool picks;
} rows;

/* Sets *range to the next bytes that one copy moves, of row *i and those after it that are adjacent in
 * the source, and *i to the row after these. False if none. */
static bool next_range(const flight *f, const rows *r, int64_t *i, ggl_copy_range *range) {
    const int64_t first = *i;
    if (first >= r->n || r->size == 0)
        return false;
    int64_t k = r->picks ? 1 : r->n - first;
    while (r->picks && first + k < r->n && row_of(f, first + k) == row_of(f, first) + (size_t)k)
        k++;
    *i = first + k;
    *range = (ggl_copy_range){r->to + (size_t)first * r->size,
                              r->from + (r->picks ? row_of(f, first) : (size_t)first) * r->size,
                              (size_t)k * r->size};
    return true;
}

/* Copy rows: between buffers of a device, from host memory to its io region, and from there to host
 * memory. */
static ggl_status copy_rows(device *d, ggl_buffer *to, const ggl_buffer *from, const rows *r,
                            const flight *f, ggl_error *err) {
    enum { MOST = 64 };
    ggl_copy_range range[MOST];
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < r->n && st == GGL_OK;) {
        size_t n = 0;
        while (n < MOST && next_range(f, r, &i, &range[n]))
            n++;
        if (n == 0)
            break;
        st = d->b->v->copy(d->b, to, from, range, n, err);
    }
    return st;
}

static ggl_status upload_rows(device *d, const char *from, const rows *r, const flight *f,
                              ggl_error *err) {
    ggl_copy_range x;
    ggl_status st = GGL_OK;
    for (int64_t i = 0; st == GGL_OK && next_range(f, r, &i, &x);)
        st = d->b->v->upload(d->b, d->io.at[f->lane], x.to, from + x.from, x.size, err);
    return st;
}

static ggl_status download_rows(device *d, char *to, const rows *r, const flight *f,
                                ggl_error *err) {
    ggl_copy_range x;
    ggl_status st = GGL_OK;
    for (int64_t i = 0; st == GGL_OK && next_range(f, r, &i, &x);)
        st = d->b->v->download(d->b, d->io.at[f->lane], x.from, to + x.to, x.size, err);
    return st;
}

/* --- what comes in ---------------------------------------------------------------------------- */

/* Brings the segment's device what it does not have yet of an input that is not batched: nothing else
 * is written where that lies. */
static ggl_status upload_stale(ggl_sched *s, const segment *seg, move *m, int lane,
                               ggl_error *err) {
    device *to = &s->plan.dev[seg->backend];
    byte_range *r = &m->stale[lane];
    if (r->from == r->to)
        return GGL_OK;
    const char *from = ggl_inputs_of_lane(&s->inputs, &s->plan, lane) + m->from;
    ggl_status st = to->b->v->upload(to->b, to->io.at[lane], m->to + r->from, from + r->from,
                                     r->to - r->from, err);
    if (st == GGL_OK)
        *r = (byte_range){0};
    return st;
}

/* Makes the copy m for the flight: from host memory, or within the device. */
static ggl_status do_move(ggl_sched *s, const segment *seg, move *m, const flight *f,
                          ggl_error *err) {
    device *d = &s->plan.dev[seg->backend];
    ggl_buffer *io = d->io.at[f->lane];
    rows r = {.to = m->to,
              .from = m->from,
              .size = m->row,
              .n = !m->batched           ? 1
                   : seg->phase == TRUNK ? f->n
                                         : f->n_rows,
              .picks = m->picks};
    if (m->from_backend < 0)
        return m->batched
                   ? upload_rows(d, ggl_inputs_of_lane(&s->inputs, &s->plan, f->lane), &r, f, err)
                   : upload_stale(s, seg, m, f->lane, err);
    if (m->from_backend == seg->backend)
        return copy_rows(d, io, io, &r, f, err);
    const ggl_buffer *peer = d->io.peer[m->from_backend][f->lane];
    if (peer) { /* all rows are there */
        r.from = m->at;
        r.picks = m->gather;
        return copy_rows(d, io, peer, &r, f, err);
    }
    if (d->io.in_place[f->lane] && m->image == seg->backend)
        return GGL_OK;
    return d->io.host[f->lane] ? copy_rows(d, io, d->io.host[f->lane], &r, f, err)
                               : upload_rows(d, s->host.at[f->lane], &r, f, err);
}

/* True if the flight computes the output. */
static bool has_output(const ggl_sched *s, const output *o, const flight *f) {
    return o->is_whole ? f->ticket != 0
                       : f->n_rows > 0 &&
                             (!f->ends_early || o->phase == TRUNK || s->plan.is_early[o->t->id]);
}

/* --- what goes out ---------------------------------------------------------------------------- */

/* Brings rows from the io region to the lane's host memory, in two parts: `starts` what the device
 * itself copies, otherwise what is downloaded. */
static ggl_status bring_out(ggl_sched *s, device *d, const rows *r, const flight *f, bool starts,
                            ggl_error *err) {
    ggl_buffer *host = d->io.host[f->lane];
    if ((d->io.in_place[f->lane] && !r->picks && r->to == d->io.image + r->from) ||
        starts != (host != NULL))
        return GGL_OK;
    return host ? copy_rows(d, host, d->io.at[f->lane], r, f, err)
                : download_rows(d, s->host.at[f->lane], r, f, err);
}

/* True if the flight, which passes n segments, needs what departs. */
static bool departs(const departing *out, size_t n) {
    return out->reader < n;
}

/* True if the segment computes an output that the flight needs. */
static bool puts_out(const ggl_sched *s, const output *o, const flight *f) {
    return o->computed_by == f->next && has_output(s, o, f);
}

/* Brings out, in two parts, what others need of the segment. */
static ggl_status bring_out_all(ggl_sched *s, const flight *f, bool starts, ggl_error *err) {
    const size_t n = ggl_sched_n_passed(&s->plan, f);
    const segment *seg = &s->plan.seg[f->next];
    device *d = &s->plan.dev[seg->backend];
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < seg->n_departing && st == GGL_OK; i++) {
        const departing *out = &seg->departing[i];
        const bool few = out->gather || seg->phase == TAIL;
        const rows r = {out->to, out->from, out->row,
                        !out->batched ? 1
                        : few         ? f->n_rows
                                      : f->n,
                        out->gather};
        if (departs(out, n) && out->is_copied)
            st = bring_out(s, d, &r, f, starts, err);
    }
    for (int i = 0; i < ggl_graph_n_outputs(s->plan.g) && st == GGL_OK; i++) {
        const output *o = &s->plan.out[i];
        const bool batched = ggl_is_batched(o->t);
        const rows r = {o->to, o->from, o->row,
                        !batched      ? 1
                        : o->is_whole ? f->n
                                      : f->n_rows,
                        o->phase == TRUNK && !o->is_whole && batched};
        if (puts_out(s, o, f))
            st = bring_out(s, d, &r, f, starts, err);
    }
    return st;
}

/* True if the device itself copies values of others from where they are, for the segment or for those
 * directly before it. */
static bool reads_others(const ggl_sched *s, const flight *f) {
    const int k = s->plan.seg[f->next].backend;
    const device *d = &s->plan.dev[k];
    for (size_t i = f->next + 1; i-- > 0 && s->plan.seg[i].backend == k;)
        for (size_t j = 0; j < s->plan.seg[i].n_moves; j++) {
            const int from = s->plan.seg[i].move[j].from_backend;
            if (from >= 0 && from != k && (d->io.host[f->lane] || d->io.peer[from][f->lane]))
                return true;
        }
    return false;
}

/* True if the flight may pass on only when the device has done the segment: because others read what it
 * computes; because another one, or the next batch, writes to the memory that it reads; or because
 * it is the device's last segment of a batch that is collected. */
static bool is_awaited(const ggl_sched *s, const flight *f) {
    const size_t n = ggl_sched_n_passed(&s->plan, f);
    const segment *seg = &s->plan.seg[f->next];
    bool is = (s->flights.has_threads && f->ticket != 0 && seg->again >= n) ||
              ((seg->again > f->next + 1 || seg->again >= n) && reads_others(s, f));
    for (size_t i = 0; i < seg->n_departing && !is; i++)
        is = departs(&seg->departing[i], n);
    for (int i = 0; i < ggl_graph_n_outputs(s->plan.g) && !is; i++)
        is = puts_out(s, &s->plan.out[i], f);
    return is;
}

/* --- segments --------------------------------------------------------------------------------- */

/* The backends' callback. Calls the user's callback from one thread at a time. */
static bool is_cancelled(void *ctx) {
    ggl_sched *s = ctx;
    if (!s->flights.has_threads)
        return s->plan.params.cancelled(s->plan.params.cancelled_ctx);
    ggl_os_mutex_lock(&s->flights.cancel_lock);
    const bool is = s->plan.params.cancelled(s->plan.params.cancelled_ctx);
    ggl_os_mutex_unlock(&s->flights.cancel_lock);
    return is;
}

/* Calls the backend's `run` for the flight's segment. */
static ggl_status run_segment(ggl_sched *s, const segment *seg, const flight *f, ggl_error *err) {
    const int64_t n = seg->phase == TRUNK ? f->n : f->n_rows;
    device *d = &s->plan.dev[seg->backend];
    const bool is_late = d->repack.left > 0;
    bool (*const stops)(void *ctx) = s->plan.params.cancelled ? is_cancelled : NULL;
    ggl_status st = is_late ? ggl_sched_repack_before(&s->plan, d, f, stops, s, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    const double since = is_late ? ggl_os_seconds() : 0;
    d->b->cancelled = stops;
    d->b->cancelled_ctx = s;
    ggl_stream_lend(&s->stream, d->b, seg->backend, true);
    d->region[GGL_REGION_IO] = d->io.at[f->lane];
    st = d->b->v->run(d->b, n == 1 || !seg->plan[1] ? seg->plan[0] : seg->plan[1], d->region, n,
                      err);
    d->b->cancelled = NULL; /* the backend may have other users, whose runs we must not cancel */
    d->b->cancelled_ctx = NULL;
    ggl_stream_lend(&s->stream, d->b, seg->backend, false);
    if (is_late && d->repack.batch == f->number)
        d->repack.run += ggl_os_seconds() - since;
    return st;
}

ggl_status ggl_sched_start_segment(ggl_sched *s, flight *f, ggl_error *err) {
    const segment *seg = &s->plan.seg[f->next];
    ggl_backend *b = s->plan.dev[seg->backend].b;
    ggl_status st = GGL_OK;
    if (s->plan.params.cancelled && is_cancelled(s))
        return ggl_fail(err, GGL_CANCELLED, "the run was stopped");
    for (size_t i = 0; i < seg->n_moves && st == GGL_OK; i++)
        st = do_move(s, seg, &seg->move[i], f, err);
    if (st == GGL_OK)
        st = run_segment(s, seg, f, err);
    if (st == GGL_OK)
        st = bring_out_all(s, f, true, err);
    f->mark = 0;
    return st == GGL_OK && b->v->mark && is_awaited(s, f) ? b->v->mark(b, &f->mark, err) : st;
}

ggl_status ggl_sched_poll_segment(ggl_sched *s, const flight *f, bool *done, ggl_error *err) {
    ggl_backend *b = s->plan.dev[s->plan.seg[f->next].backend].b;
    *done = true;
    return b->v->poll && is_awaited(s, f) ? b->v->poll(b, f->mark, done, err) : GGL_OK;
}

ggl_status ggl_sched_end_segment(ggl_sched *s, const flight *f, ggl_error *err) {
    ggl_backend *b = s->plan.dev[s->plan.seg[f->next].backend].b;
    ggl_status st = GGL_OK;
    if (b->async && is_awaited(s, f))
        st = b->v->mark ? b->v->wait_for(b, f->mark, err) : b->v->wait(b, err);
    if (st == GGL_OK)
        st = bring_out_all(s, f, false, err);
    return st == GGL_OK ? ggl_watching_show(&s->watching, &s->plan, &s->host, &s->plan.seg[f->next],
                                            f->lane, f->n, err)
                        : st;
}
