#include "plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/chart.h"
#include "common/svg_text.h"

enum { NAMES = 170, CELL_H = 22, MOST_W = 44, LEAST_W = 5, TEXT_W = 30, ROOM = 760, STEPS = 5 };

/* The most that a color covers a cell: numbers in it stay readable. */
#define MOST_COLOR 0.6

/* A layer beyond this is in no model, and is drawn with the tensors outside of layers. */
enum { MOST_LAYERS = 1024 };

static int column_of(const tensor_stats *s, int n_layers) {
    return s->layer >= 0 && s->layer < n_layers ? s->layer : n_layers;
}

/* The shares at the ends of the scale of colors: tenths around all shares. */
typedef struct scale {
    double low, high;
} scale;

static scale scale_of(const tensor_stats *s, size_t n) {
    scale c = {1, 0};
    for (size_t i = 0; i < n; i++)
        if (s[i].n > 0) {
            c.low = fmin(c.low, stats_effective(&s[i]));
            c.high = fmax(c.high, stats_effective(&s[i]));
        }
    if (!(c.low <= c.high))
        return (scale){0, 1};
    c.low = floor(10 * c.low) / 10;
    c.high = fmax(ceil(10 * c.high) / 10, c.low + 0.1);
    return c;
}

static double opacity(const scale *c, double share) {
    return (c->high - share) / (c->high - c->low) * MOST_COLOR + 0.02;
}

static void draw_cell(FILE *out, const scale *c, const tensor_stats *s, double x, double y,
                      double w) {
    const double share = stats_effective(s);
    fputs("<g><title>", out);
    svg_put(out, s->e->name);
    fprintf(out, ": %.1f%% of %" PRId64 " columns matter</title>\n", 100 * share, s->n);
    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"c0\" "
            "fill-opacity=\"%.3f\"/></g>\n",
            x, y, w - 1, CELL_H - 1, opacity(c, share));
    if (w >= TEXT_W)
        chart_text(out, x + (w - 1) / 2, y + 15, CHART_MIDDLE, "n", "%.0f", 100 * share);
}

/* Numbers under the columns, as many as have room, and the column of tensors outside of layers. */
static void draw_axis(FILE *out, double x, double y, double w, int n_layers, bool has_other) {
    int step = 1;
    while (step * w < 24)
        step *= step % 4 == 2 ? 5 : 2; /* 1, 2, 10, 20, 100, .. */
    for (int i = 0; i < n_layers; i += step)
        chart_text(out, x + (i + 0.5) * w, y + 14, CHART_MIDDLE, "n", "%d", i);
    if (n_layers > 0)
        chart_text(out, x, y + 34, CHART_START, "n",
                   has_other ? "layer; last: outside of layers" : "layer");
}

static void draw_legend(FILE *out, const scale *c, double x, double y) {
    chart_text(out, x, y + 14, CHART_START, "n", "columns that matter:");
    x += 140;
    for (int i = 0; i <= STEPS; i++, x += 56) {
        const double share = c->high - (c->high - c->low) * i / STEPS;
        fprintf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"16\" height=\"16\" class=\"c0 g\" "
                "fill-opacity=\"%.3f\"/>\n",
                x, y + 2, opacity(c, share));
        chart_text(out, x + 20, y + 14, CHART_START, "n", "%.0f%%", 100 * share);
    }
}

void imatrix_plot(FILE *out, const tensor_stats *s, size_t n, const char *title) {
    const scale colors = scale_of(s, n);
    int n_layers = 0, n_kinds = 0;
    bool has_other = false;
    char fit[128];
    for (size_t i = 0; i < n; i++) {
        n_layers = s[i].layer >= n_layers && s[i].layer < MOST_LAYERS ? s[i].layer + 1 : n_layers;
        n_kinds += i == 0 || strcmp(s[i].kind, s[i - 1].kind) != 0;
    }
    for (size_t i = 0; i < n; i++)
        has_other |= column_of(&s[i], n_layers) == n_layers;
    const int n_columns = n_layers + has_other;
    const double w = fmax(LEAST_W, fmin(MOST_W, (double)ROOM / (n_columns > 0 ? n_columns : 1))),
                 x = CHART_MARGIN + NAMES, right = fmax(x + w * n_columns, 2 * CHART_MARGIN + 520);
    chart_open(out, right + CHART_MARGIN, CHART_TOP + n_kinds * CELL_H + 84, title);
    bool is_drawn[MOST_LAYERS + 1] = {0}; /* two names may be of one cell: "a" and "a.weight" */
    int row = -1;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(s[i].kind, s[i - 1].kind) != 0) {
            row++;
            memset(is_drawn, 0, sizeof is_drawn);
            chart_text(out, x - 8, CHART_TOP + row * CELL_H + 15, CHART_END, "t", "%s",
                       svg_fit(s[i].kind, CHART_SIZE, SVG_PLAIN, NAMES - 8, fit, sizeof fit));
        }
        const int column = column_of(&s[i], n_layers);
        if (s[i].n > 0 && !is_drawn[column])
            draw_cell(out, &colors, &s[i], x + w * column, CHART_TOP + row * CELL_H, w);
        is_drawn[column] |= s[i].n > 0;
    }
    const double below = CHART_TOP + n_kinds * CELL_H;
    draw_axis(out, x, below, w, n_layers, has_other);
    draw_legend(out, &colors, CHART_MARGIN, below + 48);
    chart_close(out);
}
