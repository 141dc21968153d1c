#include "drawing.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Appends a copy of an element to an array; returns it, or NULL: out of memory. */
static void *append(drawing *d, void *array, size_t *cap, size_t *n, size_t size,
                    const void *element) {
    char *first;
    d->failed |= !ggl_grow(array, cap, *n + 1, size);
    memcpy(&first, array, sizeof first);
    return d->failed ? NULL : memcpy(first + size * (*n)++, element, size);
}
#define APPEND(d, what, element)                                                                   \
    append(d, &(d)->what, &(d)->cap_##what##s, &(d)->n_##what##s, sizeof *(d)->what, element)

static drawing_panel *last_panel(drawing *d) {
    return d->failed ? &d->no_panel : &d->panel[d->n_panels - 1];
}

const char *drawing_text(drawing *d, const char *fmt, ...) {
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *copy = ggl_arena_strndup(&d->texts, text, strlen(text));
    d->failed |= !copy;
    return copy ? copy : "";
}

void drawing_legend(drawing *d, int series, double shade, const char *name) {
    APPEND(d, legend, (&(drawing_entry){series, shade, name}));
}

void drawing_note(drawing *d, const char *text) {
    drawing_legend(d, DRAWING_BARE, 0, text);
}

drawing_panel *drawing_panel_add(drawing *d, double height) {
    APPEND(d, panel, (&(drawing_panel){.height = height, .mark = d->n_marks, .tick = d->n_ticks}));
    return last_panel(d);
}

bool drawing_shows(double x) {
    return x == 0 || (x >= 1e-60 && x <= 1e60);
}

/* True if a place is a number that an axis can have: also a negative one, where it begins with one. */
static bool is_place(const drawing_axis *a, double x) {
    return a->log ? x > 0 && drawing_shows(x) : drawing_shows(fabs(x)) && (x >= 0 || x >= a->low);
}

drawing_mark *drawing_span(drawing *d, drawing_kind kind, int series, double x, double x1, double y,
                           double y1) {
    drawing_panel *p = last_panel(d);
    const bool shown =
        is_place(&p->x, x) && is_place(&p->x, x1) && is_place(&p->y, y) && is_place(&p->y, y1);
    const drawing_mark m = {kind,
                            series,
                            x,
                            x1,
                            y,
                            y1,
                            .begins = d->no_mark.begins}; /* also if its first mark is not shown */
    drawing_mark *to = shown ? APPEND(d, mark, &m) : NULL;
    if (!to)
        return &d->no_mark;
    d->no_mark.begins = false;
    p->n_marks++;
    return to;
}

drawing_mark *drawing_at(drawing *d, drawing_kind kind, int series, double x, double y) {
    return drawing_span(d, kind, series, x, x, y, y);
}

/* Names below are kept from the left to the right, those on the right from the highest to the lowest. */
static bool stands_before(const drawing_tick *a, const drawing_tick *b) {
    return a->side == b->side &&
           (a->side == DRAWING_BELOW ? a->at < b->at : a->side == DRAWING_RIGHT && a->at > b->at);
}

void drawing_name(drawing *d, drawing_side side, double at, const char *name) {
    const drawing_tick t = {side, at, name};
    drawing_panel *p = last_panel(d);
    drawing_tick *to = name && drawing_shows(at) ? APPEND(d, tick, &t) : NULL;
    for (size_t n = to ? p->n_ticks++ : 0; p->n_rows == 0 && n > 0 && stands_before(&t, to - 1);
         n--, to--) {
        *to = to[-1];
        to[-1] = t;
    }
}

void drawing_row(drawing *d, const char *name, const char *note) {
    const double at = (double)last_panel(d)->n_rows++ + 0.5;
    drawing_name(d, DRAWING_LEFT, at, name);
    drawing_name(d, DRAWING_RIGHT, at, note);
}

void drawing_block_add(drawing *d, const drawing_block *b) {
    drawing_block *to = APPEND(d, block, b);
    if (to)
        to->node = d->n_nodes, to->edge = d->n_edges;
}

void drawing_node_add(drawing *d, const drawing_node *n) {
    if (APPEND(d, node, n))
        d->block[d->n_blocks - 1].n_nodes++;
}

void drawing_edge_add(drawing *d, const drawing_edge *e) {
    if (APPEND(d, edge, e))
        d->block[d->n_blocks - 1].n_edges++;
}

void drawing_fini(drawing *d) {
    void *const arrays[] = {d->legend, d->panel, d->mark, d->tick, d->block, d->node, d->edge};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        ggl_free(arrays[i]);
    ggl_arena_fini(&d->texts);
    *d = (drawing){0};
}
