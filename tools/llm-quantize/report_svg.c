#include "report_svg.h"

#include <math.h>
#include <string.h>

#include "common/amounts.h"
#include "common/chart.h"
#include "common/svg_text.h"
#include "ggl/alloc.h"
#include "ggl/internal/types.h"
#include "tensor_groups.h"

enum {
    WIDTH = 900,
    LEFT = 190,  /* room for the names of rows */
    RIGHT = 170, /* room for sizes */
    ROW = 26,
    BAR = 20, /* height of the largest error */
    CELL = 4, /* the least width of a layer */
    FOOT = 34
};

typedef struct report {
    FILE *out;
    const report_tensor *t;
    size_t n;
    size_t *first; /* [n]: of the row of each tensor */
    int64_t n_layer;
    double width, cell, worst; /* of the picture; of a layer; the largest error */
    int series[GGL_TYPE_LIMIT];
    double bytes[GGL_TYPE_LIMIT], all;
    size_t count[GGL_TYPE_LIMIT];
} report;

static bool has_error(const report_tensor *t) {
    return t->error >= 0 && chart_shows(t->error);
}

/* Gives each type that occurs a color by its bits, so that a type has mostly the same color in all
 * pictures; the next free one if another type of that size has it. */
static void choose_colors(report *r) {
    static const int of_bits[] = {6, 6, 3, 1, 4, 2, 5, 5, 0}; /* whole bits of a weight; more: 7 */
    bool taken[CHART_SERIES] = {0};
    int n = 0;
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        const size_t bits = 8 * t->size / (size_t)t->block;
        int color = bits < sizeof of_bits / sizeof *of_bits ? of_bits[bits] : 7;
        if (r->count[t->type] == 0)
            continue;
        for (int i = 0; i < CHART_SERIES && n % CHART_SERIES && taken[color]; i++)
            color = (color + 1) % CHART_SERIES;
        taken[color] = true;
        r->series[t->type] = color + n / CHART_SERIES * CHART_SERIES;
        if (++n % CHART_SERIES == 0)
            memset(taken, 0, sizeof taken);
    }
}

/* Counts types, layers and errors, and finds the rows. */
static bool measure(report *r, size_t *n_row) {
    char stem[128];
    tensor_name *name = ggl_calloc(r->n + 1, sizeof *name);
    r->first = ggl_calloc(r->n + 1, sizeof *r->first);
    for (size_t i = 0; name && i < r->n; i++) {
        const report_tensor *t = &r->t[i];
        int64_t layer;
        name[i].name = t->name;
        tensor_stem(t->name, stem, &layer);
        r->n_layer = layer >= r->n_layer ? layer + 1 : r->n_layer;
        r->worst = has_error(t) && t->error > r->worst ? t->error : r->worst;
        r->count[t->type->type]++;
        r->bytes[t->type->type] += t->bytes;
        r->all += t->bytes;
    }
    choose_colors(r);
    const bool made = name && r->first && tensor_groups(name, r->n, 0, r->first, n_row);
    ggl_free(name);
    r->cell = (double)(WIDTH - LEFT - RIGHT) / (double)(r->n_layer > 0 ? r->n_layer : 1);
    r->cell = r->cell < CELL ? CELL : r->cell;
    r->width = LEFT + RIGHT + r->cell * (double)(r->n_layer > 0 ? r->n_layer : 1);
    return made;
}

/* A bar that stands on y; a tensor in no layer has one as wide as all of them. */
static void draw_bar(const report *r, const report_tensor *t, double y) {
    char stem[128], error[64] = "";
    int64_t layer;
    tensor_stem(t->name, stem, &layer);
    const double share = r->worst > 0 && has_error(t) ? t->error / r->worst : 1;
    const double h = fmax(2, BAR * share), gap = r->cell > 8 ? 2 : 1;
    const double w = layer < 0 ? r->width - LEFT - RIGHT : r->cell;
    fprintf(r->out,
            "<rect class=\"bar c%d\" data-series=\"%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"><title>",
            r->series[t->type->type] % CHART_SERIES, r->series[t->type->type],
            LEFT + (layer < 0 ? 0 : (double)layer * r->cell), y - h, w - gap, h);
    svg_put(r->out, t->name);
    if (has_error(t))
        snprintf(error, sizeof error, ", error %.3f %%", 100 * t->error);
    fprintf(r->out, ": %s%s</title></rect>\n", t->type->name, error);
}

static void draw_row(const report *r, size_t row, double y) {
    char stem[128], fit[160], size[96], amount[AMOUNT_TEXT];
    int64_t layer;
    double bytes = 0, elements = 0;
    chart_text(r->out, LEFT - 10, y - 5, CHART_END, "t", "%s",
               svg_fit(tensor_stem(r->t[row].name, stem, &layer), CHART_SIZE, SVG_PLAIN,
                       LEFT - 10 - CHART_MARGIN, fit, sizeof fit));
    fprintf(r->out, "<path class=\"g\" d=\"M%d %.1f H%.1f\"/>\n", LEFT, y, r->width - RIGHT);
    for (size_t i = row; i < r->n; i++)
        if (r->first[i] == row) {
            draw_bar(r, &r->t[i], y);
            bytes += r->t[i].bytes;
            elements += r->t[i].elements;
        }
    snprintf(size, sizeof size, "%s, %.2f bits",
             llm_amount_bytes(amount, bytes < 1e18 ? (uint64_t)bytes : 0),
             elements > 0 ? 8 * bytes / elements : 0);
    chart_text(r->out, r->width - RIGHT + 10, y - 5, CHART_START, "n", "%s",
               svg_fit(size, CHART_NOTE, SVG_PLAIN, RIGHT - 10 - CHART_MARGIN, fit, sizeof fit));
}

static void draw_layers(const report *r, double y) {
    const double room = r->cell * (double)r->n_layer;
    const int64_t step = (int64_t)fmax(1, chart_step((double)r->n_layer, (int)fmax(1, room / 60)));
    for (int64_t l = 0; l < r->n_layer; l += step)
        chart_text(r->out, LEFT + ((double)l + 0.5) * r->cell, y + 16, CHART_MIDDLE, "n", "%lld",
                   (long long)l);
    if (r->n_layer > 0)
        chart_text(r->out, LEFT - 10, y + 16, CHART_END, "n", "layer");
}

/* The bytes of each type, side by side; the legend has their numbers. */
static void draw_bytes(const report *r, double y) {
    double x = LEFT;
    chart_text(r->out, LEFT - 10, y + 15, CHART_END, "t", "bytes");
    for (int k = 0; ggl_type_at(k) && r->all > 0; k++) {
        const ggl_type type = ggl_type_at(k)->type;
        const double w = r->bytes[type] / r->all * (r->width - LEFT - RIGHT);
        if (r->count[type] && w > 0) {
            fprintf(r->out,
                    "<rect class=\"c%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"20\"/>\n",
                    r->series[type] % CHART_SERIES, x, y, w);
            x += w;
        }
    }
}

/* Writes the legend; out NULL: only measures it. Returns its last line. */
static double draw_legend(const report *r, FILE *out, double y) {
    chart_legend l = {CHART_MARGIN, y, CHART_MARGIN, r->width - CHART_MARGIN};
    for (int k = 0; ggl_type_at(k); k++) {
        char text[160], amount[AMOUNT_TEXT];
        const ggl_type type = ggl_type_at(k)->type;
        if (r->count[type] == 0)
            continue;
        snprintf(text, sizeof text, "%s: %zu, %s", ggl_type_at(k)->name, r->count[type],
                 llm_amount_bytes(amount, r->bytes[type] < 1e18 ? (uint64_t)r->bytes[type] : 0));
        chart_legend_add(out, &l, r->series[type], text);
    }
    return l.y;
}

ggl_status report_draw(FILE *out, const char *title, const report_tensor *t, size_t n,
                       ggl_error *err) {
    report r = {.out = out, .t = t, .n = n};
    char note[200];
    size_t n_row;
    if (!measure(&r, &n_row)) {
        ggl_free(r.first);
        return ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
    }
    double y = draw_legend(&r, NULL, CHART_TOP) + CHART_LINE;
    chart_open(out, r.width, y + 20 + (double)n_row * ROW + 2 * FOOT + 20, title);
    draw_legend(&r, out, CHART_TOP);
    if (r.worst > 0)
        snprintf(note, sizeof note,
                 "Height: the error relative to the weights, up to %.3g %%. Color: the type.",
                 100 * r.worst);
    else
        snprintf(note, sizeof note, "Color: the type.");
    chart_note(out, CHART_MARGIN, y, r.width - 2 * CHART_MARGIN, note);
    y += 14;
    fprintf(out,
            "<g class=\"panel\"><rect class=\"axes\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" "
            "height=\"%.1f\"/>\n",
            LEFT, y, r.width - LEFT - RIGHT, (double)n_row * ROW);
    for (size_t i = 0; i < n; i++)
        if (r.first[i] == i)
            draw_row(&r, i, y += ROW);
    fputs("</g>\n", out);
    draw_layers(&r, y);
    draw_bytes(&r, y + FOOT);
    chart_close(out);
    ggl_free(r.first);
    return GGL_OK;
}
