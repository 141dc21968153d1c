#include "node_run.h"

#include <assert.h>

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory to run node by node");
}

/* --- places of values --- */

size_t llm_node_count(const node_map *m, const ggl_tensor *t) {
    return (size_t)ggl_count(t) * (size_t)(ggl_is_batched(t) ? m->n : 1);
}

bool llm_node_is_placed(const node_map *m, const ggl_tensor *t) {
    return m->loc[t->id].region == GGL_REGION_IO && t->op != GGL_OP_CONST;
}

static bool place(node_map *m, const ggl_tensor *t, size_t bytes) {
    m->loc[t->id] = (ggl_loc){.region = GGL_REGION_IO, .offset = m->io_size};
    return ggl_size_add(m->io_size, bytes, &m->io_size) &&
           ggl_size_align(m->io_size, 64, &m->io_size);
}

static bool place_leaf(node_map *m, const ggl_tensor *t) {
    if (m->loc[t->id].region >= 0)
        return true;
    if (t->op == GGL_OP_INPUT)
        return place(m, t, llm_node_count(m, t) * 4);
    bool weight = t->op == GGL_OP_WEIGHT;
    const ggl_tensor ***list = weight ? &m->weight : &m->constant;
    size_t *n = weight ? &m->n_weights : &m->n_constants;
    if (!ggl_grow(list, weight ? &m->cap_weights : &m->cap_constants, *n + 1, sizeof **list))
        return false;
    (*list)[(*n)++] = t;
    if (!weight)
        return place(m, t, t->size);
    m->loc[t->id] = (ggl_loc){.region = GGL_REGION_WEIGHT + (int)*n - 1, .offset = 0};
    return true;
}

static bool place_leaves(node_map *m, const ggl_tensor *t) {
    for (int k = 0; k < t->n_src; k++)
        if (t->src[k] && ggl_is_leaf(t->src[k]) && !place_leaf(m, t->src[k]))
            return false;
    if (!t->body)
        return true;
    for (int k = 0; k < t->body->n_node; k++)
        if (!place_leaves(m, t->body->node[k]))
            return false;
    return !ggl_is_leaf(t->body->result) || place_leaf(m, t->body->result);
}

/* Sets m->page so that each slot has pages of its own. */
static bool place_pages(node_map *m) {
    assert(ggl_graph_get_params(m->graph)->n_stage_slots ==
           0); /* whose pages have numbers of their own */
    if (ggl_graph_n_pages(m->graph) == 0)
        return true;
    const int64_t n = ggl_count(ggl_graph_find_input(m->graph, "page"));
    m->page = ggl_calloc((size_t)n, sizeof *m->page);
    for (int64_t i = 0; m->page && i < n; i++)
        m->page[i] = (int32_t)i;
    return m->page;
}

ggl_status llm_node_map_init(node_map *m, const ggl_graph *g, int64_t n, ggl_error *err) {
    size_t n_ids = (size_t)ggl_graph_n_ids(g);
    *m = (node_map){.graph = g, .n = n};
    m->node = ggl_calloc((size_t)ggl_graph_n_nodes(g), sizeof *m->node);
    m->loc = ggl_calloc(n_ids, sizeof *m->loc);
    m->store_loc = ggl_calloc((size_t)ggl_graph_n_stores(g), sizeof *m->store_loc);
    bool ok = m->node && m->loc && m->store_loc;
    for (size_t i = 0; i < n_ids && ok; i++)
        m->loc[i].region = -1;
    for (int i = 0; i < ggl_graph_n_nodes(g) && ok; i++) {
        ggl_tensor *t = ggl_graph_node(g, i);
        if (t->op == GGL_OP_INPUT)
            ok = place_leaf(m, t);
        if (!ok || !t->needed || ggl_is_leaf(t))
            continue;
        ok = place_leaves(m, t);
        if (ok && t->computed) {
            m->node[m->n_nodes++] = t;
            ok = t->op == GGL_OP_CACHE || place(m, t, llm_node_count(m, t) * 4);
        }
    }
    for (int i = 0; i < ggl_graph_n_stores(g) && ok; i++) {
        m->store_loc[i] =
            (ggl_loc){GGL_REGION_STORES, m->stores_size, ggl_graph_store(g, i)->page_size};
        ok = ggl_size_add(m->stores_size, ggl_graph_store(g, i)->size, &m->stores_size);
    }
    ok = ok && place_pages(m);
    if (ok)
        return GGL_OK;
    llm_node_map_fini(m);
    return no_memory(err);
}

void llm_node_map_fini(node_map *m) {
    ggl_free(m->node);
    ggl_free(m->weight);
    ggl_free(m->constant);
    ggl_free(m->loc);
    ggl_free(m->store_loc);
    ggl_free(m->page);
    *m = (node_map){0};
}

/* --- memory ----------------------------------------------------------------------------------- */

static ggl_status take_weight(node_device *d, const ggl_tensor *t, ggl_buffer **out,
                              ggl_error *err) {
    ggl_status st = d->b->v->alloc(d->b, GGL_REGION_WEIGHT, t->size, t->data, out, err);
    if (st != GGL_UNSUPPORTED)
        return st;
    st = d->b->v->alloc(d->b, GGL_REGION_WEIGHT, t->size, NULL, out, err);
    return st == GGL_OK ? d->b->v->upload(d->b, *out, 0, t->data, t->size, err) : st;
}

ggl_status llm_node_device_init(node_device *d, const node_map *m, ggl_backend *b, ggl_error *err) {
    *d = (node_device){.m = m, .b = b, .n_regions = GGL_REGION_WEIGHT + (int)m->n_weights};
    d->region = ggl_calloc((size_t)d->n_regions, sizeof *d->region);
    d->segment = ggl_calloc((size_t)ggl_graph_n_nodes(m->graph) + 1, sizeof *d->segment);
    ggl_status st = d->region && d->segment ? GGL_OK : no_memory(err);
    if (st == GGL_OK)
        st = b->v->alloc(b, GGL_REGION_IO, m->io_size, NULL, &d->region[GGL_REGION_IO], err);
    if (st == GGL_OK)
        st = b->v->alloc(b, GGL_REGION_STORES, m->stores_size, NULL, &d->region[GGL_REGION_STORES],
                         err);
    for (size_t i = 0; i < m->n_weights && st == GGL_OK; i++)
        st = take_weight(d, m->weight[i], &d->region[GGL_REGION_WEIGHT + i], err);
    for (size_t i = 0; i < m->n_constants && st == GGL_OK; i++) {
        const ggl_tensor *t = m->constant[i];
        st = b->v->upload(b, d->region[GGL_REGION_IO], m->loc[t->id].offset, t->data, t->size, err);
    }
    if (st == GGL_OK && m->page)
        st = llm_node_device_put(d, ggl_graph_find_input(m->graph, "page"), m->page, err);
    if (st != GGL_OK)
        llm_node_device_fini(d);
    return st;
}

void llm_node_device_fini(node_device *d) {
    for (int i = 0; d->region && i < d->n_regions; i++)
        if (d->region[i])
            d->b->v->free(d->b, d->region[i]);
    ggl_free(d->region);
    ggl_free(d->segment);
    ggl_free(d->repacked);
    *d = (node_device){0};
}

ggl_status llm_node_device_repack(node_device *d, ggl_error *err) {
    const ggl_backend_vtable *v = d->b->v;
    size_t size = 0, n_ids = (size_t)ggl_graph_n_ids(d->m->graph);
    if (!v->repack_size || d->repacked)
        return GGL_OK;
    d->repacked = ggl_calloc(n_ids, sizeof *d->repacked);
    if (!d->repacked)
        return no_memory(err);
    for (size_t i = 0; i < n_ids; i++)
        d->repacked[i].region = -1;
    for (size_t i = 0; i < d->m->n_weights; i++) {
        const size_t own = v->repack_size(d->b, d->m->weight[i]);
        if (own > 0)
            d->repacked[d->m->weight[i]->id] =
                (ggl_loc){.region = GGL_REGION_REPACKED, .offset = size};
        if (!ggl_size_add(size, own, &size))
            return no_memory(err);
    }
    ggl_status st =
        size ? v->alloc(d->b, GGL_REGION_REPACKED, size, NULL, &d->region[GGL_REGION_REPACKED], err)
             : GGL_OK;
    for (size_t i = 0; i < d->m->n_weights && st == GGL_OK; i++) {
        const ggl_loc at = d->repacked[d->m->weight[i]->id];
        if (at.region >= 0)
            st = v->repack(d->b, d->region[GGL_REGION_REPACKED], at.offset, d->m->weight[i], err);
    }
    return st;
}

static ggl_status need_arena(node_device *d, size_t size, ggl_error *err) {
    ggl_buffer **arena = &d->region[GGL_REGION_ARENA];
    if (*arena && size <= d->arena_size)
        return GGL_OK;
    if (*arena)
        d->b->v->free(d->b, *arena);
    *arena = NULL;
    d->arena_size = size;
    return d->b->v->alloc(d->b, GGL_REGION_ARENA, size, NULL, arena, err);
}

/* --- values ----------------------------------------------------------------------------------- */

ggl_status llm_node_device_put(node_device *d, const ggl_tensor *t, const void *data,
                               ggl_error *err) {
    return d->b->v->upload(d->b, d->region[GGL_REGION_IO], d->m->loc[t->id].offset, data,
                           llm_node_count(d->m, t) * 4, err);
}

ggl_status llm_node_device_get(node_device *d, const ggl_tensor *t, void *data, ggl_error *err) {
    return d->b->v->download(d->b, d->region[GGL_REGION_IO], d->m->loc[t->id].offset, data,
                             llm_node_count(d->m, t) * 4, err);
}

ggl_status llm_node_device_get_store(node_device *d, const ggl_store *s, void *data,
                                     ggl_error *err) {
    const ggl_loc at = d->m->store_loc[s->id];
    return d->b->v->download(d->b, d->region[at.region], at.offset, data, s->size, err);
}

ggl_status llm_node_device_clear(node_device *d, const ggl_store *s, ggl_error *err) {
    const ggl_loc at = d->m->store_loc[s->id];
    return d->b->v->clear(d->b, d->region[at.region], at.offset, s->size, err);
}

/* Appends to d->segment the views of weights that t reads, then t. Returns the new number of
 * nodes. */
static int push_segment(node_device *d, int n, ggl_tensor *t) {
    for (int k = 0; k < ggl_n_reads(t); k++) {
        ggl_tensor *x = ggl_read(t, k);
        if (x && x->view_of && !ggl_is_leaf(x))
            n = push_segment(d, n, x);
    }
    for (int i = 0; i < n; i++)
        if (d->segment[i] == t)
            return n;
    d->segment[n] = t;
    return n + 1;
}

ggl_status llm_node_device_compile(node_device *d, ggl_tensor *t, ggl_plan **plan, ggl_error *err) {
    ggl_segment s = {.graph = d->m->graph,
                     .node = d->segment,
                     .n_node = push_segment(d, 0, t),
                     .n_max = d->m->n,
                     .loc = d->m->loc,
                     .store_loc = d->m->store_loc,
                     .n_slots = 1,
                     .repacked = d->repacked};
    *plan = NULL;
    const ggl_tensor *part = NULL;
    const char *why = ggl_refusal(d->b, t, &part);
    char text[128];
    if (why)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s does not run on %s: %s",
                        ggl_node_text(part, text, sizeof text), d->b->name, why);
    ggl_status st = d->b->v->compile(d->b, &s, plan, err);
    return st == GGL_OK ? need_arena(d, (*plan)->arena_size, err) : st;
}

ggl_status llm_node_device_run(node_device *d, ggl_tensor *t, ggl_error *err) {
    ggl_plan *plan = NULL;
    ggl_status st = llm_node_device_compile(d, t, &plan, err);
    if (st == GGL_OK)
        st = d->b->v->run(d->b, plan, d->region, d->m->n, err);
    if (st == GGL_OK)
        st = d->b->v->wait(d->b, err);
    if (plan)
        d->b->v->plan_free(d->b, plan);
    return st;
}
