#include "plot.h"

#include <math.h>
#include <string.h>

#include "common/chart.h"
#include "common/svg_text.h"

enum {
    WIDTH = 760,
    LEFT = 210,  /* room for the names of bars */
    RIGHT = 190, /* room for their values */
    BAR = 24,
    HEAD = 34,
    FOOT = 46, /* the axis: ticks and its title */
    N_STEPS = 4
};

typedef struct axis {
    double top, step;
} axis;

static const char *panel_of(const bench_row *r, char *buf, size_t size) {
    char test[96];
    snprintf(buf, size, "%s: %s", r->model_type, bench_test_text(&r->test, test, sizeof test));
    return buf;
}

static bool same_panel(const bench_row *a, const bench_row *b) {
    char x[256], y[256];
    return strcmp(panel_of(a, x, sizeof x), panel_of(b, y, sizeof y)) == 0;
}

static bool is_first(bench_row *const *row, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (same_panel(row[k], row[i]))
            return false;
    return true;
}

/* Returns the series of a row: its backend, with the same color in all panels. */
static int series_of(bench_row *const *row, size_t i) {
    int n = 0;
    for (size_t k = 0; k < i; k++) {
        bool first = true;
        for (size_t j = 0; j < k; j++)
            first = first && strcmp(row[j]->backend, row[k]->backend) != 0;
        if (strcmp(row[k]->backend, row[i]->backend) == 0)
            break;
        n += first;
    }
    return n;
}

static double positive(double x) {
    return chart_shows(x) ? x : 0;
}

static double at_x(const axis *a, double value) {
    return LEFT + fmin(positive(value) / a->top, 1) * (WIDTH - LEFT - RIGHT);
}

static axis axis_of(bench_row *const *row, size_t n, size_t first) {
    double top = 0;
    for (size_t i = first; i < n; i++)
        if (same_panel(row[i], row[first]))
            top = fmax(top, fmax(positive(row[i]->s_ts.q3), positive(row[i]->s_ts.median)));
    axis a = {.step = chart_step(top, N_STEPS)};
    a.top = fmax(ceil(top / a.step), 1) * a.step;
    return a;
}

/* Draws a line from x0 to x1 with an end at each, as the quartiles have. */
static void draw_whisker(FILE *out, double x0, double x1, double y) {
    fprintf(out, "<path class=\"ink\" d=\"M%.1f %.1f H%.1f M%.1f %.1f V%.1f M%.1f %.1f V%.1f\"/>\n",
            x0, y, x1, x0, y - 4, y + 4, x1, y - 4, y + 4);
}

static void draw_bar(FILE *out, const bench_row *r, int series, double y, const axis *a) {
    const double mid = y + BAR / 2.0, ts = r->s_ts.median;
    const double q1 = at_x(a, r->s_ts.q1), q3 = at_x(a, r->s_ts.q3);
    char name[160], fit[160], threads[32];
    /* a long backend is cut, not the number of threads */
    snprintf(threads, sizeof threads, ", %d thread%s", (int)r->test.n_threads,
             r->test.n_threads == 1 ? "" : "s");
    double room = LEFT - CHART_MARGIN - 8 - svg_text_width(threads, CHART_SIZE, SVG_PLAIN);
    snprintf(name, sizeof name, "%s%s",
             svg_fit(r->backend, CHART_SIZE, SVG_PLAIN, room, fit, sizeof fit - sizeof threads),
             threads);
    chart_text(out, LEFT - 8, mid + 4, CHART_END, "t", "%s", name);
    fprintf(out,
            "<rect class=\"c%d\" data-series=\"%d\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%d\"/>\n",
            series % CHART_SERIES, series, LEFT, y + 4, at_x(a, ts) - LEFT, BAR - 8);
    draw_whisker(out, q1, q3, mid);
    snprintf(name, sizeof name, "%.*f t/s", ts < 1000 ? 1 : 0, ts);
    if (r->percent > 0) {
        size_t used = strlen(name);
        snprintf(name + used, sizeof name - used, ", %.0f %% of limit", r->percent);
    }
    double x = fmax(q3, at_x(a, ts)) + 8;
    chart_text(out, x, mid + 4, CHART_START, "t", "%s",
               svg_fit(name, CHART_SIZE, SVG_PLAIN, WIDTH - CHART_MARGIN - x, fit, sizeof fit));
}

static void draw_axis(FILE *out, const axis *a, double top, double bottom) {
    const int n_steps = (int)lround(a->top / a->step);
    for (int i = 0; i <= n_steps; i++) {
        const double v = i * a->step;
        fprintf(out, "<path class=\"g\" d=\"M%.1f %.1f V%.1f\"/>\n", at_x(a, v), top, bottom);
        chart_text(out, at_x(a, v), bottom + 16, CHART_MIDDLE, "n", "%g", v);
    }
    chart_text(out, WIDTH - RIGHT + 24, bottom + 16, CHART_START, "n", "tokens per second");
    fprintf(out, "<path class=\"axes\" d=\"M%d %.1f V%.1f H%d\"/>\n", LEFT, top, bottom,
            WIDTH - RIGHT);
}

static double draw_panel(FILE *out, bench_row *const *row, size_t n, size_t first, double y) {
    const axis a = axis_of(row, n, first);
    char title[256], fit[256];
    size_t bars = 0;
    for (size_t i = first; i < n; i++)
        bars += same_panel(row[i], row[first]);
    chart_text(out, CHART_MARGIN, y + HEAD - 12, CHART_START, "b", "%s",
               svg_fit(panel_of(row[first], title, sizeof title), 13.5, SVG_BOLD,
                       WIDTH - 2 * CHART_MARGIN, fit, sizeof fit));
    y += HEAD;
    draw_axis(out, &a, y, y + (double)bars * BAR);
    for (size_t i = first; i < n; i++)
        if (same_panel(row[i], row[first])) {
            draw_bar(out, row[i], series_of(row, i), y, &a);
            y += BAR;
        }
    return y + FOOT;
}

static void draw_legend(FILE *out, bench_row *const *row, size_t n) {
    int least = n > 0 ? row[0]->n : 0, most = least;
    char runs[64];
    for (size_t i = 1; i < n; i++) {
        least = row[i]->n < least ? row[i]->n : least;
        most = row[i]->n > most ? row[i]->n : most;
    }
    if (least == most)
        snprintf(runs, sizeof runs, "%d run%s", most, most == 1 ? "" : "s");
    else
        snprintf(runs, sizeof runs, "%d to %d runs", least, most);
    fprintf(out, "<rect class=\"c7\" x=\"%d\" y=\"%d\" width=\"30\" height=\"12\"/>\n",
            CHART_MARGIN, CHART_TOP - 10);
    draw_whisker(out, CHART_MARGIN + 22, CHART_MARGIN + 38, CHART_TOP - 4);
    chart_text(out, CHART_MARGIN + 48, CHART_TOP, CHART_START, "t",
               "bar: median of %s; whisker: first to third quartile", runs);
}

void bench_plot_draw(FILE *out, bench_row *const *row, size_t n) {
    double height = CHART_TOP + 12 + (double)n * BAR;
    char title[256];
    for (size_t i = 0; i < n; i++)
        height += is_first(row, i) ? HEAD + FOOT : 0;
    snprintf(title, sizeof title, "Tokens per second%s%.120s", n > 0 ? " on " : "",
             n > 0 ? row[0]->cpu : "");
    chart_open(out, WIDTH, height, title);
    draw_legend(out, row, n);
    double y = CHART_TOP + 12;
    for (size_t i = 0; i < n; i++)
        if (is_first(row, i))
            y = draw_panel(out, row, n, i, y);
    chart_close(out);
}
