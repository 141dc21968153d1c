#include "serve_plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/chart.h"
#include "common/svg_text.h"

enum { WIDTH = 760, LEFT = 84, RIGHT = 30, HEAD = 36, HEIGHT = 220, FOOT = 44, N_STEPS = 4 };

typedef struct panel {
    const char *title, *unit;
    double (*of)(const serve_row *r);
    double (*upper)(const serve_row *r); /* drawn dashed; NULL: none */
} panel;

static double rate_of(const serve_row *r) {
    return r->answer_rate;
}
static double first_of(const serve_row *r) {
    return r->first.median;
}
static double first_99(const serve_row *r) {
    return r->first.p99;
}
static double between_of(const serve_row *r) {
    return r->between.median;
}
static double between_99(const serve_row *r) {
    return r->between.p99;
}

static const panel panels[] = {
    {"Tokens of answers per second", "tokens per second", rate_of, NULL},
    {"Time to the first token (line: median; dashed: 99th percentile)", "milliseconds", first_of,
     first_99},
    {"Time between tokens (line: median; dashed: 99th percentile)", "milliseconds", between_of,
     between_99},
};
enum { N_PANELS = sizeof panels / sizeof *panels };

typedef struct axes {
    double x0, x1; /* logarithms of the load */
    double top, step;
    double y; /* of the panel's upper edge, in the picture */
} axes;

/* --- lines ------------------------------------------------------------------------------------ */

static bool same_line(const serve_row *a, const serve_row *b) {
    return a->server == b->server && a->n_prompt == b->n_prompt &&
           a->load.n_answer == b->load.n_answer;
}

static bool is_first(const serve_row *row, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (same_line(&row[k], &row[i]))
            return false;
    return true;
}

/* --- axes ------------------------------------------------------------------------------------- */

static double or_zero(double x) {
    return chart_shows(x) ? x : 0;
}

/* Returns the logarithm of a row's load. */
static double load_of(const serve_row *r) {
    const double load = serve_load_size(&r->load);
    return load > 0 && chart_shows(load) ? log2(load) : 0;
}

static axes axes_of(const serve_row *row, size_t n, const panel *p, double y) {
    axes a = {.x0 = INFINITY, .x1 = -INFINITY, .y = y};
    double top = 0;
    for (size_t i = 0; i < n; i++) {
        a.x0 = fmin(a.x0, load_of(&row[i]));
        a.x1 = fmax(a.x1, load_of(&row[i]));
        top = fmax(top, or_zero(p->of(&row[i])));
        top = p->upper ? fmax(top, or_zero(p->upper(&row[i]))) : top;
    }
    if (!(a.x1 > a.x0)) { /* one load stands in the middle */
        a.x0 -= 1;
        a.x1 += 1;
    }
    a.step = chart_step(top, N_STEPS);
    a.top = fmax(ceil(top / a.step), 1) * a.step;
    return a;
}

static double at_x(const axes *a, const serve_row *r) {
    return LEFT + (load_of(r) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const axes *a, double y) {
    return a->y + HEAD + (1 - y / a->top) * HEIGHT;
}

/* Writes the loads below the axis, those that have room: the lowest first. */
static void draw_loads(FILE *out, const axes *a, const serve_row *row, size_t n) {
    double end = -INFINITY, done = -INFINITY; /* of the last text; the last load */
    for (;;) {
        const serve_row *next = NULL;
        char load[32];
        for (size_t i = 0; i < n; i++)
            if (at_x(a, &row[i]) > done && (!next || at_x(a, &row[i]) < at_x(a, next)))
                next = &row[i];
        if (!next)
            return;
        double x = at_x(a, next),
               w = svg_text_width(serve_load_text(&next->load, load, sizeof load), CHART_NOTE,
                                  SVG_PLAIN);
        double left = fmin(x, WIDTH - 4 - w / 2) - w / 2;
        if (left > end) {
            chart_text(out, left, a->y + HEAD + HEIGHT + 16, CHART_START, "n", "%s", load);
            end = left + w + 4;
        }
        done = x;
    }
}

static void draw_grid(FILE *out, const axes *a, const panel *p, const serve_row *row, size_t n) {
    const double bottom = a->y + HEAD + HEIGHT;
    chart_text(out, LEFT, a->y + HEAD - 12, CHART_START, "b", "%s", p->title);
    const int n_steps = (int)lround(a->top / a->step);
    for (int i = 0; i <= n_steps; i++) {
        const double v = i * a->step;
        fprintf(out, "<path class=\"g\" d=\"M%d %.1f H%d\"/>\n", LEFT, at_y(a, v), WIDTH - RIGHT);
        chart_text(out, LEFT - 8, at_y(a, v) + 4, CHART_END, "n", "%g", v);
    }
    fprintf(out, "<rect class=\"axes\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n", LEFT,
            a->y + HEAD, WIDTH - LEFT - RIGHT, HEIGHT);
    draw_loads(out, a, row, n);
    chart_text(out, (LEFT + WIDTH - RIGHT) / 2.0, bottom + 33, CHART_MIDDLE, "n", "%s",
               row->load.n_clients > 0 ? "clients at the same time" : "requests per second");
    chart_text_up(out, 24, a->y + HEAD + HEIGHT / 2.0, p->unit);
}

/* --- curves ----------------------------------------------------------------------------------- */

static void draw_curve(FILE *out, const axes *a, double (*of)(const serve_row *r),
                       const serve_row *row, size_t n, size_t first, int series,
                       const char *style) {
    bool any = false;
    for (size_t i = first; i < n; i++)
        if (same_line(&row[i], &row[first]) && chart_shows(of(&row[i]))) {
            if (!any)
                fprintf(out, "<path class=\"line s%d\" data-series=\"%d\" fill=\"none\" %s d=\"M",
                        series % CHART_SERIES, series, style);
            fprintf(out, "%s%.1f %.1f", any ? " L" : "", at_x(a, &row[i]), at_y(a, of(&row[i])));
            any = true;
        }
    if (any)
        fputs("\"/>\n", out);
}

static void draw_line(FILE *out, const axes *a, const panel *p, const serve_row *row, size_t n,
                      size_t first, int series) {
    draw_curve(out, a, p->of, row, n, first, series, "stroke-width=\"2\"");
    for (size_t i = first; i < n; i++)
        if (same_line(&row[i], &row[first]) && chart_shows(p->of(&row[i])))
            fprintf(out,
                    "<circle class=\"point c%d\" data-series=\"%d\" cx=\"%.1f\" cy=\"%.1f\" "
                    "r=\"3.5\"/>\n",
                    series % CHART_SERIES, series, at_x(a, &row[i]), at_y(a, p->of(&row[i])));
    if (p->upper)
        draw_curve(out, a, p->upper, row, n, first, series, "stroke-dasharray=\"5 4\"");
}

static void draw_panel(FILE *out, const panel *p, const serve_row *row, size_t n, double y) {
    const axes a = axes_of(row, n, p, y);
    int series = 0;
    fputs("<g class=\"panel\">\n", out);
    draw_grid(out, &a, p, row, n);
    for (size_t i = 0; i < n; i++)
        if (is_first(row, i))
            draw_line(out, &a, p, row, n, i, series++);
    fputs("</g>\n", out);
}

/* --- the legend ------------------------------------------------------------------------------- */

/* True if anything of a line can be drawn: its server answered. */
static bool has_values(const serve_row *row, size_t n, size_t first) {
    for (size_t i = first; i < n; i++)
        for (int k = 0; k < N_PANELS && same_line(&row[i], &row[first]); k++)
            if (chart_shows(panels[k].of(&row[i])) ||
                (panels[k].upper && chart_shows(panels[k].upper(&row[i]))))
                return true;
    return false;
}

/* Returns what a server is called: the name that the user gave, or its model, with the URL if
 * another server has the same model. */
static const char *name_of(const serve_row *row, size_t n, size_t i, char *buf, size_t size) {
    const serve_server *s = row[i].server;
    bool other = false;
    for (size_t k = 0; k < n; k++)
        other = other || (row[k].server != s && strcmp(row[k].server->model, s->model) == 0);
    if (s->name)
        snprintf(buf, size, "%s", s->name);
    else
        snprintf(buf, size, "%s%s%s", s->model, other ? " at " : "", other ? s->url : "");
    return buf;
}

/* Writes a line for each server and length; out NULL: measures. Returns the baseline of the last. */
static double draw_legend(FILE *out, const serve_row *row, size_t n) {
    chart_legend l = {LEFT, CHART_TOP, LEFT, WIDTH - CHART_MARGIN};
    int series = 0;
    for (size_t i = 0; i < n; i++) {
        char name[1400], fit[256], sizes[96], whole[400];
        if (!is_first(row, i))
            continue;
        if (has_values(row, n, i)) {
            snprintf(sizes, sizeof sizes, ": prompts of %" PRId64 ", answers of %" PRId64,
                     row[i].n_prompt, row[i].load.n_answer);
            /* a long name is cut, not the lengths */
            double room =
                WIDTH - CHART_MARGIN - LEFT - 20 - svg_text_width(sizes, CHART_SIZE, SVG_PLAIN);
            snprintf(whole, sizeof whole, "%s%s",
                     svg_fit(name_of(row, n, i, name, sizeof name), CHART_SIZE, SVG_PLAIN,
                             room > 60 ? room : 60, fit, sizeof fit),
                     sizes);
            chart_legend_add(out, &l, series, whole);
        }
        series++;
    }
    return l.y;
}

void serve_plot_draw(FILE *out, const serve_row *row, size_t n) {
    const double top = draw_legend(NULL, row, n) + 8;
    chart_open(out, WIDTH, top + (n > 0 ? N_PANELS : 0) * (HEAD + HEIGHT + FOOT) + 8,
               "Servers under load");
    draw_legend(out, row, n);
    for (int i = 0; i < N_PANELS && n > 0; i++)
        draw_panel(out, &panels[i], row, n, top + i * (HEAD + HEIGHT + FOOT));
    chart_close(out);
}
