/* Draws the losses of a training: those of the steps, their mean, and those that were measured. */
#include <math.h>

#include "common/chart.h"
#include "common/svg_text.h"
#include "show.h"

enum { WIDTH = 760, LEFT = 80, RIGHT = 24, PLOT = 280, FOOT = 50, COLUMNS = 320 };

typedef struct plot {
    const llm_training *t;
    int64_t n; /* steps */
    double low, high, step;
    double top; /* of the frame */
} plot;

static llm_training_report at(const plot *p, int64_t k) {
    llm_training_report r = {.size = sizeof r};
    (void)llm_training_past(p->t, k, &r);
    return r;
}

static void widen(plot *p, double x) {
    if (!isfinite(x) || !chart_shows(x))
        return;
    p->low = fmin(p->low, x);
    p->high = fmax(p->high, x);
}

static plot plot_of(const llm_training *t) {
    plot p = {.t = t, .low = INFINITY, .high = -INFINITY, .top = CHART_TOP + 20};
    llm_training_report r = {.size = sizeof r};
    for (; llm_training_past(t, p.n, &r); p.n++) {
        widen(&p, r.loss);
        widen(&p, r.valid_loss);
    }
    if (!(p.low <= p.high))
        p.low = 0, p.high = 1;
    p.step = chart_step(fmax(p.high - p.low, p.high / 10), 5);
    p.low = floor(p.low / p.step) * p.step;
    p.high = fmax(ceil(p.high / p.step) * p.step, p.low + p.step);
    return p;
}

static double x_of(const plot *p, double step) {
    return LEFT + (WIDTH - LEFT - RIGHT) * step / (double)(p->n > 1 ? p->n : 1);
}

static double y_of(const plot *p, double loss) {
    const double share = (loss - p->low) / (p->high - p->low);
    return p->top + PLOT * (1 - fmax(0, fmin(1, share)));
}

static void draw_axes(FILE *out, const plot *p) {
    const int n = (int)lround((p->high - p->low) / p->step);
    for (int i = 0; i <= n; i++) {
        const double y = y_of(p, p->low + i * p->step);
        fprintf(out, "<path class=\"g\" d=\"M%d %.1f H%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        chart_text(out, LEFT - 6, y + 4, CHART_END, "n", "%.4g", p->low + i * p->step);
    }
    const int64_t step = (int64_t)fmax(1, chart_step((double)p->n, 8));
    for (int64_t i = step; i <= p->n; i += step)
        chart_text(out, x_of(p, (double)i), p->top + PLOT + 16, CHART_MIDDLE, "n", "%lld",
                   (long long)i);
    chart_text(out, LEFT, p->top + PLOT + 34, CHART_START, "n", "step");
}

/* Of many steps, neighbors are drawn as their mean: as many points as there is room for. */
static void draw_line(FILE *out, const plot *p) {
    const int64_t each = (p->n + COLUMNS - 1) / COLUMNS;
    fputs("<path class=\"line s0\" data-series=\"0\" fill=\"none\" stroke-width=\"1.4\" d=\"", out);
    bool begun = false;
    for (int64_t i = 0; i < p->n; i += each) {
        double sum = 0, n = 0;
        for (int64_t k = i; k < i + each && k < p->n; k++) {
            const double loss = at(p, k).loss;
            if (isfinite(loss))
                sum += loss, n++;
        }
        if (n > 0)
            fprintf(out, "%s%.1f %.1f ", begun ? "L" : "M", x_of(p, (double)i + (n + 1) / 2),
                    y_of(p, sum / n));
        begun |= n > 0;
    }
    if (!begun)
        fprintf(out, "M%d %.1f", LEFT, p->top + PLOT);
    fputs("\"/>\n", out);
}

static void draw_measured(FILE *out, const plot *p) {
    for (int64_t i = 0; i < p->n; i++) {
        const llm_training_report r = at(p, i);
        if (isfinite(r.valid_loss))
            fprintf(out,
                    "<circle class=\"point c1\" data-series=\"1\" cx=\"%.1f\" cy=\"%.1f\" "
                    "r=\"3.5\"/>\n",
                    x_of(p, (double)r.step), y_of(p, r.valid_loss));
    }
}

static bool any_measured(const plot *p) {
    bool any = false;
    for (int64_t i = 0; i < p->n && !any; i++)
        any = isfinite(at(p, i).valid_loss);
    return any;
}

void train_draw(FILE *out, const llm_training *t, const char *title) {
    const plot p = plot_of(t);
    chart_legend l = {LEFT, CHART_TOP, LEFT, WIDTH - RIGHT};
    chart_open(out, WIDTH, p.top + PLOT + FOOT, title);
    chart_legend_add(out, &l, 0, "loss of the steps");
    if (any_measured(&p))
        chart_legend_add(out, &l, 1, "loss of what it does not learn from");
    fprintf(out,
            "<g class=\"panel\"><rect class=\"axes\" x=\"%d\" y=\"%.1f\" width=\"%d\" "
            "height=\"%d\"/>\n",
            LEFT, p.top, WIDTH - LEFT - RIGHT, PLOT);
    draw_axes(out, &p);
    draw_line(out, &p);
    draw_measured(out, &p);
    fputs("</g>\n", out);
    chart_close(out);
}
