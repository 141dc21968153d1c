#include "svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/svg_text.h"
#include "ggl/index.h"
#include "ggl/steps.h"
#include "svg_layout.h"

#define MARGIN  36.0
#define PAD     22.0 /* space around the nodes of a block */
#define TITLE_H 34.0 /* height of a block's title */
#define HEAD_H  104.0
#define GAP     44.0 /* between blocks */
#define LINE_H  15.0

static const char style[] =
    "text{font-family:Inter,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2733}"
    ".bg{fill:#fbfaf7}.h1{font-size:26px;font-weight:700}.h2{font-size:13px;fill:#6b7480}"
    ".bt{font-size:14px;font-weight:600}.bp{font-size:11.5px;fill:#808a96}"
    ".frame{fill:#ffffff;stroke:#dcdfe4;stroke-width:1.2}"
    ".deck{fill:#f4f4f1;stroke:#dcdfe4;stroke-width:1.2}"
    ".t{font-size:13px;font-weight:600;text-anchor:middle}.l{font-size:10.5px;text-anchor:middle;"
    "fill:#4d5763;"
    "font-family:'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    ".o{font-size:9px;fill:#98a1ac;text-anchor:end}"
    ".s{font-size:10.5px;fill:#5d6773;font-family:'SF Mono',Menlo,Consolas,'DejaVu Sans "
    "Mono',monospace;"
    "paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}"
    ".e{fill:none;stroke:#a9b2bd;stroke-width:1.5}.r{fill:none;stroke:#4a90c2;stroke-width:2.6}"
    ".n{stroke-width:1.3}.body{stroke-dasharray:4 3}"
    ".k0{fill:none;stroke:none}.k1{fill:#e4effb;stroke:#7fb0e0}.k2{fill:#efe6fb;stroke:#ab8ade}"
    ".k3{fill:#dff5f1;stroke:#6cc0b0}.k4{fill:#fdf1d7;stroke:#e0b450}.k5{fill:#e4f5dd;stroke:#"
    "8cc474}"
    ".k6{fill:#ffffff;stroke:#7b8794}.k7{fill:#fde6dc;stroke:#e69a74}.k8{fill:#fbe1ea;stroke:#"
    "dd88a6}"
    ".k9{fill:#eef0f3;stroke:#aab3bd}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.bg{fill:#15181d}.h2,.bp{fill:#98a2af}"
    ".frame{fill:#1c2027;stroke:#343b45}.deck{fill:#191d23;stroke:#343b45}.l{fill:#b9c1cb}.s{fill:#"
    "aab3bf;stroke:#1c2027}"
    ".e{stroke:#5c6673}.r{stroke:#5aa6dc}.k1{fill:#1c3146;stroke:#4a86bd}.k2{fill:#2e2444;stroke:#"
    "8a68c4}"
    ".k3{fill:#173632;stroke:#46958a}.k4{fill:#3d3218;stroke:#b08d3c}.k5{fill:#23381b;stroke:#"
    "659a4f}"
    ".k6{fill:#262b33;stroke:#8f9aa8}.k7{fill:#40281d;stroke:#bb7752}.k8{fill:#40202d;stroke:#"
    "b3627f}"
    ".k9{fill:#262b32;stroke:#6b7683}}";

static const struct {
    figure_kind kind;
    const char *text;
} legend[] = {{FIGURE_PRODUCT, "product with weights"},    {FIGURE_ATTENTION, "attention"},
              {FIGURE_POSITION, "rotation by position"},   {FIGURE_ROW, "norms and sums of a row"},
              {FIGURE_CURVE, "function of each element"},  {FIGURE_CHOICE, "choice"},
              {FIGURE_STATE, "state from token to token"}, {FIGURE_MOVE, "rearrangement"}};
#define N_LEGEND (sizeof legend / sizeof *legend)

/* --- text ------------------------------------------------------------------------------------- */

static void text(FILE *out, double x, double y, const char *class, const char *s) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    svg_put(out, s);
    fprintf(out, "</text>\n");
}

static double n_chars(const char *s) {
    double n = 0;
    for (; *s; s++)
        n += (*s & 0xc0) != 0x80;
    return n;
}

/* Writes a rounded number, like "1.2 M". */
static const char *count_text(uint64_t n, char *buf, size_t size) {
    static const char *const unit[] = {"", " k", " M", " G", " T"};
    double x = (double)n;
    int k = 0;
    for (; x >= 1000 && k < 4; k++)
        x /= 1000;
    snprintf(buf, size, k && x < 100 ? "%.1f%s" : "%.0f%s", x, unit[k]);
    return buf;
}

/* --- nodes ------------------------------------------------------------------------------------ */

static bool is_circle(const figure_node *n) {
    return n->kind == FIGURE_PLUS && n->n_lines == 0 && n_chars(n->title) < 3;
}

static void node_size(const figure_node *n, double *w, double *h) {
    if (is_circle(n)) {
        *w = *h = 30;
        return;
    }
    double most = n_chars(n->title) * 7.6 + (n->origin[0] ? 26 : 0);
    for (int i = 0; i < n->n_lines; i++)
        most = n_chars(n->line[i]) * 6.5 > most ? n_chars(n->line[i]) * 6.5 : most;
    *w = most + 26 < 72 ? 72 : most + 26;
    *h = (n->kind == FIGURE_PORT ? 22 : 32) + n->n_lines * LINE_H;
}

static void draw_node(FILE *out, const figure_node *n, const layout_item *t, const char *backend) {
    char tip[160];
    snprintf(tip, sizeof tip, n->by_body ? "run on %s by its body" : "run on %s", backend);
    fprintf(out, "<g><title>");
    svg_put(out, n->t && n->t->origin ? n->t->origin : n->title);
    fprintf(out, "%s", n->kind == FIGURE_PORT ? "" : ": ");
    svg_put(out, n->kind == FIGURE_PORT ? "" : tip);
    fprintf(out, "</title>\n");
    if (is_circle(n)) {
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"13\" class=\"n k6\"/>\n", t->x,
                t->y + 15);
        text(out, t->x, t->y + 19.5, "t", n->title);
    } else {
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"9\" class=\"n "
                "k%d%s\"/>\n",
                t->x - t->w / 2, t->y, t->w, t->h, (int)n->kind, n->by_body ? " body" : "");
        double y = t->y + (n->kind == FIGURE_PORT ? 15 : 20);
        text(out, t->x, y, "t", n->title);
        for (int i = 0; i < n->n_lines; i++)
            text(out, t->x, y + (i + 1) * LINE_H, "l", n->line[i]);
        if (n->origin[0])
            text(out, t->x + t->w / 2 - 7, t->y + 12, "o", n->origin);
    }
    fprintf(out, "</g>\n");
}

/* --- edges ------------------------------------------------------------------------------------ */

/* Returns the side from which an edge comes to its end: -1: left, 1: right, 0: straight. */
static double side_of(const layout *l, const layout_edge *e) {
    double x = l->item[e->n_bends ? e->bend + e->n_bends - 1 : e->from].x, at = l->item[e->to].x;
    return x < at - 2 ? -1 : x > at + 2 ? 1 : 0;
}

enum { LEAVES, ENTERS };

/* The place of an edge among the edges of its two nodes. */
typedef struct edge_ends {
    /* [LEAVES], [ENTERS]: its index from the left, and the number of edges there */
    int order[2], of[2];
    bool labelled; /* an earlier edge of the node that it leaves shows the same shape */
    bool side;     /* it ends at a sum in the stream, and enters from the side */
} edge_ends;

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

typedef struct label { /* a table's key as a whole */
    int32_t from;
    char shape[48];
} label;

/* Sets `labelled`. False: out of memory. */
static bool find_labels(edge_ends *ends, const figure_block *b, const layout *l) {
    size_t n = (size_t)l->n_edges;
    label *at = calloc(n + 1, sizeof *at);
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
            stream[l->edge[e].to] && !l->edge[e].stream && is_circle(&b->node[l->edge[e].to]);
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

static void draw_edge(FILE *out, const figure_block *b, const layout *l, const edge_ends *ends,
                      int e) {
    const layout_edge *k = &l->edge[e];
    const layout_item *from = &l->item[k->from], *to = &l->item[k->to];
    bool side = ends[e].side, circle = is_circle(&b->node[k->to]);
    double x = port_x(l, ends, e, LEAVES, is_circle(&b->node[k->from])),
           y = from->y + from->h - (is_circle(&b->node[k->from]) ? 2 : 0);
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

/* Prints the shape beside the beginning of an edge: on the side of the node where it begins, or
 * on the side to which it does not turn. */
static void draw_shape(FILE *out, const figure_block *b, const layout *l, const edge_ends *ends,
                       int e) {
    const layout_edge *k = &l->edge[e];
    const layout_item *from = &l->item[k->from], *next = &l->item[k->n_bends ? k->bend : k->to];
    if (ends[e].labelled)
        return;
    double x = port_x(l, ends, e, LEAVES, is_circle(&b->node[k->from]));
    bool left = x < from->x - 1 || (x < from->x + 1 && next->x > x + 4 && !k->stream);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"s\"%s>", x + (left ? -6 : 6),
            from->y + from->h + 14, left ? " text-anchor=\"end\"" : "");
    svg_put(out, b->node[k->to].in_shape[k->which]);
    fprintf(out, "</text>\n");
}

/* --- blocks ----------------------------------------------------------------------------------- */

static double block_w(const figure_block *b, const layout *l) {
    double title = n_chars(b->title) * 8 + 190;
    return (l->w > title ? l->w : title) + 2 * PAD;
}

static double block_h(const layout *l) {
    return l->h + 2 * PAD + TITLE_H;
}

/* Draws a block. False: out of memory. */
static bool draw_block(FILE *out, const figure_block *b, const layout *l, double x, double y,
                       const char *backend) {
    edge_ends *ends = find_ends(b, l);
    if (!ends)
        return false;
    double w = block_w(b, l), h = block_h(l);
    char line[96], n[32];
    for (int i = b->n_layers > 1 ? 2 : 0; i > 0; i--) /* one behind another, for several layers */
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"16\" "
                "class=\"deck\"/>\n",
                x + 7 * i, y + 7 * i, w, h);
    fprintf(
        out,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"16\" class=\"frame\"/>\n",
        x, y, w, h);
    text(out, x + PAD, y + 27, "bt", b->title);
    snprintf(line, sizeof line, b->n_layers > 1 ? "%s parameters, %d times" : "%s parameters",
             count_text(b->params, n, sizeof n), b->n_layers);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"bp\" text-anchor=\"end\">%s</text>\n",
            x + w - PAD, y + 27, line);
    fprintf(out, "<g transform=\"translate(%.1f %.1f)\">\n", x + (w - l->w) / 2, y + PAD + TITLE_H);
    for (int e = 0; e < l->n_edges; e++)
        draw_edge(out, b, l, ends, e);
    for (int i = 0; i < b->n; i++)
        draw_node(out, &b->node[i], &l->item[i], backend);
    for (int e = 0; e < l->n_edges; e++)
        draw_shape(out, b, l, ends, e);
    fprintf(out, "</g>\n");
    free(ends);
    return true;
}

static double draw_legend(FILE *out, const figure *f, double y) {
    double x = MARGIN;
    for (size_t i = 0; i < N_LEGEND; i++) {
        bool used = false;
        for (int k = 0; k < f->n; k++)
            for (int j = 0; j < f->block[k].n; j++)
                used |= f->block[k].node[j].kind == legend[i].kind;
        if (!used)
            continue;
        fprintf(
            out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" rx=\"4\" class=\"n k%d\"/>\n",
            x, y - 11, (int)legend[i].kind);
        text(out, x + 20, y, "bp", legend[i].text);
        x += 36 + n_chars(legend[i].text) * 6.1;
    }
    return x;
}

static void draw_head(FILE *out, const figure *f, const char *name, const char *of,
                      const char *backend) {
    char line[400], n[32];
    const char *slash = strrchr(of, '/');
    uint64_t params = 0;
    bool bodies = false;
    for (int k = 0; k < f->n; k++) {
        params +=
            f->block[k].params * (uint64_t)(f->block[k].n_layers > 1 ? f->block[k].n_layers : 1);
        for (int i = 0; i < f->block[k].n; i++)
            bodies |= f->block[k].node[i].by_body;
    }
    text(out, MARGIN, MARGIN + 20, "h1", strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
    snprintf(line, sizeof line,
             "%s · %s parameters · runs on %s%s · shapes of one token, innermost first",
             slash ? slash + 1 : of, count_text(params, n, sizeof n), backend,
             bodies ? " (dashed: by the composite's body)" : "");
    text(out, MARGIN, MARGIN + 42, "h2", line);
    draw_legend(out, f, MARGIN + 70);
}

typedef struct picture { /* sizes of the picture */
    double w, layers_w, layers_h;
} picture;

static ggl_status lay_out(layout *l, const figure *f, picture *p, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < f->n && st == GGL_OK; k++) {
        st = layout_make(&l[k], &f->block[k], node_size, err);
        double bw = st == GGL_OK ? block_w(&f->block[k], &l[k]) : 0;
        if (f->block[k].n_layers > 0) {
            p->layers_w += bw + (p->layers_w > 0 ? GAP : 0);
            p->layers_h =
                st == GGL_OK && block_h(&l[k]) > p->layers_h ? block_h(&l[k]) : p->layers_h;
        }
        p->w = bw > p->w ? bw : p->w;
    }
    p->w = p->layers_w > p->w ? p->layers_w : p->w;
    return st;
}

/* Draws the blocks: before the layers at the top, the kinds of layers side by side, after them
 * at the bottom. False: out of memory. */
static bool draw_blocks(FILE *out, const figure *f, const layout *l, const picture *p,
                        const char *name, const char *of, const char *backend) {
    double top = HEAD_H + MARGIN, middle = top + block_h(&l[0]) + GAP;
    double bottom = middle + p->layers_h + (p->layers_h > 0 ? GAP : 0),
           x = MARGIN + (p->w - p->layers_w) / 2;
    double width = p->w + 2 * MARGIN + 14, height = bottom + block_h(&l[f->n - 1]) + MARGIN;
    bool ok = true;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 "
            "0 %.0f %.0f\">\n<style>%s</style>\n"
            "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" markerWidth=\"7\" "
            "markerHeight=\"7\" orient=\"auto\">"
            "<path d=\"M0 1L6 4L0 7z\" fill=\"#a9b2bd\"/></marker><marker id=\"ar\" viewBox=\"0 0 "
            "8 8\" refX=\"4\" refY=\"4\" "
            "markerWidth=\"5\" markerHeight=\"5\" orient=\"auto\"><path d=\"M0 1L6 4L0 7z\" "
            "fill=\"#4a90c2\"/></marker></defs>\n"
            "<rect width=\"100%%\" height=\"100%%\" class=\"bg\"/>\n",
            width, height, width, height, style);
    draw_head(out, f, name, of, backend);
    for (int k = 0; k < f->n && ok; k++) {
        const figure_block *b = &f->block[k];
        double bw = block_w(b, &l[k]);
        bool layer = b->n_layers > 0;
        ok = draw_block(out, b, &l[k], layer ? x : MARGIN + (p->w - bw) / 2,
                        k == 0  ? top
                        : layer ? middle
                                : bottom,
                        backend);
        x += layer ? bw + GAP : 0;
    }
    fprintf(out, "</svg>\n");
    return ok;
}

ggl_status svg_draw(FILE *out, const figure *f, const char *name, const char *of,
                    const char *backend, ggl_error *err) {
    layout *l = calloc((size_t)f->n, sizeof *l);
    picture p = {.w = 960};
    ggl_status st = l ? lay_out(l, f, &p, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK && !draw_blocks(out, f, l, &p, name, of, backend))
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int k = 0; l && k < f->n; k++)
        layout_fini(&l[k]);
    free(l);
    return st;
}
