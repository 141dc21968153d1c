#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "drawing_layout.h"
#include "drawing_page.h"
#include "ggl/internal/steps.h"

#define PAD        20.0  /* space around the nodes of a block */
#define TITLE_H    32.0  /* height of a block's title */
#define HEAD       12.0  /* above the first block */
#define GAP        36.0  /* between blocks */
#define DECK       7.0   /* between the sheets of several */
#define LINE_H     16.0  /* of the lines in a node */
#define LEAST_W    560.0 /* of the picture without its margins */
#define NODE_PAD   13.0  /* beside the lines of a node */
#define CORNER_IN  7.0   /* from a node's edge to the text in its corner */
#define CIRCLE     26.0  /* diameter */
#define SHAPE_GAP  6.0   /* between an edge and its label */
#define BELOW      14.0  /* from a node to the baseline of a label below it */
#define SECOND_ROW 11.5  /* from there to the baseline of those that had no room */

enum { LEAVES, ENTERS };

typedef struct edge_end { /* the place of an edge among the edges of its two nodes */
    int order[2];         /* [LEAVES], [ENTERS]: its index from the left.. */
    int of[2];            /* ..and the number of edges there */
    bool labelled;        /* its neighbour at the node that it leaves has the same label */
} edge_end;

typedef struct edge_label {
    int edge, rank; /* rank: of the node that it leaves */
    double x, y, w; /* of the text; x: its left end */
    bool shown;
} edge_label;

typedef struct block { /* a block and where its parts are */
    const drawing_block *b;
    const drawing_node *node;
    const drawing_edge *edge;
    layout layout;
    bool *strong;      /* [n_nodes]: a strong edge ends there */
    edge_end *end;     /* [n_edges] */
    edge_label *label; /* [n_labels] */
    int n_labels;
    double left, right;   /* how far labels stand out of the layout */
    double inner_w, w, h; /* inner_w: of the nodes and labels */
} block;

/* --- ends of edges ---------------------------------------------------------------------------- */

static int n_lines(const drawing_node *n) {
    int lines = 0;
    while (lines < DRAWING_LINES && n->line[lines])
        lines++;
    return lines;
}

/* Returns the side from which an edge comes to its end: -1: left, 1: right, 0: straight. */
static double side_of(const layout *l, const layout_edge *e) {
    const double x = l->item[e->n_bends ? e->bend + e->n_bends - 1 : e->from].x,
                 at = l->item[e->to].x;
    return x < at - 2 ? -1 : x > at + 2 ? 1 : 0;
}

typedef struct by_place { /* for sorting */
    int at, edge;         /* at: a node, or a rank */
    double x;
} by_place;

static int compare_places(const void *a, const void *b) {
    const by_place *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->x != y->x ? (x->x < y->x ? -1 : 1) : (x->edge > y->edge) - (x->edge < y->edge);
}

/* Sets the places of edges at their nodes, in the order of their other ends. */
static void order_ends(block *k, int which, by_place *p) {
    const layout *l = &k->layout;
    for (int e = 0; e < l->n_edges; e++) {
        const layout_edge *edge = &l->edge[e];
        const int ends[] = {edge->from, edge->to},
                  bends[] = {edge->bend, edge->bend + edge->n_bends - 1};
        p[e] = (by_place){ends[which], e, l->item[edge->n_bends ? bends[which] : ends[!which]].x};
        if (edge->strong)
            k->strong[edge->to] = true;
    }
    qsort(p, (size_t)l->n_edges, sizeof *p, compare_places);
    for (int first = 0, last; first < l->n_edges; first = last) {
        for (last = first; last < l->n_edges && p[last].at == p[first].at; last++)
            k->end[p[last].edge].order[which] = last - first;
        for (int i = first; i < last; i++) {
            k->end[p[i].edge].of[which] = last - first;
            k->end[p[i].edge].labelled |=
                which == LEAVES && i > first &&
                strcmp(k->edge[p[i].edge].label, k->edge[p[i - 1].edge].label) == 0;
        }
        GGL_STEPS(last - first);
    }
}

static double port_x(const block *k, int e, int which) {
    const layout_edge *mine = &k->layout.edge[e];
    const int at = which == LEAVES ? mine->from : mine->to;
    const layout_item *t = &k->layout.item[at];
    const bool circle = k->node[at].circle;
    if (mine->strong || circle)
        return t->x +
               (circle && which == ENTERS && !mine->strong ? side_of(&k->layout, mine) * 5 : 0);
    const int n = k->end[e].of[which];
    const double room = t->w * 0.6 < 26.0 * (n - 1) ? t->w * 0.6 : 26.0 * (n - 1);
    return n < 2 ? t->x : t->x - room / 2 + room * k->end[e].order[which] / (n - 1);
}

/* --- labels of edges -------------------------------------------------------------------------- */

/* Returns the label of an edge: beside its beginning, on the side of the node where it begins, or
 * on the side to which it does not turn. It is below all nodes of the rank if it is not below its
 * own. rank_bottom: where the lowest node of its rank ends. */
static edge_label label_of(const block *k, int edge, const double *rank_bottom) {
    const layout *l = &k->layout;
    const layout_edge *e = &l->edge[edge];
    const layout_item *from = &l->item[e->from], *next = &l->item[e->n_bends ? e->bend : e->to];
    const double x = port_x(k, edge, LEAVES), w = page_text_width(PAGE_SHAPE, k->edge[edge].label);
    const bool left = x < from->x - 1 || (x < from->x + 1 && next->x > x + 4 && !e->strong);
    edge_label t = {.edge = edge,
                    .rank = from->rank,
                    .x = left ? x - SHAPE_GAP - w : x + SHAPE_GAP,
                    .y = from->y + from->h + BELOW,
                    .w = w};
    const double most = from->w / 2 + LAYOUT_GAP_X / 2;
    if (t.x < from->x - most || t.x + w > from->x + most)
        t.y = rank_bottom[from->rank] + BELOW;
    return t;
}

static int compare_labels(const void *a, const void *b) {
    const edge_label *x = a, *y = b;
    const by_place p = {x->rank, x->edge, x->x}, q = {y->rank, y->edge, y->x};
    return compare_places(&p, &q);
}

/* Shows the labels that find room, from left to right, in one of two rows below each rank. */
static void choose_labels(block *k, const double *rank_bottom) {
    double end[2] = {0, 0};
    for (int i = 0; i < k->n_labels; i++) {
        edge_label *t = &k->label[i];
        if (i == 0 || k->label[i - 1].rank != t->rank)
            end[0] = end[1] = -1e9;
        const int row = t->x >= end[0] ? 0 : 1;
        t->shown = t->x >= end[row];
        if (!t->shown)
            continue;
        if (row == 1)
            t->y = rank_bottom[t->rank] + BELOW + SECOND_ROW;
        end[row] = t->x + t->w + SHAPE_GAP / 2;
        const double out = t->x + t->w - k->layout.w;
        k->left = -t->x > k->left ? -t->x : k->left;
        k->right = out > k->right ? out : k->right;
    }
}

/* Places edges and labels, so that no two labels overlap; the last ones that find no room are left out. False: out of
 * memory. */
static bool place_edges(block *k) {
    const layout *l = &k->layout;
    const size_t n = (size_t)l->n_edges + 1;
    double *rank_bottom = ggl_calloc((size_t)l->n_ranks + 1, sizeof *rank_bottom);
    by_place *p = ggl_calloc(n, sizeof *p);
    k->strong = ggl_calloc(k->b->n_nodes + 1, sizeof *k->strong);
    k->end = ggl_calloc(n, sizeof *k->end);
    k->label = ggl_calloc(n, sizeof *k->label);
    const bool ok = rank_bottom && p && k->strong && k->end && k->label;
    for (int which = LEAVES; ok && which <= ENTERS; which++)
        order_ends(k, which, p);
    for (int i = 0; ok && i < l->n_items; i++) {
        const layout_item *t = &l->item[i];
        if (t->y + t->h > rank_bottom[t->rank])
            rank_bottom[t->rank] = t->y + t->h;
    }
    for (int e = 0; ok && e < l->n_edges; e++)
        if (!k->end[e].labelled && k->edge[e].label[0])
            k->label[k->n_labels++] = label_of(k, e, rank_bottom);
    if (ok) {
        qsort(k->label, (size_t)k->n_labels, sizeof *k->label, compare_labels);
        choose_labels(k, rank_bottom);
    }
    ggl_free(rank_bottom);
    ggl_free(p);
    return ok;
}

/* --- drawing edges and nodes ------------------------------------------------------------------ */

static void put_edge(FILE *out, const block *k, int e) {
    const layout *l = &k->layout;
    const layout_edge *edge = &l->edge[e];
    const layout_item *from = &l->item[edge->from], *to = &l->item[edge->to];
    const bool circle = k->node[edge->to].circle;
    double x = port_x(k, e, LEAVES), y = from->y + from->h - (k->node[edge->from].circle ? 2 : 0);
    fprintf(out, "<path class=\"%s\" marker-end=\"url(#%s)\" d=\"M%.1f %.1f",
            edge->strong ? "stream" : "edge", edge->strong ? "b" : "a", x, y);
    for (int i = 0; i <= edge->n_bends; i++) {
        const bool last = i == edge->n_bends;
        double x2 = last ? port_x(k, e, ENTERS) : l->item[edge->bend + i].x;
        double y2 = last ? to->y + (circle ? 2 : 0) - 5 : l->item[edge->bend + i].y,
               m = (y + y2) / 2;
        if (last && circle && k->strong[edge->to] && !edge->strong) { /* from the side */
            x2 = to->x + (x < to->x ? -18 : 18);
            y2 = to->y + to->h / 2;
            fprintf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, y2 - 4, x + (x2 - x) * 0.35, y2, x2,
                    y2);
        } else {
            fprintf(out, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, m, x2, m, x2, y2);
        }
        x = x2;
        y = y2;
    }
    fputs("\"/>\n", out);
}

static bool is_bare(const drawing_node *n) {
    return n->series == DRAWING_BARE;
}

static void node_size(const drawing_node *n, double *w, double *h) {
    if (n->circle) {
        *w = *h = CIRCLE + 4;
        return;
    }
    double most = page_text_width(PAGE_BOLD, n->title);
    if (n->corner) /* the title is in the middle, the corner's text on its right */
        most += 2 * (CORNER_IN + page_text_width(PAGE_CORNER, n->corner)) - NODE_PAD;
    for (int i = 0; i < n_lines(n); i++) {
        const double w_line = page_text_width(PAGE_CODE, n->line[i]);
        most = w_line > most ? w_line : most;
    }
    *w = most + 2 * NODE_PAD < 72 ? 72 : most + 2 * NODE_PAD;
    *h = (is_bare(n) ? 22 : 32) + n_lines(n) * LINE_H;
}

static void put_node(FILE *out, const drawing *d, const drawing_node *n, const layout_item *t) {
    char class[16] = "plain";
    fputs("<g><title>", out);
    page_put(out, n->tip ? n->tip : n->title);
    fputs("</title>\n", out);
    if (n->series >= 0)
        snprintf(class, sizeof class, "c%d s%d", n->series % DRAWING_COLORS,
                 n->series % DRAWING_COLORS);
    if (n->circle)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" class=\"%s\"/>\n", t->x,
                t->y + t->h / 2, CIRCLE / 2, class);
    else if (!is_bare(n)) {
        fprintf(
            out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"9\" class=\"%s%s\"",
            t->x - t->w / 2, t->y, t->w, t->h, n->series < 0 ? "" : "node ", class);
        page_put_series(out, d, n->series);
        fputs(n->dashed ? " stroke-dasharray=\"4 3\"/>\n" : "/>\n", out);
    }
    const double y = t->y + (n->circle ? t->h / 2 + 4.5 : is_bare(n) ? 15 : 20);
    page_text(out, PAGE_BOLD, PAGE_MIDDLE, t->x, y, 1e9, n->title);
    for (int i = 0; i < (n->circle ? 0 : n_lines(n)); i++)
        page_text(out, PAGE_CODE, PAGE_MIDDLE, t->x, y + (i + 1) * LINE_H, 1e9, n->line[i]);
    if (n->corner && !n->circle)
        page_text(out, PAGE_CORNER, PAGE_END, t->x + t->w / 2 - CORNER_IN, t->y + 13, 1e9,
                  n->corner);
    fputs("</g>\n", out);
}

/* --- blocks ----------------------------------------------------------------------------------- */

static double note_width(const drawing_block *b) {
    return b->note ? page_text_width(PAGE_NOTE, b->note) + GAP : 0;
}

static ggl_status block_make(block *k, const drawing *d, const drawing_block *b, ggl_error *err) {
    *k = (block){.b = b,
                 .node = b->n_nodes > 0 ? &d->node[b->node] : NULL,
                 .edge = b->n_edges > 0 ? &d->edge[b->edge] : NULL};
    ggl_status st = layout_make(&k->layout, d, b, node_size, err);
    if (st != GGL_OK)
        return st;
    if (!place_edges(k))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
    const double title = fmin(LEAST_W, page_text_width(PAGE_BOLD, b->title) + note_width(b));
    k->inner_w = k->layout.w + k->left + k->right;
    k->w = fmax(k->inner_w, title) + 2 * PAD;
    k->h = k->layout.h + 2 * PAD + TITLE_H;
    return GGL_OK;
}

static void put_block(FILE *out, const drawing *d, const block *k, double x, double y) {
    for (int i = k->b->several ? 2 : 0; i >= 0; i--) /* sheets, for several */
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"16\" "
                "class=\"frame\"/>\n",
                x + DECK * i, y + DECK * i, k->w, k->h);
    const double room = k->w - 2 * PAD;
    page_text(out, PAGE_BOLD, PAGE_START, x + PAD, y + 27, room - note_width(k->b), k->b->title);
    if (k->b->note)
        page_text(out, PAGE_NOTE, PAGE_END, x + k->w - PAD, y + 27, room, k->b->note);
    fprintf(out, "<g transform=\"translate(%.1f %.1f)\">\n", x + (k->w - k->inner_w) / 2 + k->left,
            y + PAD + TITLE_H);
    for (int e = 0; e < k->layout.n_edges; e++)
        put_edge(out, k, e);
    for (size_t i = 0; i < k->b->n_nodes; i++)
        put_node(out, d, &k->node[i], &k->layout.item[i]);
    for (int i = 0; i < k->n_labels; i++)
        if (k->label[i].shown)
            page_text(out, PAGE_SHAPE, PAGE_START, k->label[i].x, k->label[i].y, 1e9,
                      k->edge[k->label[i].edge].label);
    fputs("</g>\n", out);
}

/* --- rows of blocks --------------------------------------------------------------------------- */

/* Returns the end of the row that begins with block i, and sets its size. */
static size_t row_of(const page_body *b, size_t i, double *w, double *h) {
    const block *k = b->state;
    const int row = k[i].b->row;
    *w = *h = 0;
    for (; i < b->d->n_blocks && k[i].b->row == row; i++) {
        *w += k[i].w + (*w > 0 ? GAP : 0);
        *h = k[i].h > *h ? k[i].h : *h;
    }
    return i;
}

static void draw(FILE *out, const page_body *b, double width, double top) {
    const block *k = b->state;
    double w, h;
    top += HEAD;
    for (size_t i = 0, end; i < b->d->n_blocks; top += h + GAP) {
        end = row_of(b, i, &w, &h);
        for (double x = (width - w) / 2; i < end; x += k[i++].w + GAP)
            put_block(out, b->d, &k[i], x, top);
    }
}

static void fini(page_body *b) {
    block *k = b->state;
    for (size_t i = 0; k && i < b->d->n_blocks; i++) {
        ggl_free(k[i].strong);
        ggl_free(k[i].end);
        ggl_free(k[i].label);
        layout_fini(&k[i].layout);
    }
}

ggl_status graph_body(page_body *b, const drawing *d, ggl_error *err) {
    double w, h, sheets = 0;
    block *k = ggl_calloc(d->n_blocks, sizeof *k);
    *b = (page_body){.d = d, .draw = draw, .state = k, .fini = fini, .width = LEAST_W};
    if (!k)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
    for (size_t i = 0; i < d->n_blocks; i++) {
        ggl_status st = block_make(&k[i], d, &d->block[i], err);
        if (st != GGL_OK)
            return st;
        sheets = d->block[i].several ? 2 * DECK : sheets;
    }
    for (size_t i = 0; i < d->n_blocks; b->height += h + (i < d->n_blocks ? GAP : 0)) {
        i = row_of(b, i, &w, &h);
        b->width = w > b->width ? w : b->width;
    }
    b->width += 2 * (PAGE_MARGIN + sheets);
    b->height += HEAD + PAGE_MARGIN;
    return GGL_OK;
}
