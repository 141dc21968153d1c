/* Sizes the stores of a finished graph, and decides which of them share pages. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/types.h"
#include "graph_impl.h"

/* --- stores in use ---------------------------------------------------------------------------- */

/* Sets the id of every store that a needed node uses to 1. */
static void mark_stores(ggl_tensor *const *node, size_t n) {
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2 && node[i]->needed; k++)
            if (node[i]->store[k])
                node[i]->store[k]->id = 1; /* in use */
        if (node[i]->body && node[i]->needed)
            mark_stores(node[i]->body->node, (size_t)node[i]->body->n_node);
    }
}

/* Removes the stores that are not in use, and numbers the others. */
static void drop_unused(ggl_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_stores; i++)
        g->store[i]->id = 0;
    mark_stores(g->nodes.at, g->nodes.n);
    for (size_t i = 0; i < g->n_stores; i++)
        if (g->store[i]->id) {
            g->store[i]->id = (int)n;
            g->store[n++] = g->store[i];
        }
    g->n_stores = n;
}

/* --- sizes ------------------------------------------------------------------------------------ */

static int64_t pages_for(int64_t n_pos) {
    return (n_pos + GGL_PAGE - 1) / GGL_PAGE;
}

/* Returns the pages that the slots for these rows need at most: those of the pool, but no more than n_pos
 * for each slot. Fewer than INT64_MAX / GGL_PAGE. */
static int64_t pages_in_all(const ggl_graph_params *p, ggl_rows rows) {
    const bool is_apart = p->n_stage_slots > 0 && rows == GGL_ROWS_STAGE;
    const int64_t most = INT64_MAX / GGL_PAGE / 2, each = pages_for(p->n_pos),
                  n_slots = is_apart ? p->n_stage_slots : p->n_slots - p->n_stage_slots,
                  n_pool = is_apart ? p->n_stage_pool : p->n_pool;
    const int64_t all = n_slots < most / each ? each * n_slots : most;
    return n_pool == 0 || n_pool / GGL_PAGE >= all ? all : pages_for(n_pool);
}

int64_t ggl_attend_window(const ggl_tensor *attend) {
    const double window = attend->num[ATTEND_WINDOW];
    return isnan(window) || window >= 0x1p31 ? 0 : (int64_t)window;
}

/* Returns the widest window of the nodes that attend to the cache; 0: one reads all positions, or
 * positions after its own, over which a ring would write. */
static int64_t widest_window(const ggl_graph *g, const ggl_tensor *cache) {
    int64_t widest = 1;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ggl_tensor *t = g->nodes.at[i];
        if (ggl_cache_of(t) != cache || !t->needed)
            continue;
        const int64_t window =
            t->op != GGL_OP_ATTEND || t->src[ATTEND_END] ? 0 : ggl_attend_window(t);
        if (window == 0)
            return 0;
        widest = window > widest ? window : widest;
    }
    return widest;
}

/* Gives the stores of a stage the types of other caches if main rows read them: these stay as long as the sequence. */
static void choose_types(const ggl_graph *g, const ggl_tensor *cache) {
    const ggl_type type[2] = {g->params.type_k, g->params.type_v};
    bool is_read = false;
    size_t row;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ggl_tensor *t = g->nodes.at[i];
        is_read |= t->needed && ggl_cache_of(t) == cache && t->rows != cache->rows;
    }
    for (int k = 0; k < 2; k++)
        if (cache->store[k])
            cache->store[k]->is_read = is_read;
    for (int k = 0; k < 2 && is_read; k++)
        if (cache->store[k] && ggl_row_size_checked(type[k], cache->store[k]->ne[0], &row))
            cache->store[k]->type = type[k];
}

/* True if all that read the cache read chosen rows of it, one by one. */
static bool is_read_by_rows(const ggl_graph *g, const ggl_tensor *cache) {
    bool is = false;
    for (size_t i = 0; i < g->nodes.n; i++) {
        const ggl_tensor *t = g->nodes.at[i];
        if (ggl_cache_of(t) != cache || !t->needed)
            continue;
        if (t->op != GGL_OP_ATTEND || !t->src[ATTEND_CHOSEN])
            return false;
        is = true;
    }
    return is;
}

/* Decides whether the cache's stores are rings, and sets their n_pos. */
static void shape_rows(ggl_graph *g, const ggl_tensor *cache) {
    const int64_t window = widest_window(g, cache), each = pages_for(g->params.n_pos),
                  n_pages = pages_in_all(&g->params, cache->rows);
    const int64_t most = each < n_pages ? each : n_pages; /* of a slot that has all of them */
    /* the whole batch is written before its first element attends */
    const int64_t ring = pages_for(window + g->params.n_batch - 1);
    const bool is_ring = window > 0 && ring <= (n_pages - 1) / g->params.n_slots;
    for (int k = 0; k < 2; k++)
        if (cache->store[k]) {
            cache->store[k]->ring = is_ring;
            cache->store[k]->n_pos = (is_ring ? ring : most) * GGL_PAGE;
        }
    if (!is_ring && g->params.n_stage_slots > 0)
        g->n_pages[cache->rows] = n_pages;
    else if (!is_ring)
        g->n_pages[GGL_ROWS_MAIN] = g->n_pages[GGL_ROWS_STAGE] = n_pages;
}

/* Sets the sizes of a store whose n_pos is set. Returns false, with the graph's error set, if all
 * slots together do not fit. */
static bool size_store(ggl_graph *g, ggl_store *s) {
    const bool shares = s->kind != GGL_STORE_STATE && !s->ring;
    const int64_t n_pages = g->n_pages[s->of_stage ? GGL_ROWS_STAGE : GGL_ROWS_MAIN];
    bool fits = ggl_store_size(s, s->n_pos, &s->slot_size) &&
                ggl_size_align(s->slot_size, 64, &s->slot_size) &&
                (!shares || n_pages <= INT32_MAX);
    if (fits && s->kind != GGL_STORE_STATE)
        s->page_size = s->slot_size / (size_t)pages_for(s->n_pos);
    fits = fits &&
           ggl_size_mul(shares ? s->page_size : s->slot_size,
                        (uint64_t)(shares ? n_pages : g->params.n_slots), &s->size) &&
           s->size <= PTRDIFF_MAX; /* as malloc */
    if (!fits)
        ggl_graph_fail(g, GGL_LIMIT,
                       "%s: %" PRId64 " positions do not fit into memory: set a smaller context",
                       s->name, s->n_pos);
    return fits;
}

/* --- the table of pages ----------------------------------------------------------------------- */

/* Makes the input "page", the first node of the graph, and the last source of all caches whose
 * stores share pages and of the nodes that attend to them. Its id is the largest, so that those of
 * other nodes do not depend on it. */
static bool add_table(ggl_graph *g) {
    const int64_t each = pages_for(g->params.n_pos), all = ggl_graph_n_pages(g);
    const int64_t ne[] = {each < all ? each : all, g->params.n_slots};
    if (ggl_graph_find_input(g, "page"))
        return ggl_graph_fail(g, GGL_USAGE,
                              "an input cannot be named 'page': this is the table of pages that "
                              "ggl_graph_finish adds");
    ggl_tensor *t = ggl_graph_input(g, "page", GGL_I32, 2, ne, false);
    if (!t)
        return false;
    memmove(g->nodes.at + 1, g->nodes.at, (g->nodes.n - 1) * sizeof *g->nodes.at);
    g->nodes.at[0] = t;
    g->page = t;
    for (size_t i = 0; i < g->nodes.n; i++) {
        ggl_tensor *x = g->nodes.at[i];
        const ggl_tensor *read = ggl_cache_of(x), *cache = read ? read : x;
        if (cache->op != GGL_OP_CACHE || !x->needed || cache->store[0]->ring)
            continue;
        x->src[ggl_page_source(x)] = t;
        t->needed = true;
    }
    return true;
}

bool ggl_graph_size_stores(ggl_graph *g) {
    drop_unused(g);
    for (size_t i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i]->op == GGL_OP_CACHE && g->nodes.at[i]->needed) {
            choose_types(g, g->nodes.at[i]);
            if (is_read_by_rows(g, g->nodes.at[i])) /* in the layout in which a row lies together */
                g->nodes.at[i]->store[0]->kind = GGL_STORE_VALUES;
            shape_rows(g, g->nodes.at[i]);
        }
    for (size_t i = 0; i < g->n_stores; i++)
        if (!size_store(g, g->store[i]))
            return false;
    return ggl_graph_n_pages(g) == 0 || g->page || add_table(g); /* a graph may be finished twice */
}
