/* The scheduler's life: sizes, memory, runs. */
#include <inttypes.h>
#include <string.h>

#include "sched_impl.h"

ggl_status ggl_sched_new(ggl_sched **out, ggl_graph *g, const ggl_sched_params *p, ggl_error *err) {
    *out = NULL;
    if (!g->finished)
        return ggl_fail(err, GGL_USAGE, "the graph is not finished");
    if (p->n_backends < 1)
        return ggl_fail(err, GGL_USAGE, "no backend");
    ggl_sched *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the schedule");
    s->g = g;
    s->params = *p;
    s->n_batch = ggl_graph_get_params(g)->n_batch;
    s->n_rows = p->n_rows > 0 && p->n_rows < s->n_batch ? p->n_rows : s->n_batch;
    s->dev = ggl_calloc((size_t)p->n_backends, sizeof *s->dev);
    s->n_dev = s->dev ? p->n_backends : 0;
    ggl_status st =
        s->dev ? sched_build(s, err) : ggl_fail(err, GGL_NOMEM, "out of memory for the schedule");
    if (st != GGL_OK) {
        ggl_sched_free(s);
        return st;
    }
    *out = s;
    return GGL_OK;
}

static void device_free(device *d) {
    for (int i = 0; i < d->n_regions; i++)
        if (d->region[i])
            d->b->v->free(d->b, d->region[i]);
    ggl_free(d->region);
    ggl_free(d->loc[TRUNK]);
    ggl_free(d->loc[TAIL]);
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
    ggl_free(s->in_trunk);
    ggl_free(s->input);
    ggl_free(s->input_at);
    ggl_free(s->input_n);
    ggl_free(s->staging);
    os_map_close(&s->cache);
    ggl_free(s);
}

/* --- memory ----------------------------------------------------------------------------------- */

static ggl_status device_alloc(device *d, ggl_error *err) {
    const size_t size[] = {[GGL_REGION_ARENA] = d->arena_size,
                           [GGL_REGION_IO] = d->io_size,
                           [GGL_REGION_STORES] = d->stores_size};
    const char *what[] = {[GGL_REGION_ARENA] = "values",
                          [GGL_REGION_IO] = "inputs and outputs",
                          [GGL_REGION_STORES] = "what sequences keep"};
    for (int i = 0; i < GGL_REGION_REPACKED; i++) { /* that one: sched_repack.c */
        ggl_status st = d->b->v->alloc(d->b, i, size[i], NULL, &d->region[i], err);
        if (st != GGL_OK)
            return ggl_within(err, st, "%.1f MiB for %s on %s", (double)size[i] / 1048576, what[i],
                              d->b->name);
    }
    if (d->copied_region) {
        ggl_status st = d->b->v->alloc(d->b, GGL_REGION_WEIGHT, d->copied_size, NULL,
                                       &d->region[d->copied_region], err);
        if (st != GGL_OK)
            return ggl_within(err, st, "%.1f MiB of weights on %s",
                              (double)d->copied_size / 1048576, d->b->name);
    }
    const node_list *lists[] = {&d->consts, &d->copied};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            const ggl_tensor *t = lists[k]->at[i];
            ggl_loc loc = d->loc[TRUNK][t->id];
            ggl_status st =
                d->b->v->upload(d->b, d->region[loc.region], loc.offset, t->data, t->size, err);
            if (st != GGL_OK)
                return ggl_within(err, st, "upload of %s", t->name ? t->name : "a constant");
        }
    return GGL_OK;
}

ggl_status ggl_sched_alloc(ggl_sched *s, ggl_error *err) {
    if (s->allocated)
        return GGL_OK;
    for (int i = 0; i < s->n_dev; i++) {
        ggl_status st = device_alloc(&s->dev[i], err);
        if (st != GGL_OK)
            return st;
    }
    ggl_status st = sched_repack(s, err);
    if (st != GGL_OK)
        return st;
    s->input = ggl_calloc(s->input_size, 1);
    s->staging = ggl_calloc(s->staging_size, 1);
    bool ok = s->input && s->staging;
    for (int i = 0; i < ggl_graph_n_outputs(s->g) && ok; i++) {
        s->out[i].host = ggl_calloc((size_t)s->n_rows, s->out[i].row);
        ok = s->out[i].host;
    }
    if (!ok)
        return ggl_fail(err, GGL_NOMEM, "out of memory for inputs and outputs");
    s->allocated = true;
    return GGL_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

ggl_status ggl_sched_set(ggl_sched *s, const char *input, const void *data, int64_t n,
                         ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_inputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        if (strcmp(t->name, input) != 0)
            continue;
        int64_t most = ggl_is_batched(t) ? s->n_batch : 1;
        if (n < 1 || n > most || !s->allocated)
            return ggl_fail(err, GGL_USAGE,
                            "input '%s': %" PRId64 " of the batch, 1 to %" PRId64 " are possible",
                            input, n, most);
        memcpy(s->input + s->input_at[i], data, (size_t)n * (size_t)ggl_count(t) * 4);
        s->input_n[i] = n;
        return GGL_OK;
    }
    return ggl_fail(err, GGL_NOT_FOUND, "the graph has no input '%s'", input);
}

typedef struct rows { /* those that outputs are wanted for; at NULL: all */
    const int32_t *at;
    int64_t n;
} rows;

static size_t row_of(const rows *r, int64_t i) {
    return (size_t)(r->at ? r->at[i] : i);
}

/* Rows that follow each other go as one. */
static int64_t run_length(const rows *r, bool gather, int64_t i, int64_t n) {
    int64_t k = 1;
    while (i + k < n && (!gather || row_of(r, i + k) == row_of(r, i) + (size_t)k))
        k++;
    return k;
}

static ggl_status do_move(ggl_sched *s, const segment *seg, const move *m, int64_t n, const rows *r,
                          ggl_error *err) {
    device *to = &s->dev[seg->backend];
    int64_t count = !m->batched ? 1 : m->gather ? r->n : n;
    ggl_status st = GGL_OK;
    for (int64_t i = 0, k; i < count && st == GGL_OK; i += k) {
        k = run_length(r, m->gather, i, count);
        size_t size = (size_t)k * m->row,
               src = m->from + (m->gather ? row_of(r, i) : (size_t)i) * m->row;
        size_t dst = m->to + (size_t)i * m->row;
        ggl_buffer *io = to->region[GGL_REGION_IO];
        if (m->from_backend < 0) {
            st = to->b->v->upload(to->b, io, dst, s->input + src, size, err);
        } else if (m->from_backend == seg->backend) {
            st = to->b->v->copy(to->b, io, dst, io, src, size, err);
        } else {
            device *from = &s->dev[m->from_backend];
            st = from->b->v->download(from->b, from->region[GGL_REGION_IO], src, s->staging, size,
                                      err);
            if (st == GGL_OK)
                st = to->b->v->upload(to->b, io, dst, s->staging, size, err);
        }
    }
    return st;
}

static ggl_status run_segment(ggl_sched *s, segment *seg, int64_t n, const rows *r,
                              ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < seg->n_moves && st == GGL_OK; i++)
        st = do_move(s, seg, &seg->move[i], n, r, err);
    int64_t m = seg->phase == TRUNK ? n : r->n;
    device *d = &s->dev[seg->backend];
    ggl_plan *plan = m == 1 || !seg->plan[1] ? seg->plan[0] : seg->plan[1];
    return st == GGL_OK ? d->b->v->run(d->b, plan, d->region, m, err) : st;
}

static ggl_status fetch_output(ggl_sched *s, output *o, const rows *r, ggl_error *err) {
    device *d = &s->dev[o->backend];
    bool gather = o->phase == TRUNK;
    ggl_status st = GGL_OK;
    for (int64_t i = 0, k; i < r->n && st == GGL_OK; i += k) {
        k = run_length(r, gather, i, r->n);
        st = d->b->v->download(d->b, d->region[GGL_REGION_IO],
                               o->from + (gather ? row_of(r, i) : (size_t)i) * o->row,
                               (char *)o->host + (size_t)i * o->row, (size_t)k * o->row, err);
    }
    return st;
}

static ggl_status check_run(const ggl_sched *s, int64_t n, const rows *r, ggl_error *err) {
    if (!s->allocated)
        return ggl_fail(err, GGL_USAGE, "ggl_sched_alloc has not been called");
    if (n < 1 || n > s->n_batch)
        return ggl_fail(err, GGL_USAGE, "a batch of %" PRId64 "; 1 to %" PRId64 " are possible", n,
                        s->n_batch);
    if (r->n < 0 || r->n > n || r->n > s->n_rows)
        return ggl_fail(err, GGL_USAGE,
                        "%" PRId64 " rows of outputs; at most %" PRId64 " are possible", r->n,
                        n < s->n_rows ? n : s->n_rows);
    for (int64_t i = 0; r->at && i < r->n; i++)
        if (r->at[i] < 0 || r->at[i] >= n || (i && r->at[i] <= r->at[i - 1]))
            return ggl_fail(err, GGL_USAGE,
                            "row %" PRId32 " of outputs: ascending ones below %" PRId64
                            " are possible",
                            r->at[i], n);
    for (int i = 0; i < ggl_graph_n_inputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        if (t->needed && s->input_n[i] < (ggl_is_batched(t) ? n : 1))
            return ggl_fail(err, GGL_USAGE,
                            "input '%s' is set for %" PRId64 " of a batch of %" PRId64, t->name,
                            s->input_n[i], n);
    }
    return GGL_OK;
}

ggl_status ggl_sched_run(ggl_sched *s, int64_t n, const int32_t *row, int64_t n_rows,
                         ggl_error *err) {
    rows r = {row, row ? n_rows : n};
    ggl_status st = check_run(s, n, &r, err);
    for (size_t i = 0; i < s->n_segs && st == GGL_OK; i++)
        if (s->seg[i].phase == TRUNK || r.n > 0)
            st = run_segment(s, &s->seg[i], n, &r, err);
    for (int i = 0; i < ggl_graph_n_outputs(s->g) && st == GGL_OK; i++)
        st = fetch_output(s, &s->out[i], &r, err);
    for (int i = 0; i < s->n_dev && st == GGL_OK && r.n == 0; i++)
        st = s->dev[i].b->v->wait(s->dev[i].b, err);
    return st;
}

const float *ggl_sched_output(const ggl_sched *s, int k) {
    return k >= 0 && k < ggl_graph_n_outputs(s->g) ? s->out[k].host : NULL;
}
