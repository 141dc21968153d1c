/* Keeps flights from writing rows that flights before them still read. A store is written in one segment,
 * but attention may read it in a later one: in the tail, or after a segment of another backend. A flight
 * that is passed on while an earlier one has not come that far may write only rows that the earlier one
 * does not see: those of later positions. If it writes others, it waits (ggl_sched_may_write). */
#include <string.h>

#include "ggl/internal/graph.h"
#include "sched_impl.h"

/* Notes for each store which of the n nodes, of segment i, write it and read it. */
static void note_use(size_t *writer, size_t *reader, ggl_tensor *const *node, size_t n, size_t i) {
    for (size_t k = 0; k < n; k++) {
        const ggl_tensor *t = node[k], *cache = t->op == GGL_OP_ATTEND ? t->src[1] : NULL;
        for (int part = 0; part < 2; part++) {
            if (t->store[part])
                writer[t->store[part]->id] = reader[t->store[part]->id] = i;
            if (cache && cache->store[part] && reader[cache->store[part]->id] < i)
                reader[cache->store[part]->id] = i;
        }
        if (t->body)
            note_use(writer, reader, t->body->node, (size_t)t->body->n_node, i);
    }
}

ggl_status ggl_sched_find_readers(ggl_sched *s, ggl_error *err) {
    const size_t n = (size_t)ggl_graph_n_stores(s->g);
    size_t *writer = ggl_calloc(n, sizeof *writer), *reader = ggl_calloc(n, sizeof *reader);
    const bool ok = writer && reader;
    for (size_t i = 0; i < s->n_segs && ok; i++) {
        s->seg[i].read_until = i;
        note_use(writer, reader, s->seg[i].nodes.at, s->seg[i].nodes.n, i);
    }
    for (size_t k = 0; k < n && ok && s->n_segs > 0; k++) {
        segment *from = &s->seg[writer[k]];
        from->read_until = reader[k] > from->read_until ? reader[k] : from->read_until;
    }
    ggl_free(writer);
    ggl_free(reader);
    return ok ? GGL_OK : ggl_sched_no_memory(err);
}

/* Sets lowest and highest position of each slot in the flight's batch. */
static void note_positions(const ggl_sched *s, flight *f, const int32_t *pos, const int32_t *slot) {
    const int64_t n_slots = ggl_graph_get_params(s->g)->n_slots;
    for (int64_t k = 0; k < n_slots; k++)
        f->seen[k] = (pos_range){INT32_MAX, -1};
    for (int64_t i = 0; i < f->n; i++) {
        pos_range *r = &f->seen[slot[i]];
        r->low = pos[i] < r->low ? pos[i] : r->low;
        r->high = pos[i] > r->high ? pos[i] : r->high;
    }
}

/* True if the flight may write a row that one before it can see: that of a position that it has reached, or,
 * in a ring, one that takes the place of an earlier position. */
static bool meets(const ggl_sched *s, const flight *f, const flight *before) {
    const int64_t n_slots = ggl_graph_get_params(s->g)->n_slots;
    if (f->n_pages_set != before->n_pages_set) /* a page may be another slot's now */
        return true;
    for (int64_t k = 0; k < n_slots; k++) {
        const pos_range a = before->seen[k], b = f->seen[k];
        if (a.high >= 0 && b.high >= 0 &&
            (b.low <= a.high || b.high - (int64_t)a.low >= s->n_batch))
            return true;
    }
    return false;
}

void ggl_sched_note_places(ggl_sched *s, flight *f) {
    const int32_t *pos = ggl_sched_lane_input(s, f->lane, s->g->pos),
                  *slot = ggl_sched_lane_input(s, f->lane, s->g->slot);
    if (s->n_lanes == 1 || !pos || !slot)
        return;
    note_positions(s, f, pos, slot);
    f->n_pages_set = s->n_pages_set;
    f->rewrites = false;
    for (int i = 0; i < s->n_flights; i++)
        f->rewrites |= !s->order[i]->is_over && meets(s, f, s->order[i]);
}

bool ggl_sched_may_write(const ggl_sched *s, int i) {
    const flight *f = s->order[i];
    const size_t until = s->seg[f->next].read_until;
    if (!f->rewrites || f->is_started || until == f->next)
        return true;
    for (int k = 0; k < i; k++) {
        const flight *before = s->order[k];
        const size_t end = ggl_sched_n_passed(s, before), last = until < end ? until : end - 1;
        if (!before->is_over &&
            (before->next < last || (before->next == last && !before->is_started)))
            return false;
    }
    return true;
}
