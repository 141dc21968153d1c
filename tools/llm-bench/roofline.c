#include "roofline.h"

#include <math.h>
#include <string.h>

#include "common/chart.h"
#include "common/svg_text.h"

enum {
    WIDTH = 760,
    LEFT = 66,
    RIGHT = 92, /* room for the names of roofs */
    HEAD = 34,  /* from a panel's upper edge to its plot */
    HEIGHT = 240,
    FOOT = 32, /* the ticks' labels, and a gap */
    RADIUS = 4,
    ROOF_LINE = 14, /* between the names of roofs */
    MAX_TICKS = 8,
    MAX_TAKEN = 4096
};

static const char *const peak_names[BENCH_PEAKS] = {
    [BENCH_INT8] = "int8", [BENCH_BF16] = "bf16", [BENCH_F32] = "f32"};

typedef struct axes {
    double x0, x1, y0, y1; /* powers of ten */
    double top;            /* of the plot, in the picture */
} axes;

/* The roofs of a panel, raised to the fastest kernels; 0: not known. */
typedef struct roofs {
    double read, peak[BENCH_PEAKS];
} roofs;

static bool is_drawn(const bench_point *p) {
    return p->intensity > 0 && p->gmac > 0 && chart_shows(p->intensity) && chart_shows(p->gmac);
}

/* Returns a limit; 0, which is "not known", if it cannot be drawn. */
static double limit_of(double x) {
    return chart_shows(x) ? x : 0;
}

static double at_x(const axes *a, double x) {
    return LEFT + (log10(x) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const axes *a, double y) {
    return a->top + HEIGHT - (log10(y) - a->y0) / (a->y1 - a->y0) * HEIGHT;
}

/* --- roofs ------------------------------------------------------------------------------------ */

/* Returns the kind of arithmetic of a point: bf16 is f32 where it is not faster. */
static bench_peak_kind kind_of(const bench_roofline *r, const bench_point *p) {
    const bench_limits *l = &r->roof[p->roof].limit;
    return p->peak == BENCH_BF16 && l->bf16_gmac <= l->f32_gmac ? BENCH_F32 : p->peak;
}

static double raise(double limit, double value, double *most) {
    if (limit <= 0 || value <= limit)
        return limit;
    *most = fmax(*most, value / limit - 1);
    return value;
}

/* Returns the roofs of instruction set i; *most becomes at least the share that a peak was
 * raised by, *most_read that of the memory. */
static roofs roofs_of(const bench_roofline *r, int i, double *most, double *most_read) {
    const bench_limits *l = &r->roof[i].limit;
    const double measured[BENCH_PEAKS] = {[BENCH_INT8] = l->int8_gmac,
                                          [BENCH_BF16] =
                                              l->bf16_gmac > l->f32_gmac ? l->bf16_gmac : 0,
                                          [BENCH_F32] = l->f32_gmac};
    roofs s = {.read = limit_of(l->read_gb)};
    double read = 0, peak[BENCH_PEAKS] = {0};
    for (size_t k = 0; k < r->n_points; k++) {
        const bench_point *p = &r->point[k];
        if (p->roof != i || !is_drawn(p))
            continue;
        double *best = &peak[kind_of(r, p)];
        *best = fmax(*best, p->gmac);
        if (!p->cached)
            read = fmax(read, p->gmac / p->intensity);
    }
    s.read = raise(s.read, read, most_read);
    for (int k = 0; k < BENCH_PEAKS; k++)
        s.peak[k] = raise(limit_of(measured[k]), peak[k], most);
    return s;
}

/* --- axes ------------------------------------------------------------------------------------- */

static void include(double *low, double *high, double value) {
    if (value > 0 && isfinite(value)) {
        *low = fmin(*low, floor(log10(value)));
        *high = fmax(*high, ceil(log10(value)));
    }
}

/* Returns the axes of panel i; the panels have the same to the right. */
static axes axes_of(const bench_roofline *r, int i) {
    axes a = {.x0 = INFINITY, .x1 = -INFINITY, .y0 = INFINITY, .y1 = -INFINITY};
    double none = 0;
    const roofs s = roofs_of(r, i, &none, &none);
    for (size_t k = 0; k < r->n_points; k++)
        if (is_drawn(&r->point[k])) {
            include(&a.x0, &a.x1, r->point[k].intensity);
            if (r->point[k].roof == i)
                include(&a.y0, &a.y1, r->point[k].gmac);
        }
    for (int k = 0; k < BENCH_PEAKS; k++)
        include(&a.y0, &a.y1, s.peak[k]);
    if (!(a.x0 <= a.x1))
        a.x0 = 0, a.x1 = 1;
    if (!(a.y0 <= a.y1))
        a.y0 = 0, a.y1 = 1;
    a.x1 = fmax(a.x1, a.x0 + 1);
    a.y1 = fmax(a.y1, a.y0 + 1);
    return a;
}

/* Writes a power of ten: "0.01", "1e5"; returns buf. */
static const char *tick_text(double e, char *buf, size_t size) {
    snprintf(buf, size, e >= -3 && e <= 4 ? "%g" : "1e%g", e >= -3 && e <= 4 ? pow(10, e) : e);
    return buf;
}

static void draw_axes(FILE *out, const axes *a) {
    double bottom = a->top + HEIGHT;
    char text[32];
    for (double e = a->x0, step = ceil((a->x1 - a->x0) / MAX_TICKS); e <= a->x1; e += step) {
        double x = at_x(a, pow(10, e));
        fprintf(out, "<path class=\"g\" d=\"M%.1f %.1f V%.1f\"/>\n", x, a->top, bottom);
        chart_text(out, x, bottom + 16, CHART_MIDDLE, "n", "%s", tick_text(e, text, sizeof text));
    }
    for (double e = a->y0, step = ceil((a->y1 - a->y0) / MAX_TICKS); e <= a->y1; e += step) {
        double y = at_y(a, pow(10, e));
        fprintf(out, "<path class=\"g\" d=\"M%d %.1f H%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        chart_text(out, LEFT - 7, y + 4, CHART_END, "n", "%s", tick_text(e, text, sizeof text));
    }
    fprintf(out, "<rect class=\"axes\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n", LEFT,
            a->top, WIDTH - LEFT - RIGHT, HEIGHT);
    chart_text_up(out, 18, a->top + HEIGHT / 2.0, "GMAC/s");
}

/* --- roofs in the picture --------------------------------------------------------------------- */

/* True if any point of the panel has that peak, and data in the caches or not. */
static bool has_points(const bench_roofline *r, int i, bench_peak_kind peak, bool cached) {
    for (size_t k = 0; k < r->n_points; k++)
        if (r->point[k].roof == i && kind_of(r, &r->point[k]) == peak &&
            r->point[k].cached == cached && is_drawn(&r->point[k]))
            return true;
    return false;
}

/* Draws the roof of a kind of arithmetic: the slope of memory up to the peak; and, for data in the
 * caches, the dotted line of the peak alone. */
static void draw_roof(FILE *out, const axes *a, const roofs *s, int kind, bool dotted) {
    double left = pow(10, a->x0), right = pow(10, a->x1), peak = s->peak[kind];
    double floor_y = pow(10, a->y0), y = at_y(a, peak);
    if (s->read > 0) {
        double knee = fmin(peak / s->read, right), first = fmax(left, floor_y / s->read);
        fprintf(out, "<path class=\"roof\" data-roof=\"%s\" d=\"M", peak_names[kind]);
        if (first < knee)
            fprintf(out, "%.1f %.1f L", at_x(a, first), at_y(a, first * s->read));
        knee = fmax(knee, left);
        fprintf(out, "%.1f %.1f H%d\"/>\n", at_x(a, knee),
                at_y(a, fmin(peak, fmax(knee * s->read, floor_y))), WIDTH - RIGHT);
    }
    if (dotted || s->read <= 0)
        fprintf(out, "<path class=\"roof flat\" data-roof=\"%s in caches\" d=\"M%d %.1f H%d\"/>\n",
                peak_names[kind], LEFT, y, WIDTH - RIGHT);
}

/* Writes the roofs' names beside the plot, each near its line. */
static void name_roofs(FILE *out, const axes *a, const roofs *s) {
    double below = a->top;
    int order[BENCH_PEAKS], n = 0;
    for (int k = 0; k < BENCH_PEAKS; k++)
        if (s->peak[k] > 0)
            order[n++] = k;
    for (int i = 1; i < n; i++) /* the highest first */
        for (int k = i; k > 0 && s->peak[order[k]] > s->peak[order[k - 1]]; k--) {
            int other = order[k];
            order[k] = order[k - 1];
            order[k - 1] = other;
        }
    for (int i = 0; i < n; i++) {
        double y = fmax(at_y(a, s->peak[order[i]]) + 4, below);
        y = fmin(y, a->top + HEIGHT - (n - 1 - i) * ROOF_LINE); /* room for those below */
        chart_text(out, WIDTH - RIGHT + 6, y, CHART_START, "n", "%s %.3g", peak_names[order[i]],
                   s->peak[order[i]]);
        below = y + ROOF_LINE;
    }
}

/* --- points ----------------------------------------------------------------------------------- */

typedef struct box {
    double x0, y0, x1, y1;
} box;

typedef struct taken { /* where nothing else can be written */
    box box[MAX_TAKEN];
    int n;
} taken;

static bool is_free(const taken *t, box b) {
    for (int i = 0; i < t->n; i++)
        if (b.x0 < t->box[i].x1 && t->box[i].x0 < b.x1 && b.y0 < t->box[i].y1 &&
            t->box[i].y0 < b.y1)
            return false;
    return t->n < MAX_TAKEN;
}

/* Returns the roof that limits a point: "int8 in caches"; "": none is known. */
static const char *roof_over(const bench_point *p, bench_peak_kind kind, const roofs *s, char *buf,
                             size_t size) {
    buf[0] = '\0';
    if (s->peak[kind] > 0)
        snprintf(buf, size, "%s%s", peak_names[kind],
                 p->cached || s->read <= 0 ? " in caches" : "");
    return buf;
}

static void draw_point(FILE *out, const axes *a, const bench_point *p, bench_peak_kind kind,
                       const roofs *s) {
    char over[32];
    int color = p->series % CHART_SERIES;
    fprintf(out,
            "<circle class=\"point s%d %s%d\" data-series=\"%d\" data-under=\"%s\" cx=\"%.1f\" "
            "cy=\"%.1f\" r=\"%d\"",
            color, p->cached ? "hollow h" : "c", color, p->series,
            roof_over(p, kind, s, over, sizeof over), at_x(a, p->intensity), at_y(a, p->gmac),
            RADIUS - 1);
    fputs(" stroke-width=\"1.4\"><title>", out);
    svg_put(out, p->label);
    fprintf(out, ": %.3g GMAC/s at %.3g per byte%s</title></circle>\n", p->gmac, p->intensity,
            p->cached ? ", in the caches" : "");
}

/* Writes a point's label where there is room: left, right, above or below. */
static void label_point(FILE *out, const axes *a, const bench_point *p, taken *t) {
    enum { AWAY = 8 };
    char text[96];
    snprintf(text, sizeof text, "%s %.3g", p->label, p->gmac);
    double w = svg_text_width(text, CHART_NOTE, SVG_PLAIN), x = at_x(a, p->intensity),
           y = at_y(a, p->gmac);
    const double places[][2] = {
        {x - AWAY - w, y},          {x + AWAY, y},          {x - w / 2, y - 14},
        {x - w / 2, y + 14},        {x - AWAY - w, y - 12}, {x + AWAY, y - 12},
        {x - AWAY - w, y + 12},     {x + AWAY, y + 12},     {x - AWAY - w, y + 24},
        {x - AWAY - w / 2, y + 28}, {x - AWAY - w, y - 24}, {x + AWAY, y + 24}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        double left = places[i][0], middle = places[i][1];
        box b = {left - 1, middle - 7, left + w + 1, middle + 7};
        if (b.x0 < LEFT + 2 || b.x1 > WIDTH - RIGHT - 2 || b.y0 < a->top + 2 ||
            b.y1 > a->top + HEIGHT - 2 || !is_free(t, b))
            continue;
        t->box[t->n++] = b;
        chart_text(out, left, middle + 4, CHART_START, "n halo", "%s", text);
        return;
    }
}

static const bench_point *fastest(const bench_roofline *r, int i, int series) {
    const bench_point *best = NULL;
    for (size_t k = 0; k < r->n_points; k++) {
        const bench_point *p = &r->point[k];
        if (p->roof == i && p->series == series && is_drawn(p) && (!best || p->gmac > best->gmac))
            best = p;
    }
    return best;
}

/* --- the picture ------------------------------------------------------------------------------ */

static void draw_panel(FILE *out, const bench_roofline *r, int i, const axes *a) {
    static taken t;
    double none = 0;
    const roofs s = roofs_of(r, i, &none, &none);
    char name[96];
    t.n = 0;
    fputs("<g class=\"panel\">\n", out);
    char note[96] = "limits not measured";
    if (s.read > 0)
        snprintf(note, sizeof note, "memory %.3g GB/s, limits by %s code", s.read,
                 r->roof[i].limit.isa ? r->roof[i].limit.isa : "unknown");
    double room = WIDTH - LEFT - RIGHT - 16 - svg_text_width(note, CHART_NOTE, SVG_PLAIN);
    chart_text(out, LEFT, a->top - 10, CHART_START, "b", "%s",
               svg_fit(r->roof[i].name, 13.5, SVG_BOLD, room, name, sizeof name));
    chart_text(out, WIDTH - RIGHT, a->top - 10, CHART_END, "n", "%s", note);
    draw_axes(out, a);
    for (int k = 0; k < BENCH_PEAKS; k++)
        if (s.peak[k] > 0)
            draw_roof(out, a, &s, k, has_points(r, i, (bench_peak_kind)k, true));
    name_roofs(out, a, &s);
    for (size_t k = 0; k < r->n_points; k++) {
        const bench_point *p = &r->point[k];
        if (p->roof != i || !is_drawn(p))
            continue;
        double x = at_x(a, p->intensity), y = at_y(a, p->gmac);
        draw_point(out, a, p, kind_of(r, p), &s);
        if (t.n < MAX_TAKEN)
            t.box[t.n++] = (box){x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS};
    }
    for (int k = 0; k < r->n_series; k++) {
        const bench_point *p = fastest(r, i, k);
        if (p)
            label_point(out, a, p, &t);
    }
    fputs("</g>\n", out);
}

/* Writes the legend of the series that have points; out NULL: measures. Returns the baseline of
 * its last line. */
static double draw_legend(FILE *out, const bench_roofline *r) {
    chart_legend l = {LEFT, CHART_TOP, LEFT, WIDTH - CHART_MARGIN};
    for (int k = 0; k < r->n_series; k++)
        for (int i = 0; i < r->n_roofs; i++)
            if (fastest(r, i, k)) {
                chart_legend_add(out, &l, k, r->series[k]);
                break;
            }
    return l.y;
}

/* Writes what the picture needs to be read; returns the number of lines. */
static int draw_notes(FILE *out, const bench_roofline *r, double y) {
    double peak = 0, read = 0;
    char text[256];
    int n;
    for (int i = 0; i < r->n_roofs; i++)
        (void)roofs_of(r, i, &peak, &read);
    n = chart_note(out, LEFT, y, WIDTH - LEFT - CHART_MARGIN,
                   "To the right: multiply-adds per byte of weights. Labels: the fastest of each "
                   "color, in GMAC/s.");
    n += chart_note(out, LEFT, y + n * CHART_NOTE_LINE, WIDTH - LEFT - CHART_MARGIN,
                    "Filled: the data comes from memory, whose rate is the slope. Hollow: the data "
                    "fits in the caches; the limit is the dotted line. int8: quantized weights; "
                    "bf16, f32: others.");
    if (peak > 0.005 || read > 0.005) {
        snprintf(text, sizeof text,
                 "Limits are measured, too: where a kernel was faster, the roof is at that kernel "
                 "(peaks by up to %.0f %%, memory by up to %.0f %%).",
                 100 * peak, 100 * read);
        n += chart_note(out, LEFT, y + n * CHART_NOTE_LINE, WIDTH - LEFT - CHART_MARGIN, text);
    }
    return n;
}

void bench_roofline_draw(FILE *out, const bench_roofline *r) {
    double top = draw_legend(NULL, r) + 14;
    double notes = top + r->n_roofs * (double)(HEAD + HEIGHT + FOOT) + 14;
    chart_open(out, WIDTH, notes + draw_notes(NULL, r, 0) * CHART_NOTE_LINE + 6, r->title);
    draw_legend(out, r);
    for (int i = 0; i < r->n_roofs; i++) {
        axes a = axes_of(r, i);
        a.top = top + i * (double)(HEAD + HEIGHT + FOOT) + HEAD;
        draw_panel(out, r, i, &a);
    }
    draw_notes(out, r, notes);
    chart_close(out);
}
