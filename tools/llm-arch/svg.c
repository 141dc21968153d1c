#include "svg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/svg_text.h"
#include "svg_edges.h"
#include "ggl/internal/os_fs.h"

#define MARGIN    32.0
#define PAD       20.0  /* space around the nodes of a block */
#define TITLE_H   32.0  /* height of a block's title */
#define GAP       36.0  /* between blocks */
#define DECK      7.0   /* between the sheets of several layers */
#define LINE_H    16.0  /* of the lines in a node */
#define LEGEND_H  21.0  /* of the legend's lines */
#define LEAST_W   560.0 /* of the picture without its margins */
#define NODE_PAD  13.0  /* beside the lines of a node */
#define ORIGIN_IN 7.0   /* from a node's edge to the number in its corner */

/* Sizes of fonts. */
#define NAME_SIZE   26.0
#define HEAD_SIZE   13.5
#define BLOCK_SIZE  15.0
#define NOTE_SIZE   12.5
#define TITLE_SIZE  14.0
#define LINE_SIZE   12.0
#define ORIGIN_SIZE 10.0

static const char style[] =
    "text{font-family:" SVG_FONT ";fill:#1f2733}"
    ".bg{fill:#fbfaf7}.h1{font-size:26px;font-weight:700}.h2{font-size:13.5px;fill:#5d6773}"
    ".bt{font-size:15px;font-weight:600}.bp{font-size:12.5px;fill:#5d6773}"
    ".e2{text-anchor:end}"
    ".frame{fill:#ffffff;stroke:#dcdfe4;stroke-width:1.2}"
    ".deck{fill:#f4f4f1;stroke:#dcdfe4;stroke-width:1.2}"
    ".t{font-size:14px;font-weight:600;text-anchor:middle}"
    ".l{font-size:12px;text-anchor:middle;fill:#4d5763;font-family:" SVG_MONO "}"
    ".o{font-size:10px;fill:#717b87;text-anchor:end}"
    ".s{font-size:11px;fill:#5d6773;font-family:" SVG_MONO ";"
    "paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}"
    ".e{fill:none;stroke:#a3acb8;stroke-width:1.5}.r{fill:none;stroke:#4a90c2;stroke-width:2.6}"
    ".ea{fill:#a3acb8}.ra{fill:#4a90c2}"
    ".n{stroke-width:1.3}.body{stroke-dasharray:4 3}"
    ".k0{fill:none;stroke:none}.k1{fill:#e4effb;stroke:#7fb0e0}.k2{fill:#efe6fb;stroke:#ab8ade}"
    ".k3{fill:#dff5f1;stroke:#6cc0b0}.k4{fill:#fdf1d7;stroke:#e0b450}"
    ".k5{fill:#e4f5dd;stroke:#8cc474}.k6{fill:#ffffff;stroke:#7b8794}"
    ".k7{fill:#fde6dc;stroke:#e69a74}.k8{fill:#fbe1ea;stroke:#dd88a6}"
    ".k9{fill:#eef0f3;stroke:#aab3bd}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.bg{fill:#15181d}"
    ".h2,.bp,.o{fill:#a7b0bc}.frame{fill:#1c2027;stroke:#343b45}"
    ".deck{fill:#191d23;stroke:#343b45}.l{fill:#c3cad3}.s{fill:#b4bcc7;stroke:#1c2027}"
    ".e{stroke:#687281}.ea{fill:#687281}.r{stroke:#5aa6dc}.ra{fill:#5aa6dc}"
    ".k1{fill:#1c3146;stroke:#4a86bd}.k2{fill:#2e2444;stroke:#8a68c4}"
    ".k3{fill:#173632;stroke:#46958a}.k4{fill:#3d3218;stroke:#b08d3c}"
    ".k5{fill:#23381b;stroke:#659a4f}.k6{fill:#262b33;stroke:#8f9aa8}"
    ".k7{fill:#40281d;stroke:#bb7752}.k8{fill:#40202d;stroke:#b3627f}"
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

static void node_size(const figure_node *n, double *w, double *h) {
    if (svg_is_circle(n)) {
        *w = *h = 30;
        return;
    }
    double most = svg_text_width(n->title, TITLE_SIZE, SVG_BOLD);
    if (n->origin[0]) /* the title is in the middle, the number in a corner */
        most += 2 * (ORIGIN_IN + svg_text_width(n->origin, ORIGIN_SIZE, SVG_PLAIN)) - NODE_PAD;
    for (int i = 0; i < n->n_lines; i++) {
        double w_line = svg_text_width(n->line[i], LINE_SIZE, SVG_FIXED);
        most = w_line > most ? w_line : most;
    }
    *w = most + 2 * NODE_PAD < 72 ? 72 : most + 2 * NODE_PAD;
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
    if (svg_is_circle(n)) {
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
            text(out, t->x + t->w / 2 - ORIGIN_IN, t->y + 13, "o", n->origin);
    }
    fprintf(out, "</g>\n");
}

/* --- blocks ----------------------------------------------------------------------------------- */

typedef struct block { /* a block and where its parts are */
    const figure_block *figure;
    layout layout;
    svg_edges edges;
    char title[160], params[96];
    double inner_w, w, h; /* inner_w: of the nodes and shapes */
} block;

static void params_text(const figure_block *b, char *buf, size_t size) {
    char n[32];
    snprintf(buf, size, b->n_layers > 1 ? "%s parameters, %d times" : "%s parameters",
             count_text(b->params, n, sizeof n), b->n_layers);
}

static ggl_status block_make(block *b, const figure_block *f, ggl_error *err) {
    b->figure = f;
    ggl_status st = layout_make(&b->layout, f, node_size, err);
    if (st != GGL_OK)
        return st;
    if (!svg_edges_make(&b->edges, f, &b->layout))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    svg_fit(f->title, BLOCK_SIZE, SVG_BOLD, 1000, b->title, sizeof b->title);
    params_text(f, b->params, sizeof b->params);
    double title = svg_text_width(b->title, BLOCK_SIZE, SVG_BOLD) + GAP +
                   svg_text_width(b->params, NOTE_SIZE, SVG_PLAIN);
    b->inner_w = b->layout.w + b->edges.left + b->edges.right;
    b->w = (b->inner_w > title ? b->inner_w : title) + 2 * PAD;
    b->h = b->layout.h + 2 * PAD + TITLE_H;
    return GGL_OK;
}

static void block_fini(block *b) {
    svg_edges_fini(&b->edges);
    layout_fini(&b->layout);
}

static void frame(FILE *out, const block *b, double x, double y, const char *class) {
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"16\" class=\"%s\"/>\n",
            x, y, b->w, b->h, class);
}

static void draw_block(FILE *out, const block *b, double x, double y, const char *backend) {
    for (int i = b->figure->n_layers > 1 ? 2 : 0; i > 0; i--) /* sheets, for several layers */
        frame(out, b, x + DECK * i, y + DECK * i, "deck");
    frame(out, b, x, y, "frame");
    text(out, x + PAD, y + 27, "bt", b->title);
    text(out, x + b->w - PAD, y + 27, "bp e2", b->params);
    fprintf(out, "<g transform=\"translate(%.1f %.1f)\">\n",
            x + (b->w - b->inner_w) / 2 + b->edges.left, y + PAD + TITLE_H);
    svg_edges_draw(out, &b->edges);
    for (int i = 0; i < b->figure->n; i++)
        draw_node(out, &b->figure->node[i], &b->layout.item[i], backend);
    svg_edges_draw_shapes(out, &b->edges);
    fprintf(out, "</g>\n");
}

/* --- the head --------------------------------------------------------------------------------- */

typedef struct names {
    const char *arch, *of, *backend;
} names;

static const char *base_name(const char *path) {
    const char *slash = ggl_os_last_separator(path);
    return slash ? slash + 1 : path;
}

/* Draws the legend in lines of that width, if `out` is not NULL. Returns the number of lines. */
static int legend_lines(FILE *out, const figure *f, double y, double width) {
    double x = MARGIN;
    int lines = 1;
    for (size_t i = 0; i < N_LEGEND; i++) {
        bool used = false;
        for (int k = 0; k < f->n; k++)
            for (int j = 0; j < f->block[k].n; j++)
                used |= f->block[k].node[j].kind == legend[i].kind;
        if (!used)
            continue;
        double w = 20 + svg_text_width(legend[i].text, NOTE_SIZE, SVG_PLAIN);
        if (x > MARGIN && x + w > MARGIN + width) {
            x = MARGIN;
            lines++;
        }
        if (out) {
            double at = y + (lines - 1) * LEGEND_H;
            fprintf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\" rx=\"4\" "
                    "class=\"n k%d\"/>\n",
                    x, at - 11, (int)legend[i].kind);
            text(out, x + 20, at, "bp", legend[i].text);
        }
        x += w + 16;
    }
    return lines;
}

/* The heights of the parts of the head. */
#define NAME_AT   (MARGIN + 18)
#define MODEL_AT  (NAME_AT + 25)
#define EDGES_AT  (MODEL_AT + 19)
#define LEGEND_AT (EDGES_AT + 28)

static void fitting(FILE *out, double y, const char *class, double size, svg_face face,
                    double width, const char *s) {
    char fit[512];
    text(out, MARGIN, y, class, svg_fit(s, size, face, width, fit, sizeof fit));
}

static void draw_head(FILE *out, const figure *f, const names *n, double width) {
    char line[512], count[32];
    uint64_t params = 0;
    bool bodies = false;
    for (int k = 0; k < f->n; k++) {
        params +=
            f->block[k].params * (uint64_t)(f->block[k].n_layers > 1 ? f->block[k].n_layers : 1);
        for (int i = 0; i < f->block[k].n; i++)
            bodies |= f->block[k].node[i].by_body;
    }
    fitting(out, NAME_AT, "h1", NAME_SIZE, SVG_BOLD, width, base_name(n->arch));
    /* the model's name may be long: what is cut is its end */
    char rest[160], of[256];
    snprintf(rest, sizeof rest, " · %s parameters · on %s%s",
             count_text(params, count, sizeof count), n->backend,
             bodies ? " (dashed: by the composite's body)" : "");
    double room = width - svg_text_width(rest, HEAD_SIZE, SVG_PLAIN);
    svg_fit(base_name(n->of), HEAD_SIZE, SVG_PLAIN, room > 80 ? room : 80, of, sizeof of);
    snprintf(line, sizeof line, "%s%s", of, rest);
    fitting(out, MODEL_AT, "h2", HEAD_SIZE, SVG_PLAIN, width, line);
    fitting(out, EDGES_AT, "h2", HEAD_SIZE, SVG_PLAIN, width,
            "at the edges: shapes of one token's values, innermost first; in corners: lines of the "
            "descriptor");
    legend_lines(out, f, LEGEND_AT, width);
}

/* --- the picture ------------------------------------------------------------------------------ */

typedef struct picture { /* sizes of the picture */
    double w;
    double layers_w[FIGURE_MOST], layers_h[FIGURE_MOST]; /* of the layers of each figure */
    bool decks; /* some block has sheets, which stand out to the right */
} picture;

static ggl_status make_blocks(block *b, const figure *f, int n, picture *p, ggl_error *err) {
    for (int i = 0; i < n; i++) {
        double *w = &p->layers_w[i], *h = &p->layers_h[i];
        for (int k = 0; k < f[i].n; k++, b++) {
            ggl_status st = block_make(b, &f[i].block[k], err);
            if (st != GGL_OK)
                return st;
            if (f[i].block[k].n_layers > 0) {
                *w += b->w + (*w > 0 ? GAP : 0);
                *h = b->h > *h ? b->h : *h;
            }
            p->w = b->w > p->w ? b->w : p->w;
            p->decks |= f[i].block[k].n_layers > 1;
        }
        p->w = *w > p->w ? *w : p->w;
    }
    return GGL_OK;
}

static const char markers[] =
    "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 1L6 4L0 7z\" class=\"ea\"/></marker>"
    "<marker id=\"ar\" viewBox=\"0 0 8 8\" refX=\"4\" refY=\"4\" markerWidth=\"5\" "
    "markerHeight=\"5\" orient=\"auto\"><path d=\"M0 1L6 4L0 7z\" class=\"ra\"/></marker></defs>\n";

/* Draws the blocks of a figure from y `top` on: before the layers, the kinds of layers side by side, after them. Returns where they end.
 * out NULL: only that. */
static double draw_blocks(FILE *out, const figure *f, const block *b, const picture *p, int i,
                          double top, const char *backend) {
    double middle = top + b[0].h + GAP, x = MARGIN + (p->w - p->layers_w[i]) / 2;
    double bottom = p->layers_h[i] <= 0 ? middle : middle + p->layers_h[i] + GAP;
    for (int k = 0; k < f->n && out; k++) {
        bool layer = f->block[k].n_layers > 0;
        draw_block(out, &b[k], layer ? x : MARGIN + (p->w - b[k].w) / 2,
                   k == 0  ? top
                   : layer ? middle
                           : bottom,
                   backend);
        x += layer ? b[k].w + GAP : 0;
    }
    return bottom + b[f->n - 1].h;
}

/* Draws the figures below each other, or without `out` finds out where they end. */
static double draw_figures(FILE *out, const figure *f, int n, const block *b, const picture *p,
                           double top, const char *backend) {
    for (int i = 0; i < n; b += f[i].n, i++)
        top = draw_blocks(out, &f[i], b, p, i, top + (i ? GAP : 0), backend);
    return top;
}

/* all: the blocks of all figures. */
static void draw_all(FILE *out, const figure *f, int n, const figure *all, const block *b,
                     const picture *p, const names *of) {
    const double top = LEGEND_AT + (legend_lines(NULL, all, 0, p->w) - 1) * LEGEND_H + GAP;
    double width = p->w + 2 * MARGIN + (p->decks ? 2 * DECK : 0);
    double height = draw_figures(NULL, f, n, b, p, top, of->backend) + MARGIN;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 "
            "0 %.0f %.0f\">\n<style>%s</style>\n%s"
            "<rect width=\"100%%\" height=\"100%%\" class=\"bg\"/>\n",
            width, height, width, height, style, markers);
    draw_head(out, all, of, p->w);
    draw_figures(out, f, n, b, p, top, of->backend);
    fprintf(out, "</svg>\n");
}

ggl_status svg_draw(FILE *out, const figure *f, int n, const char *name, const char *of,
                    const char *backend, ggl_error *err) {
    figure all = {.n = 0};
    picture p = {.w = LEAST_W};
    for (int i = 0; i < n; i++)
        all.n += f[i].n;
    block *b = calloc((size_t)all.n, sizeof *b);
    all.block = calloc((size_t)all.n, sizeof *all.block);
    ggl_status st =
        b && all.block ? make_blocks(b, f, n, &p, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0, at = 0; i < n && st == GGL_OK; at += f[i].n, i++)
        memcpy(all.block + at, f[i].block, (size_t)f[i].n * sizeof *all.block);
    if (st == GGL_OK)
        draw_all(out, f, n, &all, b, &p, &(names){name, of, backend});
    for (int k = 0; b && k < all.n; k++)
        block_fini(&b[k]);
    free(all.block);
    free(b);
    return st;
}
