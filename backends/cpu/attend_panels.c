/* One page of attention for many queries: keys and values are decoded to f32 once, as panels, and
 * multiplied with CPU_TILE queries at a time, whose sums stay in registers for the whole page. */
#include <string.h>

#include "attend.h"
#include "prefetch.h"

/* What the page after this one needs is prefetched in slices, one for each tile. */
typedef struct ahead {
    const char *p; /* NULL: nothing */
    size_t left, slice;
} ahead;

static ahead ahead_of(const char *p, size_t size, int n_queries) {
    const size_t n_tiles = (size_t)(n_queries + CPU_TILE - 1) / CPU_TILE;
    return (ahead){p, p ? size : 0, (size / n_tiles + 63) / 64 * 64};
}

static void fetch_slice(ahead *a) {
    const size_t n = a->left < a->slice ? a->left : a->slice;
    if (n == 0)
        return;
    fetch_far(a->p, (int64_t)n);
    a->p += n;
    a->left -= n;
}

/* Decodes the values of a page to rows of g->step floats. */
static void decode_values(const group *g, const ggl_store *s, const char *page) {
    void (*to_f32)(const void *, float *, int64_t) = g->t->b->k.to_f32[s->type];
    const size_t row_size = ggl_row_size(s->type, g->e);
    if (g->step == g->e) {
        to_f32(page, g->panel_values, g->e * GGL_PAGE);
        return;
    }
    for (int j = 0; j < GGL_PAGE; j++) {
        float *row = g->panel_values + j * g->step;
        to_f32(page + (size_t)j * row_size, row, g->e);
        memset(row + g->e, 0, (size_t)(g->step - g->e) * sizeof *row);
    }
}

/* The same for values that are the leading part of the keys, whose panel has been made. */
static void transpose_values(const group *g) {
    enum { BLOCK = 16 }; /* rows and columns at a time, so that both stay in the L1 cache */
    memset(g->panel_values, 0, (size_t)(GGL_PAGE * g->step) * sizeof *g->panel_values);
    for (int64_t i = 0; i < g->e; i += BLOCK)
        for (int from = 0; from < GGL_PAGE; from += BLOCK)
            for (int j = from; j < from + BLOCK; j++)
                for (int64_t k = i; k < cpu_min(g->e, i + BLOCK); k++)
                    g->panel_values[j * g->step + k] = g->panel_keys[k * GGL_PAGE + j];
}

/* Returns true if either all or none of the queries have seen a page. */
static bool are_alike(const group *g, const partial *total) {
    for (int q = 1; q < g->n; q++)
        if (total->any[q] != total->any[0])
            return false;
    return true;
}

/* Adds the values for pages that all queries see: their sums are merged as they leave the
 * registers. */
static void add_full(const group *g, float (*w)[GGL_PAGE], const partial *page, partial *total,
                     ahead *next) {
    shares share;
    ggl_cpu_attend_shares(g, total, page, 0, g->n, &share);
    for (int q = 0; q < g->n; q += CPU_TILE) {
        fetch_slice(next);
        g->t->b->k.panel_values(total->o + q * g->step, g->step, w + q,
                                (int)cpu_min(CPU_TILE, g->n - q), g->panel_values,
                                share.first[0] ? NULL : share.factor + q);
    }
}

/* Adds the values for other pages, at the ends of what the queries see. */
static void add_part(const group *g, float (*w)[GGL_PAGE], const int *lo, const int *hi,
                     partial *page, partial *total) {
    shares share;
    ggl_cpu_attend_shares(g, total, page, 0, g->n, &share);
    for (int q = 0; q < g->n; q += CPU_TILE) {
        const int n = (int)cpu_min(CPU_TILE, g->n - q);
        memset(page->o, 0, (size_t)(n * g->step) * sizeof *page->o);
        ggl_cpu_attend_values(&g->t->b->k, n, w + q, lo + q, hi + q, g->panel_values, GGL_F32,
                              g->step, g->panel_values, page->o, g->step);
        ggl_cpu_attend_merge(g, total, page, page->o, q, q + n, &share);
    }
}

void ggl_cpu_attend_panels(const group *g, int64_t first, partial *page, partial *total) {
    const cpu_kernels *k = &g->t->b->k;
    const ggl_store *ks = g->t->step->attend.kept[0].store, *vs = g->t->step->attend.kept[1].store;
    const size_t number = g->chosen ? 0 : cpu_attend_page(g, first),
                 keys_size = GGL_PAGE * ggl_row_size(ks->type, ks->ne[0]);
    const char *keys = g->keys + number * g->keys_step,
               *values = vs && !g->chosen ? g->values + number * g->values_step : NULL;
    float w[CPU_MOST_QUERIES][GGL_PAGE];
    int lo[CPU_MOST_QUERIES], hi[CPU_MOST_QUERIES];

    if (g->chosen)
        ggl_cpu_attend_chosen(g, first);
    else
        k->to_f32[ks->type](keys, g->panel_keys, ks->ne[0] * GGL_PAGE);
    ahead next = ahead_of(values, vs ? GGL_PAGE * ggl_row_size(vs->type, g->e) : 0, g->n);
    for (int q = 0; q < g->n; q += CPU_TILE) {
        fetch_slice(&next);
        k->panel_scores(w + q, g->query + q, (int)cpu_min(CPU_TILE, g->n - q), g->panel_keys,
                        ks->ne[0]);
    }
    if (cpu_attend_is_relative(g))
        ggl_cpu_attend_relative_add(g, first, w);
    const bool whole = ggl_cpu_attend_weigh(g, first, w, lo, hi, page);
    if (vs && !g->chosen)
        decode_values(g, vs, values);
    else if (!g->chosen)
        transpose_values(g);
    if (!whole || !are_alike(g, total)) {
        add_part(g, w, lo, hi, page, total);
        return;
    }
    next = g->chosen || first + GGL_PAGE > g->last
               ? ahead_of(NULL, 0, g->n)
               : ahead_of(g->keys + cpu_attend_page(g, first + GGL_PAGE) * g->keys_step, keys_size,
                          g->n);
    add_full(g, w, page, total, &next);
}
