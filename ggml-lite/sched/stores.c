/* Gives stores places in the regions of devices. Where memory costs nothing until it is touched (ggl_backend.lazy), the same page of all
 * stores lies side by side:
 *
 *     page 0 of store 0, page 0 of store 1, ..   page 1 of store 0, page 1 of store 1, ..
 *
 * So a text of n positions touches the beginning of one range, in huge pages that it fills; with one store after the other, its first
 * position would take a huge page of each. */
#include "ggl/internal/graph.h"
#include "schedule.h"

/* Stores whose pages lie side by side: they have as many, and pages are taken at the same time. */
typedef struct page_group {
    size_t n_pages;
    bool of_stage;
    size_t step; /* bytes of a page of all of them */
} page_group;

/* Large stores of the host begin at different places of their huge pages (2 MB): else, where their sizes are whole huge pages, all come
 * to the next one with the same position, and a step waits until the system has cleared one for each. */
enum { STAGGERED = 1 << 20, STAGGER = 36 << 10 };

/* True if the store's pages lie beside those of others. What shares memory with other stores is of one run, which touches all of it. */
static bool is_grouped(const schedule *s, const device *d, const ggl_store *store) {
    return d->b->lazy && d->b->max_buffer == 0 && store->kind != GGL_STORE_STATE &&
           store->page_size > 0 && !ggl_sched_is_passing(s, store);
}

/* Returns the group of such a store; NULL: there is none yet. */
static page_group *group_of(const device *d, const ggl_store *store) {
    for (size_t i = 0; i < d->stores.n_groups; i++) {
        page_group *g = &d->stores.group[i];
        if (g->n_pages == store->size / store->page_size && g->of_stage == store->of_stage)
            return g;
    }
    return NULL;
}

/* Adds the store to its group. Its loc has the place within a page of all, until ggl_sched_place_pages. */
static bool add_to_group(device *d, const ggl_store *store) {
    page_group *g = group_of(d, store);
    if (!g) {
        if (!ggl_grow(&d->stores.group, &d->stores.cap_groups, d->stores.n_groups + 1, sizeof *g))
            return false;
        g = &d->stores.group[d->stores.n_groups++];
        *g = (page_group){store->size / store->page_size, store->of_stage, 0};
    }
    d->stores.loc[store->id] = (ggl_loc){.region = GGL_REGION_STORES, .offset = g->step};
    g->step += store->page_size; /* at most rows_size */
    return true;
}

ggl_status ggl_sched_place_pages(const schedule *s, device *d, ggl_error *err) {
    for (size_t i = 0; i < d->stores.n_groups; i++) {
        const page_group *g = &d->stores.group[i];
        ggl_loc all;
        if (!ggl_sched_place_in(d, &d->stores.pieces, GGL_REGION_STORES, g->n_pages * g->step,
                                &all))
            return ggl_sched_no_memory(err);
        for (int k = 0; k < ggl_graph_n_stores(s->g); k++) {
            const ggl_store *store = ggl_graph_store(s->g, k);
            ggl_loc *loc = &d->stores.loc[k];
            if (loc->region >= 0 && is_grouped(s, d, store) && group_of(d, store) == g)
                *loc = (ggl_loc){all.region, all.offset + loc->offset, g->step};
        }
    }
    return GGL_OK;
}

/* Memory for all slots. */
ggl_status ggl_sched_place_store(schedule *s, device *d, const ggl_store *store, ggl_error *err) {
    const bool is_state = store->kind == GGL_STORE_STATE;
    const size_t most = d->b->max_buffer;
    size_t size = store->size, all,
           *total = is_state ? &d->stores.states_size : &d->stores.rows_size;
    ggl_loc *loc = &d->stores.loc[store->id];
    if (loc->region >= 0)
        return GGL_OK;
    const int owner = s->shares[store->id];
    if (owner >= 0) { /* which has no place yet if nodes are not in the order of ids */
        const ggl_status st = ggl_sched_place_store(s, d, ggl_graph_store(s->g, owner), err);
        *loc = d->stores.loc[owner];
        loc->step = store->page_size;
        return st;
    }
    if (!ggl_size_align(size, 64, &size) || !ggl_size_add(*total, store->size, total) ||
        !ggl_size_add(d->stores.rows_size, d->stores.states_size, &all))
        return ggl_fail(err, GGL_LIMIT, "the caches of all slots do not fit into memory; %s",
                        ggl_sched_hint_smaller);
    if (most && size > most)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: %.1f MiB for all positions and slots; %s supports at most %.1f MiB "
                        "in one buffer; %s",
                        store->name ? store->name : "a store", (double)size / 1048576, d->b->name,
                        (double)most / 1048576, ggl_sched_hint_smaller);
    if (is_grouped(s, d, store))
        return add_to_group(d, store) ? GGL_OK : ggl_sched_no_memory(err);
    if (size >= STAGGERED && !most)
        size += STAGGER;
    if (!ggl_sched_place_in(d, &d->stores.pieces, GGL_REGION_STORES, size, loc))
        return ggl_sched_no_memory(err);
    loc->step = store->page_size;
    return GGL_OK;
}
