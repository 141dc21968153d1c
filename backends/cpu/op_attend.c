/* attend; docs/numeric.md, section 6 defines its arithmetic.
 *
 * Queries (heads of one token or of neighbouring tokens) that read the same head of the store form
 * groups. Up to CPU_QUERIES of them multiply rows straight from the store; more of them decode each
 * page once (attend_panels.c). A unit is a group, or, if there are too few groups for all threads,
 * a group on one span of SPAN positions. */
#include <math.h>
#include <string.h>

#include "attend.h"
#include "ggl/internal/graph.h"

enum { SPAN = 1024 };

/* --- compile ------------------------------------------------------------------------------- */

/* Returns the most spans that a query can see; one more, as a ring's positions may begin within a
 * span. Rows that are chosen may be more than the store has: one is read as often as it is named. */
static int64_t most_spans(const cpu_step *s) {
    const int64_t n_pos = s->attend.kept[0].store->n_pos,
                  n = cpu_attend_is_chosen(s) ? cpu_max(n_pos, s->src[ATTEND_CHOSEN].ne[0]) : n_pos;
    return (n + SPAN - 1) / SPAN + 1;
}

/* Returns the floats of a partial result of one query: m, l, o[e]. */
static size_t partial_floats(int64_t e) {
    return (size_t)(e + 2);
}

/* Returns the floats of a group's rounded queries; 0: the keys are not quantized. */
static int64_t rounded_floats(const cpu_step *s) {
    return ggl_type_get(s->attend.kept[0].store->type)->quantized && !cpu_attend_is_chosen(s)
               ? CPU_QUERIES *
                     (int64_t)(ggl_cpu_column_size(CPU_COLUMNS_Q8, s->src[ATTEND_Q].ne[0]) /
                               sizeof(float))
               : 0;
}

/* Checks the types, and sets the step's numbers and the sizes of scratch. */
static ggl_status attend_compile(cpu_compiler *c, cpu_step *s, ggl_error *err) {
    const ggl_tensor *t = s->node;
    ggl_status st = ggl_cpu_attend_stores(c, s, t->src[ATTEND_KV], err);
    if (st != GGL_OK)
        return st;
    if (s->src[ATTEND_Q].type != GGL_F32 ||
        (s->src[ATTEND_SINKS].region >= 0 && s->src[ATTEND_SINKS].type != GGL_F32) ||
        (s->src[ATTEND_ALIBI].region >= 0 && s->src[ATTEND_ALIBI].type != GGL_F32) ||
        (s->src[ATTEND_BIAS].region >= 0 && s->src[ATTEND_BIAS].type != GGL_F32) ||
        (s->src[ATTEND_REL_K].region >= 0 && s->src[ATTEND_REL_K].type != GGL_F32) ||
        (s->src[ATTEND_REL_Q].region >= 0 && s->src[ATTEND_REL_Q].type != GGL_F32) ||
        (s->src[ATTEND_REL_ROW].region >= 0 && s->src[ATTEND_REL_ROW].type != GGL_F32) ||
        (s->src[ATTEND_WITHIN].region >= 0 && s->src[ATTEND_WITHIN].type != GGL_F32) ||
        (s->src[ATTEND_CHOSEN].region >= 0 && s->src[ATTEND_CHOSEN].type != GGL_F32))
        return ggl_fail(err, GGL_UNSUPPORTED, "attend supports only f32 values");
    int64_t e = s->dst.ne[0], n_heads = s->dst.ne[1];
    s->attend.scale = (float)(isnan(t->num[ATTEND_SCALE]) ? 1 / sqrt((double)s->src[ATTEND_Q].ne[0])
                                                          : t->num[ATTEND_SCALE]);
    s->attend.window = ggl_attend_window(t);
    s->attend.cap = isnan(t->num[ATTEND_CAP]) ? 0 : (float)t->num[ATTEND_CAP];
    const int64_t per = n_heads / s->attend.kept[0].store->ne[1],
                  n = ggl_cpu_compiler_n_max(c) * per, step = cpu_attend_step(e);
    const int64_t relative = ggl_cpu_attend_relative_floats(s); /* for at most 64 queries */
    s->attend.most = (int)cpu_min(n, !cpu_attend_has_panels(s) ? CPU_QUERIES
                                     : relative > 0            ? GGL_PAGE
                                                               : CPU_MOST_QUERIES);
    const bool chosen = cpu_attend_is_chosen(s),
               panels = s->attend.most > CPU_QUERIES || relative > 0 || chosen;
    /* per thread: partial results of a page, of a span, and of all; rounded queries; a page of keys
     * and values */
    s->thread_size =
        sizeof(float) *
        (size_t)((2 * s->attend.most + CPU_QUERIES) * step + rounded_floats(s) +
                 (panels ? s->src[ATTEND_Q].ne[0] * GGL_PAGE : 0) +
                 (chosen ? s->src[ATTEND_Q].ne[0] * GGL_PAGE : 0) +
                 (panels || !s->attend.kept[1].store ? step * GGL_PAGE : 0) + relative);
    /* shared, for one token whose spans run in parallel: a partial result of each head and span */
    s->shared_size = (size_t)n_heads * (size_t)most_spans(s) * partial_floats(e) * sizeof(float);
    return GGL_OK;
}

/* --- a page ---------------------------------------------------------------------------------- */

/* Merges `part` into `total` for all queries. */
static void merge(const group *g, partial *total, const partial *part) {
    shares share;
    ggl_cpu_attend_shares(g, total, part, 0, g->n, &share);
    ggl_cpu_attend_merge(g, total, part, part->o, 0, g->n, &share);
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
                g->panel_values[j * g->e + i + k] = part[k][j];
    }
    return g->panel_values;
}

/* Sets w[q] to the products of query q and the 64 keys of a page. */
static void scores_of(const group *g, float (*w)[GGL_PAGE], const char *keys, const char *next) {
    const cpu_kernels *k = &g->t->b->k;
    const ggl_store *s = g->t->step->attend.kept[0].store;
    if (k->code_scores[s->type])
        k->code_scores[s->type](w, (const cpu_qblock *const *)g->rounded, g->n, keys, s->ne[0],
                                next);
    else
        k->scores[s->type](w, g->query, g->n, keys, s->ne[0], next);
}

/* Sets o[q] to the sum of weights times values of a page, over the positions that query q sees. */
static void values_of(const group *g, float (*w)[GGL_PAGE], const int *lo, const int *hi,
                      const void *page, ggl_type type, const void *next, float *o) {
    const cpu_kernels *k = &g->t->b->k;
    if (k->code_values[type]) {
        k->code_values[type](o, g->step, w, g->n, page, g->e, lo, hi, next);
        return;
    }
    memset(o, 0, (size_t)(g->n * g->step) * sizeof *o);
    ggl_cpu_attend_values(k, g->n, w, lo, hi, page, type, g->e, next, o, g->step);
}

/* Merges the page of positions first .. first+63 into `total`, for few queries. page: scratch. Keys,
 * values and the next page's keys are far apart in memory, so each kernel prefetches what is read
 * after it. */
static void one_page(const group *g, int64_t first, partial *page, partial *total) {
    const cpu_step *s = g->t->step;
    const ggl_store *vs = s->attend.kept[1].store;
    float w[CPU_QUERIES][GGL_PAGE];
    int lo[CPU_QUERIES], hi[CPU_QUERIES];
    const size_t number = cpu_attend_page(g, first);
    const char *keys = g->keys + number * g->keys_step,
               *values = vs ? g->values + number * g->values_step : NULL,
               *next = first + GGL_PAGE <= g->last
                           ? g->keys + cpu_attend_page(g, first + GGL_PAGE) * g->keys_step
                           : keys;
    scores_of(g, w, keys, vs ? values : next);
    if (cpu_attend_is_relative(g)) {
        ggl_cpu_attend_decode_keys(g, keys);
        ggl_cpu_attend_relative_add(g, first, w);
    }
    (void)ggl_cpu_attend_weigh(g, first, w, lo, hi, page);
    if (vs)
        values_of(g, w, lo, hi, values, vs->type, next, page->o);
    else
        values_of(g, w, lo, hi, values_of_keys(g, keys), GGL_F32, g->panel_values, page->o);
    merge(g, total, page);
}

/* --- a group of queries ---------------------------------------------------------------------- */

/* Makes *g an empty group of a store head for queries of a slot. memory: the thread's scratch. */
static void group_begin(group *g, const cpu_task *t, int64_t store_head, int64_t slot,
                        float *memory) {
    const cpu_step *s = t->step;
    g->t = t;
    g->n = 0;
    g->first = INT64_MAX;
    g->last = 0;
    g->all_from = 0;
    g->all_end = INT64_MAX;
    g->store_head = store_head;
    g->e = t->dst.ne[0];
    g->step = cpu_attend_step(g->e);
    g->slot = slot;
    g->table = cpu_attend_table(&t->src[ATTEND_PAGE], slot);
    g->keys = cpu_attend_rows(t, 0, store_head);
    g->values = s->attend.kept[1].store ? cpu_attend_rows(t, 1, store_head) : NULL;
    g->keys_step = s->attend.kept[0].at.step;
    g->values_step = s->attend.kept[1].at.step;
    memory += (2 * s->attend.most + CPU_QUERIES) * g->step;
    for (int q = 0; q < CPU_QUERIES; q++)
        g->rounded[q] = (cpu_qblock *)memory + q * (t->src[ATTEND_Q].ne[0] / CPU_QBLOCK);
    g->panel_values = memory + rounded_floats(s);
    g->panel_keys = g->panel_values + g->step * GGL_PAGE;
    g->panel_rows = g->panel_keys + t->src[ATTEND_Q].ne[0] * GGL_PAGE;
    g->chosen = NULL;
}

/* Adds the query of head `head` of token l. */
static void group_add(group *g, int64_t l, int64_t head) {
    const cpu_task *t = g->t;
    const ggl_visible v = g->n > 0 && g->chosen ? (ggl_visible){g->slot, g->from[0], g->end[0]}
                                                : cpu_attend_visible(t, l, g->store_head);
    const int q = g->n++;
    g->token[q] = l;
    g->head[q] = head;
    g->pos[q] = cpu_attend_number(&t->src[ATTEND_POS], l);
    g->from[q] = v.first;
    g->end[q] = v.end;
    g->query[q] =
        (const float *)(t->src[ATTEND_Q].p +
                        (t->src[ATTEND_Q].ne[3] == 1 ? 0 : (size_t)l * t->src[ATTEND_Q].nb[3]) +
                        (size_t)head * t->src[ATTEND_Q].nb[1]);
    g->first = cpu_min(g->first, g->from[q]);
    g->last = cpu_max(g->last, v.end - 1);
    g->all_from = cpu_max(g->all_from, v.first);
    g->all_end = cpu_min(g->all_end, v.end);
    g->chosen = cpu_attend_chosen(t, l, g->store_head);
}

/* The queries of a store head are numbered token by token, and within a token head by head; a unit
 * has unit.attend.group_size of them in this order. */
typedef struct unit_queries {
    int64_t store_head, per; /* query heads of a store head */
    int64_t first, last;     /* numbers first .. last - 1 */
} unit_queries;

/* Returns the queries of unit u. Later tokens see more positions: their units come first. Threads
 * may have to wait for the last units, so these are short. */
static unit_queries queries_of(const cpu_task *t, int64_t u) {
    const int64_t n_store = t->step->attend.kept[0].store->ne[1], per = t->dst.ne[1] / n_store,
                  first = (t->unit.attend.n_groups - 1 - u / n_store) * t->unit.attend.group_size;
    return (unit_queries){u % n_store, per, first,
                          cpu_min(t->n * per, first + t->unit.attend.group_size)};
}

/* True if token l sees none of the rows that the group's queries see: its pages would be computed in vain for all but it. */
static bool is_apart(const group *g, int64_t l) {
    const ggl_visible v = cpu_attend_visible(g->t, l, g->store_head);
    return g->n > 0 && (v.first > g->last || v.end <= g->first);
}

/* True if token l reads other chosen rows than the group's queries. */
static bool chooses_apart(const group *g, int64_t l) {
    return g->n > 0 && g->chosen && l != g->token[0];
}

/* Makes *g the group of the queries from *i on that have one slot and see some rows in common, and moves *i past them. */
static void group_next(group *g, const cpu_task *t, const unit_queries *of, int64_t *i,
                       float *memory) {
    const int64_t slot = cpu_attend_number(&t->src[ATTEND_SLOT], *i / of->per);
    group_begin(g, t, of->store_head, slot, memory);
    const bool within = t->src[ATTEND_WITHIN].p != NULL;
    for (; *i < of->last && cpu_attend_number(&t->src[ATTEND_SLOT], *i / of->per) == slot &&
           !(within && is_apart(g, *i / of->per)) && !chooses_apart(g, *i / of->per);
         ++*i)
        group_add(g, *i / of->per, of->store_head * of->per + *i % of->per);
    for (int q = 0; q < g->n && rounded_floats(t->step) > 0; q++)
        t->b->k.quantize(g->rounded[q], g->query[q], t->src[ATTEND_Q].ne[0]);
    if (cpu_attend_is_relative(g))
        ggl_cpu_attend_relative_begin(g, g->panel_keys + t->src[ATTEND_Q].ne[0] * GGL_PAGE);
}

/* Sets *out to the partial results for a span: its visible pages, merged in ascending order. */
static void one_span(const group *g, int64_t span, partial *page, partial *out) {
    const int64_t from = cpu_max(g->first, span * SPAN),
                  to = cpu_min(g->last, span * SPAN + SPAN - 1);
    for (int q = 0; q < g->n; q++)
        out->any[q] = false;
    for (int64_t first = from / GGL_PAGE * GGL_PAGE; first <= to; first += GGL_PAGE)
        if (g->n > CPU_QUERIES || g->chosen)
            ggl_cpu_attend_panels(g, first, page, out);
        else
            one_page(g, first, page, out);
}

/* Merges the sinks into `total`, and writes the results o / l. */
static void finish(const group *g, partial *total, partial *scratch) {
    const cpu_task *t = g->t;
    shares share;
    for (int q = 0; q < g->n; q++) {
        if (t->src[ATTEND_SINKS].p) {
            scratch->m[q] = cpu_attend_per_head(&t->src[ATTEND_SINKS], g->head[q], g->token[q]);
            scratch->l[q] = 1;
            scratch->any[q] = true;
            memset(scratch->o, 0, (size_t)g->e * sizeof *scratch->o);
            ggl_cpu_attend_shares(g, total, scratch, q, q + 1, &share);
            ggl_cpu_attend_merge(g, total, scratch, scratch->o, q, q + 1, &share);
        }
        float *y = (float *)(t->dst.p + (size_t)g->token[q] * t->dst.nb[3] +
                             (size_t)g->head[q] * t->dst.nb[1]);
        t->b->k.binary[CPU_DIV](y, total->o + q * g->step, 1, &total->l[q], 0, g->e);
    }
}

/* --- run ------------------------------------------------------------------------------------ */

/* Returns the number of heads of a token in a group. */
static int64_t heads_of_group(const cpu_task *t) {
    const int64_t n_store = t->step->attend.kept[0].store->ne[1], per = t->dst.ne[1] / n_store;
    int64_t parts = (per + t->step->attend.most - 1) / t->step->attend.most;
    while (parts < per && t->n * n_store * parts < t->n_threads)
        parts++;
    return (per + parts - 1) / parts;
}

/* Returns the number of queries in a group. Queries of one sequence share the decoding of a page,
 * so a group is large, unless there would be too few groups for all threads. */
static int64_t queries_of_group(const cpu_task *t) {
    if (cpu_attend_is_chosen(t->step)) /* of one token, as each has rows of its own */
        return heads_of_group(t);
    const int64_t n = t->n * t->dst.ne[1]; /* queries in all */
    int64_t slots = 1, most = t->step->attend.most;
    for (int64_t l = 1; l < t->n; l++)
        slots += cpu_attend_number(&t->src[ATTEND_SLOT], l) !=
                 cpu_attend_number(&t->src[ATTEND_SLOT], l - 1);
    while (most > 2 * CPU_QUERIES && n < 8 * most * (t->n_threads - 1))
        most /= 2;
    if (most > CPU_QUERIES && n / t->step->attend.kept[0].store->ne[1] / slots > CPU_QUERIES)
        return most;
    most = cpu_min(most, CPU_QUERIES);
    while (most > 2 && n <= most * (t->n_threads - 1))
        most /= 2;
    return n <= t->n_threads ? 1 : most;
}

/* Divides the work into units, and sets t->unit.attend. */
static void attend_begin(cpu_task *t) {
    const int64_t n_store = t->step->attend.kept[0].store->ne[1], per = t->dst.ne[1] / n_store,
                  n_lists = cpu_attend_is_chosen(t->step) ? t->src[ATTEND_CHOSEN].ne[1] : 1;
    int64_t longest = 0, seen = 0, end = 0;
    for (int64_t i = 0; i < t->n * n_lists; i++) {
        const ggl_visible v = cpu_attend_visible(t, i / n_lists, i % n_lists);
        longest = cpu_max(longest, v.end - v.first);
        seen += v.end - v.first;
        end = cpu_max(end, v.end);
    }
    t->unit.attend.group_size = queries_of_group(t);
    t->unit.attend.n_groups =
        (t->n * per + t->unit.attend.group_size - 1) / t->unit.attend.group_size;
    t->n_units = t->unit.attend.n_groups * n_store;
    t->unit.attend.n_spans = 0;
    if (t->n == 1 && longest > SPAN && t->n_threads > 1 && t->n_units < 4 * t->n_threads) {
        t->unit.attend.first_span = cpu_attend_visible(t, 0, 0).first / SPAN;
        t->unit.attend.n_spans = (end - 1) / SPAN - t->unit.attend.first_span + 1;
        t->n_units *= t->unit.attend.n_spans;
    }
    t->cost = 2 * (double)(t->src[ATTEND_Q].ne[0] + t->dst.ne[0]) * (double)seen *
              (double)t->dst.ne[1] / (double)(n_lists * t->n_units);
}

/* The partial results in a thread's scratch: of a page, of a span and of all. */
typedef struct results {
    partial page, span, total;
} results;

static void results_at(results *r, const cpu_task *t, float *memory) {
    const int64_t step = cpu_attend_step(t->dst.ne[0]);
    r->page.o = memory;
    r->span.o = memory + CPU_QUERIES * step;
    r->total.o = r->span.o + t->step->attend.most * step;
    memset(r->total.any, 0, sizeof r->total.any);
}

/* Partial result of (head, span) in the shared scratch: max m, sum l, output o[e]. */
static float *kept(const cpu_task *t, int64_t head, int64_t span) {
    return (float *)t->shared +
           (size_t)(head * t->unit.attend.n_spans + span) * partial_floats(t->dst.ne[0]);
}

/* Runs a group. span >= 0: only that span, counted from the first visible one; the partial results
 * go to the shared scratch. span -1: all of them, to the results. memory: the thread's scratch. */
static void run_group(const group *g, int64_t span, float *memory) {
    const cpu_task *t = g->t;
    results r;
    results_at(&r, t, memory);
    if (span >= 0) {
        one_span(g, span + t->unit.attend.first_span, &r.page, &r.span);
        for (int q = 0; q < g->n; q++) {
            float *to = kept(t, g->head[q], span);
            to[0] = r.span.m[q];
            to[1] = r.span.any[q] ? r.span.l[q] : -1; /* -1: nothing visible */
            memcpy(to + 2, r.span.o + q * g->step, (size_t)g->e * sizeof *to);
        }
        return;
    }
    for (int64_t s = g->first / SPAN; s <= g->last / SPAN; s++) {
        one_span(g, s, &r.page, &r.span);
        merge(g, &r.total, &r.span);
    }
    finish(g, &r.total, &r.page);
}

static void attend_run(const cpu_task *t, int64_t first, int64_t last, int thread) {
    float *memory = (float *)cpu_thread_scratch(t, thread);
    const int64_t n_spans = t->unit.attend.n_spans == 0 ? 1 : t->unit.attend.n_spans;
    for (int64_t u = first; u < last; u++) {
        const unit_queries of = queries_of(t, u / n_spans);
        for (int64_t i = of.first; i < of.last;) {
            group g;
            group_next(&g, t, &of, &i, memory);
            run_group(&g, t->unit.attend.n_spans == 0 ? -1 : u % n_spans, memory);
        }
    }
}

/* Called when all units are done: merges the partial results of all spans, in ascending order. */
static void attend_end(const cpu_task *t) {
    if (t->unit.attend.n_spans == 0)
        return;
    const int64_t n_groups = t->unit.attend.n_groups * t->step->attend.kept[0].store->ne[1];
    float *memory = (float *)cpu_thread_scratch(t, 0);
    for (int64_t u = 0; u < n_groups; u++) {
        const unit_queries of = queries_of(t, u);
        int64_t first = of.first;
        group g;
        group_next(&g, t, &of, &first, memory); /* all, as there is one token */
        results r;
        results_at(&r, t, memory);
        for (int64_t s = 0; s < t->unit.attend.n_spans; s++) {
            for (int q = 0; q < g.n; q++) {
                const float *from = kept(t, g.head[q], s);
                r.span.m[q] = from[0];
                r.span.l[q] = from[1];
                r.span.any[q] = !(from[1] < 0);
                memcpy(r.span.o + q * g.step, from + 2, (size_t)g.e * sizeof *from);
            }
            merge(&g, &r.total, &r.span);
        }
        finish(&g, &r.total, &r.page);
    }
}

const cpu_op ggl_cpu_op_attend = {
    .compile = attend_compile, .begin = attend_begin, .run = attend_run, .end = attend_end};
