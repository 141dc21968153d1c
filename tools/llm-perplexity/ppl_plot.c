#include "ppl_plot.h"

#include <math.h>

#include "common/chart.h"
#include "common/svg_text.h"

enum {
    WIDTH = 760,
    LEFT = 80,
    RIGHT = 24,
    PLOT = 260,
    ROW = 24,
    FOOT = 50,
    NAME = 90,
    VALUE = 110
};

typedef struct axis {
    double low, high, step;
} axis;

static bool shows(double x) {
    return x > 0 && chart_shows(x);
}

static void widen(axis *a, double x) {
    if (!shows(x))
        return;
    a->low = a->low < x ? a->low : x;
    a->high = a->high > x ? a->high : x;
}

static axis axis_of(const ppl_plot *p) {
    axis a = {INFINITY, -INFINITY, 0};
    for (int64_t i = 0; i < p->n_chunk; i++) {
        widen(&a, p->chunk[i].own);
        widen(&a, p->chunk[i].running);
    }
    if (p->n_chunk == 1) {
        widen(&a, p->chunk->running - p->chunk->error);
        widen(&a, p->chunk->running + p->chunk->error);
    }
    if (!(a.low <= a.high))
        a = (axis){0, 1, 0};
    /* of numbers that are all alike, a tenth above and below is shown */
    a.step = chart_step(fmax(a.high - a.low, a.high / 10), 5);
    a.low = floor(a.low / a.step) * a.step;
    a.high = fmax(ceil(a.high / a.step) * a.step, a.low + a.step);
    return a;
}

static double at_x(const ppl_plot *p, double chunk) {
    return LEFT +
           (WIDTH - LEFT - RIGHT) * (chunk + 0.5) / (double)(p->n_chunk > 0 ? p->n_chunk : 1);
}

static double at_y(const axis *a, double value, double top) {
    const double share = (value - a->low) / (a->high - a->low);
    return top + PLOT * (1 - (share > 0 ? share < 1 ? share : 1 : 0));
}

static void draw_axes(FILE *out, const ppl_plot *p, const axis *a, double top) {
    const int n = (int)lround((a->high - a->low) / a->step);
    for (int i = 0; i <= n; i++) {
        const double y = at_y(a, a->low + i * a->step, top);
        fprintf(out, "<path class=\"g\" d=\"M%d %.1f H%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        chart_text(out, LEFT - 6, y + 4, CHART_END, "n", "%.4g", a->low + i * a->step);
    }
    const int64_t step = (int64_t)fmax(1, chart_step((double)p->n_chunk, 8));
    for (int64_t i = step; i <= p->n_chunk; i += step)
        chart_text(out, at_x(p, (double)i - 1), top + PLOT + 16, CHART_MIDDLE, "n", "%lld",
                   (long long)i);
    chart_text(out, LEFT, top + PLOT + 34, CHART_START, "n", "chunk");
}

/* The band of one standard error around the running value: forwards above, backwards below. */
static void draw_band(FILE *out, const ppl_plot *p, const axis *a, double top) {
    fputs("<path class=\"c0\" fill-opacity=\"0.2\" d=\"", out);
    if (p->n_chunk == 1) { /* a line needs two points: that of one chunk is as wide as the plot */
        const ppl_chunk *m = p->chunk;
        const double value = isfinite(m->running) ? m->running : a->low;
        const double error = isfinite(m->error) ? m->error : 0;
        fprintf(out, "M%d %.1f H%d V%.1f H%d\"/>\n", LEFT, at_y(a, value + error, top),
                WIDTH - RIGHT, at_y(a, value - error, top), LEFT);
        return;
    }
    for (int64_t k = 0; k < 2 * p->n_chunk; k++) {
        const int64_t i = k < p->n_chunk ? k : 2 * p->n_chunk - 1 - k;
        const ppl_chunk *m = &p->chunk[i];
        const double value = m->running + (k < p->n_chunk ? m->error : -m->error);
        fprintf(out, "%s%.1f %.1f ", k ? "L" : "M", at_x(p, (double)i),
                at_y(a, isfinite(value) ? value : a->low, top));
    }
    fputs("\"/>\n", out);
}

static void draw_running(FILE *out, const ppl_plot *p, const axis *a, double top) {
    fputs("<path class=\"line s0\" data-series=\"0\" fill=\"none\" stroke-width=\"1.6\" d=\"", out);
    if (p->n_chunk == 1)
        fprintf(out, "M%d %.1f H%d", LEFT,
                at_y(a, shows(p->chunk[0].running) ? p->chunk[0].running : a->high, top),
                WIDTH - RIGHT);
    for (int64_t i = 0; i < p->n_chunk && p->n_chunk > 1; i++)
        fprintf(out, "%s%.1f %.1f ", i ? "L" : "M", at_x(p, (double)i),
                at_y(a, shows(p->chunk[i].running) ? p->chunk[i].running : a->high, top));
    fputs("\"/>\n", out);
    for (int64_t i = 0; i < p->n_chunk; i++)
        if (shows(p->chunk[i].own) || i == 0) /* the legend has it */
            fprintf(out,
                    "<circle class=\"point c1\" data-series=\"1\" cx=\"%.1f\" cy=\"%.1f\" "
                    "r=\"2.5\"/>\n",
                    at_x(p, (double)i),
                    at_y(a, shows(p->chunk[i].own) ? p->chunk[i].own : a->high, top));
}

/* Bars on a logarithmic axis of six powers of ten, because quantiles are that far apart. Numbers below
 * it have no bar. */
static void draw_quantiles(FILE *out, const ppl_plot *p, double y) {
    static const struct {
        const char *name;
        int k;
    } of[] = {{"median", 6}, {"90 %", 8}, {"99 %", 10}, {"99.9 %", 11}, {"maximum", 12}};
    enum { N = sizeof of / sizeof *of, BEGIN = LEFT + NAME - 70, END = WIDTH - VALUE, POWERS = 6 };
    const double most = p->kld[of[N - 1].k];
    const int high = shows(most) ? (int)ceil(log10(most) - 1e-9) : 0;
    chart_legend l = {CHART_MARGIN, y, CHART_MARGIN, WIDTH - RIGHT};
    chart_legend_add(out, &l, 2, "KL divergence of a position: quantiles, on a logarithmic axis");
    y += ROW / 2;
    fprintf(out,
            "<g class=\"panel\"><rect class=\"axes\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
            "height=\"%d\"/>\n",
            BEGIN, y, END - BEGIN, N * ROW);
    for (int k = 0; k <= POWERS; k++) {
        const double x = BEGIN + (double)k / POWERS * (END - BEGIN);
        fprintf(out, "<path class=\"g\" d=\"M%.1f %.1f V%.1f\"/>\n", x, y, y + N * ROW);
        chart_text(out, x, y + N * ROW + 16, CHART_MIDDLE, "n", "1e%d", high - POWERS + k);
    }
    for (size_t k = 0; k < N; k++, y += ROW) {
        const double q = p->kld[of[k].k];
        const double share = shows(q) ? fmin(1, fmax(0, 1 + (log10(q) - high) / POWERS)) : 0;
        chart_text(out, BEGIN - 8, y + 16, CHART_END, "t", "%s", of[k].name);
        fprintf(out,
                "<rect class=\"bar c2\" data-series=\"2\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"16\"/>\n",
                BEGIN, y + 4, share * (END - BEGIN));
        chart_text(out, END + 8, y + 16, CHART_START, "t", "%.3g", q);
    }
    fputs("</g>\n", out);
}

void ppl_plot_draw(FILE *out, const ppl_plot *p) {
    const axis a = axis_of(p);
    const double top = CHART_TOP + 20;
    chart_legend l = {LEFT, CHART_TOP, LEFT, WIDTH - RIGHT};
    chart_open(out, WIDTH, top + PLOT + FOOT + (p->kld ? 6 * ROW + 50 : 0), p->title);
    chart_legend_add(out, &l, 0, "of the text so far, and its standard error");
    chart_legend_add(out, &l, 1, "of a chunk by itself");
    fprintf(out,
            "<g class=\"panel\"><rect class=\"axes\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
            "height=\"%d\"/>\n",
            LEFT, top, WIDTH - LEFT - RIGHT, PLOT);
    draw_axes(out, p, &a, top);
    draw_band(out, p, &a, top);
    draw_running(out, p, &a, top);
    fputs("</g>\n", out);
    if (p->kld)
        draw_quantiles(out, p, top + PLOT + FOOT + 14);
    chart_close(out);
}
