#include "serve_plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/svg_text.h"

enum {
    WIDTH = 760,
    LEFT = 80,
    RIGHT = 24,
    HEAD = 34,
    HEIGHT = 220,
    FOOT = 46,
    LINE = 18,
    TOP = 40
};

static const char *const colors[] = {"#2a6fbb", "#c0392b", "#1e8449",
                                     "#8e44ad", "#b9770e", "#117a65"};
enum { N_COLORS = sizeof colors / sizeof *colors };

typedef struct panel {
    const char *title;
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
    {"Tokens of answers per second", rate_of, NULL},
    {"Time to the first token, ms (dashed: 99th percentile)", first_of, first_99},
    {"Time between tokens, ms (dashed: 99th percentile)", between_of, between_99},
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

static size_t n_lines(const serve_row *row, size_t n) {
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += is_first(row, i);
    return lines;
}

/* --- axes ------------------------------------------------------------------------------------- */

/* Returns 1, 2 or 5 times a power of ten, so that about four of them reach x. */
static double nice_step(double x) {
    if (!(x > 0))
        return 1;
    double power = pow(10, floor(log10(x / 4))), rest = x / 4 / power;
    return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

static axes axes_of(const serve_row *row, size_t n, const panel *p, double y) {
    axes a = {.x0 = INFINITY, .x1 = -INFINITY, .y = y};
    double top = 0;
    for (size_t i = 0; i < n; i++) {
        a.x0 = fmin(a.x0, log2(serve_load_size(&row[i].load)));
        a.x1 = fmax(a.x1, log2(serve_load_size(&row[i].load)));
        top = fmax(top, p->of(&row[i])); /* fmax ignores NaN */
        top = p->upper ? fmax(top, p->upper(&row[i])) : top;
    }
    if (!(a.x1 > a.x0)) { /* one load stands in the middle */
        a.x0 -= 1;
        a.x1 += 1;
    }
    a.step = nice_step(top);
    a.top = fmax(ceil(top / a.step), 1) * a.step;
    return a;
}

static double at_x(const axes *a, const serve_row *r) {
    return LEFT +
           (log2(serve_load_size(&r->load)) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const axes *a, double y) {
    return a->y + HEAD + (1 - y / a->top) * HEIGHT;
}

static void draw_grid(FILE *out, const axes *a, const panel *p, const serve_row *row, size_t n) {
    const double bottom = a->y + HEAD + HEIGHT;
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"bold\">%s</text>\n", LEFT,
            a->y + HEAD - 12, p->title);
    for (double v = 0; v <= a->top * 1.001; v += a->step)
        fprintf(out,
                "<path class=\"g\" d=\"M%d %.1f H%d\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, at_y(a, v), WIDTH - RIGHT, LEFT - 8, at_y(a, v) + 4, v);
    for (size_t i = 0; i < n; i++) {
        char load[32];
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen = seen || at_x(a, &row[k]) == at_x(a, &row[i]);
        if (!seen)
            fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                    at_x(a, &row[i]), bottom + 16,
                    serve_load_text(&row[i].load, load, sizeof load));
    }
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, bottom + 32,
            row->load.n_clients > 0 ? "clients" : "requests per second");
}

/* --- curves ----------------------------------------------------------------------------------- */

static void draw_curve(FILE *out, const axes *a, double (*of)(const serve_row *r),
                       const serve_row *row, size_t n, size_t first, const char *style) {
    bool any = false;
    for (size_t i = first; i < n; i++)
        if (same_line(&row[i], &row[first]) && isfinite(of(&row[i]))) {
            fprintf(out, "%s%.1f %.1f", any ? " L" : "<path fill=\"none\" d=\"M", at_x(a, &row[i]),
                    at_y(a, of(&row[i])));
            any = true;
        }
    if (any)
        fprintf(out, "\" %s/>\n", style);
}

static void draw_line(FILE *out, const axes *a, const panel *p, const serve_row *row, size_t n,
                      size_t first, const char *color) {
    char style[96];
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-width=\"2\"", color);
    draw_curve(out, a, p->of, row, n, first, style);
    for (size_t i = first; i < n; i++)
        if (same_line(&row[i], &row[first]) && isfinite(p->of(&row[i])))
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n",
                    at_x(a, &row[i]), at_y(a, p->of(&row[i])), color);
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-dasharray=\"5 4\"", color);
    if (p->upper)
        draw_curve(out, a, p->upper, row, n, first, style);
}

static void draw_panel(FILE *out, const panel *p, const serve_row *row, size_t n, double y) {
    const axes a = axes_of(row, n, p, y);
    size_t line = 0;
    draw_grid(out, &a, p, row, n);
    for (size_t i = 0; i < n; i++)
        if (is_first(row, i))
            draw_line(out, &a, p, row, n, i, colors[line++ % N_COLORS]);
}

static void draw_legend(FILE *out, const serve_row *row, size_t n) {
    size_t line = 0;
    for (size_t i = 0; i < n; i++)
        if (is_first(row, i)) {
            double y = TOP + (double)line * LINE;
            char sizes[96];
            snprintf(sizes, sizeof sizes, ": prompts of %" PRId64 ", answers of %" PRId64,
                     row[i].n_prompt, row[i].load.n_answer);
            fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"14\" height=\"4\" fill=\"%s\"/>\n",
                    LEFT, y + 5, colors[line++ % N_COLORS]);
            fprintf(out, "<text x=\"%d\" y=\"%.1f\">", LEFT + 22, y + 12);
            svg_put(out, row[i].server->url);
            fputs(", ", out);
            svg_put(out, row[i].server->model);
            svg_put(out, sizes);
            fputs("</text>\n", out);
        }
}

void serve_plot_draw(FILE *out, const serve_row *row, size_t n) {
    const double top = TOP + (double)n_lines(row, n) * LINE;
    const double height = top + N_PANELS * (HEAD + HEIGHT + FOOT);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<style>.g { stroke: #ddd }</style>\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"20\" y=\"26\" font-size=\"16\">Servers under load</text>\n",
            WIDTH, height, WIDTH, height);
    draw_legend(out, row, n);
    for (int i = 0; i < N_PANELS && n > 0; i++)
        draw_panel(out, &panels[i], row, n, top + i * (HEAD + HEIGHT + FOOT));
    fputs("</svg>\n", out);
}
