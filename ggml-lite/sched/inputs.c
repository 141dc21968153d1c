/* The inputs of a graph: sets and checks them, and finds which of their bytes devices must get. */
#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "sched_impl.h"

/* Returns the index of the input t; -1 if t is not an input. */
static int index_of(const ggl_sched *s, const ggl_tensor *t) {
    int i = ggl_graph_n_inputs(s->g) - 1;
    while (i >= 0 && ggl_graph_get_input(s->g, i) != t)
        i--;
    return i;
}

const int32_t *ggl_sched_pages(const ggl_sched *s) {
    const int i = index_of(s, s->g->page);
    return i >= 0 && s->input_n[i] > 0 ? (const int32_t *)(s->input + s->input_at[i]) : NULL;
}

const int32_t *ggl_sched_lane_input(const ggl_sched *s, int lane, const ggl_tensor *t) {
    const int i = index_of(s, t);
    const char *at = s->lane_input + (size_t)lane * s->input_size;
    return i >= 0 ? (const int32_t *)(at + s->input_at[i]) : NULL;
}

/* Gives each slot pages of its own, if there are enough of them. */
void ggl_sched_own_pages(ggl_sched *s) {
    const int i = index_of(s, s->g->page);
    if (i < 0 || ggl_count(s->g->page) > s->g->n_pages)
        return;
    int32_t *page = (int32_t *)(s->input + s->input_at[i]);
    for (int64_t k = 0; k < ggl_count(s->g->page); k++)
        page[k] = (int32_t)k;
    s->input_n[i] = 1;
}

/* Makes *r include `by`. */
static void widen(byte_range *r, byte_range by) {
    if (by.from == by.to)
        return;
    if (r->from == r->to)
        *r = by;
    r->from = by.from < r->from ? by.from : r->from;
    r->to = by.to > r->to ? by.to : r->to;
}

/* Returns the bytes from the first to the last numbers, of 4 bytes, that differ between a and b. */
static byte_range difference(const char *a, const char *b, size_t size) {
    enum { STEP = 256, ONE = 4 }; /* many equal bytes are compared at once */
    byte_range r = {0, size};
    while (r.to - r.from >= STEP && memcmp(a + r.from, b + r.from, STEP) == 0)
        r.from += STEP;
    while (r.to - r.from >= STEP && memcmp(a + r.to - STEP, b + r.to - STEP, STEP) == 0)
        r.to -= STEP;
    while (r.to - r.from >= ONE && memcmp(a + r.from, b + r.from, ONE) == 0)
        r.from += ONE;
    while (r.to - r.from >= ONE && memcmp(a + r.to - ONE, b + r.to - ONE, ONE) == 0)
        r.to -= ONE;
    return r;
}

/* Replaces the value of input i, which is not batched, and notes which of its bytes change. */
static void replace(ggl_sched *s, int i, const char *data, size_t size) {
    char *to = s->input + s->input_at[i];
    const byte_range r = difference(to, data, size);
    memcpy(to + r.from, data + r.from, r.to - r.from);
    s->n_pages_set += r.from < r.to && ggl_graph_get_input(s->g, i) == s->g->page;
    for (int lane = 0; lane < s->n_lanes; lane++)
        widen(&s->stale[lane * ggl_graph_n_inputs(s->g) + i], r);
}

/* Returns the number of positions that a slot may have. */
static int64_t most_pos(const ggl_sched *s) {
    const int64_t n_pos = ggl_graph_get_params(s->g)->n_pos;
    if (ggl_graph_n_stores(s->g) == 0)
        return INT64_MAX;
    return s->g->page && s->g->page->ne[0] < n_pos / GGL_PAGE ? s->g->page->ne[0] * GGL_PAGE
                                                              : n_pos;
}

/* If t is the input "slot", "pos" or "page", checks its values for n elements of the batch.
 * Backends compute addresses from them without a check. */
static ggl_status check_places(const ggl_sched *s, const ggl_tensor *t, const int32_t *value,
                               int64_t n, ggl_error *err) {
    const ggl_graph_params *p = ggl_graph_get_params(s->g);
    const struct {
        const ggl_tensor *input;
        const char *what;
        int64_t n; /* values are 0 .. n-1 */
    } place[] = {{s->g->slot, "slot", p->n_slots},
                 {s->g->pos, "position", most_pos(s)},
                 {s->g->page, "page", s->g->n_pages}};
    for (size_t k = 0; k < sizeof place / sizeof *place; k++)
        for (int64_t i = 0; t == place[k].input && i < n * ggl_count(t); i++)
            if (value[i] < 0 || value[i] >= place[k].n)
                return ggl_fail(err, GGL_USAGE, "%s %" PRId32 " of a graph that has %" PRId64,
                                place[k].what, value[i], place[k].n);
    return GGL_OK;
}

/* Checks that n elements of the input t have `size` bytes. */
static ggl_status check_size(const ggl_tensor *t, size_t size, int64_t n, ggl_error *err) {
    size_t want;
    char shape[256];
    if (!ggl_value_bytes(t, n, &want))
        return ggl_fail(err, GGL_LIMIT, "input '%s' does not fit into memory", t->name);
    if (size == want)
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "input '%s': %zu bytes of data, not %zu: an element is %s %s, and %" PRId64
                    " are set",
                    t->name, size, want, ggl_type_get(t->type)->name,
                    ggl_shape_text(t, shape, sizeof shape), n);
}

ggl_status ggl_sched_set(ggl_sched *s, const char *input, const void *data, size_t size, int64_t n,
                         ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_inputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        if (strcmp(t->name, input) != 0)
            continue;
        int64_t most = ggl_is_batched(t) ? s->n_batch : 1;
        if (!s->allocated)
            return ggl_fail(err, GGL_USAGE,
                            "input '%s' is set before memory is allocated: call ggl_sched_alloc "
                            "first",
                            input);
        if (n < 1 || n > most)
            return ggl_fail(err, GGL_USAGE,
                            "input '%s': %" PRId64 " elements of the batch; 1 to %" PRId64
                            " are allowed",
                            input, n, most);
        ggl_status st = check_size(t, size, n, err);
        if (st == GGL_OK)
            st = check_places(s, t, data, n, err);
        if (st != GGL_OK)
            return st;
        if (ggl_is_batched(t))
            memcpy(s->input + s->input_at[i], data, size);
        else
            replace(s, i, data, size);
        s->input_n[i] = n;
        return GGL_OK;
    }
    return ggl_fail(err, GGL_NOT_FOUND, "the graph has no input '%s'", input);
}

/* Notes that all devices that read the input t must get `stale` of it before the lane's batch. */
static void mark_moves(ggl_sched *s, const ggl_tensor *t, int lane, byte_range stale) {
    for (size_t i = 0; i < s->n_segs && stale.from < stale.to; i++)
        for (size_t k = 0; k < s->seg[i].n_moves; k++)
            if (s->seg[i].move[k].t == t)
                widen(&s->seg[i].move[k].stale[lane], stale);
}

/* Brings the lane's inputs up to date for its next batch, of n elements. */
void ggl_sched_fill_lane(ggl_sched *s, int lane, int64_t n) {
    const int n_inputs = ggl_graph_n_inputs(s->g);
    char *to = s->lane_input + (size_t)lane * s->input_size;
    for (int i = 0; i < n_inputs; i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        byte_range *stale = &s->stale[lane * n_inputs + i], r = *stale;
        size_t size;
        if (ggl_is_batched(t) && ggl_value_bytes(t, n, &size))
            r = (byte_range){0, size};
        else
            mark_moves(s, t, lane, r);
        if (s->lane_input != s->input)
            memcpy(to + s->input_at[i] + r.from, s->input + s->input_at[i] + r.from, r.to - r.from);
        *stale = (byte_range){0};
    }
}
