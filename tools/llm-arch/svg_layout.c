#include "svg_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/steps.h"

#define BEND_W     10.0
#define N_SWEEPS   24
#define N_SETTLE   200
#define STRAIGHT   12.0 /* weight of an edge between two bends for being straight.. */
#define STREAM     1e5  /* ..and of the stream */
#define MOST_ITEMS 100000

typedef struct link { /* a piece of an edge, between items of neighbouring ranks */
    int up, down;
    double weight;
} link;

typedef struct work {
    layout *l;
    link *link;
    int n_links;
    int *up, *up_at; /* links that end at item i from above: up[up_at[i] .. up_at[i+1]) */
    int *down, *down_at;
    int *count;             /* a Fenwick tree over a rank, to count crossings */
    int *rank_at, *in_rank; /* items of rank r in order: in_rank[rank_at[r] .. rank_at[r+1]) */
} work;

/* --- ranks ------------------------------------------------------------------------------------ */

/* Puts nodes below all their sources; nodes without a source just above their first user; ports
 * where values leave at the bottom. */
static void find_ranks(layout *l, const figure_block *b) {
    int most = 0;
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->node[i].n_in; k++)
            if (l->item[b->node[i].in[k]].rank + 1 > l->item[i].rank)
                l->item[i].rank = l->item[b->node[i].in[k]].rank + 1;
    /* `order` holds the rank of the first user until ranks are ordered */
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->node[i].n_in; k++) {
            layout_item *from = &l->item[b->node[i].in[k]];
            from->order =
                from->order == 0 || l->item[i].rank < from->order ? l->item[i].rank : from->order;
        }
    for (int i = b->n - 1; i >= 0; i--) {
        most = l->item[i].rank > most ? l->item[i].rank : most;
        if (b->node[i].n_in == 0 && l->item[i].order > 0)
            l->item[i].rank = l->item[i].order - 1;
        GGL_STEPS(1);
    }
    for (int i = 0; i < b->n; i++)
        if (b->node[i].kind == FIGURE_PORT && !b->node[i].t)
            l->item[i].rank = most;
    l->n_ranks = most + 1;
}

/* Returns whether an edge is part of the stream that layers add to: from a port or a sum, to a
 * sum or the port where it leaves. */
static bool is_stream(const figure_node *from, const figure_node *to) {
    bool begins =
        from->kind == FIGURE_PORT || (from->kind == FIGURE_PLUS && strcmp(from->title, "+") == 0);
    bool ends = (to->kind == FIGURE_PLUS && strcmp(to->title, "+") == 0) ||
                (to->kind == FIGURE_PORT && !to->t);
    return begins && ends;
}

/* Counts nodes and bends, and the edges into *n_edges. */
static int64_t count_items(const layout *l, const figure_block *b, int64_t *n_edges) {
    int64_t n = b->n;
    *n_edges = 0;
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->node[i].n_in; k++) {
            ++*n_edges;
            n += l->item[i].rank - l->item[b->node[i].in[k]].rank - 1;
        }
    return n;
}

static bool add_edges(layout *l, const figure_block *b, work *w, int64_t n_items, int64_t n_edges) {
    layout_item *items = realloc(l->item, (size_t)(n_items + 1) * sizeof *items);
    if (!items)
        return false;
    l->item = items;
    l->edge = calloc((size_t)n_edges + 1, sizeof *l->edge);
    w->link = calloc((size_t)(n_items + n_edges) + 1, sizeof *w->link);
    if (!l->edge || !w->link)
        return false;
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->node[i].n_in; k++) {
            int from = b->node[i].in[k], last = from;
            layout_edge *e = &l->edge[l->n_edges++];
            *e = (layout_edge){from,
                               i,
                               k,
                               l->n_items,
                               l->item[i].rank - l->item[from].rank - 1,
                               is_stream(&b->node[from], &b->node[i])};
            double weight = e->stream ? STREAM : 0;
            for (int r = 0; r < e->n_bends; r++) {
                l->item[l->n_items] =
                    (layout_item){.rank = l->item[from].rank + 1 + r, .w = BEND_W};
                w->link[w->n_links++] = (link){last, l->n_items,
                                               weight > 0 ? weight
                                               : r        ? STRAIGHT
                                                          : 2};
                last = l->n_items++;
            }
            w->link[w->n_links++] = (link){last, i, weight > 0 ? weight : e->n_bends ? 2 : 1};
        }
    return true;
}

/* --- order ------------------------------------------------------------------------------------ */

static void fill_ranks(work *w) {
    layout *l = w->l;
    memset(w->rank_at, 0, (size_t)(l->n_ranks + 2) * sizeof *w->rank_at);
    for (int i = 0; i < l->n_items; i++)
        w->rank_at[l->item[i].rank + 1]++;
    for (int r = 0; r < l->n_ranks; r++)
        w->rank_at[r + 1] += w->rank_at[r];
    for (int i = 0; i < l->n_items; i++) {
        int r = l->item[i].rank, at = w->rank_at[r];
        while (w->in_rank[at] >= 0)
            at++;
        w->in_rank[at] = i;
        l->item[i].order = at - w->rank_at[r];
    }
}

/* Lists the links of each item that lead into it (`into`), or out of it, in order. False: out of
 * memory. */
static bool list_links(const work *w, bool into, int **list, int **at) {
    int n = w->l->n_items;
    *list = calloc((size_t)w->n_links + 1, sizeof **list);
    *at = calloc((size_t)n + 2, sizeof **at);
    if (!*list || !*at)
        return false;
    for (int k = 0; k < w->n_links; k++)
        (*at)[(into ? w->link[k].down : w->link[k].up) + 2]++;
    for (int i = 0; i < n; i++)
        (*at)[i + 2] += (*at)[i + 1];
    for (int k = 0; k < w->n_links; k++)
        (*list)[(*at)[(into ? w->link[k].down : w->link[k].up) + 1]++] = k;
    return true;
}

/* Returns the weighted mean of `place` over i's neighbours above (or below); -1 if none. */
static double mean(const work *w, int i, bool above, double (*place)(const layout_item *t),
                   double *weight) {
    const int *list = above ? w->up : w->down, *at = above ? w->up_at : w->down_at;
    double sum = 0, all = 0;
    for (int k = at[i]; k < at[i + 1]; k++) {
        const link *n = &w->link[list[k]];
        sum += n->weight * place(&w->l->item[above ? n->up : n->down]);
        all += n->weight;
    }
    GGL_STEPS(1 + at[i + 1] - at[i]);
    *weight = all;
    return all > 0 ? sum / all : -1;
}

static double by_order(const layout_item *t) {
    return t->order;
}
static double by_x(const layout_item *t) {
    return t->x;
}

typedef struct wanted { /* the place that an item is drawn to in its rank */
    double key;
    int item, order;
} wanted;

static int compare_wanted(const void *a, const void *b) {
    const wanted *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1)
                            : (x->order > y->order) - (x->order < y->order);
}

/* Sorts a rank by the mean place of the neighbours above or below. */
static void order_rank(work *w, int r, bool above, wanted *want) {
    int *at = w->in_rank + w->rank_at[r], n = w->rank_at[r + 1] - w->rank_at[r];
    for (int i = 0; i < n; i++) {
        double weight, m = mean(w, at[i], above, by_order, &weight);
        want[i] = (wanted){m < 0 ? w->l->item[at[i]].order : m, at[i], i};
    }
    qsort(want, (size_t)n, sizeof *want, compare_wanted);
    for (int i = 0; i < n; i++) {
        at[i] = want[i].item;
        w->l->item[at[i]].order = i;
    }
}

/* Counts the crossings of links below rank r: of two links that cross, one begins further left
 * and ends further right. Links are taken from left to right, and the tree counts where the
 * earlier ones ended. */
static long crossings_below(const work *w, int r) {
    long n = 0, before = 0;
    int size = w->rank_at[r + 2] - w->rank_at[r + 1];
    memset(w->count, 0, ((size_t)size + 1) * sizeof *w->count);
    for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++) {
        int item = w->in_rank[i], first = w->down_at[item], last = w->down_at[item + 1];
        for (int k = first; k < last; k++) {
            n += before;
            GGL_STEPS(1);
            for (int j = w->l->item[w->link[w->down[k]].down].order + 1; j > 0; j &= j - 1)
                n -= w->count[j];
        }
        for (int k = first; k < last; k++, before++)
            for (int j = w->l->item[w->link[w->down[k]].down].order + 1; j <= size; j += j & -j)
                w->count[j]++;
    }
    return n;
}

static long crossings(const work *w) {
    long n = 0;
    for (int r = 0; r + 1 < w->l->n_ranks; r++)
        n += crossings_below(w, r);
    return n;
}

/* Sorts all ranks up and down several times, and keeps the order with the fewest crossings. */
static void find_order(work *w, wanted *want, int *best) {
    long fewest = -1;
    int n = w->l->n_items;
    for (int s = 0; s < N_SWEEPS; s++) {
        long c = crossings(w);
        if (fewest < 0 || c < fewest) {
            fewest = c;
            memcpy(best, w->in_rank, (size_t)n * sizeof *best);
        }
        for (int r = 0; r < w->l->n_ranks; r++)
            order_rank(w, s % 2 ? w->l->n_ranks - 1 - r : r, s % 2 == 0, want);
    }
    memcpy(w->in_rank, best, (size_t)n * sizeof *best);
    for (int r = 0; r < w->l->n_ranks; r++)
        for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++)
            w->l->item[w->in_rank[i]].order = i - w->rank_at[r];
}

/* --- coordinates ------------------------------------------------------------------------------ */

/* Some neighbouring items of a rank that would overlap without being moved. Items are placed as
 * near to their wanted places as their widths allow, by least squares: items that would overlap
 * become a cluster, at the weighted mean of its members' wanted places. */
typedef struct cluster {
    double at, weight;
    int n;
} cluster;

/* Sets the x of a rank's items, by their neighbours above and below. */
static void place_rank(work *w, int r, bool above, bool below, cluster *c) {
    layout *l = w->l;
    const int *at = w->in_rank + w->rank_at[r];
    int n = w->rank_at[r + 1] - w->rank_at[r], m = 0;
    double offset = 0;
    for (int i = 0; i < n; i++) {
        layout_item *t = &l->item[at[i]];
        if (i)
            offset += (l->item[at[i - 1]].w + t->w) / 2 + LAYOUT_GAP_X;
        double wa = 0, wb = 0, ma = above ? mean(w, at[i], true, by_x, &wa) : 0,
               mb = below ? mean(w, at[i], false, by_x, &wb) : 0;
        double want = wa + wb > 0 ? (ma * wa + mb * wb) / (wa + wb) : t->x;
        c[m++] = (cluster){want - offset, wa + wb > 0 ? wa + wb : 0.1, 1};
        while (m > 1 && c[m - 2].at > c[m - 1].at) {
            cluster *a = &c[m - 2], *b = &c[m - 1];
            a->at = (a->at * a->weight + b->at * b->weight) / (a->weight + b->weight);
            a->weight += b->weight;
            a->n += b->n;
            m--;
        }
    }
    offset = 0;
    for (int k = 0, i = 0; k < m; k++)
        for (int j = 0; j < c[k].n; j++, i++) {
            if (i)
                offset += (l->item[at[i - 1]].w + l->item[at[i]].w) / 2 + LAYOUT_GAP_X;
            l->item[at[i]].x = c[k].at + offset;
        }
}

static void find_places(work *w, cluster *c) {
    layout *l = w->l;
    for (int r = 0; r < l->n_ranks; r++)
        place_rank(w, r, true, false, c);
    for (int s = 0; s < N_SETTLE; s++)
        for (int r = 0; r < l->n_ranks; r++)
            place_rank(w, s % 2 ? r : l->n_ranks - 1 - r, true, true, c);
    double left = 0, right = 0, y = 0;
    for (int i = 0; i < l->n_items; i++) {
        const layout_item *t = &l->item[i];
        left = i == 0 || t->x - t->w / 2 < left ? t->x - t->w / 2 : left;
        right = i == 0 || t->x + t->w / 2 > right ? t->x + t->w / 2 : right;
    }
    for (int r = 0; r < l->n_ranks; r++) {
        double most = 0;
        for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++)
            most = l->item[w->in_rank[i]].h > most ? l->item[w->in_rank[i]].h : most;
        for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++) {
            layout_item *t = &l->item[w->in_rank[i]];
            t->x -= left;
            t->y = y + (most - t->h) / 2;
        }
        y += most + LAYOUT_GAP_Y;
    }
    l->w = right - left;
    l->h = y - LAYOUT_GAP_Y;
}

/* --- the layout ------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Orders and places items whose ranks and edges are known. */
static ggl_status arrange(work *w, ggl_error *err) {
    layout *l = w->l;
    size_t n = (size_t)l->n_items + 1;
    wanted *want = calloc(n, sizeof *want);
    int *best = calloc(n, sizeof *best);
    cluster *c = calloc(n, sizeof *c);
    w->rank_at = calloc((size_t)l->n_ranks + 2, sizeof *w->rank_at);
    w->in_rank = malloc(n * sizeof *w->in_rank);
    w->count = calloc(n + 1, sizeof *w->count);
    bool ok = want && best && c && w->rank_at && w->in_rank && w->count &&
              list_links(w, true, &w->up, &w->up_at) && list_links(w, false, &w->down, &w->down_at);
    if (ok) {
        memset(w->in_rank, 0xff, n * sizeof *w->in_rank);
        fill_ranks(w);
        find_order(w, want, best);
        find_places(w, c);
    }
    free(want);
    free(best);
    free(c);
    return ok ? GGL_OK : no_memory(err);
}

static void work_fini(work *w) {
    free(w->link);
    free(w->rank_at);
    free(w->in_rank);
    free(w->count);
    free(w->up);
    free(w->up_at);
    free(w->down);
    free(w->down_at);
}

ggl_status layout_make(layout *l, const figure_block *b,
                       void (*size)(const figure_node *n, double *w, double *h), ggl_error *err) {
    work w = {.l = l};
    *l = (layout){.item = calloc((size_t)b->n + 1, sizeof *l->item), .n_items = b->n};
    if (!l->item)
        return no_memory(err);
    for (int i = 0; i < b->n; i++)
        size(&b->node[i], &l->item[i].w, &l->item[i].h);
    find_ranks(l, b);
    int64_t n_edges, n_items = count_items(l, b, &n_edges);
    ggl_status st = GGL_OK;
    if (n_items > MOST_ITEMS)
        st = ggl_fail(err, GGL_LIMIT,
                      "a picture of '%s' would have %" PRId64
                      " nodes and bends, at most %d are supported; --format dot and "
                      "text have no such limit",
                      b->title, n_items, MOST_ITEMS);
    else if (!add_edges(l, b, &w, n_items, n_edges))
        st = no_memory(err);
    if (st == GGL_OK)
        st = arrange(&w, err);
    work_fini(&w);
    if (st != GGL_OK)
        layout_fini(l);
    return st;
}

void layout_fini(layout *l) {
    free(l->item);
    free(l->edge);
    *l = (layout){0};
}
