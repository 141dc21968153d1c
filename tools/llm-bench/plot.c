#include "plot.h"

#include <string.h>

static const char *panel_of(const bench_row *r, char *buf, size_t size) {
    char test[96];
    snprintf(buf, size, "%s: %s", r->model_type, bench_test_text(&r->test, test, sizeof test));
    return buf;
}

static bool same_panel(const bench_row *a, const bench_row *b) {
    char x[256], y[256];
    return strcmp(panel_of(a, x, sizeof x), panel_of(b, y, sizeof y)) == 0;
}

static bool same_backend(const bench_row *a, const bench_row *b) {
    return strcmp(a->backend, b->backend) == 0;
}

/* True if no row before row i is like it. */
static bool is_first(bench_row *const *row, size_t i,
                     bool (*same)(const bench_row *a, const bench_row *b)) {
    for (size_t k = 0; k < i; k++)
        if (same(row[k], row[i]))
            return false;
    return true;
}

/* Returns the series of a row: its backend, with the same color in all panels. */
static int series_of(bench_row *const *row, size_t i) {
    int n = 0;
    for (size_t k = 0; k < i && !same_backend(row[k], row[i]); k++)
        n += is_first(row, k, same_backend);
    return n;
}

static void add_bar(drawing *d, const bench_row *r, int series, double at) {
    const double ts = r->s_ts.median;
    const char *value = drawing_text(d, "%.*f t/s", ts < 1000 ? 1 : 0, ts);
    if (r->percent > 0)
        value = drawing_text(d, "%s, %.0f %% of limit", value, r->percent);
    drawing_row(d,
                drawing_text(d, "%s, %d thread%s", r->backend, (int)r->test.n_threads,
                             r->test.n_threads == 1 ? "" : "s"),
                value);
    drawing_span(d, DRAWING_BAR, series, 0, ts, at + 0.17, at + 0.83);
    drawing_span(d, DRAWING_WHISKER, DRAWING_INK, r->s_ts.q1, r->s_ts.q3, at + 0.5, at + 0.5);
}

void bench_plot(drawing *d, bench_row *const *row, size_t n) {
    int least = n > 0 ? row[0]->n : 0, most = least;
    char title[256];
    for (size_t i = 1; i < n; i++) {
        least = row[i]->n < least ? row[i]->n : least;
        most = row[i]->n > most ? row[i]->n : most;
    }
    const char *runs =
        least < most ? drawing_text(d, "%d to %d", least, most) : drawing_text(d, "%d", most);
    d->title =
        n > 0 ? drawing_text(d, "Tokens per second on %s", row[0]->cpu) : "Tokens per second";
    drawing_note(d, drawing_text(d, "bar: median of %s run%s; whisker: first to third quartile",
                                 runs, most == 1 ? "" : "s"));
    for (size_t i = 0; i < n; i++) {
        double at = 0;
        if (!is_first(row, i, same_panel))
            continue;
        drawing_panel *p = drawing_panel_add(d, 24);
        p->title = drawing_text(d, "%s", panel_of(row[i], title, sizeof title));
        p->x = (drawing_axis){.title = "tokens per second", .from_zero = true};
        for (size_t k = i; k < n; k++)
            if (same_panel(row[k], row[i]))
                add_bar(d, row[k], series_of(row, k), at++);
    }
}
