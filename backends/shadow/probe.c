#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "shadow.h"

size_t ggl_shadow_size(const ggl_tensor *t, int64_t n) {
    size_t size;
    return ggl_value_bytes(t, n, &size) ? size : 0; /* it fits: the scheduler has placed it */
}

ggl_status ggl_shadow_each_store(const ggl_tensor *node, void *ctx,
                                 ggl_status (*f)(void *ctx, const ggl_store *s, ggl_error *err),
                                 ggl_error *err) {
    const ggl_tensor *read = ggl_cache_of(node), *at = read ? read : node;
    ggl_status st = GGL_OK;
    for (int k = 0; k < 2 && st == GGL_OK; k++)
        if (at->store[k])
            st = f(ctx, at->store[k], err);
    for (int i = 0; node->body && i < node->body->n_node && st == GGL_OK; i++)
        st = ggl_shadow_each_store(node->body->node[i], ctx, f, err);
    return st;
}

/* --- places ----------------------------------------------------------------------------------- */

static bool place(probe *r, const ggl_tensor *t) {
    if (r->loc[t->id].region >= 0)
        return true;
    r->loc[t->id] = (ggl_loc){.region = GGL_REGION_ARENA, .offset = r->end};
    return ggl_size_add(r->end, ggl_shadow_size(t, r->p->s.n_max), &r->end) &&
           ggl_size_align(r->end, 64, &r->end);
}

static bool place_operands(probe *r, const ggl_tensor *node) {
    for (int k = 0; k < ggl_n_reads(node); k++) {
        const ggl_tensor *x = ggl_read(node, k);
        if (x && x->computed && x->op != GGL_OP_CACHE && !place(r, x))
            return false;
    }
    return true;
}

/* Behind the first `base` bytes of the arena, which are for the plan. */
static ggl_status compile(probe *r, size_t base, ggl_error *err) {
    size_t n_ids = (size_t)ggl_graph_n_ids(r->p->s.graph);
    ggl_segment s = r->p->s;
    memcpy(r->loc, s.loc, n_ids * sizeof *s.loc);
    r->end = base;
    for (int i = 0; i < r->n_nodes; i++)
        if (!place_operands(r, r->node[i]) || !place(r, r->node[i]))
            return ggl_fail(err, GGL_LIMIT, "the values to check do not fit into memory");
    s.loc = r->loc;
    return r->b->w.inner->v->compile(r->b->w.inner, &s, &r->plan, err);
}

static void free_plan(probe *r) {
    if (r->plan)
        r->b->w.inner->v->plan_free(r->b->w.inner, r->plan);
    r->plan = NULL;
}

/* How large the plan's part is shows only afterwards; if it was too small, there is another try. */
static ggl_status make_plan(probe *r, ggl_error *err) {
    size_t base = 0;
    ggl_status st = ggl_size_align(r->p->base.arena_size, 64, &base)
                        ? compile(r, base, err)
                        : ggl_fail(err, GGL_LIMIT, "the arena is too large");
    for (int tries = 0; st == GGL_OK && r->plan->arena_size > base && tries < 4; tries++) {
        if (!ggl_size_align(r->plan->arena_size, 64, &base))
            return ggl_fail(err, GGL_LIMIT, "the arena is too large");
        free_plan(r);
        st = compile(r, base, err);
    }
    if (st == GGL_OK && r->plan->arena_size > base)
        st = ggl_fail(err, GGL_LIMIT, "the arena grows with every try");
    return st;
}

/* --- memory ----------------------------------------------------------------------------------- */

static ggl_status take_arena(probe *r, ggl_error *err) {
    shadow *b = r->b;
    ggl_backend *inner = b->w.inner;
    if (b->arena_size >= r->end)
        return GGL_OK;
    if (b->arena)
        inner->v->free(inner, b->arena);
    b->arena = NULL;
    b->arena_size = 0;
    ggl_status st = inner->v->alloc(inner, GGL_REGION_ARENA, r->end, NULL, &b->arena, err);
    b->arena_size = st == GGL_OK ? r->end : 0;
    return st;
}

static ggl_status init(probe *r, ggl_buffer *const *region, ggl_error *err) {
    size_t n_regions = (size_t)r->p->n_regions;
    r->loc = ggl_calloc((size_t)ggl_graph_n_ids(r->p->s.graph), sizeof *r->loc);
    r->region = ggl_calloc(n_regions, sizeof *r->region);
    if (!r->loc || !r->region)
        return ggl_fail(err, GGL_NOMEM, "out of memory to check a run");
    memcpy(r->region, region, n_regions * sizeof *r->region);
    ggl_status st = make_plan(r, err);
    if (st == GGL_OK)
        st = take_arena(r, err);
    r->region[GGL_REGION_ARENA] = r->b->arena;
    return st;
}

ggl_status ggl_probe_init(probe *r, ggl_buffer *const *region, ggl_error *err) {
    ggl_status st = init(r, region, err);
    if (st != GGL_OK)
        ggl_probe_fini(r);
    return st;
}

void ggl_probe_fini(probe *r) {
    free_plan(r);
    for (size_t i = 0; i < r->n_kept; i++)
        ggl_free(r->kept[i].data);
    ggl_free(r->kept);
    ggl_free(r->loc);
    ggl_free(r->region);
    r->kept = NULL;
    r->loc = NULL;
    r->region = NULL;
    r->n_kept = 0;
}

ggl_status ggl_probe_read(const probe *r, const ggl_tensor *t, void *to, ggl_error *err) {
    ggl_backend *inner = r->b->w.inner;
    ggl_loc at = r->loc[t->id];
    return inner->v->download(inner, r->region[at.region], at.offset, to, ggl_shadow_size(t, r->n),
                              err);
}

/* --- what slots keep -------------------------------------------------------------------------- */

typedef struct keeping {
    probe *r;
    bool states;          /* or rows */
    const int32_t *slots; /* of the batch */
    const int32_t *table; /* the input "page"; NULL if none */
    int64_t row;          /* length of its rows */
    int64_t n_pos;        /* positions that the batch may see */
    ggl_rows rows;        /* whose slots these are */
    bool is_apart;        /* slots for a stage's rows hold no others */
} keeping;

/* Keeps one part of a slot: a state, or pages that lie together. */
static ggl_status keep_part(probe *r, kept k, ggl_error *err) {
    ggl_backend *inner = r->b->w.inner;
    for (size_t i = 0; i < r->n_kept; i++)
        if (r->kept[i].store == k.store && r->kept[i].slot == k.slot && r->kept[i].first == k.first)
            return GGL_OK;
    if (!ggl_grow(&r->kept, &r->cap_kept, r->n_kept + 1, sizeof *r->kept) ||
        !(k.data = ggl_calloc(k.size, 1)))
        return ggl_fail(err, GGL_NOMEM, "out of memory to check a run");
    r->kept[r->n_kept++] = k;
    const ggl_loc at = r->p->s.store_loc[k.store->id];
    return inner->v->download(inner, r->region[at.region], at.offset + k.at, k.data, k.size, err);
}

static ggl_status keep_slot(const keeping *x, const ggl_store *s, int64_t slot, ggl_error *err) {
    const int64_t n_pos = x->n_pos < s->n_pos ? x->n_pos : s->n_pos;
    if (slot < 0 || slot >= x->r->p->s.n_slots)
        return ggl_fail(err, GGL_USAGE, "there is no such slot");
    ggl_status st = GGL_OK;
    for (int64_t pos = 0; pos < n_pos && st == GGL_OK;) {
        kept k = {.store = s, .slot = slot, .first = pos};
        k.size = ggl_store_run(s, x->r->p->s.store_loc[s->id].step,
                               x->table ? x->table + slot * x->row : NULL, slot, pos, n_pos, &k.at);
        st = keep_part(x->r, k, err);
        pos += s->page_size ? (int64_t)(k.size / s->page_size) * GGL_PAGE : n_pos;
    }
    return st;
}

static ggl_status keep_store(void *ctx, const ggl_store *s, ggl_error *err) {
    const keeping *k = ctx;
    ggl_status st = GGL_OK;
    if ((s->kind == GGL_STORE_STATE) != k->states ||
        (k->is_apart && s->of_stage != (k->rows != GGL_ROWS_MAIN)))
        return GGL_OK;
    for (int64_t i = 0; i < k->r->n && st == GGL_OK; i++)
        if (i == 0 || k->slots[i] != k->slots[i - 1])
            st = keep_slot(k, s, k->slots[i], err);
    return st;
}

/* True if the node, or one of its body, reads x. */
static bool reads(const ggl_tensor *node, const ggl_tensor *x) {
    bool is = false;
    for (int k = 0; k < ggl_n_reads(node) && !is; k++)
        is = ggl_read(node, k) == x;
    for (int k = 0; k < node->n_src && !is; k++)
        is = node->src[k] == x;
    for (int i = 0; node->body && i < node->body->n_node && !is; i++)
        is = reads(node->body->node[i], x);
    return is;
}

/* Reads an input of the batch, if the nodes read it: others hold what an earlier run left. */
static ggl_status read_input(const probe *r, const ggl_tensor *t, int32_t *to, bool *is_read,
                             ggl_error *err) {
    *is_read = false;
    for (int i = 0; i < r->n_nodes && t && r->loc[t->id].region >= 0 && !*is_read; i++)
        *is_read = reads(r->node[i], t);
    return *is_read ? ggl_probe_read(r, t, to, err) : GGL_OK;
}

static ggl_status read_named(const probe *r, ggl_rows rows, const char *name, int32_t *to,
                             bool *is_read, ggl_error *err) {
    static const char *const before[GGL_ROWS_COUNT] = {"", "stage.", "read."};
    char full[32];
    snprintf(full, sizeof full, "%s%s", before[rows], name);
    return read_input(r, ggl_graph_find_input(r->p->s.graph, full), to, is_read, err);
}

/* Sets k->table, which the caller frees, if the graph has one. */
static ggl_status read_table(const probe *r, keeping *k, int32_t **table, ggl_error *err) {
    const ggl_tensor *t = ggl_graph_find_input(r->p->s.graph, "page");
    if (ggl_graph_n_pages(r->p->s.graph) == 0)
        return GGL_OK;
    *table = ggl_calloc((size_t)ggl_count(t), sizeof **table);
    k->table = *table;
    k->row = t->ne[0];
    if (*table && r->loc[t->id].region < 0)
        return GGL_OK;
    return *table ? ggl_probe_read(r, t, *table, err)
                  : ggl_fail(err, GGL_NOMEM, "out of memory to check a run");
}

/* Keeps states as they were before the run, or rows as they are after it: a run adds rows to those
 * that attend reads, and changes none. Of one kind of rows (ggl_rows), whose slots the nodes may read: what one of them keeps is more
 * than it needs, if other nodes see more. */
static ggl_status keep_seen(probe *r, keeping *k, ggl_rows rows, int32_t *slots, int32_t *pos,
                            int32_t *end, ggl_error *err) {
    bool has_slots = false, has_pos = false, has_end = false;
    ggl_status st = read_named(r, rows, "slot", slots, &has_slots, err);
    if (st == GGL_OK)
        st = read_named(r, rows, "pos", pos, &has_pos, err);
    if (st == GGL_OK)
        st = read_named(r, rows, "end", end, &has_end, err);
    if (st != GGL_OK || !has_slots)
        return st;
    k->slots = slots;
    k->rows = rows;
    k->is_apart = ggl_graph_get_params(r->p->s.graph)->n_stage_slots > 0;
    k->n_pos = 1;
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t last =
            ggl_visible_rows(has_pos ? pos[i] : 0, slots[i], 0, has_end ? end[i] : 0).end;
        k->n_pos = last > k->n_pos ? last : k->n_pos;
    }
    for (int i = 0; i < r->n_nodes && st == GGL_OK; i++)
        st = ggl_shadow_each_store(r->node[i], k, keep_store, err);
    return st;
}

static ggl_status keep_stores(probe *r, bool states, ggl_error *err) {
    const size_t n = (size_t)r->n;
    int32_t *in = ggl_calloc(3 * n, sizeof *in), *table = NULL;
    if (!in)
        return ggl_fail(err, GGL_NOMEM, "out of memory to check a run");
    keeping k = {.r = r, .states = states};
    ggl_status st = read_table(r, &k, &table, err);
    for (int rows = 0; rows < GGL_ROWS_COUNT && st == GGL_OK; rows++)
        st = keep_seen(r, &k, (ggl_rows)rows, in, in + n, in + 2 * n, err);
    ggl_free(in);
    ggl_free(table);
    return st;
}

/* The status is that of the inner backend's own run; what could not be fetched for looking at it is
 * no failure of that. */
ggl_status ggl_probe_run(probe *r, ggl_error *err) {
    ggl_backend *inner = r->b->w.inner;
    ggl_status seen = keep_stores(r, true, &r->why);
    ggl_status st = ggl_wrap_run(&r->b->w.base, r->plan, r->region, r->n, err);
    if (st == GGL_OK)
        st = inner->v->wait(inner, err);
    if (st == GGL_OK && seen == GGL_OK)
        seen = keep_stores(r, false, &r->why);
    r->is_blind = seen != GGL_OK;
    return st;
}
