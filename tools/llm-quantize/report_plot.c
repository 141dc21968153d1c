#include "report_plot.h"

#include <math.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/types.h"
#include "tensor_groups.h"

typedef struct report_row { /* tensors of one kind */
    double bytes, elements;
    size_t at; /* from the top */
} report_row;

typedef struct report {
    const report_tensor *t;
    size_t n;
    tensor_name *name;
    size_t *first;   /* [n]: the first tensor of its row */
    report_row *row; /* [n]: by that */
    int64_t n_layer;
    double worst; /* the largest error */
    int series[GGL_TYPE_LIMIT];
    double bytes[GGL_TYPE_LIMIT], all;
    size_t count[GGL_TYPE_LIMIT];
} report;

static bool has_error(const report_tensor *t) {
    return t->error >= 0 && drawing_shows(t->error);
}

static const char *bytes_text(double bytes, char buf[AMOUNT_TEXT]) {
    return llm_amount_bytes(buf, bytes < 1e18 ? (uint64_t)bytes : 0);
}

/* Gives each type that occurs a color by its bits, so that a type has mostly the same color in all
 * pictures; the next free one if another type of that size has it. */
static void choose_colors(report *r) {
    static const int of_bits[] = {6, 6, 3, 1, 4, 2, 5, 5, 0}; /* whole bits of a weight; more: 7 */
    bool taken[DRAWING_COLORS] = {0};
    int n = 0;
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type_info *t = ggl_type_at(k);
        const size_t bits = 8 * t->size / (size_t)t->block;
        int color = bits < sizeof of_bits / sizeof *of_bits ? of_bits[bits] : 7;
        if (r->count[t->type] == 0)
            continue;
        for (int i = 0; i < DRAWING_COLORS && n % DRAWING_COLORS && taken[color]; i++)
            color = (color + 1) % DRAWING_COLORS;
        taken[color] = true;
        r->series[t->type] = color + n / DRAWING_COLORS * DRAWING_COLORS;
        if (++n % DRAWING_COLORS == 0)
            memset(taken, 0, sizeof taken);
    }
}

/* Counts types, layers, rows and errors. False: out of memory. */
static bool measure(report *r) {
    char stem[128];
    size_t n_row;
    r->name = ggl_calloc(r->n + 1, sizeof *r->name);
    r->first = ggl_calloc(r->n + 1, sizeof *r->first);
    r->row = ggl_calloc(r->n + 1, sizeof *r->row);
    for (size_t i = 0; r->name && i < r->n; i++) {
        const report_tensor *t = &r->t[i];
        int64_t layer;
        r->name[i].name = t->name;
        tensor_stem(t->name, stem, &layer);
        r->n_layer = layer >= r->n_layer ? layer + 1 : r->n_layer;
        r->worst = has_error(t) && t->error > r->worst ? t->error : r->worst;
        r->count[t->type->type]++;
        r->bytes[t->type->type] += t->bytes;
        r->all += t->bytes;
    }
    choose_colors(r);
    if (!r->name || !r->row || !r->first || !tensor_groups(r->name, r->n, 0, r->first, &n_row))
        return false;
    for (size_t i = 0; i < r->n; i++) {
        r->row[r->first[i]].bytes += r->t[i].bytes;
        r->row[r->first[i]].elements += r->t[i].elements;
    }
    return true;
}

static double layers_of(const report *r) {
    return r->n_layer > 0 ? (double)r->n_layer : 1;
}

/* Adds a bar that stands on its row's lower edge; a tensor in no layer has one as wide as all of them. */
static void add_bar(drawing *d, const report *r, size_t i) {
    const report_tensor *t = &r->t[i];
    const double foot = (double)r->row[r->first[i]].at + 1;
    char stem[128];
    int64_t layer;
    tensor_stem(t->name, stem, &layer);
    const double share = r->worst > 0 && has_error(t) ? t->error / r->worst : 1;
    drawing_mark *m = drawing_span(
        d, DRAWING_BAR, r->series[t->type->type], layer < 0 ? -0.5 : (double)layer - 0.5,
        (layer < 0 ? layers_of(r) : (double)layer + 1) - 0.5, foot - 0.8 * share, foot);
    m->tip = has_error(t)
                 ? drawing_text(d, "%s: %s, error %.3f %%", t->name, t->type->name, 100 * t->error)
                 : drawing_text(d, "%s: %s", t->name, t->type->name);
}

static void add_rows(drawing *d, const report *r) {
    char stem[128], amount[AMOUNT_TEXT];
    size_t n_rows = 0;
    int64_t layer;
    for (size_t i = 0; i < r->n; i++) {
        report_row *row = &r->row[i];
        if (r->first[i] != i)
            continue;
        row->at = n_rows++;
        drawing_row(d, drawing_text(d, "%s", tensor_stem(r->t[i].name, stem, &layer)),
                    drawing_text(d, "%s, %.2f bits", bytes_text(row->bytes, amount),
                                 row->elements > 0 ? 8 * row->bytes / row->elements : 0));
    }
    for (size_t i = 0; i < r->n; i++)
        add_bar(d, r, i);
}

/* The bytes of each type, side by side; the legend has their numbers. */
static void add_bytes(drawing *d, const report *r) {
    double x = 0;
    char all[AMOUNT_TEXT];
    drawing_panel_add(d, 20)->x = (drawing_axis){"% of the bytes", .high = 100};
    drawing_row(d, "bytes", drawing_text(d, "%s", bytes_text(r->all, all)));
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type type = ggl_type_at(k)->type;
        const double share = 100 * r->bytes[type] / r->all;
        if (r->count[type] > 0)
            drawing_span(d, DRAWING_BAR, r->series[type], x, x + share, 0, 1);
        x += share;
    }
}

static void describe(drawing *d, const report *r) {
    char amount[AMOUNT_TEXT];
    for (int k = 0; ggl_type_at(k); k++) {
        const ggl_type type = ggl_type_at(k)->type;
        if (r->count[type] > 0)
            drawing_legend(d, r->series[type], 1,
                           drawing_text(d, "%s: %zu, %s", ggl_type_at(k)->name, r->count[type],
                                        bytes_text(r->bytes[type], amount)));
    }
    if (r->worst > 0)
        drawing_note(
            d, drawing_text(
                   d, "Height: the error relative to the weights, up to %.3g %%. Color: the type.",
                   100 * r->worst));
    else
        drawing_note(d, "Color: the type.");
    drawing_panel *p = drawing_panel_add(d, 26);
    p->x = (drawing_axis){r->n_layer > 0 ? "layer" : NULL, -0.5, layers_of(r) - 0.5, .whole = true,
                          .least = 4};
    add_rows(d, r);
    if (r->all > 0)
        add_bytes(d, r);
}

ggl_status report_plot(drawing *d, const report_tensor *t, size_t n, ggl_error *err) {
    report r = {.t = t, .n = n};
    const bool made = measure(&r);
    if (made)
        describe(d, &r);
    ggl_free(r.name);
    ggl_free(r.first);
    ggl_free(r.row);
    return made ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
}
