#include "drawing_layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/steps.h"

#define BEND_W     10.0
#define N_SWEEPS   24
#define N_SETTLE   200
#define STRAIGHT   12.0 /* weight of an edge between two bends for being straight.. */
#define STRONG     1e5  /* ..and of a strong one */
#define MOST_ITEMS 100000

typedef struct link { /* a piece of an edge, between items of neighbouring ranks */
    int up, down;
    int order[2]; /* of these, for sorting */
    double weight;
} link;

/* Some neighbouring items of a rank that would overlap without being moved. Items are placed as
 * near to their wanted places as their widths allow, by least squares: items that would overlap
 * become a cluster, at the weighted mean of its members' wanted places. */
typedef struct cluster {
    double at, weight;
    int n;
} cluster;

typedef struct wanted { /* the place that an item is drawn to in its rank */
    double key;
    int item, order;
} wanted;

typedef struct work {
    layout *l;
    link *link;
    int n_links;
    int *link_at;           /* those that lead into rank r: link[link_at[r] .. link_at[r+1]) */
    int *rank_at, *in_rank; /* items of rank r in order: in_rank[rank_at[r] .. rank_at[r+1]) */
    int *count;             /* a Fenwick tree over a rank, to count crossings */
    int *best;              /* the in_rank with the fewest */
    wanted *want;
    cluster *cluster;
} work;

/* --- ranks ------------------------------------------------------------------------------------ */

/* Puts nodes below all their sources; nodes without a source just above their first user; and the last
 * ones at the bottom. */
static void find_ranks(layout *l, const drawing_node *node, const drawing_edge *edge, size_t n) {
    int most = 0;
    for (size_t e = 0; e < n; e++) {
        layout_item *from = &l->item[edge[e].from], *to = &l->item[edge[e].to];
        to->rank = from->rank + 1 > to->rank ? from->rank + 1 : to->rank;
    }
    /* `order` holds the rank of the first user until ranks are ordered */
    for (size_t e = 0; e < n; e++) {
        layout_item *from = &l->item[edge[e].from];
        const int rank = l->item[edge[e].to].rank;
        from->order = from->order == 0 || rank < from->order ? rank : from->order;
    }
    for (int i = 0; i < l->n_items; i++) {
        layout_item *t = &l->item[i];
        most = t->rank > most ? t->rank : most;
        if (t->rank == 0 && t->order > 0) /* it has no source */
            t->rank = t->order - 1;
        GGL_STEPS(1);
    }
    for (int i = 0; i < l->n_items; i++)
        if (node[i].last)
            l->item[i].rank = most;
    l->n_ranks = most + 1;
}

/* Counts nodes and bends. */
static int64_t count_items(const layout *l, const drawing_edge *edge, size_t n) {
    int64_t all = l->n_items;
    for (size_t e = 0; e < n; e++)
        all += l->item[edge[e].to].rank - l->item[edge[e].from].rank - 1;
    return all;
}

static void add_edges(work *w, const drawing_edge *edge, size_t n) {
    layout *l = w->l;
    for (size_t k = 0; k < n; k++) {
        layout_edge *e = &l->edge[l->n_edges++];
        int up = edge[k].from;
        *e = (layout_edge){up, edge[k].to, l->n_items,
                           l->item[edge[k].to].rank - l->item[up].rank - 1, edge[k].strong};
        for (int r = 0; r <= e->n_bends; r++) {
            const bool last = r == e->n_bends, bent = e->n_bends > 0;
            const double weight = e->strong ? STRONG : r > 0 && !last ? STRAIGHT : bent ? 2 : 1;
            const int down = last ? e->to : l->n_items++;
            if (!last)
                l->item[down] = (layout_item){.rank = l->item[up].rank + 1, .w = BEND_W};
            w->link[w->n_links++] = (link){up, down, {0, 0}, weight};
            up = down;
        }
    }
}

static int by_order(const void *a, const void *b) {
    const link *x = a, *y = b;
    const int k = x->order[0] == y->order[0];
    return (x->order[k] > y->order[k]) - (x->order[k] < y->order[k]);
}

/* Sets the order of a rank's items; of all of them, with r < 0. */
static void number(work *w, int r) {
    for (int k = r < 0 ? 0 : r; k < (r < 0 ? w->l->n_ranks : r + 1); k++)
        for (int i = w->rank_at[k]; i < w->rank_at[k + 1]; i++)
            w->l->item[w->in_rank[i]].order = i - w->rank_at[k];
}

/* Lists items and links by rank. */
static void list_ranks(work *w) {
    layout *l = w->l;
    for (int i = 0; i < l->n_items; i++)
        w->rank_at[l->item[i].rank + 2]++;
    for (int k = 0; k < w->n_links; k++) {
        w->link[k].order[0] = l->item[w->link[k].down].rank;
        w->link[k].order[1] = k;
        w->link_at[w->link[k].order[0] + 1]++;
    }
    for (int r = 0; r < l->n_ranks; r++) {
        w->rank_at[r + 2] += w->rank_at[r + 1];
        w->link_at[r + 1] += w->link_at[r];
    }
    w->link_at[l->n_ranks + 1] = w->n_links;
    for (int i = 0; i < l->n_items; i++) /* rank_at[r + 1] is where rank r goes on, and then ends */
        w->in_rank[w->rank_at[l->item[i].rank + 1]++] = i;
    qsort(w->link, (size_t)w->n_links, sizeof *w->link, by_order);
    number(w, -1);
}

/* --- order ------------------------------------------------------------------------------------ */

/* Sums up the places, or the orders, of the neighbours of a rank's items. */
static void pull(const work *w, int r, bool above, bool below, bool by_x) {
    layout_item *item = w->l->item;
    for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++)
        item[w->in_rank[i]].sum = item[w->in_rank[i]].weight = 0;
    for (int k = w->link_at[r + !above]; k < w->link_at[r + 1 + below]; k++) {
        const link *n = &w->link[k];
        const bool into = k < w->link_at[r + 1];
        const layout_item *from = &item[into ? n->up : n->down];
        layout_item *to = &item[into ? n->down : n->up];
        to->sum += n->weight * (by_x ? from->x : from->order);
        to->weight += n->weight;
        GGL_STEPS(1);
    }
}

static int compare_wanted(const void *a, const void *b) {
    const wanted *x = a, *y = b;
    return x->key != y->key ? (x->key < y->key ? -1 : 1)
                            : (x->order > y->order) - (x->order < y->order);
}

/* Sorts a rank by the mean place of the neighbours above or below. */
static void order_rank(work *w, int r, bool above) {
    int *at = w->in_rank + w->rank_at[r], n = w->rank_at[r + 1] - w->rank_at[r];
    pull(w, r, above, !above, false);
    for (int i = 0; i < n; i++) {
        const layout_item *t = &w->l->item[at[i]];
        w->want[i] = (wanted){t->weight > 0 ? t->sum / t->weight : t->order, at[i], i};
    }
    qsort(w->want, (size_t)n, sizeof *w->want, compare_wanted);
    for (int i = 0; i < n; i++)
        at[i] = w->want[i].item;
    number(w, r);
}

/* Counts the crossings of links into rank r: of two links that cross, one begins further left
 * and ends further right. Links are taken from left to right, and the tree counts where the
 * earlier ones ended. */
static long crossings(const work *w, int r) {
    const int n = w->rank_at[r + 1] - w->rank_at[r], first = w->link_at[r],
              last = w->link_at[r + 1];
    long found = 0;
    for (int k = first; k < last; k++) {
        w->link[k].order[0] = w->l->item[w->link[k].up].order;
        w->link[k].order[1] = w->l->item[w->link[k].down].order;
    }
    qsort(w->link + first, (size_t)(last - first), sizeof *w->link, by_order);
    memset(w->count, 0, ((size_t)n + 1) * sizeof *w->count);
    for (int k = first; k < last; k++) {
        found += k - first;
        for (int j = w->link[k].order[1] + 1; j > 0; j &= j - 1)
            found -= w->count[j];
        for (int j = w->link[k].order[1] + 1; j <= n; j += j & -j)
            w->count[j]++;
        GGL_STEPS(1);
    }
    return found;
}

/* Sorts all ranks up and down several times, and keeps the order with the fewest crossings. */
static void find_order(work *w) {
    const int last = w->l->n_ranks - 1;
    const size_t size = (size_t)w->l->n_items * sizeof *w->best;
    long fewest = -1;
    for (int s = 0; s < N_SWEEPS; s++) {
        long n = 0;
        for (int r = 0; r <= last; r++)
            n += crossings(w, r);
        if (fewest < 0 || n < fewest) {
            fewest = n;
            memcpy(w->best, w->in_rank, size);
        }
        for (int r = 0; r <= last; r++)
            order_rank(w, s % 2 ? last - r : r, s % 2 == 0);
    }
    memcpy(w->in_rank, w->best, size);
    number(w, -1);
}

/* --- coordinates ------------------------------------------------------------------------------ */

/* Sets the x of a rank's items, by their neighbours above and below. */
static void place_rank(work *w, int r, bool below) {
    layout *l = w->l;
    const int *at = w->in_rank + w->rank_at[r], n = w->rank_at[r + 1] - w->rank_at[r];
    cluster *c = w->cluster;
    int m = 0;
    double offset = 0;
    pull(w, r, true, below, true);
    for (int i = 0; i < n; i++) {
        const layout_item *t = &l->item[at[i]];
        if (i)
            offset += (l->item[at[i - 1]].w + t->w) / 2 + LAYOUT_GAP_X;
        const bool wants = t->weight > 0;
        c[m++] =
            (cluster){(wants ? t->sum / t->weight : t->x) - offset, wants ? t->weight : 0.1, 1};
        for (; m > 1 && c[m - 2].at > c[m - 1].at; m--) {
            cluster *a = &c[m - 2], *b = &c[m - 1];
            a->at = (a->at * a->weight + b->at * b->weight) / (a->weight + b->weight);
            a->weight += b->weight;
            a->n += b->n;
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

static void find_places(work *w) {
    layout *l = w->l;
    double left = INFINITY, right = -INFINITY, y = 0;
    for (int r = 0; r < l->n_ranks; r++)
        place_rank(w, r, false);
    for (int s = 0; s < N_SETTLE; s++)
        for (int r = 0; r < l->n_ranks; r++)
            place_rank(w, s % 2 ? r : l->n_ranks - 1 - r, true);
    for (int i = 0; i < l->n_items; i++) {
        left = fmin(left, l->item[i].x - l->item[i].w / 2);
        right = fmax(right, l->item[i].x + l->item[i].w / 2);
    }
    for (int r = 0; r < l->n_ranks; r++, y += LAYOUT_GAP_Y) {
        double most = 0;
        for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++)
            most = fmax(most, l->item[w->in_rank[i]].h);
        for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++) {
            layout_item *t = &l->item[w->in_rank[i]];
            t->x -= left;
            t->y = y + (most - t->h) / 2;
        }
        y += most;
    }
    l->w = right - left;
    l->h = y - LAYOUT_GAP_Y;
}

/* --- the layout ------------------------------------------------------------------------------- */

/* Makes room for n items and e edges. False: out of memory. */
static bool reserve(work *w, size_t n, size_t e) {
    const size_t ranks = (size_t)w->l->n_ranks + 2;
    size_t cap = (size_t)w->l->n_items;
    w->link = ggl_calloc(n + e + 1, sizeof *w->link);
    w->link_at = ggl_calloc(ranks, sizeof *w->link_at);
    w->rank_at = ggl_calloc(ranks, sizeof *w->rank_at);
    w->in_rank = ggl_calloc(n + 1, sizeof *w->in_rank);
    w->count = ggl_calloc(n + 1, sizeof *w->count);
    w->best = ggl_calloc(n + 1, sizeof *w->best);
    w->want = ggl_calloc(n + 1, sizeof *w->want);
    w->cluster = ggl_calloc(n + 1, sizeof *w->cluster);
    w->l->edge = ggl_calloc(e + 1, sizeof *w->l->edge);
    return w->link && w->link_at && w->rank_at && w->in_rank && w->count && w->best && w->want &&
           w->cluster && w->l->edge && ggl_grow(&w->l->item, &cap, n + 1, sizeof *w->l->item);
}

static void work_fini(work *w) {
    void *const arrays[] = {w->link,  w->link_at, w->rank_at, w->in_rank,
                            w->count, w->best,    w->want,    w->cluster};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ggl_free(arrays[i]);
}

ggl_status layout_make(layout *l, const drawing *d, const drawing_block *b,
                       void (*size)(const drawing_node *n, double *w, double *h), ggl_error *err) {
    const drawing_node *node = b->n_nodes > 0 ? &d->node[b->node] : NULL;
    const drawing_edge *edge = b->n_edges > 0 ? &d->edge[b->edge] : NULL;
    work w = {.l = l};
    *l = (layout){.item = ggl_calloc(b->n_nodes + 1, sizeof *l->item), .n_items = (int)b->n_nodes};
    if (!l->item)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
    for (size_t i = 0; i < b->n_nodes; i++)
        size(&node[i], &l->item[i].w, &l->item[i].h);
    find_ranks(l, node, edge, b->n_edges);
    const int64_t n_items = count_items(l, edge, b->n_edges);
    ggl_status st = GGL_OK;
    if (n_items > MOST_ITEMS)
        st = ggl_fail(err, GGL_LIMIT,
                      "a picture of '%s' would have %" PRId64
                      " nodes and bends, at most %d are supported",
                      b->title, n_items, MOST_ITEMS);
    else if (!reserve(&w, (size_t)n_items, b->n_edges))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
    else {
        add_edges(&w, edge, b->n_edges);
        list_ranks(&w);
        find_order(&w);
        find_places(&w);
    }
    work_fini(&w);
    if (st != GGL_OK)
        layout_fini(l);
    return st;
}

void layout_fini(layout *l) {
    ggl_free(l->item);
    ggl_free(l->edge);
    *l = (layout){0};
}
