#include "svg_edges.h"

#include <stdlib.h>
#include <string.h>

#include "common/svg_text.h"
#include "ggl/internal/index.h"
#include "ggl/internal/steps.h"

#define SHAPE_GAP  6.0  /* between an edge and its shape */
#define BELOW      14.0 /* from a node to the baseline of a shape below it */
#define SECOND_ROW 11.5 /* from there to the baseline of those that had no room */

/* --- ends of edges ---------------------------------------------------------------------------- */

bool svg_is_circle(const figure_node *n) {
    return n->kind == FIGURE_PLUS && n->n_lines == 0 &&
           svg_text_width(n->title, 1, SVG_FIXED) < 1.5;
}

/* Returns the side from which an edge comes to its end: -1: left, 1: right, 0: straight. */
static double side_of(const layout *l, const layout_edge *e) {
    double x = l->item[e->n_bends ? e->bend + e->n_bends - 1 : e->from].x, at = l->item[e->to].x;
    return x < at - 2 ? -1 : x > at + 2 ? 1 : 0;
}

enum { LEAVES, ENTERS };

/* The place of an edge among the edges of its two nodes. */
struct edge_ends {
    /* [LEAVES], [ENTERS]: its index from the left, and the number of edges there */
    int order[2], of[2];
    bool labelled; /* an earlier edge of the node that it leaves shows the same shape */
    bool side;     /* it ends at a sum in the stream, and enters from the side */
};

typedef struct edge_end { /* for sorting */
    int node, edge;
    double x; /* where the edge comes from or goes to */
} edge_end;

static int compare_ends(const void *a, const void *b) {
    const edge_end *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->x != y->x ? (x->x < y->x ? -1 : 1) : (x->edge > y->edge) - (x->edge < y->edge);
}

/* Sets the places of edges at their nodes, in the order of their other ends. */
static void order_ends(edge_ends *ends, const layout *l, int which, edge_end *by_node) {
    for (int e = 0; e < l->n_edges; e++) {
        const layout_edge *k = &l->edge[e];
        int far = k->n_bends        ? (which == LEAVES ? k->bend : k->bend + k->n_bends - 1)
                  : which == LEAVES ? k->to
                                    : k->from;
        by_node[e] = (edge_end){which == LEAVES ? k->from : k->to, e, l->item[far].x};
    }
    qsort(by_node, (size_t)l->n_edges, sizeof *by_node, compare_ends);
    for (int first = 0, last; first < l->n_edges; first = last) {
        for (last = first; last < l->n_edges && by_node[last].node == by_node[first].node;)
            last++;
        for (int i = first; i < last; i++) {
            ends[by_node[i].edge].order[which] = i - first;
            ends[by_node[i].edge].of[which] = last - first;
        }
        GGL_STEPS(last - first);
    }
}

typedef struct shape_key { /* a table's key as a whole */
    int32_t from;
    char shape[48];
} shape_key;

/* Sets `labelled`. False: out of memory. */
static bool find_labels(edge_ends *ends, const figure_block *b, const layout *l) {
    size_t n = (size_t)l->n_edges;
    shape_key *at = calloc(n + 1, sizeof *at);
    ggl_index x = {0};
    bool ok = at && ggl_index_init(&x, n, sizeof *at, sizeof *at, NULL) == GGL_OK;
    for (size_t e = 0; ok && e < n; e++) {
        const layout_edge *k = &l->edge[e];
        at[e].from = k->from;
        snprintf(at[e].shape, sizeof at[e].shape, "%s", b->node[k->to].in_shape[k->which]);
        ends[e].labelled = ggl_index_put(&x, at, e) != e;
    }
    ggl_index_fini(&x);
    free(at);
    return ok;
}

/* Sets `side`. False: out of memory. */
static bool find_sides(edge_ends *ends, const figure_block *b, const layout *l) {
    /* [node]: an edge of the stream ends there */
    bool *stream = calloc((size_t)b->n + 1, sizeof *stream);
    for (int e = 0; stream && e < l->n_edges; e++)
        stream[l->edge[e].to] |= l->edge[e].stream;
    for (int e = 0; stream && e < l->n_edges; e++)
        ends[e].side =
            stream[l->edge[e].to] && !l->edge[e].stream && svg_is_circle(&b->node[l->edge[e].to]);
    free(stream);
    return stream != NULL;
}

/* Returns the ends of all edges, which the caller frees; NULL: out of memory. */
static edge_ends *find_ends(const figure_block *b, const layout *l) {
    edge_ends *ends = calloc((size_t)l->n_edges + 1, sizeof *ends);
    edge_end *by_node = calloc((size_t)l->n_edges + 1, sizeof *by_node);
    bool ok = ends && by_node && find_labels(ends, b, l) && find_sides(ends, b, l);
    for (int which = LEAVES; ok && which <= ENTERS; which++)
        order_ends(ends, l, which, by_node);
    free(by_node);
    if (!ok) {
        free(ends);
        ends = NULL;
    }
    return ends;
}

static double port_x(const layout *l, const edge_ends *ends, int e, int which, bool circle) {
    const layout_edge *mine = &l->edge[e];
    const layout_item *t = &l->item[which == LEAVES ? mine->from : mine->to];
    if (mine->stream || circle)
        return t->x + (circle && which == ENTERS && !mine->stream ? side_of(l, mine) * 5 : 0);
    int n = ends[e].of[which];
    double room = t->w * 0.6 < 26.0 * (n - 1) ? t->w * 0.6 : 26.0 * (n - 1);
    return n < 2 ? t->x : t->x - room / 2 + room * ends[e].order[which] / (n - 1);
}

/* --- shapes ----------------------------------------------------------------------------------- */

static const char *shape_of(const svg_edges *e, int edge) {
    const layout_edge *k = &e->layout->edge[edge];
    return e->block->node[k->to].in_shape[k->which];
}

/* Returns the label of an edge: beside its beginning, on the side of the node where it begins, or
 * on the side to which it does not turn. It is below all nodes of the rank if it is not below its
 * own. rank_bottom: where the lowest node of its rank ends. */
static edge_label label_of(const svg_edges *e, int edge, const double *rank_bottom) {
    const layout *l = e->layout;
    const layout_edge *k = &l->edge[edge];
    const layout_item *from = &l->item[k->from], *next = &l->item[k->n_bends ? k->bend : k->to];
    double x = port_x(l, e->ends, edge, LEAVES, svg_is_circle(&e->block->node[k->from]));
    double w = svg_text_width(shape_of(e, edge), SVG_SHAPE_SIZE, SVG_FIXED);
    bool left = x < from->x - 1 || (x < from->x + 1 && next->x > x + 4 && !k->stream);
    edge_label t = {.edge = edge,
                    .rank = from->rank,
                    .x = left ? x - SHAPE_GAP - w : x + SHAPE_GAP,
                    .y = from->y + from->h + BELOW,
                    .w = w};
    double most = from->w / 2 + LAYOUT_GAP_X / 2;
    if (t.x < from->x - most || t.x + w > from->x + most)
        t.y = rank_bottom[from->rank] + BELOW;
    return t;
}

static int compare_labels(const void *a, const void *b) {
    const edge_label *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->x != y->x ? (x->x < y->x ? -1 : 1) : (x->edge > y->edge) - (x->edge < y->edge);
}

/* Shows the labels that find room, from left to right, in one of two rows below each rank. */
static void choose_labels(svg_edges *e, const double *rank_bottom) {
    double end[2] = {0, 0};
    for (int i = 0; i < e->n_labels; i++) {
        edge_label *t = &e->label[i];
        if (i == 0 || e->label[i - 1].rank != t->rank)
            end[0] = end[1] = -1e9;
        int row = t->x >= end[0] ? 0 : 1;
        t->shown = t->x >= end[row];
        if (!t->shown)
            continue;
        if (row == 1)
            t->y = rank_bottom[t->rank] + BELOW + SECOND_ROW;
        end[row] = t->x + t->w + SHAPE_GAP / 2;
        e->left = -t->x > e->left ? -t->x : e->left;
        e->right = t->x + t->w - e->layout->w > e->right ? t->x + t->w - e->layout->w : e->right;
    }
}

bool svg_edges_make(svg_edges *e, const figure_block *b, const layout *l) {
    *e = (svg_edges){.block = b, .layout = l, .ends = find_ends(b, l)};
    double *rank_bottom = calloc((size_t)l->n_ranks + 1, sizeof *rank_bottom);
    e->label = calloc((size_t)l->n_edges + 1, sizeof *e->label);
    bool ok = e->ends && rank_bottom && e->label;
    for (int i = 0; ok && i < l->n_items; i++) {
        const layout_item *t = &l->item[i];
        if (t->y + t->h > rank_bottom[t->rank])
            rank_bottom[t->rank] = t->y + t->h;
    }
    for (int k = 0; ok && k < l->n_edges; k++)
        if (!e->ends[k].labelled && shape_of(e, k)[0])
            e->label[e->n_labels++] = label_of(e, k, rank_bottom);
    if (ok) {
        qsort(e->label, (size_t)e->n_labels, sizeof *e->label, compare_labels);
        choose_labels(e, rank_bottom);
    }
    free(rank_bottom);
    return ok;
}

void svg_edges_fini(svg_edges *e) {
    free(e->ends);
    free(e->label);
    *e = (svg_edges){0};
}

/* --- drawing ---------------------------------------------------------------------------------- */

static void draw_edge(FILE *out, const svg_edges *all, int e) {
    const figure_block *b = all->block;
    const layout *l = all->layout;
    const edge_ends *ends = all->ends;
    const layout_edge *k = &l->edge[e];
    const layout_item *from = &l->item[k->from], *to = &l->item[k->to];
    bool side = ends[e].side, circle = svg_is_circle(&b->node[k->to]);
    double x = port_x(l, ends, e, LEAVES, svg_is_circle(&b->node[k->from])),
           y = from->y + from->h - (svg_is_circle(&b->node[k->from]) ? 2 : 0);
    fprintf(out, "<path class=\"%s\" marker-end=\"url(#%s)\" d=\"M%.1f %.1f", k->stream ? "r" : "e",
            k->stream ? "ar" : "a", x, y);
    for (int i = 0; i <= k->n_bends; i++) {
        bool last = i == k->n_bends;
        double x2 = last ? port_x(l, ends, e, ENTERS, circle) : l->item[k->bend + i].x;
        double y2 = last ? to->y + (circle ? 2 : 0) - 5 : l->item[k->bend + i].y, m = (y + y2) / 2;
        if (last && side) {
            double reach = x < to->x ? -1 : 1;
            x2 = to->x + reach * 18;
            y2 = to->y + 15;
            fprintf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, y2 - 4, x + (x2 - x) * 0.35, y2, x2,
                    y2);
        } else {
            fprintf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, m, x2, m, x2, y2);
        }
        x = x2;
        y = y2;
    }
    fprintf(out, "\"/>\n");
}

void svg_edges_draw(FILE *out, const svg_edges *e) {
    for (int k = 0; k < e->layout->n_edges; k++)
        draw_edge(out, e, k);
}

void svg_edges_draw_shapes(FILE *out, const svg_edges *e) {
    for (int i = 0; i < e->n_labels; i++) {
        const edge_label *t = &e->label[i];
        if (!t->shown)
            continue;
        fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"s\">", t->x, t->y);
        svg_put(out, shape_of(e, t->edge));
        fputs("</text>\n", out);
    }
}
