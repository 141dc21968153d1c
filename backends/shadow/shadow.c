#include "shadow.h"

#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"

#define DEFAULT_RATE (1.0 / 32)

/* --- chance ----------------------------------------------------------------------------------- */

static uint64_t next_random(shadow *b) { /* splitmix64 */
    uint64_t z = (b->random += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool is_chosen(shadow *b) {
    return (double)(next_random(b) >> 11) * 0x1p-53 < b->params.rate;
}

static void choose_nodes(probe *r) {
    const shadow_plan *p = r->p;
    while (r->n_nodes < r->b->params.n_nodes && r->n_nodes < p->n_candidates) {
        ggl_tensor *t = p->candidate[next_random(r->b) % (uint64_t)p->n_candidates];
        int k = 0;
        while (k < r->n_nodes && r->node[k] != t)
            k++;
        if (k == r->n_nodes)
            r->node[r->n_nodes++] = t;
    }
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Views compute nothing. A cache has no value; the rows that it stores are checked through
 * attend. */
static bool is_candidate(const ggl_tensor *t) {
    return t->computed && t->op != GGL_OP_CACHE && t->op != GGL_OP_RESHAPE && t->op != GGL_OP_SPLIT;
}

static void *copy_of(const void *data, size_t n, size_t size) {
    void *copy = ggl_calloc(n, size);
    if (copy && data && n)
        memcpy(copy, data, n * size);
    return copy;
}

/* One more than the last region that a plan of the segment may name. */
static int count_regions(const ggl_segment *s) {
    int n = GGL_REGION_WEIGHT;
    for (int i = 0; i < ggl_graph_n_ids(s->graph); i++) {
        n = s->loc[i].region >= n ? s->loc[i].region + 1 : n;
        n = s->repacked && s->repacked[i].region >= n ? s->repacked[i].region + 1 : n;
    }
    for (int i = 0; s->store_loc && i < ggl_graph_n_stores(s->graph); i++)
        n = s->store_loc[i].region >= n ? s->store_loc[i].region + 1 : n;
    return n;
}

static bool keep_segment(shadow_plan *p, const ggl_segment *s) {
    size_t n_ids = (size_t)ggl_graph_n_ids(s->graph), n_nodes = (size_t)s->n_node;
    p->s = *s;
    p->s.node = copy_of(s->node, n_nodes, sizeof *s->node);
    p->s.loc = copy_of(s->loc, n_ids, sizeof *s->loc);
    p->s.store_loc =
        copy_of(s->store_loc, (size_t)ggl_graph_n_stores(s->graph), sizeof *s->store_loc);
    p->s.repacked = s->repacked ? copy_of(s->repacked, n_ids, sizeof *s->repacked) : NULL;
    p->candidate = ggl_calloc(n_nodes, sizeof *p->candidate);
    if (!p->s.node || !p->s.loc || !p->s.store_loc || !p->candidate ||
        (s->repacked && !p->s.repacked))
        return false;
    for (size_t i = 0; i < n_nodes; i++)
        if (is_candidate(s->node[i]))
            p->candidate[p->n_candidates++] = s->node[i];
    p->n_regions = count_regions(s);
    return true;
}

static void s_plan_free(ggl_backend *b, ggl_plan *plan) {
    shadow_plan *p = (shadow_plan *)plan;
    if (p->inner)
        wrap_inner(b)->v->plan_free(wrap_inner(b), p->inner);
    ggl_free((void *)p->s.node);
    ggl_free((void *)p->s.loc);
    ggl_free((void *)p->s.store_loc);
    ggl_free((void *)p->s.repacked);
    ggl_free(p->candidate);
    ggl_free(p);
}

static void s_describe(ggl_backend *b, ggl_plan *plan, int64_t n, char *text, size_t size) {
    wrap_inner(b)->v->describe(wrap_inner(b), ((shadow_plan *)plan)->inner, n, text, size);
}

static ggl_status s_compile(ggl_backend *b, const ggl_segment *s, ggl_plan **out, ggl_error *err) {
    *out = NULL;
    shadow_plan *p = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    ggl_status st =
        keep_segment(p, s) ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for a plan");
    if (st == GGL_OK)
        st = ggl_wrap_compile(b, s, &p->inner, err);
    if (st != GGL_OK) {
        s_plan_free(b, &p->base);
        return st;
    }
    p->base.arena_size = p->inner->arena_size;
    *out = &p->base;
    return GGL_OK;
}

/* --- runs ------------------------------------------------------------------------------------- */

/* A run that cannot be checked does not fail: it runs as any other. */
static ggl_status s_run(ggl_backend *base, ggl_plan *plan, ggl_buffer *const *region, int64_t n,
                        ggl_error *err) {
    shadow *b = (shadow *)base;
    const shadow_plan *p = (const shadow_plan *)plan;
    probe r = {.b = b, .p = p, .n = n};
    b->result.n_runs++;
    bool looks = is_chosen(b) && p->n_candidates > 0;
    if (looks)
        choose_nodes(&r);
    if (looks && ggl_probe_init(&r, region, &r.why) != GGL_OK) {
        ggl_shadow_skip(b, r.n_nodes, &r.why);
        looks = false;
    }
    if (!looks)
        return ggl_wrap_run(base, p->inner, region, n, err);
    ggl_status st = ggl_probe_run(&r, err);
    b->result.n_checked_runs++;
    if (st == GGL_OK && r.is_blind)
        ggl_shadow_skip(b, r.n_nodes, &r.why);
    for (int i = 0; i < r.n_nodes && st == GGL_OK && !r.is_blind; i++)
        ggl_shadow_compare(&r, r.node[i]);
    ggl_probe_fini(&r);
    return st;
}

/* --- life ------------------------------------------------------------------------------------- */

static void s_close(ggl_backend *base) {
    shadow *b = (shadow *)base;
    if (b->arena)
        b->w.inner->v->free(b->w.inner, b->arena);
    ggl_backend_close(b->w.inner);
    ggl_free(b->drift);
    ggl_free(b);
}

ggl_status ggl_shadow_wrap(ggl_backend **out, ggl_backend *inner, ggl_backend *trusted,
                           const ggl_shadow_params *params, ggl_error *err) {
    *out = NULL;
    ggl_shadow_params p = {.size = sizeof p};
    const ggl_status is_read = GGL_READ_PARAMS(ggl_shadow_params, &p, params, err);
    if (is_read != GGL_OK)
        return is_read;
    if (!(p.rate >= 0 && p.rate <= 1) || p.n_nodes < 0 || p.n_nodes > SHADOW_MAX_NODES)
        return ggl_fail(err, GGL_USAGE,
                        "%g of the runs, %d nodes of each: 0 to 1 and 0 to %d are allowed", p.rate,
                        p.n_nodes, SHADOW_MAX_NODES);
    shadow *b = ggl_calloc(1, sizeof *b);
    if (!b)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a backend");
    p.rate = p.rate > 0 ? p.rate : DEFAULT_RATE;
    p.n_nodes = p.n_nodes > 0 ? p.n_nodes : 1;
    b->params = p;
    b->random = p.seed;
    b->trusted = trusted;
    ggl_wrap_init(&b->w, inner);
    b->w.base.looks_back = true;
    b->w.v.close = s_close;
    b->w.v.compile = s_compile;
    b->w.v.run = s_run;
    b->w.v.plan_free = s_plan_free;
    b->w.v.describe = inner->v->describe ? s_describe : NULL;
    *out = &b->w.base;
    return GGL_OK;
}
