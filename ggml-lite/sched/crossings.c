/* Places the values that cross segments in the devices' io regions. The segments of a run follow
 * each other, so values that are not needed at the same time share memory. */
#include <inttypes.h>
#include <stdlib.h>

#include "ggl/internal/graph.h"
#include "plan/offsets.h"
#include "schedule.h"

ggl_status ggl_sched_too_large(const ggl_tensor *t, int64_t n, ggl_error *err) {
    return ggl_fail(err, GGL_LIMIT, "%s: a batch of %" PRId64 " does not fit into memory",
                    t->name ? t->name : "a value", n);
}

void ggl_sched_use_value(device *d, int phase, const ggl_tensor *t, size_t i) {
    lifetime *life = &d->life[phase][t->id];
    if (!life->t)
        *life = (lifetime){.t = t, .first = i, .last = i};
    life->first = i < life->first ? i : life->first;
    life->last = i > life->last ? i : life->last;
    d->loc[phase][t->id].region = GGL_REGION_IO;
}

/* A value of a device that needs memory. */
typedef struct span {
    ggl_loc *loc;
    const lifetime *life;
    size_t size;
} span;

/* For qsort: orders spans by first segment, and those of one segment by id. */
static int by_first(const void *a, const void *b) {
    const lifetime *x = ((const span *)a)->life, *y = ((const span *)b)->life;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->t->id > y->t->id) - (x->t->id < y->t->id);
}

/* For qsort: orders pointers to spans by last segment, and those of one segment by id. */
static int by_last(const void *a, const void *b) {
    const lifetime *x = (*(span *const *)a)->life, *y = (*(span *const *)b)->life;
    return x->last != y->last ? (x->last > y->last) - (x->last < y->last)
                              : (x->t->id > y->t->id) - (x->t->id < y->t->id);
}

/* Counts the device's values, and writes them to span[] unless that is NULL. GGL_LIMIT: one is too
 * large. */
static ggl_status list_values(const schedule *s, device *d, span *out, size_t *n, ggl_error *err) {
    *n = 0;
    for (int phase = 0; phase < N_PHASES; phase++)
        for (int id = 0; id < ggl_graph_n_ids(s->g); id++) {
            const lifetime *life = &d->life[phase][id];
            const int64_t batch = phase == TRUNK ? s->n_batch : s->n_rows;
            size_t size = 0;
            if (!life->t)
                continue;
            if (out && !ggl_value_bytes(life->t, batch, &size))
                return ggl_sched_too_large(life->t, batch, err);
            if (out)
                out[*n] = (span){&d->loc[phase][id], life, size};
            ++*n;
        }
    return GGL_OK;
}

/* slack: segments after the last one that uses a value in which that may still be going on. Gives the n spans offsets, in the order of their first segments. A span's memory is free again
 * for values whose first segment comes after its last. */
static bool place_spans(span *at, span **end, size_t n, size_t slack, offsets *o) {
    size_t done = 0; /* of end[] */
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        end[i] = &at[i];
    if (n > 1) {
        qsort(at, n, sizeof *at, by_first);
        qsort(end, n, sizeof *end, by_last);
    }
    for (size_t i = 0; i < n && ok; i++) {
        for (; ok && end[done]->life->last + slack < at[i].life->first; done++)
            ok = ggl_offsets_give(o, end[done]->loc->offset, end[done]->size);
        ok = ok && ggl_offsets_take(o, at[i].size, &at[i].loc->offset);
    }
    return ok;
}

/* Places the values of one device. */
static ggl_status place_on(schedule *s, device *d, ggl_error *err) {
    size_t n = 0;
    offsets o = {0};
    ggl_status st = list_values(s, d, NULL, &n, err);
    span *at = ggl_calloc(n, sizeof *at), **end = ggl_calloc(n, sizeof(span *));
    if (st == GGL_OK && (!at || !end))
        st = ggl_sched_no_memory(err);
    if (st == GGL_OK)
        st = list_values(s, d, at, &n, err);
    if (st == GGL_OK && !place_spans(at, end, n, s->params.side_by_side ? (size_t)s->n_dev : 0, &o))
        st = ggl_fail(err, GGL_LIMIT, "the values that cross segments of %s do not fit into memory",
                      d->b->name);
    d->io.size = o.end;
    ggl_offsets_fini(&o);
    ggl_free(at);
    ggl_free(end);
    return st;
}

/* Places the device's image in the lane's host memory. */
static bool place_image(schedule *s, device *d) {
    d->io.image = s->host_size;
    return ggl_size_add(s->host_size, d->io.size, &s->host_size) &&
           ggl_size_align(s->host_size, HOST_PAGE, &s->host_size);
}

ggl_status ggl_sched_place_values(schedule *s, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n_dev && st == GGL_OK; i++) {
        device *d = &s->dev[i];
        st = place_on(s, d, err);
        if (st == GGL_OK && !place_image(s, d))
            st = ggl_fail(err, GGL_LIMIT, "the values that cross backends do not fit into memory");
        for (int id = 0; id < ggl_graph_n_ids(s->g); id++)
            if (d->life[TRUNK][id].t && d->life[TRUNK][id].in_tail)
                d->loc[TAIL][id] = d->loc[TRUNK][id];
    }
    return st;
}
