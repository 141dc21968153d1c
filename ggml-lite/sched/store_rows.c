#include "store_rows.h"

#include <inttypes.h>

#include "ggl/internal/graph.h"

/* --- what a batch sees and writes ------------------------------------------------------------- */

bool ggl_row_use_init(row_use *u, const ggl_graph *g) {
    u->of = ggl_calloc((size_t)ggl_graph_get_params(g)->n_slots, sizeof *u->of);
    return u->of;
}

void ggl_row_use_set(row_use *u, const ggl_graph *g, const int32_t *pos, const int32_t *slot,
                     const int32_t *end, int64_t n, uint64_t n_pages_set) {
    u->n_pages_set = n_pages_set;
    for (int64_t k = 0; k < ggl_graph_get_params(g)->n_slots; k++)
        u->of[k] = (slot_rows){INT64_MAX, -1, 0};
    for (int64_t i = 0; i < n; i++) {
        const ggl_visible v = ggl_visible_rows(pos[i], slot[i], 0, end ? end[i] : 0);
        slot_rows *r = &u->of[v.slot];
        r->low = pos[i] < r->low ? pos[i] : r->low;
        r->high = pos[i] > r->high ? pos[i] : r->high;
        r->end = v.end > r->end ? v.end : r->end;
    }
}

bool ggl_row_use_meets(const row_use *now, const row_use *before, const ggl_graph *g) {
    const ggl_graph_params *p = ggl_graph_get_params(g);
    if (now->n_pages_set != before->n_pages_set) /* a page may be another slot's now */
        return true;
    for (int64_t k = 0; k < p->n_slots; k++) {
        const slot_rows a = before->of[k], b = now->of[k];
        if (a.end > 0 && b.end > 0 && (b.low < a.end || b.high - a.low >= p->n_batch))
            return true;
    }
    return false;
}

/* --- the inputs that say it ------------------------------------------------------------------- */

/* Returns the first slot for rows of the stage alone; without any, the number of slots. */
static int64_t first_of_stage(const ggl_graph *g) {
    return g->params.n_slots - g->params.n_stage_slots;
}

int64_t ggl_rows_n_pages(const ggl_graph *g, int64_t slot) {
    return g->n_pages[slot < first_of_stage(g) ? GGL_ROWS_MAIN : GGL_ROWS_STAGE];
}

bool ggl_rows_has_slot(const ggl_graph *g, const ggl_store *st, int64_t slot) {
    return g->params.n_stage_slots == 0 || st->of_stage == (slot >= first_of_stage(g));
}

/* Returns the number of positions that a slot may have for these rows. */
static int64_t most_pos(const ggl_graph *g, ggl_rows rows) {
    const int64_t n_pos = ggl_graph_get_params(g)->n_pos,
                  n_pages = g->n_pages[rows == GGL_ROWS_MAIN ? GGL_ROWS_MAIN : GGL_ROWS_STAGE];
    if (ggl_graph_n_stores(g) == 0)
        return INT64_MAX;
    return g->page && n_pages > 0 && n_pages < n_pos / GGL_PAGE ? n_pages * GGL_PAGE : n_pos;
}

ggl_status ggl_rows_check(const ggl_graph *g, const ggl_tensor *t, const int32_t *value, int64_t n,
                          ggl_error *err) {
    const int64_t n_slots = g->params.n_slots;
    const bool is_apart = g->params.n_stage_slots > 0;
    const char *what = t == g->page ? "page" : NULL;
    int64_t first = 0,
            limit = 0; /* of the values; of pages, each row of the table has its own limit */
    for (int k = 0; k < GGL_ROWS_COUNT && !what; k++) {
        const bool is_main = k == GGL_ROWS_MAIN;
        const int64_t n_pos = most_pos(g, (ggl_rows)k);
        what = t == g->slot[k]  ? "slot"
               : t == g->pos[k] ? "position"
               : t == g->end[k] ? "end"
                                : NULL;
        limit = t == g->slot[k]                       ? (is_main ? first_of_stage(g) : n_slots)
                : t == g->end[k] && n_pos < INT64_MAX ? n_pos + 1
                                                      : n_pos;
        first = t == g->slot[k] && is_apart && !is_main ? first_of_stage(g) : 0;
    }
    for (int64_t i = 0; what && i < n * ggl_count(t); i++) {
        if (t == g->page) /* of slots without pages, it is not read */
            limit = ggl_rows_n_pages(g, i / t->ne[0] % n_slots);
        if (t == g->page && limit == 0)
            continue;
        if (value[i] < first || value[i] >= limit)
            return ggl_fail(err, GGL_USAGE, "%s %" PRId32 " of a graph that has %" PRId64 "%s",
                            what, value[i], limit,
                            first > 0 ? ", the last ones for these rows" : "");
    }
    return GGL_OK;
}

bool ggl_rows_own_pages(const ggl_graph *g, int32_t *table) {
    const int64_t n = g->page ? g->page->ne[0] : 0, stage = first_of_stage(g),
                  end = g->params.n_slots, own = ggl_rows_n_pages(g, 0),
                  read = ggl_rows_n_pages(g, end - 1);
    if (n == 0 || (own > 0 && stage * n > own) || (read > 0 && (end - stage) * n > read))
        return false;
    for (int64_t k = 0; k < n * end; k++)
        table[k] = (int32_t)(k < stage * n ? k : k - stage * n);
    return true;
}

/* --- the bytes of stores ---------------------------------------------------------------------- */

bool ggl_rows_share_pages(const ggl_store *st) {
    return st->kind != GGL_STORE_STATE && !st->ring;
}

const int32_t *ggl_rows_table(const ggl_graph *g, const ggl_store *st, const int32_t *table,
                              int slot) {
    return table && ggl_rows_share_pages(st) ? table + slot * g->page->ne[0] : NULL;
}

int64_t ggl_rows_n_kept(const ggl_store *st, int64_t n_pos, bool states_only) {
    if (st->kind == GGL_STORE_STATE)
        return 1;
    return states_only || n_pos <= 0 ? 0 : n_pos < st->n_pos ? n_pos : st->n_pos;
}

size_t ggl_rows_size(const ggl_store *st, int64_t n_pos, bool states_only) {
    size_t size;
    if (st->kind == GGL_STORE_STATE)
        return st->slot_size;
    n_pos = ggl_rows_n_kept(st, n_pos, states_only);
    return ggl_store_size(st, n_pos, &size) ? size : 0; /* cannot fail: slot_size is as large */
}

int64_t ggl_rows_rollback_limit(const ggl_graph *g) {
    for (int i = 0; i < ggl_graph_n_stores(g); i++)
        if (ggl_graph_store(g, i)->ring)
            /* a ring holds window + n_batch - 1 positions; the next token adds one of its window */
            return ggl_graph_get_params(g)->n_batch;
    return INT64_MAX;
}
