#include "ppl_plot.h"

#include <math.h>

/* Bars on a logarithmic axis of six powers of ten, because quantiles are that far apart. Numbers below
 * it have no bar. */
static void add_quantiles(drawing *d, const double *kld) {
    static const struct {
        const char *name;
        int k;
    } of[] = {{"median", 6}, {"90 %", 8}, {"99 %", 10}, {"99.9 %", 11}, {"maximum", 12}};
    enum { N = sizeof of / sizeof *of };
    const double most = kld[of[N - 1].k],
                 high = most > 0 && drawing_shows(most) ? pow(10, ceil(log10(most) - 1e-9)) : 1;
    drawing_panel *p = drawing_panel_add(d, 24);
    p->title = "KL divergence of a position: quantiles, on a logarithmic axis";
    p->x = (drawing_axis){.low = high * 1e-6, .high = high, .log = true};
    for (int k = 0; k < N; k++) {
        drawing_row(d, of[k].name, drawing_text(d, "%.3g", kld[of[k].k]));
        if (kld[of[k].k] > p->x.low)
            drawing_span(d, DRAWING_BAR, 2, p->x.low, kld[of[k].k], k + 0.17, k + 0.83);
    }
}

void ppl_plot(drawing *d, const ppl_chunk *chunk, int64_t n_chunk, const double *kld) {
    drawing_legend(d, 0, 1, "of the text so far, and its standard error");
    drawing_legend(d, 1, 1, "of a chunk by itself");
    drawing_panel *p = drawing_panel_add(d, 260);
    p->x =
        (drawing_axis){.title = "chunk", .low = 0.5, .high = (double)n_chunk + 0.5, .whole = true};
    for (drawing_kind kind = DRAWING_BAND; kind >= DRAWING_LINE; kind--)
        /* a line needs two points: that of one chunk is as wide as the plot */
        for (int64_t i = 0; i < n_chunk + (n_chunk == 1); i++) {
            const ppl_chunk *c = &chunk[n_chunk == 1 ? 0 : i];
            const double x = (double)i + (n_chunk == 1 ? 0.5 : 1),
                         error = kind == DRAWING_BAND && isfinite(c->error) ? c->error : 0;
            if (c->running > 0)
                drawing_span(d, kind, 0, x, x, fmax(c->running - error, 0), c->running + error);
        }
    for (int64_t i = 0; i < n_chunk; i++)
        if (chunk[i].own > 0)
            drawing_at(d, DRAWING_POINT, 1, (double)i + 1, chunk[i].own);
    if (kld)
        add_quantiles(d, kld);
}
