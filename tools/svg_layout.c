#include "svg_layout.h"

#include <stdlib.h>
#include <string.h>

#define GAP_X      22.0 /* between nodes of a rank */
#define GAP_Y      36.0 /* between ranks: room for shapes */
#define BEND_W     10.0
#define N_SWEEPS   24
#define N_SETTLE   200
#define STRAIGHT   12.0  /* how much more an edge between bends wants to be straight */
#define STREAM     1e5   /* and the stream */

typedef struct link { /* between items of neighbouring ranks */
    int up, down;
    double weight;
} link;

typedef struct work {
    layout *l;
    link *link;
    int n_links;
    int *rank_at, *in_rank; /* items of rank r: in_rank[rank_at[r] .. rank_at[r+1]) in order */
} work;

/* --- ranks ------------------------------------------------------------------------------------------------------------ */

/* Below all sources; what has none, just above its first user; what leaves, at the bottom. */
static void find_ranks(layout *l, const figure_block *b) {
    int most = 0;
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->node[i].n_in; k++)
            if (l->item[b->node[i].in[k]].rank + 1 > l->item[i].rank)
                l->item[i].rank = l->item[b->node[i].in[k]].rank + 1;
    for (int i = b->n - 1; i >= 0; i--) {
        int first = -1;
        most = l->item[i].rank > most ? l->item[i].rank : most;
        for (int j = 0; j < b->n && b->node[i].n_in == 0; j++)
            for (int k = 0; k < b->node[j].n_in; k++)
                if (b->node[j].in[k] == i && (first < 0 || l->item[j].rank < first))
                    first = l->item[j].rank;
        if (first > 0)
            l->item[i].rank = first - 1;
    }
    for (int i = 0; i < b->n; i++)
        if (b->node[i].kind == FIGURE_PORT && !b->node[i].t)
            l->item[i].rank = most;
    l->n_ranks = most + 1;
}

/* The stream that layers add to: from a port, or a sum, to a sum or the port that leaves. */
static bool is_stream(const figure_node *from, const figure_node *to) {
    bool begins = from->kind == FIGURE_PORT || (from->kind == FIGURE_PLUS && strcmp(from->title, "+") == 0);
    bool ends = (to->kind == FIGURE_PLUS && strcmp(to->title, "+") == 0) || (to->kind == FIGURE_PORT && !to->t);
    return begins && ends;
}

static bool add_edges(layout *l, const figure_block *b, work *w) {
    int n_edges = 0, n_items = b->n;
    for (int i = 0; i < b->n; i++)
        for (int k = 0; k < b->node[i].n_in; k++) {
            n_edges++;
            n_items += l->item[i].rank - l->item[b->node[i].in[k]].rank - 1;
        }
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
            *e = (layout_edge){from, i, k, l->n_items, l->item[i].rank - l->item[from].rank - 1,
                               is_stream(&b->node[from], &b->node[i])};
            double weight = e->stream ? STREAM : 0;
            for (int r = 0; r < e->n_bends; r++) {
                l->item[l->n_items] = (layout_item){.rank = l->item[from].rank + 1 + r, .w = BEND_W};
                w->link[w->n_links++] = (link){last, l->n_items, weight > 0 ? weight : r ? STRAIGHT : 2};
                last = l->n_items++;
            }
            w->link[w->n_links++] = (link){last, i, weight > 0 ? weight : e->n_bends ? 2 : 1};
        }
    return true;
}

/* --- order ------------------------------------------------------------------------------------------------------------ */

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

/* The mean place of i's neighbours above (or below), by `place`; -1: it has none. */
static double mean(const work *w, int i, bool above, double (*place)(const layout_item *t), double *weight) {
    double sum = 0, all = 0;
    for (int k = 0; k < w->n_links; k++) {
        const link *n = &w->link[k];
        int other = above && n->down == i ? n->up : !above && n->up == i ? n->down : -1;
        if (other >= 0) {
            sum += n->weight * place(&w->l->item[other]);
            all += n->weight;
        }
    }
    *weight = all;
    return all > 0 ? sum / all : -1;
}

static double by_order(const layout_item *t) {
    return t->order;
}
static double by_x(const layout_item *t) {
    return t->x;
}

static void order_rank(work *w, int r, bool above, double *key) {
    int *at = w->in_rank + w->rank_at[r], n = w->rank_at[r + 1] - w->rank_at[r];
    for (int i = 0; i < n; i++) {
        double weight, m = mean(w, at[i], above, by_order, &weight);
        key[at[i]] = m < 0 ? w->l->item[at[i]].order : m;
    }
    for (int i = 1; i < n; i++) { /* insertion: stable */
        int t = at[i], k = i;
        for (; k > 0 && key[at[k - 1]] > key[t]; k--)
            at[k] = at[k - 1];
        at[k] = t;
    }
    for (int i = 0; i < n; i++)
        w->l->item[at[i]].order = i;
}

static long crossings(const work *w) {
    long n = 0;
    for (int a = 0; a < w->n_links; a++)
        for (int b = a + 1; b < w->n_links; b++) {
            const layout_item *t = w->l->item;
            if (t[w->link[a].up].rank != t[w->link[b].up].rank)
                continue;
            int d = t[w->link[a].up].order - t[w->link[b].up].order, e = t[w->link[a].down].order - t[w->link[b].down].order;
            n += (d < 0 && e > 0) || (d > 0 && e < 0);
        }
    return n;
}

static void find_order(work *w, double *key, int *best) {
    long fewest = -1;
    int n = w->l->n_items;
    for (int s = 0; s < N_SWEEPS; s++) {
        long c = crossings(w);
        if (fewest < 0 || c < fewest) {
            fewest = c;
            memcpy(best, w->in_rank, (size_t)n * sizeof *best);
        }
        for (int r = 0; r < w->l->n_ranks; r++)
            order_rank(w, s % 2 ? w->l->n_ranks - 1 - r : r, s % 2 == 0, key);
    }
    memcpy(w->in_rank, best, (size_t)n * sizeof *best);
    for (int r = 0; r < w->l->n_ranks; r++)
        for (int i = w->rank_at[r]; i < w->rank_at[r + 1]; i++)
            w->l->item[w->in_rank[i]].order = i - w->rank_at[r];
}

/* --- places ----------------------------------------------------------------------------------------------------------- */

/* As near to the wanted places as the widths let them be, in least squares: neighbours that would overlap become a block,
 * which stands at the weighted mean of what its members want. */
typedef struct cluster {
    double at, weight;
    int n;
} cluster;

static void place_rank(work *w, int r, bool above, bool below, cluster *c) {
    layout *l = w->l;
    const int *at = w->in_rank + w->rank_at[r];
    int n = w->rank_at[r + 1] - w->rank_at[r], m = 0;
    double offset = 0;
    for (int i = 0; i < n; i++) {
        layout_item *t = &l->item[at[i]];
        if (i)
            offset += (l->item[at[i - 1]].w + t->w) / 2 + GAP_X;
        double wa = 0, wb = 0, ma = above ? mean(w, at[i], true, by_x, &wa) : 0, mb = below ? mean(w, at[i], false, by_x, &wb) : 0;
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
                offset += (l->item[at[i - 1]].w + l->item[at[i]].w) / 2 + GAP_X;
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
        y += most + GAP_Y;
    }
    l->w = right - left;
    l->h = y - GAP_Y;
}

/* --- all of it -------------------------------------------------------------------------------------------------------- */

bool layout_make(layout *l, const figure_block *b, void (*size)(const figure_node *n, double *w, double *h)) {
    work w = {.l = l};
    *l = (layout){.item = calloc((size_t)b->n + 1, sizeof *l->item), .n_items = b->n};
    bool ok = l->item;
    for (int i = 0; i < b->n && ok; i++)
        size(&b->node[i], &l->item[i].w, &l->item[i].h);
    if (ok) {
        find_ranks(l, b);
        ok = add_edges(l, b, &w);
    }
    size_t n = (size_t)l->n_items + 1;
    double *key = calloc(n, sizeof *key);
    int *best = calloc(n, sizeof *best);
    cluster *c = calloc(n, sizeof *c);
    w.rank_at = calloc((size_t)l->n_ranks + 2, sizeof *w.rank_at);
    w.in_rank = malloc(n * sizeof *w.in_rank);
    ok = ok && key && best && c && w.rank_at && w.in_rank;
    if (ok) {
        memset(w.in_rank, 0xff, n * sizeof *w.in_rank);
        fill_ranks(&w);
        find_order(&w, key, best);
        find_places(&w, c);
    }
    free(key);
    free(best);
    free(c);
    free(w.rank_at);
    free(w.in_rank);
    free(w.link);
    if (!ok)
        layout_fini(l);
    return ok;
}

void layout_fini(layout *l) {
    free(l->item);
    free(l->edge);
    *l = (layout){0};
}
