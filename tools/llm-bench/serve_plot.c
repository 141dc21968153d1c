#include "serve_plot.h"

#include <inttypes.h>
#include <string.h>

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

static const struct {
    const char *title, *unit;
    double (*of)(const serve_row *r);
    double (*upper)(const serve_row *r); /* drawn dashed; NULL: none */
} panels[] = {
    {"Tokens of answers per second", "tokens per second", rate_of, NULL},
    {"Time to the first token (line: median; dashed: 99th percentile)", "milliseconds", first_of,
     first_99},
    {"Time between tokens (line: median; dashed: 99th percentile)", "milliseconds", between_of,
     between_99},
};
enum { N_PANELS = sizeof panels / sizeof *panels };

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

static double load_of(const serve_row *r) {
    const double load = serve_load_size(&r->load);
    return load > 0 && drawing_shows(load) ? load : 1;
}

static void add_line(drawing *d, drawing_kind kind, double (*of)(const serve_row *r), bool upper,
                     const serve_row *row, size_t n, size_t first, int series) {
    for (size_t i = first; i < n; i++)
        if (same_line(&row[i], &row[first])) {
            drawing_mark *m = drawing_at(d, kind, series, load_of(&row[i]), of(&row[i]));
            m->begins |= i == first;
            m->dashed = upper;
        }
}

static void add_panel(drawing *d, int k, const serve_row *row, size_t n) {
    char load[32];
    int series = 0;
    drawing_panel *p = drawing_panel_add(d, 220);
    p->title = panels[k].title;
    p->x.title = row->load.n_clients > 0 ? "clients at the same time" : "requests per second";
    p->x.log = true;
    p->y.title = panels[k].unit;
    p->y.from_zero = true;
    for (size_t i = 0; i < n; i++)
        drawing_name(d, DRAWING_BELOW, load_of(&row[i]),
                     drawing_text(d, "%s", serve_load_text(&row[i].load, load, sizeof load)));
    for (size_t i = 0; i < n; i++) {
        if (!is_first(row, i))
            continue;
        add_line(d, DRAWING_LINE, panels[k].of, false, row, n, i, series);
        if (panels[k].upper)
            add_line(d, DRAWING_LINE, panels[k].upper, true, row, n, i, series);
        add_line(d, DRAWING_POINT, panels[k].of, false, row, n, i, series++);
    }
}

/* Names the line of row i: as the user does, or by its model, with the URL if another server has the same model. */
static void add_legend(drawing *d, const serve_row *row, size_t n, size_t i, int series) {
    const serve_server *s = row[i].server;
    bool other = false;
    for (size_t k = 0; k < n; k++)
        other = other || (row[k].server != s && strcmp(row[k].server->model, s->model) == 0);
    other = other && !s->name;
    drawing_legend(d, series, 1,
                   drawing_text(d, "%s%s%s: prompts of %" PRId64 ", answers of %" PRId64,
                                s->name ? s->name : s->model, other ? " at " : "",
                                other ? s->url : "", row[i].n_prompt, row[i].load.n_answer));
}

void serve_plot(drawing *d, const serve_row *row, size_t n) {
    int series = 0;
    d->title = "Servers under load";
    for (size_t i = 0; i < n; i++)
        if (is_first(row, i))
            add_legend(d, row, n, i, series++);
    for (int k = 0; k < N_PANELS && n > 0; k++)
        add_panel(d, k, row, n);
}
