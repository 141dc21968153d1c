/* Places private values in the arena, according to their lifetimes. */
#include <string.h>

#include "offsets.h"
#include "program_impl.h"

/* Extends the lifetime of v's root to step i, or, if step i is in a loop and the root is outside,
 * to the loop's end. */
static void read_at(builder *b, const value *v, int i) {
    root *r = &b->root[v->root->id];
    int last = i;
    if (b->at[i].in_loop && !r->in_loop) /* the next turn reads it again */
        last = ggl_plan_end_of_loop(b, i);
    if (last > r->last)
        r->last = last;
}

/* Returns the indices of the first and the last link of item i's chain; i itself if it is in none. */
static int first_link(const builder *b, int i) {
    return i - b->at[i].nth;
}

static int last_link(const builder *b, int i) {
    return b->at[i].n_links > 0 ? first_link(b, i) + b->at[i].n_links - 1 : i;
}

/* Finds the last step that uses each root, and sets root.last to it. A chain is one step. */
static void find_lifetimes(builder *b) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (size_t i = 0; i < b->n; i++) {
        const item *it = &b->at[i];
        const int at = last_link(b, (int)i);
        for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++)
            if (src[k])
                read_at(b, ggl_plan_source_value(b, it, src[k]), at);
        if (ggl_plan_has_value(it))
            read_at(b, ggl_plan_result_of(b, it), at);
    }
}

/* Returns the index of the last step in the wave of step i; i itself inside a loop. */
static int last_of_wave(const builder *b, int i) {
    while (!b->at[i].in_loop && i + 1 < (int)b->n && b->at[i + 1].wave == b->at[i].wave)
        i++;
    return i;
}

/* True if the item reads elements of the root `of`. */
static bool reads_root(builder *b, const item *it, const ggl_tensor *of) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++)
        if (src[k] && ggl_plan_source_value(b, it, src[k])->root == of)
            return true;
    return false;
}

/* True if elements of item i's result can be written where the source's were: the backend must
 * allow it (params.in_place). */
static bool can_write_over(const builder *b, int i) {
    const item *it = &b->at[i];
    return it->kind == GGL_STEP_NODE && !it->copy_of && !it->in_loop && b->p->in_place &&
           b->p->in_place(it->node);
}

/* True if the links first .. last of the chain of step i, and no others, read the root v->root,
 * and read it whole, in the shape and with the strides of the result of step i. */
static bool is_read_whole(builder *b, const value *v, int i, int first, int last) {
    const ggl_tensor *src[GGL_MAX_SRC], *t = b->at[i].node;
    for (int e = first_link(b, i); e <= last_link(b, i); e++)
        for (int n = ggl_plan_sources(&b->at[e], src), k = 0; k < n; k++) {
            const value *u = src[k] ? ggl_plan_value_of(b, src[k]) : NULL;
            if (u && u->root == v->root &&
                (e < first || e > last || u->offset != 0 ||
                 memcmp(u->nb, b->value[t->id].nb, sizeof u->nb) != 0 ||
                 memcmp(src[k]->ne, t->ne, sizeof t->ne) != 0))
                return false;
        }
    return true;
}

/* Returns the root over which step i may write its result, if it is that of source k of step e:
 * step i itself, or an earlier link of its chain, from `first` on. Else NULL. No later step, and
 * none of the same wave, may read the source. */
static root *place_of(builder *b, int i, int first, const ggl_tensor *src) {
    const item *it = &b->at[i];
    const value *v = src ? ggl_plan_value_of(b, src) : NULL, *to = &b->value[it->node->id];
    root *r = v ? &b->root[v->root->id] : NULL;
    bool fits = r && !r->placed && !r->in_loop && !r->taken_over && r->last == last_link(b, i) &&
                r->size == b->root[it->node->id].size && v->type == to->type &&
                ggl_is_batched(src) == ggl_is_batched(it->node) && is_read_whole(b, v, i, first, i);
    for (int j = first_link(b, i) - 1; j >= 0 && fits && b->at[j].wave == it->wave; j--)
        fits = !reads_root(b, &b->at[j], v->root);
    return fits ? r : NULL;
}

/* Returns the root of a source over which step i may write its result, or NULL. A source of an
 * earlier link of its chain will do if all links from there on can write over their sources. */
static root *place_of_source(builder *b, int i) {
    const ggl_tensor *src[GGL_MAX_SRC];
    int first = i + 1;
    while (first > first_link(b, i) && can_write_over(b, first - 1))
        first--;
    for (int e = i; e >= first; e--)
        for (int n = ggl_plan_sources(&b->at[e], src), k = 0; k < n; k++) {
            root *r = place_of(b, i, first, src[k]);
            if (r)
                return r;
        }
    return NULL;
}

/* Moves forms after the other values, and sets *arena_size. Returns false if it overflows. */
static bool put_forms_behind(builder *b, const offsets *lists, size_t *arena_size) {
    size_t begin;
    if (!ggl_size_align(lists[0].end, 64, &begin) || !ggl_size_add(begin, lists[1].end, arena_size))
        return false;
    for (size_t id = b->n_ids; id < b->n_values; id++)
        b->root[id].loc.offset += b->root[id].is_form ? begin : 0;
    return true;
}

/* What place_roots() works with. */
typedef struct placing {
    offsets lists[2]; /* of values and of forms; offsets of the latter begin at 0, too */
    /* dies[i]: the roots whose memory is free after step i, linked through next[] (by tensor id) */
    const ggl_tensor **dies, **next;
    bool *done; /* by tensor id */
} placing;

/* True if step i writes a private root that has no place yet. */
static bool needs_place(const builder *b, const placing *p, size_t i) {
    const ggl_tensor *t = b->at[i].node;
    const root *r = &b->root[t->id];
    const bool writes = ggl_plan_has_value(&b->at[i]) || b->at[i].kind == GGL_STEP_LOOP;
    return writes && !r->placed && !r->fused && !p->done[t->id] && b->value[t->id].root == t;
}

/* Returns how many steps, from step i on, are placed together: those of the group that it begins. */
static size_t n_together(const builder *b, size_t i) {
    size_t n = 1;
    while (b->at[i].n_members > 1 && i + n < b->n && (b->at[i + n].joined || b->at[i + n].nth > 0))
        n++;
    return n;
}

/* Places the result of step i over a source, or else, if it is a form, by itself; what remains
 * waits. Adds its bytes to *together then. Returns false if out of memory. */
static bool place_result(builder *b, placing *p, size_t i, size_t *together) {
    const ggl_tensor *t = b->at[i].node;
    root *r = &b->root[t->id];
    root *over = b->at[i].kind == GGL_STEP_NODE ? place_of_source(b, (int)i) : NULL;
    const int last = last_of_wave(b, r->last); /* steps of one wave may run at the same time */
    p->done[t->id] = true;
    p->next[t->id] = p->dies[last];
    p->dies[last] = t;
    if (over) {
        r->loc = over->loc;
        over->taken_over = true;
        return true;
    }
    if (r->is_form)
        return ggl_offsets_take(&p->lists[1], r->size, &r->loc.offset);
    r->waits = true;
    r->loc.offset = *together;
    return ggl_size_add(*together, r->size > 0 ? r->size : 1, together) &&
           ggl_size_align(*together, 64, together);
}

/* Places the results of the n steps from step `first` on: those that wait after place_result() one
 * after another. Returns false if out of memory. */
static bool place_together(builder *b, placing *p, size_t first, size_t n) {
    size_t together = 0, at = 0;
    for (size_t i = first; i < first + n; i++)
        if (needs_place(b, p, i) && !place_result(b, p, i, &together))
            return false;
    if (together > 0 && !ggl_offsets_take(&p->lists[0], together, &at))
        return false;
    for (size_t i = first; i < first + n; i++) {
        root *r = &b->root[b->at[i].node->id];
        r->loc.offset += r->waits ? at : 0;
        r->waits = false;
    }
    return true;
}

/* Places a root by itself. Returns false if out of memory. */
static bool place_alone(builder *b, placing *p, const ggl_tensor *t) {
    root *r = &b->root[t->id];
    if (p->done[t->id])
        return true;
    p->done[t->id] = true;
    p->next[t->id] = p->dies[r->last];
    p->dies[r->last] = t;
    return ggl_offsets_take(&p->lists[0], r->size, &r->loc.offset);
}

/* Places the states of both loops of a call that runs in chunks, if they begin at step i, because the turns of the one come between
 * those of the other. Returns false if out of memory. */
static bool place_states(builder *b, placing *p, size_t i) {
    if (b->at[i].kind != GGL_STEP_LOOP)
        return true;
    bool ok = true;
    for (int k = (int)i, end = ggl_plan_end_of_loop(b, k); k < end && ok; k++) {
        const ggl_tensor *room = b->at[k].room;
        ok = !room || place_alone(b, p, room);
    }
    return ok;
}

/* Returns the memory of roots that no step after i uses. Returns false if out of memory. */
static bool give_back(builder *b, placing *p, size_t i) {
    for (const ggl_tensor *t = p->dies[i]; t; t = p->next[t->id]) {
        const root *r = &b->root[t->id];
        if (!r->taken_over && !ggl_offsets_give(&p->lists[r->is_form], r->loc.offset, r->size))
            return false;
    }
    return true;
}

/* Gives each private root an offset in the arena. Walks the steps in order: takes memory where a
 * root is written, and returns it after the last wave that uses the root. Results of a group are
 * placed together.
 *
 * Forms get memory after that of all other values. Rows of a form differ in size from those of
 * values, so if they shared memory, a backend could not take a part of the batch through several
 * steps, one of which makes a form, before it takes the next part. */
static ggl_status place_roots(builder *b, size_t *arena_size, ggl_error *err) {
    placing p = {.dies = ggl_calloc(b->n + 1, sizeof *p.dies),
                 .next = ggl_calloc(b->n_values + 1, sizeof *p.next),
                 .done = ggl_calloc(b->n_values + 1, sizeof *p.done)};
    bool ok = p.dies && p.next && p.done;
    for (size_t i = 0; i < b->n && ok; i++)
        ok = place_states(b, &p, i) && place_together(b, &p, i, n_together(b, i)) &&
             give_back(b, &p, i);
    ggl_status s = ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (ok && !put_forms_behind(b, p.lists, arena_size))
        s = ggl_fail(err, GGL_LIMIT, "the values of the plan do not fit into memory");
    ggl_offsets_fini(&p.lists[0]);
    ggl_offsets_fini(&p.lists[1]);
    ggl_free(p.dies);
    ggl_free(p.next);
    ggl_free(p.done);
    return s;
}

ggl_status ggl_plan_place(builder *b, size_t *arena_size, ggl_error *err) {
    if (b->too_large)
        return ggl_fail(err, GGL_LIMIT, "a value of the plan does not fit into memory");
    find_lifetimes(b);
    return place_roots(b, arena_size, err);
}
