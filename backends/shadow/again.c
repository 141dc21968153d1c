#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/os_thread.h"
#include "shadow.h"

typedef struct again {
    const probe *r;
    ggl_backend *b;
    ggl_tensor *node;
    ggl_tensor **segment; /* the node, after the views of weights that it reads */
    int n_segment, cap_segment;
    ggl_loc *loc;
    ggl_loc *store_loc;
    const ggl_tensor **leaf; /* weights, each a region; and what is in the io region */
    size_t n_leaves, cap_leaves;
    ggl_buffer **region;
    int n_regions;
    size_t io_size, stores_size;
    ggl_plan *plan;
} again;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory to compute a node again");
}

/* --- places ----------------------------------------------------------------------------------- */

static bool provide(again *a, const ggl_tensor *t) {
    if (a->loc[t->id].region >= 0)
        return true;
    if (!ggl_grow(&a->leaf, &a->cap_leaves, a->n_leaves + 1, sizeof *a->leaf))
        return false;
    a->leaf[a->n_leaves++] = t;
    if (t->op == GGL_OP_WEIGHT) {
        a->loc[t->id] = (ggl_loc){.region = a->n_regions++, .offset = 0};
        return true;
    }
    a->loc[t->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = a->io_size};
    return ggl_size_add(a->io_size, ggl_shadow_size(t, a->r->n), &a->io_size) &&
           ggl_size_align(a->io_size, 64, &a->io_size);
}

static bool provide_body(again *a, const ggl_body *body) {
    bool ok = true;
    for (int i = 0; i < body->n_node && ok; i++) {
        const ggl_tensor *t = body->node[i];
        for (int k = 0; k < ggl_n_reads(t) && ok; k++) {
            const ggl_tensor *x = ggl_read(t, k);
            ok = !x || !ggl_is_leaf(x) || provide(a, x);
        }
        ok = ok && (!t->body || provide_body(a, t->body));
    }
    return ok && (!ggl_is_leaf(body->result) || provide(a, body->result));
}

/* All that t reads, and t itself into the segment. */
static bool add(again *a, ggl_tensor *t) {
    for (int k = 0; k < ggl_n_reads(t); k++) {
        ggl_tensor *x = ggl_read(t, k);
        if (!x || x->op == GGL_OP_CACHE)
            continue;
        if (!(!ggl_is_leaf(x) && x->view_of ? add(a, x) : provide(a, x)))
            return false;
    }
    if (t->body && !provide_body(a, t->body))
        return false;
    for (int i = 0; i < a->n_segment; i++)
        if (a->segment[i] == t)
            return true;
    size_t cap = (size_t)a->cap_segment;
    if (!ggl_grow(&a->segment, &cap, (size_t)a->n_segment + 1, sizeof *a->segment))
        return false;
    a->cap_segment = (int)cap;
    a->segment[a->n_segment++] = t;
    return true;
}

static ggl_status add_store(void *ctx, const ggl_store *s, ggl_error *err) {
    again *a = ctx;
    a->store_loc[s->id] = (ggl_loc){GGL_REGION_STORES, a->stores_size, s->page_size};
    return ggl_size_add(a->stores_size, s->size, &a->stores_size) ? GGL_OK : no_memory(err);
}

static ggl_status place_all(again *a, ggl_error *err) {
    const ggl_graph *g = a->r->p->s.graph;
    size_t n_ids = (size_t)ggl_graph_n_ids(g);
    a->loc = ggl_calloc(n_ids, sizeof *a->loc);
    a->store_loc = ggl_calloc((size_t)ggl_graph_n_stores(g), sizeof *a->store_loc);
    if (!a->loc || !a->store_loc)
        return no_memory(err);
    for (size_t i = 0; i < n_ids; i++)
        a->loc[i].region = -1;
    if (!add(a, a->node) || !provide(a, a->node))
        return no_memory(err);
    return ggl_shadow_each_store(a->node, a, add_store, err);
}

/* --- memory ----------------------------------------------------------------------------------- */

static ggl_status put_weight(again *a, const ggl_tensor *t, ggl_error *err) {
    ggl_buffer **to = &a->region[a->loc[t->id].region];
    ggl_status st = a->b->v->alloc(a->b, GGL_REGION_WEIGHT, t->size, t->data, to, err);
    if (st != GGL_UNSUPPORTED)
        return st;
    st = a->b->v->alloc(a->b, GGL_REGION_WEIGHT, t->size, NULL, to, err);
    return st == GGL_OK ? a->b->v->upload(a->b, *to, 0, t->data, t->size, err) : st;
}

static ggl_status put_value(again *a, const ggl_tensor *t, ggl_error *err) {
    size_t size = ggl_shadow_size(t, a->r->n);
    ggl_buffer *io = a->region[GGL_REGION_IO];
    if (t->op == GGL_OP_CONST)
        return a->b->v->upload(a->b, io, a->loc[t->id].offset, t->data, size, err);
    void *value = ggl_calloc(size, 1);
    ggl_status st = value ? ggl_probe_read(a->r, t, value, err) : no_memory(err);
    if (st == GGL_OK)
        st = a->b->v->upload(a->b, io, a->loc[t->id].offset, value, size, err);
    ggl_free(value);
    return st;
}

static ggl_status put_all(again *a, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < a->n_leaves && st == GGL_OK; i++)
        if (a->leaf[i]->op == GGL_OP_WEIGHT)
            st = put_weight(a, a->leaf[i], err);
        else if (a->leaf[i] != a->node)
            st = put_value(a, a->leaf[i], err);
    return st;
}

static ggl_status put_store(void *ctx, const ggl_store *s, ggl_error *err) {
    again *a = ctx;
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < a->r->n_kept && st == GGL_OK; i++) {
        const kept *k = &a->r->kept[i];
        const size_t at = s->kind == GGL_STORE_STATE
                              ? k->at /* its pages lie together here */
                              : k->at / a->r->p->s.store_loc[s->id].step * s->page_size;
        if (k->store == s)
            st = a->b->v->upload(a->b, a->region[GGL_REGION_STORES],
                                 a->store_loc[s->id].offset + at, k->data, k->size, err);
    }
    return st;
}

static ggl_status take_memory(again *a, ggl_error *err) {
    const size_t size[] = {[GGL_REGION_ARENA] = a->plan->arena_size,
                           [GGL_REGION_IO] = a->io_size,
                           [GGL_REGION_STORES] = a->stores_size};
    ggl_status st = GGL_OK;
    a->region = ggl_calloc((size_t)a->n_regions, sizeof *a->region);
    if (!a->region)
        return no_memory(err);
    for (int i = 0; i <= GGL_REGION_STORES && st == GGL_OK; i++)
        st = a->b->v->alloc(a->b, i, size[i], NULL, &a->region[i], err);
    return st;
}

/* --- all of it -------------------------------------------------------------------------------- */

static ggl_status compile(again *a, ggl_error *err) {
    ggl_segment s = a->r->p->s;
    s.node = a->segment;
    s.n_node = a->n_segment;
    s.n_max = a->r->n;
    s.loc = a->loc;
    s.store_loc = a->store_loc;
    s.repacked = NULL;
    s.waits = NULL;
    return a->b->v->compile(a->b, &s, &a->plan, err);
}

static ggl_status compute(again *a, void *to, ggl_error *err) {
    ggl_status st = place_all(a, err);
    if (st == GGL_OK)
        st = compile(a, err);
    if (st == GGL_OK)
        st = take_memory(a, err);
    if (st == GGL_OK)
        st = put_all(a, err);
    if (st == GGL_OK)
        st = ggl_shadow_each_store(a->node, a, put_store, err);
    if (st == GGL_OK)
        st = a->b->v->run(a->b, a->plan, a->region, a->r->n, err);
    if (st == GGL_OK)
        st = a->b->v->wait(a->b, err);
    if (st == GGL_OK)
        st = a->b->v->download(a->b, a->region[GGL_REGION_IO], a->loc[a->node->id].offset, to,
                               ggl_shadow_size(a->node, a->r->n), err);
    return st;
}

/* Backends that run at the same time may trust the same one. */
static os_mutex one_at_a_time = OS_MUTEX_INIT;

ggl_status ggl_shadow_again(const probe *r, ggl_tensor *node, void *to, ggl_error *err) {
    again a = {.r = r, .b = r->b->trusted, .node = node, .n_regions = GGL_REGION_WEIGHT};
    ggl_os_mutex_lock(&one_at_a_time);
    ggl_status st = compute(&a, to, err);
    if (a.plan)
        a.b->v->plan_free(a.b, a.plan);
    for (int i = 0; a.region && i < a.n_regions; i++)
        if (a.region[i])
            a.b->v->free(a.b, a.region[i]);
    ggl_os_mutex_unlock(&one_at_a_time);
    ggl_free(a.region);
    ggl_free(a.leaf);
    ggl_free(a.segment);
    ggl_free(a.loc);
    ggl_free(a.store_loc);
    return st;
}
