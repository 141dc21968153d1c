/* Keeps flights from writing rows that flights before them still read. A store is written in one segment,
 * but attention may read it in a later one: in the tail, or after a segment of another backend. A flight
 * that is passed on while an earlier one has not come that far may write only rows that the earlier one
 * does not see: those of later positions. If it writes others, it waits (ggl_sched_may_write). */
#include "ggl/internal/graph.h"
#include "flight.h"

/* Notes for each store which of the n nodes, of segment i, write it and read it. */
static void note_use(size_t *writer, size_t *reader, ggl_tensor *const *node, size_t n, size_t i) {
    for (size_t k = 0; k < n; k++) {
        const ggl_tensor *t = node[k], *cache = ggl_cache_of(t);
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

ggl_status ggl_sched_find_readers(schedule *s, ggl_error *err) {
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

void ggl_sched_note_rewrites(const schedule *s, const flights *all, flight *f) {
    f->rewrites = false;
    for (int i = 0; i < all->n; i++)
        f->rewrites |=
            !all->order[i]->is_over && ggl_row_use_meets(&f->rows, &all->order[i]->rows, s->g);
}

bool ggl_sched_may_write(const schedule *s, const flights *all, int i) {
    const flight *f = all->order[i];
    const size_t until = s->seg[f->next].read_until;
    if (!f->rewrites || f->is_started || until == f->next)
        return true;
    for (int k = 0; k < i; k++) {
        const flight *before = all->order[k];
        const size_t end = ggl_sched_n_passed(s, before), last = until < end ? until : end - 1;
        if (!before->is_over &&
            (before->next < last || (before->next == last && !before->is_started)))
            return false;
    }
    return true;
}
