#include "roofline.h"

#include <math.h>

static const char *const peak_names[BENCH_PEAKS] = {
    [BENCH_INT8] = "int8", [BENCH_BF16] = "bf16", [BENCH_F32] = "f32"};

static const char *const cached_names[BENCH_PEAKS] = {[BENCH_INT8] = "int8 in caches",
                                                      [BENCH_BF16] = "bf16 in caches",
                                                      [BENCH_F32] = "f32 in caches"};

/* The roofs of a panel, raised to the fastest kernels; 0: not known. */
typedef struct roofs {
    double read, peak[BENCH_PEAKS];
} roofs;

static bool is_drawn(const bench_point *p) {
    return p->intensity > 0 && p->gmac > 0 && drawing_shows(p->intensity) && drawing_shows(p->gmac);
}

/* Returns a limit; 0, which is "not known", if it cannot be drawn. */
static double limit_of(double x) {
    return drawing_shows(x) ? x : 0;
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

/* --- panels ----------------------------------------------------------------------------------- */

typedef struct range { /* in whole powers of ten */
    double low, high;
} range;

static void include(range *r, double value) {
    if (value > 0 && isfinite(value)) {
        r->low = fmin(r->low, floor(log10(value)));
        r->high = fmax(r->high, ceil(log10(value)));
    }
}

static range powers(range r) {
    if (!(r.low <= r.high))
        r = (range){0, 1};
    return (range){pow(10, r.low), pow(10, fmax(r.high, r.low + 1))};
}

/* Sets the axes of panel i; the panels have the same to the right. */
static void find_ranges(const bench_roofline *r, int i, const roofs *s, range *x, range *y) {
    *x = *y = (range){INFINITY, -INFINITY};
    for (size_t k = 0; k < r->n_points; k++)
        if (is_drawn(&r->point[k])) {
            include(x, r->point[k].intensity);
            if (r->point[k].roof == i)
                include(y, r->point[k].gmac);
        }
    for (int k = 0; k < BENCH_PEAKS; k++)
        include(y, s->peak[k]);
    *x = powers(*x);
    *y = powers(*y);
}

/* True if any point of the panel has that peak, and its data in the caches. */
static bool has_cached(const bench_roofline *r, int i, bench_peak_kind peak) {
    for (size_t k = 0; k < r->n_points; k++)
        if (r->point[k].roof == i && kind_of(r, &r->point[k]) == peak && r->point[k].cached &&
            is_drawn(&r->point[k]))
            return true;
    return false;
}

/* Adds the line of a limit: from x[0], y[0] to x[n - 1], y[n - 1]. */
static void add_line(drawing *d, const char *limit, bool dashed, int n, const double *x,
                     const double *y) {
    for (int i = 0; i < n; i++) {
        drawing_mark *m = drawing_at(d, DRAWING_LINE, DRAWING_INK, x[i], y[i]);
        m->begins |= i == 0;
        m->dashed = dashed;
        m->limit = limit;
    }
}

/* Adds the roof of a kind of arithmetic: the slope of memory up to the peak; and, for data in the
 * caches, the dotted line of the peak alone. */
static void add_roof(drawing *d, const roofs *s, int kind, bool cached, range x, range y) {
    const double peak = s->peak[kind];
    if (s->read > 0) {
        const double from = fmax(x.low, y.low / s->read),
                     knee = fmax(fmin(peak / s->read, x.high), x.low);
        const double top = fmin(peak, fmax(knee * s->read, y.low));
        const int flat = !(from < knee); /* no slope is seen */
        add_line(d, peak_names[kind], false, 3 - flat, (double[]){from, knee, x.high} + flat,
                 (double[]){from * s->read, top, top} + flat);
    }
    if (cached || s->read <= 0)
        add_line(d, cached_names[kind], true, 2, (double[]){x.low, x.high}, (double[]){peak, peak});
    drawing_name(d, DRAWING_RIGHT, peak, drawing_text(d, "%s %.3g", peak_names[kind], peak));
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

static void add_point(drawing *d, const bench_roofline *r, const bench_point *p, const roofs *s) {
    const bench_peak_kind kind = kind_of(r, p);
    drawing_mark *m = drawing_at(d, DRAWING_POINT, p->series, p->intensity, p->gmac);
    m->hollow = p->cached;
    m->tip = drawing_text(d, "%s: %.3g GMAC/s at %.3g per byte%s", p->label, p->gmac, p->intensity,
                          p->cached ? ", in the caches" : "");
    if (p == fastest(r, p->roof, p->series))
        m->text = drawing_text(d, "%s %.3g", p->label, p->gmac);
    if (s->peak[kind] > 0)
        m->limit = p->cached || s->read <= 0 ? cached_names[kind] : peak_names[kind];
}

static void add_panel(drawing *d, const bench_roofline *r, int i, double *peak, double *read) {
    const roofs s = roofs_of(r, i, peak, read);
    const char *isa = r->roof[i].limit.isa;
    drawing_panel *p = drawing_panel_add(d, 240);
    range x, y;
    find_ranges(r, i, &s, &x, &y);
    p->title = r->roof[i].name;
    p->note = s.read > 0 ? drawing_text(d, "memory %.3g GB/s, limits by %s code", s.read,
                                        isa ? isa : "unknown")
                         : "limits not measured";
    p->x = (drawing_axis){i == r->n_roofs - 1 ? "multiply-adds per byte of weights" : NULL, x.low,
                          x.high, .log = true};
    p->y = (drawing_axis){"GMAC/s", y.low, y.high, .log = true};
    for (int k = 0; k < BENCH_PEAKS; k++)
        if (s.peak[k] > 0)
            add_roof(d, &s, k, has_cached(r, i, (bench_peak_kind)k), x, y);
    for (size_t k = 0; k < r->n_points; k++)
        if (r->point[k].roof == i && is_drawn(&r->point[k]))
            add_point(d, r, &r->point[k], &s);
}

void bench_roofline_plot(drawing *d, const bench_roofline *r) {
    double peak = 0, read = 0;
    d->title = r->title;
    for (int k = 0; k < r->n_series; k++)
        drawing_legend(d, k, 1, r->series[k]);
    for (int i = 0; i < r->n_roofs; i++)
        add_panel(d, r, i, &peak, &read);
    drawing_note(d, "Labels: the fastest of each color, in GMAC/s. Filled: the data comes from "
                    "memory, whose rate is the slope. "
                    "Hollow: the data fits in the caches; the limit is the dotted line. int8: "
                    "quantized weights; bf16, f32: others.");
    if (peak > 0.005 || read > 0.005)
        drawing_note(
            d,
            drawing_text(
                d,
                "Limits are measured, too: where a kernel was faster, the roof is at that kernel "
                "(peaks by up to %.0f %%, memory by up to %.0f %%).",
                100 * peak, 100 * read));
}
