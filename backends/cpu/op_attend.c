/* cache and attend; docs/numeric.md, section 6 defines their arithmetic.
 *
 * attend works on groups: up to Q queries (heads of one token or of neighbouring tokens) that read
 * the same head of the store. A unit is a group, or, if there are too few groups for all threads, a
 * group on one span of SPAN positions. For each query the result so far is a partial softmax: max m
 * of the scores, sum l of the weights exp(score - m), and o[e], the sum of weights times values. */
#include <math.h>
#include <string.h>

#include "cpu.h"

enum { SPAN = 1024, Q = CPU_QUERIES };

/* Checks the types of the cache's stores, and sets s->attend.kept. */
static ggl_status stores_compile(cpu_compiler *c, cpu_step *s, const ggl_tensor *cache,
                                 ggl_error *err) {
    if (!cache || cache->op != GGL_OP_CACHE)
        return ggl_fail(err, GGL_UNSUPPORTED, "attend needs a cache");
    const cpu_kernels *k = &ggl_cpu_compiler_backend(c)->k;
    for (int i = 0; i < 2; i++) {
        const ggl_store *store = cache->store[i];
        if (store && !k->scores[store->type] && !k->code_scores[store->type])
            return ggl_fail(err, GGL_UNSUPPORTED, "a cache of type %s is not supported",
                            ggl_type_get(store->type)->name);
        s->attend.kept[i] = ggl_cpu_compiler_store(c, store);
    }
    return GGL_OK;
}

/* Returns the rows of head h in page 0 of the store of keys (part 0) or values (part 1). */
static char *rows_of(const cpu_task *t, int part, int64_t h) {
    const cpu_kept *k = &t->step->attend.kept[part];
    return cpu_store(t, k) + (size_t)h * GGL_PAGE * ggl_row_size(k->store->type, k->store->ne[0]);
}

/* Returns the i32 of token l in v: a position or a slot. */
static int64_t number_at(const cpu_view *v, int64_t l) {
    return *(const int32_t *)(v->p + (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3]));
}

/* Returns the slot's row of the table of pages; NULL: there is none, as the stores are rings. */
static const int32_t *table_of(const cpu_view *page, int64_t slot) {
    return page->p ? (const int32_t *)(page->p + (size_t)slot * page->nb[1]) : NULL;
}

/* --- cache --------------------------------------------------------------------------------- */

static ggl_status cache_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    return stores_compile(c, s, s->node, err);
}

/* A unit is one token. */
static void cache_begin(cpu_task *t) {
    t->n_units = t->n;
    t->cost = 4 * (double)ggl_extents(t->src[0].ne, 0, 2, 1);
}

/* Encodes the row x of position pos into the rows of one head in its page. */
static void store_row(const cpu_task *t, const ggl_store *s, char *rows, int64_t pos,
                      const float *x) {
    if (s->type != GGL_F16) {
        ggl_store_put(s, rows, pos, 0, x);
        return;
    }
    int64_t d = s->ne[0], step = s->kind == GGL_STORE_KEYS ? GGL_PAGE : 1;
    uint16_t *to = (uint16_t *)rows + pos % GGL_PAGE * (step == 1 ? d : 1);
    uint16_t half[64];
    for (int64_t i = 0; i < d; i += 64) {
        int64_t n = cpu_min(64, d - i);
        t->b->k.f32_to_f16(step == 1 ? to + i : half, x + i, n);
        for (int64_t e = 0; step != 1 && e < n; e++)
            to[(i + e) * step] = half[e];
    }
}

/* Stores the rows of tokens first .. last - 1, head by head, so that a page stays in the L1 cache
 * while its positions are written. */
static void cache_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    (void)thread;
    for (int part = 0; part < 2; part++) {
        const ggl_store *s = t->step->attend.kept[part].store;
        const cpu_view *x = &t->src[part];
        for (int64_t h = 0; s && h < s->ne[1]; h++)
            for (int64_t l = first; l < last; l++) {
                const int64_t pos = number_at(&t->src[2], l), slot = number_at(&t->src[3], l),
                              page = ggl_store_page(s, table_of(&t->src[4], slot), slot, pos);
                store_row(t, s, rows_of(t, part, h) + (size_t)page * s->page_size, pos,
                          (const float *)(x->p + (x->ne[3] == 1 ? 0 : (size_t)l * x->nb[3]) +
                                          (size_t)h * x->nb[1]));
            }
    }
}

const cpu_op ggl_cpu_op_cache = {.compile = cache_compile, .begin = cache_begin, .run = cache_run};

/* --- attend: compile ----------------------------------------------------------------------- */

/* Returns the most spans that a query can see; one more, as a ring's positions may begin within a
 * span. */
static int64_t most_spans(const cpu_step *s) {
    return (s->attend.kept[0].store->n_pos + SPAN - 1) / SPAN + 1;
}

/* Returns the floats of a partial result of one query: m, l, o[e]. */
static size_t partial_floats(int64_t e) {
    return (size_t)(e + 2);
}

/* Checks the types, and sets the step's numbers and the sizes of scratch. */
static ggl_status attend_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_tensor *t = s->node;
    ggl_status st = stores_compile(c, s, t->src[1], err);
    if (st != GGL_OK)
        return st;
    if (s->src[0].type != GGL_F32 || (s->src[2].region >= 0 && s->src[2].type != GGL_F32) ||
        (s->src[3].region >= 0 && s->src[3].type != GGL_F32))
        return ggl_fail(err, GGL_UNSUPPORTED, "attend supports only f32 values");
    int64_t e = s->dst.ne[0], n_heads = s->dst.ne[1];
    s->attend.scale = (float)(isnan(t->num[0]) ? 1 / sqrt((double)s->src[0].ne[0]) : t->num[0]);
    s->attend.window = isnan(t->num[1]) || t->num[1] >= 0x1p31 ? 0 : (int64_t)t->num[1];
    s->attend.cap = isnan(t->num[2]) ? 0 : (float)t->num[2];
    /* per thread: partial results of a page, of a span, and of all; queries, rounded for quantized
     * keys; with values that are part of the keys, also a page of them as rows */
    s->thread_size = 3 * Q * partial_floats(e) * sizeof(float) +
                     Q * ggl_cpu_column_size(CPU_COLUMNS_Q8, s->src[0].ne[0]) +
                     (s->attend.kept[1].store ? 0 : (size_t)e * GGL_PAGE * sizeof(float));
    /* shared, for one token whose spans run in parallel: a partial result of each head and span */
    s->shared_size = (size_t)n_heads * (size_t)most_spans(s) * partial_floats(e) * sizeof(float);
    return GGL_OK;
}

/* --- attend: a group of queries ------------------------------------------------------------ */

/* Partial results of up to Q queries. */
typedef struct partial {
    float m[Q], l[Q];
    bool any[Q]; /* false: the query has seen no position yet, and m, l, o are not set */
    float *o;    /* [Q][e] */
} partial;

/* Queries that read the same head of the store. */
typedef struct group {
    const cpu_task *t;
    int n;                                      /* number of queries */
    int64_t token[Q], head[Q], pos[Q], from[Q]; /* a query sees positions from .. pos */
    int64_t first, last;                        /* the positions that any of them sees */
    int64_t store_head, e, slot;
    const int32_t *table;      /* the slot's pages; NULL: the stores are rings */
    const char *keys, *values; /* the store head's rows in page 0 of both stores */
    const float *query[Q];
    const cpu_qblock *rounded[Q]; /* the queries, if keys are quantized */
    float *rows; /* scratch, [64][e]: a page of values that are part of the keys, as rows */
} group;

/* Returns the head's number in v (sinks or alibi slopes), for token l. */
static float row_number(const cpu_view *v, int64_t head, int64_t l) {
    return ((const float *)(v->p +
                            (v->ne[3] == 1 ? 0 : (size_t)l * v->nb[3])))[v->ne[0] == 1 ? 0 : head];
}

/* Sets *g to group u. The queries of a store head are numbered token by token, and within a token
 * head by head; a group is unit[3] of them in this order. */
static void group_at(const cpu_task *t, int64_t u, group *g) {
    int64_t n_store = t->step->attend.kept[0].store->ne[1], per = t->dst.ne[1] / n_store,
            n_groups = t->unit[0], most = t->unit[3], first = u % n_groups * most;
    *g = (group){.t = t, .store_head = u / n_groups, .e = t->dst.ne[0]};
    for (int64_t i = first; i < cpu_min(t->n * per, first + most); i++) {
        int64_t l = i / per, head = g->store_head * per + i % per, pos = number_at(&t->src[4], l);
        g->token[g->n] = l;
        g->head[g->n] = head;
        g->pos[g->n] = pos;
        g->from[g->n] =
            t->step->attend.window > 0 ? cpu_max(0, pos - t->step->attend.window + 1) : 0;
        g->query[g->n] =
            (const float *)(t->src[0].p + (t->src[0].ne[3] == 1 ? 0 : (size_t)l * t->src[0].nb[3]) +
                            (size_t)head * t->src[0].nb[1]);
        g->n++;
    }
}

/* Merges `part` into `total`, for queries first .. last - 1. */
static void merge(const cpu_task *t, partial *total, const partial *part, int first, int last,
                  int64_t e) {
    float weight[2 * Q] = {0}; /* of total, of part */
    for (int q = first; q < last; q++)
        if (part->any[q] && total->any[q]) {
            float m = part->m[q], old = total->m[q], top = old > m || old != old ? old : m;
            weight[2 * q] = old - top;
            weight[2 * q + 1] = m - top;
            total->m[q] = top;
        }
    t->b->k.unary[CPU_EXP](weight + 2 * first, weight + 2 * first, 2 * (last - first));
    for (int q = first; q < last; q++) {
        float *to = total->o + q * e;
        const float *from = part->o + q * e, *w = weight + 2 * q;
        if (!part->any[q])
            continue;
        if (!total->any[q]) {
            total->any[q] = true;
            total->m[q] = part->m[q];
            total->l[q] = part->l[q];
            memcpy(to, from, (size_t)e * sizeof *to);
            continue;
        }
        float l = part->l[q] * w[1];
        total->l[q] = fmaf(total->l[q], w[0], l);
        t->b->k.merge(to, from, w[0], w[1], e);
    }
}

/* Turns query q's scores s[64] for a page into weights, and sets its m and l in `out`. Positions
 * lo .. hi-1 of the page are visible; the weights of all others become 0. `first` is the position
 * that the page begins with. */
static void weigh(const group *g, int q, float *s, int64_t first, int lo, int hi, partial *out) {
    const cpu_task *t = g->t;
    const cpu_kernels *k = &t->b->k;
    int64_t n = hi - lo;
    float scale = t->step->attend.scale, cap = t->step->attend.cap;
    float *v = s + lo;
    if (cap != 0 || t->src[3].p) { /* scales here, and lets softmax_page scale by 1 */
        k->binary[CPU_MUL](v, v, 1, &scale, 0, n);
        scale = 1;
    }
    if (cap != 0) {
        k->binary[CPU_DIV](v, v, 1, &cap, 0, n);
        k->unary[CPU_TANH](v, v, n);
        k->binary[CPU_MUL](v, &cap, 0, v, 1, n);
    }
    if (t->src[3].p) {
        float slope = row_number(&t->src[3], g->head[q], g->token[q]);
        for (int64_t j = 0; j < n; j++) {
            float drop = slope * (float)(g->pos[q] - first - lo - j);
            v[j] -= drop;
        }
    }
    out->m[q] = k->softmax_page(s, lo, hi, scale, &out->l[q]);
    out->any[q] = true;
}

/* Decodes the values of a page that are the leading part of its keys; returns them as f32 rows
 * [64][e]. */
static const float *values_of_keys(const group *g, const char *page) {
    enum { PART = 32 };
    ggl_type type = g->t->step->attend.kept[0].store->type;
    bool plain = !ggl_type_get(type)->quantized;
    for (int64_t i = 0; i < g->e; i += PART) {
        float part[PART][GGL_PAGE];
        int n = (int)cpu_min(PART, g->e - i);
        if (plain) /* element[dim][64] */
            g->t->b->k.to_f32[type](page + GGL_PAGE * ggl_row_size(type, i), part[0], n * GGL_PAGE);
        else
            ggl_keys_unpack(type, page, i, n, part);
        for (int j = 0; j < GGL_PAGE; j++)
            for (int k = 0; k < n; k++)
                g->rows[j * g->e + i + k] = part[k][j];
    }
    return g->rows;
}

/* Adds weights times values to o[q] for each query, over the query's visible positions lo .. hi-1
 * of the page in ascending order. Positions that all queries see are added for all queries at once;
 * those before and after are added query by query. */
static void add_rows(const group *g, float (*w)[GGL_PAGE], const int *lo, const int *hi,
                     const void *page, ggl_type type, const void *next, float *o) {
    void (*values)(float *, int64_t, float(*)[GGL_PAGE], int, const void *, int64_t, int, int,
                   const void *) = g->t->b->k.values[type];
    int all_lo = 0, all_hi = GGL_PAGE;
    for (int q = 0; q < g->n; q++) {
        all_lo = lo[q] > all_lo ? lo[q] : all_lo;
        all_hi = hi[q] < all_hi ? hi[q] : all_hi;
    }
    if (all_lo >= all_hi) {
        for (int q = 0; q < g->n; q++)
            if (lo[q] < hi[q])
                values(o + q * g->e, g->e, w + q, 1, page, g->e, lo[q], hi[q], next);
        return;
    }
    for (int q = 0; q < g->n; q++)
        if (lo[q] < all_lo)
            values(o + q * g->e, g->e, w + q, 1, page, g->e, lo[q], all_lo, page);
    values(o, g->e, w, g->n, page, g->e, all_lo, all_hi, next);
    for (int q = 0; q < g->n; q++)
        if (hi[q] > all_hi)
            values(o + q * g->e, g->e, w + q, 1, page, g->e, all_hi, hi[q], next);
}

/* Sets o[q] to the sum of weights times values over the visible positions lo .. hi-1 of a page, for
 * each query. */
static void add_values(const group *g, float (*w)[GGL_PAGE], const int *lo, const int *hi,
                       const void *page, ggl_type type, const void *next, float *o) {
    const cpu_kernels *k = &g->t->b->k;
    if (k->code_values[type]) {
        k->code_values[type](o, g->e, w, g->n, page, g->e, lo, hi, next);
        return;
    }
    memset(o, 0, (size_t)(g->n * g->e) * sizeof *o);
    add_rows(g, w, lo, hi, page, type, next, o);
}

/* Sets w[q] to the products of query q and the 64 keys of a page. */
static void scores_of(const group *g, float (*w)[GGL_PAGE], const char *keys, const char *next) {
    const cpu_kernels *k = &g->t->b->k;
    const ggl_store *s = g->t->step->attend.kept[0].store;
    if (k->code_scores[s->type])
        k->code_scores[s->type](w, g->rounded, g->n, keys, s->ne[0], next);
    else
        k->scores[s->type](w, g->query, g->n, keys, s->ne[0], next);
}

/* Returns the number of the page that has the position. */
static size_t page_of(const group *g, int64_t pos) {
    return (size_t)ggl_store_page(g->t->step->attend.kept[0].store, g->table, g->slot, pos);
}

/* Sets *out to the partial results for the page of positions first .. first+63. Keys, values and
 * the next page's keys are far apart in memory, so each kernel prefetches what is read after it. */
static void one_page(const group *g, int64_t first, partial *out) {
    const cpu_task *t = g->t;
    const ggl_store *ks = t->step->attend.kept[0].store, *vs = t->step->attend.kept[1].store;
    float w[Q][GGL_PAGE];
    int lo[Q], hi[Q];
    const size_t number = page_of(g, first);
    const char *keys = g->keys + number * ks->page_size,
               *values = vs ? g->values + number * vs->page_size : NULL,
               *next = first + GGL_PAGE <= g->last
                           ? g->keys + page_of(g, first + GGL_PAGE) * ks->page_size
                           : keys;
    scores_of(g, w, keys, vs ? values : next);
    for (int q = 0; q < g->n; q++) {
        lo[q] = (int)cpu_max(0, cpu_min(GGL_PAGE, g->from[q] - first));
        hi[q] = (int)cpu_max(0, cpu_min(GGL_PAGE, g->pos[q] - first + 1));
        out->any[q] = false;
        if (lo[q] < hi[q])
            weigh(g, q, w[q], first, lo[q], hi[q], out);
    }
    if (vs)
        add_values(g, w, lo, hi, values, vs->type, next, out->o);
    else
        add_values(g, w, lo, hi, values_of_keys(g, keys), GGL_F32, g->rows, out->o);
}

/* Sets *out to the partial results for a span: its visible pages, merged in ascending order. */
static void one_span(const group *g, int64_t span, partial *page, partial *out) {
    const int64_t from = cpu_max(g->first, span * SPAN),
                  to = cpu_min(g->last, span * SPAN + SPAN - 1);
    for (int q = 0; q < g->n; q++)
        out->any[q] = false;
    for (int64_t first = from / GGL_PAGE * GGL_PAGE; first <= to; first += GGL_PAGE) {
        one_page(g, first, page);
        merge(g->t, out, page, 0, g->n, g->e);
    }
}

/* Merges the sinks into `total`, and writes the results o / l. */
static void finish(const group *g, partial *total, partial *scratch) {
    const cpu_task *t = g->t;
    for (int q = 0; q < g->n; q++) {
        if (t->src[2].p) {
            scratch->m[q] = row_number(&t->src[2], g->head[q], g->token[q]);
            scratch->l[q] = 1;
            scratch->any[q] = true;
            memset(scratch->o + q * g->e, 0, (size_t)g->e * sizeof *scratch->o);
            merge(t, total, scratch, q, q + 1, g->e);
        }
        float *y = (float *)(t->dst.p + (size_t)g->token[q] * t->dst.nb[3] +
                             (size_t)g->head[q] * t->dst.nb[1]);
        t->b->k.binary[CPU_DIV](y, total->o + q * g->e, 1, &total->l[q], 0, g->e);
    }
}

/* --- attend: run --------------------------------------------------------------------------- */

/* Divides the work into units. unit[0]: groups of each store head; unit[1]: the first visible span;
 * unit[2]: number of visible spans, each of which is a unit; 0: a unit does all spans of its group;
 * unit[3]: queries of a group. */
static void attend_begin(cpu_task *t) {
    int64_t n_store = t->step->attend.kept[0].store->ne[1], per = t->dst.ne[1] / n_store,
            longest = 0, seen = 0;
    for (int64_t l = 0; l < t->n; l++) {
        int64_t pos = number_at(&t->src[4], l);
        int64_t n = t->step->attend.window > 0 ? cpu_min(pos + 1, t->step->attend.window) : pos + 1;
        longest = cpu_max(longest, n);
        seen += n;
    }
    t->unit[3] = Q;
    while (t->unit[3] > 2 && t->n * per * n_store <= t->unit[3] * (t->n_threads - 1))
        t->unit[3] /= 2; /* smaller groups, until there is one for each thread */
    t->unit[0] = (t->n * per + t->unit[3] - 1) / t->unit[3];
    t->n_units = t->unit[0] * n_store;
    t->unit[2] = 0;
    if (t->n == 1 && longest > SPAN && t->n_threads > 1 && t->n_units < 4 * t->n_threads) {
        int64_t pos = number_at(&t->src[4], 0);
        t->unit[1] = (pos + 1 - longest) / SPAN;
        t->unit[2] = pos / SPAN - t->unit[1] + 1;
        t->n_units *= t->unit[2];
    }
    t->cost = 2 * (double)(t->src[0].ne[0] + t->dst.ne[0]) * (double)seen * (double)t->dst.ne[1] /
              (double)t->n_units;
}

/* Returns an empty partial whose o[] is at `memory`. */
static partial partial_at(float *memory) {
    return (partial){.o = memory};
}

/* Partial result of (head, span) in the shared scratch: max m, sum l, output o[e]. */
static float *kept(const cpu_task *t, int64_t head, int64_t span) {
    return (float *)t->shared + (size_t)(head * t->unit[2] + span) * partial_floats(t->dst.ne[0]);
}

/* Runs a group whose queries have the same slot. span >= 0: only that span, counted from the first
 * visible one; the partial results go to the shared scratch. span -1: all of them, to the results.
 * memory: the thread's scratch. */
static void run_group(const group *g, int64_t span, float *memory) {
    const cpu_task *t = g->t;
    int64_t e = g->e;
    partial page = partial_at(memory), of_span = partial_at(memory + Q * e),
            total = partial_at(memory + 2 * Q * e);
    if (span >= 0) {
        one_span(g, span + t->unit[1], &page, &of_span);
        for (int q = 0; q < g->n; q++) {
            float *to = kept(t, g->head[q], span);
            to[0] = of_span.m[q];
            to[1] = of_span.any[q] ? of_span.l[q] : -1; /* -1: nothing visible */
            memcpy(to + 2, of_span.o + q * e, (size_t)e * sizeof *to);
        }
        return;
    }
    for (int64_t s = g->first / SPAN; s <= g->last / SPAN; s++) {
        one_span(g, s, &page, &of_span);
        merge(t, &total, &of_span, 0, g->n, e);
    }
    finish(g, &total, &page);
}

/* Rounds the group's queries to bytes, in y, if the keys are quantized. */
static void round_queries(group *g, cpu_qblock *y) {
    const ggl_store *s = g->t->step->attend.kept[0].store;
    if (!g->t->b->k.code_scores[s->type])
        return;
    for (int q = 0; q < g->n; q++, y += s->ne[0] / CPU_QBLOCK) {
        g->t->b->k.quantize(y, g->query[q], s->ne[0]);
        g->rounded[q] = y;
    }
}

/* Runs group u. Its queries may belong to different slots: each run of one slot is done by
 * itself. */
static void run_unit(const cpu_task *t, int64_t u, int64_t span, float *memory) {
    group all;
    group_at(t, u, &all);
    cpu_qblock *rounded = (cpu_qblock *)(memory + 3 * Q * partial_floats(all.e));
    round_queries(&all, rounded);
    for (int i = 0; i < all.n;) {
        int64_t slot = number_at(&t->src[5], all.token[i]);
        group g = {.t = t,
                   .store_head = all.store_head,
                   .e = all.e,
                   .slot = slot,
                   .first = INT64_MAX,
                   .table = table_of(&t->src[6], slot),
                   .keys = rows_of(t, 0, all.store_head),
                   .rows = (float *)((char *)rounded +
                                     Q * ggl_cpu_column_size(CPU_COLUMNS_Q8, t->src[0].ne[0]))};
        if (t->step->attend.kept[1].store)
            g.values = rows_of(t, 1, all.store_head);
        for (; i < all.n && number_at(&t->src[5], all.token[i]) == slot; i++, g.n++) {
            g.token[g.n] = all.token[i];
            g.head[g.n] = all.head[i];
            g.pos[g.n] = all.pos[i];
            g.from[g.n] = all.from[i];
            g.query[g.n] = all.query[i];
            g.rounded[g.n] = all.rounded[i];
            g.first = cpu_min(g.first, all.from[i]);
            g.last = cpu_max(g.last, all.pos[i]);
        }
        run_group(&g, span, memory);
    }
}

static void attend_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    float *memory = (float *)cpu_thread_scratch(t, thread);
    for (int64_t u = first; u < last; u++)
        if (t->unit[2] == 0)
            run_unit(t, u, -1, memory);
        else
            run_unit(t, u / t->unit[2], u % t->unit[2], memory);
}

/* Called when all units are done: merges the partial results of all spans, in ascending order. */
static void attend_end(const cpu_task *t) {
    if (t->unit[2] == 0)
        return;
    int64_t e = t->dst.ne[0], n_groups = t->unit[0] * t->step->attend.kept[0].store->ne[1];
    float *memory = (float *)cpu_thread_scratch(t, 0);
    for (int64_t u = 0; u < n_groups; u++) {
        group g;
        group_at(t, u, &g);
        partial part = partial_at(memory), total = partial_at(memory + Q * e);
        for (int64_t s = 0; s < t->unit[2]; s++)
            for (int q = 0; q < g.n; q++) {
                const float *from = kept(t, g.head[q], s);
                part.m[q] = from[0];
                part.l[q] = from[1];
                part.any[q] = !(from[1] < 0);
                memcpy(part.o + q * e, from + 2, (size_t)e * sizeof *from);
                merge(t, &total, &part, q, q + 1, e);
            }
        finish(&g, &total, &part);
    }
}

const cpu_op ggl_cpu_op_attend = {
    .compile = attend_compile, .begin = attend_begin, .run = attend_run, .end = attend_end};
