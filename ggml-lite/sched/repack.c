/* Repacks weights into the backend's own layout: decides which, places the copies, and makes them.
 *
 * A weight is repacked if a product reads it, as a whole or through a gather of its matrices, and
 * the backend has a layout for it. Other readers, such as a lookup of embedding rows or a view of a
 * part of the weight, read the original. */
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "repack.h"
#include "shared_copies.h"

/* --- which nodes read a weight ---------------------------------------------------------------- */

typedef struct readers {
    schedule *s;
    ggl_tensor **weight; /* by id: the weight that a body's param stands for; NULL: none */
    bool *by_product;    /* by id: a product on the current device reads the weight */
    bool no_memory;
} readers;

/* Returns the weight that t is, or stands for as a param; else NULL. */
static ggl_tensor *weight_of(const readers *r, ggl_tensor *t) {
    return !t ? NULL : t->op == GGL_OP_WEIGHT ? t : t->op == GGL_OP_PARAM ? r->weight[t->id] : NULL;
}

/* Records that a product, or another node, on the device reads the weight w. The first product adds
 * w to d->repack.list if the backend has a layout for it. */
static void read_by(readers *r, device *d, ggl_tensor *w, bool product) {
    if (!product || w->variable) { /* a copy would keep what the variable was */
        d->repack.read_otherwise[w->id] = true;
    } else if (!r->by_product[w->id]) {
        r->by_product[w->id] = true;
        if (d->b->v->repack_size(d->b, w) == 0)
            return;
        if (ggl_grow(&d->repack.list.at, &d->repack.list.cap, d->repack.list.n + 1,
                     sizeof *d->repack.list.at))
            d->repack.list.at[d->repack.list.n++] = w;
        else
            r->no_memory = true;
    }
}

/* Records which weights the n nodes and their bodies read on the device. `known`: the nodes are in
 * the body of a composite that the backend runs by name, so its kernel reads the originals. */
static void find_readers(readers *r, device *d, ggl_tensor *const *node, size_t n, bool known) {
    for (size_t i = 0; i < n; i++) {
        const ggl_tensor *t = node[i];
        bool runs = t->body && (!t->call || d->b->v->refuses(d->b, t));
        if (!t->computed && !(t->needed && t->view_of))
            continue;
        for (int k = 0; k < ggl_n_reads(t); k++) {
            ggl_tensor *w = weight_of(r, ggl_read(t, k));
            bool product = t->op == GGL_OP_LINEAR && k == 1;
            if (runs && k < t->body->n_param)
                r->weight[t->body->param[k]->id] = w;
            else if (w)
                read_by(r, d, w, product && !known);
        }
        if (t->body) {
            ggl_tensor *w = weight_of(r, t->body->result);
            if (w)
                read_by(r, d, w, false);
            find_readers(r, d, t->body->node, (size_t)t->body->n_node, known || !runs);
        }
    }
}

/* --- places ----------------------------------------------------------------------------------- */

/* Orders weights by the address of their data (for qsort). */
static int by_address(const void *a, const void *b) {
    const ggl_tensor *const *x = a, *const *y = b;
    uintptr_t p = (uintptr_t)(*x)->data, q = (uintptr_t)(*y)->data;
    return p < q ? -1 : p > q ? 1 : (*x)->id - (*y)->id;
}

/* Gives the copy of t a place of its own. */
static ggl_status place_one(device *d, const ggl_tensor *t, size_t size, ggl_error *err) {
    if (!ggl_size_add(d->repack.size, size, &d->repack.size))
        return ggl_fail(err, GGL_LIMIT, "%s: repacked weights do not fit into memory", t->name);
    return ggl_sched_place_in(d, &d->repack.pieces, GGL_REGION_REPACKED, size,
                              &d->repack.loc[t->id])
               ? GGL_OK
               : ggl_sched_no_memory(err);
}

/* Assigns places to the repacked copies, in order of the originals' addresses, so that the model's
 * file is read from start to end. They fill one buffer after another, if no other scheduler has them. A weight whose copy is larger
 * than the device's largest buffer is used as it is. */
static ggl_status place(const schedule *s, device *d, ggl_error *err) {
    const size_t n = d->repack.list.n, most = d->b->max_buffer ? d->b->max_buffer : SIZE_MAX;
    if (n > 0)
        qsort(d->repack.list.at, n, sizeof *d->repack.list.at, by_address);
    d->repack.list.n = 0;
    for (size_t i = 0; i < n; i++) {
        ggl_tensor *t = d->repack.list.at[i];
        const size_t size = d->b->v->repack_size(d->b, t);
        bool is_made = false;
        if (size > most)
            continue;
        ggl_status st = ggl_shared_copy_find(s, d, t, size, &d->repack.shared[t->id],
                                             &d->repack.loc[t->id], &is_made, err);
        if (st == GGL_OK && !d->repack.shared[t->id])
            st = place_one(d, t, size, err);
        if (st != GGL_OK)
            return st;
        if (is_made)
            continue;
        d->repack.list.at[d->repack.list.n++] = t;
        d->repack.waits[t->id] = true;
        d->repack.dropped_size += d->repack.read_otherwise[t->id] ? 0 : t->size;
    }
    return GGL_OK;
}

/* Finds and places the weights that device k repacks. */
static ggl_status place_on(readers *r, int k, ggl_error *err) {
    schedule *s = r->s;
    size_t n_ids = (size_t)ggl_graph_n_ids(s->g);
    memset(r->by_product, 0, n_ids * sizeof *r->by_product);
    for (size_t i = 0; i < s->n_segs; i++)
        if (s->seg[i].backend == k)
            find_readers(r, &s->dev[k], s->seg[i].nodes.at, s->seg[i].nodes.n, false);
    s->dev[k].repack.is_late =
        s->params.repack_late && !s->params.cache && s->dev[k].b->v->repack_rows;
    return r->no_memory ? ggl_sched_no_memory(err) : place(s, &s->dev[k], err);
}

ggl_status ggl_sched_repack_place(schedule *s, ggl_error *err) {
    size_t n_ids = (size_t)ggl_graph_n_ids(s->g);
    if (s->params.no_repack)
        return GGL_OK;
    readers r = {.s = s};
    r.weight = ggl_calloc(n_ids, sizeof *r.weight);
    r.by_product = ggl_calloc(n_ids, sizeof *r.by_product);
    ggl_status st = r.weight && r.by_product ? GGL_OK : ggl_sched_no_memory(err);
    for (int k = 0; k < s->n_dev && st == GGL_OK; k++)
        if (s->dev[k].b->v->repack_size)
            st = place_on(&r, k, err);
    ggl_free(r.weight);
    ggl_free(r.by_product);
    return st;
}

/* --- repacking -------------------------------------------------------------------------------- */

bool ggl_sched_still_read(const schedule *s, const ggl_tensor *t, const device *asks) {
    for (int i = 0; i < s->n_dev; i++) {
        const device *d = &s->dev[i];
        /* what another one repacks late, its thread may be repacking now */
        const bool may_wait = d->repack.is_late && d != asks;
        if (d->repack.loc[t->id].region >= 0
                ? d->repack.read_otherwise[t->id] || may_wait || d->repack.waits[t->id]
                : d->loc[TRUNK][t->id].region >= 0)
            return true;
    }
    return false;
}

bool ggl_sched_repacks_late(const device *d, const ggl_tensor *t) {
    return d->repack.is_late && d->loc[TRUNK][t->id].region >= 0 &&
           d->b->v->repack_rows(d->b, t) > 0;
}

void ggl_sched_repacked(const schedule *s, device *d, const ggl_tensor *t) {
    int range;
    d->repack.waits[t->id] = false;
    if (ggl_sched_host_range(s, t, &range).mapped && !ggl_sched_still_read(s, t, d))
        ggl_os_map_drop(t->data, t->size);
}

/* Repacks a weight, unless that is done late. */
static ggl_status repack_one(schedule *s, device *d, const ggl_tensor *t, loading *l,
                             ggl_error *err) {
    const ggl_loc to = d->repack.loc[t->id];
    shared_copy *c = d->repack.shared[t->id];
    const int64_t n_rows = ggl_sched_rows_of(t);
    if (ggl_sched_repacks_late(d, t))
        return GGL_OK;
    ggl_shared_copy_lock(c);
    const bool is_made = c && c->n_rows == n_rows;
    const ggl_status st =
        is_made ? GGL_OK : d->b->v->repack(d->b, d->region[to.region], to.offset, t, err);
    if (c && st == GGL_OK)
        c->n_rows = n_rows;
    ggl_shared_copy_unlock(c);
    if (st != GGL_OK)
        return ggl_within(err, st, "repacking %s", t->name);
    ggl_sched_repacked(s, d, t);
    return ggl_loading_add(l, s, t->size, err);
}

static const node_list *repacked_of(const device *d) {
    return &d->repack.list;
}

/* All copies of the device are there: they are those of a file. */
static void none_waits(device *d) {
    for (size_t i = 0; i < d->repack.list.n; i++)
        d->repack.waits[d->repack.list.at[i]->id] = false;
}

/* Allocates a region of `size` bytes of repacked weights. If host is not NULL, uses these bytes in
 * place, or uploads them where the device cannot. */
static ggl_status take_region(device *d, size_t size, const char *host, ggl_buffer **to,
                              ggl_error *err) {
    ggl_status st = GGL_UNSUPPORTED;
    if (host)
        st = d->b->v->alloc(d->b, GGL_REGION_REPACKED, size, host, to, err);
    if (st == GGL_UNSUPPORTED) {
        st = d->b->v->alloc(d->b, GGL_REGION_REPACKED, size, NULL, to, err);
        if (st == GGL_OK && host)
            st = d->b->v->upload(d->b, *to, 0, host, size, err);
    }
    return st;
}

/* Allocates the device's regions of repacked weights. If a file is mapped, their contents begin at its
 * offset `at`. */
static ggl_status take_regions(const schedule *s, const repack_file *f, device *d, size_t at,
                               ggl_error *err) {
    const char *file = f->map.data;
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < d->repack.pieces.n && st == GGL_OK; i++) {
        const struct piece *p = &d->repack.pieces.at[i];
        const char *host = file ? file + at + ggl_repack_file_offset(d, i) : NULL;
        st = ggl_shared_block_new(s, d, p, err);
        if (st == GGL_UNSUPPORTED)
            st = take_region(d, p->size, host, &d->region[p->region], err);
    }
    if (st != GGL_OK)
        return ggl_within(err, st,
                          "%.1f MiB of repacked weights on %s (no_repack, or --no-repack, uses "
                          "them without repacking)",
                          (double)d->repack.size / 1048576, d->b->name);
    return GGL_OK;
}

static bool repacks_any(const schedule *s) {
    bool any = false;
    for (int k = 0; k < s->n_dev; k++)
        any = any || s->dev[k].repack.list.n > 0;
    return any;
}

void ggl_sched_repack_open(schedule *s, repack_file *file) {
    if (!repacks_any(s))
        *file = (repack_file){.use = GGL_CACHE_NONE}; /* there is nothing to keep */
    else if (s->params.cache)
        ggl_repack_file_open(file, s);
    for (int k = 0; k < s->n_dev && file->use == GGL_CACHE_READ; k++)
        none_waits(&s->dev[k]);
}

ggl_status ggl_sched_repack(schedule *s, repack_file *file, loading *l, ggl_error *err) {
    size_t *at = ggl_calloc((size_t)s->n_dev, sizeof *at);
    if (!at)
        return ggl_sched_no_memory(err);
    if (s->params.cache)
        ggl_repack_file_size(s, at);
    ggl_status st = GGL_OK;
    for (int k = 0; k < s->n_dev && st == GGL_OK; k++) {
        if (s->dev[k].repack.size == 0)
            continue;
        st = take_regions(s, file, &s->dev[k], at[k], err);
    }
    ggl_free(at);
    if (st == GGL_OK && file->use != GGL_CACHE_READ)
        st = ggl_loading_each(l, s, repacked_of, repack_one, err);
    if (st == GGL_OK)
        st = ggl_loading_end(s, err);
    if (st == GGL_OK && s->params.cache && repacks_any(s) && file->use != GGL_CACHE_READ)
        ggl_repack_file_write(file, s);
    return st;
}
