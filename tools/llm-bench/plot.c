#include "plot.h"

#include <math.h>
#include <string.h>

#include "common/svg_text.h"

enum { WIDTH = 900, LEFT = 250, RIGHT = 150, TOP = 50, BAR = 22, HEAD = 34, GAP = 14 };

static const char *const colors[] = {"#2a6fbb", "#c0392b", "#1e8449",
                                     "#8e44ad", "#b9770e", "#117a65"};
enum { N_COLORS = sizeof colors / sizeof *colors };

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

/* Returns the color of a backend, the same in all panels. */
static const char *color_of(bench_row *const *row, size_t i) {
    int n = 0;
    for (size_t k = 0; k < i; k++) {
        bool first = true;
        for (size_t j = 0; j < k; j++)
            first = first && strcmp(row[j]->backend, row[k]->backend) != 0;
        if (strcmp(row[k]->backend, row[i]->backend) == 0)
            break;
        n += first;
    }
    return colors[n % N_COLORS];
}

static void draw_bar(FILE *out, const bench_row *r, const char *color, double y, double top) {
    const double scale = (WIDTH - LEFT - RIGHT) / top, mid = y + BAR / 2.0;
    char name[160];
    snprintf(name, sizeof name, "%s, %d threads", r->backend, (int)r->test.n_threads);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, mid + 4);
    svg_put(out, name);
    fprintf(out,
            "</text>\n<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n"
            "<path stroke=\"#333\" d=\"M%.1f %.1f H%.1f\"/>\n"
            "<text x=\"%.1f\" y=\"%.1f\">%.*f t/s",
            LEFT, y + 3, r->s_ts.median * scale, BAR - 6, color, LEFT + r->s_ts.q1 * scale, mid,
            LEFT + r->s_ts.q3 * scale, LEFT + r->s_ts.q3 * scale + 8, mid + 4,
            r->s_ts.median < 1000 ? 1 : 0, r->s_ts.median);
    if (r->percent > 0)
        fprintf(out, ", %.0f %% of limit", r->percent);
    fputs("</text>\n", out);
}

static double draw_panel(FILE *out, bench_row *const *row, size_t n, size_t first, double y) {
    double top = 0;
    char title[256];
    for (size_t i = first; i < n; i++)
        if (same_panel(row[i], row[first]))
            top = fmax(top, row[i]->s_ts.q3);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"bold\">", LEFT, y + HEAD - 12);
    svg_put(out, panel_of(row[first], title, sizeof title));
    fputs("</text>\n", out);
    y += HEAD;
    for (size_t i = first; i < n; i++)
        if (same_panel(row[i], row[first])) {
            draw_bar(out, row[i], color_of(row, i), y, top > 0 ? top : 1);
            y += BAR;
        }
    return y + GAP;
}

void bench_plot_draw(FILE *out, bench_row *const *row, size_t n) {
    double height = TOP + (double)n * BAR;
    for (size_t i = 0; i < n; i++)
        height += is_first(row, i) ? HEAD + GAP : 0;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" width=\"%d\" "
            "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"20\" y=\"28\" font-size=\"16\">Tokens per second, by backend and split",
            WIDTH, height, WIDTH, height);
    if (n > 0) {
        fputs(" (", out);
        svg_put(out, row[0]->cpu);
        fputs(")", out);
    }
    fputs("</text>\n", out);
    double y = TOP;
    for (size_t i = 0; i < n; i++)
        if (is_first(row, i))
            y = draw_panel(out, row, n, i, y);
    fputs("</svg>\n", out);
}
