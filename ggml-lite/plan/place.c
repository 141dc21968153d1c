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
        while (b->at[last].kind != GGL_STEP_END)
            last++;
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

static bool is_form(const builder *b, const ggl_tensor *t) {
    return (size_t)t->id >= b->n_ids;
}

static offsets *list_of(const builder *b, offsets *lists, const ggl_tensor *t) {
    return &lists[is_form(b, t)];
}

/* Moves forms behind the other values, and sets *arena_size. Returns false if it overflows. */
static bool put_forms_behind(builder *b, const offsets *lists, size_t *arena_size) {
    size_t begin;
    if (!ggl_size_align(lists[0].end, 64, &begin) || !ggl_size_add(begin, lists[1].end, arena_size))
        return false;
    for (size_t id = b->n_ids; id < b->n_values; id++)
        b->root[id].loc.offset += begin;
    return true;
}

/* Gives each private root an offset in the arena. Walks the steps in order: takes memory where a
 * root is written, and returns it after the last wave that uses the root.
 *
 * Forms get memory behind that of all other values. Rows of a form differ in size from those of
 * values, so if they shared memory, a backend could not take a part of the batch through several
 * steps, one of which makes a form, before it takes the next part. */
static ggl_status place_roots(builder *b, size_t *arena_size, ggl_error *err) {
    offsets lists[2] = {{0}}; /* of values and of forms; offsets of the latter begin at 0, too */
    ggl_status s = GGL_OK;
    /* dies[i]: the roots whose memory is free after step i, linked through next[] (by tensor id) */
    const ggl_tensor **dies = ggl_calloc(b->n + 1, sizeof *dies);
    const ggl_tensor **next = ggl_calloc(b->n_values + 1, sizeof *next);
    bool *done = ggl_calloc(b->n_values + 1, sizeof *done);
    if (!dies || !next || !done)
        s = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    for (size_t i = 0; i < b->n && s == GGL_OK; i++) {
        const ggl_tensor *t = b->at[i].node;
        bool writes = ggl_plan_has_value(&b->at[i]) || b->at[i].kind == GGL_STEP_LOOP;
        root *r = &b->root[t->id];
        if (writes && !r->placed && !r->fused && !done[t->id] && b->value[t->id].root == t) {
            done[t->id] = true;
            root *over = b->at[i].kind == GGL_STEP_NODE ? place_of_source(b, (int)i) : NULL;
            if (over) {
                r->loc = over->loc;
                over->taken_over = true;
            } else if (!ggl_offsets_take(list_of(b, lists, t), r->size, &r->loc.offset)) {
                s = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
            }
            int last = last_of_wave(b, r->last); /* steps of one wave may run at the same time */
            next[t->id] = dies[last];
            dies[last] = t;
        }
        for (const ggl_tensor *d = s == GGL_OK ? dies[i] : NULL; d; d = next[d->id])
            if (!b->root[d->id].taken_over &&
                !ggl_offsets_give(list_of(b, lists, d), b->root[d->id].loc.offset,
                                  b->root[d->id].size))
                s = ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    }
    if (s == GGL_OK && !put_forms_behind(b, lists, arena_size))
        s = ggl_fail(err, GGL_LIMIT, "the values of the plan do not fit into memory");
    ggl_offsets_fini(&lists[0]);
    ggl_offsets_fini(&lists[1]);
    ggl_free(dies);
    ggl_free(next);
    ggl_free(done);
    return s;
}

ggl_status ggl_plan_place(builder *b, size_t *arena_size, ggl_error *err) {
    if (b->too_large)
        return ggl_fail(err, GGL_LIMIT, "a value of the plan does not fit into memory");
    find_lifetimes(b);
    return place_roots(b, arena_size, err);
}
