#include "roofline.h"

#include <math.h>
#include <string.h>

#include "common/svg_text.h"

enum { WIDTH = 960, HEIGHT = 620, LEFT = 80, RIGHT = 200, TOP = 60, BOTTOM = 70 };

typedef struct axes {
    double x0, x1, y0, y1; /* powers of ten */
} axes;

static const char *const colors[] = {"#7a7a7a", "#2a6fbb", "#c0392b", "#1e8449", "#8e44ad"};
enum { N_COLORS = sizeof colors / sizeof *colors };

static double at_x(const axes *a, double x) {
    return LEFT + (log10(x) - a->x0) / (a->x1 - a->x0) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const axes *a, double y) {
    return HEIGHT - BOTTOM - (log10(y) - a->y0) / (a->y1 - a->y0) * (HEIGHT - TOP - BOTTOM);
}

static void include(double *low, double *high, double value) {
    if (value > 0) {
        *low = fmin(*low, floor(log10(value)));
        *high = fmax(*high, ceil(log10(value)));
    }
}

static axes axes_of(const bench_roof *roof, int n_roofs, const bench_point *point, size_t n) {
    axes a = {-1, 3, 0, 1};
    for (size_t i = 0; i < n; i++) {
        include(&a.x0, &a.x1, point[i].intensity);
        include(&a.y0, &a.y1, point[i].gmac);
    }
    for (int i = 0; i < n_roofs; i++)
        include(&a.y0, &a.y1, roof[i].limit.int8_gmac);
    return a;
}

static void draw_grid(FILE *out, const axes *a) {
    for (double e = a->x0; e <= a->x1; e++) {
        double x = at_x(a, pow(10, e));
        fprintf(out, "<path class=\"g\" d=\"M%.1f %d V%d\"/>\n", x, TOP, HEIGHT - BOTTOM);
        fprintf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n", x,
                HEIGHT - BOTTOM + 18, pow(10, e));
    }
    for (double e = a->y0; e <= a->y1; e++) {
        double y = at_y(a, pow(10, e));
        fprintf(out, "<path class=\"g\" d=\"M%d %.1f H%d\"/>\n", LEFT, y, WIDTH - RIGHT);
        fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", LEFT - 8, y + 4,
                pow(10, e));
    }
    fprintf(
        out,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">multiply-adds per byte of weights</text>\n",
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 22);
    fprintf(
        out,
        "<text transform=\"translate(24 %d) rotate(-90)\" text-anchor=\"middle\">GMAC/s</text>\n",
        (TOP + HEIGHT - BOTTOM) / 2);
}

/* The places of names already drawn. */
typedef struct names {
    double y[16];
    int n;
} names;

/* Returns a free place for a name, at y or near it. */
static double place_name(names *taken, double y) {
    for (int i = 0; i < taken->n; i++)
        if (fabs(taken->y[i] - y) < 13) {
            y = taken->y[i] + 13;
            i = -1;
        }
    if (taken->n < 16)
        taken->y[taken->n++] = y;
    return y;
}

/* Draws a roof: the slope of memory, up to the peak. */
static void draw_roof(FILE *out, const axes *a, const bench_roof *r, double peak, const char *what,
                      const char *color, names *taken) {
    if (peak <= 0 || r->limit.read_gb <= 0)
        return;
    double first = pow(10, a->x0), floor_y = pow(10, a->y0), knee = peak / r->limit.read_gb;
    if (first * r->limit.read_gb < floor_y)
        first = floor_y / r->limit.read_gb;
    fprintf(out, "<path class=\"r\" stroke=\"%s\" d=\"M%.1f %.1f L%.1f %.1f H%d\"/>\n", color,
            at_x(a, first), at_y(a, first * r->limit.read_gb), at_x(a, knee), at_y(a, peak),
            WIDTH - RIGHT);
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" fill=\"%s\">", WIDTH - RIGHT + 6,
            place_name(taken, at_y(a, peak) + 4), color);
    svg_put(out, r->name);
    fprintf(out, " %s %.0f</text>\n", what, peak);
}

/* Draws a point; the name goes to the side with room. */
static void draw_point(FILE *out, const axes *a, const bench_point *p, const char *color,
                       bool named) {
    double x = at_x(a, p->intensity), y = at_y(a, p->gmac);
    bool left = x > (LEFT + WIDTH - RIGHT) / 2.0;
    fprintf(out,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" stroke=\"%s\" "
            "stroke-width=\"1.5\"><title>",
            x, y, p->cached ? "#fff" : color, color);
    svg_put(out, p->label);
    fprintf(out, ": %.3g GMAC/s at %.3g per byte</title></circle>\n", p->gmac, p->intensity);
    if (named) {
        fprintf(out, "<text class=\"s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                left ? x - 8 : x + 8, y + 3, left ? "end" : "start");
        svg_put(out, p->label);
        fputs("</text>\n", out);
    }
}

/* Returns whether point i's name has room: no named point before it is near. */
static bool has_room(const axes *a, const bench_point *point, const bool *named, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (named[k] && fabs(at_y(a, point[k].gmac) - at_y(a, point[i].gmac)) < 11 &&
            fabs(at_x(a, point[k].intensity) - at_x(a, point[i].intensity)) < 80)
            return false;
    return true;
}

void bench_roofline_draw(FILE *out, const char *title, const bench_roof *roof, int n_roofs,
                         const bench_point *point, size_t n) {
    enum { MOST = 4096 };
    static bool named[MOST];
    names taken = {.n = 0};
    axes a = axes_of(roof, n_roofs, point, n);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n<style>.g{stroke:#ddd;fill:none}"
            ".r{fill:none;stroke-width:1.5}.s{font-size:10px;fill:#444}</style>\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"30\" "
            "font-size=\"16\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    svg_put(out, title);
    fputs("</text>\n", out);
    draw_grid(out, &a);
    for (int i = 0; i < n_roofs; i++) {
        draw_roof(out, &a, &roof[i], roof[i].limit.int8_gmac, "int8", colors[i % N_COLORS], &taken);
        if (roof[i].limit.bf16_gmac > roof[i].limit.f32_gmac)
            draw_roof(out, &a, &roof[i], roof[i].limit.bf16_gmac, "bf16", colors[i % N_COLORS],
                      &taken);
        draw_roof(out, &a, &roof[i], roof[i].limit.f32_gmac, "f32", colors[i % N_COLORS], &taken);
        fprintf(out, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">",
                WIDTH - RIGHT + 12, HEIGHT - BOTTOM - 18 * (n_roofs - i), colors[i % N_COLORS],
                WIDTH - RIGHT + 22, HEIGHT - BOTTOM - 18 * (n_roofs - i) + 4);
        svg_put(out, roof[i].name);
        fputs("</text>\n", out);
    }
    fprintf(out, "<text class=\"s\" x=\"%d\" y=\"%d\">hollow: data in the caches</text>\n",
            WIDTH - RIGHT + 8, HEIGHT - BOTTOM - 18 * (n_roofs + 1) + 4);
    for (size_t i = 0; i < n && i < MOST; i++) {
        named[i] = point[i].roof == n_roofs - 1 && has_room(&a, point, named, i);
        if (point[i].gmac > 0)
            draw_point(out, &a, &point[i], colors[point[i].roof % N_COLORS], named[i]);
    }
    fputs("</svg>\n", out);
}
