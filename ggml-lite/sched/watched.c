/* Shows to the user what watched nodes read. A watched node belongs to the trunk, so that it sees the
 * whole batch. Its operands are in the io region of its device until its segment ends; there they are
 * shown, before later segments use that memory. */
#include "watched.h"

#include "ggl/internal/graph.h"

ggl_status ggl_sched_find_watched(schedule *s, ggl_error *err) {
    const ggl_watch *w = s->params.watch;
    if (!w)
        return GGL_OK;
    s->watched = ggl_calloc((size_t)ggl_graph_n_ids(s->g), sizeof *s->watched);
    if (!s->watched)
        return ggl_sched_no_memory(err);
    if (w->begin)
        w->begin(w->ctx);
    for (int i = 0; i < ggl_graph_n_nodes(s->g); i++) {
        const ggl_tensor *t = ggl_graph_node(s->g, i);
        s->watched[t->id] = t->computed && w->wants(w->ctx, t);
    }
    return GGL_OK;
}

/* True if x is an operand that is shown: neither a weight, nor a constant, nor a view of them. */
static bool is_shown(const ggl_tensor *x) {
    return x && (x->computed || x->op == GGL_OP_INPUT) && x->op != GGL_OP_CACHE;
}

/* Adds the bytes of x, for the largest batch, to *size. */
static bool add_size(const schedule *s, const ggl_tensor *x, size_t *size) {
    size_t own;
    return ggl_value_bytes(x, s->n_batch, &own) && ggl_size_align(own, 64, &own) &&
           ggl_size_add(*size, own, size);
}

ggl_status ggl_sched_keep_watched(schedule *s, size_t i, const size_t *own, ggl_error *err) {
    segment *seg = &s->seg[i];
    for (size_t j = 0; j < seg->nodes.n && s->watched; j++) {
        ggl_tensor *t = seg->nodes.at[j];
        size_t size = 0;
        if (!s->watched[t->id])
            continue;
        if (!ggl_node_list_push(&seg->watched, t))
            return ggl_sched_no_memory(err);
        for (int k = 0; k < ggl_n_reads(t); k++) {
            const ggl_tensor *x = ggl_read(t, k);
            if (!is_shown(x))
                continue;
            if (own[x->id] == i + 1) /* those of others are there already */
                ggl_sched_use_value(&s->dev[seg->backend], seg->phase, x, i);
            if (!add_size(s, x, &size))
                return ggl_sched_too_large(x, s->n_batch, err);
        }
        const size_t n = (size_t)ggl_n_reads(t);
        s->shown_size = size > s->shown_size ? size : s->shown_size;
        s->n_operands = n > s->n_operands ? n : s->n_operands;
    }
    return GGL_OK;
}

bool ggl_watching_alloc(watching *w, const schedule *s) {
    w->shown = ggl_calloc(s->shown_size, 1);
    w->operand = ggl_calloc(s->n_operands, sizeof *w->operand);
    return w->shown && w->operand;
}

/* Where a watched segment's operands are: in host memory, or, if the device has other memory, only in
 * its io region. */
typedef struct shower {
    const segment *seg;
    device *d;
    const char *host; /* the lane's host memory */
    int lane;
    int64_t n;
    char *at; /* the rest of watching.shown */
} shower;

/* Sets *out to the operand x in host memory; if it is not there, to a copy. */
static ggl_status show(shower *w, const ggl_tensor *x, const void **out, ggl_error *err) {
    device *d = w->d;
    const size_t offset = d->loc[w->seg->phase][x->id].offset;
    size_t size, room;
    if (d->io.in_place[w->lane]) {
        *out = w->host + d->io.image + offset;
        return GGL_OK;
    }
    if (!ggl_value_bytes(x, w->n, &size) || !ggl_size_align(size, 64, &room))
        return ggl_sched_too_large(x, w->n, err);
    *out = w->at;
    w->at += room;
    return d->b->v->download(d->b, d->io.at[w->lane], offset, (void *)(uintptr_t)*out, size, err);
}

ggl_status ggl_watching_show(watching *w, const schedule *s, const host_memory *h,
                             const segment *seg, int lane, int64_t n, ggl_error *err) {
    const ggl_watch *user = s->params.watch;
    shower to = {.seg = seg, .d = &s->dev[seg->backend], .host = h->at[lane], .lane = lane, .n = n};
    ggl_status st = GGL_OK;
    if (seg->watched.n == 0)
        return GGL_OK;
    ggl_os_mutex_lock(&w->lock);
    for (size_t i = 0; i < seg->watched.n && st == GGL_OK; i++) {
        const ggl_tensor *t = seg->watched.at[i];
        to.at = w->shown;
        for (int k = 0; k < ggl_n_reads(t) && st == GGL_OK; k++) {
            w->operand[k] = NULL;
            if (is_shown(ggl_read(t, k)))
                st = show(&to, ggl_read(t, k), &w->operand[k], err);
        }
        if (st == GGL_OK)
            user->see(user->ctx, t, w->operand, n);
    }
    ggl_os_mutex_unlock(&w->lock);
    return st;
}
