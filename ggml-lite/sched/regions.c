/* Gives weights, constants and stores places in the regions of devices. */
#include <inttypes.h>

#include "ggl/internal/graph.h"
#include "schedule.h"

const char ggl_sched_hint_smaller[] = "fewer positions (a smaller context) or slots need less";

int ggl_sched_range_of(const ggl_host_range *range, int n, const ggl_tensor *t) {
    const char *p = t->data;
    int i = 0;
    for (; i < n; i++) {
        const char *base = range[i].data;
        if (p >= base && p < base + range[i].size && t->size <= (size_t)(base + range[i].size - p))
            break;
    }
    return i;
}

ggl_host_range ggl_sched_host_range(const schedule *s, const ggl_tensor *t, int *index) {
    *index = ggl_sched_range_of(s->params.host, s->params.n_host, t);
    return *index < s->params.n_host ? s->params.host[*index]
                                     : (ggl_host_range){t->data, t->size, false};
}

bool ggl_sched_add_region(device *d, ggl_buffer *b) {
    size_t cap = (size_t)d->n_regions;
    if (!ggl_grow(&d->region, &cap, (size_t)d->n_regions + 1, sizeof *d->region))
        return false;
    d->region[d->n_regions++] = b;
    return true;
}

bool ggl_sched_place_in(device *d, pieces *p, int first, size_t size, ggl_loc *loc) {
    const size_t most = d->b->max_buffer;
    size_t end;
    struct piece *last = p->n > 0 ? &p->at[p->n - 1] : NULL;
    if (!last || !ggl_size_add(last->size, size, &end) || (most && end > most)) {
        const bool is_new = last || first < 0;
        if (!ggl_grow(&p->at, &p->cap, p->n + 1, sizeof *p->at) ||
            (is_new && !ggl_sched_add_region(d, NULL)))
            return false;
        last = &p->at[p->n++];
        *last = (struct piece){is_new ? d->n_regions - 1 : first, 0};
        end = size;
    }
    *loc = (ggl_loc){.region = last->region, .offset = last->size};
    last->size = end;
    return true;
}

/* Sets *loc to a place for an uploaded copy of the weight or constant t. Adds its size, rounded up to
 * a multiple of 64, to *total. */
static ggl_status place_copy(device *d, const ggl_tensor *t, ggl_loc *loc, size_t *total,
                             ggl_error *err) {
    size_t most = d->b->max_buffer, size = t->size;
    if (!ggl_size_align(size, 64, &size) || (most && size > most))
        return ggl_fail(err, GGL_LIMIT,
                        "%s has %.1f MiB; %s supports at most %.1f MiB in one buffer",
                        t->name ? t->name : "a constant", (double)t->size / 1048576, d->b->name,
                        (double)most / 1048576);
    return ggl_size_add(*total, size, total) &&
                   ggl_sched_place_in(d, &d->weights.copies, -1, size, loc)
               ? GGL_OK
               : ggl_sched_no_memory(err);
}

/* Beside the uploaded weights; both phases share it. */
ggl_status ggl_sched_place_const(device *d, ggl_tensor *t, ggl_error *err) {
    ggl_loc *loc = &d->loc[TRUNK][t->id];
    if (loc->region >= 0)
        return GGL_OK;
    ggl_status st = place_copy(d, t, loc, &d->weights.consts_size, err);
    if (st == GGL_OK && !ggl_node_list_push(&d->weights.consts, t))
        st = ggl_sched_no_memory(err);
    d->loc[TAIL][t->id] = *loc;
    return st;
}

/* Returns the part of host memory to import for the weight t: the whole range that holds it, or, if
 * that exceeds the device's max_buffer, max_buffer bytes from the start of the weight's page. */
static ggl_host_range piece_around(const schedule *s, const device *d, const ggl_tensor *t) {
    int i;
    ggl_host_range r = ggl_sched_host_range(s, t, &i);
    size_t most = d->b->max_buffer;
    if (most == 0 || r.size <= most)
        return r;
    size_t skip = (size_t)((const char *)t->data - (const char *)r.data);
    skip -= skip % HOST_PAGE;
    r.data = (const char *)r.data + skip;
    r.size = r.size - skip < most ? r.size - skip : most;
    return r;
}

/* Sets *out to the import that holds the weight t. If there is none yet, asks the device to use the
 * memory around t in place, and records the answer. */
static ggl_status import_of(schedule *s, device *d, const ggl_tensor *t, const import **out,
                            ggl_error *err) {
    const char *p = t->data;
    for (size_t i = 0; i < d->weights.n_imports; i++) {
        *out = &d->weights.imports[i];
        if (p >= (*out)->data && p < (*out)->data + (*out)->size &&
            t->size <= (size_t)((*out)->data + (*out)->size - p))
            return GGL_OK;
    }
    ggl_buffer *b = NULL;
    ggl_host_range r = piece_around(s, d, t);
    bool whole = (size_t)((const char *)r.data + r.size - p) >= t->size;
    ggl_status st =
        !whole ? GGL_UNSUPPORTED : d->b->v->alloc(d->b, GGL_REGION_WEIGHT, r.size, r.data, &b, err);
    if (st != GGL_OK && st != GGL_UNSUPPORTED)
        return st;
    if (!ggl_grow(&d->weights.imports, &d->weights.cap_imports, d->weights.n_imports + 1,
                  sizeof *d->weights.imports) ||
        (b && !ggl_sched_add_region(d, b))) {
        if (b)
            d->b->v->free(d->b, b);
        return ggl_sched_no_memory(err);
    }
    import *m = &d->weights.imports[d->weights.n_imports++];
    *m = (import){whole ? r.data : p, whole ? r.size : t->size, b ? d->n_regions - 1 : -1};
    *out = m;
    return GGL_OK;
}

/* In imported host memory, or else in a buffer to which it is uploaded. If only the repacked copy of a
 * weight is read, it needs neither. */
ggl_status ggl_sched_place_weight(schedule *s, device *d, ggl_tensor *t, ggl_error *err) {
    ggl_loc *loc = &d->loc[TRUNK][t->id];
    if (loc->region >= 0)
        return GGL_OK;
    const import *m = NULL;
    ggl_status st = import_of(s, d, t, &m, err);
    if (st != GGL_OK)
        return st;
    if (t->variable && (m->region < 0 || d->b->async))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "variable '%s' is in host memory, which %s does not use in place: run the "
                        "graph on the CPU",
                        t->name, d->b->name);
    bool read = d->repack.loc[t->id].region < 0 || d->repack.read_otherwise[t->id];
    if (m->region >= 0) {
        *loc = (ggl_loc){.region = m->region, .offset = (size_t)((const char *)t->data - m->data)};
        d->weights.mapped_size += read ? t->size : 0;
    } else if (!read) {
        return GGL_OK; /* only its repacked copy is read */
    } else {
        st = place_copy(d, t, loc, &d->weights.copied_size, err);
        if (st == GGL_OK && !ggl_node_list_push(&d->weights.copied, t))
            st = ggl_sched_no_memory(err);
        if (st != GGL_OK)
            return st;
    }
    d->loc[TAIL][t->id] = *loc;
    return GGL_OK;
}
