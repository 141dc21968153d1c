/* The inputs of a graph: sets and checks them, and finds which of their bytes devices must get. */
#include "inputs.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "store_rows.h"

/* Returns the index of the input t; -1 if t is not an input. */
static int index_of(const schedule *s, const ggl_tensor *t) {
    int i = ggl_graph_n_inputs(s->g) - 1;
    while (i >= 0 && ggl_graph_get_input(s->g, i) != t)
        i--;
    return i;
}

bool ggl_inputs_init(inputs *in, const schedule *s) {
    const int n_inputs = ggl_graph_n_inputs(s->g);
    size_t n_stale;
    if (!ggl_size_mul((uint64_t)s->n_lanes, (uint64_t)n_inputs, &n_stale))
        return false;
    in->n = ggl_calloc((size_t)n_inputs, sizeof *in->n);
    in->stale = ggl_calloc(n_stale, sizeof *in->stale);
    in->now = ggl_calloc(s->input_size, (size_t)s->n_lanes + (s->n_lanes > 1));
    in->lane = in->now && s->n_lanes > 1 ? in->now + s->input_size : in->now;
    bool ok = in->n && in->stale && in->now;
    for (int i = 0; i < n_inputs && ok; i++) /* no device has any input yet */
        for (int lane = 0; lane < s->n_lanes; lane++)
            ok = ggl_value_bytes(ggl_graph_get_input(s->g, i), 1,
                                 &in->stale[lane * n_inputs + i].to);
    return ok;
}

void ggl_inputs_fini(inputs *in) {
    ggl_free(in->now);
    ggl_free(in->n);
    ggl_free(in->stale);
}

const int32_t *ggl_inputs_pages(const inputs *in, const schedule *s) {
    const int i = index_of(s, s->g->page);
    return i >= 0 && in->n[i] > 0 ? (const int32_t *)(in->now + s->input_at[i]) : NULL;
}

const int32_t *ggl_inputs_lane_value(const inputs *in, const schedule *s, int lane,
                                     const ggl_tensor *t) {
    const int i = index_of(s, t);
    return i >= 0 ? (const int32_t *)(ggl_inputs_of_lane(in, s, lane) + s->input_at[i]) : NULL;
}

void ggl_inputs_own_pages(inputs *in, const schedule *s) {
    const int i = index_of(s, s->g->page);
    if (i >= 0 && ggl_rows_own_pages(s->g, (int32_t *)(in->now + s->input_at[i])))
        in->n[i] = 1;
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
static void replace(inputs *in, const schedule *s, int i, const char *data, size_t size) {
    char *to = in->now + s->input_at[i];
    const byte_range r = difference(to, data, size);
    memcpy(to + r.from, data + r.from, r.to - r.from);
    in->n_pages_set += r.from < r.to && ggl_graph_get_input(s->g, i) == s->g->page;
    for (int lane = 0; lane < s->n_lanes; lane++)
        widen(&in->stale[lane * ggl_graph_n_inputs(s->g) + i], r);
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

ggl_status ggl_inputs_set(inputs *in, const schedule *s, const char *input, const void *data,
                          size_t size, int64_t n, ggl_error *err) {
    for (int i = 0; i < ggl_graph_n_inputs(s->g); i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        if (strcmp(t->name, input) != 0)
            continue;
        int64_t most = ggl_is_batched(t) ? s->n_batch : 1;
        if (n < 1 || n > most)
            return ggl_fail(err, GGL_USAGE,
                            "input '%s': %" PRId64 " elements of the batch; 1 to %" PRId64
                            " are allowed",
                            input, n, most);
        ggl_status st = check_size(t, size, n, err);
        if (st == GGL_OK)
            st = ggl_rows_check(s->g, t, data, n, err);
        if (st != GGL_OK)
            return st;
        if (ggl_is_batched(t) && data != in->now + s->input_at[i])
            memcpy(in->now + s->input_at[i], data, size);
        else if (!ggl_is_batched(t))
            replace(in, s, i, data, size);
        in->n[i] = n;
        return GGL_OK;
    }
    return ggl_fail(err, GGL_NOT_FOUND, "the graph has no input '%s'", input);
}

void *ggl_inputs_place(const inputs *in, const schedule *s, const char *input) {
    const ggl_tensor *t = ggl_graph_find_input(s->g, input);
    return t && ggl_is_batched(t) ? in->now + s->input_at[index_of(s, t)] : NULL;
}

/* Notes that all devices that read the input t must get `stale` of it before the lane's batch. */
static void mark_moves(schedule *s, const ggl_tensor *t, int lane, byte_range stale) {
    for (size_t i = 0; i < s->n_segs && stale.from < stale.to; i++)
        for (size_t k = 0; k < s->seg[i].n_moves; k++)
            if (s->seg[i].move[k].t == t)
                widen(&s->seg[i].move[k].stale[lane], stale);
}

void ggl_inputs_fill_lane(inputs *in, schedule *s, int lane, int64_t n) {
    const int n_inputs = ggl_graph_n_inputs(s->g);
    char *to = in->lane + (size_t)lane * s->input_size;
    for (int i = 0; i < n_inputs; i++) {
        const ggl_tensor *t = ggl_graph_get_input(s->g, i);
        byte_range *stale = &in->stale[lane * n_inputs + i], r = *stale;
        size_t size;
        if (ggl_is_batched(t) && ggl_value_bytes(t, n, &size))
            r = (byte_range){0, size};
        else
            mark_moves(s, t, lane, r);
        if (in->lane != in->now)
            memcpy(to + s->input_at[i] + r.from, in->now + s->input_at[i] + r.from, r.to - r.from);
        *stale = (byte_range){0};
    }
}
