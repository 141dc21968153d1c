#include "plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { STEPS = 5 };

/* A layer beyond this is in no model, and is drawn with the tensors outside of layers. */
enum { MOST_LAYERS = 1024 };

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

/* A cell is covered at most so much that numbers in it stay readable. */
static double shade_of(const scale *c, double share) {
    return (c->high - share) / (c->high - c->low) * 0.6 + 0.02;
}

void imatrix_plot(drawing *d, const tensor_stats *s, size_t n) {
    const scale c = scale_of(s, n);
    int n_layers = 0, row = -1;
    bool has_other = false, is_drawn[MOST_LAYERS + 1] = {0};
    for (size_t i = 0; i < n; i++) {
        const bool inside = s[i].layer >= 0 && s[i].layer < MOST_LAYERS;
        n_layers = inside && s[i].layer >= n_layers ? s[i].layer + 1 : n_layers;
        has_other |= !inside;
    }
    for (int i = 0; i <= STEPS; i++) {
        const double share = c.high - (c.high - c.low) * i / STEPS;
        drawing_legend(d, 0, shade_of(&c, share),
                       drawing_text(d, "%.0f%%%s", 100 * share, i ? "" : " of the columns matter"));
    }
    drawing_panel *p = drawing_panel_add(d, 22);
    p->x = (drawing_axis){has_other ? "layer; last: outside of layers" : "layer",
                          -0.5,
                          n_layers + has_other - 0.5,
                          .whole = true,
                          .least = 5,
                          .most = 44};
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(s[i].kind, s[i - 1].kind) != 0) {
            row++;
            memset(is_drawn, 0,
                   sizeof is_drawn); /* two names may be of one cell: "a" and "a.weight" */
            drawing_row(d, s[i].kind, NULL);
        }
        const int column = s[i].layer >= 0 && s[i].layer < n_layers ? s[i].layer : n_layers;
        if (s[i].n > 0 && !is_drawn[column]) {
            const double share = stats_effective(&s[i]);
            drawing_mark *m =
                drawing_span(d, DRAWING_BAR, 0, column - 0.5, column + 0.5, row, row + 0.95);
            m->shade = shade_of(&c, share);
            m->text = drawing_text(d, "%.0f", 100 * share);
            m->tip = drawing_text(d, "%s: %.1f%% of %" PRId64 " columns matter", s[i].e->name,
                                  100 * share, s[i].n);
        }
        is_drawn[column] |= s[i].n > 0;
    }
}
