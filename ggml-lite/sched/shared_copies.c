#include "shared_copies.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/os_thread.h"

typedef struct shared_block {
    int n_users; /* devices; guarded by the table's lock */
    const char *layout;
    char *data;
    size_t size;
    shared_copy *copy; /* [n], ascending by weight */
    size_t n;
    os_mutex lock;
} shared_block;

struct ggl_repacked {
    ggl_host_range *host;
    int n_host;
    os_mutex lock; /* guards all that follows */
    shared_block **block;
    size_t n, cap;
};

/* --- the table -------------------------------------------------------------------------------- */

ggl_status ggl_repacked_new(ggl_repacked **out, const ggl_host_range *host, int n_host,
                            ggl_error *err) {
    ggl_repacked *r = *out = ggl_calloc(1, sizeof *r);
    if (r)
        r->host = ggl_calloc((size_t)n_host, sizeof *r->host);
    if (!r || !r->host) {
        ggl_free(r);
        *out = NULL;
        return ggl_fail(err, GGL_NOMEM, "out of memory for the table of repacked weights");
    }
    memcpy(r->host, host, (size_t)n_host * sizeof *host);
    r->n_host = n_host;
    ggl_os_mutex_init(&r->lock);
    return GGL_OK;
}

void ggl_repacked_free(ggl_repacked *r) {
    if (!r)
        return;
    ggl_os_mutex_destroy(&r->lock);
    ggl_free(r->block);
    ggl_free(r->host);
    ggl_free(r);
}

/* True if the memory of the weight stays as long as the table. */
static bool has(const ggl_repacked *r, const ggl_tensor *t) {
    return ggl_sched_range_of(r->host, r->n_host, t) < r->n_host;
}

/* The table, if the device may share copies: in a file of its own they are shared by the system. */
static ggl_repacked *table_of(const schedule *s, const device *d) {
    return d->b->async || s->params.cache ? NULL : s->params.repacked;
}

/* --- blocks ----------------------------------------------------------------------------------- */

static void block_free(shared_block *b) {
    ggl_os_mutex_destroy(&b->lock);
    ggl_pages_free(b->data, b->size);
    ggl_free(b->copy);
    ggl_free(b);
}

/* A block with room for n copies; NULL: out of memory. */
static shared_block *block_new(size_t size, size_t n) {
    shared_block *b = ggl_calloc(1, sizeof *b);
    if (!b)
        return NULL;
    ggl_os_mutex_init(&b->lock);
    b->size = size;
    b->copy = ggl_calloc(n, sizeof *b->copy);
    b->data = ggl_pages_calloc(size);
    if (!b->copy || !b->data) {
        block_free(b);
        return NULL;
    }
    ggl_prefer_huge_pages(b->data, size); /* products read it from end to end */
    return b;
}

/* For bsearch: the weight of a copy. */
static int by_weight(const void *key, const void *member) {
    const uintptr_t a = (uintptr_t)key, b = (uintptr_t)((const shared_copy *)member)->weight;
    return a < b ? -1 : a > b;
}

/* Returns the block's copy of t; NULL: it has none. */
static shared_copy *copy_of(const shared_block *b, const ggl_tensor *t, size_t size) {
    shared_copy *c = bsearch(t->data, b->copy, b->n, sizeof *b->copy, by_weight);
    return c && c->type == t->type && c->size == size && memcmp(c->ne, t->ne, sizeof c->ne) == 0
               ? c
               : NULL;
}

/* Returns the device's region that is the block; -1: it has none. */
static int region_of(const device *d, const shared_block *b) {
    for (size_t i = 0; i < d->repack.n_blocks; i++)
        if (d->repack.block[i].at == b)
            return d->repack.block[i].region;
    return -1;
}

/* Makes the block the region, which is freed before the block is left. */
static ggl_status use_block(device *d, shared_block *b, int region, ggl_error *err) {
    if (!ggl_grow(&d->repack.block, &d->repack.cap_blocks, d->repack.n_blocks + 1,
                  sizeof *d->repack.block))
        return ggl_sched_no_memory(err);
    const ggl_status st =
        d->b->v->alloc(d->b, GGL_REGION_REPACKED, b->size, b->data, &d->region[region], err);
    if (st == GGL_OK)
        d->repack.block[d->repack.n_blocks++] = (struct block_use){b, region};
    return st;
}

/* Returns a block of the table with a copy of t, of which the caller is a user; NULL: none. */
static shared_block *take_block(ggl_repacked *r, const device *d, const ggl_tensor *t,
                                size_t size) {
    shared_block *found = NULL;
    ggl_os_mutex_lock(&r->lock);
    for (size_t i = 0; i < r->n && !found; i++)
        if (strcmp(r->block[i]->layout, d->b->v->repack_layout) == 0 &&
            copy_of(r->block[i], t, size))
            found = r->block[i];
    if (found && region_of(d, found) < 0)
        found->n_users++;
    ggl_os_mutex_unlock(&r->lock);
    return found;
}

/* One user less. */
static void leave_block(ggl_repacked *r, shared_block *b) {
    ggl_os_mutex_lock(&r->lock);
    const bool is_last = --b->n_users == 0;
    for (size_t i = 0; i < r->n && is_last; i++)
        if (r->block[i] == b)
            r->block[i--] = r->block[--r->n];
    ggl_os_mutex_unlock(&r->lock);
    if (is_last)
        block_free(b);
}

/* --- schedulers ------------------------------------------------------------------------------- */

ggl_status ggl_shared_copy_find(const schedule *s, device *d, const ggl_tensor *t, size_t size,
                                shared_copy **copy, ggl_loc *loc, bool *is_made, ggl_error *err) {
    ggl_repacked *r = table_of(s, d);
    shared_block *b = r && has(r, t) ? take_block(r, d, t, size) : NULL;
    *copy = NULL;
    if (!b)
        return GGL_OK;
    int region = region_of(d, b);
    if (region < 0) {
        const ggl_status st = ggl_sched_add_region(d, NULL) ? use_block(d, b, d->n_regions - 1, err)
                                                            : ggl_sched_no_memory(err);
        if (st != GGL_OK) {
            leave_block(r, b);
            return st;
        }
        region = d->n_regions - 1;
    }
    *copy = copy_of(b, t, size);
    *loc = (ggl_loc){.region = region, .offset = (*copy)->offset};
    ggl_shared_copy_lock(*copy);
    *is_made = (*copy)->n_rows == ggl_sched_rows_of(t);
    ggl_shared_copy_unlock(*copy);
    return GGL_OK;
}

/* Adds the block, of which the caller is the first user, to the table. */
static bool offer(ggl_repacked *r, shared_block *b) {
    ggl_os_mutex_lock(&r->lock);
    const bool ok = ggl_grow(&r->block, &r->cap, r->n + 1, sizeof(shared_block *));
    if (ok)
        r->block[r->n++] = b;
    ggl_os_mutex_unlock(&r->lock);
    return ok;
}

ggl_status ggl_shared_block_new(const schedule *s, device *d, const struct piece *p,
                                ggl_error *err) {
    ggl_repacked *r = table_of(s, d);
    if (!r)
        return GGL_UNSUPPORTED;
    shared_block *b = block_new(p->size, d->repack.list.n);
    if (!b)
        return ggl_sched_no_memory(err);
    b->n_users = 1;
    b->layout = d->b->v->repack_layout;
    ggl_status st = use_block(d, b, p->region, err);
    if (st != GGL_OK) {
        block_free(b);
        return st;
    }
    for (size_t i = 0; i < d->repack.list.n; i++) { /* ascending by address */
        const ggl_tensor *t = d->repack.list.at[i];
        const ggl_loc loc = d->repack.loc[t->id];
        if (loc.region != p->region || !has(r, t))
            continue;
        shared_copy *c = d->repack.shared[t->id] = &b->copy[b->n++];
        *c = (shared_copy){.block = b,
                           .weight = t->data,
                           .type = t->type,
                           .size = d->b->v->repack_size(d->b, t),
                           .offset = loc.offset};
        memcpy(c->ne, t->ne, sizeof c->ne);
    }
    /* of a block that is not offered, the device is the only user */
    return offer(r, b) ? GGL_OK : ggl_sched_no_memory(err);
}

void ggl_shared_copy_lock(shared_copy *c) {
    if (c)
        ggl_os_mutex_lock(&c->block->lock);
}

void ggl_shared_copy_unlock(shared_copy *c) {
    if (c)
        ggl_os_mutex_unlock(&c->block->lock);
}

void ggl_shared_copies_leave(const schedule *s, device *d) {
    for (size_t i = 0; i < d->repack.n_blocks; i++)
        leave_block(s->params.repacked, d->repack.block[i].at);
    d->repack.n_blocks = 0;
}
