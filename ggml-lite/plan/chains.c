/* Chains: steps that a backend runs as one, each of which reads the result of the one before it. A
 * result that nothing else reads gets no memory. In a loose chain, a step reads results of any steps before it. */
#include <string.h>

#include "program_impl.h"

/* Most links of a chain, and of a loose one; in a loose chain, the most steps from a link to the next. */
enum { MOST_STRICT = 7, MOST_LINKS = 12, WINDOW = 32 };

/* The readers of each step's result, by the id of its root. */
typedef struct readers {
    size_t *count, *first; /* of reads; index of the item with the first one */
} readers;

/* A chain that is being looked for: indices of items, with the links set. */
typedef struct candidate {
    item link[MOST_LINKS];
    size_t at[MOST_LINKS];
    bool kept[MOST_LINKS]; /* other steps, or other segments, read the result */
    int n;
} candidate;

static bool find_readers(builder *b, readers *r) {
    const ggl_tensor *src[GGL_MAX_SRC];
    r->count = ggl_calloc(b->n_values, sizeof *r->count);
    r->first = ggl_calloc(b->n_values, sizeof *r->first);
    if (!r->count || !r->first)
        return false;
    for (size_t i = 0; i < b->n; i++)
        for (int n = ggl_plan_sources(&b->at[i], src), k = 0; k < n; k++)
            if (src[k]) {
                const int id = ggl_plan_source_value(b, &b->at[i], src[k])->root->id;
                if (r->count[id]++ == 0)
                    r->first[id] = i;
            }
    return true;
}

/* True if the item may be part of a chain at all. */
static bool can_be_link(const item *it) {
    return (it->kind == GGL_STEP_NODE || it->kind == GGL_STEP_FORM) && !it->copy_of &&
           !it->in_loop && it->n_links == 0;
}

/* True if the item reads t, whose elements are at `of`, through u at v: in its own shape, or, if the item makes a
 * form, in another one, both without gaps. */
static bool is_whole(const item *it, const ggl_tensor *t, const value *of, const ggl_tensor *u,
                     const value *v) {
    size_t nb[GGL_MAX_DIMS];
    if (v->offset != of->offset || ggl_is_batched(u) != ggl_is_batched(t))
        return false;
    if (memcmp(v->nb, of->nb, sizeof v->nb) == 0 && memcmp(u->ne, t->ne, sizeof t->ne) == 0)
        return true;
    ggl_plan_dense(nb, of->type, t->ne);
    if (it->kind != GGL_STEP_FORM || memcmp(of->nb, nb, sizeof nb) != 0)
        return false;
    ggl_plan_dense(nb, v->type, u->ne);
    return memcmp(v->nb, nb, sizeof nb) == 0 &&
           ggl_extents(u->ne, 0, GGL_MAX_DIMS, 1) == ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1);
}

/* Returns the only source of the item that is the whole of t; -1: it reads t otherwise, or twice. */
static int source_that_is(builder *b, const item *it, const ggl_tensor *t) {
    const ggl_tensor *src[GGL_MAX_SRC];
    const value *of = ggl_plan_value_of(b, t);
    int link = -1;
    for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++) {
        const value *v = src[k] ? ggl_plan_value_of(b, src[k]) : NULL;
        if (!v || v->root != of->root)
            continue;
        if (link >= 0 || !is_whole(it, t, of, src[k], v))
            return -1;
        link = k;
    }
    return link;
}

/* True if the item computes elements of t's shape, or has no such result at all. */
static bool has_shape_of(const item *it, const ggl_tensor *t) {
    return it->kind == GGL_STEP_FORM || !ggl_plan_has_value(it) ||
           memcmp(it->node->ne, t->ne, sizeof t->ne) == 0;
}

/* True if the item reads the result of a link before the last one. As these run as one step, elements
 * of it that other parts of the step compute may not be written yet. */
static bool reads_earlier(builder *b, const candidate *c, const item *it) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (int n = ggl_plan_sources(it, src), k = 0; k < n; k++)
        for (int e = 0; e + 1 < c->n; e++)
            if (src[k] && ggl_plan_source_value(b, it, src[k])->root == c->link[e].node)
                return true;
    return false;
}

/* True if the links cannot move to item `at`: past the end of a loop, or past a use of stores, if a link uses them, too. */
static bool is_cut_off(const builder *b, const candidate *c, size_t at) {
    bool uses = false;
    for (size_t i = c->at[0], e = 0; i < at; i++) {
        const bool link = e < (size_t)c->n && i == c->at[e];
        const bool store = ggl_plan_uses_stores(&b->at[i]);
        if (b->at[i].kind == GGL_STEP_END || (store && !link && uses))
            return true;
        uses = uses || (store && link);
        e += link;
    }
    return false;
}

/* Adds the first reader of the last link's result, if it can follow. Returns false if not. */
static bool extend(builder *b, const readers *r, candidate *c) {
    const item *last = &c->link[c->n - 1];
    const ggl_tensor *t = last->node;
    if (c->n == MOST_STRICT || last->kind == GGL_STEP_FORM || !ggl_plan_has_value(last) ||
        b->value[t->id].root != t || r->count[t->id] == 0)
        return false;
    const size_t at = r->first[t->id];
    const item *next = &b->at[at];
    if (at <= c->at[c->n - 1] || !can_be_link(next) || !has_shape_of(next, t) ||
        is_cut_off(b, c, at))
        return false;
    const int link = source_that_is(b, next, t);
    if (link < 0 || reads_earlier(b, c, next))
        return false;
    c->kept[c->n - 1] = r->count[t->id] > 1 || b->root[t->id].placed;
    c->link[c->n] = *next;
    c->link[c->n].link = link + 1;
    c->at[c->n++] = at;
    return true;
}

/* True if a step between the links, which all move to the place of the last one, reads a result. */
static bool is_read_between(builder *b, const candidate *c) {
    const ggl_tensor *src[GGL_MAX_SRC];
    for (int e = 0, next = 0; e + 1 < c->n; e++, next = 0)
        for (size_t i = c->at[e] + 1; c->kept[e] && i < c->at[c->n - 1]; i++) {
            while (next < c->n && c->at[next] < i)
                next++;
            if (c->at[next] == i)
                continue;
            for (int n = ggl_plan_sources(&b->at[i], src), k = 0; k < n; k++)
                if (src[k] && ggl_plan_source_value(b, &b->at[i], src[k])->root == c->link[e].node)
                    return true;
        }
    return false;
}

/* Asks the backend how many of the candidate's links it has as one step, and cuts the rest off.
 * Returns whether a chain remains. */
static bool ask(builder *b, candidate *c) {
    ggl_step step[MOST_LINKS];
    for (int e = 0; e < c->n; e++) {
        step[e] = (ggl_step){0};
        ggl_plan_make_step(b, &c->link[e], &step[e]);
        if (e + 1 < c->n && !c->kept[e])
            step[e].dst.region = -1;
    }
    c->n = b->p->chain(b->p->backend, step, c->n);
    return c->n > 1 && !is_read_between(b, c);
}

/* Sets it->hidden to the sources that are results of links. Returns false if it reads a part of one, or reads one in another shape. */
static bool hide_links(builder *b, const candidate *c, item *it) {
    const ggl_tensor *src[GGL_MAX_SRC];
    const int n = ggl_plan_sources(it, src);
    unsigned hidden = 0;
    for (int k = 0; k < n; k++)
        for (int e = 0; e < c->n && src[k]; e++) {
            const ggl_tensor *t = c->link[e].node;
            const value *v = ggl_plan_source_value(b, it, src[k]);
            if (v->root != t)
                continue;
            if (!is_whole(it, t, &b->value[t->id], src[k], v))
                return false;
            hidden |= 1u << k;
        }
    it->hidden = hidden;
    return true;
}

/* Adds the next step that reads a link's result, if it can follow in a loose chain. Returns false if not. */
static bool extend_loosely(builder *b, candidate *c) {
    const item *last = &c->link[c->n - 1];
    if (c->n == MOST_LINKS || !ggl_plan_has_value(last) ||
        b->value[last->node->id].root != last->node)
        return false;
    const size_t first = c->at[c->n - 1] + 1;
    for (size_t at = first; at < b->n && at < first + WINDOW; at++) {
        item next = b->at[at];
        if (!hide_links(b, c, &next))
            return false;
        if (next.hidden == 0)
            continue;
        if (!can_be_link(&next) || next.kind == GGL_STEP_FORM || is_cut_off(b, c, at))
            return false;
        c->link[c->n] = next;
        c->at[c->n++] = at;
        return true;
    }
    return false;
}

/* Sets kept[] of a loose chain: to whether a step that is not in it reads the result. */
static void find_kept(builder *b, const readers *r, candidate *c) {
    size_t reads[MOST_LINKS] = {0};
    const ggl_tensor *src[GGL_MAX_SRC];
    for (int e = 0; e < c->n; e++) {
        item it = c->link[e];
        it.hidden = 0;
        for (int n = ggl_plan_sources(&it, src), k = 0; k < n; k++)
            for (int f = 0; f < e && c->link[e].hidden >> k & 1; f++)
                reads[f] += ggl_plan_source_value(b, &it, src[k])->root == c->link[f].node;
    }
    for (int e = 0; e < c->n; e++) {
        const int id = c->link[e].node->id;
        c->kept[e] = r->count[id] > reads[e] || b->root[id].placed;
    }
}

/* Asks the backend how many links of a loose chain it has as one step. If these are fewer, results that the others read
 * are kept, so it is asked again. Returns whether a chain remains. */
static bool ask_loosely(builder *b, const readers *r, candidate *c) {
    ggl_step step[MOST_LINKS];
    for (int n = 0; c->n > 1 && n != c->n;) {
        n = c->n;
        find_kept(b, r, c);
        for (int e = 0; e < n; e++) {
            step[e] = (ggl_step){0};
            ggl_plan_make_step(b, &c->link[e], &step[e]);
            if (e + 1 < n && !c->kept[e])
                step[e].dst.region = -1;
        }
        c->n = b->p->loose_chain(b->p->backend, step, n);
    }
    return c->n > 1; /* no step between the links reads a result: it would be a link */
}

/* Looks for a chain that begins with item i: a strict one, or else a loose one. */
static bool find(builder *b, const readers *r, size_t i, candidate *c) {
    *c = (candidate){.link = {b->at[i]}, .at = {i}, .n = 1};
    if (!can_be_link(&c->link[0]) || c->link[0].kind == GGL_STEP_FORM)
        return false;
    while (b->p->chain && extend(b, r, c))
        ;
    if (c->n > 1 && ask(b, c))
        return true;
    c->n = 1;
    while (b->p->loose_chain && extend_loosely(b, c))
        ;
    return c->n > 1 && ask_loosely(b, r, c);
}

/* Marks the items of a chain. */
static void mark(builder *b, const candidate *c) {
    for (int e = 0; e < c->n; e++) {
        item *it = &b->at[c->at[e]];
        *it = c->link[e];
        it->nth = e;
        it->n_links = c->n;
        it->before = e > 0 ? c->at[e - 1] : 0;
        if (e + 1 < c->n && !c->kept[e]) {
            b->root[it->node->id].fused = true;
            b->root[it->node->id].loc.region = -1;
        }
    }
}

/* Moves the links of each chain to the place of the last one. */
static bool gather(builder *b) {
    item *to = ggl_calloc(b->n + 1, sizeof *to);
    size_t n = 0;
    if (!to)
        return false;
    for (size_t i = 0; i < b->n; i++) {
        const item *it = &b->at[i];
        if (it->nth + 1 < it->n_links)
            continue;
        n += (size_t)it->nth;
        for (size_t at = i, e = 0; e <= (size_t)it->nth; at = b->at[at].before, e++)
            to[n - e] = b->at[at];
        n++;
    }
    ggl_free(b->at);
    b->at = to;
    b->cap = b->n + 1;
    return true;
}

bool ggl_plan_find_chains(builder *b) {
    readers r = {0};
    candidate c;
    if (!b->p->chain && !b->p->loose_chain)
        return true;
    bool ok = find_readers(b, &r);
    for (size_t i = 0; i < b->n && ok; i++)
        if (find(b, &r, i, &c))
            mark(b, &c);
    ggl_free(r.count);
    ggl_free(r.first);
    return ok && gather(b);
}
