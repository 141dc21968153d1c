#include <math.h>
#include <string.h>

#include "drawing_page.h"

enum {
    HEAD = 34, /* above a plot that has a title; without one, */
    BARE_HEAD = 10,
    FOOT = 28,   /* below a plot: its ticks, and a gap */
    TITLE = 18,  /* of the title of the x axis */
    NAMES = 260, /* the most room beside a plot */
    LEAST_NAMES = 24,
    AWAY = 8,  /* from a plot to a name beside it */
    LINE = 14, /* between names on the right */
    RADIUS = 3,
    MAX_TICKS = 256
};

/* What an axis shows; of a logarithmic one, the logarithms. */
typedef struct scale {
    double low, high, step;
    bool log;
} scale;

typedef struct view { /* a panel and where it is drawn */
    const drawing *d;
    const drawing_panel *p;
    scale x, y;
    double left, top, w, h; /* of the plot */
} view;

/* --- axes ------------------------------------------------------------------------------------- */

/* Returns 1, 2 or 5 times a power of ten, so that about n steps reach top. 1 if top is not positive. */
static double step_of(double top, double n) {
    if (!(top > 0) || !drawing_shows(top))
        return 1;
    const double power = pow(10, floor(log10(top / n))), rest = top / n / power;
    return power * (rest <= 1 ? 1 : rest <= 2 ? 2 : rest <= 5 ? 5 : 10);
}

static void widen(scale *s, double x) {
    s->low = fmin(s->low, x);
    s->high = fmax(s->high, x);
}

/* Widens a scale by what a panel has; returns whether these are named places. */
static bool widen_all(scale *s, const drawing *d, const drawing_panel *p, bool of_x) {
    bool named = false;
    for (size_t i = p->tick; i < p->tick + p->n_ticks; i++)
        if (d->tick[i].side == (of_x ? DRAWING_BELOW : DRAWING_LEFT)) {
            widen(s, d->tick[i].at);
            named = true;
        }
    for (size_t i = p->mark; i < p->mark + p->n_marks && !named; i++) {
        widen(s, of_x ? d->mark[i].x : d->mark[i].y);
        widen(s, of_x ? d->mark[i].x1 : d->mark[i].y1);
    }
    return named;
}

/* room: the pixels of the axis */
static scale scale_of(const drawing *d, const drawing_panel *p, bool of_x, double room) {
    const drawing_axis *a = of_x ? &p->x : &p->y;
    scale s = {INFINITY, -INFINITY, 1, a->log};
    bool exact = a->low < a->high;
    if (exact)
        s.low = a->low, s.high = a->high;
    else
        exact = widen_all(&s, d, p, of_x);
    if (!(s.low <= s.high))
        s.low = a->log ? 1 : 0, s.high = a->log ? 10 : 1;
    if (a->log) {
        s.low = exact ? log10(s.low) : floor(log10(s.low));
        s.high = exact ? log10(s.high) : ceil(log10(s.high));
        s.step = fmax(1, ceil((s.high - s.low) / 8));
    } else {
        s.low = a->from_zero && !exact ? 0 : s.low;
        /* of numbers that are all alike, a tenth above and below is shown */
        s.step = step_of(exact ? s.high - s.low : fmax(s.high - s.low, s.high / 10),
                         fmax(2, room / (a->whole ? 32 : 56)));
        s.step = a->whole ? fmax(1, s.step) : s.step;
        s.low = exact ? s.low : floor(s.low / s.step) * s.step;
        s.high = exact ? s.high : ceil(s.high / s.step) * s.step;
    }
    if (!(s.high > s.low)) { /* a single place stands in the middle, or at the lower end */
        s.low -= exact ? s.step / 2 : 0;
        s.high += exact ? s.step / 2 : s.step;
    }
    return s;
}

static double share(const scale *s, double value) {
    const double at = s->log ? value > 0 ? log10(value) : s->low : value;
    return fmax(0, fmin(1, (at - s->low) / (s->high - s->low)));
}

static double at_x(const view *v, double x) {
    return v->left + share(&v->x, x) * v->w;
}

static double at_y(const view *v, double y) {
    const double part = share(&v->y, y);
    return v->top + (v->p->n_rows > 0 ? part : 1 - part) * v->h;
}

/* Sets the ticks of an axis; returns how many. */
static int ticks_of(const scale *s, double at[MAX_TICKS]) {
    int n = 0;
    const double first = ceil(s->low / s->step - 1e-6) + 0.0; /* no -0 */
    for (double k = first; k * s->step <= s->high + 1e-6 * s->step && n < MAX_TICKS; k++)
        at[n++] = s->log ? pow(10, s->low + (k - first) * s->step) : k * s->step;
    return n;
}

/* Writes "0.01", "1e5"; returns buf. */
static const char *tick_text(const scale *s, double value, char buf[32]) {
    const double e = s->log ? round(log10(value)) : 0;
    snprintf(buf, 32, e < -3 || e > 4 ? "1e%.0f" : "%.7g", e < -3 || e > 4 ? e : value);
    return buf;
}

/* --- the frame -------------------------------------------------------------------------------- */

static bool is_named(const view *v, drawing_side side) {
    for (size_t i = v->p->tick; i < v->p->tick + v->p->n_ticks; i++)
        if (v->d->tick[i].side == side)
            return true;
    return false;
}

/* Writes the name of a place below, if there is room on the right of *end, where the last one ended. */
static void put_below(FILE *out, const view *v, double at, const char *name, double right,
                      double *end) {
    const double w = page_text_width(PAGE_NOTE, name),
                 left = fmin(at_x(v, at), v->left + v->w + right - 4 - w / 2) - w / 2;
    if (left <= *end)
        return;
    page_text(out, PAGE_NOTE, PAGE_START, left, v->top + v->h + 16, w, name);
    *end = left + w + 4;
}

/* Writes the names beside the plot, each near its place, and those on the right with room for each other. */
static void put_beside(FILE *out, const view *v, double right) {
    const double line = v->p->n_rows > 0 ? 0 : LINE;
    double below = v->top;
    size_t left = 0;
    for (size_t i = v->p->tick; i < v->p->tick + v->p->n_ticks; i++)
        left += v->d->tick[i].side == DRAWING_RIGHT;
    for (size_t i = v->p->tick; i < v->p->tick + v->p->n_ticks; i++) {
        const drawing_tick *t = &v->d->tick[i];
        double y = at_y(v, t->at) + 4;
        if (t->side == DRAWING_LEFT)
            page_text(out, PAGE_TEXT, PAGE_END, v->left - AWAY, y, v->left - AWAY - PAGE_MARGIN,
                      t->name);
        if (t->side != DRAWING_RIGHT)
            continue;
        y = fmin(fmax(y, below), v->top + v->h - (double)--left * line);
        page_text(out, PAGE_NOTE, PAGE_START, v->left + v->w + AWAY, y, right - AWAY - 4, t->name);
        below = y + line;
    }
}

static void put_frame(FILE *out, const view *v, double right) {
    const drawing_panel *p = v->p;
    const double bottom = v->top + v->h, end = v->left + v->w;
    double at[MAX_TICKS];
    char text[32];
    const char *note = p->note ? p->note : "";
    const double room = v->w + right - PAGE_MARGIN, w = page_text_width(PAGE_NOTE, note);
    double done = -INFINITY;
    if (p->title)
        page_text(out, PAGE_BOLD, PAGE_START, v->left, v->top - 11, room - w - 16, p->title);
    if (p->note)
        page_text(out, PAGE_NOTE, PAGE_END, v->left + room, v->top - 11, room / 2, note);
    const bool named_x = is_named(v, DRAWING_BELOW), named_y = is_named(v, DRAWING_LEFT);
    for (int i = 0, n = named_x ? 0 : ticks_of(&v->x, at); i < n; i++) {
        const double x = at_x(v, at[i]);
        if (!p->x.whole)
            fprintf(out, "<path class=\"g\" d=\"M%.1f %.1f V%.1f\"/>\n", x, v->top, bottom);
        put_below(out, v, at[i], tick_text(&v->x, at[i], text), right, &done);
    }
    for (int i = 0, n = named_y ? 0 : ticks_of(&v->y, at); i < n; i++) {
        const double y = at_y(v, at[i]);
        fprintf(out, "<path class=\"g\" d=\"M%.1f %.1f H%.1f\"/>\n", v->left, y, end);
        page_text(out, PAGE_NOTE, PAGE_END, v->left - AWAY, y + 4, NAMES,
                  tick_text(&v->y, at[i], text));
    }
    for (size_t i = 1; i < p->n_rows; i++) /* lines between rows */
        fprintf(out, "<path class=\"g\" d=\"M%.1f %.1f H%.1f\"/>\n", v->left, at_y(v, (double)i),
                end);
    for (size_t i = p->tick; i < p->tick + p->n_ticks; i++)
        if (v->d->tick[i].side == DRAWING_BELOW)
            put_below(out, v, v->d->tick[i].at, v->d->tick[i].name, right, &done);
    put_beside(out, v, right);
    fprintf(out, "<rect class=\"axes\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
            v->left, v->top, v->w, v->h);
    if (p->x.title) { /* in the middle, or at its left end if it is wider than the plot */
        const double half = page_text_width(PAGE_NOTE, p->x.title) / 2;
        page_text(out, PAGE_NOTE, PAGE_MIDDLE, v->left + fmax(v->w / 2, half), bottom + 33,
                  2 * half, p->x.title);
    }
    if (p->y.title) {
        fprintf(out, "<g transform=\"translate(%d %.1f) rotate(-90)\">", PAGE_MARGIN,
                v->top + v->h / 2);
        page_text(out, PAGE_NOTE, PAGE_MIDDLE, 0, 0, v->h, p->y.title);
        fputs("</g>\n", out);
    }
}

/* --- marks ------------------------------------------------------------------------------------ */

static void put_tip(FILE *out, const drawing_mark *m, const char *tag) {
    if (m->tip) {
        fputs("><title>", out);
        page_put(out, m->tip);
        fprintf(out, "</title></%s>\n", tag);
    } else {
        fputs("/>\n", out);
    }
}

static void put_bar(FILE *out, const view *v, const drawing_mark *m) {
    enum { LEAST = 2 }; /* a bar is seen, however low */
    double x = at_x(v, fmin(m->x, m->x1)), y = at_y(v, fmin(m->y, m->y1)),
           w = at_x(v, fmax(m->x, m->x1)) - x, h = at_y(v, fmax(m->y, m->y1)) - y;
    if (v->p->x.whole)
        w -= w > 8 ? 2 : 1;
    if (h < LEAST)
        y -= LEAST - h, h = LEAST;
    fprintf(out, "<rect class=\"bar c%d\"", m->series % DRAWING_COLORS);
    page_put_series(out, v->d, m->series);
    fprintf(out, " x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x, y, fmax(w, 0), h);
    if (m->shade > 0)
        fprintf(out, " fill-opacity=\"%.3f\"", m->shade);
    put_tip(out, m, "rect");
    if (m->text && page_text_width(PAGE_NOTE, m->text) + 4 <= w)
        page_text(out, PAGE_NOTE, PAGE_MIDDLE, x + w / 2, y + h / 2 + 4, w, m->text);
}

static void put_whisker(FILE *out, const view *v, const drawing_mark *m) {
    const double x = at_x(v, m->x), x1 = at_x(v, m->x1), y = at_y(v, m->y);
    fprintf(out, "<path class=\"ink\" d=\"M%.1f %.1f H%.1f M%.1f %.1f V%.1f M%.1f %.1f V%.1f\"/>\n",
            x, y, x1, x, y - 4, y + 4, x1, y - 4, y + 4);
}

static void put_point(FILE *out, const view *v, const drawing_mark *m) {
    const int color = m->series % DRAWING_COLORS;
    char fill[16] = "hollow";
    if (!m->hollow)
        snprintf(fill, sizeof fill, "c%d", color);
    fprintf(out, "<circle class=\"point s%d %s\"", color, fill);
    page_put_series(out, v->d, m->series);
    if (m->limit)
        fprintf(out, " data-under=\"%s\"", m->limit);
    fprintf(out, " cx=\"%.1f\" cy=\"%.1f\" r=\"%d\" stroke-width=\"1.2\"", at_x(v, m->x),
            at_y(v, m->y), RADIUS);
    put_tip(out, m, "circle");
}

/* Writes the line or band that begins with m[0]; returns the number of its marks. */
static size_t put_path(FILE *out, const view *v, const drawing_mark *m, size_t left) {
    const bool band = m->kind == DRAWING_BAND;
    size_t n = 1;
    while (n < left && m[n].kind == m->kind && m[n].series == m->series && !m[n].begins)
        n++;
    if (band)
        fprintf(out, "<path class=\"c%d\" fill-opacity=\"0.2\"", m->series % DRAWING_COLORS);
    else if (m->limit)
        fprintf(out, "<path class=\"roof%s\" data-roof=\"%s\"", m->dashed ? " flat" : "", m->limit);
    else
        fprintf(out, "<path class=\"line%s s%d\"", m->dashed ? " dash" : "",
                m->series % DRAWING_COLORS);
    if (!band)
        page_put_series(out, v->d, m->series);
    fputs(" d=\"", out);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%.1f %.1f", i ? " L" : "M", at_x(v, m[i].x), at_y(v, m[i].y));
    for (size_t i = n; band && i-- > 0;)
        fprintf(out, " L%.1f %.1f", at_x(v, m[i].x), at_y(v, m[i].y1));
    fputs("\"/>\n", out);
    return n;
}

/* --- texts beside points ----------------------------------------------------------------------- */

typedef struct box {
    double x0, y0, x1, y1;
} box;

static bool overlap(const box *a, double x0, double y0, double x1, double y1) {
    return a->x0 < x1 && x0 < a->x1 && a->y0 < y1 && y0 < a->y1;
}

static bool is_free(const view *v, const box *taken, size_t n, const box *b) {
    enum { NEAR = RADIUS + 1 };
    bool is = b->x0 >= v->left + 2 && b->x1 <= v->left + v->w - 2 && b->y0 >= v->top + 2 &&
              b->y1 <= v->top + v->h - 2;
    for (size_t i = 0; i < n && is; i++)
        is = !overlap(b, taken[i].x0, taken[i].y0, taken[i].x1, taken[i].y1);
    for (size_t i = v->p->mark; i < v->p->mark + v->p->n_marks && is; i++)
        if (v->d->mark[i].kind == DRAWING_POINT) {
            const double x = at_x(v, v->d->mark[i].x), y = at_y(v, v->d->mark[i].y);
            is = !overlap(b, x - NEAR, y - NEAR, x + NEAR, y + NEAR);
        }
    return is;
}

/* Writes a point's text where there is room: left, right, above or below; taken[*n]: where others are. */
static void put_label(FILE *out, const view *v, const drawing_mark *m, box *taken, size_t *n) {
    const double w = page_text_width(PAGE_LABEL, m->text), x = at_x(v, m->x), y = at_y(v, m->y);
    const double places[][2] = {
        {x - AWAY - w, y},          {x + AWAY, y},          {x - w / 2, y - 14},
        {x - w / 2, y + 14},        {x - AWAY - w, y - 12}, {x + AWAY, y - 12},
        {x - AWAY - w, y + 12},     {x + AWAY, y + 12},     {x - AWAY - w, y + 24},
        {x - AWAY - w / 2, y + 28}, {x - AWAY - w, y - 24}, {x + AWAY, y + 24}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const double left = places[i][0], middle = places[i][1];
        const box b = {left - 1, middle - 7, left + w + 1, middle + 7};
        if (!is_free(v, taken, *n, &b))
            continue;
        taken[(*n)++] = b;
        page_text(out, PAGE_LABEL, PAGE_START, left, middle + 4, w, m->text);
        return;
    }
}

static void put_marks(FILE *out, const view *v, box *taken) {
    const drawing_mark *m = v->p->n_marks > 0 ? &v->d->mark[v->p->mark] : NULL;
    size_t n_taken = 0;
    for (size_t i = 0, n; i < v->p->n_marks; i += n) {
        n = 1;
        if (m[i].kind == DRAWING_LINE || m[i].kind == DRAWING_BAND)
            n = put_path(out, v, &m[i], v->p->n_marks - i);
        else if (m[i].kind == DRAWING_BAR)
            put_bar(out, v, &m[i]);
        else if (m[i].kind == DRAWING_POINT)
            put_point(out, v, &m[i]);
        else
            put_whisker(out, v, &m[i]);
    }
    for (size_t i = 0; i < v->p->n_marks; i++)
        if (m[i].kind == DRAWING_POINT && m[i].text)
            put_label(out, v, &m[i], taken, &n_taken);
}

/* --- panels ----------------------------------------------------------------------------------- */

/* Returns the width of the names on the left and on the right, with those of ticks. */
static double names_width(const view *v, drawing_side side) {
    double most = 0, at[MAX_TICKS];
    char text[32];
    const bool named = is_named(v, side);
    for (size_t i = v->p->tick; i < v->p->tick + v->p->n_ticks; i++)
        if (v->d->tick[i].side == side)
            most = fmax(most, page_text_width(side == DRAWING_LEFT ? PAGE_TEXT : PAGE_NOTE,
                                              v->d->tick[i].name));
    for (int i = 0, n = named || side == DRAWING_RIGHT ? 0 : ticks_of(&v->y, at); i < n; i++)
        most = fmax(most, page_text_width(PAGE_NOTE, tick_text(&v->y, at[i], text)));
    return fmin(NAMES, most + (side == DRAWING_LEFT ? PAGE_MARGIN + AWAY : AWAY + 4) +
                           (side == DRAWING_LEFT && v->p->y.title ? LINE : 0));
}

typedef struct chart {  /* the views of all panels */
    double left, right; /* beside the plots */
    box *taken;         /* for the texts of a panel */
    view view[];
} chart;

static void draw(FILE *out, const page_body *b, double width, double top) {
    const chart *c = b->state;
    (void)width;
    for (size_t i = 0; i < b->d->n_panels; i++) {
        view v = c->view[i];
        v.top += top;
        fputs("<g class=\"panel\">\n", out);
        put_frame(out, &v, c->right);
        put_marks(out, &v, c->taken);
        fputs("</g>\n", out);
    }
}

static void place(page_body *b, chart *c) {
    const drawing *d = b->d;
    for (size_t i = 0; i < d->n_panels; i++) {
        view *v = &c->view[i];
        const drawing_panel *p = &d->panel[i];
        const double span = p->x.high - p->x.low, room = PAGE_WIDTH - c->left - c->right;
        v->left = c->left;
        v->w = p->x.most > 0 ? fmin(room, p->x.most * span) : room;
        v->w = fmax(v->w, p->x.least * span);
        v->x = scale_of(d, p, true, v->w);
        v->top = b->height + (p->title ? HEAD : BARE_HEAD);
        b->height = v->top + v->h + FOOT + (p->x.title ? TITLE : 0);
        b->width = fmax(b->width, v->left + v->w + c->right);
    }
}

static void fini(page_body *b) {
    chart *c = b->state;
    ggl_free(c ? c->taken : NULL);
}

ggl_status chart_body(page_body *b, const drawing *d, ggl_error *err) {
    chart *c = ggl_calloc(1, sizeof *c + d->n_panels * sizeof *c->view);
    size_t n_texts = 0;
    for (size_t i = 0; i < d->n_marks; i++)
        n_texts += d->mark[i].kind == DRAWING_POINT && d->mark[i].text;
    *b = (page_body){.d = d, .draw = draw, .state = c, .fini = fini};
    if (!c || !(c->taken = ggl_calloc(n_texts + 1, sizeof *c->taken)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the picture");
    c->left = c->right = LEAST_NAMES;
    for (size_t i = 0; i < d->n_panels; i++) {
        view *v = &c->view[i];
        const drawing_panel *p = &d->panel[i];
        *v = (view){.d = d, .p = p, .h = p->height};
        if (p->n_rows > 0) {
            v->h *= (double)p->n_rows;
            v->y = (scale){0, (double)p->n_rows, 1, false};
        } else {
            v->y = scale_of(d, p, false, v->h);
        }
        c->left = fmax(c->left, names_width(v, DRAWING_LEFT));
        c->right = fmax(c->right, names_width(v, DRAWING_RIGHT));
    }
    place(b, c);
    return GGL_OK;
}
